"""Look-ups: web services that are asked for papers, by words or by DOI (docs/live.md)."""

import contextlib
import functools
import os
import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import quote
from xml.etree.ElementTree import Element

import orjson
from pydantic import Field
from requests import Session

from citerec.corpus import arxiv, csl, matching, openalex, s2ag
from citerec.corpus.base import paper_of
from citerec.corpus.matching import arxiv_in, canonical_id, doi_in, doi_of_address, keys_of, plain_title, year_in
from citerec.corpus.reading import plain, read_id, read_list, read_object, read_plain, read_strings, read_text
from citerec.corpus.venues import same_venue
from citerec.errors import ServiceError, SettingsError
from citerec.files.http import BUSY, Web, WebError, host_of
from citerec.files.registry import Registry
from citerec.files.text import one_line
from citerec.records import NO_FILTERS, Filters, Known, Notice, Paper
from citerec.settings import PartSettings, live_folder
from citerec.sources.arxiv import read_xml
from citerec.sources.base import keep_pace

PAGE = 100
"""Papers of one request: as many as all services allow."""
EMAIL = "CITEREC_EMAIL"
"""Name of the environment variable with an address, for services that answer those faster whom they can write to."""

_SECRETS = ("api_key", "mailto", "x-api-key")  # they are neither kept nor compared
_LACKS = 404
_LISTED = 5  # papers that are compared with the one that is looked for
_SHOWN = 120  # characters of what a service says
_ATOM, _ARXIV = "{http://www.w3.org/2005/Atom}", "{http://arxiv.org/schemas/atom}"
_SMALL, _MOST_WORDS = 3, 12  # letters of words of titles that arXiv is not asked for, and words that it is asked for
_ACCEPTED = re.compile(
    r"\b(?:accepted|published|presented|appear\w*)\s+(?:at|in|to|by|as|for)\s+(?:the\s+)?([^,;.]+)", re.I
)
_WITHDRAWN = re.compile(r"\bwithdrawn\b", re.IGNORECASE)
_NUMBER = re.compile(r" \d{4}$")  # it tells authors of one name apart in DBLP

Item = TypeVar("Item")


class Asking(PartSettings):
    """How a service is asked by a command that can wait.

    Attributes:
        url: Its address; by default the usual one.
        pace: Seconds between two requests of this computer.
        timeout: Seconds to wait for an answer.
        tries: How often a busy service is asked.
    """

    url: str = ""
    pace: float = Field(default=1.0, ge=0, le=3600)
    timeout: float = Field(default=60.0, gt=0, le=3600)
    tries: int = Field(default=6, ge=1, le=20)


class Manners(Asking):
    """How a web service is asked by any command.

    Attributes:
        section: The settings in which the others can be changed, for remedies.
        keep_days: Days that answers are kept on this computer; 0 to keep none.
        keeps_misses: Whether it is kept, too, what a service lacks.
        email: The user's address.
        hurries: Whether a user waits for each answer: see `Web`.
        otherwise: What else to do where it fails, for remedies.
    """

    timeout: float = Field(default=30.0, gt=0, le=3600)
    tries: int = Field(default=3, ge=1, le=20)
    section: str = ""
    keep_days: float = 7.0
    keeps_misses: bool = False
    email: str = ""
    hurries: bool = True
    otherwise: str = "or search an index of your own: citerec index build SOURCE… --out indexes/NAME"


class Page(NamedTuple):
    """A part of an answer: its papers, best first, and whether more follow."""

    papers: list[Paper]
    has_more: bool


class Citing(NamedTuple):
    """A paper that cites another, and the sentences in which it does."""

    paper: Paper
    sentences: tuple[str, ...]


def years_of(filters: Filters) -> tuple[int | None, int | None]:
    """The first and the last year that filters allow, None for no limit; no paper of unknown year is in a limit."""
    last = [year for year in (filters.year_to, filters.as_of_year) if year is not None]
    return filters.year_from, min(last, default=None)


def _conditions(filters: Filters, *forms: str) -> list[str]:
    """Conditions on the year, as a service writes those of the first and of the last one; none where is no limit."""
    return [form.format(year) for form, year in zip(forms, years_of(filters), strict=True) if year is not None]


