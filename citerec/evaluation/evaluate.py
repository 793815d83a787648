"""`citerec.evaluate`: systems against a diagnostic set, under the same rules."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from citerec.diagnostics.sets import DEFAULT_SET, DiagnosticSet
from citerec.errors import InputError
from citerec.evaluation.compare import Grouping, compare, group_scores
from citerec.evaluation.figures import Scores, SystemResult, members_of, robustness
from citerec.evaluation.files import ranked_columns
from citerec.evaluation.items import Items
from citerec.evaluation.material import Material, Source, contexts_of_qrels, load_material, read_source
from citerec.evaluation.metrics import DEFAULT_METRICS, Metric, measure, parse_metrics
from citerec.evaluation.overlap import Overlap, find_overlap
from citerec.evaluation.rank import NOT_FOUND, OUTCOMES, Ranking, Rules, outcomes, rank
from citerec.evaluation.reliability import Reliability, fitted_on, reliabilities
from citerec.evaluation.results import Results
from citerec.evaluation.run import Years
from citerec.evaluation.statistics import RESAMPLES, Floats
from citerec.evaluation.systems import Answered, Conditions, System, answer, check, learnt_by, named, replaced
from citerec.evaluation.topics import Topics, select_topics
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress, progress_bar
from citerec.index.describe import size_of
from citerec.index.manifest import Manifest, find_index, manifest_and_store
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.systems import default_system

DEFAULT_K = 100
MISSING = ("zero", "skip")


def evaluate(
    systems: System | Mapping[str, System] | Sequence[System] | None = None,
    contexts: str | Path | DiagnosticSet | Iterable[Context] | Any = "demo",
    *,
    index: Any = None,
    families: str | Sequence[str] = (),
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    k: int | None = None,
    exclude_citing: bool = True,
    as_of_year: bool = True,
    missing: str = "zero",
    include_training_contexts: bool = False,
    conditions: bool = True,
    spacy_model: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    parallelism: Parallelism = HERE,
    on_progress: Progress | None = None,
) -> Results:
    """Measures systems, class by class, under the same rules.

    Args:
        systems: A system by name or recipe file, a run file, a `Recommender`, a function of a context and k that gives
            pairs of paper id and score, or a run in memory (a `citerec.Run`, one of ranx, a DataFrame, or
            {context id: {paper id: score}}); or several of those, in a list or by name. By default the system that
            `citerec recommend` uses for the index.
        contexts: The id of a diagnostic set ("demo"), of a family of it ("demo/location"), a family of the demo set
            ("location"), a file of contexts, a `DiagnosticSet`, or contexts. For runs also qrels: of ranx, a DataFrame,
            or {context id: {paper id: relevance}}.
        index: The index that is the pool, a directory or an `Index`; by default the one that a set was made for, or
            the only one.
        families: Only these families; the overall figures are over all contexts, whether they have a class or not.
        metrics: Names in ranx's grammar, or one string with commas; charts show the first one first.
        k: How many hits of each context count; None for 100, or all papers where there are fewer.
        exclude_citing: Whether the citing paper is left out.
        as_of_year: Whether what is newer than the citing paper is left out.
        missing: How contexts count if none of their cited papers is in the index: as "zero", or "skip".
        include_training_contexts: Whether to count contexts that a system learnt from or was tuned on, by sentence or
            by citing paper; by default they are left out for all systems.
        conditions: Whether a context is in a class only if the family's conditions hold; not for diagnostic sets.
        spacy_model: Tags parts of speech in contexts that are not labelled yet; not for diagnostic sets.
        seed: Seed of all random numbers.
        resamples: Number of bootstrap samples.
        parallelism: Ray, or a number of processes that answer contexts at once, for systems that are named. They
            search the same memory-mapped index. Other systems answer in this process.
        on_progress: Called as the work goes on; by default a bar on standard error, where that is a terminal or a
            notebook.

    Raises:
        InputError: An argument cannot be used; the message says which, and why.
        SystemFailedError: A function raised an error.
    """
    if missing not in MISSING:
        raise InputError(f"missing contexts cannot count as {missing!r}", f"Choose: {', '.join(MISSING)}.")
    for name, value, least in (("resamples", resamples, 100), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"{name} is {value}", f"Give a number from {least}.")
    given = {} if systems is None else named(systems)
    if not isinstance(contexts, str | Path | DiagnosticSet):
        qrels = contexts_of_qrels(contexts)
        if qrels is not None:
            _check_needs_no_text(given)
        contexts = list(contexts) if qrels is None else qrels
    source = read_source(contexts, (families,) if isinstance(families, str) else families)
    if source.labelled and (not conditions or spacy_model):
        raise InputError(
            "conditions and spacy_model apply only to contexts that are not labelled yet",
            f"The set {source.name} is labelled already: leave them out.",
        )
    path = Path(getattr(index, "path", index)) if index is not None else _pool(given, source.labelled)
    manifest = Manifest.read(path)
    given = given or named(default_system(path))
    papers = manifest.counts.papers
    k = min(DEFAULT_K, papers) if k is None else k
    if not 1 <= k <= papers:
        raise InputError(f"-k {k:,} is not between 1 and the {papers:,} papers of the index", "Choose another.")
    parsed_metrics = parse_metrics(metrics, k)
    check(given)
    manifest_then, store = manifest_and_store(path)
    shown = contextlib.nullcontext(on_progress) if on_progress else progress_bar()
    with contextlib.closing(store), shown as on_progress:
        if manifest_then != manifest:
            raise replaced(path)
        material = load_material(source, store, model=spacy_model, conditions=conditions, on_progress=on_progress)
        topics = select_topics(material.contexts, store)
        overlap = find_overlap(topics.contexts, {name: learnt_by(system, path) for name, system in given.items()})
        if not include_training_contexts:
            topics = select_topics(material.contexts, store, _to_leave_out(topics, overlap, source))
        years = store.years({paper_id for context in topics.contexts for paper_id in context.cited_ids})
        if all(years.keys().isdisjoint(context.cited_ids) for context in topics.contexts):
            raise InputError(
                f"no cited paper of any context is in {path}",
                f"Give the index of the corpus that they cite: --index{_hint(source)}",
            )
        rules = Rules(exclude_citing, as_of_year, missing)
        pool = Conditions(path, manifest.fingerprint, size_of(path), store.years, rules, k, parallelism, on_progress)
        evaluation = _Evaluation(
            tuple(given),
            topics,
            material,
            parsed_metrics,
            rules,
            k,
            years,
            seed,
            resamples,
            overlap,
            leaves_out_training=not include_training_contexts,
        )
        # Runs come first, so that their errors are told before other systems search for minutes.
        for name, system in sorted(given.items(), key=lambda one: not isinstance(one[1], Path | Mapping)):
            answered = answer(name, system, topics, pool)
            on_progress(f"scoring {name}", 0, 1)
            evaluation.add(name, answered)
            on_progress(f"scoring {name}", 1, 1)
    return evaluation.results(path, manifest, pool.index_bytes)


@dataclass
class _Evaluation:
    """Takes the systems' answers one after the other, in any order, and sums them up at the end."""

    names: tuple[str, ...]
    topics: Topics
    material: Material
    metrics: tuple[Metric, ...]
    rules: Rules
    k: int
    years: Years
    seed: int
    resamples: int
    overlap: Overlap
    leaves_out_training: bool

    def __post_init__(self) -> None:
        contexts = self.topics.contexts
        groups = [(name, label) for name, family in self.material.families.items() for label in family.classes]
        self._outside = np.array([self.years.keys().isdisjoint(context.cited_ids) for context in contexts])
        self._counted = ~self._outside if self.rules.missing == "skip" else np.ones(len(contexts), bool)
        members = members_of([context.labels for context in contexts], groups) & self._counted[:, None]
        self._grouping = Grouping(groups, members, self.topics.clusters)
        self._systems: dict[str, SystemResult] = {}
        self._rankings: dict[str, Ranking] = {}
        self._scores: dict[str, Floats] = {}
        self._remarks: dict[str, tuple[str, ...]] = {}

    def add(self, name: str, answered: Answered) -> None:
        """Scores one system."""
        ranking = rank(answered.run, self.topics, self.rules, self.k)
        scores = measure(self.metrics, ranking.gold, self.k)
        names = [metric.name for metric in self.metrics]
        overall, *classes = group_scores(scores, names, self._grouping, self.seed, self.resamples)
        families: dict[str, dict[str, Scores]] = {}
        for (family, label), found in zip(self._grouping.groups, classes, strict=True):
            families.setdefault(family, {})[label] = found
        outcome = outcomes(ranking, self.topics, self.years, self.rules)[self._counted]
        places = ranking.gold[self._counted]
        hits = np.bincount(ranking.run.contexts, minlength=len(self.topics))
        self._rankings[name], self._scores[name], self._remarks[name] = ranking, scores, answered.remarks
        sure = self._reliability(name, answered, ranking) if answered.stated else {}
        self._systems[name] = SystemResult(
            kind=answered.kind,
            overall=overall,
            families=families,
            robustness=robustness(names, overall, families),
            outcomes={label: int((outcome == number).sum()) for number, label in enumerate(OUTCOMES)},
            ranks=np.bincount(places[places > NOT_FOUND], minlength=self.k + 1)[1:].tolist(),
            empty=int((hits[self._counted] == 0).sum()),
            removed=ranking.removed._asdict(),
            settings=answered.settings,
            cost=answered.cost,
            reliability=sure,
        )

    def _reliability(self, name: str, answered: Answered, ranking: Ranking) -> dict[str, Reliability]:
        """How well the stated confidence fits, on contexts that it was not fitted on."""
        fitted = fitted_on(self.topics.contexts, answered.fitted_on)
        if number := int((fitted & self._counted).sum()):
            left_out = f"the confidence was fitted on {number:,} of the contexts: left out of its calibration error."
            self._remarks[name] += (left_out,)
        return reliabilities(answered.stated, ranking.gold, self._counted & ~fitted, self.k)

    def _without(self, family: str) -> int:
        """How many of the contexts that counted have no class of a family."""
        rows = zip(self.topics.contexts, self._counted, strict=True)
        return sum(bool(counted) and not context.labels.get(family) for context, counted in rows)

    def results(self, path: Path, manifest: Manifest, index_bytes: int) -> Results:
        """The scores of all systems, and their comparisons."""
        contexts, rules = self.topics.contexts, self.rules
        families = {
            name: replace(one, without_class=self._without(name)) for name, one in self.material.families.items()
        }
        metrics = [metric.name for metric in self.metrics]
        left_out = self.leaves_out_training
        notes = [*self.material.notes, *self.overlap.notes(left_out=left_out)]
        if self.material.corpus_fingerprint not in (None, manifest.fingerprint):
            notes.append("The set was made for another corpus than this index: bounds and missing papers may differ.")
        notes += [f"{name}: {remark}" for name in self.names for remark in self._remarks[name]]
        facts = {
            "contexts": len(contexts),
            "outside": int(self._outside.sum()),
            "counted": int(self._counted.sum()),
            "alike": True,
            "citing_papers": len(np.unique(self.topics.clusters[self._counted])),
            "citing_papers_known": any(one.citing_id or one.context.citing_key for one in self.topics.topics),
            "training_overlap": self.overlap.facts(left_out=left_out),
            "without_citing_paper": sum(topic.citing_id is None for topic in self.topics.topics),
            "without_citing_year": sum(topic.citing_year is None for topic in self.topics.topics),
        }
        counts = {"papers": manifest.counts.papers, "bytes": index_bytes}
        conditions = any(family.conditions for family in families.values())
        return Results(
            set={**self.material.facts, **facts},
            index={"path": str(path), "fingerprint": manifest.fingerprint, **counts},
            rules={**asdict(rules), "conditions": conditions},
            columns=ranked_columns(metrics),
            k=self.k,
            seed=self.seed,
            resamples=self.resamples,
            families=families,
            systems={name: self._systems[name] for name in self.names},
            comparisons=compare({name: self._scores[name] for name in self.names}, metrics, self._grouping, self.seed),
            items=self._items(metrics),
            notes=tuple(notes),
            context_ids=tuple(context.context_id for context in contexts),
            rankings={name: self._rankings[name] for name in self.names},
        )

    def _items(self, metrics: list[str]) -> Items:
        """The contexts that counted."""
        counted = np.flatnonzero(self._counted)
        contexts, families = [self.topics.contexts[row] for row in counted], self.material.families.keys()
        return Items(
            ids=[context.context_id for context in contexts],
            labels=[{name: one for name, one in context.labels.items() if name in families} for context in contexts],
            citing=self.topics.clusters[counted],
            scores={name: self._scores[name][counted] for name in self.names},
            columns=metrics,
            texts=[context.text for context in contexts],
            cited=[context.cited_ids for context in contexts],
            in_index=(~self._outside[counted]).tolist(),
            ranks={name: self._rankings[name].gold[counted] for name in self.names},
        )


