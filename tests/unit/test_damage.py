"""Files of citerec's own, damaged: an error of citerec or a value, and no other exception."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from citerec.contexts.provenance import PROVENANCE, Provenance, provenance_of_part
from citerec.diagnostics import sets
from citerec.diagnostics.review import read_reviews
from citerec.errors import CiterecError
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
