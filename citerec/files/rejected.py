"""Records that are set aside: how large one may be, and how many bad ones a source may have."""

import os

from citerec.errors import BuildError, InputError

RECORD_BYTES = "CITEREC_MAX_RECORD_BYTES"
"""Name of the environment variable with the most bytes of text that a record may have; 1,000,000 by default."""
FULL_TEXT_BYTES = 100_000_000
"""How long a line with full texts may be. One with the texts of all papers that a section cites has tens of MB."""
_DEFAULT = "1000000"
# A source writes more than is kept: identifiers, affiliations, references, markup.
_WRITTEN = 20

ALWAYS_ALLOWED = 20
_SOON = 1000  # records after which mostly bad ones stop the work early
REMEDY = "Correct the source. More, but never all, are allowed with --max-bad 0.5"


def record_bytes() -> int:
    """How many bytes of text a record may have; an InputError if the environment says no number."""
    stated = os.environ.get(RECORD_BYTES, _DEFAULT)
    if not (stated.isascii() and stated.isdigit() and int(stated[:18])):
        raise InputError(f"{RECORD_BYTES} is no number of bytes: {stated!r:.60}", f"Set it to one such as {_DEFAULT}.")
    return int(stated[:18])


def line_bytes() -> int:
    """How many bytes a record may have as it is written, with what is not kept of it; errors as for `record_bytes`."""
    return _WRITTEN * record_bytes()


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
