"""What answers hold: JSON as the commands print it, described for clients, and marked for assistants."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from citerec.drafts.bibliography import Bibliography
from citerec.drafts.filling import listed
from citerec.records import Answer, Confidence, json_id, to_json
from citerec.serve.indexes import shown


class _Answer(BaseModel):
    """Answers may have more fields than are described."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)


class _IndexAnswer(_Answer):
    index: str
    """The name of the index."""


class PaperAnswer(_Answer):
    """A paper."""

    paper_id: int | str
    title: str
    year: int | None
    venue: str | None
    authors: list[str]
    abstract: str | None
    tldr: str | None
    fields_of_study: list[str]
    citation_count: int | None
    external_ids: dict[str, str]


class OnePaperAnswer(PaperAnswer, _IndexAnswer):
    """A paper with its BibTeX entry."""

    bibtex: str


class HitAnswer(PaperAnswer):
    """A paper to cite; `citance`, `matches`, `reasons`, `cited_before` and `also` are there where they apply."""

    rank: int
    score: float


class DraftHitAnswer(HitAnswer):
    """A paper to cite in a draft."""

    key: str | None
    """Its key, if the bibliography has it or another edition of it."""
    comes_first: bool
    """Whether it stands before others because the bibliography has it."""
    cite_id: int | str
    """The edition to cite: that of the bibliography, or else this paper."""
    support: str | None
    """The sentence of its abstract that supports yours best, if one does."""


class _PlaceAnswer(_Answer):
    text: str
    """The sentence; other places in it are […]."""
    confidence: Confidence | None
    """Null if the system is not calibrated for the index."""
    nothing_fits: bool


class PlaceAnswer(_PlaceAnswer):
    """The papers for one place."""

    hits: list[HitAnswer]


class RecommendAnswer(_IndexAnswer):
    """The papers for each place of the text, in order."""

    system: str
    answers: list[PlaceAnswer]
    unknown_cited: list[str]
    """Ids of `cited` that the index lacks: they were left out."""


class DraftRecommendAnswer(_PlaceAnswer, _IndexAnswer):
    """The papers for a place of a draft; `rank` says how the system orders them."""

    system: str
    hits: list[DraftHitAnswer]


class _WrittenAnswer(_IndexAnswer):
    """A text that cites papers; `sentences` and `papers` say what each sentence is written from."""

    text: str
    writer: str
    sentences: list[dict[str, Any]]
    papers: list[dict[str, Any]]


class GenerateAnswer(_WrittenAnswer):
    """A citation text; `[0]`, `[1]`, … in it are the papers by `number`."""

    system: str | None
    """What found the papers; null if they were given."""
    sentence: str


class PapersAnswer(_IndexAnswer):
    """A page of a list of papers."""

    papers: list[PaperAnswer]
    next_offset: int | None
    """The offset of the next page; null if there is none."""


class IndexesAnswer(_Answer):
    """The indexes that are served."""

    indexes: list[dict[str, Any]]
    """Of each its `name`, `system` and `fingerprint`, how many `papers` it has, how many `with_abstract`, how many
    citing sentences (`citances`), and whether the system `has_confidence`. The first one is the default."""


class DraftAnswer(_IndexAnswer):
    """What a draft holds."""

    title: str | None
    marker: str
    """What marks a place in such a draft."""
    bibliographies: list[str]
    """The names of the `.bib` files that it names."""
    places: list[dict[str, Any]]
    """Its places: `number` from 0, `line`, `start` and `end` in characters (code points) of the text, `section` (null
    if it has none), the sentence as `text`, in which other places are […], `before` and `after`."""
    cited: list[dict[str, Any]]
    """What it cites: `key`, `line`, `start`, `end`, and `title` (null if there is no such entry)."""
    entries: int
    """How many entries the bibliography has."""
    unreadable: list[str]
    """What is wrong with entries that cannot be read."""


class _CitedAnswer(_IndexAnswer):
    keys: list[str]
    """The keys of the papers."""
    bibliography: str
    """The bibliography with the entries that it lacked."""


class DraftCiteAnswer(_CitedAnswer):
    """A draft that cites more."""

    text: str
    """The new text."""


class DraftSayAnswer(_WrittenAnswer, _CitedAnswer):
    """A text that cites papers by their keys, as the draft would have it."""

    draft: str | None
    """The draft with the papers cited at the place and the text behind its sentence; null without one."""


def place_json(answer: Answer) -> dict[str, Any]:
    """The papers for one place, as a `PlaceAnswer` describes them."""
    return {"text": answer.context.text, **answer.to_json()}


def listed_json(
    answer: Answer, bibliography: Bibliography, titles: Mapping[str, str], *, own_first: bool
) -> dict[str, Any]:
    """The same for an author: her own papers have their keys, and come first if they fit (`DraftHitAnswer`).

    Args:
        answer: The answer.
        bibliography: The author's own.
        titles: Titles of papers that cite the hits, by id.
        own_first: Whether papers of the bibliography come first.
    """
    hits = []
    for one in listed(answer, bibliography, own_first=own_first):
        hit = to_json(one.hit)
        if one.hit.citance:
            hit["citance"]["citing_title"] = titles.get(one.hit.citance.citing_id)
        cite_id = json_id(one.paper.paper_id)
        hits.append(hit | {"key": one.key, "cite_id": cite_id, "comes_first": one.comes_first, "support": one.support})
    return place_json(answer) | {"hits": hits}


_LONGEST, _MOST = 500, 10
_LEFT_OUT = {"abstract", "fields_of_study", "path"}
_OWN = {
    *("paper_id", "cite_id", "key", "rank", "score", "comes_first", "cited_before", "reasons", "matches"),
    *("year", "citation_count", "code", "severity", "line", "column", "end_line", "end_column"),
}
"""Fields without text of third parties: the words that match stand in the sentence of the query too."""


def marked(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as the commands print it, for an assistant: what third parties wrote stands under `untrusted_text`.

    Nothing in it is hidden; texts and lists are cut. Abstracts are left out.
    """
    own, untrusted = dict[str, Any](), dict[str, Any]()
    for name, value in record.items():
        if name not in _LEFT_OUT:
            (own if name in _OWN else untrusted)[name] = bounded(value)
    if "authors" in record:
        own["author_count"] = len(record["authors"])
    return own | {"untrusted_text": untrusted}


def bounded(value: Any) -> Any:
    """A value of JSON in which nothing is hidden, and texts and lists are cut."""
    match value:
        case str():
            return shown(value, _LONGEST)
        case list() | tuple():
            return [bounded(one) for one in value[:_MOST]]
        case dict():
            return {shown(name, _LONGEST): bounded(one) for name, one in value.items()}
    return value
