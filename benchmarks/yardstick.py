"""Holds what every part of citerec answers, how good that is, what it costs, and which faults its tests find.

    python benchmarks/yardstick.py answers|figures|cost|faults|all OUT [--work FOLDER]
    python benchmarks/yardstick.py compare OLD NEW

It needs ../shared/data. Each part is written into the folder OUT, as small files; what is made on the way (indexes,
runs) stays in OUT/work, and is not made again: stop it at any time, and repeat the command to go on. `all` leaves out
`faults`, which takes hours.

- answers: the first 100 papers of each system for 300 contexts of data/acl dev, of data/acm dev alone and in the draft;
  sentences; drafts, filled and checked; TLDRs, citation texts, related work. Of texts only digests are kept. Small
  models stand for large ones, and search 3,000 papers of each corpus.
- figures: quality on the whole dev sets, context by context.
- cost: seconds of processor time, each beside a peer that is measured in the same run; peak memory and sizes.
- faults: the share of mutants that the suite kills, and line coverage (yardstick_faults.py).

Answers are judged as the same or not, figures by paired bootstrap over citing papers (yardstick_compare.py). Every call
to citerec stands in yardstick_citerec.py.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from yardstick_compare import compare
from yardstick_cost import cost
from yardstick_faults import faults
from yardstick_parts import ROOT, Yardstick, write


def record(out: Path) -> None:
    """Writes which commit was measured, when, and on what."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "citerec", "indexes", "diagnostics", "benchmarks/*.py")
    facts = {
        "commit": git("rev-parse", "HEAD"),
        "changed": changed.splitlines(),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    write(out / "record.json", facts)


def main() -> None:
    """Measures the parts that are asked for, or compares two folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("answers", "figures", "cost", "faults", "all", "compare"))
    parser.add_argument("out", type=Path, help="the folder to write; of compare, the old one")
    parser.add_argument("new", type=Path, nargs="?", help="of compare: the new folder")
    parser.add_argument("--work", type=Path, help="what is made on the way  [default: OUT/work]")
    given = parser.parse_args()
    if given.part == "compare":
        if given.new is None:
            parser.error("compare needs two folders")
        for folder in (given.out, given.new):
            if not (folder / "record.json").exists():
                parser.error(f"{folder} was not written by the yardstick: it has no record.json")
        sys.exit(compare(given.out, given.new))
    given.out.mkdir(parents=True, exist_ok=True)
    record(given.out)
    work = (given.work or given.out / "work").resolve()
    yardstick = Yardstick(given.out.resolve(), work)
    for name in ("answers", "figures", "cost") if given.part == "all" else (given.part,):
        if name == "faults":
            faults(yardstick.out, work)
        elif name == "cost":
            cost(yardstick)
        else:
            getattr(yardstick, name)()


if __name__ == "__main__":
    main()
