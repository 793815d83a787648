"""Searching real Lucene: filters, leak rules, citances, explanations, threads."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from citerec.contexts.leaks import LeakRules
from citerec.contexts.topic import Topic
from citerec.errors import FilterError, QueryError, SettingsError
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context, Filters
from citerec.retrieve.index import BuildOptions, add_to_index, build_index, open_store
from citerec.retrieve.lucene.queries import SORTS, filtered
from citerec.retrieve.run import SearchOptions
from citerec.systems import Recipe
from tests.conftest import DEMO, s2ag_paper, write_lines


def fields(*names: str) -> list[dict[str, str]]:
    return [{"category": name, "source": "test"} for name in names]


PAPERS = [
    s2ag_paper(
        1, "Okapi at TREC", year=1994, citationcount=900, venue="TREC", s2fieldsofstudy=fields("Computer Science")
    ),
    s2ag_paper(2, "Okapi in the wild", year=2005, venue="Journal of Zoology", s2fieldsofstudy=fields("Biology")),
    s2ag_paper(3, "Okapi habitats", year=None, citationcount=5, s2fieldsofstudy=fields("Biology", "Geography")),
    s2ag_paper(4, "Citing okapi work", year=2010, citationcount=0, venue="ACM SIGIR Forum"),
    s2ag_paper(5, "Unrelated", year=2000, citationcount=50, venue="SIGIR"),
    s2ag_paper(6, "Okapi twin", year=2001),
    s2ag_paper(10, "Okapi twin", year=2001),
]
CITATIONS = [
    {
        "citationid": 1,
        "citingcorpusid": 4,
        "citedcorpusid": 5,
        "contexts": ["The probabilistic okapi ranking [7] is strong."],
    },
    {"citationid": 2, "citingcorpusid": 2, "citedcorpusid": 5, "contexts": ["A probabilistic model of ranking."]},
    {
        "citationid": 3,
        "citingcorpusid": 99,
        "citedcorpusid": 1,
        "contexts": ["Probabilistic, and its citing paper unknown."],
    },
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    write_lines(folder / "s" / "papers" / "p.jsonl", PAPERS)
    write_lines(folder / "s" / "citations" / "c.jsonl", CITATIONS)
    build_index([folder / "s"], folder / "index")
    return folder / "index"


@pytest.fixture(scope="module")
def recommender(index: Path) -> Recommender:
    return Recommender.open(index)


def found(
    recommender: Recommender, filters: Filters = NO_FILTERS, sentence: str = "okapi <REF>", sort: str = "relevance"
) -> list[str]:
    return [hit.paper.paper_id for hit in recommender.search(sentence, k=7, filters=filters, sort=sort)]


def test_ties_break_by_paper_id_as_text(recommender: Recommender) -> None:
    hits = recommender.search("twin <REF>", k=2)
    assert [hit.paper.paper_id for hit in hits] == ["10", "6"]
    assert hits[0].score == hits[1].score


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
    assert found(recommender, sort="oldest") == ["1", "10", "6", "2", "4"]
    assert found(recommender, sort="most-cited")[:3] == ["1", "3", "4"]
    assert found(recommender, sort="venue")[:3] == ["4", "2", "1"]
    assert found(recommender, sort="field")[:3] == ["2", "3", "1"]  # biology, computer science, then none
    for sort in SORTS:
        assert set(found(recommender, sort=sort)) - {"5", "3"} == {"1", "2", "4", "6", "10"}


def test_a_citing_sentence_finds_a_paper_whose_own_words_do_not(recommender: Recommender) -> None:
    hit = recommender.search("probabilistic ranking <REF>", k=1)[0]
    assert hit.paper.paper_id == "5"
    assert hit.citance is not None
    assert hit.citance.text in ("The probabilistic okapi ranking [7] is strong.", "A probabilistic model of ranking.")


def test_the_marker_of_a_citing_sentence_is_not_searched(recommender: Recommender) -> None:
    assert not recommender._retriever.search(Topic("7"), 7, NO_FILTERS)


@pytest.mark.parametrize(
    ("context", "citing"),
    [
        (Context(text="probabilistic <REF>"), {"2", "4", "99"}),
        (Context(text="probabilistic <REF>", citing_id="4"), {"2", "99"}),
        (Context(text="probabilistic <REF>", citing_year=2007), {"2"}),
        (Context(text="probabilistic <REF>", citing_year=2004), set()),
        (Context(text="probabilistic <REF>", citing_id="2", citing_year=2012), {"4"}),
    ],
)
def test_no_leak_through_citing_sentences(recommender: Recommender, context: Context, citing: set[str]) -> None:
    """Neither the citing paper's own sentences are searched, nor newer ones, nor those of unknown year."""
    words = recommender._index.lucene._parsers.citances(Topic("probabilistic"))
    leak_rules = Filters(citing_ids=(str(context.citing_id),), as_of_year=context.citing_year)
    allowed = filtered(words, leak_rules, citances=True)
    lucene = recommender._index.lucene
    hits = lucene._citances.best(allowed, 100)
    assert {lucene._said(hits, hit)[0] for hit in range(len(hits.rows))} == citing
    shown = {hit.citance.citing_id for hit in recommender.search(context, k=7) if hit.citance}
    assert shown <= citing


