"""What requests and answers hold. Requests refuse unknown fields; limits that can be set are in `settings.py`."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.corpus.values import LAST_YEAR
from citerec.records import MARKER, Filters

_MOST_IDS = 5000
_text = StringConstraints(min_length=1, max_length=500)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON can write it, but nothing can store it
        raise ValueError("it holds half of a surrogate pair") from None
    return text


Text = Annotated[str, AfterValidator(_whole)]
Year = Annotated[int, Field(ge=0, le=LAST_YEAR)]
Name = Annotated[Text, _text]
PaperId = Annotated[Text, BeforeValidator(_as_text, json_schema_input_type=int | str), _text]
"""An id as answers give it: a number where S2AG has a number, else a string."""
Words = Annotated[Text, StringConstraints(min_length=1, max_length=2000)]
Count = Annotated[int, Field(ge=0, lt=2**31)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class FiltersModel(_Request):
    """Which papers may be found. All apply at once."""

    year_from: Year | None = Field(default=None, description="Only papers of this year or later.")
    year_to: Year | None = Field(default=None, description="Only papers of this year or earlier.", examples=[2020])
    fields: tuple[Name, ...] = Field(default=(), max_length=50, description="Only these fields of study.")
    venues: tuple[Name, ...] = Field(default=(), max_length=50, description="Only venues with these words in the name.")
    min_citations: Count | None = Field(default=None, description="Only papers cited at least this often.")
    exclude: tuple[PaperId, ...] = Field(default=(), max_length=_MOST_IDS, description="None of these papers.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.year_from is not None and self.year_to is not None and self.year_from > self.year_to:
            raise ValueError("year_from is later than year_to")
        return self

    def to_filters(self) -> Filters:
        """As searches take them."""
        return Filters(**{name: getattr(self, name) for name in FiltersModel.model_fields})


class _AboutAPaper(_Request):
    """What requests about a paper that is written have in common."""

    index: Name | None = Field(default=None, description="The name of the index; the first one by default.")
    title: Text | None = Field(default=None, max_length=1000, description="Title of the paper that you write.")
    citing: PaperId | None = Field(default=None, description="The paper of the index that you write.")


class _AboutADraft(_AboutAPaper):
    """What searches for a place in a draft have in common."""

    filters: FiltersModel = FiltersModel()


class RecommendRequest(_AboutADraft):
    """A text with places that want a citation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": f"Term weighting {MARKER} is a strong baseline.",
                    "title": "Old baselines that are hard to beat",
                    "filters": {"year_to": 2020},
                    "k": 3,
                }
            ]
        }
    )

    text: Text = Field(description=f"A text; each {MARKER} in it gets an answer. Without one, all of it is the query.")
    cited: dict[Name, PaperId] | tuple[PaperId, ...] = Field(
        default=(),
        max_length=_MOST_IDS,
        description="What the draft cites already: ids of the index, or an object of ids by citation key.",
    )
    k: int = Field(default=10, ge=1, description="How many papers.")
    explain: bool = Field(default=False, description="Say which words matched, and what raised the score.")
    fold: bool = Field(default=True, description="Show editions of one paper as one hit.")


