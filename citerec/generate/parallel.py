"""Work in several threads, such as asking a server: results in order, and no waiting without need."""

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

    The first error ends it, wherever in the order it stands; so do Ctrl-C and a caller that takes no more. Running work
    is not waited for, not even at the end of the process: the threads are daemons, unlike those of
    `concurrent.futures`.

    Args:
        work: Called in several threads at once. Its error is raised after the results up to the first gap.
        items: Read as needed, at most twice as many as threads ahead.
        threads: How many at most.
    """
    orders: queue.SimpleQueue[tuple[int, Item] | None] = queue.SimpleQueue()
    outcomes: queue.SimpleQueue[tuple[int, Made] | BaseException] = queue.SimpleQueue()

    def serve() -> None:
        for number, item in iter(orders.get, None):
            try:
                outcomes.put((number, work(item)))
            except BaseException as error:  # it belongs to who asked for the work
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
