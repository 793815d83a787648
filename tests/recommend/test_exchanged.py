"""Indexes that are replaced while they are opened: every open succeeds, and has all its parts from one index."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from citerec.errors import IndexUnusableError
from citerec.evaluation.evaluate import evaluate
from citerec.files import writing
from citerec.files.writing import exchange
from citerec.recommend import Recommender
from citerec.records import NO_FILTERS, Context
from citerec.retrieve.dense.build import DenseOptions
from citerec.retrieve.dense.retriever import DenseRetriever
from citerec.retrieve.describe import describe
from citerec.retrieve.index import BuildOptions, build_index
from citerec.retrieve.lucene import LuceneRetriever
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.staging import recover
from citerec.retrieve.verify import verify
from tests.conftest import ROOT, write_lines
from tests.dense.conftest import unit_vectors, write_arrays

_WRITER = """
import itertools, os, shutil, sys, time
from pathlib import Path
from citerec.files import writing

place, steps = Path(sys.argv[1]), sys.argv[2]
if steps == "2":
    writing._swapped = lambda *_: False
for number in itertools.count():
    if place.with_name("enough").exists():
        break
    new = writing.beside(place, "new")
    shutil.copytree(place.with_name("ba"[number % 2]), new, copy_function=os.link)
    writing.exchange(new, place)
    time.sleep(0.05)  # beside other work, opening takes longer than copying a few files
print(number)
"""


def index_of(folder: Path, name: str) -> Path:
    """An index of which each part tells whose it is."""
    papers = [f"{name}{number}" for number in range(8)]
    lines = [{"paper_id": paper, "title": f"Okapi {paper}", "venue": name} for paper in papers]
    source = write_lines(folder / f"{name}.jsonl", lines)
    vectors = write_arrays(folder / f"vectors-{name}", np.array(papers), unit_vectors(len(papers), 16))
    dense = DenseOptions("any/model", vectors=(vectors,))
    build_index([source], folder / name, BuildOptions(dense=dense))
    return folder / name


@pytest.mark.parametrize("steps", [1, 2])
def test_all_that_is_opened_belongs_to_one_index(tmp_path: Path, steps: int) -> None:
    prints = {name: Manifest.read(index_of(tmp_path, name)).fingerprint for name in "ab"}
    place = tmp_path / "place"
    shutil.copytree(tmp_path / "a", place, copy_function=os.link)
    command = [sys.executable, "-c", _WRITER, str(place), str(steps)]
    opens: dict[str, int] = {"a": 0, "b": 0}
    seen, changes = "a", 0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        try:
            while (min(opens.values()) < 15 or changes < 10) and writer.poll() is None:
                with Recommender.from_parts(place, [LuceneRetriever, DenseRetriever]) as found:
                    name = {fingerprint: name for name, fingerprint in prints.items()}[found.manifest.fingerprint]
                    opens[name] += 1
                    seen, changes = name, changes + (name != seen)
                    time.sleep(0.001 * (opens[name] % 5))  # what is read after opening belongs to it too
                    assert found.store.fingerprint() == prints[name]
                    ids = [f"{name}{number}" for number in range(8)]
                    assert found._index.rows.paper_ids(found._index.lucene.matching_rows(NO_FILTERS)) == ids
                    (dense,) = (part for part in found._retrievers if isinstance(part, DenseRetriever))
                    assert dense.vectors.paper_ids(np.arange(8)) == ids
                    assert dense.vectors.manifest.store == prints[name]
                if sum(opens.values()) % 10 == 0:
                    description = describe(place)
                    assert list(description.venues) == [
                        name for name in "ab" if prints[name] == description.manifest.fingerprint
                    ]
                    assert verify(place) == []
        finally:
            (tmp_path / "enough").touch()
        exchanges = int(writer.stdout.read() if writer.stdout else 0)
    assert writer.returncode == 0
    print(f"{exchanges} exchanges, {changes} seen, {opens} opens")
    assert exchanges >= changes >= 10  # a writer that ended before is found by its code or here


def test_what_is_being_removed_is_not_put_into_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = index_of(tmp_path, "a"), index_of(tmp_path, "b")
    names, remove = sorted(path.name for path in second.iterdir()), shutil.rmtree

    def removing(folder: Path, **options: bool) -> None:
        recover(first)  # a reader comes in between
        remove(folder, **options)

    monkeypatch.setattr(writing, "_swapped", lambda *_: False)
    monkeypatch.setattr(writing.shutil, "rmtree", removing)
    exchange(second, first)
    assert sorted(path.name for path in first.iterdir()) == names
    assert not [path.name for path in tmp_path.iterdir() if "removed" in path.name or "previous" in path.name]


def test_systems_of_an_evaluation_search_one_index(tmp_path: Path) -> None:
    first, second = index_of(tmp_path, "a"), index_of(tmp_path, "b")
    contexts = [Context(context_id=str(number), text="Okapi <REF>", cited_ids=("a1",)) for number in range(3)]

    def replacing(_context: Context, _k: int) -> list[tuple[str, float]]:
        if second.exists():
            exchange(second, first)
        return [("a1", 1.0)]

    with pytest.raises(IndexUnusableError, match="was replaced while it was searched"):
        evaluate({"first": replacing, "bm25": "bm25"}, contexts, index=first, metrics="mrr@5")
