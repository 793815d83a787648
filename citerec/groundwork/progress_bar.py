"""Progress of long work on standard error: done, rate, time left."""

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec

from rich import progress as rich
from rich.console import Console
from rich.text import Text

from citerec.groundwork.progress import Progress

_BYTES = "reading"


class _Done(rich.ProgressColumn):
    """How much is done, and how fast: megabytes while reading, else items."""

    def render(self, task: rich.Task) -> Text:
        of = f" of {self._amount(task, task.total)}" if task.total and task.total > 1 else ""
        rate = f", {self._amount(task, task.speed)}/s" if task.speed else ""
        return Text(f"{self._amount(task, task.completed)}{of}{rate}" if of or rate else "")

    @staticmethod
    def _amount(task: rich.Task, number: float) -> str:
        return f"{number / 1e6:,.1f} MB" if task.description == _BYTES else f"{number:,.0f}"


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """Shows progress if standard error is a terminal, or the output of a notebook with ipywidgets."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    name, bar_column = rich.TextColumn("{task.description:<18}", markup=False), rich.BarColumn(bar_width=24)
    columns = (name, bar_column, _Done(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
    is_shown = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets"))
    bar = rich.Progress(*columns, console=console, transient=True, disable=not is_shown)
    tasks: dict[str, rich.TaskID] = {}

    def tell(doing: str, done: float, whole: float) -> None:
        if doing not in tasks:
            for task in bar.tasks:
                bar.update(task.id, completed=task.total)  # new work means that the earlier work is done
            tasks[doing] = bar.add_task(doing, total=None)
        bar.update(tasks[doing], completed=done, total=whole or None)

    with bar:
        yield tell
