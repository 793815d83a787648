"""The records that all packages share: papers, citations, contexts, hits."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from citerec.errors import QueryError

MARKER = "<REF>"
"""Marks the place of the citation in a sentence."""
OTHER_MARKER = "[…]"
"""Stands for each further marker of a sentence, in the context of one of them."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that can be recommended.

    Attributes:
        paper_id: Identifier within its corpus: the corpusid of S2AG, the entry key of BibTeX.
        title: Title in plain text; empty where the source has none.
        abstract: Abstract in plain text.
        tldr: One-sentence summary, where the source gives one.
        year: Year of publication.
        venue: Journal or proceedings, as the source names it.
        authors: Names in order, given name first.
        fields_of_study: Fields such as "Computer Science", without repeats.
        citation_count: Citations received, as the source counts them.
        external_ids: Identifiers elsewhere, by scheme: {"DOI": "10.…"}.
        bibtex: The author's own BibTeX entry, byte for byte, if the paper came from one.
        origins: Which source each field came from, by its name, where a record was joined from several.
    """

    paper_id: str
    title: str = ""
    abstract: str | None = None
    tldr: str | None = None
    year: int | None = None
    venue: str | None = None
    authors: tuple[str, ...] = ()
    fields_of_study: tuple[str, ...] = ()
    citation_count: int | None = None
    external_ids: Mapping[str, str] = field(default_factory=dict, hash=False)
    bibtex: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class PaperText:
    """A text of a paper whose other data come from elsewhere, as in S2AG's datasets.

    Attributes:
        table: `abstracts`, or `tldrs` for one-sentence summaries.
        paper_id: The id of the paper.
        text: The text; None if the paper has none.
    """

    table: str
    paper_id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Citation:
    """One paper citing another, with the sentences in which it does so.

    Attributes:
        citing_id: The paper that cites.
        cited_id: The paper that is cited; None where the source could not match it.
        contexts: The citing sentences (citances), as the source gives them.
        intents: For each citance its intents: background, method, result.
        influential: Whether S2AG calls the citation influential.
        citation_id: Identifier of the record: a source may have several for one pair of papers.
        citing_year: Year of the citing paper, if this record gives it; the year of the paper's own record comes first.
    """

    citing_id: str
    cited_id: str | None
    contexts: tuple[str, ...] = ()
    intents: tuple[tuple[str, ...], ...] = ()
    influential: bool = False
    citation_id: str = ""
    citing_year: int | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """A record that its source deleted.

    Attributes:
        table: `papers`, `abstracts`, `tldrs` or `citations`.
        key: Its primary key there: the id of the paper, or `citation_id`.
    """

    table: str
    key: str


Record = Paper | PaperText | Citation | Deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A sentence with one citation taken out of it (docs/formats.md); made with the names of its attributes.

    Attributes:
        text: The sentence, with `<REF>` in place of the citation.
        before: The sentences before it, if known.
        after: The sentences after it, if known.
        context_id: Identifier, unique in its file.
        citing_id: The citing paper, if it is in the corpus; it is never recommended to itself.
        citing_key: Name of the citing paper if its id is not known; a DOI, arXiv id or Anthology id finds it as well.
        citing_title: Title of the citing paper if its id is not known, such as that of a draft; it finds it too.
        citing_authors: Its authors, if its id is not known: of the papers that they wrote, more are cited.
        cited_before: The papers that the same text cited before this place, in order of mention; one that it cited
            several times may stand there several times. None if unknown.
        citing_year: Year of the citing paper; newer papers cannot have been cited.
        cited_ids: The papers cited here; a marker may stand for a group.
        section: Heading of the section.
        source: Where the context comes from.
        intent: Why the paper is cited: background, method, result.
        labels: Classes by family of strata, where the context belongs to a diagnostic set.
        marker: The citation as written in the full text, if the context was taken from one: "[12]".
        style: Style of the marker: "numbered-brackets" and so on (docs/formats.md).
        start: Offset of the marker in the full text.
        end: Offset of the first character after the marker.
    """

    text: str
    before: str = ""
    after: str = ""
    context_id: str = ""
    citing_id: str | None = None
    citing_key: str | None = None
    citing_year: int | None = None
    cited_ids: tuple[str, ...] = ()
    section: str | None = None
    source: str | None = None
    intent: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    marker: str | None = None
    style: str | None = None
    start: int | None = None
    end: int | None = None
    citing_title: str | None = None
    cited_before: tuple[str, ...] | None = None
    citing_authors: tuple[str, ...] = ()


class Notice(NamedTuple):
    """What was said of a paper after it was published.

    Attributes:
        kind: `retraction`, `correction` or `concern`.
        address: Where it stands; empty if that is not known.
        source: Who says so.
    """

    kind: str
    address: str
    source: str


