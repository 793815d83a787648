"""What every registered retriever and reranker promises. A new part is held to it without a line added here."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from citerec import RERANKERS, RETRIEVERS, Context, Filters, Index, LeakRules, Paper, Recipe, Recommender
from citerec.errors import FilterError, QueryError
from citerec.files.progress import no_progress
from citerec.index.build import BuildOptions, add_to_index
from citerec.index.manifest import open_store, trained_of
from citerec.index.vectors import DenseOptions
from citerec.papers.citebart.model import citation_of
from citerec.rerank.cross_encoder import CrossEncoder, TextOptions
from citerec.retrieve.run import SearchOptions
from citerec.systems import system_names
from citerec.train.groups import Choice
from citerec.train.ranking import LtrOptions, Source, train_ltr
from tests.conftest import DEMO, write_lines
from tests.live.services import Services, demo_papers
from tests.tiny_causal import write_tiny_opt
from tests.tiny_hatten import write_tiny_hatten
from tests.tiny_models import write_tiny_scibert
from tests.tiny_ncn import write_tiny_ncn
from tests.tiny_seq2seq import write_tiny_bart

SENTENCE = "Deep networks learn representations of images <REF>."
EVERYTHING = tuple(str(900000001 + number) for number in range(252))
RANKING, SPECIES = (
    "Probabilistic ranking of documents <REF>.",
    "Species evolve under selection, as say Watson and Crick <REF>.",
)
EVERYONE = tuple(author["name"] for paper in demo_papers() for author in paper["authors"])
CONTEXTS = [
    Context(text=SENTENCE, context_id="a"),
    Context(text=RANKING, context_id="b", citing_year=2005, cited_before=EVERYTHING, citing_authors=EVERYONE),
    Context(text=SPECIES, context_id="c", citing_id="900000041", cited_before=EVERYTHING),
    Context(text="<REF>", context_id="empty"),
]


@pytest.fixture(scope="module")
def index(hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus with all that parts may need: citing sentences, vectors, and each kind of trained ranker."""
    folder = tmp_path_factory.mktemp("contract")
    shutil.copytree(hybrid_index, out := folder / "index")
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    said = [{**json.loads(line), "citing_id": f"later-{at}", "citing_year": 2024} for at, line in enumerate(lines)]
    said[0]["text"] = SENTENCE
    words = f"{SENTENCE} {RANKING.replace(' <REF>', '')} {SPECIES.replace(' <REF>', '')}"
    everywhere = {"text": words, "cited_ids": [*EVERYTHING], "citing_key": "old", "citing_year": 1960}
    said.append({**everywhere, "context_id": "everywhere"})
    add_to_index([], out, BuildOptions(citances=(write_lines(folder / "said.jsonl", said),)))
    titles = (DEMO / "papers" / "papers-00000.jsonl").read_text(encoding="utf-8")
    models = {"hatten": str(write_tiny_hatten(folder / "hatten", [titles, SENTENCE]))}  # others take any encoder
    for name in ("hatten", "profile"):
        RETRIEVERS[name].encode(out, DenseOptions(models.get(name, "all-MiniLM-L6-v2")), no_progress)
    source = Source(out, Choice(DEMO / "contexts.jsonl", limit=50))
    train_ltr([source], trained_of(out, "ltr"), LtrOptions(rounds=5), no_progress)
    base = write_tiny_scibert(folder / "base", [SENTENCE, "Probabilistic ranking of documents"])
    model = CrossEncoder.begin(str(base), TextOptions(max_tokens=64), seed=0)
    trained_of(out, "cross-encoder").mkdir()
    model.save(trained_of(out, "cross-encoder"), model.manifest.model_copy(update={"weight": 1.0}))
    with closing(open_store(out)) as store:
        papers = store.papers(text.paper_id for text in store.all_papers()).values()
    write_tiny_ncn(trained_of(out, "ncn"), papers, [SENTENCE])
    write_tiny_bart(trained_of(out, "citebart"), [citation_of(paper) for paper in papers])
    write_tiny_opt(trained_of(out, "galactica"), [f" {paper.title}, {' '.join(paper.authors)}" for paper in papers])
    return out


# A draft that cites everything already, by everyone, so that what it cites, or they wrote, is all papers.
DRAFT = Context(text=SENTENCE, cited_before=EVERYTHING, citing_authors=EVERYONE)


