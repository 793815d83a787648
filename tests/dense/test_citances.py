"""Contexts as citances (`--citances`), and what must not speak for a paper: its citing paper, and what came later."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from citerec.corpus.reading import RecordError
from citerec.corpus.tabular import parse_citances
from citerec.errors import SourceError
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.manifest import Manifest, trained_of
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context, Filters, citing_name
from citerec.systems import default_system
from tests.conftest import Citerec, write_lines

PAPERS = [
    {"paper_id": paper_id, "title": title, "year": year}
    for paper_id, title, year in (("a", "alpha", 1999), ("b", "beta", 2000), ("c", "gamma", 2005))
]


def context(text: str, *cited: str, **fields: object) -> dict[str, object]:
    return {"text": text, "cited_ids": list(cited), "citing_key": "some paper", **fields}


CONTEXTS = [
    context("The zebra tagger <REF> is fast.", "a", context_id="1", citing_year=2010, intent="method"),
    context("The zebra tagger of <REF> again.", "a", context_id="2", citing_year=2010),
    context("Okapi ranks well <REF>.", "a", "b", context_id="3", citing_id="c", citing_year=1),
    context("No one is cited <REF>.", context_id="4"),
    context("Elsewhere <REF>.", "unknown", context_id="5"),
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_lines(tmp_path / "papers.jsonl", PAPERS), write_lines(tmp_path / "contexts.jsonl", CONTEXTS)


def test_sentences_find_the_papers_they_cite_built_with_or_added(
    files: tuple[Path, Path], tmp_path: Path, citerec_here: Citerec
) -> None:
    papers, contexts = files
    build_index([papers], tmp_path / "index")
    manifest = add_to_index([], tmp_path / "index", BuildOptions(citances=(contexts,)))
    assert (manifest.counts.citances, manifest.counts.with_citances, manifest.counts.unmatched) == (4, 2, 1)
    assert manifest.counts.duplicates == 0
    with Recommender.open(tmp_path / "index") as recommender:
        assert len(recommender.store.citances("a", "some_paper")) == 2
        assert [hit.paper.paper_id for hit in recommender.search("a fast zebra tagger", 1)] == ["a"]
        # A sentence is searched for those who write no earlier than it was written. The citing paper's own record says
        # 2005, whatever the context says.
        asked = (("zebra tagger", 2009, 0), ("zebra tagger", 2010, 1), ("okapi", 2004, 0), ("okapi", 2005, 2))
        for sentence, year, n in asked:
            assert len(recommender.search(Context(text=sentence, citing_year=year), 3)) == n
    built = citerec_here("index", "build", papers, "--out", "whole", "--citances", contexts)
    assert re.search(r"with citing sentences +2 \(\d+%\), 4 sentences", built.stdout), built.stderr
    assert Manifest.read(tmp_path / "whole").fingerprint == manifest.fingerprint


def test_contexts_are_read_only_where_they_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    manifest = build_index([tmp_path], tmp_path / "index")  # they lie beside the papers
    assert (manifest.counts.papers, manifest.counts.citances) == (3, 0)
    for wrong, message in ((tmp_path, "is no file"), (tmp_path / "nowhere.jsonl", "does not exist")):
        with pytest.raises(SourceError, match=message):
            build_index([files[0]], tmp_path / "index", BuildOptions(citances=(wrong,)))


def test_what_is_no_context_is_set_aside_and_sentences_without_an_id_are_told_apart() -> None:
    for record in (
        {"text": "No marker.", "cited_ids": ["a"], "citing_key": "k"},
        {"text": "<REF> and <REF>.", "cited_ids": ["a"], "citing_key": "k"},
        {"text": "Who wrote <REF>?", "cited_ids": ["a"]},
        {"text": "A list <REF>.", "cited_ids": "a", "citing_key": "k"},
        {"text": "A year <REF>.", "cited_ids": ["a"], "citing_key": "k", "citing_year": "soon"},
        {"cited_ids": ["a"], "citing_key": "k"},
    ):
        with pytest.raises(RecordError):
            parse_citances(record)
    ids = {parse_citances(context(text, "a"))[0].citation_id for text in ("One <REF>.", "Two <REF>.", "One <REF>.")}
    assert len(ids) == 2


ZEBRAS = [
    {"paper_id": "cited", "title": "alpha", "year": 1999},
    {"paper_id": "citing", "title": "zebra draft", "year": 2005},
    {"paper_id": "newer", "title": "zebra tagger", "year": 2010},
]
SENTENCE = "The zebra tagger <REF> is fast."
BY_KEY = {"text": SENTENCE, "cited_ids": ["cited"], "citing_key": "my own paper", "citing_year": 2004}


@pytest.fixture(scope="module")
def recommender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recommender]:
    folder = tmp_path_factory.mktemp("leaks")
    contexts = write_lines(folder / "contexts.jsonl", [BY_KEY])
    build_index([write_lines(folder / "papers.jsonl", ZEBRAS)], folder / "index", BuildOptions(citances=(contexts,)))
    with Recommender.open(folder / "index") as opened:
        yield opened


def found(recommender: Recommender, context: Context, filters: Filters = NO_FILTERS) -> set[str]:
    ((_, candidates),) = recommender.candidates(recommender.topics([context]), 3, filters)
    return {candidate.paper_id for candidate in candidates}


def test_its_own_sentence_does_not_find_what_it_cites_under_whatever_name(recommender: Recommender) -> None:
    assert "cited" in found(recommender, Context(text=SENTENCE))
    assert "cited" in found(recommender, Context(text=SENTENCE, citing_key="another paper"))
    assert "cited" not in found(recommender, Context(text=SENTENCE, citing_key="my  own paper"))
    names = [citing_name(None, key) for key in ("a  key", "CorpusId:12", " ", None)]
    assert (names, citing_name("7", "a key")) == (["a_key", "12", None, None], "7")


def test_the_year_that_the_index_knows_counts_and_filters_of_the_caller_stay(recommender: Recommender) -> None:
    assert "newer" in found(recommender, Context(text=SENTENCE))
    assert "newer" not in found(recommender, Context(text=SENTENCE, citing_id="citing"))
    fair = Filters(as_of_year=2005, citing_ids=("citing",))
    assert found(recommender, Context(text=SENTENCE), fair) == {"cited"}
    assert found(recommender, Context(text=SENTENCE, citing_year=2020), fair) == {"cited"}
    assert {hit.paper.paper_id for hit in recommender.search(SENTENCE, 3, fair)} == {"cited"}


def test_a_cross_encoder_that_does_not_help_is_not_asked(hybrid_index: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(hybrid_index, index)
    trained = trained_of(index, "cross-encoder")
    trained.mkdir(parents=True)
    for weight, system in ((0.0, "hybrid+ltr"), (0.5, "hybrid+cross-encoder")):
        (trained / "manifest.json").write_bytes(orjson.dumps({"weight": weight}))
        assert default_system(index) == system


def test_many_are_answered_as_one_by_one(hybrid_index: Path) -> None:
    contexts = [Context(text=f"{text} <REF>") for text in ("term weighting", "dark matter", "[12]", "folding") * 5]
    with Recommender.open(hybrid_index, "hybrid") as recommender:
        many = list(recommender.candidates(recommender.topics(contexts), 5))
        assert [topic.context for topic, _ in many] == contexts
        for context, (_, hits) in zip(contexts, many, strict=True):
            single = recommender.search(context, 5) if context.text != "[12] <REF>" else []
            assert hits.paper_ids() == [hit.paper.paper_id for hit in single]
