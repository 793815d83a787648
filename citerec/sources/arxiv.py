"""arXiv: its metadata by OAI-PMH, or from a metadata file, and what is new by OAI-PMH.

OAI-PMH 2.0 (openarchives.org) lists records by the day on which they last changed, in pages. A month of such days is a
file here, whose pages become lines of the form of the metadata file. A release is named by a day, the last of its days.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser, fromstring

import orjson

from citerec.corpus.arxiv import parse_deleted, parse_paper
from citerec.errors import InputError
from citerec.files.http import ChangedError, Link, Web, WebError
from citerec.sources.base import Corpus, Dataset, RawRecord, Release, RemoteFile, Update, day_of, json_records

PAPERS, DELETED = "arxiv", "arxiv-deleted"
_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_ARXIV = "{http://arxiv.org/OAI/arXiv/}"
_FILE = re.compile(r".*\.(?:json|jsonl|gz)", re.IGNORECASE)
_SAME = ("title", "comments", "journal-ref", "doi", "report-no", "categories", "license", "abstract")
_ROUGHLY = 5_000_000_000  # of three million records, as lines
# A metadata file was gathered some days before it was put where it lies.
_BEFORE = timedelta(days=7)
_CHUNK = 1 << 18


class Arxiv(Corpus):
    """The metadata of arXiv's papers, with abstracts.

    Attributes:
        oai: The address of OAI-PMH from which updates come if `url` is that of a metadata file.
    """

    name = "arxiv"
    title = "arXiv"
    home = "https://arxiv.org"
    licence = "CC0 1.0 (metadata; the papers have licences of their own)"
    about = (
        "Preprints of physics, mathematics, computer science and more, all with abstracts: 3 million, 5 GB. By default "
        "page by page from arXiv itself, one every 3 seconds, which takes some hours; with --url FILE from a metadata "
        "file (arxiv-metadata-oai-snapshot.json, of the data set Cornell-University/arxiv at Kaggle)."
    )
    url = "https://oaipmh.arxiv.org/oai"
    workers = 1
    pause = 3.0
    oai: ClassVar[str] = url

    def __init__(self, web: Web, url: str | None = None) -> None:
        super().__init__(web, url)
        self._path = Path(self.url_used)
        self._is_file = bool(_FILE.fullmatch(self.url_used)) or self._path.is_file()
        self._oai = self.oai if self._is_file else self.url_used

    def releases(self) -> list[str]:
        """The state of today; of a metadata file, the day on which it was made."""
        if self._path.is_file():
            return [datetime.fromtimestamp(self._path.stat().st_mtime, UTC).date().isoformat()]
        return [day_of(self.web.headers(self.url_used)) if self._is_file else self._identify("responseDate")]

    def release(self, name: str | None = None) -> Release:
        """The state of a day, by default of today; InputError for a day to come, or what is no day."""
        newest = self.releases()[0]
        if name and name != newest and (self._is_file or not _is_day(name) or name > newest):
            raise InputError(f"arXiv has no release {name!r}", f"The newest is {newest}.")
        papers = Dataset("papers", "Titles, abstracts, authors, categories, DOIs and journals", _ROUGHLY)
        return Release(name or newest, (papers,), "CC0 1.0 for the metadata: no conditions.")

    def files(self, release: str, dataset: str) -> list[RemoteFile]:
        """One file for each month; or the metadata file."""
        self.release(release)
        if self._is_file:
            return [RemoteFile(dataset, self._path.name, PAPERS, self.url_used)]
        return list(self._months("ListRecords", self._identify("earliestDatestamp"), release))

    def updates(self, since: str, _datasets: Sequence[str]) -> list[Update]:
        """What changed since a day, that day included."""
        today = self._identify("responseDate")
        if since >= today:
            return []
        begin = (date.fromisoformat(since) - _BEFORE).isoformat() if self._is_file else since
        upserts, deletions = (self._months(verb, begin, today) for verb in ("ListRecords", "ListIdentifiers"))
        return [Update(since, today, tuple(upserts), tuple(deletions))]

    def chunks(self, file: RemoteFile, link: Link) -> Iterator[bytes]:
        """The lines of a month, page by page; or the bytes of a metadata file, which may lie on this machine."""
        if file.url.startswith(f"{self._oai}?verb="):
            return self._lines(file)
        if self._path.is_file():
            return _bytes_of(self._path)
        return super().chunks(file, link)

    def records(self, file: RemoteFile, lines: Iterable[bytes]) -> Iterator[RawRecord]:
        """The papers of a file, or the deletions."""
        return json_records(lines, parse_paper if file.format == PAPERS else parse_deleted)

    def _identify(self, what: str) -> str:
        """A day that the server says of itself."""
        day = (self._page("verb=Identify").findtext(f".//{_OAI}{what}") or "")[:10]
        if not _is_day(day):
            raise WebError(f"arXiv does not say its {what}", "Try again later.")
        return day

    def _months(self, verb: str, begin: str, end: str) -> Iterator[RemoteFile]:
        """A file for each month of the days from `begin` to `end`, both included."""
        first, last = date.fromisoformat(begin), date.fromisoformat(end)
        while first <= last:
            following = (first.replace(day=1) + timedelta(days=31)).replace(day=1)
            until = min(last, following - timedelta(days=1))
            query = {"verb": verb, "metadataPrefix": "arXiv", "from": first.isoformat(), "until": until.isoformat()}
            prefix, kind = ("", PAPERS) if verb == "ListRecords" else ("deleted-", DELETED)
            yield RemoteFile("papers", f"{prefix}{first:%Y-%m}.jsonl", kind, f"{self._oai}?{urlencode(query)}")
            first = following

    def _page(self, query: str) -> Element:
        """The answer to some parameters."""
        return self.web.again(lambda: _xml_of(self.web.answer(f"{self._oai}?{query}").content))

    def _lines(self, file: RemoteFile) -> Iterator[bytes]:
        """The records of a file as lines, page by page: papers, or deleted ones where only identifiers are listed."""
        papers, deletions = ("ListRecords", "record", _paper), ("ListIdentifiers", "header", _deleted)
        verb, tag, read = papers if file.format == PAPERS else deletions
        query, token = file.url.partition("?")[2], ""
        while query:
            page = self._page(query)
            error, items = page.find(f"{_OAI}error"), page.find(f"{_OAI}{verb}")
            code = "" if error is None else error.get("code")
            if code == "noRecordsMatch" and not token:
                return
            if code == "badResumptionToken":
                raise ChangedError("arXiv no longer knows where its list was left", "Begin with this file again.")
            if items is None:
                raise WebError(f"arXiv answered something else than a list {code}".rstrip(), "Try again later.")
            values = map(read, items.iter(f"{_OAI}{tag}"))
            if lines := b"".join(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE) for value in values if value):
                yield lines  # nothing would be the end to who reads
            before, token = token, (items.findtext(f"{_OAI}resumptionToken") or "").strip()
            if token and token == before:
                raise ChangedError("arXiv's list does not go on", "Begin with this file again.")
            query = urlencode({"verb": verb, "resumptionToken": token}) if token else ""


def _xml_of(content: bytes) -> Element:
    if (root := read_xml(content)) is None:
        raise WebError("arXiv's answer is not the XML that it should be", "Try again later.")
    return root


def _paper(record: Element) -> dict[str, Any] | None:
    """A record in the form of a line of the metadata file; None if it was deleted.

    The form `arXiv` of OAI-PMH says of the versions only when the first was made.
    """
    paper = record.find(f"{_OAI}metadata/{_ARXIV}arXiv")
    if record.find(f"{_OAI}header[@status='deleted']") is not None:
        return None
    if paper is None:
        return {"error": "a record without metadata"}  # a line that is set aside
    authors = [
        [author.findtext(f"{_ARXIV}{part}") or "" for part in ("keyname", "forenames", "suffix")]
        for author in paper.iterfind(f"{_ARXIV}authors/{_ARXIV}author")
    ]
    created = paper.findtext(f"{_ARXIV}created")
    return {
        "id": paper.findtext(f"{_ARXIV}id"),
        **{name: paper.findtext(f"{_ARXIV}{name}") for name in _SAME},
        "authors": ", ".join(" ".join(filter(None, (first, last, suffix))) for last, first, suffix in authors),
        "versions": [{"version": "v1", "created": created}] if created else [],
        "update_date": paper.findtext(f"{_ARXIV}updated") or created,
        "authors_parsed": authors,
    }


def _deleted(header: Element) -> dict[str, Any] | None:
    """The id of a header, if its record was deleted."""
    if header.get("status") != "deleted":
        return None
    return {"id": (header.findtext(f"{_OAI}identifier") or "").strip().removeprefix("oai:arXiv.org:")}


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _bytes_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(_CHUNK), b"")


class _Tree(TreeBuilder):
    def doctype(self, *_: str | None) -> None:
        """Called where a document type begins, before its entities are read: these could be defined without end."""
        raise ValueError("the XML has a document type")


def read_xml(content: bytes) -> Element | None:
    """The root of an XML document; None if it is none, or has a document type."""
    try:
        return fromstring(content, XMLParser(target=_Tree()))
    except (ParseError, ValueError, LookupError):
        return None
