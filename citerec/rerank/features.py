"""The features of candidates for learning to rank. They use only what the search used under its leak rules.

Most are ranks among the candidates, shares of the best one, or differences from it, and so mean the same in every
index: `PORTABLE`. The others are for rankers that learn on the index that they rank: scores, and citation counts, for
how much these say depends on how contexts and papers were chosen.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.contexts.leaks import LeakRules
from citerec.contexts.near import names_before
from citerec.contexts.topic import Topic
from citerec.records import MARKER, Paper
from citerec.retrieve.candidates import Candidates

Floats = npt.NDArray[np.float32]

_WORD = re.compile(r"[^\W_]+")
_SECTIONS = ("introduction", "related", "background", "method", "experiment", "result", "discussion", "conclusion")
_INTENTS = ("background", "method", "result")
_UNKNOWN = math.nan
_KEPT = 1 << 15
_NEAR = 6  # words before the marker

_SIGNALS = {
    "fused": "score of the fused lists",
    "bm25": "BM25 of title and abstract",
    "citance": "BM25 of the best citing sentence",
    "citance_2": "BM25 of the second best citing sentence",
    "citances": "BM25 of all citing sentences found, summed",
    "citances_found": "how many citing sentences were found",
    "dense": "cosine of the vectors",
}
_RANKED = ("fused", "bm25", "citance", "citances", "dense")


class Feature(NamedTuple):
    """What a feature means, of which kind it is (reasons are summed by kind), and whether it is the same everywhere."""

    meaning: str
    kind: str
    portable: bool = True


_KIND_OF = {"fused": "words and vectors", "bm25": "title and abstract", "dense": "vectors"}


def _kind(signal: str) -> str:
    return _KIND_OF.get(signal, "citing sentences")


FEATURES: dict[str, Feature] = {
    **{name: Feature(meaning, _kind(name), name == "citances_found") for name, meaning in _SIGNALS.items()},
    **{f"{name} rank": Feature(f"rank among the candidates: {_SIGNALS[name]}", _kind(name)) for name in _RANKED},
    **{f"{name} share": Feature(f"relative to the best candidate: {_SIGNALS[name]}", _kind(name)) for name in _RANKED},
    "citance_2 share": Feature("second best citing sentence, relative to the best of all", "citing sentences"),
    "dense gap": Feature("how far its cosine is below the best", "vectors"),
    "citing papers": Feature("papers of the index known to cite it", "citation count", portable=False),
    "citing papers rank": Feature(
        "rank among the candidates: papers of the index known to cite it", "citation count", portable=False
    ),
    "log citations": Feature(
        "logarithm of 1 + the citation count that the corpus gives", "citation count", portable=False
    ),
    "citations rank": Feature("rank among the candidates: that citation count", "citation count", portable=False),
    "age": Feature("years from the paper to the citing paper", "age"),
    "common authors": Feature("authors whom the paper shares with the citing paper", "authors in common"),
    "same venue": Feature("whether both have the same venue", "venue in common"),
    "has abstract": Feature("whether the corpus has its abstract", "abstract", portable=False),
    "title in sentence": Feature(
        "share of the title's words that the sentence has, rare ones more", "words of the title"
    ),
    "title near": Feature(f"the same for the {_NEAR} words before the marker", "words of the title"),
    "title around": Feature("the same for the sentences around", "words of the title"),
    "title in citing title": Feature("the same for the title of the citing paper", "words of the title"),
    "title words shared": Feature("how many words the title shares with the sentence", "words of the title"),
    "title words": Feature("how many words the title has", "words of the title"),
    "name in sentence": Feature("whether the sentence has the name before the title's colon", "words of the title"),
    "authors named": Feature("authors whose last name the sentence has", "authors named"),
    "first author near": Feature("whether the first author's last name stands before the marker", "authors named"),
    "named before": Feature("share of the names right before the marker that are its authors", "authors named"),
    "sentence words": Feature("how many different words the sentence has", "the sentence itself"),
    "section": Feature("the section of the sentence, as a number", "the sentence itself", portable=False),
    "intent": Feature("why the paper is cited, as a number", "the sentence itself", portable=False),
    "cited before": Feature("how often the draft cites it already", "cited in the draft"),
    "cited ago": Feature("how many citations ago the draft cited it last", "cited in the draft"),
    "draft papers": Feature("how many papers the draft cites", "cited in the draft"),
    "draft mean gap": Feature("how far its cosine with what the draft cites is below the best", "near the draft"),
    "draft mean rank": Feature("rank among the candidates: that cosine", "near the draft"),
    "draft nearest": Feature("cosine with the nearest of what the draft cites", "near the draft"),
    "draft nearest rank": Feature("rank among the candidates: that cosine", "near the draft"),
    "draft cocited rank": Feature("rank: papers that cite both it and what the draft cites", "near the draft"),
    "draft coupled rank": Feature("rank: papers that both it and the draft cite", "near the draft"),
    "draft authors": Feature("papers that the draft cites of one of its authors, at most", "authors in the draft"),
    "draft venue": Feature("share of its venue in what the draft cites", "venue in the draft"),
}
"""The features by name, in the order of their columns."""

PORTABLE = tuple(name for name, feature in FEATURES.items() if feature.portable)
"""Those that mean the same in every index."""

GROUPS: dict[str, tuple[str, ...]] = {
    "citing sentences": (
        *(name for name in FEATURES if name.startswith(("citance", "citing papers"))),
        *("draft cocited rank", "draft coupled rank"),
    ),
    "years": ("age",),
    "authors": ("common authors", "draft authors", "authors named", "first author near", "named before"),
    "venues": ("same venue", "draft venue"),
    "draft": tuple(name for name in FEATURES if name.startswith(("cited ", "draft "))),
}
"""What an index, or a topic, may lack altogether: the features that are unknown then."""


def features_of(
    topic: Topic,
    candidates: Candidates,
    papers: Mapping[str, Paper],
    uncited: "npt.NDArray[np.bool_] | None" = None,
) -> Floats:
    """The features of the candidates of one context, (candidates, len(FEATURES)); NaN where unknown.

    Args:
        topic: The topic.
        candidates: Best first.
        papers: Their records by id; abstracts and TLDRs are not needed.
        uncited: Which of them count as never cited, (candidates,); none by default.
    """
    records = [papers.get(paper_id) or Paper(paper_id) for paper_id in candidates.paper_ids()]
    columns: dict[str, npt.ArrayLike] = {name: candidates.signal(name) for name in _SIGNALS}
    for name in _RANKED:
        values = candidates.signal(name)
        columns |= {f"{name} rank": _ranks(values), f"{name} share": _shares(values)}
    columns["citance_2 share"] = _shares(candidates.signal("citance_2"), candidates.signal("citance"))
    columns["dense gap"] = _gaps(candidates.signal("dense"))
    columns |= _of_papers(topic, records) | _known_citations(topic, candidates, uncited)
    columns["has abstract"] = candidates.papers.has_abstract[candidates.rows]
    columns |= _of_words(topic, records)
    columns |= _of_draft(topic, candidates, records)
    rows = len(candidates)
    return np.array([np.broadcast_to(np.asarray(columns[name], np.float32), rows) for name in FEATURES], np.float32).T


def words_of(text: str) -> frozenset[str]:
    """The different words of a text, in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def _of_papers(topic: Topic, records: Sequence[Paper]) -> dict[str, npt.ArrayLike]:
    citing, year = topic.citing, topic.citing_year
    authors = set(citing.authors) if citing else set()
    venue = citing.venue.casefold() if citing and citing.venue else None
    counts = np.array([_UNKNOWN if one.citation_count is None else one.citation_count for one in records], float)
    return {
        "log citations": np.log1p(counts),
        "citations rank": _ranks(counts),
        "age": [_UNKNOWN if year is None or one.year is None else year - one.year for one in records],
        "common authors": [len(authors.intersection(one.authors)) for one in records] if authors else _UNKNOWN,
        "same venue": [one.venue.casefold() == venue if venue and one.venue else _UNKNOWN for one in records],
    }


