"""`citerec.evaluate`: systems against a diagnostic set, a file of contexts, a list, or qrels, under the same rules."""

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from citerec.contexts.provenance import digests_of
from citerec.contexts.read import (
    IRDS,
    as_record,
    checked_contexts,
    irds_folder,
    parse_context,
    read_contexts,
    read_queries,
)
from citerec.contexts.topic import LeakRules, Topic, topics_of
from citerec.corpus.base import QUERIES
from citerec.corpus.reading import tried
from citerec.corpus.store import PaperStore
from citerec.diagnostics.families import (
    DEFAULT_MODEL,
    DOWNLOAD,
    FAMILIES,
    families_named,
    installed_model,
    label_contexts,
    title_of,
)
from citerec.diagnostics.sets import DEFAULT_SET, DiagnosticSet, find_set, parse_id, read_set
from citerec.errors import InputError
from citerec.evaluation.metrics import DEFAULT_METRICS, cited_papers, parse_metrics, rank, ranks_of
from citerec.evaluation.record import FamilyInfo, Measured, Pool, Record, SystemRecord, find_overlap
from citerec.evaluation.results import TABLES, Results, labels_table
from citerec.evaluation.statistics import RESAMPLES
from citerec.evaluation.systems import Answered, Conditions, System, answer, learnt_by, named
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress, progress_bar
from citerec.files.resume import digest_of
from citerec.index.describe import size_of
from citerec.index.manifest import find_index, manifest_and_store
from citerec.recommend import Recommender
from citerec.records import EVENTS, MARKER, Context
from citerec.retrieve.run import Run
from citerec.systems import Recipe, default_system
from citerec.write.metrics import Column


class Source(NamedTuple):
    """Contexts to be labelled, or a set, whose contexts are labelled already; with their name and path.

    `families` are the names of the requested families; empty for all.
    """

    name: str
    place: str
    families: tuple[str, ...]
    contexts: tuple[Context, ...]
    labelled: DiagnosticSet | None


def read_source(what: str | Path | DiagnosticSet | Iterable[Context], families: Sequence[str] = ()) -> Source:
    """Reads the contexts that `evaluate` is given; `families` are added to the one that an id names.

    Raises:
        InputError: There is no such set, file or family, or a line is no context.
    """
    family_names, place = list(families), ""
    if isinstance(what, str | Path) and str(what).startswith(IRDS):
        what = irds_folder(str(what))
    if isinstance(what, str) and not Path(what).is_file():
        name, family = parse_id(what)
        family_names += [family] if family else []
        place = name or DEFAULT_SET
        what = find_set(place)
    if isinstance(what, str | Path) and Path(what, QUERIES).is_file():
        what, place = list(read_queries(Path(what))), str(what)
    if isinstance(what, Path) and what.is_dir():
        place, what = place or str(what), read_set(what)
    if isinstance(what, DiagnosticSet):
        # A set may have families that this citerec does not have; their labels are in the set.
        families_named([name for name in family_names if name not in what.manifest.families])
        return Source(what.manifest.name, place or what.manifest.name, tuple(family_names), what.contexts, what)
    names = tuple(family.name for family in families_named(family_names)) if family_names else ()
    if isinstance(what, str | Path):
        contexts = tuple(read_contexts(Path(what), cited=True))
        path = Path(what).resolve()
        return Source(f"{path.parent.name}/{path.stem.partition('.')[0]}", str(what), names, contexts, None)
    as_strings = (replace(one, cited_ids=tuple(map(str, one.cited_ids))) for one in what)
    places = (
        (f"context {number}", tried(partial(parse_context, as_record(one), f"context-{number}"), ""))
        for number, one in enumerate(as_strings, 1)
    )
    return Source(place or "contexts", place or "contexts", names, tuple(checked_contexts(places, cited=True)), None)


