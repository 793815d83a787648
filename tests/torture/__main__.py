"""Treats citerec badly for a set time: `make torture`, or `python -m tests.torture --seconds 1200 --seed 0`.

Commands are killed at random moments and at every rename and delete; readers get damaged inputs; an index is built
again under its readers; disks become full. What is found is printed with what repeats it; the exit status is 1 then.
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from tests.conftest import DEMO
from tests.torture.commands import call
from tests.torture.disk import FullDisk
from tests.torture.kills import Crashes, Kills
from tests.torture.mutations import SAMPLES, Mutations, Reader, with_results
from tests.torture.race import Race
from tests.torture.tally import Tally
from tests.torture.trials import Trials


class Part(Protocol):
    """A way to treat citerec badly."""

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Does so for some seconds, and counts."""


PARTS = ("kills", "crashes", "mutations", "race", "disk")


def torture(seconds: float, seed: int, work: Path, chosen: Sequence[str] = PARTS) -> Tally:
    """What was tried in so many seconds, and the faults found; each part has one turn at least.

    A seed tries the same things in the same order.
    """
    draws, tally = random.Random(seed), Tally()
    for name in ("trials", "mutations", "race", "demo"):
        (work / name).mkdir()
    trials = Trials(work / "trials")
    parts: dict[str, Callable[[], Part]] = {
        "kills": lambda: Kills(trials),
        "crashes": lambda: Crashes(trials),
        "mutations": lambda: Mutations(work / "mutations", SAMPLES | _written(work / "demo")),
        "race": lambda: Race(work / "race"),
        "disk": lambda: FullDisk(trials),
    }
    opened = [parts[name]() for name in chosen]
    until = time.monotonic() + seconds
    for turn, part in enumerate(itertools.cycle(opened)):
        if turn >= len(opened) and time.monotonic() > until:
            return tally
        part.turn(draws, tally)
    raise AssertionError("a cycle does not end")


def _written(folder: Path) -> dict[str, tuple[bytes, Reader]]:
    """Samples of what citerec itself writes."""
    contexts = DEMO / "contexts.jsonl"
    call(folder, "index", "build", DEMO, "--out", "index")
    call(folder, "eval", "--contexts", contexts, "--index", "index", "--system", "bm25", "--out", "results")
    return with_results(folder / "index", folder / "results")


def main() -> None:
    """Reads the options, and prints what was found."""
    options = argparse.ArgumentParser(prog="python -m tests.torture", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seconds", type=float, default=1200, help="how long (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="seed of all random choices (default: %(default)s)")
    options.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    options.add_argument("--out", type=Path, help="write the counts and faults as JSON here")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        tally = torture(given.seconds, given.seed, Path(work), given.part or PARTS)
    print(tally)
    if given.out:
        tally.write(given.out)
    sys.exit(0 if tally.sound else 1)


if __name__ == "__main__":
    main()
