"""Full texts that come more than once: of several with one corpusid the last counts."""

import functools
import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.s2orc import read_s2orc
from citerec.corpus.json_lines import BadRecord
from citerec.corpus.result_lines import Write, reading_lines, writing_lines
from citerec.corpus.shard_work import Result, digest_of

TEXT = b"\x02"
"""Begins a line of a result that tells where a text stands."""


def list_texts(shard: Path, out: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Work for `run_stage`: writes which texts a shard of S2ORC has."""
    places = [
        (line.record.paper_id, line.number) for line in read_s2orc(shard) if not isinstance(line.record, BadRecord)
    ]
    with writing_lines(out) as write:
        write_texts(places, write)
    return {"texts": len(places)}


def write_texts(places: Sequence[tuple[str, int]], write: Write) -> None:
    """Writes ids of texts with their lines, in order."""
    for paper_id, line in sorted(places):
        write(TEXT + orjson.dumps((paper_id, line)))


def repeated(results: Sequence[Result]) -> dict[str, list[int]]:
    """The lines of each shard that a later one, there or in a later shard, stands in for; memory stays flat."""
    lost: dict[str, list[int]] = {}
    texts = heapq.merge(*[_texts(result.path, number) for number, result in enumerate(results)])
    for _, places in itertools.groupby(texts, key=lambda place: place[0]):
        for _, number, line in list(places)[:-1]:
            lost.setdefault(str(results[number].shard), []).append(line)
    return lost


def write_repeated(lost: Mapping[str, list[int]], folder: Path) -> Path:
    """Writes what `repeated` gives to a file that is named for it, for `lost_lines` to read in other processes."""
    path = folder / f"repeated-{digest_of(lost)}"
    path.write_bytes(orjson.dumps(lost))
    return path.resolve()


def lost_lines(path: str, shard: Path) -> frozenset[int]:
    """The lines of a shard that count no more."""
    return frozenset(_lost(path).get(str(shard), ()))


@functools.cache
def _lost(path: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = orjson.loads(Path(path).read_bytes())
    return found


def _texts(path: Path, number: int) -> Iterator[tuple[str, int, int]]:
    for raw in reading_lines(path):
        if raw.startswith(TEXT):
            paper_id, line = orjson.loads(raw.removeprefix(TEXT))
            yield paper_id, number, line
