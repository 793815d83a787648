"""What requests hold, and their limits. Unknown fields are refused; the strings below fields describe them."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.corpus.json_lines import LAST_YEAR
from citerec.records import MARKER, Filters

_MOST_IDS, _MOST_CITED, _MOST_HITS, _MOST_MARKERS = 5000, 50, 100, 20
_LONGEST_TEXT, _LONGEST_DRAFT = 20_000, 300_000  # characters


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON can write it, but nothing can store it
        raise ValueError("it holds half of a surrogate pair") from None
    return text


def _few_places(text: str) -> str:
    if (count := text.count(MARKER)) > _MOST_MARKERS:
        raise ValueError(f"it has {count:,} {MARKER}, more than {_MOST_MARKERS}: send a part of it")
    return text


_NAME, _WHOLE = StringConstraints(min_length=1, max_length=500), AfterValidator(_whole)
Name = Annotated[str, _NAME, _WHOLE]
Names = Annotated[tuple[Name, ...], Field(max_length=50)]
Words = Annotated[str, StringConstraints(min_length=1, max_length=2000), _WHOLE]
Title = Annotated[str, StringConstraints(max_length=1000), _WHOLE]
Passage = Annotated[str, StringConstraints(max_length=_LONGEST_TEXT), _WHOLE, AfterValidator(_few_places)]
WholeDraft = Annotated[str, StringConstraints(max_length=_LONGEST_DRAFT), _WHOLE]
Year = Annotated[int, Field(ge=0, le=LAST_YEAR)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
TopK = Annotated[int, Field(ge=1, le=_MOST_HITS)]
PaperId = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=int | str), _NAME, _WHOLE]
"""An id as answers give it: a number where S2AG has a number, else a string."""
Cited = Annotated[tuple[PaperId, ...], Field(max_length=_MOST_CITED)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class _IndexQuery(_Request):
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
    min_citations: Count | None = None
    """Only papers cited at least this often."""
    exclude: tuple[PaperId, ...] = Field(default=(), max_length=_MOST_IDS)
    """None of these papers."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.year_from is not None and self.year_to is not None and self.year_from > self.year_to:
            raise ValueError("year_from is later than year_to")
        return self

    def to_filters(self) -> Filters:
        """As searches take them."""
        return Filters(**{name: getattr(self, name) for name in FiltersModel.model_fields})


class OnePaperQuery(_IndexQuery):
    """Where to look for a paper."""


class PapersQuery(FiltersModel, _IndexQuery):
    """Which papers to list, and which page of the list."""

    q: str = Field(default="", max_length=1000, examples=["term weighting"])
    """Words; without any, all papers in order of id."""
    offset: int = Field(default=0, ge=0, le=10_000)
    """How many papers to skip."""
    limit: int = Field(default=20, ge=1, le=100, examples=[5])
    """How many papers to list."""


class _OfAPaper(_IndexQuery):
    title: Title | None = None
    """Title of the paper that you write."""
    citing: PaperId | None = None
    """The paper of the index that you write."""


class _Searched(_OfAPaper):
    filters: FiltersModel = FiltersModel()
    k: TopK = 10
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


def _example_of_draft(**fields: Any) -> ConfigDict:
    text = "Term weighting is a strong baseline \\cite{?}. Attention suffices to translate \\citep{vaswani, ?}."
    return _example(name="paper.tex", text=text, **fields)


class DraftRequest(_OfAPaper):
    """A draft and its bibliography."""

    model_config = _example_of_draft(bibliography="@misc{vaswani, title={Attention Is All You Need}, year={2017}}")

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
    papers: Cited = Field(min_length=1)
    """The papers to cite, by id."""
    keys: Name = DEFAULT_PATTERN
    """Pattern of new citation keys."""


class DraftRecommendRequest(PlaceRequest, _Searched):
    """A place of a draft, or words to search for instead."""

    model_config = _example_of_draft(place=1, k=3, filters={"year_to": 2020})

    own_first: bool = True
    """List papers of the bibliography first that fit well."""


class DraftCiteRequest(_CitedRequest):
    """Papers to cite at a place of a draft."""

    model_config = _example_of_draft(place=0, papers=[900000158])

    place: int = Field(ge=0)
    """The place, by its number from 0."""


class DraftSayRequest(PlaceRequest, _CitedRequest):
    """Papers that a text is to cite, at a place of a draft or for some words."""

    model_config = _example_of_draft(place=0, papers=[900000158])
