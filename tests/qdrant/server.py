"""Qdrant's REST interface on loopback, as far as citerec uses it, with the real engine behind it.

There is no server of Qdrant on the package index. What is real here: the client, its requests over a socket, and the
engine (qdrant-edge-py). What is not: the server's own routing and its cluster.
"""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import qdrant_edge as edge

from tests import loopback

Body = Mapping[str, Any]

DONE = {"operation_id": 0, "status": "completed"}
KINDS = {"keyword": edge.PayloadSchemaType.Keyword, "integer": edge.PayloadSchemaType.Integer}
SETTINGS = {
    "params": {"vectors": {}, "shard_number": 1},
    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
    "optimizer_config": {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    },
}


class Server(loopback.Server):
    """A running server: `url`. With a key, requests without it are refused. `requests` lists what was asked."""

    def __init__(self, folder: Path, key: str = "") -> None:
        super().__init__("HTTP/1.1")
        self.key, self.busy = key, 0  # so many requests fail
        self.requests: list[tuple[str, str]] = []
        self._folder, self._lock, self._made = folder, threading.Lock(), 0
        self._shards: dict[str, edge.EdgeShard] = {}
        self._metadata: dict[str, dict[str, Any]] = {}
        self._aliases: dict[str, str] = {}
        self.answers = [self._answer]

    def stop(self) -> None:
        super().stop()
        for shard in self._shards.values():
            shard.close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else {}
        path = unquote(urlsplit(handler.path).path).strip("/")
        self.requests.append((handler.command, path))
        status, result = 200, None
        if (handler.headers.get("api-key") or "") != self.key:
            status = 401
        elif self.busy:
            self.busy -= 1
            status = 503
        else:
            with self._lock:
                result = self._result(handler.command, path.split("/"), body)
        sent = json.dumps({"status": "ok", "time": 0.0, "result": result}).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(sent)))
        handler.end_headers()
        handler.wfile.write(sent)

    def _result(self, method: str, path: list[str], body: Body) -> Any:
        match method, *path:
            case "GET", "aliases":
                return {"aliases": [{"alias_name": one, "collection_name": of} for one, of in self._aliases.items()]}
            case "POST", "collections", "aliases":
                return self._change_aliases(body["actions"])
            case "GET", "collections":
                return {"collections": [{"name": name} for name in self._shards]}
            case "PUT", "collections", name:
                return self._create(name, body)
            case "DELETE", "collections", name:
                self._shards.pop(name).close()
                return True
        name = self._aliases.get(path[1], path[1])
        shard = self._shards[name]
        match method, *path[2:]:
            case ("GET",):
                state = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
                return {**state, "config": {**SETTINGS, "metadata": self._metadata[name]}}
            case ("PATCH",):
                self._metadata[name] |= body["metadata"]
                return True
            case "PUT", "index":
                kind = KINDS.get(body["field_schema"]) if isinstance(body["field_schema"], str) else _TEXT
                shard.update(edge.UpdateOperation.create_field_index(body["field_name"], kind))
                return DONE
            case "PUT", "points":
                points = [edge.Point(one["id"], _vectors(one["vector"]), one["payload"]) for one in body["points"]]
                shard.update(edge.UpdateOperation.upsert_points(points))
                return DONE
            case "POST", "points", "delete":
                shard.update(edge.UpdateOperation.delete_points_by_filter(_filter(body["filter"])))
                return DONE
            case "POST", "points", "count":
                return {"count": shard.count(edge.CountRequest(exact=body["exact"]))}
            case "POST", "points", "query":
                return _found(shard, body)
            case "POST", "points", "query", "batch":
                return [_found(shard, one) for one in body["searches"]]
        raise NotImplementedError(method, path)

    def _create(self, name: str, body: Body) -> bool:
        vectors = {
            key: edge.EdgeVectorParams(size=one["size"], distance=edge.Distance.Dot)
            for key, one in (body.get("vectors") or {}).items()
        }
        words = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        sparse = dict.fromkeys(body["sparse_vectors"], words)
        self._made += 1
        (folder := self._folder / f"shard-{self._made}").mkdir(parents=True)
        config = edge.EdgeConfig(vectors=vectors or None, sparse_vectors=sparse)
        self._shards[name], self._metadata[name] = edge.EdgeShard.create(str(folder), config), {}
        return True

    def _change_aliases(self, actions: list[Body]) -> bool:
        """All in one step. New collections get their graphs of vectors before, which a server builds by itself."""
        for action in actions:
            if gone := action.get("delete_alias"):
                del self._aliases[gone["alias_name"]]
            else:
                made = action["create_alias"]
                self._shards[made["collection_name"]].optimize()
                self._aliases[made["alias_name"]] = made["collection_name"]
        return True


_TEXT = edge.TextIndexParams(tokenizer=edge.TokenizerType.Word, lowercase=True, phrase_matching=True)


def _vectors(given: Body) -> dict[str, Any]:
    return {key: _vector(one) for key, one in given.items()}


def _vector(given: Any) -> Any:
    return given if isinstance(given, list) else edge.SparseVector(given["indices"], given["values"])


def _found(shard: edge.EdgeShard, asked: Body) -> Any:
    query: Any = asked["query"]
    nearest = query["nearest"] if isinstance(query, dict) and "nearest" in query else query
    params = asked.get("params") or {}
    request = edge.QueryRequest(
        limit=asked["limit"],
        query=edge.Query.Nearest(_vector(nearest), using=asked["using"]),
        filter=_filter(asked["filter"]) if asked.get("filter") else None,
        with_payload=asked.get("with_payload"),
        params=edge.SearchParams(hnsw_ef=params.get("hnsw_ef"), exact=bool(params.get("exact"))),
    )
    points = shard.query(request)
    return {"points": [{"id": str(one.id), "version": 0, "score": one.score, "payload": one.payload} for one in points]}


def _filter(given: Body) -> edge.Filter:
    kinds = ("must", "should", "must_not")
    conditions: dict[str, Any] = {kind: [_condition(one) for one in given.get(kind) or ()] or None for kind in kinds}
    return edge.Filter(**conditions)


def _condition(given: Body) -> Any:
    if "has_id" in given:
        return edge.HasIdCondition(set(given["has_id"]))
    if "key" not in given:
        return _filter(given)
    if limits := given.get("range"):
        return edge.FieldCondition(given["key"], range=edge.RangeFloat(**limits))
    if phrase := given["match"].get("phrase"):
        return edge.FieldCondition(given["key"], match=edge.MatchPhrase(phrase))
    return edge.FieldCondition(given["key"], match=edge.MatchAny(given["match"]["any"]))
