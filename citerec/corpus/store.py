"""The paper store: id to full record. One interface for all databases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple, Protocol

from citerec.errors import CiterecError
from citerec.records import Paper, Record

# The place of a record: shard, then line. 2^40 lines per shard, 2^22 shards.
_LINE_BITS = 40


class StoreError(CiterecError):
    """A store failed while in use."""


def place_of(shard: int, line: int = 0) -> int:
    """The place of a record among all that were ever read."""
    return (shard << _LINE_BITS) + line


class NumberedRecord(NamedTuple):
    """A record and its place among all that were ever read; of two with one id the later place wins."""

    place: int
    record: Record


class SearchableText(NamedTuple):
    """The fields of a paper that Lucene indexes."""

    paper_id: str
    title: str
    abstract: str
    year: int | None
    venue: str | None
    fields_of_study: str
    """JSON list: equal lists are equal strings."""
    citation_count: int | None


class SearchableCitance(NamedTuple):
    """The fields of a citing sentence that Lucene indexes; `position` counts the sentences of one citing paper."""

    cited: SearchableText
    citing_id: str
    citing_year: int | None
    position: int
    text: str


class PaperFacts(NamedTuple):
    """The fields of a paper that rankers read."""

    paper_id: str
    title: str
    year: int | None
    venue: str | None
    authors: Sequence[str]
    citation_count: int | None


class CensusRow(NamedTuple):
    """How many papers share a first field of study, a year and a citation count."""

    field: str | None
    year: int | None
    citation_count: int | None
    papers: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a store: papers, those with an abstract, a TLDR, a year, or citances, and the citances of these.

    `unmatched` counts abstracts, TLDRs and citations whose paper is not in the store.
    """

    papers: int
    with_abstract: int
    with_tldr: int
    with_year: int
    citances: int
    with_citances: int
    unmatched: int


def sum_of(counts: Iterable[Counts]) -> Counts:
    """Several counts added up."""
    return Counts(*map(sum, zip(*map(astuple, counts), strict=True))) if (counts := list(counts)) else Counts(*[0] * 7)


class CitingPaper(NamedTuple):
    """A paper that cites another: its id, its year if known, and in how many sentences of the store it does."""

    paper_id: str
    year: int | None
    sentences: int


class PaperStore(Protocol):
    """The interface of every store. Ids sort by their UTF-8 bytes; they have no white space (`corpus/values.py`)."""

    @property
    def database(self) -> Any:
        """The database of the records; `ledger.py` and `documents.py` keep their data there too."""

    @staticmethod
    def encode(records: Sequence[NumberedRecord]) -> Any:
        """Records in the form that `write` takes: picklable, made in the processes that read."""

    def write(self, *encoded: Any) -> None:
        """Upserts encoded records by id; of two with one id the later place wins, at the same place the later one.

        Many at once are faster than few.
        """

    def apply_deletions(self) -> None:
        """Removes the records that a deletion with a later place names, then forgets the deletions.

        Until then `write` only keeps them, because records may be written in another order than that of their places.
        """

    def papers(self, paper_ids: Iterable[str], *, texts: bool = True) -> dict[str, Paper]:
        """Records, by id, without abstracts and TLDRs unless `texts`; unknown ids are left out."""

    def ids_and_abstracts(self) -> Iterator[tuple[str, bool]]:
        """The id of each paper and whether it has an abstract, in order of id."""

    def facts(self) -> Iterator[PaperFacts]:
        """What rankers read of each paper, in order of id."""

    def years(self, paper_ids: Iterable[str]) -> dict[str, int | None]:
        """Years by id, without the rest of the record; unknown ids are left out."""

    def census(self) -> Iterator[CensusRow]:
        """Counts of papers by first field, year and citation count: one pass over all papers."""

    def searchable_texts(self, after: str = "") -> Iterator[SearchableText]:
        """All papers with an id above `after`, in order of id."""

    def searchable_citances(self, after: str = "") -> Iterator[SearchableCitance]:
        """Citances of all papers with an id above `after`, in order of cited and citing id."""

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        """The sentences in which one paper cites another."""

    def citing_papers(self, cited_ids: Iterable[str]) -> dict[str, list[CitingPaper]]:
        """The papers that cite each paper in a sentence, in order of id; papers that none cites are left out."""

    def called(self, names: Sequence[str], most: int) -> list[str]:
        """Ids of papers with one of the names as the last word of an author's name, or as an identifier elsewhere.

        Case is ignored, at least that of ASCII. The most cited come first, `most` at most. It reads all papers.
        """

    def named(self, names: Iterable[str]) -> dict[str, list[Paper]]:
        """Records, without texts, by each of their names that is asked for (`look_up_names`); in order of id.

        Only a finished store knows the names. It looks them up and does not read all papers.
        """

    def counts(self) -> Counts:
        """The counts of the store."""

    def histogram(self, attribute: str) -> dict[Any, int]:
        """How many papers have each value of `year`, `venue` or `fields_of_study`, most first, years in order."""

    def fingerprint(self) -> str:
        """A digest of every paper, abstract, TLDR and citation: equal for equal contents, in every store."""

    def integrity_faults(self) -> list[str]:
        """What the database finds wrong with itself; empty if nothing is."""

    def finish(self) -> None:
        """Brings the data to its final form, then closes."""

    def interrupt(self) -> None:
        """Ends what other threads are reading, with an error there."""

    def close(self) -> None:
        """Closes the database."""
