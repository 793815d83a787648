"""Whether the time that something takes grows as its text does."""

import time
from collections.abc import Callable

_LONGER, _BOUND = 8, 24  # a linear one takes 8 times as long, a quadratic one 64 times
_TOO_SHORT = 0.0005  # seconds: less is as much the clock's as the work's


def assert_linear(work: Callable[[str], object], text: Callable[[int], str], times: int) -> None:
    """Fails where some work takes far more than eight times as long for a text that is eight times as long.

    The time is the processor's, so that other processes do not count, and the least of several tries. One that
    backtracks worse than quadratically ends by the time limit of every test.

    Args:
        work: What is measured.
        text: Gives a text whose length grows with a number.
        times: The larger number.
    """

    def cost(number: int) -> float:
        made = text(number)
        begun = time.thread_time()
        work(made)
        return time.thread_time() - begun

    short = long = float("inf")
    for _ in range(5):
        short, long = min(short, cost(times // _LONGER)), min(long, cost(times))
        if long <= _BOUND * max(short, _TOO_SHORT):
            return
    raise AssertionError(f"{long:.4f} s for a text {_LONGER} times as long as one that took {short:.4f} s")
