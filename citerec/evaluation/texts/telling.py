"""The texts that say most about the systems that wrote them: those that a page can show."""

import zlib
from dataclasses import dataclass

import numpy as np

from citerec.evaluation.statistics import Floats
from citerec.evaluation.texts.results import TextResults

DIFFER, HARDEST, BY_LOT = "systems differ most", "hardest for all", "drawn by lot"


@dataclass(frozen=True, slots=True)
class Telling:
    """A task whose texts are worth reading.

    Attributes:
        place: Its place among the tasks.
        why: What makes it telling.
    """

    place: int
    why: str


def telling(results: TextResults, most: int = 30) -> list[Telling]:
    """A third where systems differ most, a third where all are worst, and a third by lot, against cherry-picking.

    By the first value that judges; upper bounds do not count. Ties, and the lot, go by a checksum of the task's id:
    always the same ones.

    Args:
        results: Of the evaluation.
        most: How many, at most.
    """
    scores = _judged(results)
    lots = [zlib.crc32(f"{task.dataset}\t{task.task_id}".encode()) for task in results.predictions.tasks]
    known = [place for place in range(len(lots)) if scores.size and not np.isnan(scores[place]).any()]
    by_lot = sorted(range(len(lots)), key=lambda place: (lots[place], place))
    orders = {BY_LOT: by_lot}
    if known:
        means, spreads = scores.mean(axis=1), np.ptp(scores, axis=1)
        orders = {HARDEST: sorted(known, key=lambda place: (means[place], lots[place])), **orders}
        if scores.shape[1] > 1 and (spreads[known] > 0).any():
            orders = {DIFFER: sorted(known, key=lambda place: (-spreads[place], lots[place])), **orders}
    share = -(-most // len(orders))
    chosen: dict[int, str] = {}
    for why, order in orders.items():
        left = [place for place in order if place not in chosen]
        chosen |= dict.fromkeys(left[: min(share, most - len(chosen))], why)
    return [Telling(place, why) for place, why in chosen.items()]


def _judged(results: TextResults) -> Floats:
    """Tasks × systems: the first value that judges, higher is better; without columns where nothing does."""
    column = next((number for number, column in enumerate(results.columns) if column.judges), None)
    systems = [name for name, system in results.systems.items() if not system.upper_bound] or list(results.systems)
    if column is None:
        return np.empty((len(results.predictions.tasks), 0))
    sign = -1 if results.columns[column].better == "lower" else 1
    return sign * np.stack([results.scores[name][:, column] for name in systems], axis=1)
