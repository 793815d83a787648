"""Who may call the server, and how often: tokens, names of hosts, rates."""

import hmac
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import urlsplit

from citerec.errors import InputError, SettingsError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16
_MOST_CLIENTS = 10_000


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_tokens(file: Path | None, given: str | None) -> tuple[bytes, ...]:
    """The tokens of a file, one a line, or else the given one; empty if there is neither.

    Raises:
        InputError: The file cannot be read, or has no token.
        SettingsError: A token is too short, or not plain ASCII.
    """
    try:
        lines = file.read_text(encoding="utf-8").split() if file else (given or "").split()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the tokens of {file}: {error}", "Give a text file, one token a line.") from error
    if file and not lines:
        raise InputError(f"{file} has no token", "Write one in it, for example from: openssl rand -hex 32")
    for token in lines:
        if len(token) < _LEAST_TOKEN or not token.isascii():
            raise SettingsError(
                f"a token has fewer than {_LEAST_TOKEN} characters, or others than ASCII's",
                "Make one: openssl rand -hex 32",
            )
    return tuple(token.encode() for token in lines)


def token_of(header: str, tokens: Collection[bytes]) -> int | None:
    """Which of the tokens an Authorization header has; None if none. Takes equally long for every wrong token."""
    scheme, _, given = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    sent = given.strip().encode("utf-8", "replace")
    same = [hmac.compare_digest(sent, token) for token in tokens]
    return same.index(True) if any(same) else None


def host_of(header: str) -> str | None:
    """The name in a Host header, without its port; None if it is not a name."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


class Rates:
    """A bucket of requests for each client: it holds `burst`, and fills at `rate` a second.

    Args:
        rate: Requests a second; 0 for no limit.
        burst: Requests that may come at once.
        clock: The time in seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> int:
        """Takes a request from a client's bucket: 0, or after how many seconds to try again if it is empty."""
        if not self._rate:
            return 0
        now = self._clock()
        left, then = self._buckets.pop(client, (float(self._burst), now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._buckets[client] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > _MOST_CLIENTS:  # the one that has been silent for longest
            self._buckets.popitem(last=False)
        return 0 if left >= 1 else math.ceil((1 - left) / self._rate)
