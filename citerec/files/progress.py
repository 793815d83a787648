"""Progress of long work: callbacks by which it is reported, and how it is shown on standard error."""

import contextlib
import time
from collections.abc import Callable, Iterator

Progress = Callable[[str, float, float], None]
"""Called with (name of the current work, amount done, total amount)."""

Note = Callable[[str], None]
"""Called with one line of further information at a time."""

_LINE_EVERY = 30.0  # seconds, where the output is piped


def no_progress(_doing: str, _done: float, _whole: float) -> None:
    """Does nothing."""


def no_note(_line: str) -> None:
    """Does nothing."""


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """Shows what is done, the rate and the time left: as bars in a terminal, as a line now and then in a pipe."""
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Done(rich.ProgressColumn):
        """How much is done, and how fast: megabytes while reading, else items."""

        def render(self, task: rich.Task) -> Text:
            form = (lambda number: f"{number / 1e6:,.1f} MB") if task.description == "reading" else "{:,.0f}".format
            of = f" of {form(task.total)}" if task.total and task.total > 1 else ""
            rate = f", {form(task.speed)}/s" if task.speed else ""
            return Text(f"{form(task.completed)}{of}{rate}" if of or rate else "")

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    name, bar_column = rich.TextColumn("{task.description:<18}", markup=False), rich.BarColumn(bar_width=24)
    columns = (name, bar_column, Done(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
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
