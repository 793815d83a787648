"""Work shard by shard: several processes, each result kept with a checksum, nothing done twice."""

import contextlib
import functools
import hashlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from citerec.errors import BuildError, InputError
from citerec.groundwork.processors import available_processors

Work = Callable[[Path, Path, Mapping[str, Any]], Mapping[str, Any]]
"""Reads a shard, writes its result to a path, given some parameters; returns counts. A function of a module."""

Told = Callable[[float, float], None]
"""Called with bytes of shards done, and bytes of all."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a shard gave.

    Attributes:
        shard: The shard.
        path: The file that its work wrote.
        counts: What its work counted.
    """

    shard: Path
    path: Path
    counts: Mapping[str, Any]


def run_stage(
    folder: Path,
    shards: Sequence[Path],
    work: Work,
    parameters: Mapping[str, Any],
    *,
    workers: int | None = None,
    on_progress: Told = lambda _done, _whole: None,
) -> list[Result]:
    """The results for some shards, in their order. Those that a folder has already are taken from there.

    A result counts as had if the shard has the same name, size and time as then, the parameters and citerec itself are
    the same, and the file is the one whose checksum was noted.

    Args:
        folder: Where results are kept.
        shards: The shards.
        work: What to do with each; must give the same bytes for the same shard and parameters.
        parameters: What the result depends on besides the shard, as JSON has it.
        workers: Processes; as many as there are processors where None.
        on_progress: Called as the work goes on.

    Raises:
        BuildError: A process died.
        CiterecError: What the work raises.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [shard.stat().st_size for shard in shards]
    names = [_name(shard, work, parameters) for shard in shards]
    results: dict[int, Result] = {}
    for number, (shard, name) in enumerate(zip(shards, names, strict=True)):
        if (counts := _had(folder, name)) is not None:
            results[number] = Result(shard, folder / name, counts)
    todo = [number for number in range(len(shards)) if number not in results]
    on_progress(sum(sizes[number] for number in results), sum(sizes))
    for number, counts in _run(todo, folder, shards, names, work, parameters, workers):
        results[number] = Result(shards[number], folder / names[number], counts)
        on_progress(sum(sizes[done] for done in results), sum(sizes))
    return [results[number] for number in range(len(shards))]


@contextlib.contextmanager
def alone_in(work: Path, busy: str) -> Iterator[None]:
    """Keeps a folder of kept work to one process; it is made where it is not there.

    Args:
        work: The folder.
        busy: What to say if another process is at work there.

    Raises:
        BuildError: Another process is.
        InputError: Nothing can be written there.
    """
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = FileLock(work / "lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise BuildError(busy, "Wait for it, or stop it.") from None
    except OSError as error:
        raise InputError(f"cannot write {work}: {error.strerror or error}", "Give another --out.") from error
    try:
        yield
    finally:
        lock.release()


def digest_of(value: Any) -> str:
    """A short digest of a JSON value."""
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def identity(path: Path) -> list[Any]:
    """What tells whether a file is still the one that was read: place, size, time of change."""
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def _name(shard: Path, work: Work, parameters: Mapping[str, Any]) -> str:
    return digest_of([identity(shard), work.__module__, work.__qualname__, dict(parameters), _code()])


@functools.cache
def _code() -> str:
    """A digest of citerec's own code: a result of other code is not taken for one of this."""
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(Path(__file__).parents[1].rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _receipt(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _had(folder: Path, name: str) -> Mapping[str, Any] | None:
    try:
        receipt = orjson.loads(_receipt(folder, name).read_bytes())
        if receipt["checksum"] == _checksum(folder / name):
            counts: Mapping[str, Any] = receipt["counts"]
            return counts
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        pass
    return None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _do(folder: Path, shard: Path, name: str, work: Work, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Does a shard's work; the receipt, written last, makes it count."""
    partial = folder / f"{name}.partial"
    counts = work(shard, partial, parameters)
    checksum = _checksum(partial)
    partial.replace(folder / name)
    written = folder / f"{name}.json.partial"
    written.write_bytes(orjson.dumps({"shard": shard.name, "checksum": checksum, "counts": counts}))
    written.replace(_receipt(folder, name))
    return counts


def _run(
    todo: Sequence[int],
    folder: Path,
    shards: Sequence[Path],
    names: Sequence[str],
    work: Work,
    parameters: Mapping[str, Any],
    workers: int | None,
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    wanted = min(workers or available_processors(), len(todo))
    if wanted <= 1:
        for number in todo:
            yield number, _do(folder, shards[number], names[number], work, parameters)
        return
    others = set(multiprocessing.active_children())
    # spawn: forking a process that may hold a Java machine and its threads is not safe.
    pool = ProcessPoolExecutor(wanted, mp_context=multiprocessing.get_context("spawn"), initializer=begin_worker)
    try:
        with ctrl_c_held():
            waiting: dict[Future[Mapping[str, Any]], int] = {
                pool.submit(_do, folder, shards[number], names[number], work, parameters): number for number in todo
            }
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield waiting.pop(future), future.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise BuildError(
            "a process that read the shards died",
            "Was there too little memory? Run again with --workers 1: it goes on where it stopped.",
        ) from None
    finally:
        # Whoever stops the work does not wait for the shards that are half done.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()


@contextlib.contextmanager
def ctrl_c_held() -> Iterator[None]:
    """Holds Ctrl-C back while processes are begun: they inherit that, and hear of none before they can ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """What a process that reads shards does first: it leaves Ctrl-C to its parent, and leaves when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that is killed cannot end its children: they must see it themselves."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
