"""Dense retrieval: the papers whose vectors, or profiles, are nearest to that of the topic, under exact filters.

A profile is the vector of a paper drawn to what cites it and to what was said of it, after Profiler (arXiv 2603.17361),
under the leak rules: what is newer than the citing paper is in no profile.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.provenance import NOTHING, Provenance, provenance_of_part
from citerec.contexts.topic import Topic, clean
from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError, ModelError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.index.base import ENGINES
from citerec.index.columns import begins_of, places_of_best, sentences_of
from citerec.index.manifest import DENSE, Manifest, generation_of, trained_of
from citerec.index.vectors import DenseManifest, DenseOptions, Vectors, encode_command, has_vectors
from citerec.models.encoder import BY_MODEL, BY_TITLES, BackendName, Encoder, StaticEncoder, StaticManifest
from citerec.models.find import find_model, local_folder
from citerec.models.loading import read_model_manifest
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.base import Candidates, CitanceKey, Citances, Floats, OpenIndex, Retriever, Rows, check_asked
from citerec.retrieve.words import WordSettings, WordsRetriever, cites_before, words_near
from citerec.settings import PartSettings, Weight

Vector = NDArray[np.float32]

_NEAREST_CITED = 3


class SearchSettings(PartSettings):
    """How vectors are searched.

    Attributes:
        probe: Nprobe of IVF-SQ and IVF-PQ, efSearch of HNSW: how far a FAISS index is searched; by default far enough
            to find about 99 % of the exact hundred nearest.
    """

    probe: int | None = Field(default=None, ge=1)


class DenseSettings(SearchSettings):
    """How the topic becomes a vector, and how the vectors are searched.

    Attributes:
        neighbours: Whether the sentences before and after are used.
        near: Weight of the words nearest to the marker, where the sentence cites something before it, against 1 for the
            sentences.
        citing: Weight of the citing paper's own vector, if it is known, against 1 for the sentences.
        cited: Weight of what the draft cites already, against 1 for the sentences: the mean of the three of these
            papers that are nearest to them.
        backend: Backend for the query; by default that of the papers, or a quicker one with the same vectors.
        queries: Folder of a static encoder that learnt these vectors (citerec train static), which then encodes the
            query in place of their model; by default that of the index, if it is as good and no backend is set.
    """

    neighbours: bool = True
    near: Weight = 0.3
    citing: Weight = 1.0
    cited: Weight = 0.5
    backend: BackendName | None = None
    queries: str | None = None


class DenseRetriever(Retriever):
    """Finds papers by their vectors. Safe to call from several threads; ties are ordered by paper id.

    A paper scores the cosine of its vector with the query's: the nearest 120 in half precision, the others by their
    codes. So do all kinds of search, but they may find different papers.

    Attributes:
        settings: Those of the retriever.
        manifest: What made the vectors of the papers.
        papers: The ids of the index's papers.
        vectors: The vectors.

    Raises:
        IndexUnusableError: There are no vectors, or they are damaged, or were made for other papers.
    """

    name = "dense"
    label = "vectors"
    Settings: ClassVar[type[PartSettings]] = DenseSettings
    filters_itself = True

    @classmethod
    def encode(cls, index: Path, options: DenseOptions, on_progress: Progress, parallelism: Parallelism = HERE) -> str:
        """Makes the vectors of all papers, and what searches them; errors as for `encode_index`."""
        from citerec.index.build import encode_index

        encode_index(index, options, on_progress, name=cls.name, parallelism=parallelism)
        return ""

    @classmethod
    def open(cls, index: OpenIndex, settings: Any) -> Self:
        """Opens the vectors of an index: the folder of the retriever's name."""
        folder = index.folder / cls.name
        if not folder.is_dir():
            raise SettingsError(f"{index.path} has no vectors to search", f"Make them: {encode_command(folder)}")
        return cls(folder, settings, index)

    @classmethod
    def provenance_at(cls, index: Path, settings: Any) -> Provenance:
        """What the encoder of the vectors learnt from, and that of the queries if it is another one."""
        if not has_vectors(folder := generation_of(index) / cls.name):
            return NOTHING
        manifest = DenseManifest.read(folder)
        queries = encoder_of_queries(index, settings, manifest)
        made_by = provenance_of_part(local_folder(manifest.model))
        return made_by | provenance_of_part(queries) if queries else made_by

    def __init__(self, folder: Path, settings: Any, index: OpenIndex) -> None:
        self.settings, self.papers, self._index = settings, index.rows, index
        self.vectors = ENGINES[index.manifest.engine].vectors(folder, index.manifest, index.rows, settings.probe)
        self.manifest = self.vectors.manifest
        self.queries_by = encoder_of_queries(index.path, settings, self.manifest)
        if index.manifest.fingerprint != self.manifest.store:
            raise IndexUnusableError(
                f"the vectors of {index.path} were made for other papers", f"Make them: {encode_command(folder)}"
            )

    def close(self) -> None:
        """Releases the model."""
        self._index.encoders.clear()

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Vector | None = None) -> Candidates:
        """The k nearest papers, nearest first; fewer only if fewer pass the filters.

        `prepared` is the topic's vector (dimension,); if it is None, the topic is encoded.

        Raises:
            QueryError: The topic is blank.
            FilterError: k is under 1.
        """
        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        rows, scores = self.vectors.search(vector, k, filters, self.papers)
        return Candidates(self.papers, rows, scores, {self.name: scores})

    def scored(self, prepared: Vector, rows: Rows) -> Floats:
        """The cosine of a vector (dimension,) with those of some papers, (rows,); NaN for papers without a vector."""
        return self.vectors.scores(prepared, rows)

    def prepare(self, topics: Sequence[Topic]) -> Vector:  # type: ignore[override]
        """The vectors of some topics, (topics, dimension), each of length one.

        Of a sentence with several citations the words nearest to a later one are added. The citing paper's own vector,
        or the encoding of its title if it has none, is added with its weight, and so is what the draft cites already.

        Raises:
            ModelError: The model cannot be loaded.
            IndexUnusableError: It is not the model that made the vectors.
        """
        dense, encoder = self.settings, self.encoder()
        texts = [topic.passage if dense.neighbours else topic.text for topic in topics]
        has_vector, own = self.vectors.of(self.papers.rows([topic.citing_id or "" for topic in topics]))
        titled = [at for at, topic in enumerate(topics) if not has_vector[at] and topic.citing_title and dense.citing]
        near_words = (words_near(topic) if dense.near and cites_before(topic) else "" for topic in topics)
        later = {at: words for at, words in enumerate(near_words) if words}
        texts += [*(topics[at].citing_title for at in titled), *later.values()]
        vectors, titles, near = np.split(encoder.encode_again(texts), np.cumsum([len(topics), len(titled)]))
        vectors[[*later]] = _normalised(vectors[[*later]] + np.float32(dense.near) * near)
        if dense.citing:
            citing = np.zeros_like(vectors)
            citing[has_vector] = own
            citing[titled] = titles
            vectors = _normalised(vectors + np.float32(dense.citing) * citing)
        return self._with_cited(vectors, topics)

    def _with_cited(self, vectors: Vector, topics: Sequence[Topic]) -> Vector:
        """The vectors of topics, moved towards the papers that their drafts cite and that are nearest to them."""
        drafted = [at for at, topic in enumerate(topics) if topic.cited_before] if self.settings.cited else []
        for at in drafted:
            _, cited = self.vectors.of(np.unique(self.papers.rows(topics[at].cited_before or ())))
            if len(cited):
                nearest = (-(cited @ vectors[at])).argsort(kind="stable")[:_NEAREST_CITED]
                mean = _normalised(cited[nearest].mean(axis=0))
                vectors[at] = _normalised(vectors[at] + self.settings.cited * mean)
        return vectors

    def with_feedback(self, prepared: Vector, rows: Rows, weight: float) -> Vector:
        """A vector (dimension,) moved towards the mean of some papers' vectors, of length one (Rocchio, 1971)."""
        _, own = self.vectors.of(rows)
        if not len(own):
            return prepared
        return _normalised(prepared + weight * own.mean(axis=0))

    def encoder(self) -> Any:
        """The encoder of the topics, opened at the first call.

        Raises:
            ModelError: It cannot be loaded.
            IndexUnusableError: It did not make the vectors.
        """
        key = self.vectors.path, self.queries_by, getattr(self.settings, "backend", None)
        with self._index.opening:
            if key not in self._index.encoders:
                manifest, encoder = self.manifest, self.open_encoder()
                if encoder.dimension != manifest.dimension:
                    raise IndexUnusableError(
                        f"{manifest.model} makes vectors of dimension {encoder.dimension}, and those of the index have "
                        f"{manifest.dimension}",
                        f"Give the right one: {encode_command(self.vectors.path, '…')}",
                    )
                if manifest.identity not in (None, encoder.identity):
                    raise IndexUnusableError(
                        f"{manifest.model} is no longer the model that made the vectors of the index",
                        f"Make them again: {encode_command(self.vectors.path)}",
                    )
                self._index.encoders[key] = encoder
            return self._index.encoders[key]

    def open_encoder(self) -> Any:
        """Opens the encoder that the vectors are from; it has an `identity` and a `dimension`."""
        manifest, length = self.manifest, self.manifest.max_tokens
        if self.queries_by:
            return _static_encoder(self.queries_by, manifest)
        if self.settings.backend:
            return Encoder.open(manifest.model, backend=self.settings.backend, max_tokens=length)
        return Encoder.open_for_queries(manifest.model, manifest.backend, manifest.count, max_tokens=length)


