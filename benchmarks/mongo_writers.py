"""How several processes fill one MongoDB database at once, and that no record is lost when one of them is killed.

    python benchmarks/mongo_writers.py ../shared/data/arxiv [--writers 1 2 4] [--records 4000] [--uri mongodb://HOST]

The first papers of the sources are cut into shards. For each number of writers, as many processes begin at the same
moment to read them into a new database, each with one process for reading; then the same again, while one of the
writers is killed as soon as a shard is finished. At the end of each run the store must have the fingerprint of a
SQLite file that one process filled. Without --uri it starts nx-27017, which speaks MongoDB's protocol but is not
MongoDB: it writes one operation after the other, so its times say nothing about a real server. Databases are dropped
at the end.
"""

import argparse
import itertools
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from citerec.corpus.ledger import ledger_of
from pymongo import MongoClient

from citerec.corpus import leases
from citerec.corpus.ingest import ingest
from citerec.corpus.shards import READERS, Shard, find_shards
from citerec.corpus.stores import open_store
from citerec.records import Paper

SHARDS = 40
LEASE_SECONDS = 5.0  # short, so that the run with a killed writer is


def write(address: str, shards: list[Shard]) -> None:
    """One writer."""
    leases.SECONDS = LEASE_SECONDS
    store = open_store(address)
    ingest(shards, store, first=1, max_bad=0.05, workers=1, on_progress=lambda *_: None)
    store.close()


def cut(sources: list[Path], records: int, folder: Path) -> list[Shard]:
    """The first papers of some sources in shards of equal size."""
    lines = (line.record for shard in find_shards(sources) for line in READERS[shard.format](shard.path))
    papers = itertools.islice((record for record in lines if isinstance(record, Paper)), records)
    shards = []
    size = max(1, records // SHARDS)
    while part := list(itertools.islice(papers, size)):
        path = folder / f"{len(shards):03}.jsonl"
        path.write_bytes(b"".join(orjson.dumps(asdict(paper), option=orjson.OPT_APPEND_NEWLINE) for paper in part))
        shards.append(Shard(path, "jsonl"))
    return shards


@contextmanager
def server(uri: str | None, folder: Path) -> Iterator[str]:
    """The given server, or an nx-27017 with its data in a folder."""
    if uri:
        yield uri.rstrip("/")
        return
    out = folder / "nx.out"
    command = [Path(sys.executable).with_name("nx-27017"), "--db", folder / "nx.sqlite", "--port", "0"]
    command += ["--log-file", folder / "nx.log", "--pid-file", folder / "nx.pid"]
    with out.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            while not (found := re.search(r"Listening on 127\.0\.0\.1:(\d+)", out.read_text())):
                time.sleep(0.05)
            yield f"mongodb://127.0.0.1:{found[1]}"
        finally:
            process.terminate()


def run(address: str, shards: list[Shard], writers: int, *, kill: bool) -> dict[str, Any]:
    """Fills a database with some writers, one of which may be killed; seconds, and what is there at the end."""
    context = multiprocessing.get_context("spawn")
    begun = time.perf_counter()
    processes = [context.Process(target=write, args=(address, shards)) for _ in range(writers)]
    for process in processes:
        process.start()
    store = open_store(address)
    ledger = ledger_of(store)
    if kill:
        while not ledger.finished_shards():
            time.sleep(0.01)
        processes[0].kill()
    for process in processes:
        process.join()
    seconds = time.perf_counter() - begun
    failed = sum(process.exitcode != 0 for process in processes)
    found = {"seconds": seconds, "failed": failed, "papers": store.counts().papers, "print": store.fingerprint()}
    store.close()
    with MongoClient(address) as client:
        client.drop_database(client.get_default_database().name)
    return found


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--writers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--records", type=int, default=4_000)
    parser.add_argument("--uri")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="citerec-") as temporary, server(options.uri, Path(temporary)) as uri:
        folder = Path(temporary)
        shards = cut(options.sources, options.records, folder)
        alone = open_store(folder / "alone.sqlite")
        ingest(shards, alone, first=1, max_bad=0.05, workers=1, on_progress=lambda *_: None)
        expected, papers = alone.fingerprint(), alone.counts().papers
        alone.close()
        print(f"{papers:,} papers in {len(shards)} shards, leases of {LEASE_SECONDS:.0f} s")
        print("writers  killed  seconds  papers a second  same as SQLite")
        for writers, kill in itertools.product(options.writers, (False, True)):
            if kill and writers == 1:
                continue
            found = run(f"{uri}/citerec_bench_{uuid.uuid4().hex[:8]}", shards, writers, kill=kill)
            same = found["print"] == expected and found["papers"] == papers and found["failed"] == kill
            rate = papers / found["seconds"]
            print(
                f"{writers:7}  {int(kill):6}  {found['seconds']:7.1f}  {rate:15,.0f}  {'yes' if same else 'NO'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
