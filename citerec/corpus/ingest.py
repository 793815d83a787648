"""From shards to the paper store in a stated order, and papers of several sources made one record each.

Two records are of one work if they share a DOI, an arXiv id or an ACL id; else if `matching.same_work` says so (title,
year, an author) and their identifiers do not say otherwise. A preprint and its published version become one record,
with the identifiers of both. Works are kept in a database on disk: memory does not grow with the papers. The result is
a folder of JSON Lines that `citerec index build` reads.
"""

import contextlib
import functools
import itertools
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.base import Shard, find_shards, format_named
from citerec.corpus.matching import ARXIV_DOI, conflicting, is_preprint, keys_of, same_work, title_name
from citerec.corpus.reading import BadRecord, Write, writing_lines
from citerec.corpus.store import Change, PaperStore, ShardCounts, SqliteStore, changes_of
from citerec.errors import InputError, SourceError
from citerec.files.parallel import Parallelism, Ray, available_processors, in_parts, outcomes_of
from citerec.files.progress import Progress, Rejected, fault_at
from citerec.files.resume import Journal, identity
from citerec.files.writing import Kind, alone, beside, remove, write_failures, writing_file
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
            expected = (shards[number - first].path.name, sizes[number]) if number in sizes else None
            if (Path(counts.path).name, counts.bytes) != expected:
                raise InputError(f"{store.name} holds papers of other shards", "Give the address of an empty database.")
            rejected.add(counts.read, counts.bad)
            done += sizes[number]
        if rejected.bad and (bad := next(iter(store.quarantine()), None)):
            rejected.add(first=fault_at(bad["shard"], bad["line"], bad["reason"]))
        todo = [(number, shard) for number, shard in enumerate(shards, first) if number not in finished]
        for (number, shard), batches in _read(todo, store, workers):
            totals = Counter[str]()
            for batch in batches:
                store.write(batch.changes)
                totals.update(batch.counts)
                rejected.add(batch.counts["read"], batch.counts["bad"], batch.fault)
                rejected.check((done + batch.bytes_read) / max(1, whole))
                on_progress("reading MB", (done + batch.bytes_read) / 1e6, whole / 1e6)
            counts = ShardCounts(identity(shard.path)[0], shard.format, sizes[number], **totals)
            store.write([Change("shards", [(number, *astuple(counts))])])  # it will not be read again
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
    for some in in_parts(format_named(shard.format).read(shard.path), _BATCH):
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


MANIFEST = "merged.json"
_FILES = 8  # so that as many processes can read them at once
_LINES = 10_000  # that go to a file before the next one is filled: few papers need one file only
_NAMES = frozenset(f"{what}-{number}.jsonl.gz" for what in ("papers", "citations") for number in range(_FILES))
KIND = Kind("merged corpus", "merged-corpus", MANIFEST, _NAMES | {MANIFEST})

_READ_BATCH = 500
_MOST_NAMESAKES = 20  # works of one title that a record is compared with
_SCHEMES = {"s2ag": "CorpusId", "openalex": "OpenAlex", "arxiv": "ArXiv", "acl-anthology": "ACL"}
"""Under which name the ids of a source are identifiers of a merged paper; else under the name of the source."""
_PUBLISHED = ("venue", "year")
"""What is taken from a published version, if a source has one, before a preprint."""

# A record has a row for each of its identifiers and for its title, and one without a name.
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE names (
  name TEXT, paper_id TEXT, source INTEGER, work INTEGER, PRIMARY KEY (name, paper_id, source)) WITHOUT ROWID;
