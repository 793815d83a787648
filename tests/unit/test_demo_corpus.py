"""The demo corpus keeps its promises: counts, spread, and no text twice."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.read import read_contexts
from tests.conftest import DEMO

FIELDS = {
    "Biology", "Chemistry", "Computer Science", "Materials Science", "Mathematics", "Medicine", "Physics",
    "Psychology", "Environmental Science", "Engineering", "Business", "Geography", "Political Science", "Sociology",
    "Geology", "History", "Art", "Philosophy",
}  # fmt: skip
YEARS = [(1996, 2000), (2001, 2005), (2006, 2010), (2011, 2015), (2016, 2020)]


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def papers() -> list[dict[str, Any]]:
    return load(DEMO / "papers" / "papers-00000.jsonl")


@pytest.fixture(scope="module")
def abstracts() -> list[dict[str, Any]]:
    return load(DEMO / "abstracts" / "abstracts-00000.jsonl")


@pytest.fixture(scope="module")
def contexts() -> list[dict[str, Any]]:
    return load(DEMO / "contexts.jsonl")


def first_field(paper: dict[str, Any]) -> str:
    return str(paper["s2fieldsofstudy"][0]["category"])


def words(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()


def test_counts(papers: list[Any], abstracts: list[Any], contexts: list[Any]) -> None:
    assert (len(papers), len(abstracts), len(contexts)) == (252, 252, 630)
    assert Counter(map(first_field, papers)) == dict.fromkeys(FIELDS, 14)


def test_every_field_spreads_over_the_years(papers: list[Any]) -> None:
    for field in FIELDS:
        years = [paper["year"] for paper in papers if first_field(paper) == field]
        for first, last in YEARS:
            assert sum(first <= year <= last for year in years) >= 2, (field, first)
        assert sum(year < 1996 for year in years) >= 2, field
        assert max(years) <= 2020


def test_every_paper_has_what_a_reader_needs(papers: list[Any], abstracts: list[Any]) -> None:
    assert [paper["corpusid"] for paper in papers] == [abstract["corpusid"] for abstract in abstracts]
    for paper, abstract in zip(papers, abstracts, strict=True):
        assert paper["title"]
        assert paper["venue"]
        assert paper["authors"]
        assert paper["citationcount_approximate"] is True
        assert 40 <= len(abstract["abstract"].split()) <= 120


def test_each_paper_is_cited_by_two_or_three_sentences(papers: list[Any], contexts: list[Any]) -> None:
    cited = Counter(context["cited_ids"][0] for context in contexts)
    assert set(cited) == {paper["corpusid"] for paper in papers}
    assert set(cited.values()) <= {2, 3}


def test_contexts_are_in_the_format_and_usable() -> None:
    for context in read_contexts(DEMO / "contexts.jsonl"):
        assert re.search(r"[.?!]$", context.text)
        assert not re.search(r"\[\d|et al", context.text)


def test_contexts_spread_over_length_position_and_intent(contexts: list[Any]) -> None:
    cells: Counter[tuple[str, str]] = Counter()
    for context in contexts:
        tokens = context["text"].split()
        place = next(number for number, token in enumerate(tokens) if "<REF>" in token) / len(tokens)
        length = "short" if len(tokens) <= 14 else "medium" if len(tokens) <= 27 else "long"
        position = "last" if re.search(r"<REF>[.?!]$", context["text"]) else "first" if place < 1 / 3 else "middle"
        cells[length, position] += 1
    least = {
        ("medium", "first"): 60,
        ("medium", "middle"): 180,
        ("medium", "last"): 140,
        ("short", "last"): 60,
        ("long", "last"): 60,
    }
    assert {cell: cells[cell] for cell, number in least.items() if cells[cell] < number} == {}
    intents = Counter(context["intent"] for context in contexts)
    assert set(intents) == {"background", "method", "result"}
    assert min(intents.values()) >= 0.2 * len(contexts)


def test_no_text_repeats(papers: list[Any], abstracts: list[Any], contexts: list[Any]) -> None:
    texts = Counter(
        words(text)
        for text in [
            *(paper["title"] for paper in papers),
            *(abstract["abstract"] for abstract in abstracts),
            *(context["text"] for context in contexts),
        ]
    )
    assert [text for text, times in texts.items() if times > 1] == []
    sentences = Counter(
        words(sentence) for abstract in abstracts for sentence in re.split(r"(?<=[.!?])\s+", abstract["abstract"])
    )
    assert [sentence for sentence, times in sentences.items() if times > 1] == []


def test_no_sentence_is_the_title_in_other_clothes(papers: list[Any], contexts: list[Any]) -> None:
    titles = {paper["corpusid"]: words(paper["title"]) for paper in papers}
    whole = [
        context["context_id"]
        for context in contexts
        if len(title := titles[context["cited_ids"][0]]) > 30 and title in words(context["text"])
    ]
    assert whole == []
