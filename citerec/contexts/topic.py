"""Topics of contexts, and the leak rules: what an answer to a context must not use.

Searches are restricted by `LeakRules.restrict` before they run. Lists from elsewhere (functions, run files, runs in
memory) are checked by `LeakRules.breaches`. Both read the same topics, so the same rules apply to every system.
"""

import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.contexts.markers import vocabulary
from citerec.contexts.read import contexts_of_text
from citerec.corpus.matching import MOST_YEARS, canonical_id, is_title, look_up_names
from citerec.corpus.store import PaperStore
from citerec.files.text import printable
from citerec.records import MARKER, NO_FILTERS, OTHER_MARKER, Context, Filters, Paper, citing_name

# Names, "and", "et al." and nothing else before the first year.
_NAME = r"(?:[A-Z][^\s(),;]{0,40}|and|&|et|al\.?|de|la|van|von|der|den)"
_AUTHOR_YEAR = rf"\((?:(?:see|e\.g\.|cf\.|i\.e\.),?\s)?(?:{_NAME}(?:,\s?|\s)){{1,12}}(?:1[89]|20)\d\d[^()]{{0,300}}\)"
# As pandoc reads it: no space inside the dollars, no digit after them: "$5 … $10" is money.
_MATH = r"\$\$[^$]{1,500}\$\$|\$(?!\s)[^$]{1,500}(?<!\s)\$(?!\d)|\\\([^$]{1,300}?\\\)|\\\[[^$]{1,300}?\\\]"
# Markup, LaTeX, citations and addresses, in this order, each after the signs of which it has one: a text without them
# is not searched. Every pattern is linear: no part can match what the next one matches, and repeats are bounded.
_NO_WORDS = tuple(
    (signs, re.compile(pattern))
    for signs, pattern in (
        (("<",), r"</?[A-Za-z][A-Za-z0-9:]{0,30}(?:\s[^<>]{0,300})?/?>"),
        (("\\",), r"~?\\(?:no)?[cC]ite[a-zA-Z]*\*?(?:\[[^\]]{0,100}\]){0,2}\{[^{}]{0,500}\}"),
        (("\\", "$"), _MATH),
        (("\\",), r"\\[a-zA-Z]+\*?"),
        (("[",), r"\[\s?\d{1,4}(?:\s?[,;–—-]\s?\d{1,4}){0,50}\s?\]"),
        (("(",), _AUTHOR_YEAR),
        (("://", "www."), r"(?:https?://|www\.)\S{1,300}"),
    )
)
_BEFORE_DOI = re.compile(r"^\w+:\s*(?=10\.\d)")  # keys such as "acm:10.1145/1"


@dataclass(frozen=True, slots=True)
class Topic:
    """A context prepared for searches.

    Attributes:
        text: The words of the sentence.
        neighbours: The words of the sentences around it; they weigh less.
        citing_title: The words of the citing paper's title, if it is known.
        citing_id: The citing paper, if the context says its id, or the index has it by its key or title.
        citing_names: What the citing paper and its citing sentences may be called in an index: `citing_name`, and the
            id of its record.
        citing_year: The year of the citing paper: the context's, or else the index's; None if unknown.
        citing: The record of the citing paper, if the index has it.
        citing_authors: Its authors: those of the record, or else of the context.
        cited_before: Ids of the papers that the same text cited before this place, in order of mention, with repeats
            where they are known; never the citing paper. The index may lack some of them. None if unknown.
        cited: The records of these papers, without texts, once each; those that the index has.
    """

    text: str
    neighbours: str = ""
    citing_title: str = ""
    citing_id: str | None = None
    citing_names: tuple[str, ...] = ()
    citing_year: int | None = None
    citing: Paper | None = None
    citing_authors: tuple[str, ...] = ()
    cited_before: tuple[str, ...] | None = None
    cited: tuple[Paper, ...] = ()
    context: Context = field(default_factory=lambda: Context(text=""), repr=False)

    @property
    def passage(self) -> str:
        """The sentence, then those around it, as one text for models. It comes first, so it is truncated last."""
        return f"{self.text} {self.neighbours}".strip()


