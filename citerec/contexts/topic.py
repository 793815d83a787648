"""Topics of contexts, and the cleaning of texts, which citing sentences share."""

import html
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from citerec.corpus.matching import MOST_YEARS, asked, is_title, look_up_names
from citerec.corpus.store import PaperStore
from citerec.records import MARKER, OTHER_MARKER, Context, Paper, citing_name

# Every pattern is linear: no part can match what the next one matches, and repeats are bounded.
_MARKUP = re.compile(r"</?[A-Za-z][A-Za-z0-9:]{0,30}(?:\s[^<>]{0,300})?/?>")
# As pandoc reads it: no space inside the dollars, no digit after them: "$5 … $10" is money.
_MATH = re.compile(r"\$\$[^$]{1,500}\$\$|\$(?!\s)[^$]{1,500}(?<!\s)\$(?!\d)|\\\([^$]{1,300}?\\\)|\\\[[^$]{1,300}?\\\]")
_LATEX_CITATION = re.compile(r"~?\\(?:no)?[cC]ite[a-zA-Z]*\*?(?:\[[^\]]{0,100}\]){0,2}\{[^{}]{0,500}\}")
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+\*?")
_NUMBERED = re.compile(r"\[\s?\d{1,4}(?:\s?[,;–—-]\s?\d{1,4}){0,50}\s?\]")
# Names, "and", "et al." and nothing else before the first year.
_NAME = r"(?:[A-Z][^\s(),;]{0,40}|and|&|et|al\.?|de|la|van|von|der|den)"
_AUTHOR_YEAR = re.compile(
    rf"\((?:(?:see|e\.g\.|cf\.|i\.e\.),?\s)?(?:{_NAME}(?:,\s?|\s)){{1,12}}(?:1[89]|20)\d\d[^()]{{0,300}}\)"
)
_BEFORE_DOI = re.compile(r"^\w+:\s*(?=10\.\d)")  # keys such as "acm:10.1145/1"
_ADDRESS = re.compile(r"(?:https?://|www\.)\S{1,300}")


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
    cited_before: tuple[str, ...] | None = None
    cited: tuple[Paper, ...] = ()
    context: Context = field(default_factory=lambda: Context(text=""), repr=False)

    @property
    def passage(self) -> str:
        """The sentence, then those around it, as one text for models. It comes first, so it is truncated last."""
        return f"{self.text} {self.neighbours}".strip()

    @property
    def lead(self) -> str:
        """The words up to the marker, with the sentences before if neighbours are used: what a writer goes on from.

        If nothing stands before the marker, it is the words of the sentence.
        """
        before = self.context.before if self.neighbours else ""
        return clean(f"{before} {self.context.text.partition(MARKER)[0]}") or self.text


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
    return [
        topic_of(
            context,
            paper,
            [before[paper_id] for paper_id in dict.fromkeys(context.cited_before or ()) if paper_id in before],
            neighbours=neighbours,
        )
        for context, paper in zip(contexts, citing, strict=True)
    ]


def _citing_papers(contexts: Sequence[Context], store: PaperStore) -> list[Paper | None]:
    """The records of the citing papers of contexts, None where a store has none."""
    ids = [citing_name(context.citing_id, context.citing_key) or "" for context in contexts]
    by_id = store.papers({paper_id for paper_id in ids if paper_id})
    names = [() if paper_id in by_id else _names(context) for context, paper_id in zip(contexts, ids, strict=True)]
    named = store.named(set(itertools.chain.from_iterable(names))) if any(names) else {}
    found = [
        by_id.get(paper_id) or _first(context.citing_year, {name: named.get(name, []) for name in of_context})
        for context, paper_id, of_context in zip(contexts, ids, names, strict=True)
    ]
    # What was found by name is without texts.
    whole = by_id | store.papers({paper.paper_id for paper in found if paper and paper.paper_id not in by_id})
    return [whole[paper.paper_id] if paper else None for paper in found]


def _names(context: Context) -> tuple[str, ...]:
    """What a citing paper whose id is not known is looked up by, the surest first."""
    key = _BEFORE_DOI.sub("", context.citing_key or "")
    return (*([asked(key)] if key else ()), *look_up_names(context.citing_title or "", {}))


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
    text = text.replace(MARKER, " ").replace(OTHER_MARKER, " ")
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _MARKUP.sub(" ", text)
    if "\\" in text or "$" in text:
        text = _LATEX_CITATION.sub(" ", text)
        text = _MATH.sub(" ", text)
        text = _LATEX_COMMAND.sub(" ", text)
    if "[" in text:
        text = _NUMBERED.sub(" ", text)
    if "(" in text:
        text = _AUTHOR_YEAR.sub(" ", text)
    if "://" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    return " ".join(text.split())