def _known_citations(
    topic: Topic, candidates: Candidates, uncited: "npt.NDArray[np.bool_] | None"
) -> dict[str, npt.ArrayLike]:
    """How many papers are known to cite each candidate; unknown if none is known to cite any of them."""
    citing, counts = candidates.papers.citing, np.zeros(len(candidates))
    if citing is not None:
        places, _ = citing.of(candidates.rows, LeakRules().restrict(topic))
        counts = np.bincount(places, minlength=len(candidates)).astype(float)
    if uncited is not None:
        counts[uncited] = 0
    if not counts.any():
        return {"citing papers": _UNKNOWN, "citing papers rank": _UNKNOWN}
    return {"citing papers": counts, "citing papers rank": _ranks(counts)}


def _of_words(topic: Topic, records: Sequence[Paper]) -> dict[str, npt.ArrayLike]:
    titles = [_words_of_title(one.title) for one in records]
    # The words of all titles in one array, by number, and for each the title that it is in.
    spelled = list(itertools.chain.from_iterable(titles))
    numbers = {word: number for number, word in enumerate(dict.fromkeys(spelled))}
    words = np.fromiter(map(numbers.__getitem__, spelled), np.int64, len(spelled))
    lengths = np.array([len(title) for title in titles], np.int64)
    owners = np.repeat(np.arange(len(titles)), lengths)
    # Rare among the titles of the candidates: the weights of words need no statistics of the corpus.
    weights = np.log1p(len(titles) / np.maximum(np.bincount(words, minlength=len(numbers)), 1))
    whole = np.bincount(owners, weights[words], len(titles))
    whole[whole == 0] = 1.0

    def among(given: frozenset[str]) -> "npt.NDArray[np.bool_]":
        """Which words of the titles are among some words."""
        known = np.zeros(len(numbers), bool)
        known[[numbers[word] for word in given if word in numbers]] = True
        return known[words]

    def share(given: frozenset[str]) -> "npt.NDArray[np.float64]":
        shares: npt.NDArray[np.float64] = np.bincount(owners, weights[words] * among(given), len(titles)) / whole
        return shares

    text = topic.context.text
    before, marker, _ = text.partition(MARKER)
    last = before.split()
    sentence, named = words_of(topic.text), words_of(text)
    just_named = words_of(" ".join(last[-_NEAR - 2 :]))
    names = names_before(topic)
    last_names = [_last_names(one.authors) for one in records]
    return {
        "title in sentence": share(sentence),
        "title near": share(words_of(" ".join(last[-_NEAR:]))) if marker else _UNKNOWN,
        "title around": share(words_of(topic.neighbours)),
        "title in citing title": share(words_of(topic.citing_title)) if topic.citing_title else _UNKNOWN,
        "title words shared": np.bincount(owners, among(sentence), len(titles)),
        "title words": lengths,
        "name in sentence": [bool(name := _name_of_title(one.title)) and name <= sentence for one in records],
        "authors named": [len(authors & named) for authors in last_names],
        "first author near": (
            [
                not authors.isdisjoint(just_named) and not _last_names(one.authors[:1]).isdisjoint(just_named)
                for one, authors in zip(records, last_names, strict=True)
            ]
            if marker
            else _UNKNOWN
        ),
        "named before": [len(authors & names) / len(names) for authors in last_names] if names else _UNKNOWN,
        "sentence words": len(sentence),
        "section": _section(topic.context.section),
        "intent": _place(topic.context.intent, _INTENTS),
    }


