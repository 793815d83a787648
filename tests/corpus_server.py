"""A server on loopback that behaves as the Datasets API of Semantic Scholar, in all the good and bad ways it may.

Its releases are made up: states of papers, texts and citations, and the diffs between them.
"""

import gzip
import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from tests.loopback import Answer, Server, send

KEY = "a-key-for-tests"
FAULTS = ("retry-after", "busy", "cut", "short", "page", "slow", "expired", "damaged")
_KEYS = {"citations": "citationid"}
_FIELDS = ("Computer Science", "Medicine", "Physics", "Linguistics")
Records = dict[int, dict[str, Any]]
State = dict[str, Records]


def first_state(papers: int, seed: int = 1) -> State:
    """A release: papers with abstracts, half of them with a TLDR, four citations each, some with sentences."""
    state: State = {"papers": {}, "abstracts": {}, "tldrs": {}, "citations": {}}
    rng = random.Random(seed)
    for one in range(1, papers + 1):
        _put_paper(state, 1000 + one, rng)
    ids = list(state["papers"])
    for citing in ids:
        for cited in rng.sample(ids, 4):
            _put_citation(state, citing, cited, rng)
    return state


def next_state(state: State, seed: int, share: float = 0.02) -> State:
    """A later release: some papers are new, some changed, some are gone with all that is about them."""
    rng = random.Random(seed)
    made = {name: dict(records) for name, records in state.items()}
    ids = sorted(made["papers"])
    few = max(2, round(share * len(ids)))
    gone = set(rng.sample(ids, few))
    for name in ("papers", "abstracts", "tldrs"):
        made[name] = {key: record for key, record in made[name].items() if key not in gone}
    made["citations"] = {
        key: record
        for key, record in made["citations"].items()
        if record["citingcorpusid"] not in gone and record["citedcorpusid"] not in gone
    }
    ids = sorted(made["papers"])
    changes: dict[str, Callable[[], dict[str, Any]]] = {
        "papers": lambda: {"citationcount": rng.randrange(500)},
        "abstracts": lambda: {"abstract": _text(rng, 30)},
        "citations": lambda: {"contexts": [_text(rng, 12)], "intents": None},
    }
    for name, change in changes.items():
        for changed in rng.sample(sorted(made[name]), few):
            made[name][changed] = {**made[name][changed], **change()}
    for new in range(max(ids) + 1, max(ids) + 1 + few):
        _put_paper(made, new, rng)
        for cited in rng.sample(ids, 4):
            _put_citation(made, new, cited, rng)
    return made


def _text(rng: random.Random, words: int) -> str:
    return " ".join(f"w{int(rng.random() ** 3 * 3000)}" for _ in range(words))


def _put_paper(state: State, key: int, rng: random.Random) -> None:
    field = rng.choice(_FIELDS)
    state["papers"][key] = {
        "corpusid": key,
        "externalids": {"DOI": f"10.1/{key}" if key % 3 else None, "ArXiv": f"2101.{key % 100000:05d}", "ACL": None},
        "title": f"{_text(rng, 8)} n{key}",
        "authors": [{"authorId": str(key), "name": f"Ada Name{key % 500}"}],
        "venue": "Journal of Tests",
        "year": 1990 + key % 35,
        "citationcount": rng.randrange(100),
        "s2fieldsofstudy": [{"category": field, "source": "s2-fos-model"}],
    }
    state["abstracts"][key] = {"corpusid": key, "openaccessinfo": None, "abstract": _text(rng, 40)}
    if key % 3:
        state["tldrs"][key] = {"corpusid": key, "model": "v", "text": _text(rng, 10)}


def _put_citation(state: State, citing: int, cited: int, rng: random.Random) -> None:
    key = next(reversed(state["citations"]), 0) + 1
    state["citations"][key] = {
        "citationid": key,
        "citingcorpusid": citing,
        "citedcorpusid": cited if key % 8 else None,
        "isinfluential": False,
        "contexts": [_text(rng, 12)] if key % 5 < 2 else None,
        "intents": [["methodology"]] if key % 5 < 2 else None,
    }


def shards_of(records: list[dict[str, Any]], shards: int) -> list[bytes]:
    """Gzip files of JSON Lines; the second half of each is a member of its own."""
    made = []
    for number in range(shards):
        lines = [orjson.dumps(record) + b"\n" for record in records[number::shards]]
        half = len(lines) // 2
        made.append(b"".join(gzip.compress(b"".join(part), 4, mtime=0) for part in (lines[:half], lines[half:])))
    return made