class LookUp(ABC):
    """A web service that is asked for papers. Safe to use from several threads.

    Attributes:
        name: Its name in the table `LOOK_UPS`.
        title: Its own name.
        key: The environment variable that holds a key; empty if it takes none.
        keys_from: Where keys are given out.
        url: Its usual address.
        envelope: Under which keys of its answers, one in the other, the record or list is; none if the answer is it.
        lists: Under which key of these the papers are.
        by_doi: The path of the paper with a DOI, which takes the place of {}; empty if it is not asked by DOI.
        fields: The parameters that name the fields of a record.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    key: ClassVar[str] = ""
    keys_from: ClassVar[str] = ""
    url: ClassVar[str]
    envelope: ClassVar[tuple[str, ...]] = ()
    lists: ClassVar[str]
    by_doi: ClassVar[str] = ""
    fields: ClassVar[dict[str, str]] = {}

    def __init__(self, manners: Manners) -> None:
        self.manners = manners.model_copy(update={"url": (manners.url or self.url).rstrip("/")})
        self._lock, self._host = threading.Lock(), host_of(self.manners.url)
        place = live_folder() / (manners.section or self.name).replace("_", "-")
        self._web = Web(
            pace=functools.partial(keep_pace, manners.pace, Path(f"{place}.pace")),
            tries=manners.tries,
            seconds=(manners.timeout, manners.timeout),
            hurries=manners.hurries,
            follows=False,
            new_session=functools.partial(self._session, Path(f"{place}.sqlite")),
        )

    def _session(self, place: Path) -> Session:
        """Keeps answers in a file, without keys and addresses of people. Where a server fails, an older one serves."""
        if not self.manners.keep_days:
            return Session()
        from requests_cache import CachedSession

        place.parent.mkdir(parents=True, exist_ok=True)
        return CachedSession(
            place,
            serializer="json",  # the default would be pickle
            expire_after=timedelta(days=self.manners.keep_days),
            stale_if_error=True,
            ignored_parameters=_SECRETS,
            allowable_codes=(200, _LACKS) if self.manners.keeps_misses else (200,),
            filter_fn=lambda answer: answer.status_code == _LACKS or self.read(answer.content) is not None,
        )

    @abstractmethod
    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """A page of the papers that it lists for some words; the filters may be ignored.

        Raises:
            ServiceError: It cannot be reached, refuses, or answers something else.
        """

    @staticmethod
    @abstractmethod
    def paper_of(record: Mapping[str, Any], /) -> Paper:
        """The paper of a record; a ValueError if it cannot be read, or is not of a paper."""

    def find(self, papers: Sequence[Paper]) -> list[Paper | None]:
        """What the service knows of some papers, in order, None for what it lacks; errors as for `search`.

        They are known by id, or else by title, authors and year.
        """
        by_id = (next(readable([self.by_id(paper)], self.paper_of), None) for paper in papers)
        return [known or self.most_alike(paper) for known, paper in zip(by_id, papers, strict=True)]

    def most_alike(self, paper: Paper) -> Paper | None:
        """The paper by title, authors and year; None if it lists none. Errors as for `search`."""
        return matching.most_alike(paper, (one.paper for one in self.titled(paper)))

    def known(self, paper: Paper) -> list[Known]:
        """Records that may be of a paper: that with its id, and, unless it has the same title, the nearest by title.

        Nothing but ids, title and first author are sent. Errors as for `search`.
        """
        found = self.known_in([self.by_id(paper)])
        if any(not paper.title or plain_title(one.paper.title) == plain_title(paper.title) for one in found):
            return found
        return [*found, *self.titled(paper)]

    def known_in(self, records: Iterable[Any]) -> list[Known]:
        """What some records say; those that cannot be read are left out."""
        known = readable(records, lambda one: Known(self.paper_of(one), self.title, tuple(self.notices_of(one))))
        return list(known)

    def notices_of(self, _record: Mapping[str, Any]) -> Iterator[Notice]:
        """The notices that a record names."""
        yield from ()

    def has_venue(self, _name: str) -> bool | None:
        """Whether it knows a journal or conference of a name; None if it cannot be asked. Errors as for `search`."""
        return None

    def by_id(self, paper: Paper) -> Mapping[str, Any] | None:
        """Its record with an id of a paper; None if it has none. Errors as for `search`."""
        doi = doi_in(paper.external_ids.get("DOI", "")) if self.by_doi else ""
        return self.answer(self.by_doi.format(quote(doi, safe="/")), self.fields, may_lack=True) if doi else None

    def titled(self, paper: Paper) -> list[Known]:
        """The first that it lists for a paper's title, best first; by default of `search`. Errors as for that."""
        words = plain_title(paper.title)
        return [Known(one, self.title) for one in self.search(words).papers[:_LISTED]] if words else []

    def listed(self, path: str, parameters: dict[str, str]) -> Sequence[Any]:
        """The records of an answer, none for what it lacks. Errors as for `search`."""
        return (self.answer(path, parameters, may_lack=True) or {}).get(self.lists) or []

    def close(self) -> None:
        """Closes its connections."""
        with self._lock:
            self._web.close()

    def signature(self, _key: str, _email: str) -> tuple[dict[str, str], dict[str, str]]:
        """Parameters and headers of each request that say who asks; those that are empty are left out."""
        return {}, {}

    def key_given(self) -> str:
        """The key from the environment; empty if there is none. Raises SettingsError if it cannot be one."""
        key = os.environ.get(self.key, "").strip() if self.key else ""
        if not (key.isascii() and key.isprintable()):
            raise SettingsError(f"{self.key} is no key: it has letters that no key has", "Copy it again.")
        return key

    def page(self, path: str, parameters: dict[str, str]) -> Page:
        """A page of what it lists, without what cannot be read; errors as for `search`."""
        answer = self.answer(path, parameters) or {}
        records = answer.get(self.lists) or []
        return Page(list(readable(records, self.paper_of)), bool(answer.get("next", len(records) == PAGE)))

    def answer(self, path: str, parameters: dict[str, str], *, may_lack: bool = False) -> dict[str, Any] | None:
        """The object that it answers; None for what it lacks, if that `may_lack`. Errors as for `search`."""
        content = self.content(path, parameters, may_lack=may_lack)
        if content is not None and (answer := self.read(content)) is None:
            raise self.strange()
        return None if content is None else answer

    def strange(self) -> ServiceError:
        """The error for an answer of another kind."""
        remedy = f"Is there a proxy or a login page in between? Try again later, {self.manners.otherwise}"
        return ServiceError(f"{self._host} answered something else than a list of papers as JSON", remedy)

    def content(
        self, path: str, parameters: dict[str, str], *, may_lack: bool = False, body: Any = None
    ) -> bytes | None:
        """The bytes of an answer, as for `answer`; a `body` is posted as JSON."""
        said, headers = self.signature(self.key_given(), self.manners.email or os.environ.get(EMAIL, "").strip())
        sent, headers = ({name: value for name, value in one.items() if value} for one in (parameters | said, headers))
        with self._lock:
            try:
                method = "GET" if body is None else "POST"
                return self._web.answer(f"{self.manners.url}/{path}", sent, headers, method, body).content
            except WebError as error:
                if error.status == _LACKS and may_lack:
                    return None
                raise self._failed(error) from error
            except (sqlite3.Error, OSError) as error:
                remedy = f"Remove this folder, or keep none: -c {self.manners.section}.keep_days=0"
                fault = f"the answers of {self.title} cannot be kept in {live_folder()} ({error})"
                raise ServiceError(fault, remedy) from error

    def read(self, content: bytes) -> dict[str, Any] | None:
        """The object that an answer has, if what it lists is a list; None for anything else."""
        with contextlib.suppress(orjson.JSONDecodeError, TypeError, KeyError):
            answer = orjson.loads(content)
            for key in self.envelope:
                answer = answer[key]
            if isinstance(answer, dict) and isinstance(answer.get(self.lists) or [], list):
                return answer
        return None

    def _failed(self, error: WebError) -> ServiceError:
        if error.status is None:
            what = f"cannot be reached ({type(error.__cause__).__name__})"
            waiting = f"wait longer (-c {self.manners.section}.timeout=SECONDS)"
            remedy = f"Find a network, {waiting}, {self.manners.otherwise}"
        else:
            answer = self.read(error.content) or {}
            said = next((answer[name] for name in ("message", "error") if isinstance(answer.get(name), str)), "")
            what = f"answered {error.status}{f': {one_line(said)[:_SHOWN]}' * bool(said)}"
            remedy = self._remedy(error.status)
        return ServiceError(f"{self._host} {what}", remedy)

    def _remedy(self, status: int) -> str:
        """What to do about a number that it answers."""
        own = f"{self.key}=… ({self.keys_from})"
        if status in (401, 403) and self.key:
            return f"Check the key in {self.key}, or unset it." if self.key_given() else f"Set a key: {own}."
        if status == 429 and self.key and not self.key_given():
            return f"Use a key of your own: {own}, wait some minutes, {self.manners.otherwise}"
        if status in BUSY:
            return f"Try again later, {self.manners.otherwise}"
        return f"Is {self.manners.section}.url right? If so, {self.title} has changed: please report it."


