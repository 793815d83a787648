"""Which papers of a corpus are kept: filters, languages, ids, and the neighbourhood of a bibliography."""

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from citerec.corpus.fetch.ids import Ids, loaded
from citerec.corpus.filters import passes
from citerec.corpus.json_lines import raw_lines
from citerec.corpus.references import asked, names_of
from citerec.corpus.releases.base import Corpus, RawRecord
from citerec.corpus.sources import papers_in
from citerec.corpus.titles import alike, plain_title
from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest, identity
from citerec.records import NO_FILTERS, Citation, Deletion, Filters, Paper


@dataclass(frozen=True, slots=True)
class Cut:
    """Which papers are kept. All conditions hold at once.

    Attributes:
        filters: What is asked of the record.
        languages: Written in one of these, as codes such as "en".
        ids: A file of ids, one a line (`citerec.corpus.references.asked`).
        cited_by: A bibliography: its papers, and those near to them in the graph of citations.
        hops: How many citations away from these papers, in either direction.
    """

    filters: Filters = NO_FILTERS
    languages: tuple[str, ...] = ()
    ids: Path | None = None
    cited_by: Path | None = None
    hops: int = 1

    def check(self, corpus: type[Corpus]) -> None:
        """Raises InputError if a source does not have what is asked for, or a file cannot be read."""
        if self.languages and not corpus.says_language:
            raise InputError(f"{corpus.name} does not say languages", "Leave --language out.")
        if self.cited_by and not corpus.citations:
            raise InputError(f"{corpus.name} has no citations", "Leave --cited-by out, or name papers with --ids.")
        if self.ids and not wanted_ids(self.ids):
            raise SourceError(f"{self.ids} has no ids", "Give a file with an id in each line.")
        if self.cited_by and not library_entries(self.cited_by):
            raise SourceError(f"{self.cited_by} has no entries", "Give a bibliography: BibTeX, RIS or CSL-JSON.")

    def to_json(self) -> dict[str, Any]:
        """What identifies the cut: files by their names and digests."""
        stated: dict[str, Any] = {
            name: value for name, value in asdict(self.filters).items() if value not in (None, ())
        }
        if self.languages:
            stated["languages"] = self.languages
        for name, path in (("ids", self.ids), ("cited_by", self.cited_by)):
            if path:
                stated[name] = {"name": path.name, "sha256": file_digest(path)}
        return stated | ({"hops": self.hops} if self.cited_by else {})

    @classmethod
    def of_json(cls, stated: Mapping[str, Any]) -> "Cut":
        """The cut of a corpus that is there; its files of ids lie beside it (`Places`)."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()
        }
        languages = known.pop("languages", ())
        for name in ("ids", "cited_by", "hops"):
            known.pop(name, None)
        return cls(Filters(**known), languages)


def wanted_ids(path: Path) -> Ids:
    """The ids in a file, one a line; errors as for `raw_lines`."""
    lines = (raw.decode("utf-8", "replace") for _, raw, _ in raw_lines(path))
    return Ids(name for line in lines for name in asked(line))


def library_entries(path: Path) -> list[Paper]:
    """The entries of a bibliography that can be read; errors as for `recognise`."""
    if not path.is_file():
        raise SourceError(f"{path} is no file", "Give a bibliography: BibTeX, RIS or CSL-JSON.")
    return papers_in(path)


def digest_of_line(raw: bytes) -> str:
    """A number by which a record is recognised that did not change."""
    return str(int.from_bytes(hashlib.blake2b(raw.strip(), digest_size=8).digest()) % 10**18)


class Found(dict[str, Ids]):
    """Ids that were found in a file, by what they are."""

    def note(self, label: str, one: str) -> None:
        """Adds an id."""
        if label not in self:
            self[label] = Ids()
        self[label].add(one)


Keeps = Callable[[RawRecord, Found], bool]
"""Whether a record is kept; what else is worth knowing of it is noted."""


@dataclass(frozen=True, slots=True)
class PaperSieve:
    """Keeps the papers of a cut.

    Attributes:
        filters: What is asked of the record.
        languages: As in `Cut`.
        wanted: A file with the `names_of` papers, of which one must be there.
        near: A file of ids, of which the paper's own must be one.
        before: A file of the ids that were kept before: those that do not stay are noted as `left`.
        known: A file of `digest_of_line` of records that are here: they are not kept again.
    """

    filters: Filters
    languages: tuple[str, ...] = ()
    wanted: Path | None = None
    near: Path | None = None
    before: Path | None = None
    known: Path | None = None

    def start(self) -> Keeps:
        """Loads the ids."""
        wanted, near, before, known = (loaded(path) for path in (self.wanted, self.near, self.before, self.known))

        def keeps(record: RawRecord, found: Found) -> bool:
            kept = False
            if record.paper_id is not None and before is not None and record.paper_id in before:
                found.note("left", record.paper_id)  # the source saw that it does not pass
            for paper in record.records if isinstance(record.records, tuple) else ():
                if not isinstance(paper, Paper):
                    continue
                if (
                    passes(paper, self.filters)
                    and (not self.languages or record.language in self.languages)
                    and (near is None or paper.paper_id in near)
                    and (wanted is None or any(name in wanted for name in names_of(paper)))
                ):
                    found.note("kept", paper.paper_id)
                    kept = True
                elif before is not None and paper.paper_id in before:
                    found.note("left", paper.paper_id)
            return kept and (known is None or digest_of_line(record.raw) not in known)

        return keeps


@dataclass(frozen=True, slots=True)
class JoinSieve:
    """Keeps what is about kept papers. Notes these papers as `about`, and the keys of records, if they have some."""

    kept: Path

    def start(self) -> Keeps:
        """Loads the ids."""
        kept = loaded(self.kept)
        assert kept is not None

        def keeps(record: RawRecord, found: Found) -> bool:
            if record.paper_id is None or record.paper_id not in kept:
                return False
            if record.key is not None:
                found.note("keys", record.key)
            else:
                found.note("about", record.paper_id)
            return True

        return keeps


@dataclass(frozen=True, slots=True)
class ChangedSieve:
    """`JoinSieve` for records with keys in an update: those that were kept before and are not any more are `left`."""

    kept: Path
    before: Path

    def start(self) -> Keeps:
        """Loads the ids."""
        keeps_now, before = JoinSieve(self.kept).start(), loaded(self.before)
        assert before is not None

        def keeps(record: RawRecord, found: Found) -> bool:
            if keeps_now(record, found):
                return True
            if record.key is not None and record.key in before:
                found.note("left", record.key)
            return False

        return keeps


@dataclass(frozen=True, slots=True)
class DeletionSieve:
    """Keeps deletions of records that are there; their keys are noted as `deleted`."""

    known: Path

    def start(self) -> Keeps:
        """Loads the ids."""
        known = loaded(self.known)
        assert known is not None

        def keeps(record: RawRecord, found: Found) -> bool:
            records = record.records if isinstance(record.records, tuple) else ()
            keys = [one.key for one in records if isinstance(one, Deletion) and one.key in known]
            for key in keys:
                found.note("deleted", key)
            return bool(keys)

        return keeps


@dataclass(frozen=True, slots=True)
class SeedSieve:
    """Keeps nothing: notes the papers of a bibliography as `seeds`, and the entries that they are as `entries`."""

    bibliography: Path

    def start(self) -> Keeps:
        """Reads the entries."""
        library = _library(*identity(self.bibliography))

        def keeps(record: RawRecord, found: Found) -> bool:
            for paper in record.records if isinstance(record.records, tuple) else ():
                if isinstance(paper, Paper) and (key := library.entry_of(paper)):
                    found.note("seeds", paper.paper_id)
                    found.note("entries", key)
            return False

        return keeps


@dataclass(frozen=True, slots=True)
class NeighbourSieve:
    """Keeps nothing: notes as `near` the papers that one of some papers cites, and those that cite one."""

    around: Path

    def start(self) -> Keeps:
        """Loads the ids."""
        around = loaded(self.around)
        assert around is not None

        def keeps(record: RawRecord, found: Found) -> bool:
            for one in record.records if isinstance(record.records, tuple) else ():
                if isinstance(one, Citation) and one.cited_id is not None:
                    if one.citing_id in around:
                        found.note("near", one.cited_id)
                    if one.cited_id in around:
                        found.note("near", one.citing_id)
            return False

        return keeps


Sieve = PaperSieve | JoinSieve | ChangedSieve | DeletionSieve | SeedSieve | NeighbourSieve


@dataclass(frozen=True)
class _Library:
    """The entries of a bibliography, found by identifier, or by title with an author and nearly the year."""

    by_name: dict[str, str] = field(default_factory=dict)
    by_title: dict[str, list[Paper]] = field(default_factory=dict)

    def entry_of(self, paper: Paper) -> str | None:
        """The key of the entry that a paper is."""
        for name in names_of(paper):
            if key := self.by_name.get(name):
                return key
        same = self.by_title.get(plain_title(paper.title), ()) if paper.title else ()
        return next((entry.paper_id for entry in same if alike(entry, paper)), None)


@functools.lru_cache(maxsize=1)
def _library(path: str, _size: int, _changed: int) -> _Library:
    return library_of(library_entries(Path(path)))


def library_of(entries: Iterable[Paper]) -> _Library:
    """Entries, made ready for `entry_of`. The key of an entry is no id of the corpus."""
    library = _Library()
    for entry in entries:
        for name in names_of(entry) - {entry.paper_id}:
            library.by_name.setdefault(name, entry.paper_id)
        if entry.title:
            library.by_title.setdefault(plain_title(entry.title), []).append(entry)
    return library