def topic_of(
    context: Context, citing: Paper | None = None, cited: Sequence[Paper] = (), *, neighbours: bool = True
) -> Topic:
    """The topic of a context. Recommending, evaluation and training all use this function.

    Args:
        context: A sentence, with or without `<REF>`.
        citing: The record of the citing paper, if the index has it.
        cited: The records of what the same text cited before this place.
        neighbours: Whether the sentences before and after are used.
    """
    around = f"{context.before} {context.after}" if neighbours else ""
    title = (citing.title if citing else context.citing_title) or ""
    year = context.citing_year
    names = (citing_name(context.citing_id, context.citing_key), citing.paper_id if citing else None)
    return Topic(
        text=clean(context.text),
        neighbours=clean(around),
        citing_title=clean(title),
        citing_authors=citing.authors if citing else context.citing_authors,
        citing_id=citing.paper_id if citing else context.citing_id,
        citing_names=tuple(dict.fromkeys(name for name in names if name)),
        citing_year=citing.year if year is None and citing else year,
        citing=citing,
        cited_before=context.cited_before,
        cited=tuple(cited),
        context=context,
    )


def topics_of(contexts: Sequence[Context], store: PaperStore, *, neighbours: bool = True) -> list[Topic]:
    """The topics of contexts, with the records of their citing papers from a store.

    A citing paper is found by its id; else by the DOI, arXiv id or Anthology id that its key is; else by its title, if
    the years, where both are known, are at most two apart. Of several papers of one title the one of the nearest year
    counts.
    """
    citing = _citing_papers(contexts, store)
    before = store.papers({paper_id for context in contexts for paper_id in context.cited_before or ()}, texts=False)
    topics = []
    for context, paper in zip(contexts, citing, strict=True):
        cited = [before[paper_id] for paper_id in dict.fromkeys(context.cited_before or ()) if paper_id in before]
        topics.append(topic_of(context, paper, cited, neighbours=neighbours))
    return topics


def _citing_papers(contexts: Sequence[Context], store: PaperStore) -> list[Paper | None]:
    """The records of the citing papers of contexts, None where a store has none."""
    ids = [citing_name(context.citing_id, context.citing_key) or "" for context in contexts]
    by_id = store.papers({paper_id for paper_id in ids if paper_id})
    names = [() if paper_id in by_id else _names(context) for context, paper_id in zip(contexts, ids, strict=True)]
    named = store.named(set(itertools.chain.from_iterable(names))) if any(names) else {}
    papers = [
        by_id.get(paper_id) or _first(context.citing_year, {name: named.get(name, []) for name in of_context})
        for context, paper_id, of_context in zip(contexts, ids, names, strict=True)
    ]
    # What was found by name is without texts.
    whole = by_id | store.papers({paper.paper_id for paper in papers if paper and paper.paper_id not in by_id})
    return [whole[paper.paper_id] if paper else None for paper in papers]


def _names(context: Context) -> tuple[str, ...]:
    """What a citing paper whose id is not known is looked up by, the surest first."""
    key = _BEFORE_DOI.sub("", context.citing_key or "")
    return (*([canonical_id(key)] if key else ()), *look_up_names(context.citing_title or "", {}))


def _first(year: int | None, named: Mapping[str, Sequence[Paper]]) -> Paper | None:
    """The paper of the first name that has one, the one of the nearest year; a title must have nearly the same year."""

    def apart(paper: Paper) -> int:
        return MOST_YEARS if year is None or paper.year is None else abs(paper.year - year)

    for name, papers in named.items():
        near = [paper for paper in papers if apart(paper) <= MOST_YEARS] if is_title(name) else papers
        if near:
            return min(near, key=apart)
    return None


def clean(text: str) -> str:
    """A text without markers, citations, mathematics, markup and addresses, white space folded."""
    text = html.unescape(text.replace(MARKER, " ").replace(OTHER_MARKER, " "))
    for signs, pattern in _NO_WORDS:
        if any(sign in text for sign in signs):
            text = pattern.sub(" ", text)
    return " ".join(text.split())


