"""Files of citerec's own, damaged: an error of citerec or a value, and no other exception."""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import citerec
from citerec.contexts.provenance import PROVENANCE, Provenance, provenance_of_part
from citerec.diagnostics import sets
from citerec.diagnostics.review import read_reviews
from citerec.errors import CiterecError, IndexUnusableError
from citerec.index.manifest import Manifest, find_index, is_index
from citerec.index.vectors import DenseManifest
from citerec.models.loading import MANIFEST
from citerec.records import Context
from citerec.rerank.base import trained_at, trained_manifest
from tests.conftest import DEMO
from tests.damage import damaged

INDEX = {"kind": "citerec-index", "version": 1, "fingerprint": "f", "counts": {"papers": 1}, "sources": [{}]}
MANIFESTS = (Manifest.read, is_index, find_index, DenseManifest.read, sets.SetManifest.read, sets.SET.is_at, trained_at)
VERDICT = b'{"context_id": "1", "verdict": "accept", "note": "n", "when": "w"}'


def provenance(folder: Path) -> bytes:
    Provenance.of([Context(text="a <REF>", citing_id="1")]).write(folder / PROVENANCE)
    return (folder / PROVENANCE).read_bytes()


@pytest.mark.parametrize(
    ("name", "sample", "readers"),
    [
        (MANIFEST, lambda _: (DEMO / "manifest.json").read_bytes(), MANIFESTS),
        (MANIFEST, lambda _: orjson.dumps(INDEX), MANIFESTS),
        (MANIFEST, lambda _: b'{"kind": "x", "weight": 0.5}', (*MANIFESTS, trained_manifest, provenance_of_part)),
        (PROVENANCE, provenance, (provenance_of_part,)),
        ("x.reviews/ada.jsonl", lambda _: VERDICT, (lambda folder: read_reviews(folder / "x"),)),
    ],
    ids=["manifest of a set", "manifest of an index", "manifest of a part", "provenance", "reviews"],
)
def test_a_damaged_file_ends_in_an_error_of_ours(
    tmp_path: Path, name: str, sample: Callable[[Path], bytes], readers: tuple[Callable[[Path], object], ...]
) -> None:
    (tmp_path / "x.reviews").mkdir()
    (tmp_path / MANIFEST).write_text("{}")
    for changed in damaged(sample(tmp_path), 100):
        (tmp_path / name).write_bytes(changed)
        for read in readers:
            with contextlib.suppress(CiterecError):
                read(tmp_path)


def test_a_damaged_file_of_an_index_is_named_or_does_no_harm(hybrid_index: Path, tmp_path: Path) -> None:
    def search(index: Path) -> None:
        with citerec.Recommender.open(index) as recommender:
            recommender.search("Attention suffices to translate <REF>.", 3, explain=True)

    files = [path.relative_to(hybrid_index) for path in hybrid_index.glob("*/**/*") if path.is_file()]
    assert len(files) > 20
    named = set()
    for number, name in enumerate(files):
        index = tmp_path / str(number)
        shutil.copytree(hybrid_index, index)
        whole = (index / name).read_bytes()
        middle = len(whole) // 4
        for raw in (whole[:middle], whole[:middle] + b"\xff" * middle + whole[2 * middle :]):
            (index / name).unlink()  # it may be a link to the file of another generation
            (index / name).write_bytes(raw)
            try:
                search(index)
            except CiterecError as error:
                assert str(name.parts[1]).partition(".")[0] in str(error) or "store" in str(error)
                named.add(name.name)
        shutil.rmtree(index)
    assert {"ids.npy", "word_begins.npy", "codes.npy", "papers.sqlite"} <= named


def test_an_index_that_lost_its_vectors_says_so(hybrid_index: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(hybrid_index, index)
    (dense,) = index.glob("*/dense")
    shutil.rmtree(dense)
    with pytest.raises(IndexUnusableError, match="has lost its vectors"):
        citerec.Index.open(index).recommender()
