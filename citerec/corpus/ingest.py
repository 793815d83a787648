"""From shards to the paper store: several shards at once, unreadable records set aside, resumable by shard."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.ledger import Ledger, ShardCounts, ledger_of
from citerec.corpus.sources import READERS, Shard
from citerec.corpus.store import NumberedRecord, PaperStore, place_of
from citerec.errors import BuildError
from citerec.groundwork.executors import Parallelism, outcomes_of
from citerec.groundwork.limits import REMEDY, too_many_bad
from citerec.groundwork.progress import Progress
from citerec.records import Abstract, Citation, Deletion, Paper, Record, Tldr

_BATCH = 1000
# Batches that are written to the store at once, in order of id: it then writes fewer pages twice. Of ids in random
# order, 150,000 papers were 1.7 GB of writing with 16, and 0.7 GB with 64, which take some 100 MB of memory.
_TOGETHER = 64
# Below this, starting processes costs more than they save.
_SMALL_BYTES = 8_000_000
_SOON = 1000  # records after which a mostly bad corpus stops the work early


@dataclass(slots=True)
class _Batch:
    shard: int
    encoded: Any
    bad: list[tuple[int, BadRecord]]
    read: int
    without_context: int
    papers: int
    bytes_read: int
    finished: bool


def ingest(
    shards: list[Shard], store: PaperStore, *, first: int, max_bad: float, workers: Parallelism, on_progress: Progress
) -> None:
    """Reads shards into a store, and applies their deletions. Shards that are already finished are skipped.

    Args:
        shards: The shards to read, in order: later records win over earlier ones.
        store: The store to write to.
        first: Number of the first of these shards.
        max_bad: Share of bad records, 0 to 1, above which the work stops, as for `too_many_bad`.
        workers: Processes that read, by default as many as there are processors; or an executor.
        on_progress: Called with bytes read.

    Raises:
        SourceError: A shard cannot be opened, or its gzip stream is broken.
        BuildError: Too many of the records are bad.
    """
    ledger = ledger_of(store)
    finished = ledger.finished_shards(first)
    todo = [(number, shard) for number, shard in enumerate(shards, first) if number not in finished]
    sizes = {number: shard.path.stat().st_size for number, shard in enumerate(shards, first)}
    done = {number: sizes[number] if number in finished else 0 for number in sizes}
    tally = {number: counts for number, counts in finished.items() if number in sizes}
    if isinstance(workers, int | None) and sum(sizes[number] for number, _ in todo) < _SMALL_BYTES:
        workers = 1
    reading = outcomes_of(functools.partial(_batches, encode=store.encode), todo, workers)
    unwritten: list[Any] = []
    with contextlib.closing(reading) as batches:
        for _, batch in batches:
            unwritten.append(batch.encoded)
            if batch.finished or len(unwritten) == _TOGETHER:
                store.write(*unwritten)
                unwritten.clear()
            shard = shards[batch.shard - first]
            before = tally.get(batch.shard) or ShardCounts(str(shard.path), shard.format, sizes[batch.shard], 0, 0, 0)
            tally[batch.shard] = replace(
                before,
                read=before.read + batch.read,
                bad=before.bad + len(batch.bad),
                without_context=before.without_context + batch.without_context,
                papers=before.papers + batch.papers,
            )
            if batch.bad:
                ledger.set_aside(batch.shard, batch.bad)
            if batch.finished:
                ledger.finish_shard(batch.shard, tally[batch.shard])
            done[batch.shard] = sizes[batch.shard] if batch.finished else batch.bytes_read
            _stop_if_mostly_bad(ledger, tally, max_bad, share_read=sum(done.values()) / max(1, sum(sizes.values())))
            on_progress("reading", sum(done.values()), sum(sizes.values()))
    _stop_if_mostly_bad(ledger, tally, max_bad, share_read=None)
    store.apply_deletions()


def write_quarantine(ledger: Ledger, path: Path) -> int:
    """Writes the records set aside from finished shards as JSON Lines; returns how many. No file if there are none."""
    shards = ledger.finished_shards()
    count = 0
    with path.open("wb") as file:
        for shard, line, reason, beginning in ledger.quarantine():
            if shard in shards:  # others are only half read
                row = {"shard": shards[shard].path, "line": line, "reason": reason, "beginning": beginning}
                count += 1
                file.write(orjson.dumps(row) + b"\n")
    if not count:
        path.unlink()
    return count


def _stop_if_mostly_bad(
    ledger: Ledger, tally: dict[int, ShardCounts], max_bad: float, *, share_read: float | None
) -> None:
    """Raises an error at the end, or as soon as there are more bad records than a corpus of this size may have."""
    bad = sum(counts.bad for counts in tally.values())
    total = bad + sum(counts.read for counts in tally.values())
    if share_read is not None and (not share_read or total < _SOON):  # nothing is read of an empty first shard
        return
    whole = total / share_read if share_read else None
    if fault := too_many_bad("records", bad, total, max_bad, whole=whole):
        worst = min(number for number, counts in tally.items() if counts.bad)
        first = ledger.first_bad(worst)
        assert first, "a shard is counted as bad after its bad records were set aside"
        raise BuildError(f"{fault}; the first is {tally[worst].path}, line {first.line}: {first.reason}", REMEDY)


def _batches(task: tuple[int, Shard], encode: Callable[[Sequence[NumberedRecord]], Any]) -> Iterator[_Batch]:
    number, shard = task
    whole_records = not shard.format.startswith("s2ag-")
    records: list[NumberedRecord] = []
    bad: list[tuple[int, BadRecord]] = []
    read = without_context = papers = bytes_read = 0

    def taken(*, finished: bool) -> _Batch:
        return _Batch(number, encode(records), bad, read, without_context, papers, bytes_read, finished)

    for line in READERS[shard.format](shard.path):
        bytes_read = line.bytes_read
        if isinstance(line.record, BadRecord):
            bad.append((line.number, line.record))
        else:
            place = place_of(number, line.number)
            records.append(NumberedRecord(place, line.record))
            read += 1
            papers += isinstance(line.record, Paper)
            if whole_records:
                records += [NumberedRecord(place, text) for text in _texts_of(line.record)]
            if isinstance(line.record, Citation) and not (line.record.cited_id and line.record.contexts):
                without_context += 1
        if read + len(bad) >= _BATCH:
            yield taken(finished=False)
            records, bad, read, without_context, papers = [], [], 0, 0, 0
    yield taken(finished=True)


def _texts_of(record: Record) -> list[Record]:
    """What a record of a whole paper says of its texts: those that it lacks are removed, and all with the paper."""
    match record:
        case Paper():
            return [Abstract(record.paper_id, record.abstract), Tldr(record.paper_id, record.tldr)]
        case Deletion("papers", key):
            return [Deletion(table, key) for table in ("abstracts", "tldrs")]
    return []
