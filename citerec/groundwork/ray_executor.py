"""The executor on Ray: one task for each item, which Ray gives to another process when the first one dies.

Ray Data was considered. It moves blocks of rows between operators, and decides itself how they are cut and written;
here each shard has one output file and one receipt, and the rows stay inside the task. Tasks of Ray Core say just that.
"""

import contextlib
import ctypes
import itertools
import os
import platform
import queue
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil

from citerec.errors import InputError, ServiceError
from citerec.groundwork.executors import Work
from citerec.groundwork.processes import ProcessDiedError, available_processors, portable
from citerec.version import __version__

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

LOCAL = "ray"
_CLIENT = "ray://"
_RETRIES = 3  # of one item, after the process or the machine that worked on it died
_AHEAD = 4  # outcomes of a task that wait for the reader; then the task waits
_STORE_BYTES = 256 << 20  # of a local Ray: outcomes are small
_PATIENCE = 5.0  # seconds until an address counts as dead
_FOLDER = "citerec-ray-"
_OLD = 86_400  # seconds; the processes of a container that shares the folder cannot be seen from here
_LONGEST = 20  # characters of the folder for temporary files: a socket's name has 107 at most, of which Ray needs 60
_MADE, _FAILED, _END = range(3)
_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_SIGACTION_BYTES = 1024  # more than any system's `struct sigaction`, which is copied as it is


@contextlib.contextmanager
def ray_executor(place: str, workers: int | None = None) -> Iterator["RayExecutor"]:
    """Connects to Ray, or starts one for this block; errors as for `executor_on`. A Ray that the caller opened stays.

    Args:
        place: `ray`, `ray://HOST:PORT`, or `HOST:PORT`.
        workers: How many items are worked on at once; by default as many as the cluster has processors.
    """
    ray = _imported()
    with contextlib.ExitStack() as stack:
        if not (place == LOCAL and ray.is_initialized()):
            with _faults_handled_as_before():
                _connect(ray, place, workers, stack)
            stack.callback(_shut_down, ray)
            stack.enter_context(_ended_by_sigterm())
        executor = RayExecutor(ray, workers)
        _check_versions(ray, place)
        yield executor


def _shut_down(ray: Any) -> None:
    with _faults_handled_as_before():
        ray.shutdown()


@contextlib.contextmanager
def _faults_handled_as_before() -> Iterator[None]:
    """Puts back what handled faults of memory: Ray replaces it when it starts, and removes it when it ends.

    A Java machine in this process uses such faults for its own work, and would die of the next one.
    """
    if not hasattr(libc := ctypes.CDLL(None), "sigaction"):
        yield
        return
    before = {number: ctypes.create_string_buffer(_SIGACTION_BYTES) for number in _FAULTS}
    for number, action in before.items():
        libc.sigaction(number, None, action)
    try:
        yield
    finally:
        for number, action in before.items():
            libc.sigaction(number, action, None)


class RayExecutor:
    """Work as tasks of Ray; see `Executor`. A task runs in the folder of the command, if its machine has one of it."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        from ray.util.client import ray as client

        self._ray, self._workers, self._through_client = ray, workers, client.is_connected()  # type: ignore[no-untyped-call]

    def outcomes(
        self, work: Work[Item, Outcome], items: Iterable[Item], *, gpus: float = 0
    ) -> Generator[tuple[int, Outcome]]:
        """As `Executor.outcomes`."""
        given = (work, items, self._workers, gpus, str(Path.cwd()))
        try:
            yield from self._relayed(*given) if self._through_client else _outcomes(self._ray, *given)
        except self._ray.exceptions.RayError as error:
            raise ProcessDiedError(
                f"Ray could not finish the work ({_reason(error)})",
                "Was there too little memory, or did the cluster end? Run again: what was saved is not done again.",
            ) from error

    def _relayed(self, work: Work[Any, Any], items: Iterable[Any], *settings: Any) -> Generator[tuple[int, Any]]:
        """Through Ray Client, which has no generators of tasks: an actor on the cluster asks for the outcomes.

        It gets the items one by one, when it wants them: all together they may be larger than memory.
        """
        ray = self._ray
        remaining = itertools.chain(((_MADE, item) for item in items), [(_END, None)])
        relay = ray.remote(num_cpus=0, max_concurrency=2)(_Relay).remote(work, *settings)
        try:
            coming, giving = relay.come.remote(), [relay.give.remote(*next(remaining))]
            while True:
                ready = ray.wait([coming, *giving])[0]
                if coming not in ready:
                    giving = [relay.give.remote(*given) for given in itertools.islice(remaining, 1)]
                    continue
                kind, value = ray.get(coming)
                if kind == _END:
                    return
                if kind == _FAILED:
                    raise value
                yield value
                coming = relay.come.remote()
        finally:
            with contextlib.suppress(Exception):  # the connection may be gone
                ray.kill(relay)


class _Relay:
    """Holds the outcomes of some work on the cluster, for a driver that is not part of it."""

    def __init__(self, work: Work[Any, Any], *settings: Any) -> None:
        import ray

        self._given: queue.Queue[tuple[int, Any]] = queue.Queue(1)
        items = (item for _, item in iter(self._given.get, (_END, None)))
        self._outcomes = _outcomes(ray, work, items, *settings)

    def give(self, kind: int, item: Any) -> None:
        """Takes the next item, when there is room for it; or the end of them."""
        self._given.put((kind, item))

    def come(self) -> tuple[int, Any]:
        """The next outcome, waiting for it; an error of the work; or the end."""
        import ray

        try:
            for outcome in self._outcomes:
                return _MADE, outcome
        except ray.exceptions.RayError:
            raise
        except Exception as error:
            return _FAILED, portable(error)
        return _END, None


def _outcomes(
    ray: Any, work: Work[Any, Any], items: Iterable[Any], workers: int | None, gpus: float, folder: str
) -> Generator[tuple[int, Any]]:
    """Starts a task for each item, no more than are wanted at once, and yields what they yield."""
    task = ray.remote(
        num_returns="streaming",
        max_retries=_RETRIES,
        max_calls=0,  # a process stays for the next item, with GPUs too: it has loaded its model
        num_gpus=gpus if ray.cluster_resources().get("GPU") else 0,
        scheduling_strategy="SPREAD",
        _generator_backpressure_num_objects=_AHEAD,
    )(_each)
    remaining = enumerate(items)
    running: dict[Any, int] = {}
    try:
        while True:
            wanted = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))  # a cluster may grow
            while len(running) < wanted and (given := next(remaining, None)):
                running[task.remote(work, given[1], folder)] = given[0]
            if not running:
                return
            for stream in ray.wait(list(running))[0]:
                number = running.pop(stream)
                if come := next(stream, None):
                    running[stream] = number  # now the last: all tasks have their turn
                    kind, value = ray.get(come)
                    if kind == _FAILED:
                        raise value
                    yield number, value
    finally:
        for stream in running:
            with contextlib.suppress(Exception):  # it may have ended meanwhile
                ray.cancel(stream, force=True)


def _each(work: Callable[[Any], Any], item: Any, folder: str) -> Iterator[tuple[int, Any]]:
    """A task. An error of the work is an outcome: Ray's own errors are about its processes then."""
    with contextlib.suppress(OSError):  # a machine of a cluster may not have it
        os.chdir(folder)
    try:
        for outcome in work(item):
            yield _MADE, outcome
    except Exception as error:
        if not Path(folder).is_dir():
            error = InputError(
                f"{getattr(error, 'message', error)}. This happened on {socket.gethostname()}, which has no {folder}",
                "The machines of a cluster share a disk, or inputs and --work are addresses: s3://… (docs/cluster.md).",
            )
        yield _FAILED, portable(error)


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns of a change to come
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # or it prints about dead processes, on standard output
    if Path("~/.ray/auth_token").expanduser().exists():  # `ray start` uses it, but those who connect must be told to
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed", "pip install 'citerec[ray]'") from error
    return ray