def test_citing_sentences_alone_can_be_searched(index: Path) -> None:
    only = Recipe.load(None, ["lucene.weights.text=0", "lucene.weights.title=0"])
    assert found(Recommender.open(index, only), sentence="probabilistic ranking okapi <REF>") == ["5", "1"]


def test_some_field_must_have_a_weight(index: Path, demo_index: Path) -> None:
    nothing = ["lucene.weights.text=0", "lucene.weights.title=0"]
    with pytest.raises(SettingsError, match="every weight is 0"):
        Recommender.open(demo_index, Recipe.load(None, nothing))
    with pytest.raises(SettingsError, match="every weight is 0"):
        Recommender.open(index, Recipe.load(None, [*nothing, "lucene.weights.citances=0"]))


def test_the_citing_paper_is_never_recommended_to_itself(recommender: Recommender) -> None:
    assert "4" in found(recommender)
    hits = recommender.search(Context(text="okapi work <REF>", citing_id="4"), k=7)
    assert "4" not in {hit.paper.paper_id for hit in hits}


def test_as_of_year_can_be_switched_off(recommender: Recommender) -> None:
    context = Context(text="okapi <REF>", citing_year=2001, context_id="c")
    topics = list(recommender.topics([context]))
    ((_, fair),) = recommender.candidates(topics, k=7)
    options = SearchOptions(LeakRules(as_of_year=False))
    ((_, all_years),) = recommender.candidates(topics, k=7, options=options)
    assert {candidate.paper_id for candidate in fair} == {"1", "3", "6", "10"}
    assert {candidate.paper_id for candidate in all_years} == {"1", "2", "3", "4", "5", "6", "10"}


def test_ties_break_by_paper_id_however_many_there_are(tmp_path: Path) -> None:
    """Lucene orders equal scores by document, and documents lie in any order; papers that are added lie last."""
    ids = [(7 * number) % 300 for number in range(300)]
    for name, part in (("first", ids[:200]), ("then", ids[200:])):
        write_lines(tmp_path / name / "papers" / "p.jsonl", [s2ag_paper(one, "Equal okapi") for one in part])
    build_index([tmp_path / "first"], tmp_path / "index")
    add_to_index([tmp_path / "then"], tmp_path / "index")
    recommender = Recommender.open(tmp_path / "index")
    in_order = sorted(map(str, ids))
    for k in (1, 5, 120, 300):
        assert [hit.paper.paper_id for hit in recommender.search("okapi <REF>", k=k)] == in_order[:k]


