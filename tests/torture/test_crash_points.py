"""Commands that write, dying before a rename, an exchange or a delete: the old is there, or the new, and reviews whole.

By default a few points of each command are tried; with CITEREC_CRASH_POINTS=all, all of them.
"""

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

from citerec.diagnostics.review import read_reviews, record_verdict
from citerec.diagnostics.sets import read_set
from citerec.evaluation.files import RESULTS
from citerec.retrieve.dense.vectors import Vectors
from citerec.retrieve.index import recover
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.verify import verify
from tests.conftest import DEMO, write_lines
from tests.dense.conftest import unit_vectors, write_arrays
from tests.torture.crash_points import DIED, cli, count_points, crash_at

_FEW = 3
_PAPERS = 12

Check = Callable[[Path], str]
"""Reads what a command writes; returns what tells the old from the new."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, demo_index: Path) -> Path:
    """A folder with an index, a set with reviews, results and a ranker, and what is needed to write them anew."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(demo_index, folder / "x")
    papers = [{"paper_id": f"new-{number}", "title": f"Okapi {number}"} for number in range(_PAPERS)]
    write_lines(folder / "new.jsonl", papers)
    ids = np.array([str(900_000_001 + number) for number in range(_PAPERS)])
    for name, seed in (("first", 0), ("second", 1)):
        write_arrays(folder / name, ids, unit_vectors(_PAPERS, 16, seed))
    lines = (DEMO / "contexts.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "some.jsonl").write_bytes(b"".join(lines[:40]))
    (folder / "all.jsonl").write_bytes(b"".join(lines[:60]))
    for command in (
        ("index", "encode", "x", "--model", "m", "--vectors", "first"),
        ("diagnostics", "label", "some.jsonl", "--index", "x", "--out", "./mine", "--no-conditions"),
        (
            "eval",
            "--system",
            "bm25",
            "--contexts",
            "some.jsonl",
            "--index",
            "x",
            "--out",
            "results",
            "--resamples",
            100,
        ),
    ):
        count_points(functools.partial(cli, folder, *command))
    for context in read_set(folder / "mine").contexts[:3]:
        record_verdict(folder / "mine", "ada", context.context_id, "reject")
    return folder


def _index(folder: Path) -> str:
    recover(folder / "x")
    assert verify(folder / "x") == []
    return Manifest.read(folder / "x").fingerprint


def _vectors(folder: Path) -> str:
    _index(folder)
    return Vectors(folder / "x" / "dense").manifest.checksums["vectors.npy"]


def _set(folder: Path) -> str:
    assert len(read_reviews(folder / "mine")["ada"]) == 3
    return read_set(folder / "mine").manifest.fingerprint


def _results(folder: Path) -> str:
    results = folder / "results"
    assert RESULTS.is_at(results)
    lines = (results / "contexts.jsonl").read_bytes().splitlines()
    assert orjson.loads((results / "results.json").read_bytes())["kind"] == RESULTS.kind
    return str(len(lines))


COMMANDS: dict[str, tuple[tuple[object, ...], Check]] = {
    "build": (("index", "build", "new.jsonl", "--out", "x"), _index),
    "add": (("index", "add", "new.jsonl", "--index", "x"), _index),
    "encode": (("index", "encode", "x", "--model", "m", "--vectors", "second"), _vectors),
    "label": (("diagnostics", "label", "all.jsonl", "--index", "x", "--out", "./mine", "--no-conditions"), _set),
    "apply": (("diagnostics", "review", "./mine", "--apply"), _set),
    "eval": (
        ("eval", "--system", "bm25", "--contexts", "all.jsonl", "--index", "x", "--out", "results", "--resamples", 100),
        _results,
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_wherever_a_command_dies_the_old_or_the_new_is_there(place: Path, tmp_path: Path, name: str) -> None:
    command, check = COMMANDS[name]
    folder = tmp_path / "place"
    work = functools.partial(cli, folder, *command)

    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(place, folder)

    prepare()
    old = check(folder)
    points = count_points(work)
    new = check(folder)
    assert old != new
    every = os.environ.get("CITEREC_CRASH_POINTS") == "all"
    chosen = range(1, points + 1) if every else sorted({points - step * points // _FEW for step in range(_FEW)})
    seen = []
    for point in chosen:
        prepare()
        outcome = crash_at(work, point)
        assert outcome.code in (0, DIED), (point, outcome)
        seen.append(check(folder))
        if every or point == points:
            again = crash_at(work, None)
            assert again.code == 0, (point, again)
            assert "Traceback" not in again.output
            assert check(folder) == new
    assert set(seen) <= {old, new}
