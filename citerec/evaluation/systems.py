"""The systems that can be measured: built-in ones by name, recommenders, functions, runs."""

import contextlib
import functools
import inspect
import operator
import re
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.confidence import calibrated_on
from citerec.contexts.provenance import NOTHING, Provenance
from citerec.contexts.topic import LeakRules, Topic
from citerec.errors import IndexUnusableError, InputError, SystemFailedError
from citerec.evaluation.metrics import YearsOf, hits_of
from citerec.evaluation.record import Cost, Pool, SystemRecord, Usage, metered
from citerec.files.parallel import HERE, Parallelism, in_parts, outcomes_of
from citerec.files.progress import Progress
from citerec.recommend import Recommender, code_digests
from citerec.records import Confidence, Context
from citerec.retrieve.base import Candidate
from citerec.retrieve.run import Run, SearchOptions, without_answer
from citerec.systems import Recipe, provenance_of_system

if TYPE_CHECKING:  # pandas takes 70 MB, and processes that answer need none
    import pandas as pd

Answer = Iterable[tuple[str, float] | Candidate] | Mapping[str, float]
Function = Callable[[Context, int], Answer]
"""Gives the k best papers for a context, which tells nothing of the answer: pairs of paper id and score, a
dictionary of these, or candidates."""

System = str | Recipe | Recommender | Run | Function
"""A built-in system by name or recipe file, a recipe, a recommender, a run, or a function."""

_TASK = 50
"""Contexts that a process answers in one go; the same everywhere, so that encoders get the same batches."""
_warm: "weakref.WeakSet[Recommender]" = weakref.WeakSet()
"""The systems that have searched in this process."""
_NAME = re.compile(r"[\w.+@-]{1,40}")


class Conditions(NamedTuple):
    """Conditions for all systems: topics, the index that is the pool, leak rules, how many papers for each context.

    `context_ids` are those of all contexts, also of contexts that are left out: a run may answer them too.
    `parallelism` says where contexts are answered by systems that are named.
    """

    topics: Sequence[Topic]
    context_ids: frozenset[str]
    pool: Pool
    years_of: YearsOf
    rules: LeakRules
    k: int
    parallelism: Parallelism
    on_progress: Progress


class Answered(NamedTuple):
    """The hits of a system, and its record.

    `remarks` are the system's own, such as how many suggestions named no paper. `confidences` is its confidence in each
    answer, if it is calibrated, and `fitted_on` the digests of the contexts of the calibration.
    """

    hits: "pd.DataFrame"
    record: SystemRecord
    remarks: tuple[str, ...] = ()
    confidences: Sequence[Confidence | None] = ()
    fitted_on: frozenset[str] = frozenset()


class _Part(NamedTuple):
    """The answers to some topics, how sure the system is of each, what its retrievers counted, and the cost."""

    answers: list[list[tuple[str, float]]]
    confidences: list[Confidence | None]
    counts: dict[str, Counter[str]]
    measured: Usage


def answer(name: str, system: System, conditions: Conditions) -> Answered:
    """Lets a system answer all topics.

    Raises:
        InputError: Its answers cannot be scored.
        SystemFailedError: A function raised an error.
    """
    match system:
        case Run():
            return _of_run(system, conditions)
        case str() | Recipe():
            with Recommender.open(conditions.pool.path, system) as recommender:
                if recommender.manifest.fingerprint != conditions.pool.fingerprint:  # all search the same papers
                    fault = f"{conditions.pool.path} was replaced while it was searched"
                    raise IndexUnusableError(fault, "Run the same command again.")
                return _of_recommender(name, recommender, conditions, conditions.parallelism)
        case Recommender():
            return _of_recommender(name, system, conditions, HERE)
        case _:
            return _of_function(name, system, conditions)


def learnt_by(system: System, index: Path) -> Provenance:
    """What a system learnt from, if it says so: a run does not, a function may have an attribute `provenance`."""
    if isinstance(system, str | Recipe):
        return provenance_of_system(index, system if isinstance(system, Recipe) else Recipe.load(system))
    provenance = getattr(system, "provenance", None)
    if isinstance(provenance, Provenance):
        return provenance
    if isinstance(system, Recommender) or not (held := recommenders_in(system)):
        return Provenance(unsaid=("the function",)) if callable(system) else NOTHING
    return functools.reduce(operator.or_, (one.provenance for one in held))


def recommenders_in(system: Any) -> list[Recommender]:
    """The recommenders that a function is bound to, is given, or names."""
    held = [getattr(system, "__self__", None), *getattr(system, "args", ()), *getattr(system, "keywords", {}).values()]
    with contextlib.suppress(TypeError):
        named = inspect.getclosurevars(getattr(system, "func", system))
        held += [*named.nonlocals.values(), *named.globals.values()]
    return [one for one in held if isinstance(one, Recommender)]


