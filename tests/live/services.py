"""Semantic Scholar and OpenAlex on loopback: they answer as documented, or badly, as a test wishes."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.conftest import DEMO
from tests.loopback import Answer, Server, send


def demo_papers() -> list[dict[str, Any]]:
    """The papers of the demo corpus, in S2AG's form, each with its abstract."""

    def records(folder: str) -> list[dict[str, Any]]:
        lines = [line for path in (DEMO / folder).iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
        return [json.loads(line) for line in lines]

    abstracts = {one["corpusid"]: one["abstract"] for one in records("abstracts")}
    return [{**paper, "abstract": abstracts.get(paper["corpusid"])} for paper in records("papers")]


def graph_paper(paper: Mapping[str, Any]) -> dict[str, Any]:
    """A paper as the Graph API writes it."""
    number = paper["corpusid"]
    return {
        **{name: paper[name] for name in ("title", "abstract", "venue", "year", "authors")},
        "paperId": f"{number:040x}",
        "corpusId": number,
        "externalIds": {"DOI": f"10.5555/{number}", "CorpusId": number},
        "tldr": {"model": "tldr@v2.0.0", "text": f"On {paper['title']}."},
        "journal": None,
        "citationCount": paper["citationcount"],
        "s2FieldsOfStudy": paper["s2fieldsofstudy"],
    }


def work(paper: Mapping[str, Any]) -> dict[str, Any]:
    """A paper as OpenAlex writes it."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate((paper["abstract"] or "").split()):
        places.setdefault(word, []).append(place)
    number = paper["corpusid"]
    return {
        "id": f"https://openalex.org/W{number}",
        "ids": {"openalex": f"https://openalex.org/W{number}", "doi": f"https://doi.org/10.5555/{number}", "mag": "17"},
        "title": paper["title"],
        "publication_year": paper["year"],
        "primary_location": {"source": {"display_name": paper["venue"]}},
        "authorships": [{"author": {"display_name": author["name"]}} for author in paper["authors"]],
        "cited_by_count": paper["citationcount"],
        "topics": [{"field": {"display_name": one["category"]}} for one in paper["s2fieldsofstudy"]],
        "abstract_inverted_index": places or None,
    }


class Services(Server):
    """Both services in one server, with papers in S2AG's form; with `lists_all` every query lists all papers.

    `asked` has path, parameters and headers of the requests so far; `bad` is sent in place of the next answers.
    """

    def __init__(self, papers: Iterable[Mapping[str, Any]], *, lists_all: bool = False) -> None:
        super().__init__()
        self.papers, self.lists_all = list(papers), lists_all
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []  # type: ignore[assignment]
        self.bad: list[Answer] = []
        self.answers = [self._answer]

    def note(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {key.lower(): value for key, value in handler.headers.items()}
        self.asked.append((*_address(handler), headers))

    @property
    def settings(self) -> list[str]:
        """Settings with which retrievers ask this server, without waiting and keeping nothing."""
        urls = [f"s2_api.url={self.url}/graph/v1", f"openalex_api.url={self.url}/openalex"]
        return urls + [
            f"{api}.{one}" for api in ("s2_api", "openalex_api") for one in ("pace=0", "keep_days=0", "depth=1000")
        ]

    @property
    def queries(self) -> list[str]:
        """What was asked for, in order."""
        return [parameters.get("query", parameters.get("search", "")) for _, parameters, _ in self.asked]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, parameters = _address(handler)
        if self.bad:
            self.bad.pop(0)(handler)
        elif path == "/graph/v1/paper/search":
            sent(self._graph(parameters))(handler)
        elif path == "/openalex/works":
            sent(self._works(parameters))(handler)
        else:
            sent({"error": "Not found"}, 404)(handler)

    def _graph(self, asked: Mapping[str, str]) -> dict[str, Any]:
        found = self._found(asked["query"].split(), all)
        offset, limit = int(asked["offset"]), int(asked["limit"])
        assert limit <= 100 and offset + limit <= 1000
        page: dict[str, Any] = {"total": len(found), "offset": offset}
        if offset + limit < len(found):
            page["next"] = offset + limit
        wanted = asked["fields"].split(",")
        listed = [graph_paper(paper) for paper in found[offset : offset + limit]]
        # Without hits there is no `data`.
        return page | ({"data": [{key: one[key] for key in ("paperId", *wanted)} for one in listed]} if listed else {})

    def _works(self, asked: Mapping[str, str]) -> dict[str, Any]:
        found = self._found(asked["search"].split(" OR "), any)
        size, page = int(asked["per-page"]), int(asked["page"])
        assert size <= 100
        listed = [work(paper) for paper in found[(page - 1) * size : page * size]]
        wanted = asked["select"].split(",")
        return {"meta": {"count": len(found)}, "results": [{key: one.get(key) for key in wanted} for one in listed]}

    def _found(self, words: Iterable[str], how: Callable[[Iterable[bool]], bool]) -> list[Mapping[str, Any]]:
        """The papers with all or any words, those with most first, ties by id. Filters are ignored, as they may be."""
        wanted = {_stem(word) for word in words}
        scored = []
        for paper in self.papers:
            stems = set(map(_stem, re.findall(r"\w+", f"{paper['title']} {paper['abstract'] or ''}")))
            has = [word in stems for word in wanted]
            if self.lists_all or how(has):
                scored.append((-sum(has), str(paper["corpusid"]), paper))
        return [paper for _, _, paper in sorted(scored, key=lambda one: one[:2])]


def _address(handler: BaseHTTPRequestHandler) -> tuple[str, dict[str, str]]:
    parts = urlsplit(handler.path)
    return parts.path, {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}


def _stem(word: str) -> str:
    return word.casefold()[:6]


def sent(body: object, status: int = 200, most: int | None = None, **headers: str) -> Answer:
    """An answer: bytes, or a value as JSON; with `most`, only so many bytes of it."""
    return send(status, body if isinstance(body, bytes) else json.dumps(body).encode(), most, **headers)


WORKS: list[dict[str, Any]] = [
    {"DOI": "10.1000/lakes", "title": ["Counting Lakes by Night and by Day"], "year": 2011, "venue": "Lake Journal"},
    {"DOI": "10.1000/dams", "title": ["Dams and their Ponds in Winter"], "year": 2015, "venue": "ICML"},
    {"DOI": "10.1000/maps", "title": ["Maps without any Rivers at all"], "year": 2012, "venue": "Maps"},
    {"DOI": "10.1000/seas", "title": ["Seas of the Moon are Dry"], "year": 2019, "venue": "NeurIPS"},
]


class Records(Server):
    """Crossref, with some works. The other services know nothing; `bad` are answers in place of theirs, by service."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: dict[str, Answer] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.answers = [self._answer]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, parameters = _address(handler)
        self.seen.append((path, parameters))
        _, service, *rest = path.split("/", 3)
        if service in self.bad:
            self.bad[service](handler)
        elif service == "crossref" and len(rest) > 1:
            found = [_item(one) for one in WORKS if one["DOI"] == rest[1]]
            sent({"message": found[0]} if found else "Resource not found.", 200 if found else 404)(handler)
        elif service == "crossref":
            words = set(parameters["query.bibliographic"].split())
            near = [one for one in WORKS if len(words & set(one["title"][0].lower().split())) > 2]
            sent({"message": {"items": [_item(one) for one in near]}})(handler)
        else:
            empty = {"openalex": {"results": []}, "dblp": {"result": {"hits": {}}}}
            feed = b"<feed xmlns='http://www.w3.org/2005/Atom'></feed>"
            sent(feed if service == "arxiv" else empty.get(service, {}), 404 if service == "s2" else 200)(handler)

    @property
    def options(self) -> list[str]:
        """The settings with which a command asks it."""
        return self.settings()

    def settings(self, prefix: str = "") -> list[str]:
        """The same for a command whose settings have a prefix."""
        names = ("crossref", "openalex", "s2", "dblp", "arxiv")
        values = [f"{prefix}{name}.{one}" for name in names for one in (f"url={self.url}/{name}", "pace=0", "tries=1")]
        return [part for value in values for part in ("-c", value)]


def _item(work: dict[str, Any]) -> dict[str, Any]:
    authors = [{"given": "Ada", "family": "Roe"}, {"given": "W.", "family": "Lee"}]
    notices = [{"type": "retraction", "DOI": "10.1000/notice"}] if "maps" in work["DOI"] else []
    written = {"author": authors, "issued": {"date-parts": [[work["year"]]]}, "container-title": [work["venue"]]}
    return {"DOI": work["DOI"], "title": work["title"], "updated-by": notices, **written}
