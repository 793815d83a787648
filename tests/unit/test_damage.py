"""Files of citerec's own, damaged: an error of citerec or a value, and no other exception."""

import contextlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.contexts.provenance import PROVENANCE, Provenance, provenance_of_part
from citerec.diagnostics import sets
from citerec.diagnostics.review import read_reviews
from citerec.errors import CiterecError
from citerec.files.resume import JOURNAL, Journal, Step, run_stage
from citerec.index.manifest import Manifest, find_index, is_index
from citerec.index.vectors import DenseManifest
from citerec.models.loading import MANIFEST
from citerec.records import Context
from citerec.rerank.base import trained_at, trained_manifest
from tests.conftest import DEMO
from tests.damage import damaged

INDEX = {"kind": "citerec-index", "version": 1, "fingerprint": "f", "counts": {"papers": 1}, "sources": [{}]}


def opened(folder: Path) -> None:
    """Whatever reads the manifest of a folder."""
    for read in (Manifest.read, is_index, find_index, DenseManifest.read, sets.SetManifest.read, sets.SET.is_at,
                 trained_at, trained_manifest, provenance_of_part):  # fmt: skip
        with contextlib.suppress(CiterecError):
            read(folder)  # type: ignore[operator]


@pytest.mark.parametrize(
    "raw", [(DEMO / "manifest.json").read_bytes(), orjson.dumps(INDEX), b'{"kind": "x", "weight": 0.5}']
)
def test_a_damaged_manifest(raw: bytes, tmp_path: Path) -> None:
    for changed in damaged(raw, 150):
        (tmp_path / MANIFEST).write_bytes(changed)
        opened(tmp_path)


def test_a_damaged_file_of_what_a_part_learnt_from(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    Provenance.of([Context(text="a <REF>", citing_id="1")]).write(tmp_path / PROVENANCE)
    for changed in damaged((tmp_path / PROVENANCE).read_bytes(), 200):
        (tmp_path / PROVENANCE).write_bytes(changed)
        with contextlib.suppress(CiterecError):
            provenance_of_part(tmp_path)


def test_a_damaged_journal_is_no_journal_of_the_plan(tmp_path: Path) -> None:
    Journal(tmp_path / "work", {"seed": 1})
    for changed in damaged((tmp_path / "work" / JOURNAL).read_bytes(), 100):
        (tmp_path / "work" / JOURNAL).write_bytes(changed)
        assert Journal(tmp_path / "work", {"seed": 1}).notes.get("plan")


def counted(shard: Path, out: Path, _parameters: Any) -> dict[str, int]:
    out.write_bytes(shard.read_bytes())
    return {"lines": 1}


def test_a_damaged_receipt_is_none(tmp_path: Path) -> None:
    (shard := tmp_path / "a").write_text("x")
    work = tmp_path / "work"
    (result,) = run_stage(work, [shard], Step(counted, 1), {}, workers=1, on_progress=lambda *_: None)
    receipt = result.path.with_name(f"{result.path.name}.json")
    for raw in ({}, {"counts": [1]}, [1]):
        receipt.write_bytes(orjson.dumps(raw))
        assert run_stage(work, [shard], Step(counted, 1), {}, workers=1, on_progress=lambda *_: None)[0].counts == {
            "lines": 1
        }


def test_damaged_reviews(tmp_path: Path) -> None:
    sets.reviews_of(tmp_path).mkdir()
    for changed in damaged(b'{"context_id": "1", "verdict": "accept", "note": "n", "when": "w"}', 100):
        (sets.reviews_of(tmp_path) / "ada.jsonl").write_bytes(changed)
        with contextlib.suppress(CiterecError):
            read_reviews(tmp_path)