def _normalised(vectors: Vector) -> Vector:
    """Vectors of length one: those of each row, or one alone; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normalised: Vector = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return normalised


QUERIES = "queries"
"""The part of an index that is a static encoder of its queries."""
_WORSE = 0.02
"""The share of titles that it may miss and their model finds. On data/acm dev, with .018, contexts lost nothing; with
.022 `hybrid+ltr` lost .001 of R@10, and .016 in the draft."""


def encoder_of_queries(index: Path, settings: Any, vectors: DenseManifest) -> str | None:
    """The static encoder of queries; None where the model of the vectors encodes them.

    It is that of the settings, or else that of the index, if this learnt the vectors that are there and finds the
    papers of titles as well as their model.

    Raises:
        ModelError: That of the settings learnt other vectors, or one of them is damaged.
    """
    named, own = getattr(settings, "queries", None), trained_of(index, QUERIES)
    if named or getattr(settings, "backend", None) or not own.is_dir():
        return named
    manifest = manifest_of_static(own, vectors)
    is_as_good = manifest and manifest.dev[BY_TITLES] >= manifest.dev.get(BY_MODEL, 0.0) - _WORSE
    return str(own) if is_as_good else None


def _static_encoder(name: str, vectors: DenseManifest) -> Encoder:
    """A static encoder of queries; ModelError if it cannot be loaded, or learnt other vectors than these."""
    if not manifest_of_static(Path(find_model(name)), vectors):
        raise ModelError(
            f"{name!r} is no static encoder that learnt the vectors of {vectors.model}",
            "Make one: citerec train static",
        )
    encoder = StaticEncoder(name)
    encoder.identity = vectors.identity or encoder.identity
    return encoder


def manifest_of_static(folder: Path, vectors: DenseManifest) -> StaticManifest | None:
    """The manifest of a static encoder, if it is one that learnt some vectors; ModelError if it is damaged."""
    manifest = read_model_manifest(folder, StaticManifest, "a static encoder", "Train it again: citerec train static")
    teacher = {"model": vectors.model, "identity": vectors.identity}
    return manifest if manifest and manifest.teacher == teacher else None


_YEARS = 64
_AGAIN = 120  # papers beyond those wanted that are scored again, the nearest of their vectors in half precision
_DIGITS = 6  # a sum in float32 differs in the seventh digit by where a row lies: equal profiles must score the same


class ProfileSettings(PartSettings):
    """The vectors of papers and of topics. The defaults were found on data/acl dev.

    Attributes:
        sentence: Weight of what a citing paper says, against 1 for the paper's own.
        citing_paper: Weight of the citing paper's own vector.
        citing: In the topic: weight of the paper that is written, against 1 for the sentence.
        neighbours: Whether the sentences before and after are used.
        depth: Score only this many papers found by vectors and as many found by words; by default all, which reads
            every vector for each topic.
    """

    sentence: Weight = 4.0
    citing_paper: Weight = 2.0
    citing: Weight = 0.5
    neighbours: bool = True
    depth: int | None = Field(default=None, ge=1)


class ProfileRetriever(Retriever):
    """Finds papers by their profiles. Safe to call from several threads; ties are ordered by paper id.

    The profile of a paper is its vector plus the mean, over the papers that cite it, of `sentence` times the vector of
    what they say and `citing_paper` times their own vector, divided by its length. Only those up to the year of the
    citing paper count, and the citing paper itself does not. A paper scores the cosine of its profile with the topic's
    vector.
    """

    name = "profile"
    label = "profiles"
    Settings = ProfileSettings
    filters_itself = True

    @classmethod
    def open(cls, index: OpenIndex, settings: ProfileSettings) -> Self:
        """Opens the vectors of papers and of citing sentences of an index."""
        if not (folder := index.folder / cls.name).is_dir():
            fault = f"{index.path} has no vectors of citing sentences"
            raise SettingsError(fault, f"Make them: {encode_command(folder)}")
        return cls(index, settings)

    @classmethod
    def encode(cls, index: Path, _options: Any, on_progress: Progress, parallelism: Parallelism = HERE) -> str:
        """Makes the vectors of what each citing paper says of each paper that it cites, with the encoder of the papers.

        Their rows are those of the pairs of `CitingPapers`. Texts that the same model has encoded before are not
        encoded again.

        Raises:
            IndexUnusableError: There is no index, or it has no vectors of its papers.
            SettingsError: The index has no citing sentences.
            ModelError: The encoder cannot be loaded.
        """
        from citerec.index.build import encode_index

        if not Manifest.read(index).counts.citances:
            remedy = "Build it with S2AG's citations, or with --citances FILE."
            raise SettingsError(f"{index} has no citing sentences", remedy)
        papers = DenseManifest.read(generation_of(index) / DENSE)
        options = DenseOptions(papers.model, max_tokens=papers.max_tokens, backend=papers.backend)
        ids = "citing/names.npy"
        vectors = encode_index(
            index, options, on_progress, name=cls.name, texts=_pairs, ids=ids, parallelism=parallelism
        )
        return f"{vectors.count:,} pairs of a cited and a citing paper have a vector ({vectors.model})."

    @classmethod
    def provenance_at(cls, index: Path, _settings: ProfileSettings) -> Provenance:
        """What the encoder learnt from."""
        return DenseRetriever.provenance_at(index, DenseSettings())

    def __init__(self, index: OpenIndex, settings: ProfileSettings) -> None:
        self.settings = settings
        dense = DenseSettings(neighbours=settings.neighbours, citing=settings.citing, cited=0)
        self._dense = DenseRetriever.open(index, dense)
        self.queries_by = self._dense.queries_by
        self._words = WordsRetriever.open(index, WordSettings())
        said, citing = Vectors(index.folder / self.name), index.rows.citing
        if said.manifest.store != index.manifest.fingerprint or citing is None:
            raise IndexUnusableError(
                f"the vectors of citing sentences of {index.path} were made for other papers",
                f"Make them: {encode_command(said.path)}",
            )
        self._papers, self._said, self._citing = self._dense.vectors, said, citing
        self._has_citing = (citing.rows >= 0) & self._papers.has_vector[citing.rows]
        self._counts_in = functools.lru_cache(_YEARS)(self._counts_until)

    def close(self) -> None:
        """Releases the model and the files."""
        self._dense.close()

    def prepare(self, topics: Sequence[Topic]) -> Vector:  # type: ignore[override]
        """The vectors of some topics, (topics, dimension); errors as for `DenseRetriever.prepare`."""
        return self._dense.prepare(topics)

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Vector | None = None) -> Candidates:
        """The k papers with the nearest profiles; arguments and errors as for `DenseRetriever.search`."""
        check_asked(topic, k)
        vector = self.prepare([topic])[0] if prepared is None else prepared
        if self.settings.depth is None:
            rows = self._nearest(vector, k, filters)
        else:
            lists = [one.search(topic, self.settings.depth, filters) for one in (self._dense, self._words)]
            rows = np.unique(np.concatenate([one.rows for one in lists]))
            rows = rows[self._papers.has_vector[rows]]
        return self._candidates(vector, rows, filters).in_order()[:k]

    def with_feedback(self, prepared: Vector, rows: Rows, weight: float) -> Vector:
        """As `DenseRetriever.with_feedback`."""
        return self._dense.with_feedback(prepared, rows, weight)

    def _nearest(self, vector: Vector, k: int, filters: Filters) -> Rows:
        """The rows of at least the k papers that score most of those that pass the filters. Every profile is scored."""
        own, said = self._papers.products(vector), self._said.products(vector)
        sums = np.concatenate([[0.0], np.cumsum(self._values(said, own[self._citing.rows]))])
        counts, begins = self._counts_in(filters.as_of_year), self._citing.begins[:-1]
        cited = np.flatnonzero(counts)
        ends = begins[cited] + counts[cited]
        scores = own.copy()
        totals = (sums[ends] - sums[begins[cited]]) / counts[cited]
        scores[cited] = (own[cited] + totals) / self._lengths[ends - 1]
        scores[~(self._dense.papers.passing(filters) & self._papers.has_vector)] = -np.inf
        wanted = min(k + _AGAIN, int(np.count_nonzero(scores > -np.inf)))
        return places_of_best(scores, wanted) if wanted else np.empty(0, np.int64)

    def _candidates(self, vector: Vector, rows: Rows, filters: Filters) -> Candidates:
        """Some papers with their scores, from `Vectors.scores` of them and their sentences, in the order of the rows.

        Each has the pair whose sentences add most to its score, and how much they add.
        """
        owners, pairs = self._citing.pairs_of(rows, filters)
        numbers = np.bincount(owners, minlength=len(rows))
        said = np.nan_to_num(self._said.scores(vector, pairs))
        citing = np.nan_to_num(self._papers.scores(vector, self._citing.rows[pairs].astype(np.int64)))
        sums = np.bincount(owners, self._values(said, citing, pairs), len(rows))
        lengths = np.ones(len(rows))
        last = np.cumsum(numbers) - 1
        has = np.flatnonzero(numbers)
        lengths[has] = self._lengths[pairs[last[has]]]
        if filters.citing_ids:
            every_owner, every_pair = self._citing.pairs_of(rows, NO_FILTERS)
            is_left_out = ~self._citing.mask(Filters(citing_ids=filters.citing_ids), every_pair)
            for at in np.intersect1d(every_owner[is_left_out], has).tolist():
                lengths[at] = self._length(int(rows[at]), pairs[owners == at])
        scores = ((self._papers.scores(vector, rows) + sums / np.maximum(numbers, 1)) / lengths).round(_DIGITS)
        best, shares = np.full(len(rows), -1, np.int64), np.zeros(len(rows))
        order = np.lexsort((pairs, -said, owners))
        firsts = order[last[has] - numbers[has] + 1]
        best[has] = pairs[firsts]
        shares[has] = self.settings.sentence * said[firsts] / numbers[has] / lengths[has]
        supported = np.where(shares > 0, np.arange(len(rows)), -1)

        def most(at: int) -> CitanceKey:
            return CitanceKey(self._citing.names[best[at]].decode(), 0, float(shares[at]))

        return Candidates(self._dense.papers, rows, scores, {self.name: scores}, (Citances(supported, most),))

    def _values(self, said: NDArray[Any], citing: NDArray[Any], pairs: NDArray[Any] | slice = slice(None)) -> Any:
        """What some pairs add to a score, given the products of the topic with what is said, and with who says it."""
        return self.settings.sentence * said + self.settings.citing_paper * np.where(self._has_citing[pairs], citing, 0)

    def _counts_until(self, year: int | None) -> NDArray[np.int64]:
        """How many papers cite each paper up to a year, (papers,)."""
        sums = begins_of(self._citing.mask(Filters(as_of_year=year)))
        return sums[self._citing.begins[1:]] - sums[self._citing.begins[:-1]]

    @functools.cached_property
    def _lengths(self) -> NDArray[np.float32]:
        """For each pair the length of the cited paper's profile of its pairs up to this one, (pairs,)."""
        lengths = np.ones(len(self._citing.years), np.float32)
        for row in np.flatnonzero(np.diff(self._citing.begins)).tolist():
            pairs = np.arange(self._citing.begins[row], self._citing.begins[row + 1])
            sums = np.cumsum(self._vectors(pairs), axis=0) / np.arange(1, len(pairs) + 1)[:, None]
            lengths[pairs] = np.linalg.norm(self._papers.values[row].astype(np.float64) + sums, axis=1)
        return np.maximum(lengths, np.float32(1e-9))

    def _length(self, row: int, pairs: NDArray[np.int64]) -> float:
        """The length of the profile of a paper that some pairs make."""
        profile = self._papers.values[row].astype(np.float64) + self._vectors(pairs).mean(axis=0)
        return float(np.linalg.norm(profile)) or 1.0

    def _vectors(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """What some pairs add to a profile, (pairs, dimension)."""
        vectors: NDArray[np.float64] = self.settings.sentence * self._said.values[pairs].astype(np.float64)
        has_citing = self._has_citing[pairs]
        citing = self._citing.rows[pairs[has_citing]]
        vectors[has_citing] += self.settings.citing_paper * self._papers.values[citing].astype(np.float64)
        return vectors


def _pairs(store: PaperStore) -> Iterator[Paper]:
    """The texts of all pairs, in the order of their rows: what one paper says of another is one text."""
    for about in sentences_of(store):
        for citing_id, said in itertools.groupby(about, lambda one: one.citing_id):
            text = " ".join(clean(one.text) for one in said)
            yield Paper(citing_id, text)
