"""Vectors made here: a row for each paper, nothing encoded twice, whatever stops it."""

import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from citerec import Index
from citerec.errors import InputError, ModelError
from citerec.files.parallel import HERE, Parallelism, Ray
from citerec.files.progress import Progress, no_progress
from citerec.index.build import encode_index
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import Encoder
from citerec.records import Paper
from tests.dense.conftest import WORDS, build, papers_of, rows_of, vectors_of
from tests.tiny_models import write_tiny_static


def test_every_paper_has_a_row_in_order_of_id(tmp_path: Path, model: str, encoded: list[str]) -> None:
    papers = sorted(papers_of(50), key=lambda paper: paper.paper_id.encode())
    vectors = build(tmp_path / "index", papers, DenseOptions(model, max_tokens=64))
    assert rows_of(tmp_path / "index", [paper.paper_id for paper in papers]).tolist() == list(range(50))
    assert (vectors.manifest.count, vectors.manifest.without_vector) == (50, 0)
    texts = [f"{one.title}. {one.abstract}" if one.abstract else one.title for one in papers]
    made = Encoder.open(model, max_tokens=64).encode(texts)
    np.testing.assert_allclose(vectors.values.astype(np.float32), made, atol=2e-3)
    encoded.clear()
    values = build(tmp_path / "equal", [Paper(str(n), f"title {n % 2}") for n in range(10)], DenseOptions(model)).values
    assert sorted(encoded) == ["title 0", "title 1"], "equal texts are encoded once"
    np.testing.assert_array_equal(values[::2], np.tile(values[0], (5, 1)))
    with pytest.raises(ModelError):
        build(tmp_path / "none", papers[:3], DenseOptions(str(tmp_path / "no model")))
    assert not (tmp_path / "none" / "CURRENT").exists()


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


def test_papers_get_vectors_unasked_by_the_best_encoder_that_is_here(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "all-MiniLM-L6-v2" in DenseOptions().for_papers(20_000).model
    assert DenseOptions().for_papers(20_001).model == DenseOptions("citerec-static").for_papers(9).model
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else find_spec(name))
    Index.build(papers_of(40), tmp_path / "index")
    manifest = vectors_of(tmp_path / "index").manifest
    assert (manifest.model, manifest.without_vector) == ("citerec-static", 0)
    assert Index.open(tmp_path / "index").default_system == "hybrid+ltr"
    build(tmp_path / "index", papers_of(40), DenseOptions(model))
    assert Index.build(tmp_path / "index", tmp_path / "copy").default_system == "hybrid+ltr"
    assert vectors_of(tmp_path / "copy").manifest.model == model, "an index brings its own"
    assert Index.build(papers_of(40), tmp_path / "words", dense=None).default_system == "bm25"
    asked = DenseOptions(kind="flat", backend="onnx")
    Index.build(tmp_path / "index", tmp_path / "flat", dense=asked)
    manifest = vectors_of(tmp_path / "flat").manifest
    assert (manifest.asked, manifest.backend) == ("flat", "onnx"), "what is asked for is done"
    with pytest.raises(InputError, match="vectors are given without their model"):
        Index.open(tmp_path / "words").encode(vectors=(tmp_path / "index",))


@pytest.mark.slow
def test_all_executors_write_the_same_bytes_and_go_on_with_what_another_began(
    tmp_path: Path, on_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.index.vectors._PART", 16)
    options = DenseOptions(str(write_tiny_static(tmp_path / "static", [" ".join(WORDS)])))
    Index.build(papers_of(90), tmp_path / "index")

    def encoded_on(name: str, parallelism: Parallelism, on_progress: Progress = no_progress) -> bytes:
        if not (tmp_path / name).exists():
            shutil.copytree(tmp_path / "index", tmp_path / name)
        encode_index(tmp_path / name, options, on_progress, parallelism=parallelism)
        return (vectors_of(tmp_path / name).path / "vectors.npy").read_bytes()

    def stop(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding" and done >= 40:
            raise KeyboardInterrupt

    whole = encoded_on("here", HERE)
    for name, first, second in (("local", HERE, on_ray), ("ray", on_ray, HERE), ("two", 2, HERE)):
        with pytest.raises(KeyboardInterrupt):
            encoded_on(name, first, stop)
        told: list[str] = []
        assert encoded_on(name, second, lambda doing, *_, told=told: told.append(doing)) == whole
        assert told.count("encoding") == 3, f"{name}: of six parts, three were finished, and are not encoded again"
