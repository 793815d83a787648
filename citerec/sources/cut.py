"""Which papers of a corpus are kept: filters, languages, ids, and the neighbourhood of a bibliography."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from citerec.corpus.base import papers_in
from citerec.corpus.json_lines import raw_lines
from citerec.corpus.matching import alike, asked, is_title, look_up_names, names_of, passes
from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest
from citerec.records import NO_FILTERS, Citation, Deletion, Filters, Paper
from citerec.sources.base import Corpus, RawRecord
from citerec.sources.ids import Ids, loaded

_FILTERS = TypeAdapter(Filters)


@dataclass(frozen=True, slots=True)
class Cut:
    """Which papers are kept. All conditions hold at once.

    Attributes:
        filters: What is asked of the record.
        languages: Written in one of these, as codes such as "en".
        ids: A file of ids, one a line (`citerec.corpus.matching.asked`).
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
        """What identifies the cut, as JSON: files by their names and digests."""
        files = {"ids": self.ids, "cited_by": self.cited_by}
        return {
            **_FILTERS.dump_python(self.filters, mode="json", exclude_defaults=True),
            **({"languages": list(self.languages)} if self.languages else {}),
            **{name: {"name": path.name, "sha256": file_digest(path)} for name, path in files.items() if path},
            **({"hops": self.hops} if self.cited_by else {}),
        }

    @classmethod
    def of_json(cls, stated: Mapping[str, Any]) -> "Cut":
        """The cut of a corpus that is there; its files of ids lie beside it."""
        return cls(_FILTERS.validate_python(stated), tuple(stated.get("languages", ())))


def wanted_ids(path: Path) -> Ids:
    """The ids in a file, one a line; errors as for `raw_lines`."""
    lines = (raw.decode("utf-8", "replace") for _, raw, _ in raw_lines(path))
    return Ids(map(asked, lines))


def library_entries(path: Path) -> list[Paper]:
    """The entries of a bibliography that can be read; errors as for `recognise`."""
    if not path.is_file():
        raise SourceError(f"{path} is no file", "Give a bibliography: BibTeX, RIS or CSL-JSON.")
    return papers_in(path)


def digest_of_line(raw: bytes) -> str:
    """A number by which a record is recognised that did not change."""
    return str(int.from_bytes(hashlib.blake2b(raw.strip(), digest_size=8).digest()) % 10**18)


Found = defaultdict[str, Ids]
"""Ids that were found in a file, by what they are."""

Keeps = Callable[[RawRecord, Found], bool]
"""Whether a record is kept; what else is worth knowing of it is noted."""

Sieve = Callable[[], Keeps]
"""Loads the ids that are needed, where the records are read: a partial of one of the following functions."""


def kept_papers(
    cut: Cut,
    wanted: Path | None = None,
    near: Path | None = None,
    before: Path | None = None,
    known: Path | None = None,
) -> Keeps:
    """Keeps the papers of a cut, and notes them as `kept`.

    Args:
        cut: The cut.
        wanted: A file with the `names_of` papers, of which one must be there.
        near: A file of ids, of which the paper's own must be one.
        before: A file of the ids that were kept before: those that do not stay are noted as `left`.
        known: A file of `digest_of_line` of records that are here: they are not kept again.
    """
    wanted_names, near_ids, ids_before, lines = (loaded(path) for path in (wanted, near, before, known))
    ids_before = ids_before or Ids()

    def keeps(record: RawRecord, found: Found) -> bool:
        kept = False
        for paper in _papers_of(record):
            if (
                passes(paper, cut.filters)
                and (not cut.languages or record.language in cut.languages)
                and (near_ids is None or paper.paper_id in near_ids)
                and (wanted_names is None or any(name in wanted_names for name in names_of(paper)))
            ):
                found["kept"].add(paper.paper_id)
                kept = True
            elif paper.paper_id in ids_before:
                found["left"].add(paper.paper_id)
        return kept and (lines is None or digest_of_line(record.raw) not in lines)

    return keeps


def kept_joins(kept: Path, before: Path | None = None) -> Keeps:
    """Keeps what is about kept papers. Notes these papers as `about`, and the keys of records, if they have some.

    Args:
        kept: A file of the ids of kept papers.
        before: A file of the keys that were kept before. What changed in these records is kept, whatever it is about.
    """
    ids, keys = loaded(kept) or Ids(), loaded(before) or None

    def keeps(record: RawRecord, found: Found) -> bool:
        if record.paper_id not in ids and (keys is None or record.key not in keys):
            return False
        if record.key is not None:
            found["keys"].add(record.key)
        elif record.paper_id is not None:
            found["about"].add(record.paper_id)
        return True

    return keeps


def kept_deletions(known: Path) -> Keeps:
    """Keeps deletions of records that are there; their keys are noted as `deleted`."""
    ids = loaded(known) or Ids()

    def keeps(record: RawRecord, found: Found) -> bool:
        keys = [one.key for one in record.records if isinstance(one, Deletion) and one.key in ids]
        for key in keys:
            found["deleted"].add(key)
        return bool(keys)

    return keeps


def seeds_of(bibliography: Path) -> Keeps:
    """Keeps nothing: notes the papers of a bibliography as `seeds`, and the entries that they are as `entries`.

    They share an identifier, or the title, an author and nearly the year.
    """
    entries: defaultdict[str, list[Paper]] = defaultdict(list)
    for entry in library_entries(bibliography):
        for name in look_up_names(entry.title, entry.external_ids):
            entries[name].append(entry)

    def keeps(record: RawRecord, found: Found) -> bool:
        for paper in _papers_of(record):
            for name in look_up_names(paper.title, paper.external_ids) & entries.keys():
                for entry in entries[name]:
                    if not is_title(name) or alike(entry, paper):
                        found["seeds"].add(paper.paper_id)
                        found["entries"].add(entry.paper_id)
        return False

    return keeps


def neighbours_of(around: Path) -> Keeps:
    """Keeps nothing: notes as `near` the papers that one of some papers cites, and those that cite one."""
    ids = loaded(around) or Ids()

    def keeps(record: RawRecord, found: Found) -> bool:
        for one in record.records:
            if isinstance(one, Citation) and one.cited_id is not None:
                if one.citing_id in ids:
                    found["near"].add(one.cited_id)
                if one.cited_id in ids:
                    found["near"].add(one.citing_id)
        return False

    return keeps


def _papers_of(record: RawRecord) -> Iterator[Paper]:
    return (one for one in record.records if isinstance(one, Paper))
