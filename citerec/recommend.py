"""The pipeline, from a sentence to ranked papers; and an index from Python, `citerec.Index`, which opens it."""

import functools
import inspect
import itertools
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import orjson

from citerec.confidence import CHANCE, DEPTH, Calibration, chances, evidence_of, open_calibration
from citerec.contexts.provenance import Provenance
from citerec.contexts.read import contexts_of_text
from citerec.contexts.topic import LeakRules, Topic, contexts_of_draft, topics_of
from citerec.corpus.matching import depth_to_fold, folded
from citerec.errors import CiterecError, IndexUnusableError, InputError, QueryError, SettingsError
from citerec.files.addresses import path_of
from citerec.files.parallel import HERE, Parallelism, in_parts
from citerec.files.progress import Progress, no_progress, stage
from citerec.files.resume import digest_of, file_digest, read_json
from citerec.index.describe import verify
from citerec.index.manifest import Manifest, generation_of, open_store, opened
from citerec.index.vectors import DenseOptions
from citerec.models.loading import MANIFEST
from citerec.records import MARKER, NO_FILTERS, Answer, Citance, Confidence, Context, Filters, Hit, Paper
from citerec.rerank.base import Reranker, citance_text, citance_texts
from citerec.retrieve.base import RETRIEVERS, Candidate, Candidates, Floats, OpenIndex, Retriever
from citerec.retrieve.fusion import FusedRetriever, Fusion
from citerec.retrieve.run import Run, SearchOptions
from citerec.retrieve.words import WordsRetriever
from citerec.settings import live_folder
from citerec.systems import Recipe, default_system, open_index, provenance_of_system, reranker_of

if TYPE_CHECKING:
    from citerec.index.build import BuildOptions

_PART = 1000


@contextmanager
def _naming_damage(index: Path) -> Iterator[None]:
    """In place of an error that nobody can use, one that names what is damaged of an index, if anything is."""
    try:
        yield
    except CiterecError:
        raise
    except Exception as error:
        faults: list[str] = []
        with suppress(CiterecError):  # such as that of what is no index
            faults = verify(index)
        if not faults:
            raise
        raise IndexUnusableError(faults[0], f"Build it again: citerec index build … --out {index}") from error


Papers = str | Path | Iterable[str | Path] | Iterable[Paper]
"""Files and folders of papers (docs/formats.md), or papers."""


def code_digests(codes: Iterable[Any]) -> dict[str, str]:
    """Digests of the files of plug-ins' classes and functions, by module; not of those made in a notebook."""
    digests = {}
    for code in codes:
        module = str(getattr(code, "__module__", ""))
        if not module.startswith("citerec."):
            with suppress(OSError, TypeError):
                path = Path(inspect.getfile(getattr(code, "func", code)))
                digests[path.stem if module == "__main__" else module] = file_digest(path)
    return digests


