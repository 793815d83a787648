"""Resuming interrupted work: results are used again if inputs, parameters and the version of the step are the same.

There are two forms. A `Journal` keeps notes of one piece of work in its folder, which is emptied for another one. A
stage (`run_stage`) keeps the results of many shards, even of several plans, in a folder. A step
states its own version, which is increased when the same input would give another result. Digests tell what is the same.
"""

import contextlib
import functools
import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.files.addresses import client_failures, is_address
from citerec.files.parallel import Parallelism, outcomes_of
from citerec.files.writing import remove, write_json, writing_file
from citerec.version import __version__


def digest_of(value: Any) -> str:
    """A short digest of a JSON value; the order of keys makes no difference."""
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The digest of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def identity(path: Path) -> list[Any]:
    """Tells whether a file is still the one that was read: path, size, time of change; at an address its ETag."""
    status: Any = path.stat()
    facts = status.as_info() if is_address(path) else {}
    return [str(path.resolve()), status.st_size, facts.get("ETag") or facts.get("etag") or status.st_mtime_ns]


def hash_sample(seed: int, *names: str, between: str = "\0") -> int:
    """A number from 0 to 2^64 that depends only on seed and names, the same on every machine.

    The items with the least numbers are a random sample, and an item keeps its number when others are added. `between`
    joins the names in the digest: published samples must stay the same.
    """
    return int.from_bytes(hashlib.blake2b(between.join((str(seed), *names)).encode(), digest_size=8).digest())


JOURNAL = "journal.json"


class Journal:
    """Notes of one piece of work, kept in its folder, which is emptied if it belongs to another plan.

    A plan is everything that the result depends on, as a JSON object; the version of citerec is added.

    Attributes:
        notes: What was noted, by name.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self.folder = folder
        self.notes = read_json(folder / JOURNAL) or {}
        full_plan = orjson.loads(orjson.dumps({"citerec": __version__, **plan}))
        if self.notes.get("plan") != full_plan:
            remove(folder)
            folder.mkdir(parents=True)
            self.notes = {}
            self.note(plan=full_plan)

    def note(self, **notes: Any) -> None:
        """Writes notes, durably and all at once."""
        self.notes |= notes
        write_json(self.folder / JOURNAL, self.notes)


Named = Mapping[str, Any]
OnBytes = Callable[[float, float], object]
Work = Callable[[Path, Path, Named], Named]
"""Reads a shard, writes its result to a path, given some parameters; returns counts. A function of a module."""


class Step(NamedTuple):
    """Some work on shards: the same shard, parameters and version must give the same bytes."""

    work: Work
    version: int


class Result(NamedTuple):
    """The result of a shard: the file that its work wrote, and its counts."""

    shard: Path
    path: Path
    counts: Named


@client_failures()
def run_stage(
    folder: Path, shards: Sequence[Path], step: Step, parameters: Named, *, workers: Parallelism, on_progress: OnBytes
) -> list[Result]:
    """The results for some shards, in their order. Those that are already in the folder are taken from there.

    A result is there already if the shard has the same place, size and time, the parameters and the versions of the
    step and of citerec are the same.

    Args:
        folder: Where results are kept.
        shards: The shards.
        step: What to do with each.
        parameters: What the result depends on besides the shard, as JSON values.
        workers: Processes, by default as many as processors; or Ray.
        on_progress: Called with bytes of shards done, and bytes of all.

    Raises:
        BuildError: A process died.
        CiterecError: The work raised it.
    """
    if not is_address(folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.absolute()  # a task of a cluster may run elsewhere
    sizes = [shard.stat().st_size for shard in shards]
    step_key = [step.work.__module__, step.work.__qualname__, step.version, __version__]
    tasks = [(shard, folder / digest_of([identity(shard), step_key, dict(parameters)])) for shard in shards]
    results = list(itertools.starmap(_result, tasks))
    todo = [number for number, result in enumerate(results) if not result]
    done = sum(sizes) - sum(sizes[number] for number in todo)
    on_progress(done, sum(sizes))
    work = functools.partial(_do, step.work, parameters)
    for place, result in outcomes_of(work, [tasks[number] for number in todo], workers):
        results[todo[place]] = result
        on_progress(done := done + sizes[todo[place]], sum(sizes))
    return [result for result in results if result]


def _result(shard: Path, path: Path) -> Result | None:
    """The result of a shard, if it is there."""
    counts = (read_json(path.with_name(f"{path.name}.json")) or {}).get("counts")
    return Result(shard, path, counts) if isinstance(counts, dict) and path.exists() else None


def _do(work: Work, parameters: Mapping[str, Any], task: tuple[Path, Path]) -> Result:
    """Does a shard's work; the receipt, written last, makes the result valid."""
    shard, path = task
    with writing_file(path) as partial:
        counts = work(shard, partial, parameters)
    write_json(path.with_name(f"{path.name}.json"), {"shard": shard.name, "counts": counts})
    return Result(shard, path, counts)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None if there is none, or it is incomplete."""
    with contextlib.suppress(OSError, orjson.JSONDecodeError):
        if isinstance(value := orjson.loads(path.read_bytes()), dict):
            return value
    return None