_NO_LIMIT = 9999  # nothing is newer


class Breaches(NamedTuple):
    """Which rows of a run break a rule, (rows,) each; each row breaks at most one."""

    citing_paper: npt.NDArray[np.bool_]
    newer: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LeakRules:
    """Which rules apply.

    Attributes:
        exclude_citing: The citing paper is no answer to its own context, and its citing sentences are not searched. It
            is known by its id, DOI or title (`citerec.contexts.topic.topics_of`).
        as_of_year: No paper known to be newer than the citing paper is an answer, and no citing sentence newer than it,
            or of unknown year, is searched. If the year of the citing paper is unknown, nothing counts as newer.
    """

    exclude_citing: bool = True
    as_of_year: bool = True

    def restrict(self, topic: Topic, filters: Filters = NO_FILTERS) -> Filters:
        """Filters that also leave out what the answer to a topic must not use."""
        hidden = topic.citing_names if self.exclude_citing else ()
        years = [filters.as_of_year, topic.citing_year if self.as_of_year else None]
        latest = min((year for year in years if year is not None), default=None)
        return replace(filters, citing_ids=hidden or filters.citing_ids, as_of_year=latest)

    def permits_sentence(self, topic: Topic, citing_id: str, year: int | None) -> bool:
        """Whether the citing sentences of a paper of a year may be searched for a topic."""
        hidden, latest = self._limits(topic)
        return citing_id not in hidden and (_NO_LIMIT if year is None else year) <= latest

    def _limits(self, topic: Topic) -> tuple[tuple[str, ...], int]:
        """The papers that are hidden from a topic, and the latest year that it knows."""
        allowed = self.restrict(topic)
        return allowed.citing_ids, _NO_LIMIT if allowed.as_of_year is None else allowed.as_of_year

    def breaches(
        self,
        topics: Sequence[Topic],
        rows: npt.NDArray[np.int32],
        papers: npt.NDArray[np.int32],
        paper_ids: Sequence[str],
        years: npt.NDArray[np.int32],
    ) -> Breaches:
        """Which rows of a run break a rule.

        Args:
            topics: The topics that were answered.
            rows: Number of the topic of each row, (rows,).
            papers: Number of the paper of each row, (rows,).
            paper_ids: The papers.
            years: Their years, (papers,); 0 where unknown.
        """
        limits, count = list(map(self._limits, topics)), len(paper_ids)
        numbers = {paper_id: number for number, paper_id in enumerate(paper_ids)}
        hidden = [(topic, numbers[one]) for topic, (ids, _) in enumerate(limits) for one in ids if one in numbers]
        pairs = [topic * count + paper for topic, paper in hidden]
        citing = np.isin(rows.astype(np.int64) * count + papers, pairs)
        latest = np.array([latest for _, latest in limits], np.int32)
        return Breaches(citing, ~citing & (years[papers] > latest[rows]))


# Every pattern is linear: repeats are bounded, and no part can match what the next one matches.
_KEY = r"[^\s,;\[\]{}@\\]{1,200}"
_CITATION = re.compile(
    r"\\(?:no)?[a-zA-Z]{0,10}[cC]ite[a-zA-Z]{0,20}\*?(?:\[[^\]]{0,100}\]){0,2}\{(?P<latex>[^{}]{1,2000})\}"
    r"|(?<![\w@])@(?P<pandoc>\w(?:[\w:.#$%&+?<>~/-]{0,200}\w)?)"
    rf"|\[(?P<bracket>{_KEY}(?:[,;]\s?{_KEY}){{0,50}})\]"
)


class Mention(NamedTuple):
    """A key in a text, its place, and whether it stands alone in brackets: `[12]` may be no key but a number."""

    start: int
    key: str
    in_brackets: bool = False


def mentions(text: str) -> Iterator[Mention]:
    """What may be citation keys in a LaTeX or Markdown text, in order; several in one command share its place."""
    for match in _CITATION.finditer(text):
        for key in re.split(r"[,;]", match["latex"] or match["pandoc"] or match["bracket"]):
            if key.strip():
                yield Mention(match.start(), key.strip(), match["bracket"] is not None)