class SemanticScholar(LookUp):
    """Semantic Scholar's Graph API. It lists papers that have all words."""

    name = "s2"
    title = "Semantic Scholar"
    key = "S2_API_KEY"
    keys_from = "https://www.semanticscholar.org/product/api"
    url = "https://api.semanticscholar.org/graph/v1"
    lists = "data"
    fields: ClassVar[dict[str, str]] = {
        "fields": "corpusId,externalIds,title,abstract,tldr,venue,journal,year,authors,citationCount,s2FieldsOfStudy"
    }
    _most = 1000  # papers that it lists for a query
    _of_citing = "contexts,corpusId,externalIds,title,year"

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """Papers that have all words."""
        first, last = ("" if year is None else str(year) for year in years_of(filters))
        parameters = {"query": query, "offset": str(offset), "limit": str(PAGE), **self.fields}
        parameters["year"] = f"{first}-{last}" if first or last else ""
        parameters["minCitationCount"] = str(filters.min_citations or "")
        page = self.page("paper/search", parameters)
        return page._replace(has_more=page.has_more and offset + PAGE < self._most)

    @staticmethod
    def paper_of(record: Mapping[str, Any]) -> Paper:
        """The paper of a record, whose keys are those of the data sets but for their case; errors as `s2ag` has."""
        paper = s2ag.parse_paper({key.lower(): value for key, value in record.items()})
        tldr = record.get("tldr")
        text = read_text(tldr, "text") if isinstance(tldr, Mapping) else None
        return replace(paper, abstract=read_text(record, "abstract"), tldr=text)

    def signature(self, key: str, _email: str) -> tuple[dict[str, str], dict[str, str]]:
        """The key, in a header."""
        return {}, {"x-api-key": key}

    def find(self, papers: Sequence[Paper]) -> list[Paper | None]:
        """As `LookUp.find`: those with an id that it knows in one request, at most 500; the others by title."""
        ids = [self.id_of(paper) for paper in papers]
        asked = [one for one in ids if one]
        known = dict(zip(asked, self._with_ids(asked) if asked else (), strict=True))
        return [known.get(one or "") or self.most_alike(paper) for one, paper in zip(ids, papers, strict=True)]

    @staticmethod
    def id_of(paper: Paper) -> str | None:
        """The id by which it is asked for a paper; None if the paper has none that it knows."""
        schemes = ("DOI", "DOI"), ("ArXiv", "ARXIV"), ("ACL", "ACL"), ("PubMed", "PMID")
        ids = {scheme.casefold(): value for scheme, value in paper.external_ids.items()}
        if (preprint := canonical_id(ids.get("doi", ""))).startswith("arxiv:"):
            ids = {"arxiv": preprint.removeprefix("arxiv:")}  # it does not know the DOIs that arXiv gives
        return next((f"{there}:{ids[here.casefold()]}" for here, there in schemes if here.casefold() in ids), None)

    def _with_ids(self, ids: Sequence[str]) -> list[Paper | None]:
        answer = self.content("paper/batch", self.fields, body={"ids": list(ids)})
        with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError):
            records = orjson.loads(answer or b"")
            if len(records) == len(ids):
                return [next(readable([record], self.paper_of), None) for record in records]
        raise self.strange()

    def titled(self, paper: Paper) -> list[Known]:
        """The record whose title is nearest, if one is near."""
        words = plain_title(paper.title)
        return self.known_in(self.listed("paper/search/match", {"query": words, **self.fields})) if words else []

    def by_id(self, paper: Paper) -> Mapping[str, Any] | None:
        """As `LookUp.by_id`, by any id that it knows."""
        own = self.id_of(paper)
        return self.answer(f"paper/{quote(own, safe='/:')}", self.fields, may_lack=True) if own else None

    def citing(self, paper: Paper, most: int) -> Iterator[Citing]:
        """Who cites one of its papers, and in which sentences, until so many sentences came. Errors as for `search`."""
        offset: Any = 0
        sentences = 0
        while sentences < most:
            wanted = {"fields": self._of_citing, "offset": str(offset), "limit": "1000"}
            answer = self.answer(f"paper/CorpusId:{paper.paper_id}/citations", wanted, may_lack=True) or {}
            for one in readable(answer.get(self.lists) or [], self._citing):
                sentences += len(one.sentences)
                if one.sentences:
                    yield one
            if not isinstance(offset := answer.get("next"), int):
                return

    def _citing(self, record: Mapping[str, Any]) -> Citing:
        paper, texts = self.paper_of(record.get("citingPaper") or {}), record.get("contexts") or []
        return Citing(paper, tuple(filter(None, (one_line(text) for text in texts if isinstance(text, str)))))