class GenerateRequest(_AboutADraft):
    """A sentence for which a citation text is to be written."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": f"Attention suffices to translate {MARKER}.", "k": 2}]}
    )

    text: Text = Field(description=f"A sentence with one {MARKER}.")
    papers: tuple[PaperId, ...] = Field(
        default=(), max_length=50, description="Cite these papers of the index instead of searching."
    )
    k: int = Field(default=3, ge=1, le=50, description="How many papers to find and cite.")
    bibtex: bool = Field(default=True, description="Whether to give the papers as BibTeX too.")


def _example(**more: Any) -> ConfigDict:
    text = "Term weighting is a strong baseline \\cite{?}. Attention suffices to translate \\citep{vaswani, ?}."
    return ConfigDict(json_schema_extra={"examples": [{"name": "paper.tex", "text": text, **more}]})


class DraftRequest(_AboutAPaper):
    """A draft and its bibliography."""

    model_config = _example(bibliography="@misc{vaswani, title={Attention Is All You Need}, year={2017}}")

    name: Name = Field(
        default="paper.tex",
        description="Name of its file. The ending says what it is: `.tex`, `.md` and the like, or plain text: "
        "`.txt`, or none.",
    )
    text: Text = Field(description="The whole text. Files that it takes in are not read.")
    bibliography: Text = Field(default="", description="The text of its `.bib` file.")


class _SoughtRequest(DraftRequest):
    """A place of a draft, or words in its place."""

    place: int | None = Field(default=None, ge=0, description="The place, by its number from 0.")
    words: Words | None = Field(default=None, description="Words to use instead of the sentence.")


class _CitedRequest(DraftRequest):
    """Papers to cite in a draft."""

    papers: tuple[PaperId, ...] = Field(min_length=1, max_length=50, description="The papers to cite, by id.")
    keys: Name = Field(default=DEFAULT_PATTERN, description="Pattern of new citation keys.")


class DraftRecommendRequest(_SoughtRequest):
    """A place of a draft, or words to search for instead."""

    model_config = _example(place=1, k=3, filters={"year_to": 2020})

    filters: FiltersModel = FiltersModel()
    k: int = Field(default=10, ge=1, description="How many papers.")
    own_first: bool = Field(default=True, description="List papers of the bibliography first that fit well.")


class DraftCiteRequest(_CitedRequest):
    """Papers to cite at a place of a draft."""

    model_config = _example(place=0, papers=[900000158])

    place: int = Field(ge=0, description="The place, by its number from 0.")


class DraftSayRequest(_SoughtRequest, _CitedRequest):
    """Papers that a text is to cite, at a place of a draft or for some words."""

    model_config = _example(place=0, papers=[900000158])


class _Answer(BaseModel):
    """Answers may have more fields than are described."""

    model_config = ConfigDict(extra="allow")


class _AnswerOfIndex(_Answer):
    """An answer from an index."""

    index: str


class ErrorAnswer(BaseModel):
    """An error: what is wrong, and what to do."""

    error: str
    remedy: str


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


class OnePaperAnswer(PaperAnswer, _AnswerOfIndex):
    """A paper with its BibTeX entry."""

    bibtex: str


class HitAnswer(PaperAnswer):
    """A paper to cite; `citance`, `matches`, `reasons`, `cited_before` and `also` are there where they apply."""

    rank: int
    score: float


class ConfidenceAnswer(BaseModel):
    """How sure the system is."""

    first: float = Field(description="Probability that the first paper is right.")
    among_ten: float = Field(description="Probability that one of the first ten is right.")


class PlaceAnswer(_Answer):
    """The papers for one place."""

    text: str = Field(description="The sentence; other places in it are […].")
    hits: Sequence[HitAnswer]
    confidence: ConfidenceAnswer | None = Field(description="Null if the system is not calibrated for the index.")
    nothing_fits: bool


class RecommendAnswer(_AnswerOfIndex):
    """The papers for each place of the text, in order."""

    system: str
    answers: list[PlaceAnswer]
    unknown_cited: list[str] = Field(description="Ids of `cited` that the index lacks: they were left out.")


class _WrittenAnswer(_AnswerOfIndex):
    """A text that cites papers; `sentences` and `papers` say what each sentence is written from."""

    text: str
    writer: str
    sentences: list[dict[str, Any]]
    papers: list[dict[str, Any]]


class GenerateAnswer(_WrittenAnswer):
    """A citation text; `[0]`, `[1]`, … in it are the papers by `number`."""

    system: str | None = Field(description="What found the papers; null if they were given.")
    sentence: str


class PapersAnswer(_AnswerOfIndex):
    """A page of a list of papers."""

    papers: list[PaperAnswer]
    next_offset: int | None = Field(description="The offset of the next page; null if there is none.")


class IndexAnswer(_Answer):
    """An index that is served."""

    name: str
    papers: int
    with_abstract: int
    citances: int
    system: str
    has_confidence: bool
    fingerprint: str


class IndexesAnswer(_Answer):
    """The indexes; the first one is the default."""

    indexes: list[IndexAnswer]


class DraftPlaceAnswer(_Answer):
    """A place of a draft; `start` and `end` count characters (code points) of the text."""

    number: int
    line: int
    start: int
    end: int
    section: str | None
    text: str = Field(description="The sentence; other places in it are […].")
    before: str
    after: str


class DraftAnswer(_AnswerOfIndex):
    """What a draft holds."""

    title: str | None
    marker: str = Field(description="What marks a place in such a draft.")
    bibliographies: list[str] = Field(description="The names of the `.bib` files that it names.")
    places: list[DraftPlaceAnswer]
    cited: list[dict[str, Any]] = Field(
        description="What it cites: `key`, `line`, `start`, `end`, and `title` (null if there is no such entry)."
    )
    entries: int = Field(description="How many entries the bibliography has.")
    unreadable: list[str] = Field(description="What is wrong with entries that cannot be read.")


class DraftHitAnswer(HitAnswer):
    """A paper to cite in a draft."""

    key: str | None = Field(description="Its key, if the bibliography has it or another edition of it.")
    comes_first: bool = Field(description="Whether it stands before others because the bibliography has it.")
    cite_id: int | str = Field(description="The edition to cite: that of the bibliography, or else this paper.")
    support: str | None = Field(description="The sentence of its abstract that supports yours best, if one does.")


class DraftRecommendAnswer(PlaceAnswer, _AnswerOfIndex):
    """The papers for a place of a draft; `rank` says how the system orders them."""

    system: str
    hits: Sequence[DraftHitAnswer]


class DraftCiteAnswer(_AnswerOfIndex):
    """A draft that cites more."""

    text: str = Field(description="The new text.")
    bibliography: str = Field(description="The new bibliography.")
    keys: list[str] = Field(description="The keys of the papers.")


class DraftSayAnswer(_WrittenAnswer):
    """A text that cites papers by their keys, as the draft would have it."""

    keys: list[str] = Field(description="The keys of the papers.")
    draft: str | None = Field(
        description="The draft with the papers cited at the place and the text behind its sentence; null without one."
    )
    bibliography: str = Field(description="The bibliography with the entries that it lacked.")


class StateAnswer(_Answer):
    """How the server is."""

    status: str
