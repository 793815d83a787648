"""Treats citerec badly for a set time: `make torture`, or `python -m tests.torture --seconds 1200 --seed 0`.

Commands are killed at random moments and at every rename and delete; an index is built again under its readers. What
is found is printed with what repeats it; the exit status is 1 then.
"""

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.torture.parts import Crashes, Kills, Race, Tally, Trials

PARTS = ("kills", "crashes", "race")


def torture(seconds: float, seed: int, work: Path, chosen: Sequence[str] = PARTS) -> Tally:
    """What was tried in so many seconds, and the faults found; each part has one turn at least.

    A seed tries the same things in the same order.
    """
    draws, tally = random.Random(seed), Tally()
    for name in ("trials", "race"):
        (work / name).mkdir()
    trials = Trials(work / "trials")
    parts: dict[str, Callable[[], Any]] = {
        "kills": lambda: Kills(trials),
        "crashes": lambda: Crashes(trials),
        "race": lambda: Race(work / "race"),
    }
    opened = [parts[name]() for name in chosen]
    until = time.monotonic() + seconds
    for turn in itertools.count():
        if turn >= len(opened) and time.monotonic() > until:
            break
        opened[turn % len(opened)].turn(draws, tally)
    return tally


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
        given.out.write_text(json.dumps(asdict(tally), indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if tally.sound else 1)


if __name__ == "__main__":
    main()
