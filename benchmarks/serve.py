"""How many requests a server answers, and how quickly.

    python benchmarks/serve.py --index INDEX --contexts FILE [--systems bm25 hybrid] [--clients 20] [--seconds 60]
        [--workers 1]

For each system a server of its own is started (`citerec serve`, on loopback, with its default threads and
queue). Clients in threads of this process each send one sentence of the contexts after the other,
`POST /api/v1/recommend`, k = 10, over a connection that is kept. The first ten seconds are not counted. One line for
each system: requests a second, median, 95th and 99th percentile of the time of a request in ms, answers that were not
200, and the memory of the server (MB, resident) before the first and after the last request. The clients take a part
of the processors.
"""

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from citerec.contexts.read import read_contexts

WARM_SECONDS = 10
HEADERS = {"Content-Type": "application/json"}


@dataclass
class Figures:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0


def ask(port: int, bodies: list[bytes], first: int, until: tuple[float, float], figures: Figures) -> None:
    """One client: sends one body after the other until the second time; what ends after the first one is counted."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    number, is_new = first, False
    while (begun := time.perf_counter()) < until[1]:
        if begun >= until[0] and not is_new:  # all processes of the server are there by now, and share the clients
            connection.close()
            time.sleep(first / 1000)
            is_new = True
            continue
        number += 1
        connection.request("POST", "/api/v1/recommend", bodies[number % len(bodies)], HEADERS)
        response = connection.getresponse()
        response.read()
        ended = time.perf_counter()
        if begun >= until[0]:
            figures.seconds.append(ended - begun)
            figures.errors += response.status != 200


def resident(process: psutil.Process) -> int:
    """The resident memory of a server and of its workers."""
    return sum(int(one.memory_info().rss) for one in [process, *process.children()])


def measure(index: Path, system: str, bodies: list[bytes], clients: int, seconds: float, workers: int) -> str:
    """The line of a system."""
    command: list[str | Path] = [Path(sys.executable).with_name("citerec"), "serve", index, "--system", system]
    command += ["--port", "0", "--workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as server:
        assert server.stdout is not None
        found = re.search(r":(\d+)/api", server.stdout.readline())
        assert found, "the server did not start"
        process = psutil.Process(server.pid)
        before = resident(process)
        figures, now = Figures(), time.perf_counter()
        until = (now + WARM_SECONDS, now + WARM_SECONDS + seconds)
        threads = [
            threading.Thread(target=ask, args=(int(found[1]), bodies, number * 31, until, figures))
            for number in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        after = resident(process)
        server.terminate()
    cuts = [1000 * cut for cut in statistics.quantiles(figures.seconds, n=100)]
    return (
        f"| `{system}` | {len(figures.seconds) / seconds:.0f} | {cuts[49]:.0f} | {cuts[94]:.0f} | {cuts[98]:.0f} | "
        f"{figures.errors} of {len(figures.seconds):,} | {before / 1e6:.0f} → {after / 1e6:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--contexts", type=Path, required=True)
    parser.add_argument("--systems", nargs="+", default=["bm25", "hybrid"])
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    bodies = [json.dumps({"text": context.text}).encode() for context in read_contexts(given.contexts)]
    print("| system | requests a second | p50, ms | p95, ms | p99, ms | errors | memory of the server, MB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for system in given.systems:
        print(measure(given.index, system, bodies, given.clients, given.seconds, given.workers), flush=True)


if __name__ == "__main__":
    main()
