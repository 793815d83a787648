"""Papers and a real, tiny encoder for tests of dense retrieval."""

import contextlib
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from citerec import Index
from citerec.index.columns import PaperRows
from citerec.index.manifest import generation_of
from citerec.index.vectors import DenseOptions, Vectors
from citerec.models.encoder import Encoder
from citerec.records import Paper
from tests.tiny_models import write_tiny_scibert

WORDS = "graph ranking retrieval neural lexical query citation corpus entity passage sparse dense kernel".split()


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
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are encoded."""
    texts: list[str] = []
    encode = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, some: (texts.extend(some), encode(self, some))[1])
    return texts


def build(index: Path, papers: Sequence[Paper], options: DenseOptions) -> Vectors:
    """The vectors of an index that is built, or built again."""
    Index.build(papers, index, dense=options)
    return vectors_of(index)


def vectors_of(index: Path) -> Vectors:
    return Vectors(generation_of(index) / "dense")


def rows_of(index: Path, ids: Sequence[str]) -> NDArray[np.int64]:
    return PaperRows.open(generation_of(index)).rows(ids)


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """The kernel lets no file grow past some size, wherever that is met."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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
