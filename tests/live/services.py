"""Semantic Scholar and OpenAlex on loopback: they answer as documented, or badly, as a test wishes."""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.conftest import DEMO

Bad = Callable[[BaseHTTPRequestHandler], None]


def demo_papers() -> list[dict[str, Any]]:
    """The papers of the demo corpus, in S2AG's form, each with its abstract and a DOI."""
    lines = (DEMO / "papers" / "papers-00000.jsonl").read_text(encoding="utf-8").splitlines()
    papers = [json.loads(line) for line in lines]
    abstracts = {}
    for path in (DEMO / "abstracts").iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            abstracts[json.loads(line)["corpusid"]] = json.loads(line)["abstract"]
    return [{**paper, "abstract": abstracts.get(paper["corpusid"])} for paper in papers]


def graph_paper(paper: Mapping[str, Any]) -> dict[str, Any]:
    """A paper as the Graph API writes it."""
    number = paper["corpusid"]
    return {
        "paperId": f"{number:040x}",
        "corpusId": number,
        "externalIds": {"DOI": f"10.5555/{number}", "CorpusId": number},
        "title": paper["title"],
        "abstract": paper["abstract"],
        "tldr": {"model": "tldr@v2.0.0", "text": f"On {paper['title']}."},
        "venue": paper["venue"],
        "journal": None,
        "year": paper["year"],
        "authors": paper["authors"],
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


class Services:
    """Both services in one server: `/graph/v1` and `/openalex`. They know `papers`, in S2AG's form.

    With `lists_all` every query lists all papers, best first; otherwise those with all its words, or any. `asked` has
    path, parameters and headers of the requests so far; `bad` is sent in place of the next answers.
    """

    def __init__(self, papers: Iterable[Mapping[str, Any]], *, lists_all: bool = False) -> None:
        self.papers, self.lists_all = list(papers), lists_all
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.bad: list[Bad] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with contextlib.suppress(ConnectionError):  # who waited has gone
                    outer._answer(self)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def settings(self) -> list[str]:
        """Settings with which retrievers ask this server, without waiting and keeping nothing."""
        urls = {"s2_api": f"{self.url}/graph/v1", "openalex_api": f"{self.url}/openalex"}
        return [
            f"{part}.{setting}"
            for part, url in urls.items()
            for setting in (f"url={url}", "pace=0", "keep_days=0", "depth=1000")
        ]

    @property
    def queries(self) -> list[str]:
        """What was asked for, in order."""
        return [parameters.get("query", parameters.get("search", "")) for _, parameters, _ in self.asked]

    def stop(self) -> None:
        """Closes the port: from now on nobody answers."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        parameters = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.asked.append((parts.path, parameters, {key.lower(): value for key, value in handler.headers.items()}))
        if self.bad:
            self.bad.pop(0)(handler)
        elif parts.path == "/graph/v1/paper/search":
            sent(self._graph(parameters))(handler)
        elif parts.path == "/openalex/works":
            sent(self._works(parameters))(handler)
        else:
            sent({"error": "Not found"}, 404)(handler)

    def _graph(self, asked: Mapping[str, str]) -> dict[str, Any]:
        first, _, last = (asked.get("year") or "-").partition("-")
        if "-" not in (asked.get("year") or "-"):
            last = first
        found = self._found(asked["query"].split(), all, first, last, int(asked.get("minCitationCount", 0)))
        offset, limit = int(asked["offset"]), int(asked["limit"])
        assert limit <= 100
        assert offset + limit <= 1000
        page: dict[str, Any] = {"total": len(found), "offset": offset}
        if offset + limit < len(found):
            page["next"] = offset + limit
        wanted = asked["fields"].split(",")
        listed = [graph_paper(paper) for paper in found[offset : offset + limit]]
        # Without hits there is no `data`.
        return page | ({"data": [{key: one[key] for key in ("paperId", *wanted)} for one in listed]} if listed else {})

    def _works(self, asked: Mapping[str, str]) -> dict[str, Any]:
        limits = dict(part.split(":", 1) for part in asked["filter"].split(",")) if "filter" in asked else {}
        first, last = (limits.get(f"{end}_publication_date", "")[:4] for end in ("from", "to"))
        least = int(limits["cited_by_count"].removeprefix(">")) + 1 if "cited_by_count" in limits else 0
        found = self._found(asked["search"].split(" OR "), any, first, last, least)
        size, page = int(asked["per-page"]), int(asked["page"])
        assert size <= 100
        listed = [work(paper) for paper in found[(page - 1) * size : page * size]]
        wanted = asked["select"].split(",")
        return {"meta": {"count": len(found)}, "results": [{key: one.get(key) for key in wanted} for one in listed]}

    def _found(
        self, words: Iterable[str], how: Callable[[Iterable[bool]], bool], first: str, last: str, least: int
    ) -> list[Mapping[str, Any]]:
        """The papers with all or any words, those with most first, ties by id."""
        wanted = {_stem(word) for word in words}
        earliest, latest = int(first or 0), int(last or 9999)
        scored = []
        for paper in self.papers:
            stems = set(map(_stem, re.findall(r"\w+", f"{paper['title']} {paper['abstract'] or ''}")))
            has = [word in stems for word in wanted]
            year = (paper["year"] or -1) if first or last else 0
            cited = paper["citationcount"] or 0
            if (self.lists_all or how(has)) and earliest <= year <= latest and cited >= least:
                scored.append((-sum(has), str(paper["corpusid"]), paper))
        return [paper for _, _, paper in sorted(scored, key=lambda one: one[:2])]


def _stem(word: str) -> str:
    return word.casefold()[:6]


def sent(body: object, status: int = 200, most: int | None = None, **headers: str) -> Bad:
    """An answer: bytes, or a value as JSON; with `most`, only so many bytes of it."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:most])

    return answer
