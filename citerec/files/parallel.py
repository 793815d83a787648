"""Work on many items at once: in processes of this machine, by joblib, or on Ray.

What does the work may die, and then does it again: so a job writes a file beside its place and renames it, and the same
item gives the same bytes.
"""

import contextlib
import ctypes
import itertools
import os
import platform
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from citerec.errors import BuildError, InputError, ServiceError
from citerec.version import __version__

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_TRIES = 3  # of the items that were worked on when a process or a machine died
_PATIENCE = 5.0  # seconds until an address counts as dead
_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_SIGACTION_BYTES = 1024  # more than any system's `struct sigaction`, which is copied as it is


class ProcessDiedError(BuildError):
    """A worker process died."""


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray that `workers_on` has opened; `count` items are worked on at once, by default one for each processor."""

    count: int | None = None


Parallelism: TypeAlias = Ray | int | None
"""Ray; or how many processes of this machine, None for as many as processors."""

HERE = 1
"""This process: for work that uses all processors, or the GPU, by itself."""


def available_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def outcomes_of(
    work: Callable[[Item], Outcome], items: Iterable[Item], workers: Parallelism, *, gpus: float = 0
) -> Generator[tuple[int, Outcome]]:
    """The outcome of some work for each item, with its number, as they come.

    If one process of this machine is enough, it is this one. The first error ends it all.

    Args:
        work: What to do with each item: a function of a module, or a partial of one. Its outcome can be pickled.
        items: The items; the next ones are asked for when a process is free.
        workers: Where the work is done.
        gpus: GPUs that each process of a cluster needs, or a share of one; without meaning where there are none.

    Raises:
        ProcessDiedError: What did the work died, again and again.
        Exception: Whatever the work raises.
    """
    if isinstance(workers, Ray):
        yield from _on_ray(work, items, workers, gpus)
        return
    wanted = workers or available_processors()
    if isinstance(items, Sized):
        wanted = min(wanted, len(items))
    if wanted <= 1:
        yield from enumerate(map(work, items))
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.backend import resource_tracker
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # The processes are used again, for work that is asked for from another folder, or with other keys.
    place = (str(Path.cwd()), dict(os.environ))
    tasks = (delayed(_placed)(work, number, item, *place) for number, item in enumerate(items))
    options: dict[str, Any] = {"batch_size": 1, "max_nbytes": None, "initializer": _begin, "initargs": (os.getpid(),)}
    # First: when it starts, it unblocks Ctrl-C again. It cleans up after a killed command, and need not say so.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker")
    resource_tracker.ensure_running()
    with _ctrl_c_blocked():
        outcomes = Parallel(wanted, return_as="generator_unordered", **options)(tasks)
    try:
        for outcome in outcomes:  # noqa: UP028  `yield from` would close them as well, with a warning
            yield outcome
    except TerminatedWorkerError:
        remedy = "Was there too little memory? Run again with --workers 1: what was saved is not done again."
        raise ProcessDiedError("a worker process died", remedy) from None
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib would tell the user that work was stopped
            outcomes.close()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Blocks Ctrl-C: processes that begin meanwhile inherit this, and leave it to their parent. Not on Windows."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def workers_on(place: str | None, count: int | None = None) -> Iterator[Parallelism]:
    """Opens the workers that a user named, as with `--on`. A Ray that the caller opened stays.

    Args:
        place: None for processes of this machine; `ray` for a Ray that is started here and ends with this block;
            `ray://HOST:PORT` or `HOST:PORT` for a Ray cluster.
        count: How many items are worked on at once; by default as many as there are processors.

    Raises:
        ServiceError: The address is no address, nobody answers there, or the cluster's versions are others.
        InputError: Ray is not installed.
    """
    if place is None:
        yield count
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns of a change to come
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # or it prints about dead processes, on standard output
    if Path("~/.ray/auth_token").expanduser().exists():  # `ray start` uses it, but those who connect must be told to
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed", "pip install 'citerec[scale]'") from error
    is_open = ray.is_initialized()
    try:
        with _faults_handled_as_before():
            _connect(ray, place, count)
        yield Ray(count)
    finally:
        if not is_open:
            with _faults_handled_as_before():
                ray.shutdown()


@contextlib.contextmanager
def _faults_handled_as_before() -> Iterator[None]:
    """Puts back what handled faults of memory: Ray replaces it when it starts, and removes it when it ends.

    A Java machine in this process uses such faults for its own work, and would die of the next one.
    """
    libc = ctypes.CDLL(None)
    before = {number: ctypes.create_string_buffer(_SIGACTION_BYTES) for number in _FAULTS}
    for number, action in before.items():
        libc.sigaction(number, None, action)
    try:
        yield
    finally:
        for number, action in before.items():
            libc.sigaction(number, action, None)


def _connect(ray: Any, place: str, count: int | None) -> None:
    """Starts a Ray of this machine, unless one is open, or connects to a cluster, which must have this citerec."""
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    if place != "ray":
        host, _, port = place.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()  # Ray would try for minutes
        except (OSError, OverflowError, ValueError) as error:
            remedy = "Start one: ray start --head. Give ray://HOST:10001 (Ray Client), HOST:PORT of a cluster, or ray."
            raise ServiceError(f"no Ray cluster answers at {place} ({error})", remedy) from error
    try:
        if place != "ray":
            ray.init(place, **quiet)
        elif not ray.is_initialized():
            ray.init("local", num_cpus=count or available_processors(), include_dashboard=False, **quiet)
        if (version := ray.get(ray.remote(_version).remote())) != __version__:
            raise ImportError(f"it has citerec {version}")
    except Exception as error:  # of gRPC, of Ray, of its client: each has its own
        needs = f"Python {platform.python_version()}, Ray {ray.__version__} and citerec {__version__}"
        raise ServiceError(f"cannot use Ray at {place} ({_reason(error)})", f"It needs {needs} everywhere.") from error


def _version() -> str:
    return __version__


def _reason(error: BaseException) -> str:
    """The last line of an error of Ray, whose texts hold tracebacks."""
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__).strip()


def _on_ray(work: Callable[[Any], Any], items: Iterable[Any], workers: Ray, gpus: float) -> Generator[tuple[int, Any]]:
    """As `outcomes_of`; Ray itself does again what was not done when a process or a machine died.

    After an error, what runs is not cancelled, but ends by itself or with Ray: a task that is done while it is being
    cancelled makes Ray 2.60 end this process.
    """
    import ray

    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    processors = max(1, int(resources.get("CPU", 1)))
    needed = gpus if resources.get("GPU") else 0
    # A process goes on with the next item, with the models that it has opened, also if it uses a GPU: max_calls.
    remote = ray.remote(max_retries=_TRIES - 1, max_calls=0, num_gpus=needed, scheduling_strategy="SPREAD")
    placed: Any = remote(_placed)
    remaining, running = enumerate(items), list[Any]()
    try:
        while True:
            free = min(workers.count or processors, processors) - len(running)
            running += [placed.remote(work, *task, str(Path.cwd()), {}) for task in itertools.islice(remaining, free)]
            if not running:
                return
            done, running = ray.wait(running)
            yield from ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        remedy = "Was there too little memory, or did the cluster end? Run again: what was saved is not done again."
        raise ProcessDiedError(f"Ray could not finish the work ({_reason(error)})", remedy) from error


def _placed(
    work: Callable[[Item], Outcome], number: int, item: Item, folder: str, environment: Mapping[str, str]
) -> tuple[int, Outcome]:
    """Does the work in the folder of the command, if this machine has one of it, and with its environment."""
    os.environ.update(environment)
    with contextlib.suppress(OSError):
        os.chdir(folder)
    try:
        return number, work(item)
    except Exception as error:
        if Path(folder).is_dir():
            raise
        fault = f"{getattr(error, 'message', error)}. This happened on {socket.gethostname()}, which has no {folder}"
        remedy = "Machines of a cluster share a disk, or inputs and -c work=… are addresses: s3://… (docs/scale.md)."
        raise InputError(fault, remedy) from error


def end_with(parent: int) -> None:
    """Ends this process with its parent: a killed parent cannot end its children."""

    def leave() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


def _begin(parent: int) -> None:
    from joblib.externals.loky import process_executor

    # joblib takes a model that a process has opened for a leak of memory: it would end the process, and begin anew.
    process_executor._MAX_MEMORY_LEAK_SIZE = float("inf")
    end_with(parent)


def in_parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, in order; the last one may be shorter."""
    remaining = iter(items)
    while part := list(itertools.islice(remaining, size)):
        yield part
