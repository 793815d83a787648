"""Drawing with settings of one's own: those of matplotlib are of the whole process, so one thread draws at a time."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_DRAWING = threading.RLock()


@contextlib.contextmanager
def drawing_style(style: Any) -> Iterator[None]:
    """Draws with some settings of matplotlib, by their names."""
    import matplotlib as mpl

    with _DRAWING, mpl.rc_context(style):
        yield