@dataclass
class S2agServer:
    """Serves releases. Use it as a context.

    A share of the answers fails, in turns of `FAULTS`.
    """

    shards: int = 3
    failing: float = 0.0
    pause: float = 0.0
    seed: int = 0
    states: dict[str, State] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._rng, self._lock = random.Random(self.seed), threading.Lock()
        self._server = Server("HTTP/1.1")
        self._server.answers, self.url = [self._answer], self._server.url
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def publish(self, name: str, state: State) -> None:
        """Adds a release, and the diffs from the one before."""
        before = next(reversed(self.states), None)
        for dataset, records in state.items():
            for number, data in enumerate(shards_of(list(records.values()), self.shards)):
                self.files[f"{name}/{dataset}/{dataset}_{number:03d}_x.gz"] = data
            if before:
                old, key = self.states[before][dataset], _KEYS.get(dataset, "corpusid")
                upserts = [record for one, record in records.items() if old.get(one) != record]
                deletes = [{key: one} for one in old if one not in records]
                for kind, changed in (("u", upserts), ("d", deletes)):
                    for number, data in enumerate(shards_of(changed, 2 if changed else 0)):
                        self.files[f"{before}_{name}/{dataset}/{kind}_{number}.gz"] = data
        self.states[name] = state

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        fault = ""
        with self._lock:
            self.asked.append(handler.path)
            if self._rng.random() < self.failing:
                fault = FAULTS[sum(self.faults.values()) % len(FAULTS)]
                self.faults[fault] = self.faults.get(fault, 0) + 1
        if self.pause:
            time.sleep(self.pause)
        if parts.path.startswith("/signed/"):
            if "x-api-key" in handler.headers:
                answer = send(400, b"no key for signed links")
            else:
                answer = self._file(self.files[parts.path.removeprefix("/signed/")], fault)
        else:
            status, value = self._api(parts.path.strip("/").split("/"), handler.headers.get("x-api-key"))
            answer = self._failing(fault, orjson.dumps(value), status)
        answer(handler)

    def _api(self, path: list[str], key: str | None) -> tuple[int, Any]:
        names = list(self.states)
        if path == ["release"]:
            return 200, names
        if path[0] == "release" and len(path) == 2:
            name = names[-1] if path[1] == "latest" else path[1]
            known = (*self.states.get(name, ()), "authors")
            datasets = [{"name": one, "description": "", "README": ""} for one in known]
            release = {"release_id": name, "README": "Made up, for tests.", "datasets": datasets}
            return (200, release) if name in self.states else (404, {"error": "not found"})
        if key != KEY:
            return 401, {"error": "key"}
        match path:
            case ["release", name, "dataset", dataset]:
                return 200, {"name": dataset, "files": self._links(f"{name}/{dataset}/")}
            case ["diffs", start, "to", end, dataset]:
                chain = names[names.index(start) : names.index(names[-1] if end == "latest" else end) + 1]
                diffs = [
                    {
                        "from_release": one,
                        "to_release": other,
                        "update_files": self._links(f"{one}_{other}/{dataset}/u"),
                        "delete_files": self._links(f"{one}_{other}/{dataset}/d"),
                    }
                    for one, other in itertools.pairwise(chain)
                ]
                return 200, {"dataset": dataset, "start_release": start, "end_release": end, "diffs": diffs}
        return 404, {"error": "not found"}

    def _links(self, prefix: str) -> list[str]:
        return [f"{self.url}/signed/{name}?expires={time.time()}" for name in self.files if name.startswith(prefix)]

    def _file(self, body: bytes, fault: str) -> Answer:
        """A file, which can be asked for from a byte on; its link may have expired, and its bytes may be damaged."""
        if fault == "expired":
            return send(403, b"<Error><Code>AccessDenied</Code></Error>")
        if fault == "damaged" and len(body) > 200:
            body = body[:100] + bytes([body[100] ^ 0xFF]) + body[101:]
        return self._failing(fault, body, ETag=f'"{len(body)}"')

    def _failing(self, fault: str, body: bytes, status: int = 200, **headers: str) -> Answer:
        if fault == "slow":
            time.sleep(0.2)
        match fault:
            case "retry-after":
                return send(429, Retry_After="0")
            case "busy":
                return send(self._rng.choice([429, 500, 502, 503, 504]))
            case "page":
                return send(body=b"<html>Sorry, we are busy.</html>")
            case "short":  # as if it were all
                return send(status, body[: len(body) // 2], **headers)
            case "cut":
                return send(status, body, len(body) // 2, **headers)
        return send(status, body, **headers)


def state_of(folder: Path) -> State:
    """What a corpus folder holds, by reading its shards in the order of `corpus.json`, as an index reads it.

    Papers that are removed go with their texts. Citations of papers that are not there are not of the state.
    """
    state: State = {"papers": {}, "abstracts": {}, "tldrs": {}, "citations": {}}
    for shard in orjson.loads((folder / "corpus.json").read_bytes())["shards"]:
        dataset, _, kind = shard["format"].removeprefix("s2ag-").partition("-")
        with gzip.open(folder / shard["path"]) as lines:
            if shard["format"] == "removed":
                for key, name in itertools.product(map(int, lines), ("papers", "abstracts", "tldrs")):
                    state[name].pop(key, None)
                continue
            for record in map(orjson.loads, lines):
                key = record[_KEYS.get(dataset, "corpusid")]
                if kind == "deletes":
                    state[dataset].pop(key, None)
                else:
                    state[dataset][key] = record
    return {**state, "citations": _about(state["papers"], state)}


def cut_state(state: State, keeps: Callable[[dict[str, Any]], bool] = lambda _: True) -> State:
    """What a corpus folder should hold: papers, and what is about them; citations with sentences."""
    papers = {key: record for key, record in state["papers"].items() if keeps(record)}
    texts = {name: {key: one for key, one in state[name].items() if key in papers} for name in ("abstracts", "tldrs")}
    return {"papers": papers, **texts, "citations": _about(papers, state)}


def _about(papers: Records, state: State) -> Records:
    """The citations of some papers that have sentences."""
    citations = state["citations"].items()
    return {key: one for key, one in citations if one["citedcorpusid"] in papers and one["contexts"]}
