"""The dense retriever under every filter, and the vectors of topics."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, IndexUnusableError, QueryError
from citerec.index.manifest import generation_of
from citerec.index.vectors import DenseOptions, choose
from citerec.models.encoder import Encoder
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.dense import DenseRetriever, DenseSettings
from tests.dense.conftest import WORDS, build, papers_of, rows_of, unit_vectors, vectors_of, write_arrays
from tests.tiny_models import write_tiny_scibert

D = 16
COUNT = 10_000  # enough for IVF-PQ to learn from


CORPUS = [
    Paper(
        f"p{number}",
        f"title {number}",
        year=None if number % 11 == 0 else 1990 + number * 7 % 31,
        venue=f"Letters on {WORDS[number % 10]}",
        fields_of_study=(f"Field {number % 7}",),
        citation_count=None if number % 7 == 0 else number % 60,
    )
    for number in range(COUNT)
]
VECTORS = unit_vectors(COUNT, D, seed=2).astype(np.float16)
VECTORS[-60:] = VECTORS[0]  # papers of one text


def opened(index: Path, chosen: DenseSettings | None = None) -> DenseRetriever:
    return DenseRetriever.open(OpenIndex.open(index), chosen or DenseSettings())


@pytest.fixture(scope="module", params=["exact", "flat", "ivfsq", "ivfpq", "hnsw"])
def retriever(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DenseRetriever]:
    """The corpus under each kind of search; the last but 60 has no vector."""
    folder = tmp_path_factory.mktemp(request.param)
    has = np.arange(COUNT) != COUNT - 61
    path = write_arrays(folder / "given", np.array([paper.paper_id for paper in CORPUS])[has], VECTORS[has])
    build(folder / "index", CORPUS, DenseOptions("none", vectors=(path,), kind=request.param))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("citerec.index.vectors._FEW", 500)  # so that FAISS answers at this size, too
        yield opened(folder / "index")


def passes(paper: Paper, filters: Filters) -> bool:
    """What docs/ says of each filter."""
    year, count = paper.year, paper.citation_count
    return (
        paper.paper_id not in (*filters.exclude, *filters.citing_ids)
        and (filters.as_of_year is None or year is None or year <= filters.as_of_year)
        and (filters.year_from is None or (year is not None and year >= filters.year_from))
        and (filters.year_to is None or (year is not None and year <= filters.year_to))
        and (filters.min_citations is None or (count is not None and count >= filters.min_citations))
        and (not filters.fields or bool({*filters.fields} & {*paper.fields_of_study}))
        and (not filters.venues or any(venue in (paper.venue or "") for venue in filters.venues))
    )


years = st.one_of(st.none(), st.integers(1988, 2022))
ids = st.sampled_from([paper.paper_id for paper in CORPUS[:50]])
some_filters = st.builds(
    Filters,
    year_from=years,
    year_to=years,
    as_of_year=years,
    min_citations=st.one_of(st.none(), st.integers(0, 61)),
    fields=st.sampled_from([(), ("Field 1",), ("Field 2", "Field 6")]),
    venues=st.sampled_from([(), (f"Letters on {WORDS[2]}",), (WORDS[1], WORDS[7])]),
    exclude=st.lists(ids, max_size=8).map(tuple),
    citing_ids=st.lists(ids, max_size=2).map(tuple),
)


@settings(max_examples=60)
@given(filters=some_filters, near=st.integers(0, 49), k=st.integers(1, 100))
def test_the_nearest_that_pass_are_found(retriever: DenseRetriever, filters: Filters, near: int, k: int) -> None:
    vector = VECTORS[near].astype(np.float32)
    found = retriever.search(Topic("x"), k, filters, vector)
    cosines = VECTORS.astype(np.float64) @ VECTORS[near].astype(np.float64)
    right = {
        paper.paper_id: cosine
        for at, (paper, cosine) in enumerate(zip(CORPUS, cosines.tolist(), strict=True))
        if at != COUNT - 61 and passes(paper, filters)
    }
    assert len(found) == min(k, len(right)), "as many as there are"
    assert [hit.score for hit in found] == pytest.approx([right[hit.paper_id] for hit in found], abs=2e-6)
    assert found.pairs() == sorted(found.pairs(), key=lambda pair: (-pair[1], pair[0]))
    best = sorted(right.values(), reverse=True)[:k]
    least = {"exact": 1, "flat": 1}.get(retriever.manifest.kind_of_search, 0.8)
    assert sum(hit.score >= best[-1] - 2e-6 for hit in found) >= least * len(found)


def test_scores_are_cosines_and_ties_break_by_id(retriever: DenseRetriever) -> None:
    vector = VECTORS[0].astype(np.float32)
    hits = retriever.search(Topic("x"), 61, NO_FILTERS, vector)
    assert hits.paper_ids() == sorted(["p0", *(f"p{number}" for number in range(COUNT - 60, COUNT))])
    assert retriever.scored(vector, hits.rows).tolist() == hits.scores.tolist()
    assert hits[0].signals == {"dense": hits[0].score}
    without = retriever.papers.rows([f"p{COUNT - 61}"])
    assert np.isnan(retriever.scored(vector, without)).all()
    assert not retriever.vectors.of(np.append(without, -1))[0].any()
    assert len(retriever.search(Topic("x"), COUNT, NO_FILTERS, vector)) == COUNT - 1
    with pytest.raises(FilterError):
        retriever.search(Topic("x"), 0)
    with pytest.raises(QueryError):
        retriever.search(Topic(""), 5)


def test_of_more_equal_vectors_than_are_compared_again_the_first_come_first(tmp_path: Path) -> None:
    values = unit_vectors(3000, D)
    values[500:2500] = values[500]
    papers = [Paper(f"p{number:04}", "x") for number in range(3000)]
    path = write_arrays(tmp_path / "given", np.array([paper.paper_id for paper in papers]), values)
    rows, scores = build(tmp_path / "index", papers, DenseOptions("none", vectors=(path,))).nearest(values[500], 10)
    assert rows.tolist() == list(range(500, 510))
    assert len(set(scores)) == 1


def test_the_number_of_vectors_decides_unless_a_kind_is_asked_for() -> None:
    counts = (1, 999_999, 1_000_000, 10_000_000, 20_000_000)
    assert [choose("auto", count, 384) for count in counts] == ["exact", "exact", "ivfsq", "ivfsq", "ivfpq"]
    assert choose("flat", 3, 8) == "flat"
    assert choose("ivfsq", 100, 8) == choose("ivfpq", 10, 8) == "exact", "too few to learn from"


TEXTS = papers_of(60)
QUERIES = [Topic(f"{paper.title} again", "graph kernel", "", paper.paper_id) for paper in TEXTS[:20]]


@pytest.fixture
def encoded_index(tmp_path: Path, model: str) -> Path:
    build(tmp_path / "index", TEXTS, DenseOptions(model, max_tokens=64))
    return tmp_path / "index"


def test_the_query_is_sentence_and_neighbours_and_citing_paper(encoded_index: Path, model: str) -> None:
    encoder = Encoder.open(model, max_tokens=64)
    known, unknown = QUERIES[0], replace(QUERIES[1], citing_id="nobody", citing_title="dense corpus")
    plain = replace(QUERIES[2], citing_id=None)
    vectors = opened(encoded_index, DenseSettings(citing=0.5)).prepare([known, unknown, plain])
    (row,) = rows_of(encoded_index, [TEXTS[0].paper_id])
    own = vectors_of(encoded_index).values[row].astype(np.float32)
    sentence = encoder.encode([query.passage for query in (known, unknown, plain)])
    expected = sentence + 0.5 * np.stack([own, encoder.encode(["dense corpus"])[0], np.zeros_like(own)])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    alone = opened(encoded_index, DenseSettings(citing=0, neighbours=False))
    np.testing.assert_allclose(alone.prepare([known]), encoder.encode([known.text]), atol=1e-5)


def test_the_query_moves_towards_what_the_draft_cites_nearby(encoded_index: Path) -> None:
    plain = replace(QUERIES[0], cited_before=())
    papers = [paper.paper_id for paper in TEXTS[5:12]]
    drafted = replace(plain, cited_before=(*papers, papers[0], "a paper that the index lacks"))
    unmoved = replace(plain, cited_before=("a paper that the index lacks",))
    sentence = opened(encoded_index, DenseSettings(cited=0)).prepare([drafted])[0]
    vectors = opened(encoded_index, DenseSettings(cited=0.25)).prepare([plain, drafted, unmoved])
    np.testing.assert_allclose(vectors[[0, 2]], [sentence, sentence], atol=1e-6)
    cited = vectors_of(encoded_index).values[rows_of(encoded_index, papers)].astype(np.float32)
    mean = cited[np.argsort(-(cited @ sentence))[:3]].mean(axis=0)
    expected = sentence + 0.25 * mean / np.linalg.norm(mean)
    np.testing.assert_allclose(vectors[1], expected / np.linalg.norm(expected), atol=1e-5)


def test_another_model_under_the_name_is_refused(encoded_index: Path, tmp_path: Path, model: str) -> None:
    wide = str(write_tiny_scibert(tmp_path / "wide", ["graph kernel"], hidden=48))
    path = write_arrays(tmp_path / "given", np.array([paper.paper_id for paper in TEXTS]), unit_vectors(60, D))
    build(tmp_path / "other", TEXTS, DenseOptions(wide, vectors=(path,)))
    with pytest.raises(IndexUnusableError, match="dimension 48"):
        opened(tmp_path / "other").search(QUERIES[0], 3)
    manifest = generation_of(encoded_index) / "dense" / "manifest.json"
    other = write_tiny_scibert(tmp_path / "same-size", ["citation entity"])
    manifest.write_text(manifest.read_text().replace(model, str(other)))
    with pytest.raises(IndexUnusableError, match="no longer the model"):
        opened(encoded_index).search(QUERIES[0], 3)
