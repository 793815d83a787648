"""Vectors that were made elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest

from citerec import Index
from citerec.contexts.topic import Topic
from citerec.errors import BuildError, CiterecError, SourceError
from citerec.index.build import encode_index
from citerec.index.describe import verify
from citerec.index.vectors import DenseOptions
from citerec.records import NO_FILTERS, Paper
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.draft import DraftRetriever
from citerec.settings import PartSettings
from tests.conftest import write_lines
from tests.dense.conftest import build, full_disk, rows_of, unit_vectors, vectors_of, write_arrays

D = 24
PAPERS = [Paper(str(number), f"paper {number}") for number in range(100, 160)]
IDS = np.array([int(paper.paper_id) for paper in PAPERS])
GIVEN = unit_vectors(len(IDS), D)


def options(*paths: Path, max_bad: float = 0.05) -> DenseOptions:
    return DenseOptions("any/model", vectors=paths, max_bad=max_bad)


def specter(ids: np.ndarray, vectors: np.ndarray) -> list[dict[str, object]]:
    """As Semantic Scholar gives them: some vectors as text, others as lists."""
    return [
        {"corpusid": int(number), "vector": json.dumps(vector.tolist()) if number % 2 else vector.tolist()}
        for number, vector in zip(ids, vectors, strict=True)
    ]


@pytest.mark.parametrize(("dtype", "id_type"), [("float16", "int64"), ("float32", "U"), ("float64", "S")])
def test_arrays_of_any_type_in_any_order(tmp_path: Path, dtype: str, id_type: str) -> None:
    order = np.random.default_rng(1).permutation(len(IDS))
    path = write_arrays(tmp_path / "given", IDS[order].astype(id_type), (GIVEN[order] * 3).astype(dtype))
    vectors = build(tmp_path / "index", PAPERS, options(path))
    np.testing.assert_allclose(vectors.values[:].astype(np.float32), GIVEN, atol=2e-3)
    assert vectors.manifest.given and vectors.manifest.identity is None
    # Vectors of length one keep their bits.
    halves = write_arrays(tmp_path / "halves", IDS, GIVEN.astype(np.float16))
    np.testing.assert_array_equal(build(tmp_path / "other", PAPERS, options(halves)).values, GIVEN.astype(np.float16))


def test_specter_shards(tmp_path: Path) -> None:
    rows = specter(IDS, 20 * GIVEN)
    folder = tmp_path / "embeddings-specter_v2"
    write_lines(folder / "a.jsonl", rows[:25])
    write_lines(folder / "b.jsonl", rows[25:], compress=True)
    vectors = build(tmp_path / "index", PAPERS, options(folder))
    np.testing.assert_allclose(vectors.values[:].astype(np.float32), GIVEN, atol=2e-3)


def test_papers_and_vectors_without_each_other_are_counted(tmp_path: Path) -> None:
    paths = write_arrays(tmp_path / "given", IDS, GIVEN), write_arrays(tmp_path / "later", IDS[:1], GIVEN[5:6])
    papers = [*PAPERS[:40], Paper("900", "no vector"), Paper("901", "none either")]
    vectors = build(tmp_path / "index", papers, options(*paths))
    np.testing.assert_allclose(vectors.values[0].astype(np.float32), GIVEN[5], atol=2e-3)  # the last one counts
    assert (vectors.manifest.count, vectors.manifest.without_vector) == (40, 2)
    assert vectors.manifest.faults == {"of papers not in the index": 20}
    assert vectors.has_vector[rows_of(tmp_path / "index", ["900", "901", "100"])].tolist() == [False, False, True]
    draft = DraftRetriever(OpenIndex.open(tmp_path / "index"), PartSettings())
    signals = draft.signals(Topic("a draft", cited_before=("900",)), np.arange(3), NO_FILTERS)
    assert np.isnan([signals["draft_mean"], signals["draft_nearest"]]).all()  # what it cites has no vector


def test_unusable_vectors_and_lines_are_counted(tmp_path: Path) -> None:
    bad = GIVEN.copy()
    bad[0, 3], bad[1], bad[2, 0] = np.nan, 0, np.inf
    path = write_arrays(tmp_path / "given", IDS, bad)
    vectors = build(tmp_path / "index", PAPERS, options(path, max_bad=0.1))
    assert vectors.manifest.faults == {"not finite, zero or of another dimension": 3}
    assert vectors.manifest.without_vector == 3
    with pytest.raises(BuildError, match=rf"3 of 60 vectors of dimension {D} are bad, more than 0%"):
        build(tmp_path / "strict", PAPERS, options(path, max_bad=0))
    rows: list[object] = [*specter(IDS, GIVEN)]
    bad_vectors = (None, "[1, 2", [0.1] * (D - 1), ["a"] * D)
    rows[3:9] = [*({"corpusid": 103, "vector": one} for one in bad_vectors), {"vector": [0.1] * D}, [1, 2]]
    path = write_lines(tmp_path / "given.jsonl", rows)
    with path.open("ab") as file:
        file.write(b'{"corpusid": 1, "vec')
    vectors = build(tmp_path / "index", PAPERS, options(path, max_bad=0.5))
    assert vectors.manifest.faults == {"not finite, zero or of another dimension": 7}


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    for number, (ids, vectors, message) in enumerate(
        (
            (IDS[:-1], GIVEN, "ids.npy"),
            (IDS, GIVEN.astype(np.int32), "int32"),
            (IDS, GIVEN[0], "ids.npy"),
            (IDS + 1000, GIVEN, "belongs to a paper"),
            (np.array(["a", 1], dtype=object), GIVEN[:2], "Python objects"),
        )
    ):
        path = write_arrays(tmp_path / str(number), ids, vectors)
        with pytest.raises(SourceError, match=message):
            build(tmp_path / "index", PAPERS, options(path))
    for wrong in (tmp_path / "missing", write_lines(tmp_path / "empty.jsonl", [])):
        with pytest.raises(CiterecError):
            build(tmp_path / "index", PAPERS, options(wrong))


def test_a_stopped_import_and_a_full_disk_leave_the_index_and_the_next_run_begins_again(tmp_path: Path) -> None:
    folder, index = tmp_path / "given", tmp_path / "index"
    for part in range(3):
        rows = slice(part * 20, part * 20 + 20)
        write_lines(folder / f"{part}.jsonl", specter(IDS[rows], GIVEN[rows]))
    Index.build(PAPERS, index)

    def stop(doing: str, done: float, _whole: float) -> None:
        if doing == "taking vectors" and done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_index(index, options(folder), stop)
    assert verify(index) == []
    with full_disk(1000), pytest.raises(BuildError, match="cannot write"):
        encode_index(index, options(folder))
    assert verify(index) == []
    encode_index(index, options(folder))
    np.testing.assert_allclose(vectors_of(index).values.astype(np.float32), GIVEN, atol=2e-3)
    assert verify(index) == []


def test_given_vectors_stay_with_their_papers_until_others_of_the_model_take_the_place_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()  # also where their model is named by a relative path
    path, index = write_arrays(tmp_path / "given", IDS, GIVEN), tmp_path / "index"
    old = build(index, PAPERS, DenseOptions("model", vectors=(path,)))
    monkeypatch.chdir(index)
    Index.open(index).add([Paper("900", "new")])
    Index.open(index).remove(["100"])
    new = vectors_of(index)
    np.testing.assert_array_equal(new.values[:-1], old.values[1:])
    assert (new.manifest.count, new.manifest.without_vector) == (59, 1)
    for dimension in (D, D // 2):
        other = unit_vectors(10, dimension, seed=1)
        encode_index(index, options(write_arrays(tmp_path / str(dimension), IDS[1:11], other)))
        np.testing.assert_allclose(vectors_of(index).values[:10].astype(np.float32), other, atol=2e-3)
        assert vectors_of(index).manifest.count == 10, "the papers that they lack have none"
