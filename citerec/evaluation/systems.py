"""The systems that can be measured: built-in ones by name, functions, run files, runs in memory."""

import contextlib
import functools
import re
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from citerec.confidence import calibrated_on
from citerec.contexts.learnt import NOTHING, Learnt
from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError, InputError, SystemFailedError
from citerec.evaluation.cost import Cost, Measured, metered
from citerec.evaluation.rank import Rules
from citerec.evaluation.run import PooledRun, YearsOf, collect_run, read_run
from citerec.evaluation.topics import Topics
from citerec.files.parallel import HERE, Parallelism, outcomes_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.candidates import Candidate
from citerec.recommend import Recommender
from citerec.records import Confidence, Context
from citerec.retrieve.run import Run, SearchOptions, as_run
from citerec.systems import Recipe, learnt_by_system

Answer = Sequence[tuple[str, float] | Candidate]
Function = Callable[[Context, int], Answer]
"""Gives the k best papers for a context, which tells nothing of the answer (`asked`): pairs of paper id and score, or
candidates."""

Scores = Mapping[str, Mapping[str, float]]
"""A run in memory: scores by context id and paper id, such as a `citerec.Run`."""

System = str | Path | Recommender | Function | Scores
"""A built-in system or recipe by name, a run file, a recommender, a function, or a run in memory."""


_TASK = 50
"""Contexts that a process answers in one go; the same everywhere, so that encoders get the same batches."""
_warm: "weakref.WeakSet[Recommender]" = weakref.WeakSet()
"""The systems that have searched in this process."""
_NAME = re.compile(r"[\w.+@-]{1,40}")
_RUN_SUFFIXES = (".trec", ".run", ".txt", ".gz")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions for all systems: the index that is the pool, leak rules, how many papers for each context.

    `parallelism` says where contexts are answered by systems that are named.
    """

    index: Path
    fingerprint: str
    index_bytes: int
    years_of: YearsOf
    rules: Rules
    k: int
    parallelism: Parallelism
    on_progress: Progress


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of a system: its run, kind, settings and cost; a run made elsewhere has no cost.

    `remarks` are the system's own, such as how many suggestions named no paper. `stated` is its confidence in each
    answer, if it is calibrated, and `fitted_on` the digests of the contexts of the calibration.
    """

    run: PooledRun
    kind: str
    settings: Mapping[str, Any] | None = None
    cost: Cost | None = None
    remarks: tuple[str, ...] = ()
    stated: Sequence[Confidence | None] = ()
    fitted_on: frozenset[str] = frozenset()


class _Part(NamedTuple):
    """The answers to some topics, how sure the system is of each, what its retrievers counted, and the cost."""

    answers: list[list[tuple[str, float]]]
    stated: list[Confidence | None]
    counts: dict[str, Counter[str]]
    measured: Measured


def answer(name: str, system: System, topics: Topics, conditions: Conditions) -> Answered:
    """Lets a system answer all topics.

    Raises:
        InputError: There is no such system, or its answers cannot be scored.
    """
    match system:
        case Path():
            return Answered(read_run(system, topics.numbers, conditions.years_of), "run")
        case Mapping():
            return Answered(_of_mapping(name, system, topics, conditions.years_of), "run")
        case str():
            with Recommender.open(conditions.index, system) as recommender:
                if recommender.manifest.fingerprint != conditions.fingerprint:
                    raise replaced(conditions.index)
                return _of_recommender(name, recommender, topics, conditions, conditions.parallelism)
        case Recommender():
            return _of_recommender(name, system, topics, conditions, HERE)
    if callable(system):
        return _of_function(name, system, topics, conditions)
    raise InputError(
        f"{name} is a {type(system).__name__}, no system",
        "Give a name, the path of a run, a Recommender, a function of a context and k, or a run as a mapping.",
    )


def replaced(index: Path) -> IndexUnusableError:
    """The error that an index was replaced during an evaluation, whose systems must search the same papers."""
    return IndexUnusableError(f"{index} was replaced while it was searched", "Run the same command again.")


def learnt_by(system: System, index: Path) -> Learnt:
    """What a system learnt from, if it says so: a run does not, a function may have an attribute `learnt`."""
    if isinstance(system, str):
        return learnt_by_system(index, Recipe.load(system))
    learnt = getattr(system, "learnt", NOTHING)
    return learnt if isinstance(learnt, Learnt) else NOTHING


def _of_recommender(
    name: str, recommender: Recommender, topics: Topics, conditions: Conditions, parallelism: Parallelism
) -> Answered:
    tasks = list(in_parts(topics.topics, _TASK))
    work = functools.partial(_part, recommender, conditions.k, conditions.rules)
    parts: dict[int, _Part] = {}
    done = 0
    with contextlib.closing(outcomes_of(work, tasks, parallelism)) as outcomes:
        for number, part in outcomes:
            parts[number] = part
            done += len(part.answers)
            conditions.on_progress(name, done, len(topics))
    in_order = [parts[number] for number in range(len(tasks))]
    counts = {
        retriever: sum((part.counts[retriever] for part in in_order), Counter()) for retriever in in_order[0].counts
    }
    run = collect_run([answer for part in in_order for answer in part.answers], conditions.years_of, name)
    return Answered(
        run,
        "citerec",
        recommender.recipe.to_json(),
        Cost.of([part.measured for part in in_order], conditions.index_bytes),
        recommender.remarks(counts),
        [stated for part in in_order for stated in part.stated] if recommender.calibration else (),
        calibrated_on(recommender.path, recommender.recipe) if recommender.calibration else frozenset(),
    )


