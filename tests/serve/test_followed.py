"""An index follows the bibliographies that it was built from: what was saved is found without a command."""

import time
from pathlib import Path

import pytest

from citerec.index.build import build_index
from citerec.index.manifest import Manifest
from citerec.serve.indexes import ServedIndex

OLD = "@article{old, title={Term weighting for retrieval}, author={Salton, Gerard}, year={1988}}\n"
NEW = "@article{new, title={Weighting quokkas by their smiles}, author={Zed, Zoe}, year={2020}}\n"


def test_what_is_saved_is_found_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bib := tmp_path / "my.bib").write_text(OLD)
    monkeypatch.chdir(tmp_path)
    build_index([Path("my.bib")], tmp_path / "index")
    monkeypatch.chdir("/")  # a server runs elsewhere
    served = ServedIndex(tmp_path / "index")
    assert served.open().search("Who measured quokkas <REF>?").hits == ()
    bib.write_text(OLD + NEW)
    saved = time.monotonic()
    while not served.open().search("Who measured quokkas <REF>?").hits:
        assert time.monotonic() < saved + 20
        time.sleep(0.1)
    bib.write_text(OLD + NEW + "@article{broken, title={")  # a fault in it ends nothing
    time.sleep(2.5)
    bib.write_text(OLD + NEW + NEW.replace("quokkas", "numbats").replace("new", "newer"))
    while not served.open().search("Who measured numbats <REF>?").hits:
        time.sleep(0.1)
    assert len(Manifest.read(tmp_path / "index").sources) == 1  # read several times, it is one source
    served.close()
