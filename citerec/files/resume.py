"""Resuming interrupted work: results are used again if inputs, parameters and the version of the step are the same.

There are two forms. A `Journal` keeps notes of one piece of work in its folder, which is emptied for another one. A
stage (`run_stage`) keeps the results of many shards, even of several plans, in a folder, each with a checksum. A step
states its own version, which is increased when the same input would give another result.
"""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.files.addresses import client_failures, is_address
from citerec.files.hashing import digest_of, file_digest, identity
from citerec.files.parallel import Parallelism, outcomes_of
from citerec.files.writing import remove, write_json, writing_file
from citerec.version import __version__

JOURNAL = "journal.json"


class Journal:
    """Notes of one piece of work, kept in its folder, which is emptied if it belongs to another plan.

    A plan is everything that the result depends on, as a JSON object; the version of citerec is added.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self.folder = folder
        self._notes = read_json(folder / JOURNAL) or {}
        stated = orjson.loads(orjson.dumps({"citerec": __version__, **plan}))
        if self._notes.get("plan") != stated:
            remove(folder)
            folder.mkdir(parents=True)
            self._notes = {}
            self.note(plan=stated)

    def get(self, name: str) -> Any:
        """A note; None if there is none."""
        return self._notes.get(name)

    @property
    def done(self) -> list[Any]:
        """The parts of the work that `finish` noted."""
        return self._notes.get("done") or []

    def finish(self, part: Any) -> None:
        """Notes that a part of the work is done."""
        self.note(done=[*self.done, part])

    def note(self, **notes: Any) -> None:
        """Writes notes, durably and all at once."""
        self._notes |= notes
        write_json(self.folder / JOURNAL, self._notes)


def forget(folder: Path) -> None:
    """Removes the notes of a journal after the work is done; only its result stays."""
    (folder / JOURNAL).unlink(missing_ok=True)


Work = Callable[[Path, Path, Mapping[str, Any]], Mapping[str, Any]]
"""Reads a shard, writes its result to a path, given some parameters; returns counts. A function of a module."""


@dataclass(frozen=True, slots=True)
class Step:
    """Some work on shards: the same shard, parameters and version must give the same bytes."""

    work: Work
    version: int


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a shard: the file that its work wrote, and its counts."""

    shard: Path
    path: Path
    counts: Mapping[str, Any]


@client_failures()
def run_stage(
    folder: Path,
    shards: Sequence[Path],
    step: Step,
    parameters: Mapping[str, Any],
    *,
    workers: Parallelism = None,
    on_progress: Callable[[float, float], None] = lambda _done, _whole: None,
) -> list[Result]:
    """The results for some shards, in their order. Those that are already in the folder are taken from there.

    A result is there already if the shard has the same place, size and time, the parameters and the versions of the
    step and of citerec are the same, and the file has the checksum that was noted.

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
    names = [_name(shard, step, parameters) for shard in shards]
    results: dict[int, Result] = {}
    for number, (shard, name) in enumerate(zip(shards, names, strict=True)):
        receipt, path = read_json(folder / f"{name}.json") or {}, folder / name
        with contextlib.suppress(OSError):
            counts = receipt.get("counts")
            if isinstance(counts, dict) and receipt.get("checksum") == file_digest(path):
                results[number] = Result(shard, path, counts)
    todo = [number for number in range(len(shards)) if number not in results]
    on_progress(sum(sizes[number] for number in results), sum(sizes))
    tasks = [(shards[number], names[number]) for number in todo]
    for place, counts in outcomes_of(functools.partial(_do, folder, step.work, parameters), tasks, workers):
        number = todo[place]
        results[number] = Result(shards[number], folder / names[number], counts)
        on_progress(sum(sizes[done] for done in results), sum(sizes))
    return [results[number] for number in range(len(shards))]


def _name(shard: Path, step: Step, parameters: Mapping[str, Any]) -> str:
    stated = [step.work.__module__, step.work.__qualname__, step.version, __version__]
    return digest_of([identity(shard), stated, dict(parameters)])


def _do(folder: Path, work: Work, parameters: Mapping[str, Any], task: tuple[Path, str]) -> Mapping[str, Any]:
    """Does a shard's work; the receipt, written last, makes the result valid."""
    shard, name = task
    with writing_file(folder / name) as partial:
        counts = work(shard, partial, parameters)
        checksum = file_digest(partial)
    write_json(folder / f"{name}.json", {"shard": shard.name, "checksum": checksum, "counts": counts})
    return counts


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None if there is none, or it is incomplete."""
    with contextlib.suppress(OSError, orjson.JSONDecodeError):
        value = orjson.loads(path.read_bytes())
        return value if isinstance(value, dict) else None
    return None
