"""From shards to the paper store: several shards at once, unreadable records set aside, resumable by shard."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.leases import Leases, leases_of, other_shards
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

    Several processes may do this at once with the same shards and the same MongoDB database, on one machine or on
    several: they share the shards (leases.py), and each returns when all of them are read.

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
        InputError: The store holds records of other shards.
        StoreError: The store failed, or did not answer for so long that another process may have taken over.
    """
    reading = _Reading(shards, store, first, max_bad, on_progress)
    with leases_of(store) as leases:
        leases.offer({_lease(number): _source(shard) for number, shard in enumerate(shards, first)})
        while todo := reading.unfinished():
            small = sum(reading.sizes[number] for number, _ in todo) < _SMALL_BYTES
            if not reading.read(todo, leases, 1 if small and isinstance(workers, int | None) else workers):
                leases.pause()  # other processes read what is left
        reading.stop_if_mostly_bad(share_read=None)
        # After all shards of all processes: a deletion may be of a record in any of them.
        with leases.alone("deletions", reading.tell):
            store.apply_deletions()


def _lease(number: int) -> str:
    return f"shard {number}"


def _source(shard: Shard) -> str:
    """What tells a shard from those of other sources; without its folder, which may have another name elsewhere."""
    return f"{shard.format} {shard.path.name} {shard.path.stat().st_size}"


class _Reading:
    """The reading of some shards into a store; other processes may read some of them."""

    def __init__(
        self, shards: list[Shard], store: PaperStore, first: int, max_bad: float, on_progress: Progress
    ) -> None:
        self._shards = dict(enumerate(shards, first))
        self._store, self._ledger = store, ledger_of(store)
        self._first, self._max_bad, self._on_progress = first, max_bad, on_progress
        self.sizes = {number: shard.path.stat().st_size for number, shard in self._shards.items()}
        self._done = dict.fromkeys(self.sizes, 0)
        self._tally: dict[int, ShardCounts] = {}

    def unfinished(self) -> list[tuple[int, Shard]]:
        """The shards that no process has finished yet, with their numbers."""
        finished = self._ledger.finished_shards(self._first)
        for number, counts in finished.items():
            shard = self._shards.get(number)
            if not shard or (Path(counts.path).name, counts.bytes) != (shard.path.name, self.sizes[number]):
                raise other_shards(self._store.database.name)
        self._tally = finished
        self._done |= {number: self.sizes[number] for number in finished}
        return [(number, shard) for number, shard in self._shards.items() if number not in finished]

    def read(self, todo: list[tuple[int, Shard]], leases: Leases, workers: Parallelism) -> bool:
        """Reads those shards whose leases can be had; whether there were any."""
        tasks = (task for task in todo if self._is_free(task[0], leases)) if leases.shared else todo
        unwritten: list[Any] = []
        reading = outcomes_of(functools.partial(_batches, encode=self._store.encode), tasks, workers)
        some = False
        with contextlib.closing(reading) as batches:
            for _, batch in batches:
                some = True
                unwritten.append(batch.encoded)
                if batch.finished or len(unwritten) == _TOGETHER:
                    leases.check()
                    self._store.write(*unwritten)
                    unwritten.clear()
                self._note(batch)
                if batch.finished:
                    leases.give_back(_lease(batch.shard))
                self.stop_if_mostly_bad(share_read=sum(self._done.values()) / max(1, sum(self.sizes.values())))
                self.tell()
        return some

    def tell(self) -> None:
        """Tells how much was read, here and by other processes."""
        self._on_progress("reading", sum(self._done.values()), sum(self.sizes.values()))

    def _is_free(self, number: int, leases: Leases) -> bool:
        """Takes the lease of a shard; False if another process has it, or has finished the shard meanwhile."""
        if not leases.take(_lease(number)):
            return False
        if not self._ledger.finished_shards(number, number):
            return True
        leases.give_back(_lease(number))
        return False

    def _note(self, batch: _Batch) -> None:
        number, shard, size = batch.shard, self._shards[batch.shard], self.sizes[batch.shard]
        before = self._tally.get(number) or ShardCounts(str(shard.path), shard.format, size, 0, 0, 0)
        self._tally[number] = replace(
            before,
            read=before.read + batch.read,
            bad=before.bad + len(batch.bad),
            without_context=before.without_context + batch.without_context,
            papers=before.papers + batch.papers,
        )
        if batch.bad:
            self._ledger.set_aside(number, batch.bad)
        if batch.finished:
            self._ledger.finish_shard(number, self._tally[number])
        self._done[number] = size if batch.finished else batch.bytes_read

    def stop_if_mostly_bad(self, *, share_read: float | None) -> None:
        """Raises an error at the end, or as soon as there are more bad records than a corpus of this size may have."""
        bad = sum(counts.bad for counts in self._tally.values())
        total = bad + sum(counts.read for counts in self._tally.values())
        if share_read is not None and (not share_read or total < _SOON):  # nothing is read of an empty first shard
            return
        whole = total / share_read if share_read else None
        if fault := too_many_bad("records", bad, total, self._max_bad, whole=whole):
            worst = min(number for number, counts in self._tally.items() if counts.bad)
            first = self._ledger.first_bad(worst)
            assert first, "a shard is counted as bad after its bad records were set aside"
            raise BuildError(
                f"{fault}; the first is {self._tally[worst].path}, line {first.line}: {first.reason}", REMEDY
            )


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
