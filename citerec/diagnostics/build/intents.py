"""Why papers are cited: S2AG's `citations` of drawn papers."""

import functools
import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.base import FORMATS
from citerec.corpus.json_lines import BadRecord
from citerec.corpus.result_lines import QUARANTINE, quarantine_line, reading_lines, writing_lines
from citerec.files.addresses import path_of
from citerec.files.resume import Result, Step
from citerec.records import Citation


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
    pairs = heapq.merge(*[_pairs(result.path) for result in results])
    for citing_id, rows in itertools.groupby(pairs, key=lambda row: row[0]):
        cites: dict[str, set[str]] = {}
        for _, cited_id, intents in rows:
            cites.setdefault(cited_id, set()).update(intents)
        yield citing_id, {cited_id: sorted(intents) for cited_id, intents in cites.items()}


@functools.cache
def drawn_papers(path: str) -> frozenset[str]:
    """The ids in a file of drawn papers; read once a process."""
    return frozenset(line.decode() for line in reading_lines(path_of(path)))


def _pairs(path: Path) -> Iterator[list[Any]]:
    good = itertools.takewhile(lambda line: not line.startswith(QUARANTINE), reading_lines(path))
    return map(orjson.loads, good)
