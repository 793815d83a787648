"""HAtten's vectors in an index: made as others are, found exactly, and said what to do if they are missing or old."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from citerec import Context, Recipe, Recommender
from citerec.contexts.provenance import NOTHING
from citerec.contexts.topic import topics_of
from citerec.errors import IndexUnusableError, ModelError, SettingsError
from citerec.files.progress import no_progress
from citerec.index.build import add_to_index
from citerec.index.manifest import generation_of
from citerec.index.vectors import DenseOptions, Vectors
from citerec.papers.diagnostic.hatten import Hatten
from citerec.papers.diagnostic.parts import HattenRetriever
from tests.conftest import Citerec, write_lines
from tests.papers.hatten.conftest import THEMES, words_of
from tests.tiny_hatten import write_tiny_hatten


@pytest.fixture(scope="module")
def index(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted corpus with the vectors of a model that has learnt nothing."""
    folder = tmp_path_factory.mktemp("encoded")
    model = write_tiny_hatten(
        folder / "tiny", [" ".join(words_of(theme, kind)) for theme in range(THEMES) for kind in ("title", "said")]
    )
    shutil.copytree(planted / "index", folder / "index")
    HattenRetriever.encode(folder / "index", DenseOptions(str(model)), no_progress)
    return folder / "index"


def test_the_nearest_papers_are_found_exactly(index: Path) -> None:
    contexts = [
        Context(text=f"{' '.join(words_of(3, 'said'))} <REF>.", context_id="a", citing_id="p4-1"),
        Context(text=f"{words_of(5, 'title')[0]} <REF>.", context_id="b", citing_year=2003),
    ]
    vectors = Vectors(generation_of(index) / "hatten")
    assert vectors.manifest.max_tokens == 512
    with Recommender.open(index, "hatten") as opened:
        assert opened.provenance == NOTHING or opened.provenance.unsaid
        model = Hatten.open(str(index.parent / "tiny" / "model"), device="cpu")
        rows = opened.index.rows
        papers = opened.store.papers(rows.paper_ids(np.arange(len(vectors))))
        made = model.encode_papers(list(papers.values()))
        order = rows.rows(list(papers))
        np.testing.assert_allclose(vectors.values[order], made, atol=2e-3)
        topics = topics_of(contexts, opened.store)
        for (topic, found), query in zip(opened.candidates(topics, 96), model.encode_topics(topics), strict=True):
            cosines = dict(zip(papers, (vectors.values[order].astype(np.float64) @ query).tolist(), strict=True))
            allowed = {
                paper_id: cosine
                for paper_id, cosine in cosines.items()
                if paper_id != topic.citing_id and (papers[paper_id].year or 0) <= (topic.citing_year or 9999)
            }
            assert {one.paper_id for one in found} == set(allowed)
            assert [one.score for one in found] == pytest.approx(sorted(allowed.values(), reverse=True), abs=1e-5)
            assert all(one.signals == {"hatten": one.score} for one in found)


def test_vectors_are_made_by_the_command_and_what_is_there_is_taken_over(
    index: Path, citerec_here: Citerec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(index, here := tmp_path / "index")
    shutil.rmtree(generation_of(here) / "hatten")
    with pytest.raises(SettingsError, match="has no vectors") as raised:
        Recommender.open(here, "hatten")
    assert "--retriever hatten" in raised.value.remedy
    model = index.parent / "tiny" / "model"
    made = citerec_here("index", "encode", here, "--retriever", "hatten", "--model", model)
    assert made.returncode == 0, made.stderr
    assert "96 papers have a vector of 16 numbers" in made.stdout
    again, before = (Vectors(generation_of(one) / "hatten").values for one in (here, index))
    np.testing.assert_array_equal(again, before)
    assert not (generation_of(here) / "dense").exists()

    write_lines(tmp_path / "new.jsonl", [{"paper_id": "new", "title": words_of(0, "title")[0]}])
    add_to_index([tmp_path / "new.jsonl"], here)
    with pytest.raises(IndexUnusableError, match="made for other papers") as old:
        Recommender.open(here, "hatten")
    assert "--retriever hatten" in old.value.remedy
    encoded: list[int] = []
    encode = Hatten.encode_papers
    monkeypatch.setattr(Hatten, "encode_papers", lambda self, some: (encoded.append(len(some)), encode(self, some))[1])
    HattenRetriever.encode(here, DenseOptions(str(model)), no_progress)
    assert encoded == [1]
    with Recommender.open(here, Recipe.load("hatten")) as opened:
        assert opened.search(f"{words_of(0, 'title')[0]} <REF>", 97)


def test_what_cannot_be_used_is_said(index: Path, tmp_path: Path) -> None:
    shutil.copytree(index.parent, here := tmp_path / "here")
    with pytest.raises(SettingsError, match="cannot run on onnx-int8"):
        HattenRetriever.encode(here / "index", DenseOptions("unused", backend="onnx-int8"), no_progress)
    with pytest.raises(ModelError, match="holds no HAtten") as raised:
        HattenRetriever.encode(here / "index", DenseOptions("all-MiniLM-L6-v2"), no_progress)
    assert "citerec train hatten" in raised.value.remedy
