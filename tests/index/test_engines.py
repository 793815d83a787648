"""What every engine of words promises: filters, leak rules, order, citing sentences, explanations, threads."""

import contextlib
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic
from citerec.errors import QueryError, SettingsError
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.manifest import Layout
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context, Filters
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.words import SORTS
from citerec.systems import Recipe
from tests.conftest import DEMO, s2ag_paper, write_lines


def fields(*names: str) -> list[dict[str, str]]:
    return [{"category": name, "source": "test"} for name in names]


def said(number: int, citing: int, cited: int, text: str) -> dict[str, object]:
    return {"citationid": number, "citingcorpusid": citing, "citedcorpusid": cited, "contexts": [text]}


COMPUTERS, ANIMALS, BOTH = fields("Computer Science"), fields("Biology"), fields("Biology", "Geography")
PAPERS = [
    s2ag_paper(1, "Okapi at TREC", year=1994, citationcount=900, venue="TREC", s2fieldsofstudy=COMPUTERS),
    s2ag_paper(2, "Okapi in the wild", year=2005, venue="Journal of Zoology", s2fieldsofstudy=ANIMALS),
    s2ag_paper(3, "Okapi habitats", year=None, citationcount=5, s2fieldsofstudy=BOTH),
    s2ag_paper(4, "Citing okapi work", year=2010, citationcount=0, venue="ACM SIGIR Forum"),
    s2ag_paper(5, "Unrelated", year=2000, citationcount=50, venue="SIGIR"),
    s2ag_paper(6, "Okapi twin", year=2001),
    s2ag_paper(10, "Okapi twin", year=2001),
]
CITATIONS = [
    said(1, 4, 5, "The probabilistic okapi ranking [7] is strong."),
    said(2, 2, 5, "A probabilistic model of ranking."),
    said(3, 99, 1, "Probabilistic, and its citing paper unknown."),
]


