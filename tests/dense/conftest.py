"""Papers and a real, tiny encoder for tests of dense retrieval."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import rows_of
from citerec.files.progress import no_progress
from citerec.records import Paper
from citerec.retrieve.dense.build import DenseOptions, build_dense
from citerec.retrieve.dense.vectors import Vectors
from tests.tiny_models import write_tiny_scibert

WORDS = "graph ranking retrieval neural lexical query citation corpus entity passage sparse dense kernel".split()

StoreOf = Callable[[Sequence[Paper]], SqliteStore]


def papers_of(count: int, seed: int = 0) -> list[Paper]:
    """Papers with ids that are not in order, some without abstract, year or count."""
    random = np.random.default_rng(seed)
    return [
        Paper(
            paper_id=f"p{number * 7919 % 10_007}" if number % 5 else f"é{number}",
            title=" ".join(random.choice(WORDS, 5)),
            abstract=" ".join(random.choice(WORDS, int(random.integers(5, 40)))) if number % 3 else None,
            year=int(random.integers(1990, 2020)) if number % 4 else None,
            citation_count=int(random.integers(0, 50)) if number % 6 else None,
        )
        for number in range(count)
    ]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_scibert(tmp_path_factory.mktemp("models") / "tiny", [" ".join(WORDS)]))


@pytest.fixture
def store_of(tmp_path: Path) -> StoreOf:
    made: list[SqliteStore] = []

    def make(papers: Sequence[Paper]) -> SqliteStore:
        store = SqliteStore(tmp_path / f"store-{len(made)}.sqlite")
        store.write(rows_of(papers))
        made.append(store)
        return store

    return make


def build(folder: Path, store: SqliteStore, options: DenseOptions, previous: Path | None = None) -> Vectors:
    build_dense(
        folder,
        store,
        store.fingerprint(),
        store.counts().papers,
        options,
        previous=previous,
        on_progress=no_progress,
    )
    return Vectors(folder)


def write_arrays(folder: Path, ids: NDArray[np.generic], vectors: NDArray[np.floating]) -> Path:
    folder.mkdir(parents=True)
    np.save(folder / "ids.npy", ids)
    np.save(folder / "vectors.npy", vectors)
    return folder


def unit_vectors(count: int, dimension: int, seed: int = 0, groups: int = 40) -> NDArray[np.float32]:
    """Vectors in groups, as those of texts are."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((groups, dimension))
    vectors = centres[random.integers(0, groups, count)] + 0.7 * random.standard_normal((count, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
