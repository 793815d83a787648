"""Types of callbacks by which long work reports its progress."""

from collections.abc import Callable

Progress = Callable[[str, float, float], None]
"""Called with (name of the current work, amount done, total amount)."""


Note = Callable[[str], None]
"""Called with one line of further information at a time."""


def no_progress(_doing: str, _done: float, _whole: float) -> None:
    """Does nothing."""


def no_note(_line: str) -> None:
    """Does nothing."""