def _of_recommender(name: str, recommender: Recommender, conditions: Conditions, parallelism: Parallelism) -> Answered:
    work = functools.partial(_part, recommender, conditions.k, conditions.rules)
    tasks = list(in_parts(conditions.topics, _TASK))
    parts: dict[int, _Part] = {}
    with contextlib.closing(outcomes_of(work, tasks, parallelism)) as outcomes:
        for number, part in outcomes:
            parts[number] = part
            conditions.on_progress(name, sum(len(one.answers) for one in parts.values()), len(conditions.topics))
    in_order = [parts[number] for number in sorted(parts)]
    counts: dict[str, Counter[str]] = {}
    for part in in_order:
        for retriever, of_part in part.counts.items():
            counts.setdefault(retriever, Counter()).update(of_part)
    calibration, settings = recommender.calibration, recommender.recipe.to_json()
    cost = Cost.of([part.measured for part in in_order], conditions.pool.bytes)
    return Answered(
        hits_of([answer for part in in_order for answer in part.answers], conditions.years_of, name),
        SystemRecord(kind="citerec", settings=settings, digests=recommender.digests, cost=cost),
        remarks=recommender.remarks(counts),
        confidences=[one for part in in_order for one in part.confidences] if calibration else (),
        fitted_on=calibrated_on(calibration, recommender.path, recommender.recipe) if calibration else frozenset(),
    )


def _part(recommender: Recommender, k: int, rules: LeakRules, topics: Sequence[Topic]) -> _Part:
    """The answers of a system to some topics: a task."""
    if recommender not in _warm:
        # Not measured: models are loaded, files are read into memory, and Java compiles code that runs often.
        list(recommender.candidates(topics, k))
        recommender.counts()  # those of the warm-up are forgotten
        _warm.add(recommender)
    with metered() as measured:
        options = SearchOptions(rules, latencies=measured.latencies)
        hits = [candidates for _, candidates in recommender.candidates(topics, k, options=options)]
        answers = [candidates.pairs() for candidates in hits]
    return _Part(answers, [one.confidence for one in hits], recommender.counts(), measured)


def _of_function(name: str, system: Function, conditions: Conditions) -> Answered:
    answers = []
    with metered() as measured:
        for done, context in enumerate((topic.context for topic in conditions.topics), 1):
            begun = time.perf_counter()
            try:
                answer = system(without_answer(context), conditions.k)
            except Exception as error:
                raise SystemFailedError(
                    f"the system {name} failed on the context {context.context_id}: {type(error).__name__}: {error}",
                    "The traceback above shows where.",
                ) from error
            measured.latencies.append(time.perf_counter() - begun)
            try:
                answer = answer.items() if isinstance(answer, Mapping) else answer
                pairs = ((hit.paper_id, hit.score) if isinstance(hit, Candidate) else hit for hit in answer)
                answers.append([(str(paper_id), float(score)) for paper_id, score in pairs])
            except (TypeError, ValueError):
                remedy = "Answer with pairs of paper id and score, best first or in any order."
                raise InputError(f"{name} answers {answer!r}"[:200], remedy) from None
            conditions.on_progress(name, done, len(conditions.topics))
    held = recommenders_in(system)
    digests = {name: digest for one in held for name, digest in one.digests.items()} | code_digests([system])
    settings = held[0].recipe.to_json() if len(held) == 1 else None
    cost = Cost.of([measured], conditions.pool.bytes)
    record = SystemRecord(kind="function", settings=settings, digests=digests, cost=cost)
    return Answered(hits_of(answers, conditions.years_of, name), record)


def _of_run(run: Run, conditions: Conditions) -> Answered:
    """The hits of a run; errors say where it answers an unknown context, or names a paper that is not in the pool."""
    years = conditions.years_of({paper_id for papers in run.values() for paper_id in papers})
    for context_id, papers in run.items():
        if context_id not in conditions.context_ids:
            remedy = "Score the run on the contexts it answers."
            raise InputError(f"{run.place_of(context_id)}: there is no context {context_id!r}", remedy)
        if missing := next((paper_id for paper_id in papers if paper_id not in years), None):
            raise InputError(
                f"{run.place_of(context_id, missing)}: the paper {missing!r} is not in the index",
                "Score the run against the index that it was made from: --index",
            )
    answers = (list(run.get(topic.context.context_id, {}).items()) for topic in conditions.topics)
    return Answered(hits_of(answers, lambda _: years, run.name), SystemRecord(kind="run"))


def named(systems: Any) -> dict[str, System]:
    """Systems by name: the given names, or names made from the systems; mistakes are found before the slow work begins.

    Raises:
        InputError: There is none, two would have one name, a name is not allowed, or a system does not exist.
    """
    if isinstance(systems, Mapping) and not isinstance(systems, Run):
        by_name = {str(name): system for name, system in systems.items()}
    else:
        items = systems if isinstance(systems, list | tuple) else [systems]
        names = list(map(_name, items))
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"two systems are called {twice[0]!r}", "Name them: {'first': …, 'second': …}")
        by_name = dict(zip(names, items, strict=True))
    if not by_name:
        raise InputError("there is no system", "Give one, for example bm25.")
    for name, system in by_name.items():
        if not isinstance(system, str | Recipe | Recommender | Run) and not callable(system):
            remedy = "Make a run of it: citerec.Run.from_trec, from_ranx, from_frame or from_dict."
            raise InputError(f"{name} is a {type(system).__name__}, no system", remedy)
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot name a system: files and runs get the same name",
                "Use up to 40 letters, digits and . _ + @ - only.",
            )
        if isinstance(system, str):
            Recipe.load(system)
    return by_name


def name_of(system: str) -> str:
    """The name of a system in results: its own, that of its TOML file, or with "-" where the path of a part has "/"."""
    return Path(system).stem if system.endswith(".toml") else re.sub(r"[./\\]*[/\\]", "-", system).replace("+-", "+")


def _name(system: System) -> str:
    if isinstance(system, str):
        return name_of(system)
    name = getattr(system, "name", None) or getattr(system, "__name__", None)
    return str(name or type(system).__name__.lower())