CREATE INDEX names_work ON names (work);
"""


def merge_corpora(
    sources: Mapping[str, Path], out: Path, on_progress: Progress, *, max_bad: float = 0.05, workers: int | None = None
) -> dict[str, int]:
    """Merges the papers of several sources into a folder, in place of one that is already there.

    An interrupted run is resumed: files that were read are not read again.

    Args:
        sources: Files or folders of papers (docs/formats.md), by the name of their source. Of a field that several
            have, the value of the first counts.
        out: The folder. It has `papers-0.jsonl.gz` and so on, `citations-0.jsonl.gz` … if there are any, and
            `merged.json`.
        on_progress: Called as the work goes on.
        max_bad: As for `ingest`.
        workers: As for `ingest`.

    Returns:
        How many `records` were merged into how many `works`, and how many works have records of several sources:
        `shared`.

    Raises:
        InputError: There are not two sources, or something else is at `out`.
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another process is at work there.
    """
    if len(sources) < 2:
        raise InputError("there is nothing to merge", "Give two sources or more.")
    KIND.check_place(out)
    out = out.resolve()
    shards = {name: find_shards([path]) for name, path in sources.items()}
    plan = [[name, [[*identity(shard.path), shard.format] for shard in some]] for name, some in shards.items()]
    busy = f"another process is merging into {out}"
    with alone(beside(out, "merging.lock"), busy), write_failures(out), contextlib.ExitStack() as stack:
        folder = Journal(beside(out, "merging"), {"merge": plan}).folder
        stores = {}
        for number, (name, some) in enumerate(shards.items()):
            stores[name] = stack.enter_context(contextlib.closing(SqliteStore(folder / f"{number}.sqlite")))
            ingest(some, stores[name], first=1, max_bad=max_bad, workers=workers, on_progress=on_progress)
            if not stores[name].counts().papers:
                raise SourceError(f"{sources[name]} holds no paper", "Give at least one readable paper record.")
        merging = stack.enter_context(contextlib.closing(Merging(stores, folder / "works.sqlite")))
        counts = merging.find_works(on_progress)
        with KIND.writing(out) as partial:
            _write(partial, "papers", map(paper_line, merging.papers()), counts["works"], on_progress)
            _write(partial, "citations", merging.citations(), 0, on_progress)
            manifest = {"kind": KIND.kind, "sources": list(sources), **counts}
            (partial / MANIFEST).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n")
    remove(folder)
    return counts


def paper_line(paper: Paper) -> dict[str, Any]:
    """A paper as the object of a line of citerec's own JSON Lines; empty fields are left out."""
    return {name: value for name, value in asdict(paper).items() if value not in (None, "", (), {})}


def _write(folder: Path, what: str, lines: Iterable[Mapping[str, Any]], whole: int, on_progress: Progress) -> None:
    """Writes objects as JSON Lines into some files, the same bytes for the same objects."""
    files: list[Write] = []
    with contextlib.ExitStack() as stack:
        for number, part in enumerate(in_parts(lines, _LINES)):
            if number < _FILES:
                files.append(stack.enter_context(writing_lines(folder / f"{what}-{number}.jsonl.gz")))
            for line in part:
                files[number % _FILES](orjson.dumps(line))
            done = number * _LINES + len(part)
            on_progress(f"writing {what}", done, max(whole, done))


