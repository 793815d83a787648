"""The archive of Java's classes: made once, used where it fits, and never in the way."""

import json
from pathlib import Path

import pytest

from citerec.retrieve.lucene.archive import archive_options, archive_path, make_archive
from citerec.retrieve.lucene.jvm import anserini_jar, java_home
from tests.conftest import DEMO, Citerec

pytestmark = pytest.mark.slow


def test_a_build_makes_an_archive_with_which_java_finds_the_same(citerec: Citerec, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    ask = ("recommend", "Attention <REF> suffices.", "--index", "demo", "--system", "bm25", "--json")
    assert citerec("index", "build", DEMO, "--out", "demo", **cache).returncode == 0
    (archive,) = (tmp_path / "cache" / "citerec" / "java").iterdir()  # and no rest of its making
    # Java tells where each class comes from.
    listing = {"JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={tmp_path}/classes"}
    found = citerec(*ask, **cache, **listing).stdout
    assert "IndexSearcher source: shared objects file" in (tmp_path / "classes").read_text()
    archive.unlink()
    assert citerec(*ask, **cache, **listing).stdout == found
    assert "IndexSearcher source: shared" not in (tmp_path / "classes").read_text()


@pytest.mark.parametrize("content", [b"", b"no archive of classes" * 1000])
def test_an_archive_that_does_not_fit_is_as_none(
    citerec: Citerec, tmp_path: Path, demo_index: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    archive = archive_path(java_home(), anserini_jar())
    archive.parent.mkdir(parents=True)
    archive.write_bytes(content)
    assert f"-XX:SharedArchiveFile={archive}" in archive_options(java_home(), anserini_jar())
    found = citerec(
        *("recommend", "Attention <REF>", "--index", demo_index, "--system", "bm25", "--json"),
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert json.loads(found.stdout)[0]["title"] == "Attention Is All You Need"
    assert found.stderr == ""


def test_without_a_place_for_it_a_build_goes_on(
    demo_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not make_archive(demo_index)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not make_archive(tmp_path / "no-index")
    assert list((tmp_path / "citerec" / "java").iterdir()) == []
