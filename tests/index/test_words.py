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
def test_papers_score_the_weighted_sum_of_their_fields_and_decayed_sentences_at_every_depth(
    tmp_path: Path, filters: Filters
) -> None:
    """Of few words, so that many scores are equal."""
    draws, folder = random.Random(11), tmp_path
    titles = [" ".join(draws.choices(WORDS[:5], k=draws.randrange(1, 4))) for _ in range(150)]
    papers = [{"paper_id": f"p{n:03}", "title": title, "year": 2000} for n, title in enumerate(titles)]
    said: dict[str, list[tuple[str, str, int]]] = {}
    for number in range(400):
        cited = f"p{int(150 * draws.random() ** 2):03}"
        text = " ".join(draws.choices(WORDS[:5], k=draws.randrange(1, 5)))
        said.setdefault(cited, []).append((text, f"c{number % 40}", 2001 + number % 40))
    contexts = [
        {"context_id": f"{cited}-{n}", "text": f"{text} <REF>", "cited_ids": [cited]}
        | {"citing_id": citing, "citing_year": year}
        for cited, all_said in said.items()
        for n, (text, citing, year) in enumerate(all_said)
    ]  # fmt: skip
    citances = write_lines(folder / "contexts.jsonl", contexts)
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index", BuildOptions(citances=(citances,)))
    sentences = [(cited, *one) for cited, all_said in said.items() for one in all_said]
    settings = ["weights.text=1", "weights.title=0.5", "weights.citances=1.5", "citance_decay=0.4", "bm25.k1=0.9"]
    with Recommender.open(folder / "index", Recipe.load(None, [f"words.{one}" for one in settings])) as recommender:
        for query in ("graph ranking", "neural", "citation query graph"):
            terms = [term for term in terms_of(query) if term]
            totals = {f"p{n:03}": 1.5 * one for n, one in enumerate(by_formula(titles, terms, 0.9, 0.75))}
            of_sentences: dict[str, list[float]] = {}
            scores = by_formula([text for _, text, _, _ in sentences], terms, 0.9, 0.75)
            for (cited, _, citing, year), score in zip(sentences, scores, strict=True):
                if citing not in filters.citing_ids and year <= (filters.as_of_year or 9999):
                    of_sentences.setdefault(cited, []).append(score)
            for cited, found in of_sentences.items():
                totals[cited] += 1.5 * sum(0.4**n * one for n, one in enumerate(sorted(found, reverse=True)))
            expected = {one: score for one, score in totals.items() if score and one not in filters.exclude}
            (words,) = recommender.retrievers
            whole = words.search(Topic(query), 150, filters)
            assert dict(whole.pairs()) == pytest.approx(expected, rel=1e-5)
            for k in (1, 2, 3, 5, 10, 40, 80):
                assert words.search(Topic(query), k, filters).pairs() == whole.pairs()[:k]