def _connect(ray: Any, place: str, workers: int | None, stack: contextlib.ExitStack) -> None:
    """Starts a Ray of this machine, or connects to a cluster."""
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    if place == LOCAL:
        folder = _short_folder()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        with _silence():
            ray.init(
                "local",
                num_cpus=workers or available_processors(),
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                _temp_dir=folder,
                **quiet,
            )
        return
    _check_address(place)
    try:
        with _silence():
            ray.init(place, **quiet)
    except Exception as error:  # of gRPC, of Ray, of its client: each has its own
        raise ServiceError(
            f"cannot use the Ray cluster at {place} ({_reason(error)})",
            f"It needs Python {platform.python_version()}, Ray {ray.__version__} and citerec {__version__} everywhere.",
        ) from error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps what Ray's C++ parts write to stderr from the user: its errors are raised as well."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _short_folder() -> str:
    """A new folder for Ray's logs and sockets, named by this process. Those of killed processes go after a day."""
    given = Path(tempfile.gettempdir())
    place = given if len(str(given)) <= _LONGEST else Path("/tmp")
    for folder in place.glob(f"{_FOLDER}*"):
        owner = folder.name.removeprefix(_FOLDER).partition("-")[0]
        with contextlib.suppress(OSError):
            is_old = time.time() - folder.stat().st_mtime > _OLD
            if is_old and owner.isdecimal() and not psutil.pid_exists(int(owner)):
                shutil.rmtree(folder, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-", dir=place)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends this process in order, so that its Ray ends too. Ray's own handler prints addresses of functions."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _check_address(place: str) -> None:
    """Raises a ServiceError unless somebody listens at an address: Ray itself would try for minutes."""
    host, _, port = place.removeprefix(_CLIENT).rpartition(":")
    if not host or not port.isdecimal():
        raise ServiceError(
            f"--on {place} is no address of Ray", "Give ray, ray://HOST:PORT (Ray Client), or HOST:PORT of a cluster."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ServiceError(
            f"no Ray cluster answers at {place} ({error})", "Start one: ray start --head. Ray Client listens at 10001."
        ) from error


def _check_versions(ray: Any, place: str) -> None:
    """Raises a ServiceError unless the cluster has this version of citerec."""
    try:
        theirs = ray.get(ray.remote(_version).remote())
    except ray.exceptions.RayError as error:
        theirs = f"none ({_reason(error)})"
    if theirs != __version__:
        raise ServiceError(
            f"the Ray cluster at {place} has citerec {theirs}, and this is {__version__}",
            "Install the same version, with the same extras, on all its machines.",
        )


def _version() -> str:
    """A task: the version of citerec where it runs."""
    return __version__


def _reason(error: BaseException) -> str:
    """One line of an error of Ray, whose texts hold tracebacks: the error that the last of them ends with."""
    while isinstance(error, ConnectionError) and error.__cause__:
        error = error.__cause__
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception): ", line)), lines[0])