def contexts_of_qrels(value: Any) -> list[Context] | None:
    """Turns qrels of any kind into contexts without text, for runs; None for anything else.

    Args:
        value: `ranx.Qrels`, a DataFrame with the columns `context_id` and `paper_id` (and `relevance`, if some rows
            hold 0), or {context id: {paper id: relevance}}.

    Raises:
        InputError: A column is missing, or a context has no relevant paper.
    """
    if isinstance(value, pd.DataFrame):
        if missing := [name for name in ("context_id", "paper_id") if name not in value]:
            raise InputError(f"the frame has no column {missing[0]!r}", "Qrels have the columns context_id, paper_id.")
        groups = value.assign(relevance=value.get("relevance", 1)).groupby("context_id", sort=False)
        value = {name: dict(zip(rows["paper_id"], rows["relevance"], strict=True)) for name, rows in groups}
    elif not isinstance(value, Mapping) and hasattr(value, "to_dict"):  # those of ranx
        value = value.to_dict()
    if not isinstance(value, Mapping):
        return None
    contexts = []
    for context_id, grades in value.items():
        cited = tuple(str(paper_id) for paper_id, grade in grades.items() if grade > 0)
        if not cited:
            raise InputError(f"the context {context_id!r} has no relevant paper", "Leave it out of the qrels.")
        contexts.append(Context(text=MARKER, context_id=str(context_id), cited_ids=cited))
    return contexts


def labelled_contexts(
    source: Source, store: PaperStore, *, model: str | None, conditions: bool, on_progress: Progress
) -> tuple[tuple[Context, ...], dict[str, FamilyInfo], dict[str, Any], list[str]]:
    """Labels the contexts; of a set, which is labelled already, by the families that it does not keep.

    Returns:
        The contexts; their families by name; facts about the set for the run record; notes.

    Raises:
        InputError: The given spaCy model is not installed, or no context is in one of the requested families.
    """
    notes: list[str] = []
    of_set, contexts = source.labelled.manifest if source.labelled else None, source.contexts
    kept = of_set.families if of_set else {}
    wanted = source.families or (*kept, *FAMILIES)
    families = [one for one in families_named() if one.name in wanted and (one.on_the_spot or not of_set)]
    if any(family.needs_tagger for family in families) and model is None:
        model = DEFAULT_MODEL if source.families else installed_model()
        if model is None:
            missing = f"Parts of speech are not labelled: {DEFAULT_MODEL} is not installed."
            notes.append(f"{missing} Get it with {DOWNLOAD}, or label a set with another: citerec diagnostics label")
    bounds, tagged_by = (of_set.bounds, of_set.spacy_model) if of_set else (None, None)
    if families:
        labelled = label_contexts(
            contexts, store, families, model=model, conditions=conditions, on_progress=on_progress
        )
        kept = {**kept, **labelled.families}
        old = [context.labels if of_set else {} for context in contexts]
        pairs = zip(old, labelled.contexts, strict=True)
        contexts = tuple(replace(new, labels={**before, **new.labels}) for before, new in pairs)
        bounds, tagged_by = (bounds or labelled.bounds), (tagged_by or labelled.model)
    infos = {
        name: FamilyInfo(title=title_of(name), conditions=one.conditions, classes=tuple(one.classes))
        for name, one in kept.items()
        if any(one.classes.values()) and name in wanted
    }
    if empty := [name for name in source.families if name not in infos]:
        raise InputError(
            f"no context of {source.name} has a class of {empty[0]}",
            f"Choose another family{': ' * bool(infos)}{', '.join(infos)}. With --contexts, --tagger labels intents.",
        )
    unlabelled = (as_record(replace(context, labels={})) for context in source.contexts)
    facts = {
        "name": source.name,
        "source": source.place,
        "fingerprint": of_set.fingerprint if of_set else digest_of(list(unlabelled)),
        "spacy_model": tagged_by,
        "bounds": bounds and bounds.model_dump(mode="json"),
    }
    return contexts, infos, facts, notes


