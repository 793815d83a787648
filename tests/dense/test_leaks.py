"""What must not speak for a paper: its citing paper under whatever name, and what came after it."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from citerec.index.build import BuildOptions, build_index
from citerec.index.manifest import generation_of, trained_of
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context, Filters, citing_name
from citerec.systems import default_system
from tests.conftest import write_lines

PAPERS = [
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
    build_index([write_lines(folder / "papers.jsonl", PAPERS)], folder / "index", BuildOptions(citances=(contexts,)))
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


def test_a_cross_encoder_that_does_not_help_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("1")
    trained = trained_of(tmp_path, "cross-encoder")
    for folder in (generation_of(tmp_path) / "dense", trained):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(orjson.dumps({"weight": 0.0}))
    assert default_system(tmp_path) == "hybrid+ltr"
    (trained / "manifest.json").write_bytes(orjson.dumps({"weight": 0.5}))
    assert default_system(tmp_path) == "hybrid+cross-encoder"


def test_many_are_answered_as_one_by_one(hybrid_index: Path) -> None:
    contexts = [Context(text=f"{text} <REF>") for text in ("term weighting", "dark matter", "[12]", "folding") * 5]
    with Recommender.open(hybrid_index, "hybrid") as recommender:
        many = list(recommender.candidates(recommender.topics(contexts), 5))
        assert [topic.context for topic, _ in many] == contexts
        for context, (_, hits) in zip(contexts, many, strict=True):
            single = recommender.search(context, 5) if context.text != "[12] <REF>" else []
            assert hits.paper_ids() == [hit.paper.paper_id for hit in single]
