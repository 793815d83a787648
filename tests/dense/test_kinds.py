"""How vectors are searched: exactly by numpy, or by the kind of FAISS index that is asked for."""

import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from citerec.errors import IndexUnusableError
from citerec.files.progress import no_progress
from citerec.index.manifest import checksum
from citerec.index.vectors import (
    VALUES,
    DenseManifest,
    SearchKind,
    Vectors,
    blank_vectors,
    build_faiss,
    choose,
    finish_vectors,
)
from tests.dense.conftest import unit_vectors

FAISS: tuple[SearchKind, ...] = ("flat", "ivfsq", "ivfpq", "hnsw")
COUNT, D = 10_000, 16  # enough for IVF-PQ to learn from


def write(folder: Path, values: NDArray[np.float32], kind: SearchKind = "exact") -> Vectors:
    """The vectors of a folder that is written without an index of papers."""
    folder.mkdir()
    blank_vectors(folder, *values.shape)[:] = values
    finish_vectors(folder)
    if kind != "exact":
        build_faiss(folder, np.load(folder / VALUES), kind, no_progress)
    known = int(values.any(axis=1).sum())
    DenseManifest(
        citerec="0",
        model="none",
        identity=None,
        backend="torch",
        max_tokens=None,
        dimension=values.shape[1],
        count=known,
        without_vector=len(values) - known,
        given=True,
        faults={},
        store="",
        asked=kind,
        kind_of_search=kind,
        checksums={path.name: checksum(path) for path in folder.iterdir()},
    ).write(folder)
    return Vectors(folder)


def brute(vectors: Vectors, query: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None) -> list[int]:
    """The rows of the k nearest by the vectors in half precision, to six digits; ties in order of row."""
    values = vectors.values.astype(np.float64)
    cosines = (values @ query.astype(np.float64)).round(6)
    allowed = values.any(axis=1) & (True if mask is None else mask)
    order = np.lexsort((np.arange(len(values)), -cosines))
    return order[allowed[order]][:k].tolist()


@pytest.fixture(scope="module")
def values() -> NDArray[np.float32]:
    """Vectors of which some are of papers without a vector, and 60 are equal."""
    values = unit_vectors(COUNT, D, seed=2)
    values[100:140] = 0
    values[-60:] = values[0]
    return values


@pytest.fixture(scope="module")
def searched(values: NDArray[np.float32], tmp_path_factory: pytest.TempPathFactory) -> dict[SearchKind, Vectors]:
    folder = tmp_path_factory.mktemp("kinds")
    return {kind: write(folder / kind, values, kind) for kind in ("exact", *FAISS)}


@pytest.mark.parametrize("k", [1, 10, 500, COUNT])
@pytest.mark.parametrize("share", [None, 0.9, 0.3, 0.01, 0.0])
def test_numpy_finds_exactly_what_brute_force_finds(
    searched: dict[SearchKind, Vectors], values: NDArray[np.float32], k: int, share: float | None
) -> None:
    vectors, random = searched["exact"], np.random.default_rng(5)
    mask = None if share is None else random.random(COUNT) < share
    for near in (0, 7, 4321):
        query = values[near] + 0.1 * random.standard_normal(D).astype(np.float32)
        query /= np.linalg.norm(query)
        rows, scores = vectors.nearest(query, k, mask)
        expected = brute(vectors, query, k, mask)
        exact = vectors.values.astype(np.float64) @ query
        np.testing.assert_allclose(scores, exact[rows], atol=2e-6)
        assert scores.tolist() == sorted(scores, reverse=True)
        # A sum in another order differs in the sixth digit now and then: there, two rows may change places.
        assert len(rows) == len(expected)
        np.testing.assert_allclose(exact[rows], exact[expected], atol=3e-6)
        assert np.mean(rows == expected) > 0.99 if len(rows) > 1 else True


def test_of_more_equal_vectors_than_are_compared_again_the_first_come_first(tmp_path: Path) -> None:
    values = unit_vectors(3000, D)
    values[500:2500] = values[500]
    rows, scores = write(tmp_path / "dense", values).nearest(values[500], 10)
    assert rows.tolist() == list(range(500, 510))
    assert len(set(scores)) == 1


@pytest.mark.parametrize("kind", FAISS)
def test_faiss_finds_the_same_first_hits(
    searched: dict[SearchKind, Vectors], values: NDArray[np.float32], kind: SearchKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.index.vectors._FEW", 0)
    vectors, exact = searched[kind], searched["exact"]
    random = np.random.default_rng(6)
    for share in (1.0, 0.3, 0.01, 0.0):
        mask, shared = random.random(COUNT) < share, []
        for near in random.integers(200, COUNT - 100, 10):
            rows, scores = vectors.nearest(values[near], 100, mask)
            right, right_scores = exact.nearest(values[near], 100, mask)
            assert len(rows) == len(right), "as many as there are"
            assert mask[rows].all()
            assert vectors.has_vector[rows].all()
            assert rows[:1].tolist() == right[:1].tolist()
            assert scores[:1].tolist() == right_scores[:1].tolist(), "cosines in half precision, whatever searched"
            shared.append(len(np.intersect1d(rows, right)) / max(1, len(right)) if len(right) else 1)
        assert np.mean(shared) > 0.95


@pytest.mark.parametrize("kind", FAISS)
def test_faiss_is_mapped_and_searched_by_several_threads(
    searched: dict[SearchKind, Vectors], values: NDArray[np.float32], kind: SearchKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.index.vectors._FEW", 0)
    vectors = searched[kind]
    assert str(vectors.path / "index.faiss") in Path("/proc/self/maps").read_text()
    alone = [vectors.nearest(values[near], 10)[0].tolist() for near in range(200, 240)]
    found: dict[int, list[int]] = {}

    def search(nears: range) -> None:
        found.update((near, vectors.nearest(values[near], 10)[0].tolist()) for near in nears)

    threads = [threading.Thread(target=search, args=(range(first, first + 20),)) for first in (200, 220)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[near] for near in range(200, 240)] == alone


@pytest.mark.parametrize("kind", ["flat", "ivfsq"])
def test_equal_vectors_make_equal_bytes(
    searched: dict[SearchKind, Vectors], tmp_path: Path, values: NDArray[np.float32], kind: SearchKind
) -> None:
    again = write(tmp_path / kind, values, kind)
    assert (again.path / "index.faiss").read_bytes() == (searched[kind].path / "index.faiss").read_bytes()


def test_an_index_over_other_vectors_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other", unit_vectors(50, D), "flat")
    write(tmp_path / "dense", unit_vectors(60, D), "flat")
    (tmp_path / "other" / "index.faiss").replace(tmp_path / "dense" / "index.faiss")
    with pytest.raises(IndexUnusableError, match="not over these vectors"):
        Vectors(tmp_path / "dense")


def test_the_number_of_vectors_decides_unless_a_kind_is_asked_for() -> None:
    counts = (1, 999_999, 1_000_000, 10_000_000, 20_000_000)
    assert [choose("auto", count, 384) for count in counts] == ["exact", "exact", "ivfsq", "ivfsq", "ivfpq"]
    assert choose("flat", 3, 8) == "flat"
    assert choose("ivfsq", 100, 8) == "exact", "too few to learn lists from"
    assert choose("ivfpq", 20_000, 8) == "ivfpq"
    assert choose("ivfpq", 10, 8) == "exact", "too few to learn codes from"
