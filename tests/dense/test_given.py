"""Vectors that were made elsewhere."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from citerec.errors import BuildError, CiterecError, SourceError
from citerec.files.progress import no_progress
from citerec.records import Paper
from citerec.retrieve.dense import given as given_module
from citerec.retrieve.dense.build import DenseOptions, build_dense, renewal
from citerec.retrieve.dense.kinds import build_faiss
from tests.conftest import ROOT, write_lines
from tests.dense.conftest import StoreOf, build, unit_vectors, write_arrays

D = 24
PAPERS = [Paper(str(number), f"paper {number}") for number in range(100, 160)]
IDS = np.array([int(paper.paper_id) for paper in PAPERS])
GIVEN = unit_vectors(len(IDS), D)


def options(*paths: Path, max_bad: float = 0.05) -> DenseOptions:
    return DenseOptions("any/model", vectors=paths, max_bad=max_bad)


def specter(ids: np.ndarray, vectors: np.ndarray, *, text: bool) -> list[dict[str, object]]:
    return [
        {
            "corpusid": int(number),
            "model": "specter_v2",
            "vector": json.dumps(vector.tolist()) if text else vector.tolist(),
        }
        for number, vector in zip(ids, vectors, strict=True)
    ]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("id_type", ["int64", "int32", "U", "S"])
def test_arrays_of_any_type_in_any_order(tmp_path: Path, store_of: StoreOf, dtype: str, id_type: str) -> None:
    order = np.random.default_rng(1).permutation(len(IDS))
    path = write_arrays(tmp_path / "given", IDS[order].astype(id_type), (GIVEN[order] * 3).astype(dtype))
    vectors = build(tmp_path / "dense", store_of(PAPERS), options(path))
    assert vectors.paper_ids(np.arange(len(vectors))) == [paper.paper_id for paper in PAPERS]
    np.testing.assert_allclose(vectors.values[:].astype(np.float32), GIVEN, atol=2e-3)
    assert vectors.manifest.given
    assert vectors.manifest.identity is None
    assert not (tmp_path / "dense" / "given").exists()


def test_vectors_of_length_one_keep_their_bits(tmp_path: Path, store_of: StoreOf) -> None:
    halves = GIVEN.astype(np.float16)
    vectors = build(tmp_path / "dense", store_of(PAPERS), options(write_arrays(tmp_path / "given", IDS, halves)))
    np.testing.assert_array_equal(vectors.values[:], halves)


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("compress", [True, False])
def test_specter_shards(tmp_path: Path, store_of: StoreOf, text: bool, compress: bool) -> None:
    rows = specter(IDS, 20 * GIVEN, text=text)
    folder = tmp_path / "embeddings-specter_v2"
    write_lines(folder / "a.jsonl", rows[:25], compress=compress)
    write_lines(folder / "b.jsonl", rows[25:], compress=compress)
    vectors = build(tmp_path / "dense", store_of(PAPERS), options(folder))
    np.testing.assert_allclose(vectors.values[:].astype(np.float32), GIVEN, atol=2e-3)


def test_papers_and_vectors_without_each_other_are_counted(tmp_path: Path, store_of: StoreOf) -> None:
    path = write_arrays(tmp_path / "given", IDS, GIVEN)
    store = store_of([*PAPERS[:40], Paper("900", "no vector"), Paper("901", "none either")])
    vectors = build(tmp_path / "dense", store, options(path))
    assert (vectors.manifest.count, vectors.manifest.without_vector) == (40, 2)
    assert vectors.manifest.faults == {"of papers not in the index": 20}
    assert vectors.rows(["900", "100"]).tolist() == [-1, 0]


def test_the_last_vector_of_a_paper_counts(tmp_path: Path, store_of: StoreOf) -> None:
    first = write_arrays(tmp_path / "first", IDS, GIVEN)
    second = write_arrays(tmp_path / "second", IDS[:1], GIVEN[5:6])
    vectors = build(tmp_path / "dense", store_of(PAPERS), options(first, second))
    np.testing.assert_allclose(vectors.values[0].astype(np.float32), GIVEN[5], atol=2e-3)


def test_unusable_vectors_are_counted(tmp_path: Path, store_of: StoreOf) -> None:
    bad = GIVEN.copy()
    bad[0, 3], bad[1], bad[2, 0] = np.nan, 0, np.inf
    path = write_arrays(tmp_path / "given", IDS, bad)
    vectors = build(tmp_path / "dense", store_of(PAPERS), options(path, max_bad=0.1))
    assert vectors.manifest.faults == {"not finite": 2, "zero": 1}
    assert vectors.manifest.without_vector == 3
    with pytest.raises(BuildError, match=r"3 of 60 vectors of .* \(2 not finite, 1 zero\) are bad, more than 0%"):
        build(tmp_path / "strict", store_of(PAPERS), options(path, max_bad=0))


def test_bad_lines_are_counted(tmp_path: Path, store_of: StoreOf) -> None:
    rows: list[object] = [*specter(IDS, GIVEN, text=True)]
    rows[3] = {"corpusid": 103, "vector": None}
    rows[4] = {"corpusid": 104, "vector": "[1, 2"}
    rows[5] = {"corpusid": 105, "vector": [0.1] * (D - 1)}
    rows[6] = {"vector": [0.1] * D}
    rows[7] = [1, 2]
    rows[8] = {"corpusid": 108, "vector": ["a"] * D}
    path = write_lines(tmp_path / "given.jsonl", rows)
    with path.open("ab") as file:
        file.write(b'{"corpusid": 1, "vec')
    vectors = build(tmp_path / "dense", store_of(PAPERS), options(path, max_bad=0.5))
    assert vectors.manifest.faults == {f"not of dimension {D}": 1, "unreadable": 6}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((IDS[:-1], GIVEN), "ids.npy"),
        ((IDS, GIVEN.astype(np.int32)), "int32"),
        ((IDS, GIVEN[0]), "ids.npy"),
        ((IDS + 1000, GIVEN), "belongs to a paper"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, store_of: StoreOf, arrays: tuple[np.ndarray, np.ndarray], message: str
) -> None:
    path = write_arrays(tmp_path / "given", *arrays)
    with pytest.raises(SourceError, match=message):
        build(tmp_path / "dense", store_of(PAPERS), options(path))


def test_pickles_and_missing_files_are_refused(tmp_path: Path, store_of: StoreOf) -> None:
    path = write_arrays(tmp_path / "given", np.array(["a", 1], dtype=object), GIVEN[:2])
    for wrong in (path, tmp_path / "missing", write_lines(tmp_path / "empty.jsonl", [])):
        with pytest.raises(CiterecError) as raised:
            build(tmp_path / "dense", store_of(PAPERS), options(wrong))
        assert raised.value.remedy


def test_a_stopped_import_goes_on(tmp_path: Path, store_of: StoreOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_module, "_BATCH", 8)
    monkeypatch.setattr(given_module, "_COMMIT_BATCHES", 1)
    folder = tmp_path / "given"
    for part in range(3):
        rows = slice(part * 20, part * 20 + 20)
        write_lines(folder / f"{part}.jsonl", specter(IDS[rows], GIVEN[rows], text=True))
    store = store_of(PAPERS)
    whole = build(tmp_path / "whole", store, options(folder))
    told: list[str] = []

    def stop(doing: str, _done: float, _whole: float) -> None:
        told.append(doing)
        if told.count("taking vectors") in (2, 5, 7) and doing == "taking vectors":
            raise KeyboardInterrupt
        if told.count("arranging") == 3 and doing == "arranging":
            raise KeyboardInterrupt

    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            build_dense(tmp_path / "dense", store, store.fingerprint(), 60, options(folder), on_progress=stop)
        assert not (tmp_path / "dense" / "manifest.json").exists()
    build(tmp_path / "dense", store, options(folder))
    for name in ("ids.npy", "vectors.npy", "index.faiss", "manifest.json"):
        assert (tmp_path / "dense" / name).read_bytes() == (whole.path / name).read_bytes()


def test_given_vectors_stay_with_their_papers(tmp_path: Path, store_of: StoreOf) -> None:
    old = build(tmp_path / "old", store_of(PAPERS), options(write_arrays(tmp_path / "given", IDS, GIVEN)))
    store = store_of([*PAPERS[1:], Paper("900", "new")])
    new = build(tmp_path / "new", store, renewal(tmp_path / "old"), previous=tmp_path / "old")
    np.testing.assert_array_equal(new.values[:], old.values[1:])
    assert new.manifest.without_vector == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


_ENCODING = """
import sys
from pathlib import Path
from citerec.corpus.sqlite_store import SqliteStore
from citerec.errors import BuildError
from citerec.files.progress import no_progress
from citerec.retrieve.dense.build import DenseOptions, build_dense

