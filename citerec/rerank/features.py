"""The features of candidates for learning to rank. They use only what the search used under its leak rules."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from citerec.contexts.topic import Topic
from citerec.records import Paper
from citerec.retrieve.candidates import Candidates

Floats = npt.NDArray[np.float32]

_RANKED = ("fused", "bm25", "citance", "citances", "dense")
_FOUND = {
    "fused": "score of the fused lists",
    "bm25": "BM25 of title and abstract",
    "citance": "BM25 of the best citing sentence",
    "citance_2": "BM25 of the second best citing sentence",
    "citances": "BM25 of all citing sentences found, summed",
    "citances_found": "how many citing sentences were found",
    "dense": "cosine of the vectors",
}
_WORD = re.compile(r"[^\W_]+")
_SECTIONS = ("introduction", "related", "background", "method", "experiment", "result", "discussion", "conclusion")
_INTENTS = ("background", "method", "result")
_UNKNOWN = math.nan
_KEPT = 1 << 14


def _year_gap(topic: Topic, paper: Paper) -> float:
    year = topic.citing_year
    return _UNKNOWN if year is None or paper.year is None else year - paper.year


def _common_authors(topic: Topic, paper: Paper) -> float:
    if topic.citing is None or not topic.citing.authors:
        return _UNKNOWN
    return len(set(topic.citing.authors) & set(paper.authors))


def _same_venue(topic: Topic, paper: Paper) -> float:
    if topic.citing is None or not topic.citing.venue or not paper.venue:
        return _UNKNOWN
    return float(topic.citing.venue.casefold() == paper.venue.casefold())


_OF_PAPER: dict[str, tuple[str, Callable[[Topic, Paper], float]]] = {
    "log citations": (
        "logarithm of 1 + the citation count that the corpus gives",
        lambda _, paper: _UNKNOWN if paper.citation_count is None else math.log1p(paper.citation_count),
    ),
    "age": ("years from the paper to the citing paper", _year_gap),
    "common authors": ("authors whom the paper shares with the citing paper", _common_authors),
    "same venue": ("whether both have the same venue", _same_venue),
}
_ABSTRACT = {"has abstract": "whether the corpus has its abstract"}
_OF_WORDS = {
    "title words found": "share of the title's words that the sentence has",
    "title words shared": "how many words the title shares with the sentence",
    "authors named": "authors whose last name the sentence has",
}
_OF_CONTEXT = {
    "sentence words": "how many different words the sentence has",
    "section": "the section of the sentence, as a number",
    "intent": "why the paper is cited, as a number",
}

FEATURES: dict[str, str] = {
    **_FOUND,
    **{f"{name} rank": f"rank among the candidates: {_FOUND[name]}" for name in _RANKED},
    **{f"{name} share": f"relative to the best candidate: {_FOUND[name]}" for name in _RANKED},
    **{name: meaning for name, (meaning, _) in _OF_PAPER.items()},
    **_ABSTRACT,
    **_OF_WORDS,
    **_OF_CONTEXT,
}
"""The features by name, in the order of their columns, and what they mean."""

_KIND_OF_SIGNAL = {"fused": "words and vectors", "bm25": "title and abstract", "dense": "vectors"}
KINDS: dict[str, str] = {
    **{
        name: _KIND_OF_SIGNAL.get(name.split()[0], "citing sentences") for name in FEATURES if name.split()[0] in _FOUND
    },
    "log citations": "citation count",
    "age": "age",
    "common authors": "authors in common",
    "same venue": "venue in common",
    "has abstract": "abstract",
    "title words found": "words of the title",
    "title words shared": "words of the title",
    "authors named": "authors named",
    **dict.fromkeys(_OF_CONTEXT, "the sentence itself"),
}
"""The kind of each feature: reasons for a hit are summed by kind."""


def features_of(topic: Topic, candidates: Candidates, papers: Mapping[str, Paper]) -> Floats:
    """The features of the candidates of one context, (candidates, len(FEATURES)); NaN where unknown.

    `papers` are their records by id; abstracts and TLDRs are not needed.
    """
    records = [papers.get(paper_id) or Paper(paper_id) for paper_id in candidates.paper_ids()]
    signals = {name: candidates.signal(name).astype(np.float32) for name in _FOUND}
    ranks = [_ranks(signals[name]) for name in _RANKED]
    shares = [_shares(signals[name]) for name in _RANKED]
    of_paper = [[measure(topic, paper) for paper in records] for _, measure in _OF_PAPER.values()]
    has_abstract = candidates.papers.has_abstract[candidates.rows]
    sentence = words_of(topic.text)
    of_words = np.array([_shared_words(sentence, paper) for paper in records], np.float32).reshape(-1, len(_OF_WORDS)).T
    of_context = (len(sentence), _section(topic.context.section), _place(topic.context.intent, _INTENTS))
    columns = [*signals.values(), *ranks, *shares, *of_paper, has_abstract, *of_words]
    columns += [np.full(len(candidates), value) for value in of_context]
    return np.array(columns, np.float32).T


def words_of(text: str) -> frozenset[str]:
    """The different words of a text, in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, best first; NaN for missing values."""
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(len(values), np.float32)
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[np.isnan(values)] = _UNKNOWN
    return ranks


def _shares(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    best = float(known.max()) if len(known) else 0.0
    return values / best if best > 0 else np.full_like(values, _UNKNOWN)


def _shared_words(sentence: frozenset[str], paper: Paper) -> tuple[float, float, float]:
    title = _words_of_title(paper.title)
    shared = len(title & sentence)
    return shared / len(title) if title else _UNKNOWN, shared, len(_last_names(paper.authors) & sentence)


# Papers that many contexts find are split into words once.
_words_of_title = lru_cache(_KEPT)(words_of)


@lru_cache(_KEPT)
def _last_names(authors: tuple[str, ...]) -> frozenset[str]:
    return frozenset(author.split()[-1].casefold() for author in authors if author.strip())


def _section(heading: str | None) -> float:
    if heading:
        for number, name in enumerate(_SECTIONS):
            if name in heading.casefold():
                return number
    return _UNKNOWN


def _place(name: str | None, names: Sequence[str]) -> float:
    return names.index(name) if name in names else _UNKNOWN
