"""OpenAlex: the public snapshot, in partitions by the day on which a work last changed.

The bucket holds one state, which is replaced each quarter. So it has one release, named by its newest partition, and
what changed since an earlier one are the partitions after that, and one list of all works that were ever deleted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from citerec.corpus.openalex import HEADER_OF_DELETED, parse_deleted, parse_work
from citerec.corpus.reading import BadRecord, tried
from citerec.files.http import WebError, size_of
from citerec.sources.base import Corpus, Dataset, RawRecord, Release, RemoteFile, Update, json_records

WORKS, DELETED = "openalex", "openalex-deleted"
_FOLDER = "data/jsonl/works"
_DELETED = ("deleted_ids.csv.gz", "deleted_ids.csv")
_PART = re.compile(r"s3://[^/]+/((?:[\w.-]+/)+updated_date=(\d{4}-\d\d-\d\d)/(\w[\w.-]*))")


class OpenAlex(Corpus):
    """The works of OpenAlex, with abstracts and references."""

    name = "openalex"
    title = "OpenAlex"
    home = "https://openalex.org"
    licence = "CC0 1.0"
    about = (
        "Works of all fields, many with abstracts: 510 million, 670 GB compressed in 2026. Free, without a key; a new "
        "snapshot each quarter replaces the one before."
    )
    url = "https://openalex.s3.amazonaws.com"
    says_language = True
    citations = "works"

    def release(self, name: str | None = None) -> Release:
        """The one release that is there; InputError if another is named."""
        newest, parts = self._parts(name)
        sizes = [file.bytes for _, file in parts if file.bytes is not None]
        size = sum(sizes) if len(sizes) == len(parts) else None
        works = Dataset("works", "Titles, abstracts, authors, venues, topics, citation counts and references", size)
        return Release(newest, (works,), "CC0 1.0: no conditions. OpenAlex asks to be cited (arXiv:2205.01833).")

    def files(self, release: str, _dataset: str) -> list[RemoteFile]:
        """The parts of the snapshot, those that changed last at the end."""
        return [file for _, file in self._parts(release)[1]]

    def updates(self, since: str, _datasets: Sequence[str]) -> list[Update]:
        """One update: the partitions after a release, and the works that were deleted or merged."""
        newest, parts = self._parts()
        upserts = tuple(file for day, file in parts if day > since)
        return [Update(since, newest, upserts, self._deletions())] if upserts else []

    def records(self, file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The works of a part, or the deletions of a file of ids."""
        return json_records(lines, parse_work) if file.format == WORKS else _deletions(lines)

    def _parts(self, release: str | None = None) -> tuple[str, list[tuple[str, RemoteFile]]]:
        """The newest day, and the files of the manifest, each with its day, in order."""
        manifest = self.web.json(f"{self.url_used}/{_FOLDER}/manifest.json")
        try:
            parts = sorted(map(self._part, manifest["files"]), key=lambda part: part[1].name)
            newest = max(day for day, _ in parts)
        except (KeyError, TypeError, AttributeError, ValueError):
            fault = "OpenAlex's manifest has another form than citerec knows"
            raise WebError(fault, "Is there a newer citerec?") from None
        self.check_release(release, [newest])
        return newest, parts

    def _part(self, entry: dict[str, Any]) -> tuple[str, RemoteFile]:
        match = _PART.fullmatch(entry["url"])
        if not match:
            raise ValueError
        place, day, name = match.groups()
        size = (entry.get("meta") or {}).get("content_length")
        size = size if isinstance(size, int) and size >= 0 else None
        return day, RemoteFile("works", f"{day}-{name}", WORKS, f"{self.url_used}/{place}", size)

    def _deletions(self) -> tuple[RemoteFile, ...]:
        """The file of all deletions ever, which does no harm: an id is never used again."""
        for name in _DELETED:
            url = f"{self.url_used}/{_FOLDER}/{name}"
            try:
                return (RemoteFile("works", name, DELETED, url, size_of(self.web.headers(url))),)
            except WebError as error:
                if error.status not in (403, 404):  # S3 answers 403 where a bucket may not be listed
                    raise
        return ()


def _deletions(lines: Iterable[bytes]) -> Iterator[RawRecord]:
    for number, raw in enumerate(lines, 1):
        if raw.isspace() or HEADER_OF_DELETED.match(raw):
            continue
        record = tried(lambda raw=raw: parse_deleted(raw), raw)  # type: ignore[misc]
        yield RawRecord(number, raw, bad=record) if isinstance(record, BadRecord) else RawRecord(number, raw, (record,))
