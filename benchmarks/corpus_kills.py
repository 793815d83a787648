"""A release fetched, killed, brought up to date and indexed, beside an index of its final state: nothing may be lost.

    python benchmarks/corpus_kills.py --work FOLDER [--papers 100000] [--kills 20]

A server on loopback has a made-up release of Semantic Scholar and then three diffs with deletions. One answer in twenty
fails, in every documented way: busy with and without Retry-After, cut, too short, a page in place of a file,
slow, an expired link, damaged gzip. `corpus get`, `corpus update`, `index build` and `index add` are killed
(SIGKILL, with all their processes) at random moments, and repeated. After every step the folder must hold what the cut
leaves of the release, and at the end the index must have the fingerprint and the answers of one that is built of the
final state. It prints what it did, and ends with 1 if anything differs.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from citerec import Recommender  # noqa: E402
from citerec.index.manifest import Manifest  # noqa: E402
from tests.corpus_server import KEY, S2agServer, cut_state, first_state, next_state, state_of  # noqa: E402

FIELDS, YEAR = ("Computer Science", "Physics"), 1995
CUT = (*(word for field in FIELDS for word in ("--field", field)), "--year-from", str(YEAR))
UPDATES, QUERIES, K = 3, 200, 20


class Commands:
    """Runs commands of citerec, and kills them."""

    def __init__(self, work: Path, rng: random.Random) -> None:
        self.work, self._rng, self.killed, self.wrong = work, rng, 0, 0
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), "S2_API_KEY": KEY}

    def run(self, *words: Any) -> str:
        """What a command prints; it must end well."""
        process = self._start(*words)
        said, _ = process.communicate()
        print(f"$ citerec {' '.join(map(str, words))}\n{said.rstrip()}")
        self.check("ended well", process.returncode == 0)
        return said

    def tortured(self, kills: int, longest: float, *words: Any) -> None:
        """Kills a command some times at random moments, unless it ends before, then runs it to its end."""
        before = self.killed
        for _ in range(kills):
            process = self._start(*words)
            try:
                process.communicate(timeout=self._rng.uniform(0.5, longest))
                break  # it was ready before
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                self.killed += 1
        print(f"killed {self.killed - before} times:")
        self.run(*words)

    def check(self, what: str, holds: bool) -> None:
        """Prints whether something holds."""
        self.wrong += not holds
        print(f"{'yes' if holds else 'NO '}: {what}")

    def _start(self, *words: Any) -> "subprocess.Popen[str]":
        code = "from citerec.cli.main import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)],
            cwd=self.work,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )


def stays(paper: dict[str, Any]) -> bool:
    """Whether a paper is of the cut."""
    return paper["year"] >= YEAR and paper["s2fieldsofstudy"][0]["category"] in FIELDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="a folder, emptied first")
    parser.add_argument("--papers", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    shutil.rmtree(given.work, ignore_errors=True)
    given.work.mkdir(parents=True)
    began, rng = time.monotonic(), random.Random(given.seed)
    commands = Commands(given.work, rng)
    each = given.kills // (2 + 2 * UPDATES)  # of eight commands; the first one gets the rest too
    state = first_state(given.papers)
    with S2agServer(shards=12, failing=0.05, seed=3) as server:
        url = ("--url", server.url)
        server.publish("2024-01-02", state)
        commands.tortured(given.kills - each * (1 + 2 * UPDATES), 3, "corpus", "get", "s2ag", *url, *CUT, "--out", "cs")
        commands.check("the folder is the cut of the release", state_of(given.work / "cs") == cut_state(state, stays))
        commands.tortured(each, 5, "index", "build", "cs", "--out", "followed")
        for number in range(1, UPDATES + 1):
            state = next_state(state, 50 + number)
            server.publish(f"2024-02-0{number}", state)
            commands.tortured(each, 2, "corpus", "update", "cs", *url)
            commands.check(
                "the folder is the cut of this state", state_of(given.work / "cs") == cut_state(state, stays)
            )
            commands.tortured(each, 2.5, "index", "add", "followed", "cs")
        commands.run("corpus", "get", "s2ag", *url, *CUT, "--out", "final")
        commands.run("index", "build", "final", "--out", "fresh")
        commands.run("index", "verify", "followed")
        print(f"{len(server.asked)} requests; answers that failed: {dict(server.faults)}")
    followed, fresh = given.work / "followed", given.work / "fresh"
    commands.check("same fingerprint", Manifest.read(followed).fingerprint == Manifest.read(fresh).fingerprint)
    abstracts = [state["abstracts"][name]["abstract"] for name in rng.sample(sorted(state["abstracts"]), QUERIES)]
    with Recommender.open(followed) as one, Recommender.open(fresh) as other:
        different = 0
        for abstract in abstracts:
            sentence = f"{' '.join(abstract.split()[:12])} <REF>."
            answers = [[(hit.paper.paper_id, hit.score) for hit in each.search(sentence, k=K)] for each in (one, other)]
            different += answers[0] != answers[1]
    commands.check(f"same answers to {QUERIES} queries ({different} differ)", not different)
    print(f"{commands.killed} kills, {time.monotonic() - began:.0f} s, {commands.wrong} wrong")
    return min(commands.wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
