"""Vectors made here: whole, resumable, nothing encoded twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from citerec.errors import ModelError, SourceError
from citerec.models.encoder import Encoder
from citerec.records import Paper
from citerec.retrieve.dense import encode as encode_module
from citerec.retrieve.dense.build import DenseOptions, build_dense, renewal
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.listing import text_digest
from citerec.retrieve.dense.manifest import FILES
from tests.dense.conftest import StoreOf, build, papers_of


class StoppedError(Exception):
    """What a test stops a build with."""


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were encoded."""
    texts: list[str] = []
    before = Encoder.encode

    def encode(self: Encoder, given: list[str]) -> object:
        texts.extend(given)
        return before(self, given)

    monkeypatch.setattr(Encoder, "encode", encode)
    return texts


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (*FILES, "manifest.json")}


def test_every_paper_with_a_text_has_a_row_in_order_of_id(tmp_path: Path, store_of: StoreOf, model: str) -> None:
    papers = [*papers_of(50), Paper("empty")]
    vectors = build(tmp_path / "dense", store_of(papers), DenseOptions(model, max_tokens=64))
    by_id = {paper.paper_id: paper for paper in papers if paper.title}
    ids = vectors.paper_ids(np.arange(len(vectors)))
    assert ids == sorted(by_id, key=str.encode)
    assert vectors.manifest.count == 50
    assert vectors.manifest.without_vector == 1
    texts = [f"{by_id[i].title}. {by_id[i].abstract}" if by_id[i].abstract else by_id[i].title for i in ids]
    encoder = Encoder.open(model, max_tokens=64)
    np.testing.assert_allclose(vectors.values[:].astype(np.float32), encoder.encode(texts), atol=2e-3)
    assert vectors.digests.tolist() == [text_digest(text) for text in texts]
    assert vectors.years.tolist() == [-1 if by_id[i].year is None else by_id[i].year for i in ids]
    assert vectors.citations.tolist() == [
        -1 if by_id[i].citation_count is None else by_id[i].citation_count for i in ids
    ]
    assert isinstance(vectors.values.base, np.memmap)
    assert vectors.rows(["nobody", ids[7], "x" * 600, ids[0]]).tolist() == [-1, 7, -1, 0]


def test_a_stopped_build_goes_on_with_equal_bytes(
    tmp_path: Path, store_of: StoreOf, model: str, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_module, "_PART", 16)
    store, options = store_of(papers_of(90)), DenseOptions(model)
    build(tmp_path / "whole", store, options)
    assert len(encoded) == 90
    encoded.clear()

    def stop(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding" and done >= 48:
            raise StoppedError

    with pytest.raises(StoppedError):
        build_dense(tmp_path / "dense", store, store.fingerprint(), 90, options, on_progress=stop)
    assert len(encoded) == 48
    assert not (tmp_path / "dense" / "manifest.json").exists()
    build(tmp_path / "dense", store, options)
    assert len(encoded) == 48 + 90 - 48, "three parts of 16 were kept"
    assert files(tmp_path / "dense") == files(tmp_path / "whole")


@pytest.mark.parametrize("stage", ["listing papers", "building flat"])
def test_it_goes_on_from_any_stage(
    tmp_path: Path, store_of: StoreOf, model: str, encoded: list[str], monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setattr("citerec.retrieve.dense.listing._PART", 10)
    store, options = store_of(papers_of(40)), DenseOptions(model)

    def stop(doing: str, _done: float, _whole: float) -> None:
        if doing == stage:
            raise StoppedError

    with pytest.raises(StoppedError):
        build_dense(tmp_path / "dense", store, store.fingerprint(), 40, options, on_progress=stop)
    assert len(build(tmp_path / "dense", store, options)) == 40
    assert len(encoded) == 40


def test_another_plan_begins_anew(tmp_path: Path, store_of: StoreOf, model: str, encoded: list[str]) -> None:
    store = store_of(papers_of(20))
    build(tmp_path / "dense", store, DenseOptions(model))
    build(tmp_path / "dense", store, DenseOptions(model))
    assert len(encoded) == 20, "the same plan was done"
    assert build(tmp_path / "dense", store, DenseOptions(model, max_tokens=16)).manifest.max_tokens == 16
    assert len(encoded) == 40


def test_only_what_changed_is_encoded_again(tmp_path: Path, store_of: StoreOf, model: str, encoded: list[str]) -> None:
    papers = papers_of(40)
    old = build(tmp_path / "old", store_of(papers), DenseOptions(model))
    encoded.clear()
    changed = [replace(papers[3], title="another title"), *papers[4:], Paper("new", "a new paper")]
    new = build(tmp_path / "new", store_of(changed), renewal(tmp_path / "old"), previous=tmp_path / "old")
    assert len(encoded) == 2
    ids = [paper.paper_id for paper in papers[4:]]
    np.testing.assert_array_equal(new.values[new.rows(ids)], old.values[old.rows(ids)])
    assert new.rows([papers[0].paper_id]).tolist() == [-1]


def test_another_model_takes_nothing_over(tmp_path: Path, store_of: StoreOf, model: str, encoded: list[str]) -> None:
    store = store_of(papers_of(10))
    build(tmp_path / "old", store, DenseOptions(model, max_tokens=32))
    build(tmp_path / "new", store, DenseOptions(model, max_tokens=64), previous=tmp_path / "old")
    assert len(encoded) == 20


def test_the_faiss_index_is_kept_where_no_vector_changed(tmp_path: Path, store_of: StoreOf, model: str) -> None:
    papers = papers_of(30)
    build(tmp_path / "old", store_of(papers), DenseOptions(model))
    later = [replace(paper, citation_count=99) for paper in papers]
    new = build(tmp_path / "new", store_of(later), DenseOptions(model), previous=tmp_path / "old")
    assert (tmp_path / "new" / "index.faiss").stat().st_ino == (tmp_path / "old" / "index.faiss").stat().st_ino
    assert set(new.citations.tolist()) == {99}


def test_what_cannot_be_built_is_said(tmp_path: Path, store_of: StoreOf, model: str) -> None:
    store = store_of([Paper("empty")])
    with pytest.raises(SourceError, match="no paper has a text"):
        build(tmp_path / "dense", store, DenseOptions(model))
    with pytest.raises(ModelError):
        build(tmp_path / "dense", store, DenseOptions(str(tmp_path / "no model")))


def test_an_array_is_cut_where_it_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "array.npy"
    with ArrayWriter(path, "<f2", (3,)) as writer:
        writer.append(np.ones((5, 3)))
    with ArrayWriter(path, "<f2", (3,), rows=2) as writer:
        writer.append(np.zeros((4, 3)))
    assert mapped(path).shape == (6, 3)
    assert mapped(path)[:, 0].tolist() == [1, 1, 0, 0, 0, 0]


def test_progress_is_told_and_changes_nothing(tmp_path: Path, store_of: StoreOf, model: str) -> None:
    told: list[tuple[str, float, float]] = []
    store = store_of(papers_of(40))
    build(tmp_path / "unheard", store, DenseOptions(model))
    build_dense(
        tmp_path / "heard",
        store,
        store.fingerprint(),
        40,
        DenseOptions(model),
        previous=None,
        on_progress=lambda doing, done, whole: told.append((doing, done, whole)),
    )
    assert files(tmp_path / "heard") == files(tmp_path / "unheard")
    encoding = [(done, whole) for doing, done, whole in told if doing == "encoding"]
    assert encoding == sorted(encoding)
    assert encoding[-1] == (40, 40)
