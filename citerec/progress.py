"""How long work tells of what it has done."""

from collections.abc import Callable

Progress = Callable[[str, float, float], None]
"""Called with (what is done now, how much of it is done, how much there is)."""


def no_progress(_doing: str, _done: float, _whole: float) -> None:
    """Tells nobody."""
