"""The engine on Qdrant: words and vectors on a server; records and columns stay in the index (docs/qdrant.md)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress
from citerec.files.resume import read_json
from citerec.index.arrays import mapped, rows_of
from citerec.index.base import Engine, Layout, Words, WordSettings, check_weights, matches
from citerec.index.candidates import Candidate, Candidates
from citerec.index.changes import changes_between
from citerec.index.columns import COLUMNS
from citerec.index.hits import DEPTH, Hits, added_up, settled
from citerec.index.manifest import DENSE as VECTORS
from citerec.index.manifest import FILE_NAME
from citerec.index.qdrant.address import Address, Connection, failures
from citerec.index.qdrant.collections import (
    CITANCES,
    PAPERS,
    Collections,
    Stated,
    alias_of,
    mean_lengths,
    stated_at,
)
from citerec.index.qdrant.points import (
    ABSTRACT,
    CITANCE,
    CITING,
    DENSE,
    ID,
    POSITION,
    TEXT,
    TITLE,
    WORDS,
    filter_of,
    point_id,
    query_vector,
)
from citerec.index.vectors.manifest import DenseManifest, has_vectors
from citerec.index.vectors.vectors import Vectors
from citerec.index.words.analysis import term_weights, written_words
from citerec.index.words.texts import no_word
from citerec.records import Filters, Match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.opened import OpenIndex

_MOST_DRIFT = 0.05
"""How far the mean length of a field may move before users are told that a new build would score better."""

_OVERSAMPLING = 2.0
"""Of quantised vectors so many times as many are found, and scored again by the vectors themselves."""


class Qdrant(Engine):
    """Words and vectors in collections of a server of Qdrant."""

    name = "qdrant"
    FOLDER = "qdrant"

    @classmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        fields = [TEXT, TITLE, *[ABSTRACT] * layout.abstract_field, *[CITANCE] * bool(counts.citances)]
        on_progress("measuring texts", 0, 1)
        means, warning = mean_lengths(store, fields), ""
        vectors = Vectors(folder / VECTORS) if has_vectors(folder / VECTORS) else None
        (folder / cls.FOLDER).mkdir(exist_ok=True)
        with Connection(Address.parse(layout.url or "")) as connection:
            live, changes = stated_at(connection), changes_between(before, folder, layout, cls.name)
            stated = Stated(
                fingerprint=store.fingerprint(),
                papers=counts.papers,
                citances=counts.citances,
                means=means,
                quantization=layout.quantization,
                vectors=_made_by(folder),
            )
            fits = live is not None and live.fingerprint == _fingerprint(before) and live.means.keys() == means.keys()
            if live and fits and changes is not None and _made_by(before) == stated.vectors == live.vectors:
                drift = max(abs(means[name] / (live.means[name] or 1.0) - 1) for name in means)
                if drift > _MOST_DRIFT:
                    warning = f"The texts are {drift:.0%} longer or shorter than when {connection.address} was filled: "
                    warning += "build the index again for more even scores."
                stated = stated.model_copy(update={"means": live.means})
                ids = mapped(folder / COLUMNS / "ids.npy")
                collections = Collections(connection, store, stated, layout, vectors, on_progress)
                collections.write_changes(changes, lambda paper_id: int(rows_of(ids, [paper_id])[0]))
            else:
                Collections(connection, store, stated, layout, vectors, on_progress).write_all()
        return warning

    @classmethod
    def open(cls, index: "OpenIndex", settings: WordSettings) -> "QdrantWords":
        return QdrantWords(index, settings)

    @classmethod
    def vectors(cls, index: "OpenIndex", name: str, probe: int | None) -> Vectors:
        """Those of the papers are searched on the server."""
        folder = index.folder / name
        return QdrantVectors(index, folder, probe) if name == VECTORS else Vectors(folder, probe)


def _fingerprint(folder: Path) -> str:
    return str((read_json(folder / FILE_NAME) or {}).get("fingerprint"))


def _made_by(folder: Path) -> str:
    """What made the vectors of a generation, and their dimension; empty if there are none."""
    if not has_vectors(folder / VECTORS):
        return ""
    made = DenseManifest.read(folder / VECTORS)
    return f"{made.model} {made.identity} {made.max_tokens} {made.backend} {made.dimension}"


def _connected(index: "OpenIndex") -> Connection:
    """A connection to the collections of an index.

    Raises:
        IndexUnusableError: The collections are gone, or hold other papers.
        ServiceError: The server cannot be asked.
    """
    address = Address.parse(index.manifest.url or "")
    again = f"Build it again: citerec index build {index.path} --engine qdrant --url {address} --out {index.path}"
    if address.folder and not address.folder.is_dir():  # a connection would make it
        raise IndexUnusableError(f"there is nothing at {address}", again)
    connection = Connection(address)
    try:
        stated = stated_at(connection)
        if stated is None:
            raise IndexUnusableError(f"there is nothing at {address}", again)
        if index.manifest.fingerprint not in (stated.fingerprint, stated.updating):
            raise IndexUnusableError(f"{address} holds other papers than {index.path}", again)
    except BaseException:
        connection.close()
        raise
    return connection


class QdrantWords(Words):
    """The words of an index, in Qdrant."""

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        self.settings = settings
        self._rows, self._filter = index.rows, index.filter
        has_citances = index.manifest.counts.citances > 0
        check_weights(settings, citances=has_citances, abstract=index.manifest.abstract_field, index=index.path)
        weights = settings.weights
        self._fields = {TEXT: weights.text, TITLE: weights.title, ABSTRACT: weights.abstract}
        self._adds_citances = has_citances and weights.citances > 0
        self._connection = _connected(index)

    def close(self) -> None:
        self._connection.close()

    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        terms = term_weights(self.settings, topic)
        if not terms:
            raise no_word(topic)
        adds_citances = self._adds_citances and sort == "relevance"
        depth = len(self._rows) if sort != "relevance" else max(DEPTH, k) if adds_citances else k
        papers, _ = self._best(PAPERS, query_vector(terms, self._fields), depth, filters)
        if sort != "relevance":
            order = self._filter.in_order(sort, papers.rows, papers.scores)[:k]
            papers = Hits(papers.rows[order], papers.scores[order])
        if not adds_citances:
            return Candidates(self._rows, papers.rows, papers.scores, {"bm25": papers.scores})
        citances, payloads = self._best(CITANCES, query_vector(terms, {CITANCE: 1.0}), depth, filters)
        said = [(str(one[CITING]), int(one[POSITION])) for one in payloads]
        by_weight = self.settings.weights.citances, self.settings.citance_decay
        return added_up(self._rows, papers, citances, by_weight, said.__getitem__)[:k]

    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        terms, written = term_weights(self.settings, topic), written_words(self.settings, topic)
        points = [point_id(one.paper_id) for one in candidates]
        of_fields = {name: self._scores(PAPERS, name, terms, points) for name in self._fields}
        keys: list[tuple[object, ...]] = [
            (one.paper_id, one.citance.citing_id, one.citance.position) if one.citance else () for one in candidates
        ]
        said = self._scores(CITANCES, CITANCE, terms, [point_id(*key) for key in keys]) if any(keys) else {}
        found = []
        for at, point in enumerate(points):
            scores: dict[str, float] = {}
            places: dict[str, list[str]] = {}
            for term, times in terms.items():
                each = {name: of_fields[name].get((point, term), 0.0) for name in self._fields}
                cited_so = said.get((point_id(*keys[at]), term), 0.0) if keys[at] else 0.0
                scores[term] = times * sum(weight * each[name] for name, weight in self._fields.items())
                scores[term] += times * cited_so * self.settings.weights.citances
                in_title, in_text = each[TITLE] > 0, each[TEXT] > 0
                places[term] = ["title"] * in_title + ["abstract"] * (in_text and not in_title)
                places[term] += ["citance"] * (cited_so > 0)
            found.append(matches(written, scores, places))
        return found

    def _scores(
        self, kind: str, field: str, terms: Mapping[str, float], points: Sequence[str]
    ) -> dict[tuple[str, str], float]:
        """The score of each term of a field in some points, by point and term."""
        from qdrant_client import models

        only = models.Filter(must=[models.HasIdCondition(has_id=list(points))])
        vectors = (query_vector({term: 1.0}, {field: 1.0}) for term in terms)
        asked = [models.QueryRequest(query=one, using=WORDS, filter=only, limit=len(points)) for one in vectors]
        with failures(self._connection.address):
            answers = self._connection.client.query_batch_points(alias_of(self._connection, kind), requests=asked)
        pairs = zip(terms, answers, strict=True)
        return {(str(point.id), term): point.score for term, answer in pairs for point in answer.points}

    def _best(self, kind: str, vector: Any, k: int, filters: Filters) -> tuple[Hits, list[Mapping[str, Any]]]:
        """The first k hits in a collection, ties by paper id, and what is known of each."""
        import numpy as np

        if vector is None:
            return Hits(np.empty(0, np.int64), np.empty(0)), []
        passing = filter_of(filters, citances=kind == CITANCES)
        payloads: list[Mapping[str, Any]] = []

        def found(wanted: int) -> Hits:
            with failures(self._connection.address):
                points = self._connection.client.query_points(
                    alias_of(self._connection, kind),
                    query=vector,
                    using=WORDS,
                    limit=wanted,
                    query_filter=passing,
                    with_payload=[ID, CITING, POSITION] if kind == CITANCES else [ID],
                ).points
            payloads[:] = [point.payload or {} for point in points]
            scores = np.array([point.score for point in points], np.float64)
            rows = self._rows.rows([str(one[ID]) for one in payloads])
            return Hits(rows, scores, np.arange(len(rows)))

        hits = settled(found, k)
        assert hits.documents is not None
        known = np.flatnonzero(hits.rows >= 0)  # while an update is written, some papers may be new
        documents = hits.documents[known]
        return Hits(hits.rows[known], hits.scores[known], documents), [payloads[at] for at in documents.tolist()]


class QdrantVectors(Vectors):
    """The vectors of an index's papers, searched in Qdrant; single ones are read from the files of the index."""

    def __init__(self, index: "OpenIndex", folder: Path, ef: int | None) -> None:
        super().__init__(folder)
        self._papers, self._ef = index.rows, ef
        self._connection = _connected(index)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def search(
        self, vector: "NDArray[np.float32]", k: int, filters: Filters, _filter: Any
    ) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        """As `Vectors.search`, on the server."""
        import numpy as np
        from qdrant_client import models

        params = None
        if not self._connection.address.folder:
            quantized = models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
            params = models.SearchParams(hnsw_ef=self._ef, quantization=quantized)

        def found(wanted: int) -> Hits:
            with failures(self._connection.address):
                points = self._connection.client.query_points(
                    alias_of(self._connection, PAPERS),
                    query=vector.tolist(),
                    using=DENSE,
                    limit=wanted,
                    query_filter=filter_of(filters),
                    with_payload=[ID],
                    search_params=params,
                ).points
            rows = self._papers.rows([str((point.payload or {})[ID]) for point in points])
            return Hits(rows, np.array([point.score for point in points], np.float64))

        hits = settled(found, k)
        rows = hits.rows[hits.rows >= 0]
        scores = self.scores(vector, rows)  # those of the server differ in the last digits
        order = np.lexsort((rows, -scores))
        return rows[order], scores[order]
