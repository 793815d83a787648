"""What stands near the marker: the part of the sentence that is about it, and the names before it."""

import re

from citerec.contexts.topic import Topic, clean
from citerec.records import MARKER

_LONGEST = 12
_FEWEST = 3
# Where the part of another citation ends: "[3]", "[…]" (another marker of a draft), "(Smith, 2010)", "Smith (2010)",
# and the space before a comma or full stop where a citation was taken out.
_OTHER = re.compile(r"\[\s?(?:\d{1,4}[^\]]{0,100}|…)\]|\([^()]{0,200}(?:1[89]|20)\d\d[a-z]?\)|(?<=\w)\s[,;.](?=\s|$)")
_CLAUSE = re.compile(r"[;:]\s|,\s")


def words_near(text, longest=_LONGEST, fewest=_FEWEST, clause=False, other=True, after=True):
    before, _, behind = text.partition(MARKER)
    parts = [before]
    if other:
        parts = _OTHER.split(before)
    if clause:
        parts = [p for one in parts for p in _CLAUSE.split(one)]
    near = []
    # the last part with words
    for part in reversed(parts):
        near = clean(part).split()[-longest:]
        if len(near) >= fewest:
            return " ".join(near)
        break
    if after:
        ends = [m.start() for pattern in ((_OTHER,) if other else ()) + ((_CLAUSE,) if clause else ()) if (m := pattern.search(behind, 1))]
        near = near + clean(behind[: min(ends, default=len(behind))]).split()[: longest - len(near)]
    return " ".join(near)