class Known(NamedTuple):
    """A record of a web service: the paper, and the notices about it."""

    paper: Paper
    source: str
    notices: tuple[Notice, ...] = ()


def citing_name(citing_id: str | None, citing_key: str | None) -> str | None:
    """The id under which the citing sentences of a paper are stored: its own id, or else its key without white space.

    Diagnostic sets write `CorpusId:12` for the paper that S2AG's citations call 12.
    """
    return citing_id or "_".join((citing_key or "").removeprefix("CorpusId:").split()) or None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which papers may be found. All apply at once; each is exact.

    Attributes:
        year_from: Published in this year or later. A paper without a year does not pass.
        year_to: Published in this year or earlier. A paper without a year does not pass.
        fields: Has one of these fields of study; case is ignored.
        venues: Published in a venue whose name contains one of these as consecutive words.
        min_citations: Cited at least this often; a paper of unknown count does not pass.
        exclude: None of these papers.
        citing_ids: What the citing paper is called: neither papers nor citing sentences of these ids are searched.
        as_of_year: No paper known to be newer than this, and no citing sentence that is newer or of unknown year.
    """

    year_from: int | None = None
    year_to: int | None = None
    fields: tuple[str, ...] = ()
    venues: tuple[str, ...] = ()
    min_citations: int | None = None
    exclude: tuple[str, ...] = ()
    citing_ids: tuple[str, ...] = ()
    as_of_year: int | None = None


NO_FILTERS = Filters()
"""Every paper may be found."""


@dataclass(frozen=True, slots=True)
class Match:
    """A word of the sentence that a hit shares, the fields where it occurs, and what it adds to the score."""

    word: str
    fields: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Reason:
    """A feature of the ranking, such as `vectors` or `citation count`, and what it adds to a hit's score."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class Citance:
    """A sentence of `citing_id` that cites the hit and matches the query, and what it adds to the score."""

    citing_id: str
    text: str
    score: float


Verdict = Literal["sure", "likely", "weak"]
"""How sure a system is of a paper, in a word."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A recommended paper; rank 1 is the best.

    Attributes:
        score: Higher is better; comparable within one answer only.
        citance: The citing sentence that adds most to its score, if any.
        matches: The matching words, best first; empty unless `explain` is set.
        reasons: The features of the last ranking step, strongest first; empty unless `explain` is set.
        cited_before: How often the draft cites it already.
        verdict: How sure the system is of it; None if it is not calibrated for the index.
        also: Other editions of the paper that the list had, such as its preprint, where they were folded.
    """

    rank: int
    score: float
    paper: Paper
    citance: Citance | None = None
    matches: tuple[Match, ...] = ()
    reasons: tuple[Reason, ...] = ()
    also: tuple[Paper, ...] = ()
    cited_before: int = 0
    verdict: Verdict | None = None


_WHY = {
    "words and vectors": "its meaning is near to your sentence",
    "title and abstract": "its title and abstract share words with your sentence",
    "vectors": "its meaning is near to your sentence",
    "citing sentences": "others cite it in sentences like yours",
    "words of the title": "your sentence has words of its title",
    "authors named": "your sentence names its authors",
    "authors in common": "it shares authors with your paper",
    "authors in the draft": "your draft cites its authors",
    "cited in the draft": "your draft cites it already",
    "near the draft": "it is near to what your draft cites",
    "venue in common": "it has the venue of your paper",
    "citation count": "it is cited often",
}
_UNTOLD = ("age", "the sentence itself")  # they say little to a person
_COUNTS = 0.1  # of a score: smaller reasons are not told
_TOLD, _WORDS = 3, 5


def why(hit: Hit) -> list[str]:
    """The strongest reasons for a hit in plain words, and words that it shares; none unless `explain` was set."""
    words = ", ".join(dict.fromkeys(match.word for match in hit.matches[:_WORDS]))
    strong = [one.name for one in hit.reasons if one.score >= _COUNTS and one.name not in _UNTOLD][:_TOLD]
    if not words:
        return [_WHY.get(name, f"lifted by {name}") for name in strong]
    meanings = _WHY | {"words and vectors": f"its words ({words}) and meaning are near to your sentence"}
    told = [meanings.get(name, f"lifted by {name}") for name in strong if name != "words"]
    return told if "words and vectors" in strong else [*told, f"words in common: {words}"]


FIRST = 10
"""How many papers of an answer confidence is about."""

EVENTS = {"first": "the first is right", "among_ten": "one of the first ten is right"}
"""The fields of `Confidence`, in words."""


