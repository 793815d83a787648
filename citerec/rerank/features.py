"""The features of candidates for learning to rank. They use only what the search used under its leak rules.

Most are ranks among the candidates, shares of the best one, or differences from it, and so mean the same in every
index: `PORTABLE`. The others are for rankers that learn on the index that they rank: scores, and citation counts, for
how much these say depends on how contexts and papers were chosen.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.contexts.leaks import LeakRules
from citerec.contexts.repeats import names_before
from citerec.contexts.topic import Topic
from citerec.index.columns import NO_TEXT, UNKNOWN, PaperColumns, hash_of, hashes_of, owners_of, words_in
from citerec.records import MARKER
from citerec.retrieve.candidates import Candidates

FeatureRows = npt.NDArray[np.float32]

_SECTIONS = ("introduction", "related", "background", "method", "experiment", "result", "discussion", "conclusion")
_INTENTS = ("background", "method", "result")
_UNKNOWN = np.nan
_NEAR = 6  # words before the marker

_RANKED = ("fused", "bm25", "citance", "citances", "dense")


class Feature(NamedTuple):
    """What a feature means, and of which kind it is: reasons are summed by kind."""

    meaning: str
    kind: str


_SIGNALS = {
    "fused": Feature("score of the fused lists", "words and vectors"),
    "bm25": Feature("BM25 of title and abstract", "title and abstract"),
    "citance": Feature("BM25 of the best citing sentence", "citing sentences"),
    "citance_2": Feature("BM25 of the second best citing sentence", "citing sentences"),
    "citances": Feature("BM25 of all citing sentences found, summed", "citing sentences"),
    "citances_found": Feature("how many citing sentences were found", "citing sentences"),
    "dense": Feature("cosine of the vectors", "vectors"),
}


def _compared(suffix: str, meaning: str) -> dict[str, Feature]:
    """Features that compare a signal of the candidates, for each of `_RANKED`."""
    return {
        f"{name} {suffix}": Feature(f"{meaning}: {_SIGNALS[name].meaning}", _SIGNALS[name].kind) for name in _RANKED
    }


FEATURES: dict[str, Feature] = {
    **_SIGNALS,
    **_compared("rank", "rank among the candidates"),
    **_compared("share", "relative to the best candidate"),
    "citance_2 share": Feature("second best citing sentence, relative to the best of all", "citing sentences"),
    "dense gap": Feature("how far its cosine is below the best", "vectors"),
    "citing papers": Feature("papers of the index known to cite it", "citation count"),
    "citing papers rank": Feature("rank among the candidates: papers of the index known to cite it", "citation count"),
    "log citations": Feature("logarithm of 1 + the citation count that the corpus gives", "citation count"),
    "citations rank": Feature("rank among the candidates: that citation count", "citation count"),
    "age": Feature("years from the paper to the citing paper", "age"),
    "common authors": Feature("authors whom the paper shares with the citing paper", "authors in common"),
    "same venue": Feature("whether both have the same venue", "venue in common"),
    "has abstract": Feature("whether the corpus has its abstract", "abstract"),
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
    "section": Feature("the section of the sentence, as a number", "the sentence itself"),
    "intent": Feature("why the paper is cited, as a number", "the sentence itself"),
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

_OF_ONE_INDEX = {*_SIGNALS, "has abstract", "section", "intent"} - {"citances_found"}
PORTABLE = tuple(
    name for name, feature in FEATURES.items() if name not in _OF_ONE_INDEX and feature.kind != "citation count"
)
"""Those that mean the same in every index."""

GROUPS: dict[str, tuple[str, ...]] = {
    "citing sentences": (
        *(name for name in FEATURES if name.startswith(("citance", "citing papers"))),
        *("draft cocited rank", "draft coupled rank"),
    ),
    "years": ("age",),
    "authors": ("common authors", "draft authors", "authors named", "first author near", "named before"),
    "venues": ("same venue", "draft venue"),
}
"""What an index may lack altogether: the features that are unknown then."""


def features_of(
    topic: Topic,
    candidates: Candidates,
    uncited: npt.NDArray[np.bool_] | None = None,
    wanted: Collection[str] = FEATURES.keys(),
) -> FeatureRows:
    """The features of the candidates of one context, (candidates, len(FEATURES)); NaN where unknown.

    Args:
        topic: The topic.
        candidates: Best first.
        uncited: Which of them count as never cited, (candidates,); none by default.
        wanted: The names of the features that are used; the others may be left unknown.
    """
    papers = candidates.papers.known.of(candidates.rows)
    columns: dict[str, npt.ArrayLike] = {name: candidates.signal(name) for name in _SIGNALS}
    for name in _RANKED:
        signal = candidates.signal(name)
        columns |= {f"{name} rank": _ranks(signal), f"{name} share": _shares(signal, signal)}
    columns["citance_2 share"] = _shares(candidates.signal("citance_2"), candidates.signal("citance"))
    columns["dense gap"] = _gaps(candidates.signal("dense"))
    columns |= _of_papers(topic, papers)
    if not {"citing papers", "citing papers rank"}.isdisjoint(wanted):
        columns |= _known_citations(topic, candidates, uncited)
    columns["has abstract"] = papers.has_abstract
    columns |= _of_title(topic, papers) | _of_names(topic, papers)
    columns |= _of_draft(topic, candidates, papers)
    table = np.empty((len(FEATURES), len(candidates)), np.float32)
    for place, name in enumerate(FEATURES):
        table[place] = columns.get(name, _UNKNOWN)
    return table.T


def _of_papers(topic: Topic, papers: PaperColumns) -> dict[str, npt.ArrayLike]:
    citing, year = topic.citing, topic.citing_year
    authors = citing.authors if citing else ()
    venue = hash_of(citing.venue.casefold()) if citing and citing.venue else None
    counts = np.where(papers.citation_counts == UNKNOWN, _UNKNOWN, papers.citation_counts)
    years = np.where(papers.years == UNKNOWN, _UNKNOWN, papers.years)
    has_venue = papers.venues[:, 0] != NO_TEXT
    return {
        "log citations": np.log1p(counts),
        "citations rank": _ranks(counts),
        "age": _UNKNOWN if year is None else year - years,
        "common authors": _shared(papers, 0, hashes_of(set(authors))) if authors else _UNKNOWN,
        "same venue": np.where(has_venue, papers.venues[:, 1] == venue, _UNKNOWN) if venue is not None else _UNKNOWN,
    }


def _known_citations(
    topic: Topic, candidates: Candidates, uncited: npt.NDArray[np.bool_] | None
) -> dict[str, npt.ArrayLike]:
    """How many papers are known to cite each candidate; unknown if none is known to cite any of them."""
    citing, counts = candidates.papers.citing, np.zeros(len(candidates))
    if citing is not None:
        places, _ = citing.pairs_of(candidates.rows, LeakRules().restrict(topic))
        counts = np.bincount(places, minlength=len(candidates)).astype(float)
    if uncited is not None:
        counts[uncited] = 0
    return {"citing papers": counts, "citing papers rank": _ranks(counts)} if counts.any() else {}


def _of_title(topic: Topic, papers: PaperColumns) -> dict[str, npt.ArrayLike]:
    titles, owners = len(papers.years), owners_of(papers.word_begins)
    words, numbers, counts = np.unique(papers.words, return_inverse=True, return_counts=True)
    # Rare among the titles of the candidates: the weights of words need no statistics of the corpus.
    weights = np.log1p(titles / counts)[numbers]
    whole = np.bincount(owners, weights, titles)
    whole[whole == 0] = 1.0

    def among(text: str) -> npt.NDArray[np.bool_]:
        """Which words of the titles a text has."""
        return np.asarray(_counted(words, hashes_of(words_in(text)))[numbers] > 0)

    def share(named: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Which share of each title some of its words are."""
        return np.asarray(np.bincount(owners, weights * named, titles) / whole)

    before, marker, _ = topic.context.text.partition(MARKER)
    in_sentence = among(topic.text)
    of_name = np.arange(len(owners)) < (papers.word_begins[:-1] + papers.name_words)[owners]
    names_found = np.bincount(owners, in_sentence & of_name, titles)
    heading, intent = (topic.context.section or "").casefold(), topic.context.intent
    return {
        "title in sentence": share(in_sentence),
        "title near": share(among(" ".join(before.split()[-_NEAR:]))) if marker else _UNKNOWN,
        "title around": share(among(topic.neighbours)),
        "title in citing title": share(among(topic.citing_title)) if topic.citing_title else _UNKNOWN,
        "title words shared": np.bincount(owners, in_sentence, titles),
        "title words": papers.word_begins[1:] - papers.word_begins[:-1],
        "name in sentence": (papers.name_words > 0) & (names_found == papers.name_words),
        "sentence words": len(set(words_in(topic.text))),
        "section": next((number for number, name in enumerate(_SECTIONS) if name in heading), _UNKNOWN),
        "intent": _INTENTS.index(intent) if intent in _INTENTS else _UNKNOWN,
    }


