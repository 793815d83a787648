"""The paper store: id to full record. One interface, whatever database stands behind it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from citerec.corpus.json_lines import BadRecord
from citerec.errors import CiterecError
from citerec.records import Paper, Record

COLLECTIONS = ("cited_papers", "citing_papers", "texts", "contexts")
"""Collections of JSON documents kept beside the papers, from which diagnostic sets are made (docs/storage.md)."""

# The place of a record: shard, then line. 2^40 lines a shard, 2^22 shards.
_LINE_BITS = 40


class StoreError(CiterecError):
    """A store that was at work failed."""


def place_of(shard: int, line: int = 0) -> int:
    """Where a record stands among all ever read; the later of two with one id wins."""
    return (shard << _LINE_BITS) + line


def known_collection(name: str) -> str:
    """The name itself.

    Raises:
        ValueError: It is none of COLLECTIONS.
    """
    if name not in COLLECTIONS:
        raise ValueError(f"no collection {name!r:.60}: there are {', '.join(COLLECTIONS)}")
    return name


class NumberedRecord(NamedTuple):
    """A record and its place among all that were ever read; of two with one id the later place wins."""

    place: int
    record: Record


class SearchableText(NamedTuple):
    """What Lucene needs of a paper."""

    paper_id: str
    title: str
    abstract: str
    year: int | None
    venue: str | None
    fields_of_study: str
    """JSON list: equal lists are equal strings."""
    citation_count: int | None


class SearchableCitance(NamedTuple):
    """What Lucene needs of a citing sentence; `position` counts the sentences of one citing paper."""

    cited: SearchableText
    citing_id: str
    citing_year: int | None
    position: int
    text: str


class CensusRow(NamedTuple):
    """How many papers share a first field of study, a year and a citation count."""

    field: str | None
    year: int | None
    citation_count: int | None
    papers: int


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a store holds.

    Attributes:
        papers: Papers.
        with_abstract: Papers with an abstract.
        with_tldr: Papers with a TLDR.
        with_year: Papers with a year.
        citances: Citing sentences of papers in the store.
        with_citances: Papers that have one or more.
        unmatched: Abstracts, TLDRs and citations whose paper is not in the store.
    """

    papers: int
    with_abstract: int
    with_tldr: int
    with_year: int
    citances: int
    with_citances: int
    unmatched: int


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """What one shard held.

    Attributes:
        path: The file.
        format: Its format.
        bytes: Its size.
        read: Good records.
        bad: Records in the quarantine.
        without_context: Citations without a citing sentence or without a cited paper: left out.
    """

    path: str
    format: str
    bytes: int
    read: int
    bad: int
    without_context: int


class Quarantined(NamedTuple):
    """A record that could not be read: where it stands, why, and how it begins."""

    shard: int
    line: int
    reason: str
    beginning: str


class PaperStore(Protocol):
    """What every store can do. Ids order by their UTF-8 bytes; they hold no white space (`corpus/values.py`)."""

    @staticmethod
    def encode(records: Sequence[NumberedRecord]) -> Any:
        """Records as the store writes them: picklable, made in the processes that read."""

    def write(self, encoded: Any) -> None:
        """Upserts encoded records by id; of two with one id the later place wins, of one place the later in order."""

    def papers(self, paper_ids: Iterable[str]) -> dict[str, Paper]:
        """Full records, by id; unknown ids are left out."""

    def years(self, paper_ids: Iterable[str]) -> dict[str, int | None]:
        """Years by id, without the rest of the record; unknown ids are left out."""

    def census(self) -> Iterator[CensusRow]:
        """Counts of papers by first field, year and citation count: one pass over all papers."""

    def searchable_texts(self, after: str = "", changed_since: int = 0) -> Iterator[SearchableText]:
        """All papers with an id above `after`, in order of id, changed at or after a place."""

    def searchable_citances(self, after: str = "", changed_since: int = 0) -> Iterator[SearchableCitance]:
        """Citances of all papers with an id above `after`, in order of cited and citing id.

        With `changed_since`, all citances of a paper come if the paper, one of its citances or the paper that wrote
        one changed at or after that place: a whole paper is written anew or not at all.
        """

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        """The sentences in which one paper cites another."""

    def counts(self) -> Counts:
        """How much the store holds."""

    def histogram(self, attribute: str) -> dict[Any, int]:
        """How many papers have each value of `year`, `venue` or `fields_of_study`, most first, years in order."""

    def fingerprint(self) -> str:
        """A digest of every paper, abstract, TLDR and citation: equal for equal contents, in every store."""

    def finished_shards(self, first: int = 1) -> dict[int, ShardCounts]:
        """What the shards that were read to their end held, by number, in order, from a number on."""

    def next_shard(self) -> int:
        """The number of the next shard to be read, from 1."""

    def finish_shard(self, number: int, counts: ShardCounts) -> None:
        """Notes that a shard was read to its end: it will not be read again."""

    def set_aside(self, shard: int, bad: Sequence[tuple[int, BadRecord]]) -> None:
        """Puts bad records, each with its line, into the quarantine, in place of what stood there from that line."""

    def quarantine(self) -> Iterator[Quarantined]:
        """The records set aside, in order of shard and line."""

    def first_bad(self, shard: int) -> Quarantined | None:
        """The first record of a shard that was set aside."""

    def put(self, collection: str, documents: Iterable[Mapping[str, Any]]) -> int:
        """Keeps documents, each in place of the one with its id; returns how many were given.

        Args:
            collection: One of COLLECTIONS.
            documents: JSON objects with an `id`, a string; taken as they come, in batches.

        Raises:
            ValueError: There is no such collection, or a document has no id, or is no JSON.
        """

    def documents(self, collection: str, *, cited_id: str | None = None) -> Iterator[dict[str, Any]]:
        """The documents of a collection in order of id; only those of one cited paper where it is given."""

    def documents_of(self, collection: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Documents by id; unknown ids are left out."""

    def count(self, collection: str) -> int:
        """How many documents a collection has."""

    def clear(self, collection: str) -> None:
        """Removes all documents of a collection."""

    def integrity_faults(self) -> list[str]:
        """What the database finds wrong with itself; empty where nothing is."""

    def finish(self) -> None:
        """Brings what was written to its final form, then closes."""

    def close(self) -> None:
        """Lets go of the database."""