class Merging:
    """The works of some sources.

    Args:
        sources: The papers of each source, by its name; of a field that several have, the value of the first counts.
        scratch: A file for the works, made anew.
    """

    def __init__(self, sources: Mapping[str, SqliteStore], scratch: Path) -> None:
        self._sources = list(sources.items())
        scratch.unlink(missing_ok=True)
        self._database = sqlite3.connect(scratch)
        self._database.executescript(_SCHEMA)
        self._works = 0

    def close(self) -> None:
        """Closes the database of works."""
        self._database.close()

    def find_works(self, on_progress: Progress) -> dict[str, int]:
        """Finds which records are of one work; returns the counts of `merge_corpora`."""
        whole, done = sum(store.counts().papers for _, store in self._sources), 0
        for source, (name, store) in enumerate(self._sources):
            for papers in in_parts(store.all_papers(), _READ_BATCH):
                with self._database:
                    for paper in papers:
                        self._take(source, paper)
                done += len(papers)
                on_progress(f"finding works of {name}", done, whole)
        of_works = "SELECT COUNT(DISTINCT source) AS sources FROM names WHERE name = '' GROUP BY work"
        works, shared = self._all(f"SELECT COUNT(*), COALESCE(SUM(sources > 1), 0) FROM ({of_works})")[0]
        return {"records": done, "works": works, "shared": shared}

    def papers(self) -> Iterator[Paper]:
        """One paper for each work, with `origins`: from which source each field came."""
        rows = self._database.execute("SELECT work, source, paper_id FROM names WHERE name = '' ORDER BY 1, 2, 3")
        works = ([row[1:] for row in rows] for _, rows in itertools.groupby(rows, key=itemgetter(0)))
        for batch in in_parts(works, _READ_BATCH):
            records = [
                store.papers(paper_id for work in batch for at, paper_id in work if at == number)
                for number, (_, store) in enumerate(self._sources)
            ]
            for work in batch:
                paper = merged([(self._sources[at][0], records[at][paper_id]) for at, paper_id in work])
                yield replace(paper, paper_id=self._own_id(*work[0]))

    def citations(self) -> Iterator[dict[str, Any]]:
        """The citations of all sources between the merged papers, as records of S2AG's `citations`.

        Papers that no source has are known by their id.
        """
        for number, (name, store) in enumerate(self._sources):
            for cited_id, citing_id, citation_id, contexts, intents, influential, _ in store.select("citations"):
                ids = {"citingcorpusid": self._id(number, citing_id), "citedcorpusid": self._id(number, cited_id)}
                texts = {"contexts": store.json(contexts), "intents": store.json(intents)}
                yield {"citationid": f"{name}:{citation_id}", **ids, "isinfluential": bool(influential), **texts}

    def _id(self, source: int, paper_id: str) -> str:
        """The id of a merged paper, by the id of a source."""
        work = "SELECT work FROM names WHERE name = '' AND source = ? AND paper_id = ?"
        query = f"SELECT source, paper_id FROM names WHERE name = '' AND work = ({work}) ORDER BY 1, 2 LIMIT 1"
        return self._own_id(*next(iter(self._all(query, (source, paper_id))), (source, paper_id)))

    def _own_id(self, source: int, paper_id: str) -> str:
        """The id of a source for a paper, with the source's name if the id is that of another paper before it."""
        query = "SELECT 1 FROM names WHERE name = '' AND paper_id = ? AND source < ? LIMIT 1"
        return f"{self._sources[source][0]}:{paper_id}" if self._all(query, (paper_id, source)) else paper_id

    def _take(self, source: int, paper: Paper) -> None:
        """Puts a record into the works that share an identifier with it, which become one; else into a new one."""
        keys, title = keys_of(paper), title_name(paper.title)
        marks = ",".join("?" * len(keys))
        sharing = self._all(f"SELECT DISTINCT work FROM names WHERE name IN ({marks}) ORDER BY work", sorted(keys))
        works = [work for (work,) in sharing] or self._namesakes(paper, keys, title)
        if not works:
            self._works += 1
            works = [self._works]
        for other in works[1:]:
            self._database.execute("UPDATE names SET work = ? WHERE work = ?", (works[0], other))
        rows = [(name, paper.paper_id, source, works[0]) for name in sorted({"", title, *keys})]
        self._database.executemany("INSERT INTO names VALUES (?, ?, ?, ?)", rows)

    def _all(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._database.execute(query, parameters).fetchall()

    def _namesakes(self, paper: Paper, keys: frozenset[str], title: str) -> list[int]:
        """The first work with a record of the same title, year and author whose identifiers are not others; or none."""
        query = "SELECT work, source, paper_id FROM names WHERE name = ? ORDER BY work, source, paper_id LIMIT ?"
        for work, source, paper_id in self._all(query, (title, _MOST_NAMESAKES)) if title else ():
            other = self._sources[source][1].papers([paper_id], texts=False)[paper_id]
            others = frozenset(name for (name,) in self._all("SELECT name FROM names WHERE work = ?", (work,)))
            # Articles that follow talks of the same title are papers of their own.
            one_year = paper.year == other.year or None in (paper.year, other.year)
            may_be_editions = one_year or is_preprint(paper) or is_preprint(other)
            if may_be_editions and same_work(paper, other) and not conflicting(keys, others):
                return [work]
        return []


def merged(records: Sequence[tuple[str, Paper]]) -> Paper:
    """The paper of some records of one work, each with the name of its source, the first source first."""
    published = sorted(records, key=lambda record: is_preprint(record[1]))  # stable
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name in sorted(Paper.__dataclass_fields__.keys() - {"paper_id", "external_ids", "origins"}):
        for source, paper in published if name in _PUBLISHED else records:
            if (value := getattr(paper, name)) not in (None, "", ()):
                values[name], origins[name] = value, source
                break
    return Paper(records[0][1].paper_id, **values, external_ids=_identifiers(records), origins=origins)


def _identifiers(records: Sequence[tuple[str, Paper]]) -> Mapping[str, str]:
    """The identifiers of all records, with the ids that sources gave them; published DOIs before arXiv's."""
    ids: dict[str, str] = {}
    for source, paper in records:
        for scheme, value in {**paper.external_ids, _SCHEMES.get(source, source): paper.paper_id}.items():
            before = ids.get(scheme)
            if before is None or (scheme == "DOI" and before.casefold().startswith(ARXIV_DOI)):
                ids[scheme] = value
    return ids
