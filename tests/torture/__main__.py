"""Treats citerec badly for a set time: `make torture`, or `python -m tests.torture --seconds 1200 --seed 0`.

Commands are killed at random moments and at renames and deletes; an index is built again under its readers. What is
found is printed with what repeats it; the exit status is 1 then.
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.torture.parts import Tally, Trials, race


def torture(seconds: float, seed: int, work: Path) -> Tally:
    """What was tried in so many seconds, and the faults found; each part has one turn at least.

    A seed tries the same things in the same order.
    """
    draws, tally = random.Random(seed), Tally()
    trials = Trials(work, tally)
    parts = (trials.kill, trials.crash, lambda draws: race(work, tally, draws))
    until = time.monotonic() + seconds
    for turn in itertools.count():
        if turn >= len(parts) and time.monotonic() > until:
            break
        parts[turn % len(parts)](draws)
    return tally


def main() -> None:
    """Reads the options, and prints what was found."""
    options = argparse.ArgumentParser(prog="python -m tests.torture", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seconds", type=float, default=1200, help="how long (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="seed of all random choices (default: %(default)s)")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        tally = torture(given.seconds, given.seed, Path(work))
    print(tally)
    sys.exit(1 if tally.faults else 0)


if __name__ == "__main__":
    main()
