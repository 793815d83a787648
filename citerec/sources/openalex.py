"""OpenAlex: the public snapshot, in partitions by the day on which a work last changed.

The bucket holds one state, which is replaced each quarter. So it has one release, named by its newest partition, and
what changed since an earlier one are the partitions after that. Snapshots before June 2026 lay elsewhere in the bucket,
with a manifest of another form and files of merged ids by day; mirrors of them are read too.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from citerec.corpus.json_lines import BadRecord, tried
from citerec.corpus.openalex import is_header_of_deleted, parse_deleted, parse_work
from citerec.errors import InputError
from citerec.files.http import WebError
from citerec.sources.base import Corpus, Dataset, RawRecord, Release, RemoteFile, Update, json_records, xml_of

WORKS, DELETED = "openalex", "openalex-deleted"
_NEW = "data/jsonl/works/"
_MANIFESTS = (f"{_NEW}manifest.json", "data/works/manifest")
_DELETED = (f"{_NEW}deleted_ids.csv.gz", f"{_NEW}deleted_ids.csv")
_MERGED = "data/merged_ids/works/"
_PART = re.compile(r"s3://[^/]+/((?:[\w.-]+/)+updated_date=(\d{4}-\d\d-\d\d)/(\w[\w.-]*))")
_DAY = re.compile(rf"{_MERGED}(\d{{4}}-\d\d-\d\d)\.csv\.gz")
_S3 = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_MISSING = (403, 404)  # S3 answers 403 for what is not there where a bucket may not be listed


class _Part(NamedTuple):
    day: str
    file: RemoteFile


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

    def releases(self) -> list[str]:
        """The one release that is there."""
        return [self._parts()[-1].day]

    def release(self, name: str | None = None) -> Release:
        """The one release that is there; InputError if another is named."""
        parts = self._parts(name)
        sizes = [part.file.bytes for part in parts]
        size = sum(size for size in sizes if size is not None) if all(size is not None for size in sizes) else None
        works = Dataset("works", "Titles, abstracts, authors, venues, topics, citation counts and references", size)
        return Release(parts[-1].day, (works,), "CC0 1.0: no conditions. OpenAlex asks to be cited (arXiv:2205.01833).")

    def files(self, release: str, dataset: str) -> list[RemoteFile]:
        """The parts of the snapshot, those that changed last at the end."""
        return [part.file for part in self._parts(release) if part.file.dataset == dataset]

    def updates(self, since: str, datasets: Sequence[str]) -> list[Update]:
        """One update: the partitions after a release, and the works that were deleted or merged."""
        parts = [part for part in self._parts() if part.day > since and part.file.dataset in datasets]
        if not parts:
            return []
        upserts = tuple(part.file for part in parts)
        deletions = self._deletions(since, early=_NEW not in upserts[0].url)
        return [Update(since, parts[-1].day, upserts, deletions)]

    def records(self, file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The works of a part, or the deletions of a file of ids."""
        return json_records(lines, parse_work, _language) if file.format == WORKS else _deletions(lines)

    def _parts(self, release: str | None = None) -> list[_Part]:
        manifest: Any = None
        for place in _MANIFESTS:
            try:
                manifest = self.web.json(f"{self.url_used}/{place}")
                break
            except WebError as error:
                if error.status not in _MISSING or place == _MANIFESTS[-1]:
                    raise
        try:
            entries = manifest["files"] if "files" in manifest else manifest["entries"]
            parts = [self._part(entry["url"], entry.get("meta") or {}) for entry in entries]
        except (KeyError, TypeError, AttributeError, ValueError):
            parts = []
        if not parts:
            raise WebError("OpenAlex's manifest has another form than citerec knows", "Is there a newer citerec?")
        newest = max(part.day for part in parts)
        if release and release != newest:
            raise InputError(
                f"OpenAlex has no release {release!r}: its bucket holds only {newest}",
                f"Get {newest}; or bring an earlier corpus up to date with `citerec corpus update`.",
            )
        return sorted(parts, key=lambda part: part.file.name)

    def _part(self, address: str, meta: dict[str, Any]) -> _Part:
        match = _PART.fullmatch(address)
        if not match:
            raise ValueError(address)
        place, day, name = match.groups()
        size, count = (meta.get(key) for key in ("content_length", "record_count"))
        url = f"{self.url_used}/{place}"
        return _Part(day, RemoteFile("works", f"{day}-{name}", WORKS, url, _count(size), _count(count)))

    def _deletions(self, since: str, *, early: bool) -> tuple[RemoteFile, ...]:
        if early:
            merged = [(match[1], key) for key in self._listed(_MERGED) if (match := _DAY.fullmatch(key))]
            return tuple(
                RemoteFile("works", f"merged-{day}.csv.gz", DELETED, f"{self.url_used}/{key}")
                for day, key in sorted(merged)
                if day > since
            )
        for place in _DELETED:
            url = f"{self.url_used}/{place}"
            try:
                size = self.web.headers(url).get("Content-Length", "")
            except WebError as error:
                if error.status not in _MISSING:
                    raise
                continue
            # It has all deletions ever, which does no harm: an id is never used again.
            name, bytes_there = place.rpartition("/")[2], int(size) if size.isdecimal() else None
            return (RemoteFile("works", name, DELETED, url, bytes_there),)
        return ()

    def _listed(self, prefix: str) -> Iterator[str]:
        """The keys of the bucket that begin with a prefix."""
        asked, token = {"list-type": "2", "prefix": prefix}, ""
        while True:
            root = self._page(asked | ({"continuation-token": token} if token else {}))
            yield from (key.text or "" for key in root.iterfind(f"{_S3}Contents/{_S3}Key"))
            before, token = token, root.findtext(f"{_S3}NextContinuationToken") or ""
            if not token or token == before:
                return

    def _page(self, asked: dict[str, str]) -> Element:
        url, what = f"{self.url_used}/", "OpenAlex's list of files"
        return self.web.again(lambda: xml_of(self.web.answer(url, asked).content, what))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _language(work: dict[str, Any]) -> str | None:
    language = work.get("language")
    return language if isinstance(language, str) else None


def _deletions(lines: Iterable[bytes]) -> Iterator[RawRecord]:
    for number, raw in enumerate(lines, 1):
        if raw.isspace() or is_header_of_deleted(raw):
            continue
        made = tried(lambda raw=raw: parse_deleted(raw), raw)  # type: ignore[misc]
        yield RawRecord(number, raw, made if isinstance(made, BadRecord) else (made,))
