"""Indexes that are replaced while they are opened, or killed while they are made: nothing is lost, nothing is mixed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from citerec import Context, Filters, Recommender, evaluate
from citerec.errors import IndexUnusableError
from citerec.index.build import add_to_index, build_index, encode_index
from citerec.index.describe import verify
from citerec.index.manifest import Manifest, generation_of
from citerec.index.vectors import DenseOptions
from tests.conftest import ROOT, write_lines
from tests.dense.conftest import unit_vectors, write_arrays

_WRITER = """
import itertools, sys
from pathlib import Path
from citerec.index.build import build_index

place = Path(sys.argv[1])
for number in itertools.count(1):
    if place.with_name("enough").exists():
        break
    name = "ab"[number % 2]
    build_index([place.with_name(f"{name}.jsonl")], place)
"""
_ADDER = """
import sys
from pathlib import Path
from citerec.index.build import add_to_index

add_to_index([Path(sys.argv[2])], Path(sys.argv[1]))
"""


def write_source(folder: Path, name: str) -> Path:
    """Papers of which each part of an index tells whose it is."""
    papers = [f"{name}{number}" for number in range(8)]
    lines = [{"paper_id": paper, "title": f"Okapi {paper}", "venue": f"Venue {name}{name}"} for paper in papers]
    return write_lines(folder / f"{name}.jsonl", lines)


def test_all_that_is_opened_belongs_to_one_generation(tmp_path: Path) -> None:
    prints = {}
    for name in "ba":  # the writer begins with b
        prints[build_index([write_source(tmp_path, name)], tmp_path / "place").fingerprint] = name
    place, seen = tmp_path / "place", []
    with subprocess.Popen([sys.executable, "-c", _WRITER, place], cwd=ROOT) as writer:
        try:
            while (len(seen) < 40 or len(set(seen)) < 2) and writer.poll() is None:
                with Recommender.open(place, "bm25") as found:
                    name = prints[found.manifest.fingerprint]
                    time.sleep(0.01 * (len(seen) % 5))  # what is read after opening belongs to it too
                    assert prints[found.store.fingerprint()] == name
                    ids = {f"{name}{number}" for number in range(8)}
                    hits = found.search(f"okapi {name}1 <REF>", 8, Filters(venues=(f"venue {name}{name}",)))
                    assert {hit.paper.paper_id for hit in hits} == ids
                    assert {hit.paper.venue for hit in hits} == {f"Venue {name}{name}"}
                    seen.append(name)
                if len(seen) % 10 == 0:
                    assert verify(place) == []
        finally:
            (tmp_path / "enough").touch()
    assert writer.returncode == 0
    assert set(seen) == {"a", "b"}
    assert len([path for path in place.iterdir() if path.name.isdecimal()]) == 2


def test_systems_of_an_evaluation_search_one_generation(tmp_path: Path) -> None:
    build_index([write_source(tmp_path, "a")], index := tmp_path / "index")
    contexts = [Context(context_id=str(number), text="Okapi <REF>", cited_ids=("a1",)) for number in range(3)]
    more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "m", "title": "More okapis"}])

    def replacing(context: Context, _k: int) -> list[tuple[str, float]]:
        if context.context_id == "0":
            add_to_index([more], index)
        return [("a1", 1.0)]

    with pytest.raises(IndexUnusableError, match="was replaced while it was searched"):
        evaluate({"first": replacing, "bm25": "bm25"}, contexts, index=index, metrics="mrr@5")


def test_a_build_that_was_killed_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    """Whenever it is killed, the index that was there answers; the same command then gives what one run gives."""
    draws, started = random.Random(5), time.monotonic()
    papers = [{"paper_id": str(n), "title": f"Okapi {n} {n % 7}"} for n in range(3000)]
    more = write_lines(tmp_path / "more.jsonl", papers[1:])
    build_index([write_lines(tmp_path / "one.jsonl", papers[:1])], index := tmp_path / "index")
    build_index([tmp_path / "one.jsonl"], whole := tmp_path / "whole")
    add_to_index([more], whole)
    command = [sys.executable, "-c", _ADDER, index, more]
    takes = time.monotonic() - started + 0.5
    kills = 0
    while kills < 6:
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as adding:
            time.sleep(draws.random() * takes)
            if adding.poll() is None:
                os.kill(adding.pid, signal.SIGKILL)
        kills += 1
        if Manifest.read(index).counts.papers > 1:
            break
        with Recommender.open(index) as opened:
            assert [hit.paper.paper_id for hit in opened.search("okapi <REF>")] == ["0"]
    if Manifest.read(index).counts.papers == 1:
        subprocess.run(command, cwd=ROOT, check=True)
    assert verify(index) == []
    assert Manifest.read(index).checksums == Manifest.read(whole).checksums
    assert {path.name for path in index.iterdir()} <= {"1", "2", "CURRENT", ".lock"}


def test_two_generations_are_kept_and_share_what_did_not_change(tmp_path: Path) -> None:
    build_index([write_source(tmp_path, "a")], index := tmp_path / "index")
    vectors = write_arrays(tmp_path / "v", np.array([f"a{number}" for number in range(8)]), unit_vectors(8, 16))
    before = generation_of(index)
    with Recommender.open(index) as reader:
        encode_index(index, DenseOptions("any/model", vectors=(vectors,)))
        now = generation_of(index)
        for name in ("papers.sqlite", "columns/ids.npy", "words/contents/vocab.index.json"):
            assert (before / name).samefile(now / name)
        add_to_index([write_lines(tmp_path / "m.jsonl", [{"paper_id": "m", "title": "More okapis"}])], index)
        assert sorted(path.name for path in index.iterdir() if path.name.isdecimal()) == ["2", "3"]
        assert len(reader.search("okapi <REF>", 8, explain=True)) == 8  # its files are gone, and it keeps them
    assert verify(index) == []


def test_a_full_disk_is_said_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """The kernel lets no file grow past some size, wherever that is met."""
    papers = write_lines(tmp_path / "p.jsonl", [{"paper_id": str(n), "title": f"Okapi {n}"} for n in range(4000)])
    build_index([write_lines(tmp_path / "one.jsonl", [{"paper_id": "0", "title": "Okapi"}])], index := tmp_path / "i")
    code = (
        "import resource, signal, sys; from citerec.errors import BuildError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)\n"
        f"try:\n    exec({_ADDER!r})\nexcept BuildError as error: print(error)"
    )
    for size in (2_000, 200_000):
        run = subprocess.run(
            [sys.executable, "-c", code, index, papers, str(size)], cwd=ROOT, capture_output=True, text=True
        )
        assert run.stdout.startswith(f"cannot write {index}"), run.stderr
        assert Manifest.read(index).counts.papers == 1
    assert add_to_index([papers], index).counts.papers == 4000
    assert verify(index) == []
