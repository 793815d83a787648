"""Full texts: documents and megabytes a second, with one process and two; and that the citation parser is linear.

Run it with `python benchmarks/texts.py [--texts 600]`. The texts are synthetic (release.py): nearly every paragraph of
them cites, so that extraction has more to do than with real ones. All times are taken in one run, best of three.
"""

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from release import write_release

from citerec.contexts.extract import Rules, extract_shards
from citerec.contexts.full_text import FullText, read_s2orc
from citerec.contexts.markers import find_markers
from citerec.contexts.repeats import list_texts

ADVERSARIAL = {
    "openers": "(",
    "openers of citations": "(Lee et al., 1997a",
    "names": "Lee, Kim and ",
    "years": "1997a, ",
    "numbers": "[1, 2, 3",
    "closers": "1997)]",
    "superscripts": "word.12,",
    "spaces": "[1 ",
    "list": "(1) a ",
}
NESTED = {"nested citations": "(Lee, 1997 ", "nested brackets": "[x (y "}
SIZES = (20_000, 40_000, 80_000, 160_000)


def best(times: int, work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def reading(shards: list[Path]) -> None:
    for shard in shards:
        for _ in read_s2orc(shard):
            pass


def surveying(shards: list[Path], folder: Path) -> None:
    for shard in shards:
        list_texts(shard, folder / "survey", {})


def extracting(shards: list[Path], folder: Path, split: str, workers: int) -> int:
    shutil.rmtree(folder / ".out.jsonl.work", ignore_errors=True)
    return extract_shards(shards, folder / "out.jsonl", Rules(split=split), workers=workers).contexts


def throughput(texts: int, folder: Path) -> None:
    write_release(folder / "release", papers=max(2000, texts), texts=texts, shards=2, seed=7)
    shards = sorted((folder / "release" / "s2orc").iterdir())
    records = [line.record for shard in shards for line in read_s2orc(shard) if isinstance(line.record, FullText)]
    characters = sum(len(record.text) for record in records)
    print(f"{len(records):,} texts, {characters / 1e6:.1f} million characters, "
          f"{sum(shard.stat().st_size for shard in shards) / 1e6:.1f} MB compressed\n")  # fmt: skip
    print("| step | seconds | documents/s | MB of text/s | ÷ reading |")
    print("|---|---|---|---|---|")
    base = best(3, lambda: reading(shards))
    rows: list[tuple[str, float]] = [
        ("reading and checking (one process)", base),
        ("survey (one process)", best(3, lambda: surveying(shards, folder))),
    ]
    for split in ("pysbd", "spacy"):
        for workers in (1, 2):
            seconds = best(2, lambda s=split, w=workers: extracting(shards, folder, s, w))  # type: ignore[misc]
            rows.append((f"contexts, sentences by {split}, {workers} process{'es' * (workers > 1)}", seconds))
    for name, seconds in rows:
        print(f"| {name} | {seconds:.1f} | {len(records) / seconds:,.0f} | {characters / 1e6 / seconds:.2f} "
              f"| {seconds / base:.1f} |")  # fmt: skip


def linearity() -> None:
    print("\nThe citation parser: seconds by length of the text; the last column is the growth for each doubling.\n")
    print("| text repeated | " + " | ".join(f"{size:,}" for size in SIZES) + " | growth |")
    print("|---|" + "---|" * (len(SIZES) + 1))
    for name, unit in (ADVERSARIAL | NESTED).items():
        times = []
        for size in SIZES:
            closers = ")" if name in NESTED else ""
            text = unit * (size // len(unit)) + closers * (size // len(unit))
            times.append(best(3, lambda t=text: find_markers(t)))  # type: ignore[misc]
        growth = (times[-1] / times[0]) ** (1 / (len(SIZES) - 1))
        print(f"| {name}: `{unit}` | " + " | ".join(f"{seconds:.3f}" for seconds in times) + f" | {growth:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=600)
    given = parser.parse_args()
    print(json.dumps({"python": platform.python_version(), "processors": os.cpu_count()}))
    with tempfile.TemporaryDirectory() as folder:
        throughput(given.texts, Path(folder))
    linearity()


if __name__ == "__main__":
    main()