@pytest.fixture(scope="module")
def fielded_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus, abstracts as a field of their own too."""
    out = tmp_path_factory.mktemp("fielded") / "demo"
    build_index([DEMO], out, BuildOptions(abstract_field=True))
    return out


def test_the_matches_add_up_to_the_score(demo_index: Path, fielded_index: Path) -> None:
    weighted = Recipe.load(None, ["lucene.weights.abstract=0.7", "lucene.weights.title=2"])
    for index, settings in ((demo_index, Recipe()), (fielded_index, weighted)):
        recommender = Recommender.open(index, settings)
        context = Context(
            text="Random <REF> forests of decision trees.", before="Trees overfit.", after="Voting helps."
        )
        for hit in recommender.search(context, k=20, explain=True):
            assert sum(match.score for match in hit.matches) == pytest.approx(hit.score, rel=1e-4)
            assert all(match.fields for match in hit.matches)


def test_matches_name_the_fields_of_a_word_with_and_without_a_field_of_abstracts(
    demo_index: Path, fielded_index: Path
) -> None:
    sentence = "Random forests of decision trees learn deep networks <REF>."
    seen = set()
    for index in (demo_index, fielded_index):
        for hit in Recommender.open(index).search(sentence, k=50, explain=True):
            title, abstract = hit.paper.title.lower().split(), (hit.paper.abstract or "").lower().split()
            for match in hit.matches:
                word = match.word.lower()
                seen.add(match.fields)
                # Other forms of a word match too, so this holds in one direction.
                assert word not in title or "title" in match.fields
                assert word not in abstract or "abstract" in match.fields
    assert seen == {("title",), ("abstract",), ("title", "abstract")}
    with_field, without = (
        [(hit.paper.paper_id, hit.score, hit.matches) for hit in Recommender.open(index).search(sentence, explain=True)]
        for index in (demo_index, fielded_index)
    )
    assert with_field == without


def test_a_weight_for_a_field_that_the_index_lacks_is_refused(demo_index: Path) -> None:
    settings = Recipe.load(None, ["lucene.weights.abstract=0.7"])
    with pytest.raises(SettingsError, match=r"weights.abstract is 0.7, but .* has no field of abstracts") as raised:
        Recommender.open(demo_index, settings)
    assert "--abstract-field" in raised.value.remedy


def test_weights_change_what_a_field_is_worth(demo_index: Path) -> None:
    only_title = Recipe.load(None, ["lucene.weights.text=0", "lucene.weights.title=1"])
    hits = Recommender.open(demo_index, only_title).search("forests memory evolution <REF>", k=5)
    assert hits
    assert all(any(word in hit.paper.title.lower() for word in ("forest", "memor", "evol")) for hit in hits)


@pytest.mark.parametrize(
    "sentence", ["the of and <REF>", "<REF>", '+ - && || ! ( ) { } [ ] ^ " ~ * ? : \\ / <REF>', "[3] (Lee, 1999) <REF>"]
)
def test_a_query_without_words_is_an_error(recommender: Recommender, sentence: str) -> None:
    with pytest.raises(QueryError, match="no word to search for"):
        recommender.search(sentence)


@pytest.mark.parametrize(
    "noise", ['"', "\\", "AND", "OR NOT", "title:", "a~2", "b^4", "[1 TO 5]", "{x", "((", "/r/", "*", "?"]
)
def test_special_characters_are_text(recommender: Recommender, noise: str) -> None:
    assert set(found(recommender, sentence=f"{noise} okapi {noise} <REF> {noise}")) >= {"1", "2", "3"}


def test_limits(recommender: Recommender) -> None:
    for k, message in ((0, "asks for no paper"), (-1, "asks for no paper"), (8, "more than the 7 papers")):
        with pytest.raises(FilterError, match=message):
            recommender.search("okapi <REF>", k=k)
    assert len(recommender.search("okapi <REF>")) == 7  # ten are usual, the index has seven: six okapis, one citance
    with pytest.raises(QueryError, match="1,001 words"):
        recommender.search("okapi " * 1001)
    with pytest.raises(QueryError, match="2 <REF>"):
        recommender.search("One <REF>. Two <REF>.")
    with pytest.raises(FilterError, match="no field of study 'Zoologie'"):
        recommender.search("okapi <REF>", filters=Filters(fields=("Zoologie",)))
    with pytest.raises(FilterError, match="reversed"):
        recommender.search("okapi <REF>", filters=Filters(year_from=2010, year_to=2000))


def test_many_threads_get_what_one_gets(demo_index: Path) -> None:
    sentences = [
        "Self-attention replaces recurrence in translation <REF>.",
        "Support vectors and random forests classify well <REF>.",
        "Stomach bacteria cause ulcers <REF>.",
        "Small worlds and strong ties in networks <REF>.",
    ]
    recommender = Recommender.open(demo_index)
    other = Recommender.open(demo_index, Recipe.load(None, ["lucene.weights.title=3"]))
    expected = {(s, r): r.search(s, k=20) for s in sentences for r in (recommender, other)}
    wrong: list[str] = []

    def ask() -> None:
        for _ in range(25):
            for (sentence, which), hits in expected.items():
                if which.search(sentence, k=20) != hits:
                    wrong.append(sentence)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_keep_their_order_and_the_unanswerable_find_nothing(recommender: Recommender) -> None:
    contexts = [Context(text=f"{text} <REF>") for text in ("okapi", "the", "unrelated", "habitats") * 20]
    found = [
        candidates
        for _, candidates in recommender.candidates(recommender.topics(contexts), 3, options=SearchOptions(threads=3))
    ]
    assert [len(candidates) for candidates in found] == [3, 0, 1, 1] * 20
    single = [hit.paper.paper_id for hit in recommender.search("okapi <REF>", 3)]
    assert [candidate.paper_id for candidate in found[0]] == single


def test_hits_carry_the_full_record(index: Path, recommender: Recommender) -> None:
    (hit,) = recommender.search("habitats <REF>", k=1)
    assert hit.paper == open_store(index).papers(["3"])["3"]
    assert replace(hit.paper, title="") != hit.paper
    assert hit.rank == 1


def test_every_script_and_sign_passes_through_java(tmp_path: Path) -> None:
    """Java's own UTF-8 differs from everybody's for NUL and for what lies beyond the basic plane."""
    record = {
        "paper_id": "é😀", "title": "Emoji 😀 okapi 𝔘", "abstract": "nul \0 inside 漢字", "venue": "Vénue",
        "fields_of_study": ["Ünï 😀"], "year": 2001,
    }  # fmt: skip
    build_index([write_lines(tmp_path / "o.jsonl", [record])], tmp_path / "index")
    recommender = Recommender.open(tmp_path / "index")
    filters = Filters(fields=("ünï 😀",), venues=("vénue",))
    (hit,) = recommender.search("nul 漢字 😀 state-of-the-okapi <REF>", filters=filters, explain=True)
    assert (hit.paper.paper_id, hit.paper.title, hit.paper.abstract) == ("é😀", record["title"], "nul inside 漢字")
    assert {match.word for match in hit.matches} >= {"nul", "漢字", "state-of-the-okapi"}
    assert len({match.word for match in hit.matches}) == len(hit.matches)


def test_the_first_hits_do_not_depend_on_how_many_are_asked_for(recommender: Recommender) -> None:
    sentence = "okapi probabilistic ranking <REF>"
    longer = recommender.search(sentence, k=7)
    assert recommender.search(sentence, k=2) == longer[:2]


def test_all_ids_are_found_page_by_page(recommender: Recommender, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = recommender._index.lucene
    every = ["1", "10", "2", "3", "4", "5", "6"]
    for page in (1, 3, 7, 100):
        monkeypatch.setattr("citerec.retrieve.lucene._PAGE", page)
        assert retriever.rows.paper_ids(retriever.matching_rows(NO_FILTERS)) == every
        assert retriever.rows.paper_ids(retriever.matching_rows(Filters(fields=("Biology",)))) == ["2", "3"]
        assert not len(retriever.matching_rows(Filters(fields=("Physics",))))
