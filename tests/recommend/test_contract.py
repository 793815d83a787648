"""What every registered retriever and reranker promises. A new part is held to it without a line added here."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from citerec import RERANKERS, RETRIEVERS, Context, Filters, LeakRules, Recipe, Recommender
from citerec.errors import FilterError, QueryError, SettingsError
from citerec.files.progress import no_progress
from citerec.index.build import BuildOptions, add_to_index
from citerec.index.manifest import open_store, trained_of
from citerec.index.vectors import DenseOptions
from citerec.papers.citebart.model import citation_of
from citerec.rerank.cross_encoder import CrossEncoder, TextOptions
from citerec.retrieve.run import SearchOptions
from citerec.settings import setting_keys
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
CONTEXTS = [
    Context(text=SENTENCE, context_id="a"),
    Context(
        text="Probabilistic ranking of documents <REF>.", context_id="b", citing_year=2005, cited_before=EVERYTHING
    ),
    Context(
        text="Species evolve under selection <REF>.", context_id="c", citing_id="900000041", cited_before=EVERYTHING
    ),
    Context(text="<REF>", context_id="empty"),
]


@pytest.fixture(scope="module")
def index(hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus with all that parts may need: citing sentences, vectors, and each kind of trained ranker."""
    folder = tmp_path_factory.mktemp("contract")
    shutil.copytree(hybrid_index, out := folder / "index")
    contexts = [json.loads(line) for line in (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()[:60]]
    said = [{**one, "citing_id": f"later-{number}", "citing_year": 2024} for number, one in enumerate(contexts)]
    said[0]["text"] = SENTENCE
    words = f"{SENTENCE} Probabilistic ranking of documents. Species evolve under selection."
    everywhere = {
        "text": words,
        "cited_ids": [int(one) for one in EVERYTHING],
        "citing_key": "old",
        "citing_year": 1960,
    }
    said.append({**everywhere, "context_id": "everywhere"})
    add_to_index([], out, BuildOptions(citances=(write_lines(folder / "said.jsonl", said),)))
    titles = (DEMO / "papers" / "papers-00000.jsonl").read_text(encoding="utf-8")
    models = {"hatten": str(write_tiny_hatten(folder / "hatten", [titles, SENTENCE]))}  # others take any encoder
    for name in ("hatten", "profile"):
        RETRIEVERS[name].encode(out, DenseOptions(models.get(name, "all-MiniLM-L6-v2")), no_progress)
    train_ltr(
        [Source(out, Choice(DEMO / "contexts.jsonl", limit=50))],
        trained_of(out, "ltr"),
        LtrOptions(rounds=5),
        no_progress,
    )
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


# A draft that cites everything already, so that what it cites is all papers.
DRAFT = Context(text=SENTENCE, cited_before=EVERYTHING)

# So that what a model writes is all papers.
SETTINGS = [f"{name}.{setting}" for name in ("galactica", "citebart") for setting in ("constrained=true", "beams=252")]
SETTINGS += ["citebart.max_input_tokens=60"]  # of the tiny model


@pytest.fixture(scope="module")
def settings() -> Iterator[list[str]]:
    """Settings for all parts; those of services ask a server on loopback, which lists all papers for every query."""
    services = Services(demo_papers(), lists_all=True)
    yield [*SETTINGS, *services.settings]
    services.stop()


@pytest.fixture(scope="module", params=[*RETRIEVERS, *(f"bm25+{name}" for name in RERANKERS)])
def system(request: pytest.FixtureRequest, index: Path, settings: list[str]) -> Iterator[Recommender]:
    """Each retriever alone, and each reranker behind BM25."""
    with Recommender.open(index, Recipe.load(request.param, settings)) as opened:
        yield opened


def test_order_is_by_score_then_by_paper_id(system: Recommender) -> None:
    hits = system.search(DRAFT, 30)
    assert len(hits) == 30
    keys = [(-hit.score, hit.paper.paper_id.encode()) for hit in hits]
    assert keys == sorted(keys)
    assert len({hit.paper.paper_id for hit in hits}) == 30
    assert [hit.rank for hit in hits] == list(range(1, 31))


def test_the_first_do_not_depend_on_how_many_are_asked_for(system: Recommender) -> None:
    longer = system.search(DRAFT, 30)
    for k in (1, 7):
        shorter = system.search(DRAFT, k)
        assert [hit.paper.paper_id for hit in shorter] == [hit.paper.paper_id for hit in longer[:k]]
    with pytest.raises(FilterError):
        system.search(DRAFT, 0)


@pytest.mark.parametrize(
    "filters",
    [
        Filters(year_from=2000, year_to=2012),
        Filters(fields=("Computer Science",)),
        Filters(min_citations=5000),
        Filters(exclude=("900000041", "900000042")),
        Filters(venues=("Nature",)),
        Filters(as_of_year=1999),
    ],
)
def test_filters_are_exact(system: Recommender, filters: Filters) -> None:
    hits = system.search(DRAFT, 100, filters)
    assert hits
    for hit in hits:
        paper = hit.paper
        year = paper.year or 0
        assert filters.year_from is None or filters.year_from <= year <= (filters.year_to or 9999)
        assert set(filters.fields) <= set(paper.fields_of_study)
        assert (paper.citation_count or 0) >= (filters.min_citations or 0)
        assert paper.paper_id not in filters.exclude
        assert all(venue in (paper.venue or "") for venue in filters.venues)
        assert filters.as_of_year is None or year <= filters.as_of_year


def test_threads_change_nothing(system: Recommender) -> None:
    texts = [context.text for context in CONTEXTS[:3]] * 2
    alone = [[hit.paper.paper_id for hit in system.search(text, 20)] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: [hit.paper.paper_id for hit in system.search(text, 20)], texts))
    assert together == alone