def _untaught(index: Path, contexts: Sequence[Context]) -> tuple[dict[str, System], list[str]]:
    """The default system of an index, without its ranker if that learnt from some of the contexts; a note then."""
    name = default_system(index)
    base, _, ranker = name.rpartition("+")
    seen, _ = find_overlap(contexts, {name: learnt_by(name, index)})
    if not base or not seen.any():
        return named(name), []
    note = f"{base} is measured, not {name}: {ranker} learnt from {int(seen.sum()):,} of the contexts, or their papers."
    return named(base), [f"{note} --system {name} measures it on the others."]


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
        systems: A system by name or recipe file, a `Recipe`, a `Recommender`, a `citerec.Run`, or a function of a
            context and k that gives pairs of paper id and score; or several of those, in a list or by name. By default
            the system that `citerec recommend` uses for the index.
        contexts: The id of a diagnostic set ("demo"), of a family of it ("demo/location"), a family of the demo set
            ("location"), a file of contexts, a folder of BEIR, a `DiagnosticSet`, or contexts; for runs also qrels: of
            ranx, a DataFrame, or {context id: {paper id: relevance}}.
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
    by_name = {} if systems is None else named(systems)
    if (qrels := contexts_of_qrels(contexts)) is not None:
        searching = [name for name, system in by_name.items() if isinstance(system, str | Recipe | Recommender)]
        if searching or not by_name:
            name = next(iter(searching), "the default system")
            raise InputError(f"qrels have no text, so {name} cannot search", "Give contexts, or give runs.")
        contexts = qrels
    source = read_source(contexts, (families,) if isinstance(families, str) else families)
    if source.labelled and (not conditions or spacy_model):
        remedy = f"The set {source.name} is labelled already: leave them out."
        raise InputError("conditions and spacy_model apply only to contexts that are not labelled yet", remedy)
    path = Path(getattr(index, "path", index)) if index is not None else _pool(by_name, source.labelled)
    by_name, said = (by_name, []) if by_name else _untaught(path, source.contexts)
    manifest, store = manifest_and_store(path)
    papers = manifest.counts.papers
    k = min(DEFAULT_K, papers) if k is None else k
    if not 1 <= k <= papers:
        raise InputError(f"-k {k:,} is not between 1 and the {papers:,} papers of the index", "Choose another.")
    columns = tuple(Column(one.name, share=False, decimals=3, metric=one.name) for one in parse_metrics(metrics, k))
    rules, left_out = LeakRules(exclude_citing, as_of_year), not include_training_contexts
    shown = contextlib.nullcontext(on_progress) if on_progress else progress_bar()
    with contextlib.closing(store), shown as on_progress:
        of_set, infos, facts, notes = labelled_contexts(
            source, store, model=spacy_model, conditions=conditions, on_progress=on_progress
        )
        if not of_set:
            raise InputError("there is no context", "Give at least one, or the name of a diagnostic set.")
        provenance = {name: learnt_by(system, path) for name, system in by_name.items()}
        seen, overlap = find_overlap(of_set, provenance, left_out=left_out)
        notes += [*said, *overlap.notes(len(of_set))]
        if left_out and seen.all():
            remedy = "Split contexts before training: citerec contexts split FILE --out FOLDER"
            raise InputError(f"nothing is left of {source.name} to measure on: {overlap.notes(len(of_set))[0]}", remedy)
        topics = topics_of(list(itertools.compress(of_set, ~(seen & left_out))), store)
        years = store.years({paper_id for topic in topics for paper_id in topic.context.cited_ids})
        outside = np.array([years.keys().isdisjoint(topic.context.cited_ids) for topic in topics])
        if outside.all():
            hint = ". For the demo set: citerec demo" if source.labelled and source.name == DEFAULT_SET else ""
            remedy = f"Give the index of the corpus that they cite: --index{hint}"
            raise InputError(f"no cited paper of any context is in {path}", remedy)
        counted = ~outside if missing == "skip" else np.ones_like(outside)
        ids = frozenset(context.context_id for context in of_set)
        pool = Pool(
            path=str(path), engine=manifest.engine, fingerprint=manifest.fingerprint, papers=papers, bytes=size_of(path)
        )
        shared = Conditions(topics, ids, pool, store.years, rules, k, parallelism, on_progress)
        cited = cited_papers(topics, years, rules)
        cited, measured = cited[counted[cited["topic"]]], {}
        # Runs come first, so that their errors are told before other systems search for minutes.
        for name, system in sorted(by_name.items(), key=lambda one: not isinstance(one[1], Run)):
            measured[name] = _measured(name, answer(name, system, shared), shared, cited, counted)
    if source.labelled and source.labelled.manifest.corpus_fingerprint not in (None, manifest.fingerprint):
        notes.append("The set was made for another corpus than this index: bounds and missing papers may differ.")
    records, remarks, ranks, confidence, runs = zip(*(measured[name] for name in by_name), strict=True)
    record = Record(
        measures="ranks",
        set=Measured(
            **facts,
            contexts=len(topics),
            asked=len(of_set),
            outside=int(outside.sum()),
            citing_known=sum(bool(one.citing_id or one.context.citing_key) for one in topics),
            without_citing_paper=sum(one.citing_id is None for one in topics),
            without_citing_year=sum(one.citing_year is None for one in topics),
            training_overlap=overlap,
        ),
        index=pool,
        rules={**asdict(rules), "missing": missing, "conditions": any(one.conditions for one in infos.values())},
        k=k,
        columns=columns,
        families=infos,
        systems=dict(zip(by_name, records, strict=True)),
        seed=seed,
        resamples=resamples,
        notes=(*notes, *itertools.chain(*remarks)),
    )
    return Results(
        record,
        _labels(list(itertools.compress(topics, counted)), infos),
        pd.concat(ranks, ignore_index=True),
        pd.concat(confidence, ignore_index=True),
        runs=dict(zip(by_name, runs, strict=True)),
    )


