"""What is read before sentences are extracted: which papers full texts cite, and why drawn papers are cited.

The first pass over the full texts tells which papers have a text at hand: only those are drawn. S2AG's `citations` tell
why the drawn ones are cited.
"""

import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.read import read_contexts
from citerec.contexts.repeats import TEXT, write_texts
from citerec.contexts.s2orc import read_s2orc
from citerec.corpus.base import FORMATS
from citerec.corpus.json_lines import BadRecord, bad_record
from citerec.corpus.result_lines import QUARANTINE, quarantine_line, reading_lines, writing_lines
from citerec.corpus.store import PaperStore
from citerec.files.addresses import path_of
from citerec.files.resume import Result, Step
from citerec.records import Citation


def survey_texts(shard: Path, out: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes `paper TAB texts that cite it` of a shard of S2ORC, in order of paper; then the bad records."""
    cited: Counter[str] = Counter()
    texts = bad = faults = 0
    # Lines that are no text come first: if they stop the work, the message names the first.
    aside: list[bytes] = []
    misfits: list[bytes] = []
    places: list[tuple[str, int]] = []
    for line in read_s2orc(shard):
        if isinstance(line.record, BadRecord):
            bad += 1
            aside.append(quarantine_line(shard.name, line.number, line.record))
            continue
        texts += 1
        places.append((line.record.paper_id, line.number))
        cited.update(line.record.cited_ids())
        faults += len(line.record.faults)
        for fault in line.record.faults:
            misfits.append(quarantine_line(shard.name, line.number, bad_record(fault, line.beginning)))
    _write(out, cited, [*aside, *misfits], places)
    return {"texts": texts, "bad": bad, "faults": faults}


def survey_contexts(shard: Path, out: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same for a file of contexts."""
    cited: Counter[str] = Counter()
    citing: set[str] = set()
    for context in read_contexts(shard, cited=True):
        cited.update(context.cited_ids)
        citing.add(context.citing_id or context.citing_key or "")
    _write(out, cited)
    return {"texts": len(citing), "bad": 0, "faults": 0}


SURVEY_TEXTS, SURVEY_CONTEXTS = Step(survey_texts, version=1), Step(survey_contexts, version=1)


def cited_papers(results: Sequence[Result]) -> Iterator[str]:
    """The papers that any text cites, in order of id; memory stays constant."""
    merged = heapq.merge(*[_good_lines(result.path) for result in results])
    for paper_id, _ in itertools.groupby(merged, key=lambda line: line.partition(b"\t")[0]):
        yield paper_id.decode()


def read_intents(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes `[citing, cited, intents]` of the drawn papers of a shard of `citations`, then the bad records."""
    drawn = drawn_papers(parameters["drawn"])
    found: list[tuple[str, str, tuple[str, ...]]] = []
    rows = bad = 0
    aside: list[bytes] = []
    for line in FORMATS["s2ag-citations"].read(shard):
        if isinstance(line.record, BadRecord):
            bad += 1
            aside.append(quarantine_line(shard.name, line.number, line.record))
        elif isinstance(line.record, Citation):
            rows += 1
            if line.record.cited_id in drawn:
                intents = tuple(sorted({intent for each in line.record.intents for intent in each}))
                found.append((line.record.citing_id, line.record.cited_id or "", intents))
    with writing_lines(out) as write:
        for pair in sorted(found):
            write(orjson.dumps(pair))
        for line_aside in aside:
            write(QUARANTINE + line_aside)
    return {"rows": rows, "bad": bad, "drawn": len(found)}


READ_INTENTS = Step(read_intents, version=1)


def citing_papers(results: Sequence[Result]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each paper that cites a drawn one, in order of id: what it cites, and with which intents."""
    pairs = heapq.merge(*[map(orjson.loads, _good_lines(result.path)) for result in results])
    for citing_id, rows in itertools.groupby(pairs, key=lambda row: row[0]):
        cites: dict[str, set[str]] = {}
        for _, cited_id, intents in rows:
            cites.setdefault(cited_id, set()).update(intents)
        yield citing_id, {cited_id: sorted(intents) for cited_id, intents in cites.items()}


@functools.cache
def drawn_papers(path: str) -> frozenset[str]:
    """The ids in a file of drawn papers; read once a process."""
    return frozenset(line.decode() for line in reading_lines(path_of(path)))


def quarantine(results: Sequence[Result]) -> Iterator[bytes]:
    """The bad records as JSON, in order of shard and line."""
    for result in results:
        for line in reading_lines(result.path):
            if line.startswith(QUARANTINE):
                yield line.removeprefix(QUARANTINE)


def aside(papers: PaperStore, results: Sequence[Result]) -> list[bytes]:
    """The bad records of papers (in the store), citations and texts, once each, in order of shard and line."""
    shards = {number: Path(counts.path).name for number, counts in papers.shards().items()}
    lines = [
        quarantine_line(shards[bad.shard], bad.line, BadRecord(bad.reason, bad.beginning))
        for bad in papers.quarantine()
        if bad.shard in shards
    ]
    by_shard = {result.shard: result for result in results}
    return sorted([*lines, *quarantine(list(by_shard.values()))], key=_place)


def _place(line: bytes) -> tuple[str, int]:
    bad = orjson.loads(line)
    return bad["shard"], bad["line"]


def _write(out: Path, cited: Counter[str], aside: Sequence[bytes] = (), places: Sequence[tuple[str, int]] = ()) -> None:
    with writing_lines(out) as write:
        for line in sorted(f"{paper_id}\t{texts}".encode() for paper_id, texts in cited.items()):
            write(line)
        write_texts(places, write)
        for line in aside:
            write(QUARANTINE + line)


def _good_lines(path: Path) -> Iterator[bytes]:
    return itertools.takewhile(lambda line: not line.startswith((TEXT, QUARANTINE)), reading_lines(path))