class Recommender:
    """Recommends papers to cite. Safe to call from several threads.

    Args:
        index: The index to search.
        retrievers: The retrievers by name; the lists of several are fused.
        rerankers: Rerank the candidates, one after the other.
        recipe: The weights of the lists, and how they are fused.

    Attributes:
        recipe: As given.
        retrievers: The retrievers.
        path: The index directory.
        index: The open index.
        store: The records of its papers.
        calibration: What makes its confidence; None if the system is not calibrated for the index as it is now.
        manifest: The manifest of the index.
    """

    def __init__(
        self,
        index: OpenIndex,
        retrievers: Mapping[str, Retriever],
        rerankers: Sequence[Reranker] = (),
        recipe: Recipe | None = None,
    ) -> None:
        self.recipe = recipe or Recipe(retrievers=dict.fromkeys(retrievers, 1.0))
        self.path, self.store, self.manifest = index.path, index.store, index.manifest
        self.index = index
        self.retrievers = tuple(retrievers.values())
        self._retriever = FusedRetriever(index, retrievers, self.recipe.retrievers, self.recipe.fusion)
        self._rerankers = tuple(rerankers)
        self.calibration: Calibration | None = None
        self._is_of_recipe = False

    @classmethod
    def open(cls, index: str | Path | None = None, system: str | Path | Recipe | None = None) -> Self:
        """Opens a system on an index directory; one that asks web services only needs none.

        Args:
            index: The directory.
            system: Name of a system, a TOML file, or a recipe; by default the best system that the index supports.

        Raises:
            IndexUnusableError: There is no index, or it is half built, broken, or of another version.
            SettingsError: There is no such system, or it needs something that the index lacks.
            JavaError: There is no Java runtime that can run Lucene.
        """
        path = live_folder() if index is None else Path(index)

        def recipe() -> Recipe:
            return (system if isinstance(system, Recipe) else Recipe.load(system or default_system(path))).whole()

        return cls._open(path, recipe)

    @classmethod
    def from_parts(
        cls,
        index: str | Path,
        retrievers: Sequence[Retriever | type[Retriever]] = (WordsRetriever,),
        rerankers: Sequence[Reranker] = (),
        *,
        weights: Mapping[str, float] | None = None,
        fusion: Fusion | None = None,
    ) -> Self:
        """Opens a system made of the given parts on an index directory.

        Args:
            index: The directory.
            retrievers: Retrievers, or their classes, which are opened with default settings.
            rerankers: Rerank the candidates, in this order.
            weights: The weight of each retriever's list, by name; 1 by default.
            fusion: How several lists become one.

        Raises:
            SettingsError: There is no retriever, two have the same name, or a weight names none of them.
            IndexUnusableError: There is no index, or it is half built, broken, or of another version.
            JavaError: There is no Java runtime that can run Lucene.
        """
        names = [part.name for part in retrievers]
        if not names or len(set(names)) < len(names):
            raise SettingsError(
                f"the retrievers are {', '.join(names) or 'none'}", "Give at least one; each name once."
            )
        if unknown := set(weights or {}) - set(names):
            raise SettingsError(f"there is a weight for {min(unknown)!r}", f"The retrievers are: {', '.join(names)}.")
        recipe = Recipe(
            retrievers=dict.fromkeys(names, 1.0) | dict(weights or {}),
            rerankers=tuple(part.name for part in rerankers),
            fusion=fusion or Fusion(),
            parts={part.name: part.Settings() for part in retrievers if isinstance(part, type)},
        )
        return cls._open(Path(index), lambda: recipe, retrievers, rerankers)

    @classmethod
    def _open(
        cls,
        path: Path,
        recipe_of: Callable[[], Recipe],
        retrievers: Sequence[Retriever | type[Retriever]] | None = None,
        rerankers: Sequence[Reranker] | None = None,
    ) -> Self:
        """Opens an index, and the retrievers given as classes; the parts of the recipe where none are given."""

        def open_all() -> tuple[Self, ExitStack]:
            recipe = recipe_of()
            with ExitStack() as failed:
                index = failed.enter_context(closing(open_index(path, recipe)))
                parts: dict[str, Retriever] = {}
                for part in retrievers or [RETRIEVERS[name] for name in recipe.retrievers]:
                    if isinstance(part, type):
                        part = failed.enter_context(closing(part.open(index, recipe.settings_of(part))))
                    parts[part.name] = part
                if rerankers is not None:
                    return cls(index, parts, rerankers, recipe), failed.pop_all()
                named = map(reranker_of, recipe.rerankers)
                rankers = [one.open(path, folder, recipe.settings_of(one)) for one, folder in named]
                system = cls(index, parts, rankers, recipe)
                # Parts of a user's own are not told apart by the recipe: what is said of it is not said of them.
                system._is_of_recipe = True
                system.calibration = open_calibration(path, recipe, system.made_for, system.digests.get("ltr"))
                return system, failed.pop_all()

        with _naming_damage(path):
            return opened(path, open_all, lambda pair: pair[1].close())[0]

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Digests of what its scores depend on beside papers and recipe, by name.

        They are of the manifests of vectors and trained parts, of their encoders, and of the files of plug-ins.
        """
        folders = {name: generation_of(self.path) / name for name in self.recipe.retrievers}
        folders |= {part.name: part.folder for part in self._rerankers if part.folder}
        folders |= {f"{part.name} queries": Path(part.queries_by) for part in self.retrievers if part.queries_by}
        files = {name: folder / MANIFEST for name, folder in folders.items()}
        encoders = {f"{name} encoder": (read_json(path) or {}).get("identity") for name, path in files.items()}
        digests = {name: file_digest(path) for name, path in files.items() if path.is_file()}
        digests |= code_digests(map(type, (*self.retrievers, *self._rerankers)))
        return digests | {name: str(identity) for name, identity in encoders.items() if identity}

    @property
    def made_for(self) -> str:
        """A digest of all that its scores depend on: recipe, papers, vectors, trained parts."""
        return digest_of([self.manifest.fingerprint, self.recipe.whole().to_json(), self.digests])

    @property
    def provenance(self) -> Provenance:
        """What its trained parts learnt from or were tuned on."""
        rerankers = [(type(part), part.folder) for part in self._rerankers]
        return provenance_of_system(self.path, self.recipe, map(type, self.retrievers), rerankers)

    def with_retrievers(self, change: Callable[[Retriever], Retriever]) -> "Recommender":
        """The same system on the same open index, with each retriever changed; this one must be closed, not that."""
        changed = {retriever.name: change(retriever) for retriever in self.retrievers}
        return Recommender(self.index, changed, self._rerankers, self.recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is how another process opens the same system; TypeError if it has parts of a user's own."""
        if not self._is_of_recipe:
            raise TypeError("a recommender with parts of your own cannot be sent to another process")
        return _opened_here, (self.path.absolute(), self.recipe, self.manifest.fingerprint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        parts = "+".join([*self.recipe.retrievers, *self.recipe.rerankers])
        return f"<Recommender {parts} on {self.path}, {self.manifest.counts.papers:,} papers>"

    def close(self) -> None:
        """Closes the index's files."""
        for retriever in self.retrievers:
            retriever.close()
        self.index.close()

    def search(
        self,
        text: str | Context,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        sort: str = "relevance",
        explain: bool = False,
        fold: bool = False,
    ) -> Answer:
        """The k best papers to cite at `<REF>`.

        Args:
            text: A text with at most one `<REF>`, or a context. Without `<REF>`, the whole text is the query.
            k: How many papers, from 1 to the size of the index; 10 by default.
            filters: Which papers may be recommended.
            sort: One of `citerec.retrieve.words.SORTS`.
            explain: Whether to report which words matched, and in which fields.
            fold: Whether editions of one paper become one hit, the published one; the others are its `also`.

        Returns:
            Hits, best first; fewer than k if fewer papers share a word with the text and pass the filters.

        Raises:
            QueryError: The text holds no word to search for, too many words, or several `<REF>`.
            FilterError: k or a filter is out of range, or names a field that the index lacks.
        """
        if isinstance(text, str):
            contexts = contexts_of_text(text)
            if len(contexts) > 1:
                raise QueryError(f"the text holds {len(contexts)} {MARKER}", "Call search_text, which answers each.")
            text = contexts[0]
        k = self.index.number_of_hits(k)
        self.index.check_filters(filters)
        with _naming_damage(self.path):
            with stage("topic"):
                (topic,) = topics_of([text], self.store)
            fair = LeakRules().restrict(topic, filters)
            depth = min(depth_to_fold(k), self.index.most_hits) if fold else k
            if sort == "relevance":
                candidates = self._best(topic, depth, fair, explain=explain)
            else:
                words = WordsRetriever.open(self.index, self.recipe.settings_of(WordsRetriever))
                candidates = words.search(topic, depth, fair, sort=sort)
            with stage("records"):
                return self.answer(topic, candidates, explain=explain, fold_to=k if fold else None)

    def search_text(
        self,
        text: str,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        citing_id: str | None = None,
        citing_title: str | None = None,
        cited: Mapping[str, str] | None = None,
        sort: str = "relevance",
        explain: bool = False,
        fold: bool = False,
    ) -> list[Answer]:
        """An answer for each `<REF>` of a running text, in order; other arguments and errors as for `search`.

        If the paper that you write is in the index, give its id as `citing_id`: it is never recommended. Otherwise give
        `citing_title`: systems with vectors search by the title too. Give what it cites already as `cited`: ids of
        papers by citation key. What the text itself cites is found as `contexts_of_draft` says.
        """
        contexts = contexts_of_draft(text, self.store, cited, citing_id=citing_id, citing_title=citing_title)
        return [self.search(context, k, filters, sort=sort, explain=explain, fold=fold) for context in contexts]

    def search_many(
        self,
        contexts: Iterable[Context],
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        options: SearchOptions | None = None,
    ) -> Run:
        """Ids and scores of the k best papers for each of many contexts, under the leak rules.

        A context without a word to search for has no hits. `candidates` describes the arguments, and returns
        the same as a stream. Each context needs a unique `context_id`.

        Raises:
            InputError: Two contexts have the same id.
            FilterError: k or a filter is out of range, or names a field that the index lacks.
        """
        pairs = self.candidates(self.topics(contexts), k, filters, options)
        answers = ((topic.context.context_id, candidates.pairs()) for topic, candidates in pairs)
        return Run(answers, "+".join([*self.recipe.retrievers, *self.recipe.rerankers]))

    def topics(self, contexts: Iterable[Context], *, neighbours: bool = True) -> Iterator[Topic]:
        """The topics of contexts, in order, made as they are needed; `neighbours` as for `topic_of`."""
        for part in in_parts(contexts, _PART):
            yield from topics_of(part, self.store, neighbours=neighbours)

    def candidates(
        self,
        topics: Iterable[Topic],
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        options: SearchOptions | None = None,
    ) -> Iterator[tuple[Topic, Candidates]]:
        """Candidates for many topics, in order; ids and scores only.

        A topic without a word to search for has no candidates.

        Args:
            topics: The topics, made from contexts by `topics`; read as they are needed.
            k: How many candidates each, from 1 to the size of the index; 10 by default.
            filters: Which papers may be recommended.
            options: The leak rules, and so on.

        Raises:
            FilterError: k or a filter is out of range, or names a field that the index lacks.
        """
        options = options or SearchOptions()
        k = self.index.number_of_hits(k)
        self.index.check_filters(filters)
        # Part by part: a thread pool would read all topics at once.
        for part in in_parts(topics, _PART):
            begun = time.perf_counter()
            prepared = self._retriever.prepare(part)
            share = (time.perf_counter() - begun) / len(part)
            for topic, inputs in zip(part, prepared, strict=True):
                begun = time.perf_counter()
                try:
                    fair = options.rules.restrict(topic, filters)
                    with _naming_damage(self.path):
                        candidates = self._best(topic, k, fair, inputs, explain=options.explain)
                except QueryError:
                    candidates = self._with_confidence(topic, Candidates.of(self.index.rows, ()))
                if options.latencies is not None:
                    options.latencies.append(share + time.perf_counter() - begun)
                yield topic, candidates

    def answer(
        self, topic: Topic, candidates: Candidates, *, explain: bool = False, fold_to: int | None = None
    ) -> Answer:
        """The answer for a topic: its candidates with full records; `fold_to` so many hits, editions folded."""
        ids = candidates.paper_ids()
        by_id = self.store.papers(ids, texts=False) if fold_to else {}
        records = [by_id.get(paper_id) or Paper(paper_id) for paper_id in ids]
        groups = folded(records, fold_to) if fold_to else [[place] for place in range(len(ids))]
        papers = self.store.papers([ids[place] for group in groups for place in group])
        shown = list(candidates.taken(np.array([group[0] for group in groups], np.int64)))
        best = candidates.taken(np.array([min(group) for group in groups], np.int64))
        matches = self._retriever.explain(topic, shown, papers) if explain else [()] * len(shown)
        confidence = candidates.confidence
        verdicts = [confidence.verdict(one) for one in best.signal(CHANCE)] if confidence else [None] * len(shown)
        hits = (
            Hit(
                rank=rank,
                score=score,
                paper=papers.get(candidate.paper_id) or Paper(candidate.paper_id),
                citance=self._citance(candidate),
                matches=words,
                reasons=candidate.reasons,
                also=tuple(papers[ids[place]] for place in group[1:]),
                cited_before=(topic.cited_before or ()).count(candidate.paper_id),
                verdict=verdict,
            )
            for rank, (group, candidate, words, score, verdict) in enumerate(
                zip(groups, shown, matches, best.scores.tolist(), verdicts, strict=True), 1
            )
        )
        return Answer(topic.context, tuple(hits), confidence)

    def titles(self, hits: Iterable[Hit]) -> dict[str, str]:
        """Titles, by id, of the papers whose citing sentences support some hits."""
        citing = {hit.citance.citing_id for hit in hits if hit.citance}
        return {paper_id: paper.title for paper_id, paper in self.store.papers(citing).items()}

    def counts(self) -> dict[str, Counter[str]]:
        """What each retriever counted in the searches since the last call, such as suggestions that named no paper."""
        return {retriever.name: retriever.counts() for retriever in self.retrievers}

    def remarks(self, counts: Mapping[str, Mapping[str, int]] | None = None) -> tuple[str, ...]:
        """What users should know of some counts, by default those of the searches since the last call."""
        counts = self.counts() if counts is None else counts
        return tuple(filter(None, (retriever.remark(counts[retriever.name]) for retriever in self.retrievers)))

    def evidence(self, topic: Topic, candidates: Candidates) -> Floats:
        """What tells how sure it is of its answer, (len(EVIDENCE),); arguments as for `confidence.evidence_of`."""
        words = next((one for one in self.retrievers if isinstance(one, WordsRetriever)), None)
        vectors = next((one.vectors for one in self.retrievers if hasattr(one, "vectors")), None)
        return evidence_of(topic, candidates, words, vectors)

    def _with_confidence(self, topic: Topic, candidates: Candidates) -> Candidates:
        """Candidates with the confidence in them, if the system is calibrated; 0 if there are none."""
        if self.calibration is None:
            return candidates
        if not candidates:
            return replace(candidates, confidence=Confidence(0.0, 0.0, 0.0, 0.0))
        confidence = self.calibration.of(self.evidence(topic, candidates))
        signals = {**candidates.signals, CHANCE: chances(candidates.scores, confidence)}
        return replace(candidates, confidence=confidence, signals=signals)

    def _best(
        self, topic: Topic, k: int, filters: Filters, prepared: Any = None, *, explain: bool = False
    ) -> Candidates:
        """The k best candidates, with the confidence in them."""
        # Neither the candidates that are reranked nor the confidence may depend on k.
        depth = max([k, DEPTH if self.calibration else 0, *(reranker.depth for reranker in self._rerankers)])
        candidates = self._retriever.search(topic, depth, filters, prepared, explain=explain)
        for reranker in self._rerankers:
            head = candidates[: reranker.depth]
            papers: Mapping[str, Paper] = {}
            if reranker.reads != "nothing":
                papers = self.store.papers(head.paper_ids(), texts=reranker.reads == "texts")
            citances = citance_texts(self.store, head) if reranker.reads_citances else {}
            with stage("ranking"):
                candidates = reranker.rerank(topic, candidates, papers, citances, explain=k if explain else 0)
        with stage("verdict"):
            return self._with_confidence(topic, candidates)[:k]

    def _citance(self, candidate: Candidate) -> Citance | None:
        if candidate.citance is None:
            return None
        citing_id, _, score = candidate.citance
        return Citance(citing_id, citance_text(self.store, candidate.paper_id, candidate.citance), score)


_sent: list[tuple[tuple[Path, Recipe, str], Recommender]] = []
"""The system that another process sent here last, so that it is opened once for all tasks."""


def _opened_here(path: Path, recipe: Recipe, fingerprint: str) -> Recommender:
    """A system of another process, opened here.

    Raises:
        IndexUnusableError: The index at this path has other papers than there.
    """
    named = path, recipe, fingerprint
    if not (_sent and _sent[0][0] == named):
        while _sent:
            _sent.pop()[1].close()
        opened_now = Recommender.open(path, recipe)
        if opened_now.manifest.fingerprint != fingerprint:
            opened_now.close()
            raise IndexUnusableError(
                f"{path} on {platform.node()} has other papers than where the work was begun",
                "Copy the index to all machines, and run the same command again.",
            )
        _sent.append((named, opened_now))
    return _sent[0][1]


class Index:
    """An index of papers: a directory with a paper store, its words and, once encoded, vectors.

    Create one with `Index.build`, or open an existing one with `Index.open`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest = Manifest.read(self.path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Opens the index in a directory; errors as for `Manifest.read`: there is none, or it cannot be used."""
        return cls(path)

    @classmethod
    def build(cls, papers: Papers, out: str | Path, *, on_progress: Progress = no_progress, **options: Any) -> Self:
        """Builds an index, in place of one that is already at `out`. An interrupted build from files is resumed.

        Args:
            papers: Files and folders (docs/formats.md), or papers in memory.
            out: The index directory.
            on_progress: Called as the work goes on.
            options: Attributes of `citerec.index.build.BuildOptions`, such as `citances=[FILE]`: files of contexts
                whose sentences help to find the papers that they cite. With `dense=None` papers get no vectors; by
                default all-MiniLM-L6-v2 makes them where it is installed, up to 20,000, else an encoder that comes
                with citerec.

        Raises:
            SourceError: A source is missing, broken, empty, or of no known format.
            BuildError: Too many records are bad, or the disk is full, or another build is running.
        """
        from citerec.index.build import build_index

        with _as_files(papers) as sources:
            how = _build_options(**{"dense": DenseOptions(), **options})
            build_index(sources, Path(out), how, on_progress)
        return cls(out)

    def add(self, papers: Papers, *, on_progress: Progress = no_progress, **options: Any) -> None:
        """Adds papers, or replaces older records by newer ones; arguments and errors as for `build`.

        Of the folder of a corpus that the index was built from, only what is new is read.
        """
        from citerec.index.build import add_to_index

        with _as_files(papers) as sources:
            self.manifest = add_to_index(sources, self.path, _build_options(**options), on_progress)

    def remove(self, ids: Path | Iterable[str | int], *, on_progress: Progress = no_progress) -> None:
        """Removes papers with their abstracts and TLDRs; sentences about them are no longer found.

        What they say of other papers stays. A later record of such a paper brings it back.

        Args:
            ids: Ids of papers, or the path of a file with one in each line; unknown ones are ignored.
            on_progress: Called as the work goes on.

        Raises:
            InputError: `ids` is a text: its letters would be the ids.
            SourceError: No paper would be left.
            BuildError: The disk is full, or another build is running.
        """
        from citerec.index.build import remove_papers

        if isinstance(ids, str):
            raise InputError(f"remove cannot take the text {ids!r:.80}", f"Give [{ids!r:.80}], or Path({ids!r:.80}).")
        named = nullcontext(ids) if isinstance(ids, Path) else _temporary(f"{one}\n".encode() for one in ids)
        with named as file:
            self.manifest = remove_papers(file, self.path, on_progress)

    def encode(
        self, model: str = "", *, parallelism: Parallelism = HERE, on_progress: Progress = no_progress, **options: Any
    ) -> None:
        """Makes a vector of each paper, so that it is found by meaning too.

        An interrupted run is resumed.

        Args:
            model: The encoder of the papers, and later of the queries: a folder, or a name; by default that of `build`.
            parallelism: Ray, or a number of processes (docs/scale.md).
            on_progress: Called as the work goes on.
            options: Further attributes of `citerec.index.vectors.DenseOptions`, such as `backend="onnx-int8"`.

        Raises:
            ModelError: The model cannot be found or loaded.
            InputError: There is no such option.
            BuildError: The disk is full, or another build is running.
        """
        from citerec.index.build import encode_index

        names = DenseOptions.__dataclass_fields__.keys() - {"model"}
        if unknown := sorted(options.keys() - names):
            raise InputError(f"encode has no option {unknown[0]!r}", f"Options are: {', '.join(sorted(names))}.")
        encode_index(self.path, DenseOptions(model, **options), on_progress, parallelism=parallelism)

    def recommender(self, system: str | Path | Recipe | None = None) -> Recommender:
        """Opens a system on this index; see `Recommender.open`."""
        return Recommender.open(self.path, system)

    def papers(self, paper_ids: Iterable[str | int]) -> dict[str, Paper]:
        """Records by id; unknown ids are left out."""
        with closing(open_store(self.path)) as store:
            return store.papers(map(str, paper_ids))

    @property
    def default_system(self) -> str:
        """The system used by default: the best that the index supports."""
        return default_system(self.path)

    def __getitem__(self, paper_id: str | int) -> Paper:
        """The record of an id; KeyError if the index has none."""
        return self.papers([paper_id])[str(paper_id)]

    def __iter__(self) -> Iterator[Paper]:
        """All records, in order of id, read as they are needed."""
        with closing(open_store(self.path)) as store:
            yield from store.all_papers()

    def __contains__(self, paper_id: str | int) -> bool:
        return bool(self.papers([paper_id]))

    def __len__(self) -> int:
        return self.manifest.counts.papers

    def __repr__(self) -> str:
        return f"<Index {self.path}: {len(self):,} papers, {self.default_system}>"


def _build_options(citances: Sequence[str | Path] = (), **others: Any) -> "BuildOptions":
    from citerec.index.build import BuildOptions

    return BuildOptions(citances=tuple(map(path_of, citances)), **others)


@contextmanager
def _as_files(papers: Papers) -> Iterator[list[Path]]:
    """The given files, or a temporary file with the given papers."""
    items = iter([papers] if isinstance(papers, str | Path) else papers)
    first = next(items, None)
    if first is None:
        raise InputError("there are no papers", "Give files, folders, or papers.")
    items = itertools.chain([first], items)
    if not isinstance(first, Paper):
        yield [path_of(str(path)) for path in items]
        return
    with _temporary(orjson.dumps(paper, option=orjson.OPT_APPEND_NEWLINE) for paper in items) as path:
        yield [path]


@contextmanager
def _temporary(lines: Iterable[bytes]) -> Iterator[Path]:
    """A temporary file of JSON Lines, or of ids."""
    with tempfile.TemporaryDirectory(prefix="citerec-") as folder:
        path = Path(folder) / "given.jsonl"
        with path.open("wb") as file:
            file.writelines(lines)
        yield path