@pytest.fixture(scope="module", params=["embedded", pytest.param("lucene", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def index(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    write_lines(folder / "s" / "papers" / "p.jsonl", PAPERS)
    write_lines(folder / "s" / "citations" / "c.jsonl", CITATIONS)
    build_index([folder / "s"], folder / "index", BuildOptions(layout=Layout(engine=engine)))
    return folder / "index"


@pytest.fixture(scope="module")
def demos(engine: str, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The demo corpus without and with abstracts as a field of their own."""
    folder = tmp_path_factory.mktemp("demos")
    for is_field in (False, True):
        layout = Layout(engine=engine, abstract_field=is_field)
        build_index([DEMO], folder / str(is_field), BuildOptions(layout=layout))
    return [folder / "False", folder / "True"]


NO_WORDS = ["words.weights.text=0", "words.weights.title=0"]


@pytest.fixture(scope="module")
def recommender(index: Path) -> Recommender:
    return Recommender.open(index)


def found(recommender: Recommender, sentence: str = "okapi <REF>", sort: str = "relevance") -> list[str]:
    return [hit.paper.paper_id for hit in recommender.search(sentence, k=7, sort=sort)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(year_from=2001), {"2", "4", "6", "10"}),
        (Filters(year_to=2001), {"1", "5", "6", "10"}),
        (Filters(year_from=2001, year_to=2005), {"2", "6", "10"}),
        (Filters(fields=("biology",)), {"2", "3"}),
        (Filters(fields=("Geography", "Computer Science")), {"1", "3"}),
        (Filters(venues=("sigir",)), {"4", "5"}),
        (Filters(venues=("Zoology Journal",)), set()),
        (Filters(venues=("journal of zoology", "TREC")), {"1", "2"}),
        (Filters(min_citations=5), {"1", "3", "5"}),
        (Filters(exclude=("1", "2")), {"3", "4", "5", "6", "10"}),
        (Filters(as_of_year=2001), {"1", "3", "6", "10"}),
        (Filters(citing_ids=("1",)), {"2", "3", "4", "5", "6", "10"}),
    ],
)
def test_filters_are_exact(recommender: Recommender, filters: Filters, expected: set[str]) -> None:
    retrieved = recommender._retriever.search(Topic("okapi probabilistic"), 7, filters)
    assert {candidate.paper_id for candidate in retrieved} == expected


def test_orders(recommender: Recommender) -> None:
    assert found(recommender, sort="newest") == ["4", "2", "10", "6", "1", "3"]
    assert found(recommender, sort="oldest") == ["1", "10", "6", "2", "4", "3"]  # what is not known comes last
    assert found(recommender, sort="most-cited")[:3] == ["1", "3", "4"]
    assert found(recommender, sort="venue")[:3] == ["4", "2", "1"]
    assert found(recommender, sort="field")[:3] == ["2", "3", "1"]  # biology, computer science, then none
    for sort in SORTS:
        assert set(found(recommender, sort=sort)) - {"5"} == {"1", "2", "3", "4", "6", "10"}


@pytest.mark.parametrize(
    ("filters", "citing"),
    [
        (Filters(), {"5": {"2", "4"}, "1": {"99"}}),
        (Filters(citing_ids=("4",)), {"5": {"2"}, "1": {"99"}}),
        (Filters(citing_ids=("4", "2", "99")), {}),
        (Filters(as_of_year=2007), {"5": {"2"}}),
        (Filters(as_of_year=2004), {}),
        (Filters(citing_ids=("2",), as_of_year=2012), {"5": {"4"}}),
        (Filters(exclude=("5",)), {"1": {"99"}}),
        (Filters(year_from=1999), {"5": {"2", "4"}}),
    ],
)
def test_no_leak_through_citing_sentences(index: Path, filters: Filters, citing: dict[str, set[str]]) -> None:
    """Neither the citing paper's own sentences are searched, nor newer ones, nor those of unknown year."""
    with Recommender.open(index, Recipe.load(None, NO_WORDS)) as recommender:
        found = recommender._retriever.search(Topic("probabilistic"), 7, filters)
        assert {one.paper_id: one.signals["citances_found"] for one in found} == {
            paper_id: len(ids) for paper_id, ids in citing.items()
        }
        assert all(one.citance and one.citance.citing_id in citing[one.paper_id] for one in found)


def test_sentences_add_up_each_further_one_decayed(index: Path, recommender: Recommender) -> None:
    with Recommender.open(index, Recipe.load(None, ["words.citance_decay=0.5"])) as opened:
        (five, one) = opened._retriever.search(Topic("probabilistic"), 7, NO_FILTERS)
    assert (five.paper_id, one.paper_id) == ("5", "1")
    best, second = five.signals["citance"], five.signals["citance_2"]
    assert best > second > 0
    assert five.score == pytest.approx(1.8 * (best + 0.5 * second))
    assert five.signals["citances"] == pytest.approx(best + second)
    assert five.citance is not None and five.citance.score == pytest.approx(1.8 * best)
    hit = recommender.search("probabilistic ranking <REF>", k=1)[0]
    assert hit.paper.paper_id == "5" and hit.citance is not None and "robabilistic" in hit.citance.text
    with contextlib.suppress(QueryError):  # a digit alone is a word for Lucene only; that of a marker is not searched
        assert not recommender._retriever.search(Topic("7"), 7, NO_FILTERS)


def test_weights_of_fields(index: Path, demos: list[Path]) -> None:
    plain, _ = demos
    only = Recipe.load(None, NO_WORDS)
    assert found(Recommender.open(index, only), sentence="probabilistic ranking okapi <REF>") == ["5", "1"]
    only_title = Recipe.load(None, ["words.weights.text=0", "words.weights.title=1"])
    hits = Recommender.open(plain, only_title).search("forests memory evolution <REF>", k=5)
    assert all(any(word in hit.paper.title.lower() for word in ("forest", "memor", "evol")) for hit in hits)
    for place, settings, message in (
        (plain, NO_WORDS, "every weight is 0"),
        (index, [*NO_WORDS, "words.weights.citances=0"], "every weight is 0"),
        (plain, ["words.weights.abstract=0.7"], r"weights.abstract is 0.7, but .* has no field of abstracts"),
    ):
        with pytest.raises(SettingsError, match=message):
            Recommender.open(place, Recipe.load(None, settings))


def test_ties_break_by_paper_id_however_many_there_are(engine: str, tmp_path: Path) -> None:
    """Lucene orders equal scores by document, and documents lie in any order; papers that are added lie last."""
    ids = [(7 * number) % 300 for number in range(300)]
    for name, part in (("first", ids[:200]), ("then", ids[200:])):
        write_lines(tmp_path / name / "papers" / "p.jsonl", [s2ag_paper(one, "Equal okapi") for one in part])
    build_index([tmp_path / "first"], tmp_path / "index", BuildOptions(layout=Layout(engine=engine)))
    add_to_index([tmp_path / "then"], tmp_path / "index")
    recommender = Recommender.open(tmp_path / "index")
    for k in (1, 5, 120, 300):
        hits = recommender.search("okapi <REF>", k=k)
        assert [hit.paper.paper_id for hit in hits] == sorted(map(str, ids))[:k]
    assert len({hit.score for hit in hits}) == 1


def test_the_matches_add_up_to_the_score_and_name_the_fields_of_a_word(demos: list[Path]) -> None:
    weighted = Recipe.load(None, ["words.weights.abstract=0.7", "words.weights.title=2"])
    context = Context(text="Random <REF> forests of decision trees.", before="Trees overfit.", after="Voting helps.")
    for index, settings in zip(demos, (Recipe(), weighted), strict=True):
        for hit in Recommender.open(index, settings).search(context, k=20, explain=True):
            assert sum(match.score for match in hit.matches) == pytest.approx(hit.score, rel=1e-4)
            assert all(match.fields for match in hit.matches)
    seen, explained = set(), []
    for index in demos:
        hits = Recommender.open(index).search(
            "Random forests of decision trees learn deep networks <REF>.", 50, explain=True
        )
        explained.append([(hit.paper.paper_id, hit.score, hit.matches) for hit in hits])
        for hit in hits:
            title, abstract = hit.paper.title.lower().split(), (hit.paper.abstract or "").lower().split()
            for match in hit.matches:
                seen.add(match.fields)
                # Other forms of a word match too, so this holds in one direction.
                assert match.word.lower() not in title or "title" in match.fields
                assert match.word.lower() not in abstract or "abstract" in match.fields
    assert seen == {("title",), ("abstract",), ("title", "abstract")}
    assert explained[0] == explained[1]


def test_a_query_without_words_is_an_error_and_special_characters_are_text(recommender: Recommender) -> None:
    signs = '+ - && || ! ( ) { } [ ] ^ " ~ * ? : \\ /'
    for sentence in ("the of and <REF>", "<REF>", f"{signs} <REF>", "[3] (Lee, 1999) <REF>"):
        with pytest.raises(QueryError, match="no word to search for"):
            recommender.search(sentence)
    for noise in ('"', "\\", "AND", "OR NOT", "title:", "a~2", "b^4", "[1 TO 5]", "{x", "((", "/r/", "*", "?"):
        assert set(found(recommender, sentence=f"{noise} okapi {noise} <REF> {noise}")) >= {"1", "2", "3"}


def test_every_script_and_sign_passes_through(engine: str, tmp_path: Path) -> None:
    """Java's own UTF-8 differs from everybody's for NUL and for what lies beyond the basic plane."""
    record = {
        "paper_id": "é😀", "title": "Emoji 😀 okapi 𝔘", "abstract": "nul \0 inside 漢字", "venue": "Vénue",
        "fields_of_study": ["Ünï 😀"], "year": 2001,
    }  # fmt: skip
    source = write_lines(tmp_path / "o.jsonl", [record])
    build_index([source], tmp_path / "index", BuildOptions(layout=Layout(engine=engine)))
    recommender = Recommender.open(tmp_path / "index")
    filters = Filters(fields=("ünï 😀",), venues=("vénue",))
    (hit,) = recommender.search("nul 漢字 😀 state-of-the-okapi <REF>", filters=filters, explain=True)
    assert (hit.paper.paper_id, hit.paper.title, hit.paper.abstract) == ("é😀", record["title"], "nul inside 漢字")
    assert {match.word for match in hit.matches} >= {"nul", "漢字", "state-of-the-okapi"}
    assert len({match.word for match in hit.matches}) == len(hit.matches)


def test_all_papers_are_listed_page_by_page(index: Path) -> None:
    opened = OpenIndex.open(index)
    pages = [opened.find("", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert pages == [["1", "10", "2"], ["3", "4", "5"], ["6"], []]
    assert opened.find("", Filters(fields=("Biology",)), limit=9) == ["2", "3"]
    assert opened.find("twin", limit=9) == ["10", "6"]
    assert opened.find("twin", limit=9, offset=1) == ["6"]


@pytest.mark.slow
def test_engines_find_and_explain_nearly_the_same(tmp_path: Path) -> None:
    """Their analyses differ in few words, and Lucene keeps lengths of texts roughly."""
    contexts = list(read_contexts(DEMO / "contexts.jsonl"))
    sentences = [
        {"context_id": str(number), "text": one.text, "citing_id": f"c{number}", "cited_ids": list(one.cited_ids)}
        for number, one in enumerate(contexts)
    ]
    options = BuildOptions(citances=(write_lines(tmp_path / "said.jsonl", sentences),))
    opened = []
    for engine in ("embedded", "lucene"):
        build_index([DEMO], tmp_path / engine, replace(options, layout=Layout(engine=engine)))
        opened.append(Recommender.open(tmp_path / engine, "bm25+citances"))
    shared, near, explained = [], [], []
    for context in contexts[::5]:
        one, other = ({hit.paper.paper_id: hit for hit in each.search(context, 50, explain=True)} for each in opened)
        shared.append(len(one.keys() & other.keys()) / len(one))
        for paper_id in one.keys() & other.keys():
            near.append(one[paper_id].score == pytest.approx(other[paper_id].score, rel=0.1))
            matches = [{(match.word, match.fields) for match in hits[paper_id].matches} for hits in (one, other)]
            explained.append(matches[0] == matches[1])
    assert min(statistics.mean(shared), statistics.mean(near), statistics.mean(explained)) > 0.98
