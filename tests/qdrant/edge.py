"""The engine of Qdrant within this process, of the package qdrant-edge-py, behind what we use of qdrant-client.

A collection is a shard in a folder; names, aliases and metadata are a file beside. It has what a server's shard has:
sparse vectors with idf, named vectors, quantisation, payload indexes.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from citerec.files.resume import read_json
from citerec.files.writing import alone, remove, write_json

_STATE = "collections.json"


class EdgeClient:
    """What `QdrantClient` has of methods that citerec calls, with the same arguments and results.

    Raises:
        SettingsError: The package is missing.
        ServiceError: Another process uses the folder.
    """

    def __init__(self, folder: Path) -> None:
        import qdrant_client
        import qdrant_edge

        self._edge, self._models = qdrant_edge, qdrant_client.models
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._alone = alone(folder / "lock", f"{folder} is already accessed by another process")
        self._alone.__enter__()
        self._state: dict[str, Any] = read_json(folder / _STATE) or {"collections": {}, "aliases": {}}
        self._shards: dict[str, Any] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Writes everything to the disk."""
        with self._lock:
            for shard in self._shards.values():
                shard.close()
            self._shards = {}
        self._alone.__exit__(None, None, None)

    def create_collection(
        self,
        name: str,
        *,
        vectors_config: Mapping[str, Any],
        sparse_vectors_config: Mapping[str, Any],
        metadata: Mapping[str, Any],
        **_layout: Any,
    ) -> None:
        """Makes a collection; how it lies in a cluster has no meaning here."""
        edge = self._edge
        vectors = {key: self._dense(one) for key, one in vectors_config.items()}
        words = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        config = edge.EdgeConfig(vectors=vectors or None, sparse_vectors=dict.fromkeys(sparse_vectors_config, words))
        number = 1 + max((one["number"] for one in self._state["collections"].values()), default=0)
        remove(path := self._folder / f"shard-{number}")
        path.mkdir(parents=True)
        self._shards[name] = edge.EdgeShard.create(str(path), config)
        self._state["collections"][name] = {"number": number, "metadata": dict(metadata)}
        self._save()

    def create_payload_index(self, name: str, *, field_name: str, field_schema: Any) -> None:
        """Indexes a field of the payload."""
        edge = self._edge
        kinds = {"keyword": edge.PayloadSchemaType.Keyword, "integer": edge.PayloadSchemaType.Integer}
        if isinstance(field_schema, self._models.TextIndexParams):
            kind = edge.TextIndexParams(tokenizer=edge.TokenizerType.Word, lowercase=True, phrase_matching=True)
        else:
            kind = kinds[field_schema.value]
        self._shard(name).update(edge.UpdateOperation.create_field_index(field_name, kind))

    def upsert(self, name: str, *, points: Sequence[Any]) -> None:
        """Writes points, in place of those with the same ids."""
        made = [self._edge.Point(one.id, self._vectors(one.vector), one.payload) for one in points]
        self._shard(name).update(self._edge.UpdateOperation.upsert_points(made))
        self._shard(name).flush()

    def delete(self, name: str, *, points_selector: Any) -> None:
        """Removes points by their ids, or those that pass a filter."""
        operation = self._edge.UpdateOperation
        if isinstance(points_selector, self._models.PointIdsList):
            done = operation.delete_points(points_selector.points)
        else:
            done = operation.delete_points_by_filter(self._filter(points_selector.filter))
        self._shard(name).update(done)
        self._shard(name).flush()

    def count(self, name: str, *, exact: bool) -> Any:
        """How many points there are."""
        return SimpleNamespace(count=self._shard(name).count(self._edge.CountRequest(exact=exact)))

    def query_points(
        self,
        name: str,
        *,
        query: Any,
        using: str,
        limit: int,
        query_filter: Any,
        with_payload: list[str],
        search_params: Any = None,
    ) -> Any:
        """The nearest points that pass a filter."""
        vector = query if isinstance(query, list) else self._edge.SparseVector(query.indices, query.values)
        request = self._edge.QueryRequest(
            limit=limit,
            query=self._edge.Query.Nearest(vector, using=using),
            filter=None if query_filter is None else self._filter(query_filter),
            with_payload=with_payload,
            params=None if search_params is None else self._params(search_params),
        )
        return SimpleNamespace(points=self._shard(name).query(request))

    def get_collection(self, name: str) -> Any:
        """A collection with its metadata."""
        return SimpleNamespace(
            config=SimpleNamespace(metadata=self._state["collections"][self._named(name)]["metadata"])
        )

    def update_collection(self, name: str, *, metadata: Mapping[str, Any]) -> None:
        """Changes some keys of the metadata."""
        self._state["collections"][self._named(name)]["metadata"] |= metadata
        self._save()

    def get_collections(self) -> Any:
        """All collections."""
        return SimpleNamespace(collections=[SimpleNamespace(name=name) for name in self._state["collections"]])

    def get_aliases(self) -> Any:
        """All aliases."""
        pairs = self._state["aliases"].items()
        return SimpleNamespace(aliases=[SimpleNamespace(alias_name=key, collection_name=name) for key, name in pairs])

    def update_collection_aliases(self, *, change_aliases_operations: Sequence[Any]) -> None:
        """Removes and makes aliases, all in one step.

        New collections get their graphs of vectors before, which a server builds by itself.
        """
        aliases = dict(self._state["aliases"])
        for one in change_aliases_operations:
            if isinstance(one, self._models.DeleteAliasOperation):
                aliases.pop(one.delete_alias.alias_name)
            else:
                aliases[one.create_alias.alias_name] = one.create_alias.collection_name
                self._shard(one.create_alias.collection_name).optimize()
        self._state["aliases"] = aliases
        self._save()

    def delete_collection(self, name: str) -> None:
        """Removes a collection."""
        self._shard(name).close()
        del self._shards[name]
        gone = self._state["collections"].pop(name)
        self._save()
        remove(self._folder / f"shard-{gone['number']}")

    def _save(self) -> None:
        write_json(self._folder / _STATE, self._state)

    def _named(self, name: str) -> str:
        return str(self._state["aliases"].get(name, name))

    def _shard(self, name: str) -> Any:
        name = self._named(name)
        with self._lock:
            if name not in self._shards:
                number = self._state["collections"][name]["number"]
                self._shards[name] = self._edge.EdgeShard.load(str(self._folder / f"shard-{number}"))
            return self._shards[name]

    def _dense(self, params: Any) -> Any:
        return self._edge.EdgeVectorParams(size=params.size, distance=self._edge.Distance.Dot)

    def _vectors(self, vectors: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: one if isinstance(one, list) else self._edge.SparseVector(one.indices, one.values)
            for key, one in vectors.items()
        }

    def _params(self, params: Any) -> Any:
        return self._edge.SearchParams(hnsw_ef=params.hnsw_ef, exact=bool(params.exact))

    def _filter(self, given: Any) -> Any:
        conditions: dict[str, Any] = {
            kind: [self._condition(one) for one in getattr(given, kind) or ()] or None
            for kind in ("must", "should", "must_not")
        }
        return self._edge.Filter(**conditions)

    def _condition(self, given: Any) -> Any:
        edge, models = self._edge, self._models
        if isinstance(given, models.Filter):
            return self._filter(given)
        if isinstance(given, models.HasIdCondition):
            return edge.HasIdCondition(set(given.has_id))
        if given.range is not None:
            limits = given.range.model_dump(include={"gt", "gte", "lt", "lte"})
            return edge.FieldCondition(given.key, range=edge.RangeFloat(**limits))
        if isinstance(given.match, models.MatchPhrase):
            return edge.FieldCondition(given.key, match=edge.MatchPhrase(given.match.phrase))
        return edge.FieldCondition(given.key, match=edge.MatchAny(given.match.any))
