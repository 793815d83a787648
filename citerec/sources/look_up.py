"""Look-ups: web services that are asked for papers, by words or by DOI (docs/live.md)."""

import contextlib
import itertools
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlsplit

import orjson
import platformdirs

from citerec.corpus import csl, openalex, s2ag
from citerec.corpus.json_lines import RecordError
from citerec.corpus.values import read_text
from citerec.errors import ServiceError, SettingsError
from citerec.files.http import Cache, Pace, Web, WebError
from citerec.files.registry import Registry
from citerec.files.text import one_line
from citerec.records import NO_FILTERS, Filters, Paper

PAGE = 100
"""Papers of one request: as many as all services allow."""
EMAIL = "CITEREC_EMAIL"
"""Name of the environment variable with an address, for services that answer those faster whom they can write to."""

_BUSY = (429, 500, 502, 503, 504)
_LONGEST_WAIT = 30  # seconds that a service may ask us to wait
_SHOWN = 120  # characters of what a service says
_OTHERWISE = "or search an index of your own: citerec index build SOURCE… --out indexes/NAME"

Found = TypeVar("Found")


def live_folder() -> Path:
    """Where the answers of web services are kept: a folder in the user's cache."""
    return platformdirs.user_cache_path("citerec") / "live"


@dataclass(frozen=True, slots=True)
class Manners:
    """How a web service is asked.

    Attributes:
        url: Its address; by default the usual one.
        section: The settings in which the others can be changed, for remedies.
        pace: Seconds between two requests of this computer.
        timeout: Seconds to wait for an answer.
        tries: How often a busy service is asked.
        keep_days: Days that answers are kept on this computer; 0 to keep none.
        email: The user's address.
    """

    url: str = ""
    section: str = ""
    pace: float = 1.0
    timeout: float = 30.0
    tries: int = 3
    keep_days: float = 7.0
    email: str = ""


class Page(NamedTuple):
    """A part of an answer: its papers, best first, and whether more follow."""

    papers: list[Paper]
    has_more: bool


class Years(NamedTuple):
    """The years that filters allow; None for no limit."""

    first: int | None
    last: int | None

    @classmethod
    def of(cls, filters: Filters) -> Self:
        """The years of some filters. Papers of unknown year are not found where the last year is limited."""
        known = [year for year in (filters.year_to, filters.as_of_year) if year is not None]
        return cls(filters.year_from, min(known, default=None))

    @property
    def are_none(self) -> bool:
        """Whether no year is left."""
        return self.first is not None and self.last is not None and self.first > self.last