def test_nothing_to_search_for_is_said_for_one_and_no_hit_among_many(system: Recommender) -> None:
    with pytest.raises(QueryError):
        system.search("<REF>")
    assert system.search_many(CONTEXTS, 5)["empty"] == {}


def test_leak_rules_hold(system: Recommender) -> None:
    run = system.search_many(CONTEXTS, 252)
    years = {paper_id: paper.year or 0 for paper_id, paper in system.store.papers(run["b"]).items()}
    assert max(years.values()) <= 2005
    # The year of a citing paper that only the index knows counts as well.
    own = system.store.papers(["900000041"])["900000041"].year
    assert own is not None
    assert "900000041" not in run["c"]
    assert max(paper.year or 0 for paper in system.store.papers(run["c"]).values()) <= own
    free = system.search_many(CONTEXTS, 252, options=SearchOptions(LeakRules(exclude_citing=False, as_of_year=False)))
    assert max(paper.year or 0 for paper in system.store.papers(free["b"]).values()) > 2005


def test_explaining_changes_neither_order_nor_scores(system: Recommender) -> None:
    plain, explained = system.search(DRAFT, 20), system.search(DRAFT, 20, explain=True)
    assert [(hit.paper.paper_id, hit.score) for hit in plain] == [(hit.paper.paper_id, hit.score) for hit in explained]


@pytest.mark.parametrize("part", [part for registry in (RETRIEVERS, RERANKERS) for _, part in registry.items()])
def test_settings_have_defaults_and_say_what_they_mean(part: type) -> None:
    assert part.__doc__
    assert part.Settings()  # type: ignore[attr-defined]
    assert all(meaning for _, meaning in setting_keys(part.Settings).values())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", system_names())
def test_every_system_that_help_names_opens(index: Path, settings: list[str], name: str) -> None:
    with Recommender.open(index, Recipe.load(name, settings)) as opened:
        assert opened.search(DRAFT, 3)


def test_what_an_index_lacks_is_said_with_its_remedy(demo_index: Path) -> None:
    for name in ("dense", "hatten"):
        with pytest.raises(SettingsError, match="has no vectors") as raised:
            Recommender.open(demo_index, name)
        assert "citerec index encode" in raised.value.remedy
    for name, command in (("cross-encoder", "train reranker"), ("ncn", "train ncn")):
        with pytest.raises(SettingsError, match=f"has no {name}") as raised:
            Recommender.open(demo_index, f"bm25+{name}")
        assert command in raised.value.remedy


def test_a_trained_ranker_is_named_by_its_folder_wherever_it_lies(index: Path, tmp_path: Path) -> None:
    shutil.copytree(trained_of(index, "ltr"), elsewhere := tmp_path / "my-ranker")
    shutil.copytree(index, other := tmp_path / "index", ignore=shutil.ignore_patterns("ltr"))
    recipe = Recipe.load("bm25", [f"rerankers={elsewhere}"])
    with (
        Recommender.open(index, "bm25+ltr") as inside,
        Recommender.open(other, f"bm25+{elsewhere}") as outside,
        Recommender.open(other, recipe) as by_recipe,
    ):
        scores = [[hit.score for hit in opened.search(DRAFT, 9)] for opened in (inside, outside, by_recipe)]
    assert scores[0] == scores[1] == scores[2]
