"""The demo corpus keeps its promises: counts, spread, and no text twice."""

import json
import re
from collections import Counter
from typing import Any

from tests.conftest import DEMO

YEARS = [(1996, 2000), (2001, 2005), (2006, 2010), (2011, 2015), (2016, 2020)]


def load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]


def test_papers_and_contexts() -> None:
    papers, abstracts = load("papers/papers-00000.jsonl"), load("abstracts/abstracts-00000.jsonl")
    contexts = load("contexts.jsonl")
    years: dict[str, list[int]] = {}
    for paper in papers:
        assert paper["title"] and paper["venue"] and paper["authors"] and paper["citationcount_approximate"] is True
        years.setdefault(paper["s2fieldsofstudy"][0]["category"], []).append(paper["year"])
    assert Counter(map(len, years.values())) == {14: 18}
    for of_field in years.values():
        assert all(sum(first <= year <= last for year in of_field) >= 2 for first, last in YEARS)
    assert [paper["corpusid"] for paper in papers] == [abstract["corpusid"] for abstract in abstracts]
    cited = Counter(context["cited_ids"][0] for context in contexts)
    assert set(cited) == {paper["corpusid"] for paper in papers} and set(cited.values()) <= {2, 3}
    texts = [one.get("title") or one.get("abstract") or one["text"] for one in (*papers, *abstracts, *contexts)]
    assert max(Counter(re.sub(r"\W+", " ", text.lower()).strip() for text in texts).values()) == 1