class OpenAlex(LookUp):
    """OpenAlex. It lists those first that fit best."""

    name = "openalex"
    title = "OpenAlex"
    key = "OPENALEX_API_KEY"
    keys_from = "https://openalex.org/settings/api"
    url = "https://api.openalex.org"
    lists = "results"
    by_doi = "works/doi:{}"
    fields: ClassVar[dict[str, str]] = {  # those that `openalex.parse_paper` reads
        "select": "id,ids,title,publication_year,updated_date,primary_location,locations,authorships,cited_by_count,"
        "primary_topic,topics,abstract_inverted_index,type,is_paratext,is_retracted"
    }

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """Works for a query, which may have OR between words."""
        parameters = {"search": query, "per-page": str(PAGE), "page": str(offset // PAGE + 1), **self.fields}
        conditions = _conditions(filters, "from_publication_date:{:04}-01-01", "to_publication_date:{:04}-12-31")
        conditions += [f"cited_by_count:>{filters.min_citations - 1}"] if filters.min_citations else []
        return self.page("works", {**parameters, "filter": ",".join(conditions)})

    def titled(self, paper: Paper) -> list[Known]:
        """Works with words of the title, those with most of them first: one of them may be wrong."""
        words = dict.fromkeys(plain_title(paper.title).split())
        asked = {"search": " OR ".join(words), "per-page": str(_LISTED), "page": "1", **self.fields}
        return self.known_in(self.listed("works", asked)) if words else []

    def has_venue(self, name: str) -> bool | None:
        """Whether one of the sources that it lists for a name is of this name, or of one that means the same."""
        found = self.listed("sources", {"search": plain_title(name), "per-page": str(_LISTED)})
        names = [one.get(field) for one in found for field in ("display_name", "abbreviated_title")]
        return any(same_venue(name, other) for other in names if isinstance(other, str))

    @staticmethod
    def paper_of(record: Mapping[str, Any]) -> Paper:
        """The paper of a work; errors as `openalex` has, and for what is no paper, such as a table of contents."""
        (paper,) = openalex.parse_paper(record)
        return paper

    def signature(self, key: str, email: str) -> tuple[dict[str, str], dict[str, str]]:
        """The key and the address, as parameters."""
        return {"api_key": key, "mailto": email}, {}


class Crossref(LookUp):
    """Crossref: what publishers say of what they have given a DOI."""

    name = "crossref"
    title = "Crossref"
    url = "https://api.crossref.org"
    envelope = ("message",)
    lists = "items"
    by_doi = "works/{}"
    paper_of = staticmethod(csl.parse_item)

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:
        """Works for the words of a reference."""
        conditions = _conditions(filters, "from-pub-date:{:04}", "until-pub-date:{:04}")
        parameters = {"query.bibliographic": query, "rows": str(PAGE), "offset": str(offset)}
        return self.page("works", {**parameters, "filter": ",".join(conditions)})

    def titled(self, paper: Paper) -> list[Known]:
        """Works for the title and the first author."""
        words = " ".join([plain_title(paper.title), *paper.authors[:1]])
        asked = {"query.bibliographic": words, "rows": str(_LISTED)}
        return self.known_in(self.listed("works", asked)) if paper.title else []

    def notices_of(self, record: Mapping[str, Any]) -> Iterator[Notice]:
        """The notices by which it was updated: those of publishers, and of Retraction Watch."""
        for update in read_list(record, "updated-by", dict):
            if kind := notice_kind(str(update.get("type") or "")):
                doi = update.get("DOI")
                yield Notice(kind, f"https://doi.org/{doi}" if isinstance(doi, str) else "", self.title)

    def signature(self, _key: str, email: str) -> tuple[dict[str, str], dict[str, str]]:
        """The address, as a parameter."""
        return {"mailto": email}, {}


class Dblp(LookUp):
    """DBLP. It lists publications that have all words, or words that begin with them."""

    name = "dblp"
    title = "DBLP"
    url = "https://dblp.org"
    envelope = ("result", "hits")
    lists = "hit"
    fields: ClassVar[dict[str, str]] = {"format": "json"}

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:  # noqa: ARG002 - it has none
        """Publications with all words."""
        return self.page("search/publ/api", {"q": query, "h": str(PAGE), "f": str(offset), **self.fields})

    def titled(self, paper: Paper) -> list[Known]:
        """Publications with all words of the title."""
        words = plain_title(paper.title)
        asked = {"q": words, "h": str(_LISTED), **self.fields}
        return self.known_in(self.listed("search/publ/api", asked)) if words else []

    def has_venue(self, name: str) -> bool | None:
        """Whether one of the venues that it lists for a name is of this name, or of one that means the same."""
        found = self.listed("search/venue/api", {"q": plain_title(name), "h": str(_LISTED), **self.fields})
        names = [read_object(one, "info").get(field) for one in found for field in ("venue", "acronym")]
        return any(same_venue(name, other) for other in names if isinstance(other, str))

    @staticmethod
    def paper_of(record: Mapping[str, Any], /) -> Paper:
        """The paper of a hit; RecordError if it cannot be read."""
        info = read_object(record, "info")
        named = read_object(info, "authors").get("author") or []
        authors = read_list({"author": named if isinstance(named, list) else [named]}, "author", dict)
        venue = info.get("venue")
        address = read_plain(info, "ee") if isinstance(info.get("ee"), str) else ""
        doi = doi_in(read_plain(info, "doi") or "") or doi_of_address(address or "")
        return paper_of(
            read_id(info, "key"),
            {"DOI": doi, "ArXiv": arxiv_in(address or "")},
            title=(read_plain(info, "title") or "").removesuffix("."),
            year=year_in(read_plain(info, "year") or ""),
            venue=" ".join(read_strings(info, "venue")) if isinstance(venue, list) else read_plain(info, "venue"),
            authors=tuple(_NUMBER.sub("", plain(str(one.get("text") or ""))) for one in authors),
        )


class ArxivSearch(LookUp):
    """arXiv's API."""

    name = "arxiv"
    title = "arXiv"
    url = "https://export.arxiv.org/api"
    lists = "entries"
    paper_of = staticmethod(arxiv.parse_paper)

    def search(self, query: str, filters: Filters = NO_FILTERS, offset: int = 0) -> Page:  # noqa: ARG002 - it has none
        """Preprints with all words."""
        asked = " AND ".join(f"all:{word}" for word in plain_title(query).split())
        return self.page("query", {"search_query": asked, "start": str(offset), "max_results": str(PAGE)})

    def titled(self, paper: Paper) -> list[Known]:
        """Preprints with the first words of the title."""
        words = [word for word in plain_title(paper.title).split() if len(word) > _SMALL][:_MOST_WORDS]
        asked = {"search_query": " AND ".join(f"ti:{word}" for word in words), "max_results": str(_LISTED)}
        return self.known_in(self.listed("query", asked)) if words else []

    def by_id(self, paper: Paper) -> Mapping[str, Any] | None:
        """The preprint with the arXiv id of a paper, or with a DOI that arXiv gave."""
        own = next((name for name in sorted(keys_of(paper)) if name.startswith("arxiv:")), "").removeprefix("arxiv:")
        return next(iter(self.listed("query", {"id_list": own})), None) if own else None

    def notices_of(self, record: Mapping[str, Any]) -> Iterator[Notice]:
        """Whether its authors took it back."""
        if _WITHDRAWN.search(record["comments"]):
            yield Notice("retraction", f"https://arxiv.org/abs/{record['id']}", self.title)

    def read(self, content: bytes) -> dict[str, Any] | None:
        """The entries of a feed, as lines of arXiv's metadata file; None for what is no feed."""
        feed = read_xml(content)
        if feed is None or feed.tag != f"{_ATOM}feed":
            return None
        return {"entries": list(map(_entry, feed.iterfind(f"{_ATOM}entry")))}


def _entry(entry: Element) -> dict[str, Any]:
    """An entry as a line of the metadata file. Where a comment says that it was accepted, that is its journal."""
    said = one_line(entry.findtext(f"{_ARXIV}comment") or "")
    accepted = _ACCEPTED.search(said)
    names = (one_line(author.findtext(f"{_ATOM}name") or "") for author in entry.iterfind(f"{_ATOM}author"))
    return {
        "id": arxiv_in(entry.findtext(f"{_ATOM}id") or ""),
        "title": one_line(entry.findtext(f"{_ATOM}title") or ""),
        "abstract": one_line(entry.findtext(f"{_ATOM}summary") or ""),
        "doi": entry.findtext(f"{_ARXIV}doi"),
        "journal-ref": entry.findtext(f"{_ARXIV}journal_ref") or (accepted[1] if accepted else None),
        "authors_parsed": [[name] for name in names if name],
        "versions": [{"created": entry.findtext(f"{_ATOM}published")}],
        "categories": " ".join(one.get("term", "") for one in entry.iterfind(f"{_ATOM}category")),
        "comments": said,
    }


@contextlib.contextmanager
def opened(names: Iterable[str], manners: Callable[[str], Manners]) -> Iterator[list[LookUp]]:
    """The services of some names, asked in manners of their own, until the end of the block."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(LOOK_UPS[name](manners(name)))) for name in names]


def notice_kind(words: str) -> str:
    """The kind of a notice, as `Notice` has it, of the name that a source gives it; empty for another kind."""
    kinds = {"retract": "retraction", "withdraw": "retraction", "removal": "retraction", "concern": "concern"}
    kinds |= {"correct": "correction", "errat": "correction", "corrigend": "correction"}
    return next((kind for part, kind in kinds.items() if part in words.casefold()), "")


def readable(records: Iterable[Any], parse: Callable[[Mapping[str, Any]], Item]) -> Iterator[Item]:
    """Records of an answer, parsed; those that cannot be read are left out."""
    for record in records:
        if isinstance(record, Mapping):
            with contextlib.suppress(ValueError):
                yield parse(record)


LOOK_UPS: Registry[type[LookUp]] = Registry(
    "look-up",
    {
        "crossref": "citerec.sources.look_up:Crossref",
        "openalex": "citerec.sources.look_up:OpenAlex",
        "s2": "citerec.sources.look_up:SemanticScholar",
        "dblp": "citerec.sources.look_up:Dblp",
        "arxiv": "citerec.sources.look_up:ArxivSearch",
    },
)
"""The web services that can be asked for papers, by name."""
