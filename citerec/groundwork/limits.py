"""How many bad records a source may have: one rule for all work that reads records."""

ALWAYS_ALLOWED = 20
REMEDY = "Correct the source. More, but never all, are allowed with --max-bad 0.5"


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
