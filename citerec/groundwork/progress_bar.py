"""Progress of long work on standard error: done, rate, time left."""

import contextlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_BYTES = "reading"


class _Done(ProgressColumn):
    """How much is done, and how fast: megabytes while reading, else items."""

    def render(self, task: Task) -> Text:
        of = f" of {self._amount(task, task.total)}" if task.total and task.total > 1 else ""
        rate = f", {self._amount(task, task.speed)}/s" if task.speed else ""
        return Text(f"{self._amount(task, task.completed)}{of}{rate}" if of or rate else "")

    @staticmethod
    def _amount(task: Task, number: float) -> str:
        return f"{number / 1e6:,.1f} MB" if task.description == _BYTES else f"{number:,.0f}"


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, float, float], None]]:
    """Gives a function to call with (what is done now, how much of it is done, how much there is).

    Silent where standard error is neither a terminal nor the output of a notebook that has ipywidgets.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    bar = Progress(
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=24),
        _Done(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (console.is_terminal or (console.is_jupyter and find_spec("ipywidgets"))),
    )
    tasks: dict[str, TaskID] = {}

    def tell(doing: str, done: float, whole: float) -> None:
        if doing not in tasks:
            for task in bar.tasks:
                bar.update(task.id, completed=task.total)  # what comes next tells that this is over
            tasks[doing] = bar.add_task(doing, total=None)
        bar.update(tasks[doing], completed=done, total=whole or None)

    with bar:
        yield tell