def _check_needs_no_text(systems: Mapping[str, System]) -> None:
    """Refuses systems that search, the default system too, for contexts without text."""
    searching = [name for name, system in systems.items() if isinstance(system, str | Recommender)]
    if searching or not systems:
        name = searching[0] if searching else "the default system"
        raise InputError(f"qrels have no text, so {name} cannot search", "Give contexts, or give runs.")


def _to_leave_out(topics: Topics, overlap: Overlap, source: Source) -> frozenset[str]:
    """The ids of the contexts that a system learnt from or was tuned on."""
    seen = overlap.any
    if seen.all():
        raise InputError(
            f"nothing is left of {source.name} to measure on: {overlap.notes(left_out=True)[0]}",
            "Split contexts before training: citerec contexts split FILE --out FOLDER",
        )
    return frozenset(context.context_id for context, out in zip(topics.contexts, seen, strict=True) if out)


def _hint(source: Source) -> str:
    return ". For the demo set: citerec demo" if source.labelled and source.name == DEFAULT_SET else ""


def _pool(systems: Mapping[str, System], of_set: DiagnosticSet | None) -> Path:
    own = {system.path for system in systems.values() if isinstance(system, Recommender)}
    if len(own) == 1:
        return own.pop()
    wanted = of_set.manifest.corpus_fingerprint if of_set else None
    return find_index(None, wanted)
