"""How fast a release is cut to size while it streams, and in how much memory.

    python benchmarks/corpus.py [--papers 200000] [--rounds 3]

A server on loopback, in a process of its own, serves one gzip file of made-up papers and one of citations. Each is
fetched and cut to a field and ten years by the code of `citerec corpus get`, in one process. The peer reads the same
bytes from the disk with Python's `gzip` and parses each line with orjson, and does nothing else. Both are measured in
processor time, in turns; the best of several rounds counts. The ratio is the peer's time to ours: 1 would mean that
HTTP, reading records, filters and writing cost nothing.

Memory is the resident memory of the process that fetches, at each quarter of the time.
"""

import argparse
import functools
import gzip
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import psutil

from citerec.records import Filters
from citerec.sources.base import RemoteFile
from citerec.sources.fetch import Cut, Ids, Job, Part, Place, Sieve, kept_joins, kept_papers, read_part

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.corpus_server import first_state

DATASETS = ("papers", "citations")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def serve(folder: str, port: Any) -> None:
    """Serves a folder on a free port, which it sends."""
    os.chdir(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        port.send(server.server_port)
        server.serve_forever()


def plain(path: Path) -> None:
    """What any reader has to do: unzip and parse."""
    with gzip.open(path) as lines:
        for line in lines:
            orjson.loads(line)


def fetched(file: RemoteFile, sieve: Sieve, work: Path, notes: Path) -> tuple[Part, list[int]]:
    """Fetches a file; also the resident memory, in bytes, at each quarter of the time."""
    place = Place("s2ag", file.url.rpartition("/")[0])
    job = Job(place, "", "", sieve, notes, work / file.dataset)
    memory: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.25):
            memory.append(psutil.Process().memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        part = read_part(job, file)
    finally:
        ended.set()
        thread.join()
    quarters = [memory[len(memory) * place // 4] for place in (1, 2, 3)] if len(memory) >= 4 else []
    return part, [*quarters, psutil.Process().memory_info().rss]


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="Speed and memory of fetching a corpus.")
    parser.add_argument("--papers", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write(work, given.papers)
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(name, theirs), daemon=True)
        server.start()
        url = f"http://127.0.0.1:{ours.recv()}"
        kept = work / "kept.ids"
        print(f"load {os.getloadavg()[0]:.1f}")
        for dataset in DATASETS:
            path = work / f"{dataset}.jsonl.gz"
            file = RemoteFile(dataset, path.name, f"s2ag-{dataset}", f"{url}/{path.name}")
            of_field = functools.partial(kept_papers, Cut(Filters(fields=("Physics",), year_from=2000, year_to=2010)))
            sieve: Sieve = of_field if dataset == "papers" else functools.partial(kept_joins, kept)
            best, peer = float("inf"), float("inf")
            for turn in range(given.rounds):
                begun = time.process_time()
                plain(path)
                peer, begun = min(peer, time.process_time() - begun), time.process_time()
                part, memory = fetched(file, sieve, work, work / f"notes-{turn}")
                best = min(best, time.process_time() - begun)
            if dataset == "papers":
                Ids.load(work / "notes-0" / f"{path.name}.kept").save(kept)
            print(
                f"{dataset}: {part.read:,} records, {part.bytes / 1e6:.1f} MB, {part.kept:,} kept; {best:.2f} s, peer "
                f"{peer:.2f} s, ratio {peer / best:.2f}; {part.read / best:,.0f} records a second; "
                f"memory {', '.join(f'{one / 1e6:.0f}' for one in memory)} MB"
            )
        server.terminate()


def write(folder: Path, papers: int) -> None:
    """Writes the two files, from a state of 20,000 papers again and again, with ids of their own."""
    size = min(papers, 20_000)
    state = first_state(size)
    for dataset in DATASETS:
        with gzip.open(folder / f"{dataset}.jsonl.gz", "wb", 4) as out:
            for turn in range(papers // size):
                for record in state[dataset].values():
                    moved = {key: shifted(key, value, turn) for key, value in record.items()}
                    out.write(orjson.dumps(moved) + b"\n")


def shifted(key: str, value: Any, turn: int) -> Any:
    """An id of another turn."""
    return value + turn * 10**7 if key.endswith(("corpusid", "citationid")) and value is not None else value


if __name__ == "__main__":
    main()