def contexts_of_draft(
    text: str,
    store: PaperStore,
    cited: Mapping[str, str] | None = None,
    *,
    are_in_text: bool = False,
    citing_id: str | None = None,
    citing_title: str | None = None,
) -> list[Context]:
    r"""The contexts of a draft's `<REF>`, in order, with what it cites before each; unknown if no citation is known.

    What the text cites before a `<REF>` by a key (`\cite{key}`, `[@key]`, `[key]`) counts as cited before it, if
    `cited` has the key or the store has a paper of this id; `[12]` must be in `cited`.

    Args:
        text: The draft.
        store: The papers.
        cited: Ids of papers that it cites already, by citation key.
        are_in_text: Whether these are only named so: each counts where the text has cited it, not everywhere.
        citing_id: The paper that is written, if the store has it; it is never among what it cites.
        citing_title: Its title, if not.
    """
    text = printable(text)
    keys = list(mentions(text))
    ids = {mention.key for mention in keys if not (mention.in_brackets and mention.key.isdecimal())}
    named = {**{key: key for key in store.papers(ids, texts=False)}, **(cited or {})}
    cites = [(one.start, paper_id) for one in keys if (paper_id := named.get(one.key)) and paper_id != citing_id]
    others = {citing_id, *(paper_id for _, paper_id in cites if are_in_text)}
    listed = dict.fromkeys(paper_id for paper_id in (cited or {}).values() if paper_id not in others)
    places = [match.start() for match in re.finditer(re.escape(MARKER), text)] or [len(text)]
    contexts = []
    for context, place in zip(contexts_of_text(text), places, strict=True):
        mentioned = [paper_id for start, paper_id in cites if start < place]
        # Listed papers come first, but a paper stands there as often as the text cites it before the place.
        first = (one for one in listed if one not in mentioned)
        before = (*first, *mentioned) if cites or cited is not None else None
        contexts.append(replace(context, citing_id=citing_id, citing_title=citing_title, cited_before=before))
    return contexts


_PARTICLES = r"(?:[Dd]e|[Dd]el|[Dd]i|[Dd]u|[Ll]a|[Ll]e|[Vv]an|[Vv]on|[Dd]er|[Dd]en|[Tt]en|[Ee]l|[Aa]l|[Bb]in)\s"
_SURNAME = (
    rf"(?:[A-Z]\.[\s-]?){{0,3}}(?:{_PARTICLES}){{0,2}}(?:[A-Z]['’])?[A-Z][a-zà-ÿ]{{1,30}}(?:-?[A-Z][a-zà-ÿ]{{1,30}})?"
)
_BETWEEN = r"(?:\s?,\s?(?:and|&)\s|\s?,\s|\s(?:and|&)\s)"
_OTHERS = r"(?:\s?,?\s(?:et\.?\s?al\.?,?|and\s(?:colleagues|others|co-?workers)))?"
_NAMED = re.compile(rf"(?:^|(?<=[\s(]))({_SURNAME}(?:{_BETWEEN}{_SURNAME}){{0,5}}){_OTHERS}(?:['’]s?)?\s?[(\[]?$")
_SEEN = 200  # characters before the marker in which its names must be


def names_before(topic: Topic) -> frozenset[str]:
    """The last names that stand right before the marker, in lower case: "amento" of "Amento et al. <REF> found".

    Of a name of several words it is the last one: "berg" of "van den Berg". A name of a method that looks like that of
    a person ("Rocchio <REF>", but not "LambdaMART <REF>") is among them. Empty without a marker.
    """
    before, marker, _ = topic.context.text.partition(MARKER)
    match = _NAMED.search(before[-_SEEN:].rstrip()) if marker else None
    if match is None:
        return frozenset()
    names = (name.split()[-1].split(".")[-1].casefold() for name in re.split(_BETWEEN, match[1]) if name.strip())
    return frozenset(names) - vocabulary("openers")