def _measured(
    name: str, answered: Answered, conditions: Conditions, cited: pd.DataFrame, counted: npt.NDArray[np.bool_]
) -> tuple[SystemRecord, list[str], pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The record of a system, remarks, and its tables: ranks of the papers cited, confidence, and hits.

    `counted` says which contexts count.
    """
    ranked, removed = rank(answered.hits, conditions.topics, conditions.rules, conditions.k)
    empty = counted & ~np.isin(np.arange(len(counted)), ranked["topic"])
    record = answered.record.model_copy(update={"removed": removed, "empty": int(empty.sum())})
    remarks = [f"{name}: {remark}" for remark in answered.remarks]
    # Probabilities are measured on contexts that they were not fitted on.
    fitted = np.array([not answered.fitted_on.isdisjoint(digests_of(one.context)) for one in conditions.topics], bool)
    if number := int((fitted & counted).sum()):
        remarks.append(f"{name}: its calibration error leaves out {number:,} contexts of papers it was calibrated on")
    ids = np.array([topic.context.context_id for topic in conditions.topics], dtype=object)
    rows = zip(ids, answered.confidences, counted & ~fitted, strict=bool(answered.confidences))
    confidences = [
        (context_id, name, *(getattr(one, event) for event in EVENTS))
        for context_id, one, usable in rows
        if one and usable
    ]
    return (
        record,
        remarks,
        ranks_of(cited, ranked).assign(system=name)[TABLES["ranks"]],
        pd.DataFrame(confidences, columns=TABLES["confidence"]),
        ranked.assign(context=ids[ranked["topic"]])[["context", "paper", "rank", "score"]].reset_index(drop=True),
    )


def _labels(topics: Sequence[Topic], families: Iterable[str]) -> pd.DataFrame:
    """The table of labels of topics. Where the citing paper is not known, the context is a paper of its own."""
    contexts = [topic.context for topic in topics]
    names = ((one.citing_id, one.context.citing_key, one.context.context_id) for one in topics)
    # The first name that is known, with its kind.
    firsts = [next(kind_and_name for kind_and_name in enumerate(of_topic) if kind_and_name[1]) for of_topic in names]
    citing = pd.Series(firsts).factorize()[0].astype(np.int32)
    classes = {name: [context.labels.get(name) for context in contexts] for name in families}
    return labels_table([one.context_id for one in contexts], citing, [one.text for one in contexts], classes)


def _pool(systems: Mapping[str, System], of_set: DiagnosticSet | None) -> Path:
    own = {system.path for system in systems.values() if isinstance(system, Recommender)}
    if len(own) == 1:
        return own.pop()
    return find_index(None, of_set.manifest.corpus_fingerprint if of_set else None)
