"""Diagnostic sets: written, read back, found by name, refused when they are not what they say."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from citerec.contexts.read import read_contexts
from citerec.diagnostics.families import FAMILIES, Labelled, label_contexts
from citerec.diagnostics.sets import find_set, list_sets, parse_id, read_set, write_labelled
from citerec.errors import InputError
from citerec.index.build import open_store
from citerec.index.manifest import Manifest
from tests.conftest import DEMO


@pytest.fixture(scope="module")
def labelled(demo_index: Path) -> Labelled:
    return label_contexts(list(read_contexts(DEMO / "contexts.jsonl")), open_store(demo_index))


def test_the_demo_set_is_what_its_manifest_says(demo_index: Path) -> None:
    demo = read_set(DEMO)
    assert len(demo.contexts) == 630
    assert demo.manifest.corpus_fingerprint == Manifest.read(demo_index).fingerprint
    assert set(demo.manifest.families) == {name for name, family in FAMILIES.items() if not family.on_the_spot}
    classes = {name: family.classes for name, family in demo.manifest.families.items()}
    assert classes["location"] == {"first": 71, "middle": 208, "last": 171}
    assert set(classes["field"].values()) == {35} and set(classes["low_resource"].values()) == {9}
    counted = Counter(label for context in demo.contexts for label in context.labels.items())
    assert all(counted[name, label] == n for name, found in classes.items() for label, n in found.items())


def test_a_set_comes_back_as_it_was_written(tmp_path: Path, labelled: Labelled, demo_index: Path) -> None:
    def written() -> dict[str, bytes]:
        write_labelled(tmp_path / "mine", DEMO / "contexts.jsonl", labelled, Manifest.read(demo_index))
        return {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}

    files = written()
    assert written() == files and not list(tmp_path.glob(".*"))
    found = read_set(tmp_path / "mine")
    assert found.contexts == labelled.contexts
    assert found.manifest.families["location"].conditions == ("the sentence is of medium length",)
    assert "pos_before" not in found.manifest.families  # there was no tagger
    assert files["qrels.txt"].splitlines()[0] == b"demo-001-1 0 900000001 1"
    assert all("citing_key" in json.loads(line) for line in files["contexts.jsonl"].splitlines())
    assert b"`mine/location`" in files["DATASHEET.md"] and b"first 71, middle 208" in files["DATASHEET.md"]


def test_a_set_of_another_kind_or_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DEMO, copy := tmp_path / "diagnostics" / "demo")
    monkeypatch.chdir(tmp_path)
    # A set that is here comes before one that is shipped.
    assert find_set("demo") == find_set("diagnostics/demo") == list_sets()["demo"] == Path("diagnostics/demo")
    assert (parse_id("demo/location"), parse_id("location")) == (("demo", "location"), (None, "location"))
    with pytest.raises(InputError, match=r"no diagnostic set 'none'. Sets are: demo"):
        find_set("none")
    for name, old, new, message in (
        ("manifest.json", '"strata": 1,', '"strata": 9,', "says strata 9; this citerec reads 1"),
        ("manifest.json", "citerec-diagnostic-set", "citerec-index", "says kind citerec-index"),
        ("qrels.txt", "900000001", "900000002", "not those of its manifest"),
    ):
        before = (copy / name).read_text()
        (copy / name).write_text(before.replace(old, new))
        with pytest.raises(InputError, match=message):
            read_set(copy)
        (copy / name).write_text(before)
    for name, message in (("contexts.jsonl", "has no contexts"), ("manifest.json", "is no diagnostic set")):
        (copy / name).unlink()
        with pytest.raises(InputError, match=message):
            read_set(copy)