@pytest.fixture(scope="module")
def settings() -> Iterator[list[str]]:
    """So that what a model writes and what a server on loopback lists is all papers."""
    services = Services(demo_papers(), lists_all=True)
    writers = [f"{name}.{one}" for name in ("galactica", "citebart") for one in ("constrained=true", "beams=252")]
    yield [*writers, "citebart.max_input_tokens=60", *services.settings]
    services.stop()


@pytest.fixture(scope="module", params=[*RETRIEVERS, *(f"bm25+{name}" for name in RERANKERS)])
def system(request: pytest.FixtureRequest, index: Path, settings: list[str]) -> Iterator[Recommender]:
    """Each retriever alone, and each reranker behind BM25."""
    with Recommender.open(index, Recipe.load(request.param, settings)) as opened:
        yield opened


def test_order_is_by_score_then_by_paper_id_however_many_are_asked_for_and_explained(system: Recommender) -> None:
    hits = system.search(DRAFT, 30)
    keys = [(-hit.score, hit.paper.paper_id.encode()) for hit in hits]
    assert keys == sorted(keys)
    assert len(set(keys)) == 30 and [hit.rank for hit in hits] == list(range(1, 31))
    for k in (1, 7):
        assert [hit.paper.paper_id for hit in system.search(DRAFT, k)] == [hit.paper.paper_id for hit in hits[:k]]
    explained = system.search(DRAFT, 30, explain=True)
    assert [(hit.paper.paper_id, hit.score) for hit in explained] == [(hit.paper.paper_id, hit.score) for hit in hits]
    with pytest.raises(FilterError):
        system.search(DRAFT, 0)


def test_filters_are_exact(system: Recommender) -> None:
    for filters in (
        Filters(year_from=2000, year_to=2012),
        Filters(fields=("Computer Science",)),
        Filters(min_citations=5000),
        Filters(exclude=("900000041", "900000042")),
        Filters(venues=("Nature",)),
        Filters(as_of_year=1999),
    ):
        hits = system.search(DRAFT, 100, filters)
        assert hits
        for paper in (hit.paper for hit in hits):
            year = paper.year or 0
            assert (filters.year_from or 0) <= year <= (filters.year_to or 9999)
            assert set(filters.fields) <= set(paper.fields_of_study)
            assert (paper.citation_count or 0) >= (filters.min_citations or 0)
            assert paper.paper_id not in filters.exclude
            assert all(venue in (paper.venue or "") for venue in filters.venues)
            assert year <= (filters.as_of_year or 9999)


def test_a_filter_by_citations_needs_counts(tmp_path: Path) -> None:
    index = Index.build([Paper("a", title="Counting lakes", year=2001)], tmp_path / "index")
    with index.recommender() as system:
        answer = system.search("Lakes are counted <REF>.", 1)
        assert str(answer).split()[2:] == ["Counting", "lakes", "(2001)", "a"]
        with pytest.raises(FilterError, match="no citation counts"):
            system.search("Lakes are counted <REF>.", 1, filters=Filters(min_citations=1))


def test_threads_change_nothing(system: Recommender) -> None:
    def ids(text: str) -> list[str]:
        return [hit.paper.paper_id for hit in system.search(text, 20)]

    texts = [context.text for context in CONTEXTS[:3]] * 2
    alone = list(map(ids, texts))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ids, texts)) == alone


def test_leak_rules_hold_and_nothing_to_search_for_is_no_hit_among_many(system: Recommender) -> None:
    run = system.search_many(CONTEXTS, 252)
    papers = system.store.papers(EVERYTHING)
    assert max(papers[paper_id].year or 0 for paper_id in run["b"]) <= 2005
    # The year of a citing paper that only the index knows counts as well.
    assert "900000041" not in run["c"]
    assert max(papers[paper_id].year or 0 for paper_id in run["c"]) <= (papers["900000041"].year or 0)
    assert run["empty"] == {}
    with pytest.raises(QueryError):
        system.search("<REF>")
    free = system.search_many(CONTEXTS, 252, options=SearchOptions(LeakRules(exclude_citing=False, as_of_year=False)))
    assert max(papers[paper_id].year or 0 for paper_id in free["b"]) > 2005


@pytest.mark.parametrize("name", system_names())
def test_every_system_that_help_names_opens(index: Path, settings: list[str], name: str) -> None:
    with Recommender.open(index, Recipe.load(name, settings)) as opened:
        assert opened.search(DRAFT, 3)
