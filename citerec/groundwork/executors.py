"""Executors: where work on many items is done. Processes of this machine, or Ray: this machine's own, or a cluster."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from typing import Protocol, TypeAlias, TypeVar

from citerec.groundwork.processes import Workers, available_processors

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Work: TypeAlias = Callable[[Item], Iterable[Outcome]]


class Executor(Protocol):
    """Does work on items, on several at once."""

    def outcomes(
        self, work: Work[Item, Outcome], items: Iterable[Item], *, gpus: float = 0
    ) -> Generator[tuple[int, Outcome]]:
        """The outcomes of some work for each item, with its number, as they come; those of one item are in order.

        The work is a function of a module, or a partial of one; its outcomes can be pickled. It may be done again if
        what did it died: so it writes beside and renames, and the same item gives the same outcomes. The first error
        ends it all, and so does a caller that closes the generator.

        Args:
            work: What to do with each item.
            items: The items.
            gpus: GPUs that each item needs, or a share of one; without meaning where there are none.

        Raises:
            ProcessDiedError: What did the work died, again and again.
            Exception: Whatever the work raises.
        """
        ...


Parallelism: TypeAlias = Executor | int | None
"""An executor; or how many processes of this machine, None for as many as processors."""

HERE = 1
"""This process: for work that uses all processors, or the GPU, by itself."""


def outcomes_of(
    work: Work[Item, Outcome], items: Iterable[Item], workers: Parallelism, *, gpus: float = 0
) -> Generator[tuple[int, Outcome]]:
    """As `Executor.outcomes`. If one process of this machine is enough, it is this one.

    The next item is asked for when a process is free.
    """
    if workers is not None and not isinstance(workers, int):
        yield from workers.outcomes(work, items, gpus=gpus)
        return
    wanted = workers or available_processors()
    if isinstance(items, Sized):
        wanted = min(wanted, len(items))
    if wanted <= 1:
        yield from ((number, outcome) for number, item in enumerate(items) for outcome in work(item))
        return
    with Workers(wanted) as processes:
        yield from processes.outcomes(work, items)


@contextlib.contextmanager
def executor_on(place: str | None, workers: int | None = None) -> Iterator[Parallelism]:
    """Opens the executor that a user named, as with `--on`.

    Args:
        place: None for processes of this machine; `ray` for a Ray that is started here and ends with this block;
            `ray://HOST:PORT` or `HOST:PORT` for a Ray cluster.
        workers: How many items are worked on at once; by default as many as there are processors.

    Raises:
        ServiceError: The address is no address, nobody answers there, or the cluster's versions are others.
        InputError: Ray is not installed.
    """
    if place is None:
        yield workers
        return
    from citerec.groundwork.ray_executor import ray_executor  # Ray takes a second to import

    with ray_executor(place, workers) as executor:
        yield executor