class LookUp(ABC):
    """A web service that is asked for papers. Safe to use from several threads.

    Attributes:
        name: Its name in the table `LOOK_UPS`.
        title: Its own name.
        key: The environment variable that holds a key; empty if it takes none.
        keys_from: Where keys are given out.
        url: Its usual address.
        lists: Under which key of its answers the papers are.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    key: ClassVar[str] = ""
    keys_from: ClassVar[str] = ""
    url: ClassVar[str]
    lists: ClassVar[str]

    def __init__(self, manners: Manners) -> None:
        self.manners = replace(manners, url=(manners.url or self.url).rstrip("/"))
        section, self._lock, folder = manners.section or self.name, threading.Lock(), live_folder()
        self._name = section.replace("_", "-")
        self._web = Web(
            Pace(manners.pace, folder / f"{self._name}.pace"),
            tries=manners.tries,
            seconds=(manners.timeout, manners.timeout),
            longest_wait=_LONGEST_WAIT,
            retries_connections=False,  # without a network the user waits for nothing
            cache=Cache(folder / f"{self._name}.sqlite", manners.keep_days, self._is_worth_keeping),
        )

    @abstractmethod
    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """A page of the papers that it lists for some words; the filters may be ignored.

        Raises:
            ServiceError: It cannot be reached, refuses, or answers something else.
        """

    @abstractmethod
    def paper(self, doi: str) -> Paper | None:
        """The paper with a DOI; None if the service has none. Errors as for `search`."""

    def close(self) -> None:
        """Closes its connections."""
        with self._lock:
            self._web.close()

    @classmethod
    def key_given(cls) -> str:
        """The key from the environment; empty if there is none. Raises SettingsError if it cannot be one."""
        key = os.environ.get(cls.key, "").strip() if cls.key else ""
        if not (key.isascii() and key.isprintable()):
            raise SettingsError(f"{cls.key} is no key: it has letters that no key has", "Copy it again.")
        return key

    def listed(self, path: str, parameters: Mapping[str, str], headers: Mapping[str, str]) -> tuple[list[Any], bool]:
        """The records that it lists, and whether it says that more follow; errors as for `search`."""
        answer = self.asked(path, parameters, headers)
        records = answer.get(self.lists) if answer is not None else None
        if answer is None or not isinstance(records or [], list):
            raise self._odd()
        return records or [], bool(answer.get("next"))

    def asked(
        self, path: str, parameters: Mapping[str, str], headers: Mapping[str, str], *, may_lack: bool = False
    ) -> dict[str, Any] | None:
        """The object that it answers; None for what it lacks, if that `may_lack`. Errors as for `search`."""
        with self._lock:
            try:
                content = self._web.answer(f"{self.manners.url}/{path}", parameters, headers).content
            except WebError as error:
                if error.status == 404 and may_lack:
                    return None
                raise self._failed(error) from error
            except (sqlite3.Error, OSError) as error:
                raise ServiceError(
                    f"the answers of {self.title} cannot be kept in {live_folder()} ({error})",
                    f"Remove this folder, or keep none: --set {self.manners.section}.keep_days=0",
                ) from error
        if (answer := _object(content)) is None:
            raise self._odd()
        return answer

    def _is_worth_keeping(self, content: bytes) -> bool:
        answer = _object(content)
        return answer is not None and isinstance(answer.get(self.lists) or [], list)

    @property
    def _host(self) -> str:
        return urlsplit(self.manners.url).netloc or self.manners.url

    def _odd(self) -> ServiceError:
        return ServiceError(
            f"{self._host} answered something else than a list of papers as JSON",
            f"Is there a proxy or a login page in between? Try again later, {_OTHERWISE}",
        )

    def _failed(self, error: WebError) -> ServiceError:
        import requests  # it takes 60 ms, and commands that ask nobody import this module

        section, status = self.manners.section, error.status
        if isinstance(error.__cause__, requests.Timeout):
            seconds = self.manners.timeout
            return ServiceError(
                f"{self._host} did not answer within {seconds:g} seconds",
                f"Wait longer: --set {section}.timeout={2 * seconds:g}, {_OTHERWISE}",
            )
        if status is None:
            kind = type(error.__cause__).__name__
            return ServiceError(f"{self._host} cannot be reached ({kind})", f"Find a network, {_OTHERWISE}")
        answer, key = _object(error.content) or {}, f"{self.key}=… ({self.keys_from})"
        said = next((answer[name] for name in ("message", "error") if isinstance(answer.get(name), str)), "")
        if status in (401, 403) and self.key:
            remedy = f"Check the key in {self.key}, or unset it." if self.key_given() else f"Set a key: {key}."
        elif status == 429 and self.key:
            wait = "Wait some minutes" if self.key_given() else f"Use a key of your own: {key}, wait some minutes"
            remedy = f"{wait}, {_OTHERWISE}"
        elif status in _BUSY:
            remedy = f"Try again later, {_OTHERWISE}"
        else:
            remedy = f"Is {section}.url right? If so, {self.title} has changed: please report it."
        return ServiceError(f"{self._host} answered {status}{f': {one_line(said)[:_SHOWN]}' * bool(said)}", remedy)


class SemanticScholar(LookUp):
    """Semantic Scholar's Graph API. It lists papers that have all words."""

    name = "s2"
    title = "Semantic Scholar"
    key = "S2_API_KEY"
    keys_from = "https://www.semanticscholar.org/product/api"
    url = "https://api.semanticscholar.org/graph/v1"
    lists = "data"
    _fields = "corpusId,externalIds,title,abstract,tldr,venue,journal,year,authors,citationCount,s2FieldsOfStudy"
    _most = 1000  # papers that it lists for a query

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """Papers that have all words."""
        parameters = {"query": query, "offset": str(offset), "limit": str(PAGE), "fields": self._fields}
        years = Years.of(filters)
        if years != (None, None):
            first, last = ("" if year is None else str(year) for year in years)
            parameters["year"] = first if first == last else f"{first}-{last}"
        if filters.min_citations:
            parameters["minCitationCount"] = str(filters.min_citations)
        records, has_more = self.listed("paper/search", parameters, self._headers())
        return Page(list(readable(records, self.paper_of)), has_more and offset + PAGE < self._most)

    def paper(self, doi: str) -> Paper | None:
        """The paper with a DOI."""
        path = f"paper/DOI:{quote(doi, safe='/')}"
        record = self.asked(path, {"fields": self._fields}, self._headers(), may_lack=True)
        return next(readable([record], self.paper_of), None)

    @staticmethod
    def paper_of(record: Mapping[str, Any]) -> Paper:
        """The paper of a record, whose keys are those of the data sets but for their case; errors as `s2ag` has."""
        paper = s2ag.parse_paper({key.lower(): value for key, value in record.items()})
        tldr = record.get("tldr")
        text = read_text(tldr, "text") if isinstance(tldr, Mapping) else None
        return replace(paper, abstract=read_text(record, "abstract"), tldr=text)

    def _headers(self) -> dict[str, str]:
        key = self.key_given()
        return {"x-api-key": key} if key else {}


