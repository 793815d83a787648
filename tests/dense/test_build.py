"""Vectors made here: a row for each paper, nothing encoded twice, whatever stops it."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from citerec import Index
from citerec.errors import ModelError
from citerec.index.build import encode_index
from citerec.index.describe import verify
from citerec.index.manifest import generation_of
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import Encoder
from citerec.records import Paper
from tests.dense.conftest import WORDS, build, papers_of, rows_of, vectors_of
from tests.tiny_models import write_tiny_static

PART = 16


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citerec.index.vectors._PART", PART)


def test_every_paper_has_a_row_in_order_of_id(tmp_path: Path, model: str) -> None:
    papers = sorted(papers_of(50), key=lambda paper: paper.paper_id.encode())
    vectors = build(tmp_path / "index", papers, DenseOptions(model, max_tokens=64))
    assert rows_of(tmp_path / "index", [paper.paper_id for paper in papers]).tolist() == list(range(50))
    assert (vectors.manifest.count, vectors.manifest.without_vector) == (50, 0)
    texts = [f"{one.title}. {one.abstract}" if one.abstract else one.title for one in papers]
    made = Encoder.open(model, max_tokens=64).encode(texts)
    np.testing.assert_allclose(vectors.values.astype(np.float32), made, atol=2e-3)
    assert isinstance(vectors.values.base, np.memmap)


@pytest.mark.usefixtures("small_parts")
def test_a_stopped_encoding_goes_on_and_the_old_vectors_stay_until_it_is_done(
    tmp_path: Path, model: str, encoded: list[str]
) -> None:
    index = tmp_path / "index"
    before = build(index, papers_of(90), DenseOptions(model))
    encoded.clear()

    def stop(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding" and done >= 3 * PART:
            raise KeyboardInterrupt

    told: list[tuple[float, float]] = []

    def listen(doing: str, done: float, whole: float) -> None:
        if doing == "encoding":
            told.append((done, whole))

    other = DenseOptions(model, max_tokens=8)
    with pytest.raises(KeyboardInterrupt):
        encode_index(index, other, stop)
    assert len(encoded) == 3 * PART
    np.testing.assert_array_equal(vectors_of(index).values, before.values)
    assert verify(index) == []
    encode_index(index, other, listen)
    assert len(encoded) == 90
    assert told == sorted(told)
    assert told[-1] == (90, 90)
    encode_index(index, other)
    assert len(encoded) == 90, "nothing is left to do"
    assert vectors_of(index).manifest.max_tokens == 8
    whole = build(tmp_path / "whole", papers_of(90), other)
    np.testing.assert_array_equal(vectors_of(index).values, whole.values)


_KILLED = """
import os, signal, sys
from pathlib import Path
from citerec.index.build import encode_index
from citerec.index import vectors as encode
from citerec.index.vectors import DenseOptions

encode._PART = 16

def kill(doing, done, whole):
    if doing == "encoding" and done >= 48:
        os.kill(os.getpid(), signal.SIGKILL)

encode_index(Path(sys.argv[1]), DenseOptions(sys.argv[2]), kill)
"""


@pytest.mark.usefixtures("small_parts")
def test_a_killed_encoding_goes_on_where_it_was(tmp_path: Path, encoded: list[str]) -> None:
    static = str(write_tiny_static(tmp_path / "static", [" ".join(WORDS)]))
    Index.build(papers_of(90), tmp_path / "index")
    command = [sys.executable, "-c", _KILLED, tmp_path / "index", static]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    assert not (generation_of(tmp_path / "index") / "dense").exists()
    encode_index(tmp_path / "index", DenseOptions(static))
    assert len(encoded) == 90 - 3 * PART
    assert vectors_of(tmp_path / "index").manifest.count == 90
    assert verify(tmp_path / "index") == []


def test_only_what_changed_is_encoded_again(tmp_path: Path, model: str, encoded: list[str]) -> None:
    papers, index = papers_of(40), tmp_path / "index"
    old = build(index, papers, DenseOptions(model))
    ids = [paper.paper_id for paper in papers[4:]]
    before = old.values[rows_of(index, ids)]
    encoded.clear()
    opened = Index.open(index)
    changed = replace(papers[3], title="another title")
    opened.add([changed, Paper("new", "a new paper"), replace(papers[5], citation_count=99)])
    assert len(encoded) == 2
    opened.remove([papers[0].paper_id, papers[1].paper_id])
    build(index, [papers[2], changed, *papers[4:], Paper("new", "a new paper")], DenseOptions(model))
    build(index, [changed, *papers[4:]], DenseOptions(model, kind="flat"))
    assert len(encoded) == 2
    np.testing.assert_array_equal(vectors_of(index).values[rows_of(index, ids)], before)
    build(index, [changed, *papers[4:]], DenseOptions(model, max_tokens=16))
    assert len(encoded) == 2 + 37, "a model that reads less of a text makes other vectors"


def test_without_its_model_no_index_is_made(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        build(tmp_path / "index", papers_of(3), DenseOptions(str(tmp_path / "no model")))
    assert not (tmp_path / "index" / "CURRENT").exists()


def test_equal_texts_are_encoded_once(tmp_path: Path, model: str, encoded: list[str]) -> None:
    papers = [Paper(str(number), f"title {number % 2}") for number in range(10)]
    values = build(tmp_path / "index", papers, DenseOptions(model)).values
    assert sorted(encoded) == ["title 0", "title 1"]
    np.testing.assert_array_equal(values[::2], np.tile(values[0], (5, 1)))