def _part(recommender: Recommender, k: int, rules: Rules, topics: Sequence[Topic]) -> _Part:
    """The answers of a system to some topics: a task."""
    if recommender not in _warm:
        # Not measured: models are loaded, files are read into memory, and Java compiles code that runs often.
        for _ in recommender.candidates(topics, k):
            pass
        recommender.counts()  # those of the warm-up are forgotten
        _warm.add(recommender)
    with metered() as measured:
        options = SearchOptions(rules, latencies=measured.latencies)
        found = [candidates for _, candidates in recommender.candidates(topics, k, options=options)]
        answers = [candidates.pairs() for candidates in found]
    return _Part(answers, [one.confidence for one in found], recommender.counts(), measured)


def _of_function(name: str, system: Function, topics: Topics, conditions: Conditions) -> Answered:
    answers = []
    with metered() as measured:
        for done, context in enumerate(topics.contexts, 1):
            begun = time.perf_counter()
            try:
                found = system(asked(context), conditions.k)
            except Exception as error:
                raise SystemFailedError(
                    f"the system {name} failed on the context {context.context_id}: {type(error).__name__}: {error}",
                    "The traceback above shows where.",
                ) from error
            measured.latencies.append(time.perf_counter() - begun)
            answers.append(_pairs(name, found))
            if done % _TASK == 0 or done == len(topics):
                conditions.on_progress(name, done, len(topics))
    run = collect_run(answers, conditions.years_of, name)
    return Answered(run, "function", None, Cost.of([measured], conditions.index_bytes))


def asked(context: Context) -> Context:
    """A context without what tells which paper is cited: ids, classes of the cited paper, the marker as written."""
    return replace(context, cited_ids=(), labels={}, marker=None)


def _of_mapping(name: str, scores: Scores, topics: Topics, years_of: YearsOf) -> PooledRun:
    if unknown := [context_id for context_id in scores if context_id not in topics.numbers]:
        raise InputError(
            f"{name} answers {unknown[0]!r}, which is no context", "Score the run on the contexts it answers."
        )
    answers = (_pairs(name, scores.get(context.context_id, {}).items()) for context in topics.contexts)
    return collect_run(answers, years_of, name)


def _pairs(name: str, found: Any) -> list[tuple[str, float]]:
    remedy = "Answer with pairs of paper id and score, best first or in any order."
    if not isinstance(found, Iterable):
        raise InputError(f"{name} answers {found!r}", remedy)
    pairs = []
    for hit in found:
        try:
            if isinstance(hit, str):
                raise TypeError
            paper_id, score = (hit.paper_id, hit.score) if isinstance(hit, Candidate) else hit
            pairs.append((str(paper_id), float(score)))
        except (TypeError, ValueError):
            raise InputError(f"{name} answers {hit!r}", remedy) from None
    return pairs


def named(systems: Any) -> dict[str, System]:
    """Systems by name: the given names, or names made from the systems.

    Raises:
        InputError: There is none, or two would have one name.
    """
    if isinstance(systems, Mapping) and not isinstance(systems, Run) and not _is_run(systems):
        found = {str(name): system for name, system in systems.items()}
    else:
        given = systems if isinstance(systems, list | tuple) else [systems]
        names = list(map(_name, given))
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"two systems are called {twice[0]!r}", "Name them: {'first': …, 'second': …}")
        found = dict(zip(names, given, strict=True))
    if not found:
        raise InputError("there is no system", "Give one, for example bm25.")
    runs = {name: Path(one) if _is_path_of_run(one) else as_run(one, name) for name, one in found.items()}
    return found | {name: run for name, run in runs.items() if run is not None}


def check(systems: Mapping[str, System]) -> None:
    """Finds mistakes before the slow work begins.

    Raises:
        InputError: A name is not allowed, or a system or a file does not exist.
    """
    for name, system in systems.items():
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot name a system: files and runs get the same name",
                "Use up to 40 letters, digits and . _ + @ - only.",
            )
        if isinstance(system, str):
            Recipe.load(system)
        if isinstance(system, Path) and not system.is_file():
            what = "is no plain file" if system.exists() else "does not exist: there is no run of this name"
            raise InputError(f"{system} {what}", "Give a TREC run file.")


def _is_run(systems: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a run in memory, and not systems by name."""
    answers = list(systems.values())
    return any(isinstance(answer, Mapping) and answer for answer in answers) and all(
        isinstance(answer, Mapping) and all(isinstance(score, Real) for score in answer.values()) for answer in answers
    )


def _is_path_of_run(system: System) -> bool:
    """Whether a string is the path of a run: recipes have no ending, or .toml."""
    return isinstance(system, str) and Path(system).suffix in _RUN_SUFFIXES


def _name(system: System) -> str:
    match system:
        case str() | Path():
            path = Path(system)
            return path.stem if path.suffix in (*_RUN_SUFFIXES, ".toml") else path.name
        case Recommender():
            return "recommender"
        case Run():
            return system.name
        case Mapping():
            return "run"
        case _:
            return getattr(system, "__name__", type(system).__name__)
