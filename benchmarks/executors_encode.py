"""Encoding and eval on Ray beside one process, on one machine: what Ray costs there, and that it gives the same bytes.

Run it with `python benchmarks/executors_encode.py [--papers 4096] [--backend onnx] [--rounds 2] [--kill]`. Papers of
data/acm are indexed, and then encoded by all-MiniLM-L6-v2 with `citerec index encode`: here, and with `--on ray`, in
turns, so that whatever else the machine does meets both. With `--kill`, a worker of Ray gets a SIGKILL when the first
thousand papers have a vector. Then `citerec eval` measures bm25, dense and hybrid on data/acm dev: here, and with
`--on ray`. Wall time is that of the whole command; processor time is that of it and all processes below it, sampled
four times a second, so what a process did in its last quarter is missed.
"""

import argparse
import contextlib
import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil

from citerec.files.resume import read_json

DATA = Path(__file__).parents[2] / "shared" / "data"
CITEREC = Path(sys.executable).with_name("citerec")
SAMPLE_SECONDS = 0.25
SYSTEMS = ("bm25", "dense", "hybrid")


def first_papers(folder: Path, number: int) -> None:
    """Writes the first papers of data/acm, with their abstracts, as shards."""
    ids: set[int] = set()
    for name in ("papers", "abstracts"):
        (folder / name).mkdir(parents=True)
        with gzip.open(folder / name / f"{name}-0.jsonl.gz", "wb") as out:
            for line in lines(DATA / "acm" / name):
                paper_id = orjson.loads(line)["corpusid"]
                if name == "papers" and len(ids) < number:
                    ids.add(paper_id)
                    out.write(line)
                elif name == "abstracts" and paper_id in ids:
                    out.write(line)


def lines(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.iterdir()):
        with gzip.open(path) as file:
            yield from file


def timed(command: list[object], watch: Callable[[psutil.Process], None] = lambda _: None) -> tuple[float, float]:
    """Wall and processor seconds of a command; `watch` is called with its process at each sample."""
    begun = time.perf_counter()
    process = psutil.Popen([str(CITEREC), *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    spent: dict[int, float] = {}
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            for one in [process, *process.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    spent[one.pid] = sum(one.cpu_times()[:2])
            watch(process)
        time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        sys.exit(process.stderr.read().decode())
    return time.perf_counter() - begun, sum(spent.values())


class Killer:
    """Kills one worker of Ray when the first part of the vectors of an index is finished."""

    def __init__(self, index: Path) -> None:
        self._journal = index.with_name(f".{index.name}.making-dense") / "journal.json"
        self.killed = 0

    def watch(self, process: psutil.Process) -> None:
        """Kills one of the workers below a process, if it is time."""
        first, ahead = (read_json(self._journal) or {}).get("parts") or (0, [])
        if self.killed or first + len(ahead) < 1:
            return
        for one in process.children(recursive=True):
            if one.name().startswith("ray::_each"):
                one.send_signal(signal.SIGKILL)
                self.killed = one.pid
                return


def same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files."""
    names = [sorted(path.name for path in folder.iterdir()) for folder in (one, other)]
    return names[0] == names[1] and all((one / name).read_bytes() == (other / name).read_bytes() for name in names[0])


def encode(work: Path, arguments: argparse.Namespace) -> None:
    print("| encode | round | wall s | processor s | same bytes as here |\n|---|---|---|---|---|")
    forms = {"here": [], "--on ray": ["--on", "ray"]} | (
        {"--on ray, a worker killed": ["--on", "ray"]} if arguments.kill else {}
    )
    for turn in range(arguments.rounds):
        whole = None
        for name, more in forms.items():
            index = work / "index"
            shutil.rmtree(index, ignore_errors=True)
            shutil.copytree(work / "bare", index)
            killer = Killer(index) if "killed" in name else None
            model = ["-c", f"backend={arguments.backend}", "-c", f"max_tokens={arguments.max_tokens}"]
            command = ["index", "encode", index, *model, *more]
            wall, processor = timed(command, killer.watch if killer else (lambda _: None))
            if killer and not killer.killed:
                sys.exit("no worker was killed: give more --papers")
            if whole is None:
                whole = work / "whole"
                shutil.rmtree(whole, ignore_errors=True)
                shutil.copytree(index / "dense", whole)
            print(
                f"| {name} | {turn + 1} | {wall:.1f} | {processor:.1f} | {same(whole, index / 'dense')} |", flush=True
            )


def measure(work: Path, arguments: argparse.Namespace) -> None:
    known = {orjson.loads(line)["corpusid"] for line in lines(work / "papers" / "papers")}
    contexts = work / "contexts.jsonl"
    with contexts.open("wb") as out:
        for line in (DATA / "acm" / "contexts-dev.jsonl").open("rb"):
            if known.intersection(orjson.loads(line)["cited_ids"]):
                out.write(line)
    systems = [word for name in SYSTEMS for word in ("--system", name)]
    print("\n| eval | round | wall s | processor s | same runs as here |\n|---|---|---|---|---|")
    for turn in range(arguments.rounds):
        for name, more in {"here": [], "--on ray": ["--on", "ray"]}.items():
            command = ["eval", "--contexts", contexts, "--index", work / "index", *systems]
            wall, processor = timed([*command, "--out", work / name, *more])
            equal = same(work / "here" / "runs", work / name / "runs")
            print(f"| {name} | {turn + 1} | {wall:.1f} | {processor:.1f} | {equal} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=4096)
    parser.add_argument("--backend", default="onnx")
    parser.add_argument("--max-tokens", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kill", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        first_papers(work / "papers", arguments.papers)
        timed(["index", "build", work / "papers", "--out", work / "bare"])
        what = f"{arguments.backend}, {arguments.max_tokens} tokens, {os.cpu_count()} processors"
        print(f"{arguments.papers:,} papers, {what}\n", flush=True)
        encode(work, arguments)
        measure(work, arguments)


if __name__ == "__main__":
    main()
