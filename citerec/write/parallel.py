"""Work in several threads, such as requests to a server: results in order, without needless waiting."""

import contextlib
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_order(work: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """The results of some work on each item, in the order of the items.

    It ends at the first error, whichever item that is for, at Ctrl-C, and when the caller takes no more. It does not
    wait for running work, not even at the end of the process: the threads are daemons, unlike those of
    `concurrent.futures`.

    Args:
        work: Called in several threads at once. Its error is raised after the results up to the first gap.
        items: Read as needed, at most twice as many as threads ahead.
        threads: Largest number of threads.
    """
    orders: queue.SimpleQueue[tuple[int, Item] | None] = queue.SimpleQueue()
    outcomes: queue.SimpleQueue[tuple[int, Made] | BaseException] = queue.SimpleQueue()

    def serve() -> None:
        for number, item in iter(orders.get, None):
            try:
                outcomes.put((number, work(item)))
            except BaseException as error:  # it is raised in the caller's thread
                outcomes.put(error)

    remaining = enumerate(items)
    made: dict[int, Made] = {}
    asked = 0
    try:
        for number in itertools.count():
            for order in itertools.islice(remaining, number + 2 * threads - asked):
                orders.put(order)
                asked += 1
                if asked <= threads:
                    threading.Thread(target=serve, daemon=True).start()
            if number == asked:
                return
            while number not in made:
                outcome = outcomes.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                made[outcome[0]] = outcome[1]
            yield made.pop(number)
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                orders.get_nowait()
        for _ in range(threads):
            orders.put(None)
