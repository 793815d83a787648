"""Qdrant's REST interface on loopback, as far as citerec uses it, with the real engine behind it.

There is no server of Qdrant on the package index. What is real here: the client, its requests over a socket, and the
engine (qdrant-edge-py). What is not: the server's own routing and its cluster.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from qdrant_client import models

from tests.qdrant.edge import EdgeClient


class Server:
    """A running server: `url`. With a key, requests without it are refused. `requests` lists what was asked."""

    def __init__(self, folder: Path, key: str = "") -> None:
        self.engine = EdgeClient(folder)
        self.key = key
        self.requests: list[tuple[str, str]] = []
        self.busy = 0  # so many requests fail
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                path = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
                server.requests.append((self.command, "/".join(path)))
                status, result = server.result(self.command, path, body, self.headers.get("api-key") or "")
                sent = json.dumps({"status": "ok", "time": 0.0, "result": result}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *arguments: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self.engine.close()

    def result(self, method: str, path: list[str], body: dict[str, Any], key: str) -> tuple[int, Any]:
        if key != self.key:
            return 401, None
        if self.busy:
            self.busy -= 1
            return 503, None
        answers: dict[tuple[str, int], Callable[..., Any]] = {
            ("GET", 2): self._one,
            ("PUT", 2): self._create,
            ("PATCH", 2): self._update,
            ("DELETE", 2): lambda name, _: self.engine.delete_collection(name) or True,
        }
        with self.lock:
            if path == ["aliases"]:
                aliases = self.engine.get_aliases().aliases
                return 200, {"aliases": [vars(one) for one in aliases]}
            if path == ["collections", "aliases"]:
                return 200, self._change_aliases(body)
            if len(path) == 1:
                return 200, self._collections()
            if len(path) == 2:
                return 200, answers[method, 2](path[1], body)
            return 200, getattr(self, "_" + "_".join([method.lower(), *path[2:]]))(path[1], body)

    def _collections(self) -> Any:
        return {"collections": [vars(one) for one in self.engine.get_collections().collections]}

    def _one(self, name: str, _body: Any) -> Any:
        params = {"vectors": {}, "shard_number": 1}
        config = {
            "params": params,
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000}
            | {"default_segment_number": 0, "flush_interval_sec": 5},
            "metadata": self.engine.get_collection(name).config.metadata,
        }
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": config,
            "payload_schema": {},
        }

    def _create(self, name: str, body: Any) -> bool:
        asked = models.CreateCollection.model_validate(body)
        self.engine.create_collection(
            name,
            vectors_config=asked.vectors or {},  # type: ignore[arg-type]
            sparse_vectors_config=asked.sparse_vectors or {},
            metadata=asked.metadata or {},
        )
        return True

    def _update(self, name: str, body: Any) -> bool:
        self.engine.update_collection(name, metadata=body["metadata"])
        return True

    def _change_aliases(self, body: Any) -> bool:
        actions = models.ChangeAliasesOperation.model_validate(body).actions
        self.engine.update_collection_aliases(change_aliases_operations=actions)
        return True

    def _put_index(self, name: str, body: Any) -> Any:
        asked = models.CreateFieldIndex.model_validate(body)
        self.engine.create_payload_index(name, field_name=asked.field_name, field_schema=asked.field_schema)
        return self._done()

    def _put_points(self, name: str, body: Any) -> Any:
        self.engine.upsert(name, points=models.PointsList.model_validate(body).points)
        return self._done()

    def _post_points_delete(self, name: str, body: Any) -> Any:
        kind = models.PointIdsList if "points" in body else models.FilterSelector
        self.engine.delete(name, points_selector=kind.model_validate(body))
        return self._done()

    def _post_points_count(self, name: str, body: Any) -> Any:
        return {"count": self.engine.count(name, exact=body["exact"]).count}

    def _post_points_query(self, name: str, body: Any) -> Any:
        asked = models.QueryRequest.model_validate(body)
        query: Any = asked.query
        found = self.engine.query_points(
            name,
            query=getattr(query, "nearest", query),
            using=str(asked.using),
            limit=asked.limit or 10,
            query_filter=asked.filter,
            with_payload=asked.with_payload,  # type: ignore[arg-type]
            search_params=asked.params,
        )
        points = [{"id": str(one.id), "version": 0, "score": one.score, "payload": one.payload} for one in found.points]
        return {"points": points}

    def _post_points_query_batch(self, name: str, body: Any) -> Any:
        return [self._post_points_query(name, one) for one in body["searches"]]

    def _done(self) -> Any:
        return {"operation_id": 0, "status": "completed"}