def _of_draft(topic: Topic, candidates: Candidates, records: Sequence[Paper]) -> dict[str, npt.ArrayLike]:
    if topic.cited_before is None:
        return dict.fromkeys(GROUPS["draft"], _UNKNOWN)
    times = np.nan_to_num(candidates.signal("draft_times"))
    mean, nearest = candidates.signal("draft_mean"), candidates.signal("draft_nearest")
    own = times > 0
    authors = Counter(author for one in topic.cited for author in set(one.authors))
    venues = Counter(one.venue for one in topic.cited if one.venue)
    return {
        "cited before": times,
        "cited ago": candidates.signal("draft_ago"),
        "draft papers": len(topic.cited),
        "draft mean gap": _gaps(mean),
        "draft mean rank": _ranks(mean),
        "draft nearest": nearest,
        "draft nearest rank": _ranks(nearest),
        "draft cocited rank": _ranks_above_0(candidates.signal("draft_cocited")),
        "draft coupled rank": _ranks_above_0(candidates.signal("draft_coupled")),
        # The candidate itself does not count.
        "draft authors": [
            max((authors[author] for author in one.authors), default=0) - known
            for one, known in zip(records, own.tolist(), strict=True)
        ],
        "draft venue": [
            (venues[one.venue] - known) / len(topic.cited) if one.venue and topic.cited else _UNKNOWN
            for one, known in zip(records, own.tolist(), strict=True)
        ],
    }


def _ranks(values: "npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
    """Ranks from 1, best first; NaN for missing values."""
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[np.isnan(values)] = _UNKNOWN
    return ranks


def _ranks_above_0(values: "npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
    return _ranks(np.where(values > 0, values, _UNKNOWN))


def _shares(
    values: "npt.NDArray[np.float64]", of: "npt.NDArray[np.float64] | None" = None
) -> "npt.NDArray[np.float64]":
    whole = values if of is None else of
    known = whole[~np.isnan(whole)]
    best = float(known.max()) if len(known) else 0.0
    return values / best if best > 0 else np.full_like(values, _UNKNOWN)


def _gaps(values: "npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
    known = values[~np.isnan(values)]
    return known.max() - values if len(known) else values


# Papers that many contexts find are split into words once.
_words_of_title = lru_cache(_KEPT)(words_of)


@lru_cache(_KEPT)
def _name_of_title(title: str) -> frozenset[str]:
    """What stands before a colon, if it is one word or two: "BERT: Pre-training of …"."""
    name, colon, _ = title.partition(":")
    return words_of(name) if colon and len(name.split()) <= 2 else frozenset()


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
