"""Indexes that are replaced while they are read, or meet a full disk: nothing is lost, nothing is mixed."""

from pathlib import Path

import numpy as np
import pytest

from citerec import Context, Recommender, evaluate
from citerec.errors import BuildError, IndexUnusableError
from citerec.index.build import add_to_index, build_index, encode_index
from citerec.index.describe import verify
from citerec.index.manifest import Manifest, generation_of
from citerec.index.vectors import DenseOptions
from tests.conftest import write_lines
from tests.dense.conftest import full_disk, unit_vectors, write_arrays


@pytest.fixture
def index(tmp_path: Path) -> Path:
    papers = [{"paper_id": f"a{number}", "title": f"Okapi {number}"} for number in range(8)]
    build_index([write_lines(tmp_path / "a.jsonl", papers)], tmp_path / "index")
    return tmp_path / "index"


def test_systems_of_an_evaluation_search_one_generation(index: Path, tmp_path: Path) -> None:
    contexts = [Context(context_id=str(number), text="Okapi <REF>", cited_ids=("a1",)) for number in range(3)]
    more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "m", "title": "More okapis"}])

    def replacing(context: Context, _k: int) -> list[tuple[str, float]]:
        if context.context_id == "0":
            add_to_index([more], index)
        return [("a1", 1.0)]

    with pytest.raises(IndexUnusableError, match="was replaced while it was searched"):
        evaluate({"first": replacing, "bm25": "bm25"}, contexts, index=index, metrics="mrr@5")


def test_two_generations_are_kept_and_share_what_did_not_change(index: Path, tmp_path: Path) -> None:
    vectors = write_arrays(tmp_path / "v", np.array([f"a{number}" for number in range(8)]), unit_vectors(8, 16))
    before = generation_of(index)
    with Recommender.open(index) as reader:
        encode_index(index, DenseOptions("any/model", vectors=(vectors,)))
        now = generation_of(index)
        for name in ("papers.sqlite", "columns/ids.npy", "words/contents/vocab.index.json"):
            assert (before / name).samefile(now / name)
        add_to_index([write_lines(tmp_path / "m.jsonl", [{"paper_id": "m", "title": "More okapis"}])], index)
        assert sorted(path.name for path in index.iterdir() if path.name.isdecimal()) == ["2", "3"]
        assert len(reader.search("okapi <REF>", 8, explain=True)) == 8  # its files are gone, and it keeps them
    assert verify(index) == []


def test_a_full_disk_is_said_and_the_next_run_goes_on(index: Path, tmp_path: Path) -> None:
    papers = write_lines(tmp_path / "p.jsonl", [{"paper_id": str(n), "title": f"Okapi {n}"} for n in range(4000)])
    for size in (2_000, 200_000):
        with full_disk(size), pytest.raises(BuildError, match=f"^cannot write {index}"):
            add_to_index([papers], index)
        assert Manifest.read(index).counts.papers == 8
    assert add_to_index([papers], index).counts.papers == 4008
    assert verify(index) == []
