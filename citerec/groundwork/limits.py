"""How large a record may be, and how many bad ones a source may have: one rule for all work that reads records."""

import functools
import os

from citerec.errors import InputError

RECORD_BYTES = "CITEREC_MAX_RECORD_BYTES"
"""Name of the environment variable with the most bytes of text that a record may have; 1,000,000 by default."""
FULL_TEXT_BYTES = 100_000_000
"""How long a line with full texts may be. One with the texts of all papers that a section cites has tens of MB."""
_DEFAULT = "1000000"
# A source writes more than is kept: identifiers, affiliations, references, markup.
_WRITTEN = 20

ALWAYS_ALLOWED = 20
REMEDY = "Correct the source. More, but never all, are allowed with --max-bad 0.5"


def record_bytes() -> int:
    """How many bytes of text a record may have; an InputError if the environment says no number."""
    return _bytes(os.environ.get(RECORD_BYTES, _DEFAULT))


def line_bytes() -> int:
    """How many bytes a record may have as it is written, with what is not kept of it; errors as for `record_bytes`."""
    return _WRITTEN * record_bytes()


@functools.cache
def _bytes(stated: str) -> int:
    if not (stated.isascii() and stated.isdigit() and int(stated[:18])):
        raise InputError(f"{RECORD_BYTES} is no number of bytes: {stated!r:.60}", f"Set it to one such as {_DEFAULT}.")
    return int(stated[:18])


def too_many_bad(what: str, bad: int, total: int, max_bad: float, *, whole: float | None = None) -> str:
    """What to say if too many records are bad; empty if few enough are.

    Too many are more than 20 and more than the allowed share; or all of them. If that share is 0, one is too many.

    Args:
        what: What is counted, in the plural.
        bad: How many of them are bad.
        total: How many were read.
        max_bad: The share that is allowed, 0 to 1.
        whole: How many there will be, about, while there are more to read.
    """
    expected = total if whole is None else whole
    counts = f"{bad:,} of {total:,} {what} are bad"
    if bad > max(ALWAYS_ALLOWED if max_bad else 0, max_bad * expected):
        return f"{counts}, more than {max_bad:.0%}"
    return f"{counts}: none is good" if whole is None and 0 < bad == total else ""
