"""Work on Ray beside processes of this machine: the same bytes, what Ray adds, and workers that are killed.

    python benchmarks/executors.py [--texts 464] [--kills 2] [--workers 2]

First what both take to begin, and for a thousand items without work. Then two commands on real data, each once in
processes and once with `--on ray`, in one run:

- `contexts extract` of the 116 full texts of data/acm, each several times under an id of its own, in 12 shards.
- `diagnostics build` of data/acl: its papers, citations, and training contexts.

With `--kills`, workers of the command on Ray are killed (SIGKILL) while they work. It ends with 1 if any byte differs.
"""

import argparse
import contextlib
import gzip
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil

from citerec.files.parallel import outcomes_of, workers_on

DATA = Path(__file__).parents[2] / "shared" / "data"
SHARDS, ITEMS = 12, 1000
BETWEEN = 4.0  # seconds between two kills


def nothing(item: int) -> Iterator[int]:
    yield item


def write_texts(folder: Path, count: int) -> Path:
    """The full texts of data/acm in shards, again and again under other ids until there are enough."""
    folder.mkdir(parents=True)
    with gzip.open(DATA / "acm" / "s2orc" / "s2orc-00000.jsonl.gz") as file:
        texts = [orjson.loads(line) for line in file]
    for shard in range(SHARDS):
        numbers = range(shard, count, SHARDS)
        rows = [orjson.dumps({**texts[one % len(texts)], "corpusid": 900_000_000 + one}) + b"\n" for one in numbers]
        (folder / f"s2orc-{shard:05}.jsonl.gz").write_bytes(gzip.compress(b"".join(rows), 1, mtime=0))
    return folder


def run(folder: Path, words: list[object], kills: int = 0) -> tuple[float, int]:
    """Runs a command; returns its seconds, and how many workers were killed."""
    folder.mkdir()
    ended = threading.Event()
    killed: list[int] = []
    began = time.monotonic()
    with subprocess.Popen(
        [Path(sys.executable).with_name("citerec"), *map(str, words)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        killer = threading.Thread(target=_kill, args=(process.pid, ended, kills, killed))
        killer.start()
        said = process.communicate()[1]
    seconds = time.monotonic() - began
    ended.set()
    killer.join()
    if process.returncode:
        sys.exit(f"citerec {' '.join(map(str, words))}\n{said}")
    return seconds, len(killed)


def _kill(command: int, ended: threading.Event, kills: int, killed: list[int]) -> None:
    """Kills a worker that is at work for a command, again and again."""
    while len(killed) < kills and not ended.wait(BETWEEN):
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(command).children(recursive=True)
            if busy := next((one for one in below if one.cmdline()[:1] == ["ray::_each"]), None):
                busy.kill()
                killed.append(busy.pid)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder that a user is given, by path; not those of its hidden folders."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    shown = [path.relative_to(folder) for path in paths]
    return {str(path): (folder / path).read_bytes() for path in shown if not any(p.startswith(".") for p in path.parts)}


def measure_items(workers: int) -> None:
    for on in (None, "ray"):
        began = time.monotonic()
        with workers_on(on, workers) as executor:
            list(outcomes_of(nothing, range(workers), executor))
            started = time.monotonic()
            list(outcomes_of(nothing, range(ITEMS), executor))
            done = time.monotonic()
        each = 1000 * (done - started) / ITEMS
        print(
            f"| {on or 'processes'} | {started - began:.1f} s | {each:.2f} ms | {time.monotonic() - done:.1f} s |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=464)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print("| executor | to the first outcome | an empty item | end |\n|---|---:|---:|---:|")
    measure_items(given.workers)
    different = False
    with tempfile.TemporaryDirectory(prefix="citerec-executors-") as name:
        work, acl = Path(name), DATA / "acl"
        texts = write_texts(work / "texts", given.texts)
        build = ["diagnostics", "build", "--papers", acl / "papers", "--citations", acl / "citations"]
        commands: dict[str, list[object]] = {
            "contexts extract": ["contexts", "extract", texts, "--out", "contexts.jsonl"],
            "diagnostics build": [*build, "--from", acl / "contexts-train.jsonl", "--out", "./mine"],
        }
        print("\n| command | processes | --on ray | ratio | --on ray, workers killed | same bytes |")
        print("|---|---:|---:|---:|---:|---|")
        for title, words in commands.items():
            words += ["--workers", given.workers]
            folder = work / title.replace(" ", "-")
            folder.mkdir()
            here, _ = run(folder / "here", words)
            ray, _ = run(folder / "ray", [*words, "--on", "ray"])
            again, killed = run(folder / "killed", [*words, "--on", "ray"], given.kills)
            expected = contents(folder / "here")
            same = all(contents(folder / other) == expected for other in ("ray", "killed"))
            different |= not same
            kills = f"{again:.1f} s ({killed} killed)"
            print(
                f"| `{title}` | {here:.1f} s | {ray:.1f} s | {ray / here:.2f} | {kills} | {'yes' if same else 'NO'} |"
            )
    sys.exit(different)


if __name__ == "__main__":
    main()
