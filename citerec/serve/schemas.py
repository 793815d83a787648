"""What requests and answers hold: described for clients, and marked for assistants.

Unknown fields of requests are refused.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from citerec.corpus.reading import LAST_YEAR
from citerec.drafts.bibliography import Bibliography
from citerec.drafts.filling import draft_hits
from citerec.records import MARKER, Answer, Confidence, Filters, json_id, to_json
from citerec.serve.indexes import shown

_MOST_IDS, _MOST_CITED, _MOST_HITS, _MOST_MARKERS = 5000, 50, 100, 20
_LONGEST_TEXT, _LONGEST_DRAFT = 20_000, 300_000  # characters


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _balanced(text: str) -> str:
    depths = list(accumulate((sign == "{") - (sign == "}") for sign in text))
    if depths and (min(depths) < 0 or depths[-1]):
        raise ValueError("its braces are not balanced")
    return text


def _few_places(text: str) -> str:
    if (count := text.count(MARKER)) > _MOST_MARKERS:
        raise ValueError(f"it has {count:,} {MARKER}, more than {_MOST_MARKERS}: send a part of it")
    return text


# Constraints also refuse half of a surrogate pair: JSON can write it, but nothing can store it.
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Names = Annotated[tuple[Name, ...], Field(max_length=50)]
Words = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Title = Annotated[str, StringConstraints(max_length=1000)]
Passage = Annotated[str, StringConstraints(max_length=_LONGEST_TEXT), AfterValidator(_few_places)]
WholeDraft = Annotated[str, StringConstraints(max_length=_LONGEST_DRAFT)]
Year = Annotated[int, Field(ge=0, le=LAST_YEAR)]
PaperId = Annotated[Name, BeforeValidator(_as_text, json_schema_input_type=int | Name)]
"""An id as answers give it: a number where S2AG has a number, else a string."""
Cited = Annotated[tuple[PaperId, ...], Field(max_length=_MOST_CITED)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class IndexQuery(_Request):
    """Where to look."""

    index: Name | None = None
    """The name of the index; the first one by default."""


class FiltersModel(_Request):
    """Which papers may be found. All apply at once."""

    year_from: Year | None = None
    """Only papers of this year or later."""
    year_to: Year | None = Field(default=None, examples=[2020])
    """Only papers of this year or earlier."""
    fields: Names = ()
    """Only these fields of study."""
    venues: Names = ()
    """Only venues with these words in the name."""
    min_citations: int | None = Field(default=None, ge=0, lt=2**31)
    """Only papers cited at least this often."""
    exclude: tuple[PaperId, ...] = Field(default=(), max_length=_MOST_IDS)
    """None of these papers."""

    def to_filters(self) -> Filters:
        """As searches take them."""
        return Filters(**{name: getattr(self, name) for name in FiltersModel.model_fields})


class PapersQuery(FiltersModel, IndexQuery):
    """Which papers to list, and which page of the list."""

    q: str = Field(default="", max_length=1000, examples=["term weighting"])
    """Words of titles, names of authors, a venue, a year, or an id; without any, all papers in order of id."""
    offset: int = Field(default=0, ge=0, le=10_000)
    """How many papers to skip."""
    limit: int = Field(default=20, ge=1, le=100, examples=[5])
    """How many papers to list."""


class _OfAPaper(IndexQuery):
    title: Title | None = None
    """Title of the paper that you write."""
    citing: PaperId | None = None
    """The paper of the index that you write."""


class _Searched(_OfAPaper):
    filters: FiltersModel = FiltersModel()
    k: int = Field(default=10, ge=1, le=_MOST_HITS)
    """How many papers."""


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class RecommendRequest(_Searched):
    """A text with places that want a citation."""

    model_config = _example(text=f"Term weighting {MARKER} is a strong baseline.", title="Old baselines", k=3)

    text: Passage
    """A text; each `<REF>` in it gets an answer. Without one, all of it is the query."""
    cited: dict[Name, PaperId] | tuple[PaperId, ...] = Field(default=(), max_length=_MOST_IDS)
    """What the draft cites already: ids of the index, or an object of ids by citation key."""
    explain: bool = False
    """Say which words matched, and what raised the score."""
    fold: bool = True
    """Show editions of one paper as one hit."""


class GenerateRequest(_Searched):
    """A sentence for which a citation text is to be written."""

    model_config = _example(text=f"Attention suffices to translate {MARKER}.", k=2)

    text: Passage
    """A sentence with one `<REF>`."""
    papers: Cited = ()
    """Cite these papers of the index instead of searching."""
    k: int = Field(default=3, ge=1, le=_MOST_CITED)
    """How many papers to find and cite."""
    bibtex: bool = True
    """Whether to give the papers as BibTeX too."""


_ENTRY = "@misc{vaswani, title={Attention Is All You Need}, year={2017}}"


def _example_of_draft(**fields: Any) -> ConfigDict:
    text = "Term weighting is a strong baseline \\cite{?}. Attention suffices to translate \\citep{vaswani, ?}."
    return _example(name="paper.tex", text=text, **fields)


class DraftRequest(_OfAPaper):
    """A draft and its bibliography."""

    model_config = _example_of_draft(bibliography=_ENTRY)

    name: Name = "paper.tex"
    """Name of its file. The ending says what it is: `.tex`, `.md` and the like, or plain text: `.txt`, or none."""
    text: WholeDraft
    """The whole text. Files that it takes in are not read."""
    bibliography: WholeDraft = ""
    """The text of its `.bib` file."""


class PlaceRequest(DraftRequest):
    """A place of a draft, or words in its place."""

    place: int | None = Field(default=None, ge=0)
    """The place, by its number from 0."""
    words: Words | None = None
    """Words to use instead of the sentence."""


class _CitedRequest(DraftRequest):
    model_config = _example_of_draft(place=0, papers=[900000158])

    papers: Cited = Field(min_length=1)
    """The papers to cite, by id."""
    keys: Annotated[str, StringConstraints(max_length=500)] = ""
    """Pattern of new citation keys; by default as most keys of the bibliography."""


class DraftRecommendRequest(PlaceRequest, _Searched):
    """A place of a draft, or words to search for instead."""

    model_config = _example_of_draft(place=1, k=3, filters={"year_to": 2020})

    own_first: bool = True
    """List papers of the bibliography first that fit well."""


class DraftCiteRequest(_CitedRequest):
    """Papers to cite at a place of a draft."""

    place: int = Field(ge=0)
    """The place, by its number from 0."""


class DraftSuggestRequest(DraftRequest):
    """A draft in which sentences may want a citation."""

    most: int = Field(default=10, ge=1, le=40)
    """How many sentences."""


class DraftCheckRequest(DraftRequest):
    """A draft and its bibliography, to be checked."""

    support: bool = True
    """Compare each citation with its paper."""


class _BibliographyRequest(IndexQuery):
    bibliography: WholeDraft = ""
    """The text of a `.bib` file."""


class VerifyRequest(_BibliographyRequest):
    """Entries of a bibliography that web services are asked for."""

    model_config = _example(bibliography=_ENTRY, keys=["vaswani"])

    keys: Names = Field(min_length=1, max_length=10)
    """The keys of the entries."""


class MendingModel(_Request):
    """A field of an entry, and what it should be, as BibTeX."""

    field: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][\w-]{0,50}$")]
    value: Annotated[WholeDraft, AfterValidator(_balanced)]


class MendRequest(_BibliographyRequest):
    """Right values of fields of an entry."""

    model_config = _example(bibliography=_ENTRY, key="vaswani", mendings=[{"field": "year", "value": "2018"}])

    key: Name
    """The key of the entry."""
    mendings: Annotated[tuple[MendingModel, ...], Field(min_length=1, max_length=20)]
    """The fields; those that the entry lacks are not added."""


class AddRequest(_BibliographyRequest):
    """Papers that web services are asked for, to be added to a bibliography."""

    model_config = _example(references=["10.1162/neco.1997.9.8.1735"])

    references: Names = Field(min_length=1, max_length=5)
    """Ids (DOI, arXiv, Anthology, `pmid:NUMBER`), addresses of these, or titles."""


class DraftSayRequest(PlaceRequest, _CitedRequest):
    """Papers that a text is to cite, at a place of a draft or for some words."""


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
    """A paper to cite; `citance`, `matches`, `reasons`, `why`, `verdict`, `cited_before`, `also` where they apply."""

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


class DraftSuggestAnswer(_IndexAnswer):
    """Sentences that may want a citation, most likely first."""

    system: str
    suggestions: list[dict[str, Any]]
    """Each with the `sentence`, its `line` and `start`, where its citation goes (`at`, in characters) and what
    marks a place there (`marker`), a `score` from 0 to 1, and the `title` and `verdict` of the first paper."""


class DraftCheckAnswer(_IndexAnswer):
    """What should be looked at in a draft and its bibliography."""

    findings: list[dict[str, Any]]
    """Each with `code`, `severity`, `message`, `remedy`, `file` (`draft` or `bibliography`), `line`, `column`,
    `end_line` and `end_column`, the `key` of the entry that it is of or null, and `mending`: the right value of a
    `field` of the entry, or null."""
    citations: list[dict[str, Any]]
    """Each with `key`, `sentence`, `line`, `verdict` (`supports`, `on the topic`, `does not fit`, or empty), and what
    its paper `says`."""
    keys: list[str]
    """The keys of the entries that the draft cites; of all entries, if it cites none."""
    services: list[str]
    """The web services that this server asks for entries; empty if it asks none."""


class VerifyAnswer(_IndexAnswer):
    """What web services know of entries."""

    entries: list[dict[str, Any]]
    """Each with `key`, `line`, `verdict`, `codes`, the `source` of the record that was compared, the fields of the
    `entry` and of the `record` side by side, `notices`, and `findings` as those of a draft."""
    failed: list[str]
    """What went wrong with services."""


class BibliographyAnswer(_IndexAnswer):
    """A bibliography that was changed, and the keys that are meant."""

    bibliography: str
    keys: list[str]


def place_json(answer: Answer) -> dict[str, Any]:
    """The papers for one place, as a `PlaceAnswer` describes them."""
    return {"text": answer.context.text, **answer.to_json()}


def draft_hits_json(
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
    for one in draft_hits(answer, bibliography, own_first=own_first):
        hit = to_json(one.hit)
        if one.hit.citance:
            hit["citance"]["citing_title"] = titles.get(one.hit.citance.citing_id)
        cite_id = json_id(one.paper.paper_id)
        hits.append(hit | {"key": one.key, "cite_id": cite_id, "comes_first": one.comes_first, "support": one.support})
    return place_json(answer) | {"hits": hits}


_MOST = 10
_LEFT_OUT = {"abstract", "fields_of_study", "path"}
_OWN = {
    *("paper_id", "cite_id", "key", "rank", "score", "comes_first", "cited_before", "reasons", "matches"),
    *("verdict", "why"),
    *("year", "citation_count", "code", "codes", "source", "severity", "line", "column", "end_line", "end_column"),
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
            return shown(value)
        case list() | tuple():
            return [bounded(one) for one in value[:_MOST]]
        case dict():
            return {shown(name): bounded(one) for name, one in value.items()}
    return value
