"""The dense retriever against brute force, under every filter and with every kind of index."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, IndexUnusableError, QueryError
from citerec.models.encoder import Encoder
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.dense import retriever as retriever_module
from citerec.retrieve.dense.build import DenseOptions
from citerec.retrieve.dense.kinds import Asked
from citerec.retrieve.dense.retriever import DenseRetriever, DenseSettings
from tests.dense.conftest import StoreOf, build, papers_of, unit_vectors, write_arrays
from tests.tiny_models import write_tiny_scibert

D = 32
COUNT = 10_400  # enough for IVF-PQ to learn from
KINDS: tuple[Asked, ...] = ("flat", "ivfsq", "ivfpq", "hnsw")


def matching(filters: Filters) -> np.ndarray:
    """As if all papers whose id ends so were of that field, or in that venue."""
    return np.flatnonzero(passes(Filters(fields=filters.fields, venues=filters.venues))[IN_ORDER])


def corpus() -> list[Paper]:
    random = np.random.default_rng(3)
    years = [None if number % 11 == 0 else int(random.integers(1990, 2021)) for number in range(COUNT)]
    return [
        Paper(f"p{number}", f"title {number}", year=year, citation_count=None if number % 7 == 0 else number % 60)
        for number, year in enumerate(years)
    ]


CORPUS = corpus()
VECTORS = unit_vectors(COUNT, D, seed=2).astype(np.float16)
VECTORS[-60:] = VECTORS[0]  # papers of one text


@pytest.fixture(scope="module")
def retrievers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DenseRetriever]]:
    from citerec.corpus.sqlite_store import SqliteStore
    from citerec.corpus.store import rows_of

    folder = tmp_path_factory.mktemp("retrievers")
    store = SqliteStore(folder / "store.sqlite")
    store.write(rows_of(CORPUS))
    path = write_arrays(folder / "given", np.array([paper.paper_id for paper in CORPUS]), VECTORS)
    found = {}
    for kind in KINDS:
        build(folder / kind / "dense", store, DenseOptions("none", vectors=(path,), kind=kind))
        found[kind] = DenseRetriever(folder / kind / "dense", None, matching)
    with pytest.MonkeyPatch.context() as patch:
        # So that at this size, too, some filters are answered by way of graph and lists, and others by every row.
        patch.setattr(retriever_module, "_FEW", 500)
        patch.setattr(retriever_module, "_STEP", 5)
        yield found


IDS = np.array([paper.paper_id for paper in CORPUS])
YEARS = np.array([-1 if paper.year is None else paper.year for paper in CORPUS])
COUNTS = np.array([-1 if paper.citation_count is None else paper.citation_count for paper in CORPUS])


IN_ORDER = np.argsort(IDS)


def brute(found: DenseRetriever, vector: np.ndarray, k: int, filters: Filters) -> list[tuple[str, float]]:
    scores = np.empty(COUNT, np.float32)
    scores[IN_ORDER] = found.vectors.scores(vector, np.arange(COUNT))
    np.testing.assert_allclose(scores, VECTORS.astype(np.float64) @ vector.astype(np.float64), atol=1e-6)
    order = np.lexsort((IDS, -scores))
    order = order[passes(filters)[order]][:k]
    return list(zip(IDS[order].tolist(), scores[order].tolist(), strict=True))


def passes(filters: Filters) -> np.ndarray:
    mask = ~np.isin(IDS, [*filters.exclude, *filters.citing_ids])
    if filters.as_of_year is not None:
        mask &= (YEARS == -1) | (filters.as_of_year >= YEARS)
    if filters.year_from is not None:
        mask &= (YEARS != -1) & (filters.year_from <= YEARS)
    if filters.year_to is not None:
        mask &= (YEARS != -1) & (filters.year_to >= YEARS)
    if filters.min_citations is not None:
        mask &= (COUNTS != -1) & (filters.min_citations <= COUNTS)
    for endings in (filters.fields, filters.venues):
        if endings:
            mask &= np.any([np.char.endswith(IDS, ending) for ending in endings], axis=0)
    return mask


years = st.one_of(st.none(), st.integers(1988, 2022))
ids = st.sampled_from([paper.paper_id for paper in CORPUS[:50]])
some_filters = st.builds(
    Filters,
    year_from=years,
    year_to=years,
    as_of_year=years,
    min_citations=st.one_of(st.none(), st.integers(0, 61)),
    fields=st.sampled_from([(), ("1",), ("22", "7")]),
    venues=st.sampled_from([(), ("2",), ("17",)]),
    exclude=st.lists(ids, max_size=8).map(tuple),
    citing_ids=st.lists(ids, max_size=2).map(tuple),
)


@settings(max_examples=60)
@given(some_filters, st.integers(0, 49), st.integers(1, 150))
def test_flat_finds_what_brute_force_finds(
    retrievers: dict[str, DenseRetriever], filters: Filters, near: int, k: int
) -> None:
    vector = VECTORS[near].astype(np.float32)
    found = retrievers["flat"].search(Topic("x"), k, filters, vector)
    assert found.pairs() == brute(retrievers["flat"], vector, k, filters)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(filters=some_filters, near=st.integers(0, 49), k=st.integers(1, 150))
def test_every_kind_honours_every_filter(
    retrievers: dict[str, DenseRetriever], kind: str, filters: Filters, near: int, k: int
) -> None:
    vector = VECTORS[near].astype(np.float32)
    right = brute(retrievers["flat"], vector, len(CORPUS), filters)
    found = retrievers[kind].search(Topic("x"), k, filters, vector)
    assert len(found) == min(k, len(right)), "as many as there are"
    scores = dict(right)
    assert all(scores[hit.paper_id] == hit.score for hit in found), "only what passes, at its exact score"
    assert [hit.paper_id for hit in found] == [
        hit.paper_id for hit in sorted(found, key=lambda hit: (-hit.score, hit.paper_id))
    ]
    nearest = {paper_id for paper_id, score in right if score >= right[min(k, len(right)) - 1][1]}
    assert sum(hit.paper_id in nearest for hit in found) >= 0.8 * len(found)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_cosines(retrievers: dict[str, DenseRetriever], kind: str) -> None:
    vector = VECTORS[7].astype(np.float32)
    found = retrievers[kind].search(Topic("x"), 30, NO_FILTERS, vector)
    assert retrievers[kind].scored(vector, found.rows).tolist() == found.scores.tolist()
    assert found[0].signals == {"dense": found[0].score}
    assert retrievers[kind].explain(Topic("x"), found[0]) == ()


def test_ties_break_by_id(retrievers: dict[str, DenseRetriever]) -> None:
    vector = VECTORS[0].astype(np.float32)
    found = [hit.paper_id for hit in retrievers["flat"].search(Topic("x"), 61, NO_FILTERS, vector)]
    assert found == sorted(["p0", *(f"p{number}" for number in range(COUNT - 60, COUNT))])


def test_k_and_blank_queries(retrievers: dict[str, DenseRetriever]) -> None:
    with pytest.raises(FilterError):
        retrievers["flat"].search(Topic("x"), 0)
    with pytest.raises(QueryError):
        retrievers["flat"].search(Topic(""), 5)
    everything = retrievers["flat"].search(Topic("x"), COUNT, NO_FILTERS, VECTORS[0].astype(np.float32))
    assert len(everything) == COUNT


TEXTS = papers_of(60)
QUERIES = [Topic(f"{paper.title} again", "graph kernel", "", paper.paper_id) for paper in TEXTS[:20]]


@pytest.fixture
def encoded(tmp_path: Path, store_of: StoreOf, model: str) -> Path:
    build(tmp_path / "index" / "dense", store_of(TEXTS), DenseOptions(model, max_tokens=64))
    return tmp_path / "index" / "dense"


def test_the_query_is_sentence_and_neighbours_and_citing_paper(encoded: Path, model: str) -> None:
    encoder = Encoder.open(model, max_tokens=64)
    known, unknown = QUERIES[0], replace(QUERIES[1], citing_id="nobody", citing_title="dense corpus")
    plain = replace(QUERIES[2], citing_id=None)
    retriever = DenseRetriever(encoded, DenseSettings(citing=0.5), matching)
    vectors = retriever.prepare([known, unknown, plain])
    own = retriever.vectors.values[retriever.vectors.rows([TEXTS[0].paper_id])[0]].astype(np.float32)
    sentence = encoder.encode([query.passage for query in (known, unknown, plain)])
    expected = sentence + 0.5 * np.stack([own, encoder.encode(["dense corpus"])[0], np.zeros_like(own)])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    alone = DenseRetriever(encoded, DenseSettings(citing=0, neighbours=False), matching)
    np.testing.assert_allclose(alone.prepare([known]), encoder.encode([known.text]), atol=1e-5)


def test_the_query_moves_towards_what_the_draft_cites_nearby(encoded: Path) -> None:
    plain = replace(QUERIES[0], cited_before=())
    papers = [paper.paper_id for paper in TEXTS[5:12]]
    drafted = replace(plain, cited_before=(*papers, papers[0], "a paper that the index lacks"))
    unmoved = replace(plain, cited_before=("a paper that the index lacks",))
    retriever = DenseRetriever(encoded, DenseSettings(cited=0.25), matching)
    sentence = DenseRetriever(encoded, DenseSettings(cited=0), matching).prepare([drafted])[0]
    vectors = retriever.prepare([plain, drafted, unmoved])
    np.testing.assert_allclose(vectors[[0, 2]], [sentence, sentence], atol=1e-6)
    cited = retriever.vectors.values[retriever.vectors.rows(papers)].astype(np.float32)
    mean = cited[np.argsort(-(cited @ sentence))[:3]].mean(axis=0)
    expected = sentence + 0.25 * mean / np.linalg.norm(mean)
    np.testing.assert_allclose(vectors[1], expected / np.linalg.norm(expected), atol=1e-5)


def test_another_model_under_the_name_is_refused(encoded: Path, tmp_path: Path, model: str, store_of: StoreOf) -> None:
    wide = str(write_tiny_scibert(tmp_path / "wide", ["graph kernel"], hidden=48))
    path = write_arrays(tmp_path / "given", np.array([paper.paper_id for paper in TEXTS]), unit_vectors(60, D))
    build(tmp_path / "other" / "dense", store_of(TEXTS), DenseOptions(wide, vectors=(path,)))
    with pytest.raises(IndexUnusableError, match="dimension 48"):
        DenseRetriever(tmp_path / "other" / "dense", None, matching).search(QUERIES[0], 3)
    manifest = encoded / "manifest.json"
    other = write_tiny_scibert(tmp_path / "same-size", ["citation entity"])
    manifest.write_text(manifest.read_text().replace(model, str(other)))
    with pytest.raises(IndexUnusableError, match="no longer the model"):
        DenseRetriever(encoded, None, matching).search(QUERIES[0], 3)


@pytest.mark.parametrize("name", ["manifest.json", "ids.npy", "vectors.npy", "index.faiss", "years.npy"])
@pytest.mark.parametrize("damage", ["missing", "short"])
def test_damage_is_one_clear_error(encoded: Path, name: str, damage: str) -> None:
    path = encoded / name
    content = path.read_bytes()
    path.unlink()
    if damage == "short":
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(IndexUnusableError) as raised:
        DenseRetriever(encoded, None, matching)
    assert "citerec index encode" in raised.value.remedy


def test_rows_of_another_count_are_refused(encoded: Path) -> None:
    years = np.load(encoded / "years.npy")
    np.save(encoded / "years.npy", years[:-1])
    with pytest.raises(IndexUnusableError, match="damaged"):
        DenseRetriever(encoded, None, matching)


def test_what_passes_is_kept(retrievers: dict[str, DenseRetriever], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = itertools.count()
    retriever = DenseRetriever(
        retrievers["flat"].vectors.path, None, lambda filters: (next(asked), matching(filters))[1]
    )
    vector = VECTORS[0].astype(np.float32)
    for year in (2000, 2001, 2000):
        retriever.search(Topic("x"), 5, Filters(fields=("1",), as_of_year=year, citing_ids=("p1",)), vector)
    assert next(asked) == 1
