"""Progress of long work: callbacks by which it is reported, and how it is shown on standard error."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from citerec.errors import BuildError

Item = TypeVar("Item")
Progress = Callable[[str, float, float], None]
"""Called with (name of the current work, amount done, total amount)."""

Note = Callable[[str], None]
"""Called with one line of further information at a time."""

STAGE_WATCHERS: list[Callable[[str, float], object]] = []
"""Called with the name of each stage of each search when it is done, and its seconds: a server counts them."""

_LINE_EVERY = 30.0  # seconds, where the output is piped


def no_progress(_doing: str, _done: float, _whole: float) -> None:
    """Does nothing."""


def no_note(_line: str) -> None:
    """Does nothing."""


def told(items: Iterable[Item], doing: str, on_progress: Progress, whole: float) -> Iterator[Item]:
    """Yields the items, and reports how many were asked for."""
    for done, item in enumerate(items, 1):
        on_progress(doing, done, whole)
        yield item


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Times a stage of a search for `STAGE_WATCHERS`."""
    begun = time.perf_counter()
    yield
    for watch in STAGE_WATCHERS:
        watch(name, time.perf_counter() - begun)


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """Shows what is done, the rate and the time left: as bars in a terminal, as a line now and then in a pipe."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    name, bar_column = rich.TextColumn("{task.description:<18}", markup=False), rich.BarColumn(bar_width=24)
    columns = (name, bar_column, rich.MofNCompleteColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
    is_shown = console.is_terminal and not console.is_jupyter  # notebooks keep each frame of a bar as output
    bar = rich.Progress(*columns, console=console, transient=True, disable=not is_shown)
    tasks: dict[str, rich.TaskID] = {}
    begun, shown = {}, time.monotonic()

    def tell(doing: str, done: float, whole: float) -> None:
        nonlocal shown
        if doing not in tasks:
            for task in bar.tasks:
                bar.update(task.id, completed=task.total)  # new work means that the earlier work is done
            tasks[doing] = bar.add_task(doing, total=None)
            begun[doing] = (time.monotonic(), done)
        bar.update(tasks[doing], completed=done, total=whole or None)
        if not is_shown and (now := time.monotonic()) - shown > _LINE_EVERY:
            shown = now
            since, before = begun[doing]
            left = (now - since) * (whole - done) / (done - before) if whole and done > before else None
            share = f" {done / whole:.0%}" if whole else ""
            console.print(f"{doing}{share}{'' if left is None else f', {left / 60:,.1f} min left'}", markup=False)

    with bar:
        yield tell


ALWAYS_ALLOWED = 20
_SOON = 1000  # records after which mostly bad ones stop the work early
REMEDY = "Correct the source. More, but never all, are allowed with --max-bad 0.5"


def fault_at(file: object, line: int, reason: str) -> str:
    """What is wrong with a record, and where."""
    return f"{file}, line {line}: {reason}"


class Rejected:
    """Counts the records of some work, and those that are set aside.

    Too many are more than 20 and more than the allowed share; or all of them. If that share is 0, one is too many.

    Args:
        max_bad: The share that is allowed, 0 to 1.
        what: What is counted, in the plural.

    Attributes:
        bad: How many are bad.
        good: How many are not.
        first: The first bad one: its file, its line, and the reason.
    """

    def __init__(self, max_bad: float, what: str = "records") -> None:
        self._max_bad, self._what = max_bad, what
        self.bad = self.good = 0
        self.first = ""

    def add(self, good: int = 0, bad: int = 0, first: str = "") -> None:
        """Counts some more records."""
        self.good, self.bad, self.first = self.good + good, self.bad + bad, self.first or first

    def check(self, share_read: float | None = None) -> None:
        """Stops the work as soon as there are more bad records than a source of this size may have.

        Args:
            share_read: How much of the source was read, 0 to 1; None at the end.

        Raises:
            BuildError: There are too many.
        """
        total = self.good + self.bad
        if share_read is not None and (not share_read or total < _SOON):
            return
        counts = f"{self.bad:,} of {total:,} {self._what} are bad"
        fault = f"{counts}: none is good" if share_read is None and 0 < self.bad == total else ""
        if self.bad > max(ALWAYS_ALLOWED if self._max_bad else 0, self._max_bad * total / (share_read or 1)):
            fault = f"{counts}, more than {self._max_bad:.0%}"
        if fault:
            raise BuildError(f"{fault}{f'; the first is {self.first}' * bool(self.first)}", REMEDY)
