"""Damaged records of the sources: each is read or set aside, and none ends the reading."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.base import FORMATS
from citerec.corpus.json_lines import BadRecord
from citerec.files.http import Web
from citerec.records import Paper
from citerec.sources.base import CORPORA, RemoteFile
from tests.source_records import ENTRY, HEADER, preprint, work

MANY = 700  # of each format
ODD: list[Any] = [
    None, True, False, 0, -1, 10**30, 1e308, 1.5, "", " ", "\x00", "\x1b[31m", "\ud800", "x" * 3000, "9" * 4000, [], {},
    [[]], [None], [{}], {"a": {}}, "https://openalex.org/W9", "{\\", "$", "\\'", "<i>", "&#x110000;", [["a", None, 3]],
    json.loads("[" * 200 + "]" * 200),
]  # fmt: skip


def changed(value: Any, rng: random.Random) -> Any:
    """A value with a part of it exchanged, left out, doubled or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(list(value))
        if rng.random() < 0.15:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: changed(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return [*value[:place], changed(value[place], rng), *value[place + rng.randrange(2) :]]
    return rng.choice([rng.choice(ODD), [value], {"value": value}, str(value)])


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Bytes of which some are exchanged, left out or doubled."""
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(raw) or 1)
        piece = rng.choice(
            [b"", bytes([rng.randrange(256)]), raw[place : place + rng.randrange(40)], b"}", b'"', b"@a{", b"\\"]
        )
        raw = raw[:place] + piece + raw[place + rng.randrange(3) :]
    return raw


def mutated_json(make: Callable[..., dict[str, Any]], rng: random.Random) -> bytes:
    value = changed(make(), rng)
    for _ in range(rng.randrange(3)):
        value = changed(value, rng)
    raw = json.dumps(value).encode()  # the standard library writes lone surrogates and what is no number
    return (damaged(raw, rng) if rng.random() < 0.4 else raw).replace(b"\n", b" ") + b"\n"


def mutated_entry(rng: random.Random) -> bytes:
    return damaged(ENTRY.encode(), rng) + b"\n"


@pytest.mark.parametrize(
    ("corpus", "name", "make"),
    [
        ("openalex", "openalex", lambda rng: mutated_json(work, rng)),
        ("arxiv", "arxiv", lambda rng: mutated_json(preprint, rng)),
        ("acl-anthology", "acl-anthology", mutated_entry),
    ],
)
def test_damaged_records_are_read_or_set_aside(
    tmp_path: Path, corpus: str, name: str, make: Callable[[random.Random], bytes]
) -> None:
    rng = random.Random(29)
    raw = [make(rng) for _ in range(MANY)]
    path = tmp_path / "shard"
    path.write_bytes((HEADER.encode() if name == "acl-anthology" else b"") + b"".join(raw))
    lines = list(FORMATS[name].read(path))
    bad = sum(isinstance(line.record, BadRecord) for line in lines)
    assert 0 < bad < len(lines)
    for line in lines:  # all of it can be written to a store, or to a quarantine
        repr(line.record).encode()
    if name != "acl-anthology":  # there a damaged entry may take in the next one
        assert {line.number for line in lines} <= set(range(1, MANY + 1))

    file = RemoteFile("any", "shard", name, "")
    with path.open("rb") as kept:
        records = list(CORPORA[corpus](Web()).records(file, kept))
    read = (record.records for record in records if not record.bad)
    found = [one for several in read for one in several if isinstance(one, Paper)]
    expected = [line.record for line in lines if not isinstance(line.record, BadRecord)]
    if name != "acl-anthology":
        assert found == expected
        assert b"".join(record.raw for record in records) == path.read_bytes()
    assert any(record.bad for record in records)
    for record in records:
        if isinstance(record.records, BadRecord):
            assert record.records.reason and orjson.dumps(record.records.beginning)
