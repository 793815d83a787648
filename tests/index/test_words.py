"""The engine without Java: how text becomes terms, and scores against bm25s and against the formula written out."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, strategies as st

from citerec.contexts.topic import Topic
from citerec.index.build import BuildOptions, build_index
from citerec.index.words import embedded
from citerec.index.words.analysis import STOP_WORDS, analysis_of, terms_of, words_of
from citerec.index.words.embedded import K1, B, Postings, PostingsWriter
from citerec.recommend import Recommender
from citerec.records import Filters
from citerec.systems import Recipe
from tests.conftest import write_lines

WORDS = "graph ranking neural query citation of corpus 漢字 naïve".split()
TEXTS = st.lists(st.text() | st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=9)


def written(folder: Path, *parts: Sequence[str]) -> Path:
    writer = PostingsWriter(folder)
    for part in parts:
        writer.append(analysis_of(part), len(part))
    writer.finish()
    return folder


def scores_of(folder: Path, terms: Sequence[str], bm25: tuple[float, float] = (K1, B)) -> list[float]:
    scores = np.zeros(len(np.load(folder / "lengths.npy")), np.float32)
    Postings(folder, len(scores)).add(scores, Counter(terms), bm25=bm25)
    return scores.tolist()


def by_formula(texts: Sequence[str], terms: Sequence[str], k1: float, b: float) -> list[float]:
    """BM25 as Lucene has it, and its mean length: of the texts that have a term."""
    times = [Counter(term for term in terms_of(text) if term) for text in texts]
    having = [one.total() for one in times if one]
    scores = []
    for one in times:
        score = 0.0
        for term in terms:
            if one[term]:
                frequency = sum(other[term] > 0 for other in times)
                idf = math.log(1 + (len(having) - frequency + 0.5) / (frequency + 0.5))
                norm = k1 * (1 - b + b * one.total() * len(having) / sum(having))
                score += idf * one[term] / (one[term] + norm)
        scores.append(score)
    return scores


@given(TEXTS)
def test_words_of_any_text_are_found_again_and_an_analysis_of_many_is_that_of_each(texts: list[str]) -> None:
    for text in texts:
        words = words_of(text)
        assert [words_of(word) for word in words] == [[word] for word in words]
        assert words_of(" ".join(words)) == words
        assert [term is None for term in terms_of(text)] == [word in STOP_WORDS for word in words]
    analysis = analysis_of(texts)
    of_texts = [[analysis.terms[place] for place in analysis.places[analysis.texts == at]] for at in range(len(texts))]
    assert of_texts == [[term for term in terms_of(text) if term] for text in texts]


def test_words_and_terms_that_are_stems_with_gaps_for_stop_words() -> None:
    for text, words in (
        ("The BM25-based state-of-the-art, e.g. x_1 [3]!", "the bm25 based state of the art e g x_1 3"),
        ("Straße naïve ΣΊΣΥΦΟΣ ДОМ", "straße naïve σίσυφος дом"),
        ("漢字かな and Rank検索", "漢 字 か な and rank 検 索"),
        ("한국어 문서", "한국어 문서"),
    ):
        assert words_of(text) == words.split()
    assert terms_of("Rankings of the ranked documents") == ["rank", None, None, "rank", "document"]


@given(TEXTS, st.floats(0, 9), st.floats(0, 1))
def test_scores_are_those_of_the_formula_for_parameters_chosen_at_query_time(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], k1: float, b: float
) -> None:
    folder = written(tmp_path_factory.mktemp("postings") / "x", texts)
    terms = [term for text in texts[:4] for term in terms_of(text) if term]
    for bm25 in ((K1, B), (k1, b)):
        assert scores_of(folder, terms, bm25) == pytest.approx(by_formula(texts, terms, *bm25), rel=1e-4, abs=1e-6)


def test_the_package_bm25s_opens_the_files_and_finds_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(3)
    texts = [" ".join(draws.choices(WORDS, k=draws.randrange(12))) for _ in range(300)]
    whole = written(tmp_path / "whole", texts)
    monkeypatch.setattr(embedded, "_MERGED", 50)
    in_parts = written(tmp_path / "parts", texts[:100], texts[100:101], texts[101:])
    for path in whole.iterdir():
        assert (in_parts / path.name).read_bytes() == path.read_bytes()
    assert not [path for path in in_parts.iterdir() if path.name.startswith(".")]
    theirs = bm25s.BM25.load(whole, mmap=True)
    for query in (["graph"], ["graph", "rank", "neural"], ["漢", "字", "naïv", "queri"], ["citat", "citat"]):
        assert scores_of(whole, query) == pytest.approx(theirs.get_scores(query).tolist(), rel=1e-5)


@pytest.mark.parametrize(
    "filters", [Filters(), Filters(as_of_year=2015, citing_ids=("c1", "c9")), Filters(exclude=("p001",))]
)
def test_a_short_list_is_the_beginning_of_a_long_one(tmp_path: Path, filters: Filters) -> None:
    """Of few words, so that many scores are equal; with sentences that add up, each further one decayed."""
    draws = random.Random(11)

    def text(longest: int) -> str:
        return " ".join(draws.choices(WORDS[:5], k=draws.randrange(1, longest)))

    papers = [{"paper_id": f"p{n:03}", "title": text(4), "year": 2000} for n in range(150)]
    contexts = [
        {"context_id": str(n), "text": f"{text(5)} <REF>", "citing_id": f"c{n % 40}", "citing_year": 2001 + n % 40}
        | {"cited_ids": [f"p{int(150 * draws.random() ** 2):03}"]}
        for n in range(400)
    ]
    options = BuildOptions(citances=(write_lines(tmp_path / "contexts.jsonl", contexts),))
    build_index([write_lines(tmp_path / "papers.jsonl", papers)], tmp_path / "index", options)
    with Recommender.open(tmp_path / "index", Recipe.load(None, ["words.citance_decay=0.4"])) as recommender:
        (words,) = recommender.retrievers
        for query in ("graph ranking", "neural", "citation query graph"):
            whole = words.search(Topic(query), 150, filters).pairs()
            assert len(whole) > 40
            for k in (1, 2, 3, 5, 10, 40, 80):
                assert words.search(Topic(query), k, filters).pairs() == whole[:k]