store, folder, given = SqliteStore(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])
try:
    build_dense(folder, store, "print", store.counts().papers, DenseOptions("m", (given,)), on_progress=no_progress)
except BuildError as error:
    sys.exit(str(error))
"""


def test_a_full_disk_is_told_before_a_mapped_file_kills_the_process(
    small_disk: Path, tmp_path: Path, store_of: StoreOf
) -> None:
    store_of([Paper(f"{number:03}", "title") for number in range(240)]).close()
    ids = np.array([f"{number:03}" for number in range(240)])
    given = write_arrays(tmp_path / "given", ids, unit_vectors(240, 4096).astype(np.float16))
    command = [sys.executable, "-c", _ENCODING, tmp_path / "store-0.sqlite", small_disk / "dense", given]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 1, ended
    assert f"no space left for {small_disk}/dense/given/rows.npy, which needs 1,966,080 bytes" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (small_disk / "dense" / "given" / "rows.npy").exists()


def test_a_full_disk_is_told_when_faiss_writes(small_disk: Path) -> None:
    np.save(small_disk / "vectors.npy", unit_vectors(240, 1200).astype(np.float16))
    with pytest.raises(BuildError, match=r"FAISS cannot write .*index\.faiss"):
        build_faiss(small_disk, "flat", no_progress)
