"""How long work reports what it has done."""

from collections.abc import Callable

Progress = Callable[[str, float, float], None]
"""Called with (what is done now, how much of it is done, how much there is)."""


Note = Callable[[str], None]
"""Called with one line at a time of what else there is to know."""


def no_progress(_doing: str, _done: float, _whole: float) -> None:
    """Tells nobody."""


def no_note(_line: str) -> None:
    """Tells nobody."""
