"""The kinds of FAISS index: which one, how much it finds, and that it is mapped."""

from pathlib import Path

import numpy as np
import pytest

from citerec.files.progress import no_progress
from citerec.retrieve.dense.files import ArrayWriter
from citerec.retrieve.dense.kinds import (
    RECALL,
    Asked,
    build_faiss,
    choose,
    faiss_module,
    nearest,
    noisy,
    open_faiss,
    recall_at,
)
from tests.dense.conftest import unit_vectors

KINDS: tuple[Asked, ...] = ("flat", "ivfsq", "ivfpq", "hnsw")


def write(folder: Path, count: int, dimension: int = 32) -> np.ndarray:
    folder.mkdir(exist_ok=True)
    vectors = unit_vectors(count, dimension).astype(np.float16)
    with ArrayWriter(folder / "vectors.npy", "<f2", (dimension,)) as writer:
        writer.append(vectors)
    return vectors


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_the_recall_of_exact_search(tmp_path: Path, kind: Asked) -> None:
    vectors = write(tmp_path, 12_000)
    settings = build_faiss(tmp_path, kind, no_progress)
    assert settings.kind == settings.asked == kind
    assert settings.recall >= RECALL
    queries = noisy(vectors, 100, seed=5)
    exact = nearest(vectors, queries, 100, no_progress)
    brute = np.argsort(-(queries @ vectors.astype(np.float32).T), axis=1, kind="stable")[:, :100]
    assert np.mean([len(np.intersect1d(*pair)) for pair in zip(exact, brute, strict=True)]) > 99
    found = recall_at(open_faiss(tmp_path), settings.kind, settings.probe, vectors, queries, exact)
    assert found == pytest.approx(settings.recall, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 40, 300])
def test_few_vectors_are_searched_too(tmp_path: Path, kind: Asked, count: int) -> None:
    write(tmp_path, count)
    assert build_faiss(tmp_path, kind, no_progress).recall >= RECALL


@pytest.mark.parametrize("kind", ["flat", "ivfsq", "ivfpq"])
def test_equal_vectors_make_equal_bytes(tmp_path: Path, kind: Asked) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, 10_000)
        build_faiss(tmp_path / name, kind, no_progress)
    assert (tmp_path / "one" / "index.faiss").read_bytes() == (tmp_path / "two" / "index.faiss").read_bytes()


@pytest.mark.parametrize(("kind", "threads"), [("hnsw", (1, 1)), ("ivfsq", (1, 2))])
def test_how_many_threads_make_equal_bytes(tmp_path: Path, kind: Asked, threads: tuple[int, int]) -> None:
    faiss = faiss_module()
    before = faiss.omp_get_max_threads()
    try:
        for name, number in zip(("one", "two"), threads, strict=True):
            faiss.omp_set_num_threads(number)
            write(tmp_path / name, 2000)
            build_faiss(tmp_path / name, kind, no_progress)
    finally:
        faiss.omp_set_num_threads(before)
    assert (tmp_path / "one" / "index.faiss").read_bytes() == (tmp_path / "two" / "index.faiss").read_bytes()


def test_eight_bits_serve_vectors_in_which_one_number_is_far_larger(tmp_path: Path) -> None:
    vectors = unit_vectors(12_000, 32)
    vectors[:, 5] *= 10
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with ArrayWriter(tmp_path / "vectors.npy", "<f2", (32,)) as writer:
        writer.append(vectors)
    settings = build_faiss(tmp_path, "ivfsq", no_progress)
    assert settings.recall >= RECALL
    assert settings.probe < settings.build["lists"]
    assert (tmp_path / "index.faiss").stat().st_size < 0.8 * (tmp_path / "vectors.npy").stat().st_size


@pytest.mark.parametrize("kind", KINDS)
def test_the_index_is_mapped_not_read(tmp_path: Path, kind: Asked) -> None:
    write(tmp_path, 10_000)
    build_faiss(tmp_path, kind, no_progress)
    path = str(tmp_path / "index.faiss")
    index = open_faiss(tmp_path)
    assert index.ntotal == 10_000
    assert path in Path("/proc/self/maps").read_text()
    del index
    assert path not in Path("/proc/self/maps").read_text()


def test_the_number_of_vectors_decides_unless_a_kind_is_asked_for() -> None:
    counts = (1, 130_000, 131_000, 10_000_000, 20_000_000)
    assert [choose("auto", count, 384) for count in counts] == ["flat", "flat", "ivfsq", "ivfsq", "ivfpq"]
    assert choose("auto", 100_000, 768) == "ivfsq"
    assert choose("ivfsq", 100, 8) == "flat", "too few to learn lists from"
    assert choose("ivfpq", 20_000, 8) == "ivfpq"
    assert choose("ivfpq", 10, 8) == "flat", "too few to learn codes from"
