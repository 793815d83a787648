"""From shards to the paper store, in a stated order: several shards are read at once, unreadable records set aside."""

import functools
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import orjson

from citerec.corpus.base import FORMATS, Shard
from citerec.corpus.json_lines import BadRecord
from citerec.corpus.store import Change, PaperStore, ShardCounts, SqliteStore, changes_of
from citerec.errors import InputError
from citerec.files.parallel import Parallelism, Ray, available_processors, in_parts, outcomes_of
from citerec.files.progress import Progress, Rejected, fault_at
from citerec.files.writing import remove, writing_file
from citerec.records import Citation, Paper

# Records that are written to the store at once, in order of id: it then writes fewer pages twice. Of ids in random
# order, 150,000 papers were 1.7 GB of writing with 16,000, and 0.7 GB with 64,000; 32,000 take some 100 MB of memory.
_BATCH = 32_000
# Below this, starting processes costs more than they save.
_SMALL_BYTES = 8_000_000
_AHEAD = 4  # shards for each process that are read before the store takes them


@dataclass(slots=True)
class _Batch:
    """What some records change, their counts, what is wrong with the first bad one; how far the shard was read."""

    changes: list[Change]
    counts: Mapping[str, int]
    fault: str
    bytes_read: int


def ingest(
    shards: Sequence[Shard], store: PaperStore, first: int, max_bad: float, workers: Parallelism, on_progress: Progress
) -> None:
    """Reads shards into a store, and applies their deletions. Shards that are already finished are skipped.

    Args:
        shards: The shards to read, in order: later records win over earlier ones, and a deletion is of earlier ones.
        store: The store to write to.
        first: Number of the first of these shards.
        max_bad: Share of bad records, 0 to 1, above which the work stops, as for `Rejected`.
        workers: Processes that read, by default as many as there are processors; or Ray, whose machines write what
            they read into the folder of the store.
        on_progress: Called with bytes read.

    Raises:
        SourceError: A shard cannot be opened, or its gzip stream is broken.
        BuildError: Too many of the records are bad.
        InputError: The store holds records of other shards.
        StoreError: The store failed, or another process writes to it.
    """
    sizes = {number: shard.path.stat().st_size for number, shard in enumerate(shards, first)}
    whole, done, rejected = sum(sizes.values()), 0, Rejected(max_bad)
    with store.writing():
        finished = {number: counts for number, counts in store.shards().items() if number >= first}
        for number, counts in finished.items():
            given = (shards[number - first].path.name, sizes[number]) if number in sizes else None
            if (Path(counts.path).name, counts.bytes) != given:
                raise InputError(f"{store.name} holds papers of other shards", "Give the address of an empty database.")
            rejected.add(counts.read, counts.bad)
            done += sizes[number]
        todo = [(number, shard) for number, shard in enumerate(shards, first) if number not in finished]
        for (number, shard), batches in _read(todo, store, workers):
            totals = Counter[str]()
            for batch in batches:
                store.write(batch.changes)
                totals.update(batch.counts)
                rejected.add(batch.counts["read"], batch.counts["bad"], batch.fault)
                rejected.check((done + batch.bytes_read) / max(1, whole))
                on_progress("reading MB", (done + batch.bytes_read) / 1e6, whole / 1e6)
            store.finish_shard(number, ShardCounts(str(shard.path), shard.format, sizes[number], **totals))
            done += sizes[number]
            on_progress("reading MB", done / 1e6, whole / 1e6)
        rejected.check()


Numbered = tuple[int, Shard]


def _read(
    todo: Sequence[Numbered], store: PaperStore, workers: Parallelism
) -> Iterator[tuple[Numbered, Iterator[_Batch]]]:
    """The batches of each shard, in order: read here, or by other processes into files some shards ahead."""
    if not isinstance(workers, Ray):
        workers = min(workers or available_processors(), len(todo))
        if workers <= 1 or sum(shard.path.stat().st_size for _, shard in todo) < _SMALL_BYTES:
            yield from ((task, batches_of(task)) for task in todo)
            return
    folder = store.path.absolute().parent / ".read" if isinstance(store, SqliteStore) else Path(tempfile.mkdtemp())
    remove(folder)  # of an interrupted call
    folder.mkdir()
    try:
        at_once = _AHEAD * ((workers.count if isinstance(workers, Ray) else workers) or available_processors())
        for some in in_parts(todo, at_once):
            outcomes = outcomes_of(functools.partial(_into_file, folder), some, workers)
            for task in some:
                path = folder / str(task[0])
                while not path.exists():
                    next(outcomes)
                yield task, _of_file(path)
                path.unlink()
    finally:
        remove(folder)


def _into_file(folder: Path, task: Numbered) -> None:
    """Writes the batches of a shard into a file, as JSON Lines."""
    with writing_file(folder / str(task[0])) as partial, partial.open("wb") as file:
        file.writelines(orjson.dumps(batch) + b"\n" for batch in batches_of(task))


def _of_file(path: Path) -> Iterator[_Batch]:
    with path.open("rb") as file:
        for line in file:
            fields = orjson.loads(line)
            changes = [Change(**change) for change in fields.pop("changes")]
            yield _Batch(changes, **fields)


def batches_of(task: Numbered) -> Iterator[_Batch]:
    """The records of a shard, which has a number, in batches."""
    number, shard = task
    whole = not shard.format.startswith("s2ag-")
    for some in in_parts(FORMATS[shard.format].read(shard.path), _BATCH):
        bad = [(number, one.number, *astuple(one.record)) for one in some if isinstance(one.record, BadRecord)]
        records = [one.record for one in some if not isinstance(one.record, BadRecord)]
        lacking = (isinstance(one, Citation) and not (one.cited_id and one.contexts) for one in records)
        changes = [*changes_of(records, whole=whole), *([Change("quarantine", bad)] if bad else ())]
        counts = {"read": len(records), "bad": len(bad), "without_context": sum(lacking)}
        counts["papers"] = sum(isinstance(record, Paper) for record in records)
        yield _Batch(changes, counts, fault_at(shard.path, *bad[0][1:3]) if bad else "", some[-1].bytes_read)


def write_quarantine(store: PaperStore, path: Path) -> int:
    """Writes the records set aside from finished shards as JSON Lines; returns how many. No file if there are none."""
    with path.open("wb") as file:
        count = sum(bool(file.write(orjson.dumps(line) + b"\n")) for line in store.quarantine())
    if not count:
        path.unlink()
    return count
