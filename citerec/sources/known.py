"""What a web service knows of a paper. Apart from `look_up`, which takes a while to import."""

from typing import NamedTuple

from citerec.records import Paper


class Notice(NamedTuple):
    """What was said of a paper after it was published.

    Attributes:
        kind: `retraction`, `correction` or `concern`.
        address: Where it stands; empty if that is not known.
        source: Who says so.
    """

    kind: str
    address: str
    source: str


class Known(NamedTuple):
    """A record of a service: the paper, and the notices about it."""

    paper: Paper
    source: str
    notices: tuple[Notice, ...] = ()