_SURE, _LIKELY, _FITS = 0.5, 0.25, 0.25
_ABOUT, _PLAUSIBLE = 0.6, 0.35
"""Chosen on data/acl and data/acm, each with curves that did not see it: indexes/confidence/DATASHEET.md."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a system is of an answer: calibrated probabilities, from 0 to 1.

    Attributes:
        first: That the first paper is right, that is, cited there.
        among_ten: That at least one of the first ten is.
        fits: That the first paper is what is cited, against the same contexts without what they cite in the index.
        about: That the index is about what the sentence is about, against sentences of other fields or without meaning.
    """

    first: float
    among_ten: float
    fits: float = 1.0
    about: float = 1.0

    @property
    def nothing_fits(self) -> bool:
        """Whether nothing in the index seems to fit: it is about other things, and the first paper is hardly right."""
        return self.about < _ABOUT and self.first < _PLAUSIBLE

    def verdict(self, chance: float) -> Verdict:
        """What to say of a paper that is right with some probability."""
        if self.fits < _FITS or self.nothing_fits:
            return "weak"
        return "sure" if chance >= _SURE else "likely" if chance >= _LIKELY else "weak"

    def to_json(self) -> dict[str, float]:
        """The probabilities, rounded."""
        return {name: round(probability, 4) for name, probability in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Answer(Sequence[Hit]):
    """The hits for one context, best first; a sequence of hits.

    Attributes:
        context: The context.
        hits: The hits.
        confidence: How sure the system is of them; None if it is not calibrated for the index.
    """

    context: Context
    hits: tuple[Hit, ...]
    confidence: Confidence | None = None

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int | slice) -> Any:
        """A hit, or the answer with some of the hits."""
        return replace(self, hits=self.hits[place]) if isinstance(place, slice) else self.hits[place]

    def __str__(self) -> str:
        """The hits as a short table: rank, verdict, title with its year, id."""
        return "\n".join(
            f"{one.rank:>3}  {one.verdict or '–':<6}  {one.paper.title} ({one.paper.year or '–'})  {one.paper.paper_id}"
            for one in self.hits
        )

    @property
    def nothing_fits(self) -> bool:
        """Whether nothing in the index fits, as far as the system can tell."""
        return not self.hits or (self.confidence is not None and self.confidence.nothing_fits)

    def if_sure(self, least: float) -> "Answer":
        """The same answer; without hits if the system is less sure than `least` that one of the first ten is right.

        Raises:
            QueryError: The answer has no confidence.
        """
        if self.confidence is None:
            raise QueryError("the answer has no confidence", "Calibrate the system: citerec train confidence")
        return self if self.confidence.among_ten >= least else replace(self, hits=())

    def to_json(self) -> dict[str, Any]:
        """Hits, how sure the system is of them (null if it is not calibrated), and whether nothing fits."""
        confidence = self.confidence.to_json() if self.confidence else None
        return {"hits": list(map(to_json, self.hits)), "confidence": confidence, "nothing_fits": self.nothing_fits}


def json_id(paper_id: str) -> int | str:
    """A paper id as JSON shows it: a number where S2AG has a number, else a string."""
    return int(paper_id) if paper_id.isascii() and paper_id.isdigit() and str(int(paper_id)) == paper_id else paper_id


_SHOWN: tuple[str, ...] = ("paper_id", "title", "year", "venue", "authors", "abstract", "tldr")
_SHOWN += ("fields_of_study", "citation_count", "external_ids")


def paper_to_json(paper: Paper, shown: Sequence[str] = _SHOWN) -> dict[str, Any]:
    """Fields of a paper as a JSON object (docs/formats.md, "Answers as JSON")."""
    values = {name: getattr(paper, name) for name in shown} | {"paper_id": json_id(paper.paper_id)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def to_json(hit: Hit) -> dict[str, Any]:
    """A hit as a flat JSON object (docs/formats.md, "Answers as JSON")."""
    paper_id = json_id(hit.paper.paper_id)
    answer = {"rank": hit.rank, "paper_id": paper_id, "score": round(hit.score, 6), **paper_to_json(hit.paper)}
    if citance := hit.citance:
        own = {"citing_id": json_id(citance.citing_id), "score": round(citance.score, 6)}
        answer["citance"] = asdict(citance) | own
    further: dict[str, Any] = {}
    for name in ("matches", "reasons"):
        further[name] = [asdict(part) | {"score": round(part.score, 6)} for part in getattr(hit, name)]
    further |= {"why": why(hit), "verdict": hit.verdict, "cited_before": hit.cited_before}
    further["also"] = [paper_to_json(other, ("paper_id", "title", "year", "venue")) for other in hit.also]
    return answer | {name: value for name, value in further.items() if value}
