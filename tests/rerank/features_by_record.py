"""The features that depend on what is known of papers, one record at a time: what columns must give too."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from citerec.contexts.topic import Topic, names_before
from citerec.records import MARKER, Paper

Columns = dict[str, Sequence[float]]

_WORD = re.compile(r"[^\W_]+")


def features_by_record(topic: Topic, records: Sequence[Paper], times: Sequence[float]) -> Columns:
    """The features by name; `times` says how often the draft cites each paper."""
    return _of_papers(topic, records) | _of_words(topic, records) | _of_draft(topic, records, times)


def words_of(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def last_names(authors: Sequence[str]) -> set[str]:
    return {author.split()[-1].casefold() for author in authors if author.strip()}


def name_of(title: str) -> set[str]:
    name, colon, _ = title.partition(":")
    return words_of(name) if colon and len(name.split()) <= 2 else set()


def _of_papers(topic: Topic, records: Sequence[Paper]) -> Columns:
    citing, year = topic.citing, topic.citing_year
    authors = set(citing.authors) if citing else set()
    venue = citing.venue.casefold() if citing and citing.venue else None
    return {
        "log citations": [
            math.nan if one.citation_count is None else math.log1p(one.citation_count) for one in records
        ],
        "age": [math.nan if year is None or one.year is None else year - one.year for one in records],
        "common authors": [len(authors & set(one.authors)) if authors else math.nan for one in records],
        "same venue": [one.venue.casefold() == venue if venue and one.venue else math.nan for one in records],
    }


def _of_words(topic: Topic, records: Sequence[Paper]) -> Columns:
    titles = [words_of(one.title) for one in records]
    counts = Counter(word for title in titles for word in title)
    before, marker, _ = topic.context.text.partition(MARKER)
    last, names, sentence = before.split(), names_before(topic), words_of(topic.text)
    named, just_named = words_of(topic.context.text), words_of(" ".join(last[-8:]))

    def share(given: set[str]) -> list[float]:
        weights = {word: math.log1p(len(titles) / count) for word, count in counts.items()}
        return [
            sum(weights[word] for word in title & given) / (sum(map(weights.__getitem__, title)) or 1)
            for title in titles
        ]

    unknown = [math.nan] * len(records)
    return {
        "title in sentence": share(sentence),
        "title near": share(words_of(" ".join(last[-6:]))) if marker else unknown,
        "title around": share(words_of(topic.neighbours)),
        "title in citing title": share(words_of(topic.citing_title)) if topic.citing_title else unknown,
        "title words shared": [len(title & sentence) for title in titles],
        "title words": [len(title) for title in titles],
        "name in sentence": [bool(name := name_of(one.title)) and name <= sentence for one in records],
        "authors named": [len(last_names(one.authors) & named) for one in records],
        "first author near": (
            [not last_names(one.authors[:1]).isdisjoint(just_named) for one in records] if marker else unknown
        ),
        "named before": [len(last_names(one.authors) & names) / len(names) if names else math.nan for one in records],
        "sentence words": [len(sentence)] * len(records),
    }


def _of_draft(topic: Topic, records: Sequence[Paper], times: Sequence[float]) -> Columns:
    if topic.cited_before is None:
        return {name: [math.nan] * len(records) for name in ("draft authors", "draft venue")}
    authors = Counter(author for one in topic.cited for author in set(one.authors))
    venues = Counter(one.venue for one in topic.cited if one.venue)
    own = (np.nan_to_num(times) > 0).tolist()
    return {
        "draft authors": [
            max((authors[author] for author in one.authors), default=0) - known
            for one, known in zip(records, own, strict=True)
        ],
        "draft venue": [
            (venues[one.venue] - known) / len(topic.cited) if one.venue and topic.cited else math.nan
            for one, known in zip(records, own, strict=True)
        ],
    }