def _of_names(topic: Topic, papers: PaperColumns) -> dict[str, npt.ArrayLike]:
    before, marker, _ = topic.context.text.partition(MARKER)
    names = hashes_of(names_before(topic))
    just_named = hashes_of(words_in(" ".join(before.split()[-_NEAR - 2 :])))
    has_authors = np.flatnonzero(np.diff(papers.author_begins))
    first_near = np.zeros(len(papers.years))
    first_near[has_authors] = _counted(papers.authors[papers.author_begins[has_authors], 1], just_named) > 0
    return {
        "authors named": _shared(papers, 1, hashes_of(words_in(topic.context.text))),
        "first author near": first_near if marker else _UNKNOWN,
        "named before": _shared(papers, 1, names) / len(names) if len(names) else _UNKNOWN,
    }


def _of_draft(topic: Topic, candidates: Candidates, papers: PaperColumns) -> dict[str, npt.ArrayLike]:
    if topic.cited_before is None:
        return {}
    times = np.nan_to_num(candidates.signal("draft_times"))
    mean, nearest = candidates.signal("draft_mean"), candidates.signal("draft_nearest")
    cocited, coupled = candidates.signal("draft_cocited"), candidates.signal("draft_coupled")
    own = times > 0
    authors = _counted(papers.authors[:, 0], hashes_of(author for one in topic.cited for author in set(one.authors)))
    most = np.zeros(len(candidates))
    np.maximum.at(most, owners_of(papers.author_begins), authors)
    venues = _counted(papers.venues[:, 0], hashes_of(one.venue or "" for one in topic.cited))
    return {
        "cited before": times,
        "cited ago": candidates.signal("draft_ago"),
        "draft papers": len(topic.cited),
        "draft mean gap": _gaps(mean),
        "draft mean rank": _ranks(mean),
        "draft nearest": nearest,
        "draft nearest rank": _ranks(nearest),
        "draft cocited rank": _ranks(np.where(cocited > 0, cocited, _UNKNOWN)),
        "draft coupled rank": _ranks(np.where(coupled > 0, coupled, _UNKNOWN)),
        # The candidate itself does not count.
        "draft authors": most - own,
        "draft venue": np.where(
            papers.venues[:, 0] != NO_TEXT, (venues - own) / (len(topic.cited) or _UNKNOWN), _UNKNOWN
        ),
    }


def _counted(hashes: npt.NDArray[np.uint64], given: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How often each hash is among given ones, which are sorted."""
    return np.asarray(np.searchsorted(given, hashes, "right") - np.searchsorted(given, hashes))


def _shared(papers: PaperColumns, column: int, given: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many names of its authors each paper shares with given ones; column 0 has names, 1 last names."""
    named = _counted(papers.authors[:, column], given) > 0
    return np.bincount(owners_of(papers.author_begins)[named], minlength=len(papers.years))


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks from 1, best first; NaN for missing values."""
    order = np.argsort(-values, kind="stable")
    return np.where(np.isnan(values), _UNKNOWN, np.argsort(order) + 1.0)


def _shares(values: npt.NDArray[np.float64], of: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values as shares of the best one of others; NaN where it is not above 0."""
    return values / (np.fmax.reduce(of, initial=0.0) or _UNKNOWN)


def _gaps(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far values are below the best one; NaN for missing values."""
    return np.asarray(np.fmax.reduce(values, initial=-np.inf) - values)