class OpenAlex(LookUp):
    """OpenAlex. It lists those first that fit best."""

    name = "openalex"
    title = "OpenAlex"
    key = "OPENALEX_API_KEY"
    keys_from = "https://openalex.org/settings/api"
    url = "https://api.openalex.org"
    lists = "results"
    _fields = (  # those that `openalex.parse_paper` reads
        "id,ids,title,publication_year,updated_date,primary_location,locations,authorships,cited_by_count,"
        "primary_topic,topics,abstract_inverted_index,type,is_paratext,is_retracted"
    )

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """Works for a query, which may have OR between words."""
        asked = {"search": query, "per-page": str(PAGE), "page": str(offset // PAGE + 1), "select": self._fields}
        first, last = Years.of(filters)
        conditions = [f"from_publication_date:{first:04}-01-01"] if first is not None else []
        conditions += [f"to_publication_date:{last:04}-12-31"] if last is not None else []
        conditions += [f"cited_by_count:>{filters.min_citations - 1}"] if filters.min_citations else []
        if conditions:
            asked["filter"] = ",".join(conditions)
        records, _ = self.listed("works", asked | self._person(), {})
        papers = itertools.chain.from_iterable(readable(records, openalex.parse_paper))
        return Page(list(papers), len(records) == PAGE)

    def paper(self, doi: str) -> Paper | None:
        """The work with a DOI."""
        path = f"works/doi:{quote(doi, safe='/')}"
        record = self.asked(path, {"select": self._fields} | self._person(), {}, may_lack=True)
        return next(itertools.chain.from_iterable(readable([record], openalex.parse_paper)), None)

    def _person(self) -> dict[str, str]:
        email, key = self.manners.email or os.environ.get(EMAIL, "").strip(), self.key_given()
        return ({"mailto": email} if email else {}) | ({"api_key": key} if key else {})


class Crossref(LookUp):
    """Crossref: what publishers say of what they have given a DOI."""

    name = "crossref"
    title = "Crossref"
    url = "https://api.crossref.org"
    lists = "items"

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """Works for the words of a reference."""
        first, last = Years.of(filters)
        conditions = [f"from-pub-date:{first:04}"] if first is not None else []
        conditions += [f"until-pub-date:{last:04}"] if last is not None else []
        asked = {"query.bibliographic": query, "rows": str(PAGE), "offset": str(offset)}
        records, _ = self.listed("works", asked | ({"filter": ",".join(conditions)} if conditions else {}), {})
        return Page(list(readable(records, csl.parse_item)), len(records) == PAGE)

    def paper(self, doi: str) -> Paper | None:
        """The work with a DOI."""
        record = self.asked(f"works/{quote(doi, safe='/')}", {}, {}, may_lack=True)
        return next(readable([record], csl.parse_item), None)

    def asked(
        self, path: str, parameters: Mapping[str, str], headers: Mapping[str, str], *, may_lack: bool = False
    ) -> dict[str, Any] | None:
        """The message of an answer."""
        email = self.manners.email or os.environ.get(EMAIL, "").strip()
        person = {"mailto": email} if email else {}
        answer = super().asked(path, {**parameters, **person}, headers, may_lack=may_lack)
        message = answer.get("message") if answer else None
        return message if isinstance(message, dict) else None


def readable(records: Iterable[Any], parse: Callable[[Mapping[str, Any]], Found]) -> Iterator[Found]:
    """Records of an answer, parsed; those that cannot be read are left out."""
    for record in records:
        if isinstance(record, Mapping):
            with contextlib.suppress(RecordError, ValueError):
                yield parse(record)


def _object(content: bytes) -> dict[str, Any] | None:
    """The JSON object that some bytes are; None if they are none."""
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(content)
        return found if isinstance(found, dict) else None
    return None


LOOK_UPS: Registry[type[LookUp]] = Registry(
    "look-up",
    {
        "crossref": "citerec.sources.look_up:Crossref",
        "openalex": "citerec.sources.look_up:OpenAlex",
        "s2": "citerec.sources.look_up:SemanticScholar",
    },
)
"""The web services that can be asked for papers, by name."""
