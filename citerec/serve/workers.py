"""The threads that do the work of requests: a bounded number, with a bounded queue before them."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from citerec.serve.errors import BusyError

Made = TypeVar("Made")


class Workers:
    """Runs functions in threads, and refuses them if too many wait.

    Args:
        threads: How many run at once.
        queue: How many may wait for a thread.
        seconds: How long a caller waits for a result.
    """

    def __init__(self, threads: int, queue: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, "serve")
        self._room = threads + queue
        self._seconds = seconds
        self._pending = 0
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether the next call would be refused."""
        return self._pending >= self._room

    async def run(self, work: Callable[[], Made]) -> Made:
        """The result of a function that runs in a thread.

        A function that takes too long goes on, and holds its thread until it ends: Python cannot stop a thread.

        Raises:
            BusyError: Too many functions wait already, or it took too long.
        """
        with self._lock:
            if self.is_full:
                raise BusyError("too many requests wait already", "Try again in a moment.")
            self._pending += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._ended)
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([waiting], timeout=self._seconds)
        if not done:
            future.cancel()  # it leaves the queue now, if it has not begun; `waiting.cancel()` would do so a turn later
            raise BusyError(f"this took more than {self._seconds:g} seconds", "Send less text, or try again later.")
        return waiting.result()

    def _ended(self, _: "Future[Any]") -> None:
        with self._lock:
            self._pending -= 1

    def close(self) -> None:
        """Waits for the functions that run, and ends the threads; those that wait for a thread are dropped."""
        self._pool.shutdown(cancel_futures=True)
