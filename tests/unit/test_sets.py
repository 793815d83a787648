"""Diagnostic sets: written, read back, found by name, refused when they are not what they say."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from citerec.contexts.read import read_contexts
from citerec.diagnostics.families import FAMILIES, Labelled, label_contexts
from citerec.diagnostics.sets import SetManifest, find_set, list_sets, parse_id, place_for, read_set, write_labelled
from citerec.errors import InputError
from citerec.index.build import open_store
from citerec.index.manifest import Manifest
from tests.conftest import DEMO, write_lines


@pytest.fixture(scope="module")
def labelled(demo_index: Path) -> Labelled:
    return label_contexts(list(read_contexts(DEMO / "contexts.jsonl")), open_store(demo_index))


def written(tmp_path: Path, labelled: Labelled, demo_index: Path) -> Path:
    out = tmp_path / "mine"
    write_labelled(out, DEMO / "contexts.jsonl", labelled, Manifest.read(demo_index))
    return out


def test_the_demo_set_has_all_families_and_counts() -> None:
    demo = read_set(DEMO)
    assert len(demo.contexts) == 630
    assert set(demo.manifest.families) == {name for name, family in FAMILIES.items() if not family.on_the_spot}
    classes = {name: family.classes for name, family in demo.manifest.families.items()}
    assert classes["location"] == {"first": 71, "middle": 208, "last": 171}
    assert classes["length"] == {"short": 72, "medium": 162, "long": 72}
    assert classes["intent"] == {"background": 48, "method": 55, "result": 59}
    assert set(classes["field"].values()) == {35}
    assert set(classes["low_resource"].values()) == {9}
    assert len(classes["low_resource"]) == 11
    counted = Counter(label for context in demo.contexts for label in context.labels.items())
    assert all(counted[name, label] == n for name, found in classes.items() for label, n in found.items())


def test_the_demo_set_was_made_for_the_demo_corpus(demo_index: Path) -> None:
    assert read_set(DEMO).manifest.corpus_fingerprint == Manifest.read(demo_index).fingerprint


@pytest.mark.shared
def test_the_demo_labels_are_fresh(demo_index: Path, shared: Path) -> None:
    model = str(shared.parent / "models" / "en_ewt_tagger")
    contexts = list(read_contexts(DEMO / "contexts.jsonl"))
    fresh = label_contexts(contexts, open_store(demo_index), model=model, field_shares="published")
    assert [context.labels for context in fresh.contexts] == [context.labels for context in contexts], "make demo-set"


def test_a_set_comes_back_as_it_was_written(tmp_path: Path, labelled: Labelled, demo_index: Path) -> None:
    out = written(tmp_path, labelled, demo_index)
    found = read_set(out)
    assert found.contexts == labelled.contexts
    assert found.manifest.name == "mine"
    assert found.manifest.families["location"].conditions == ("the sentence is of medium length",)
    assert "pos_before" not in found.manifest.families  # there was no tagger
    assert (out / "qrels.txt").read_text().splitlines()[0] == "demo-001-1 0 900000001 1"
    records = map(json.loads, (out / "contexts.jsonl").read_text(encoding="utf-8").splitlines())
    assert all(record["source"] == "citerec-demo" and "citing_key" in record for record in records)
    datasheet = (out / "DATASHEET.md").read_text(encoding="utf-8")
    assert "`mine/location`" in datasheet
    assert "first 71, middle 208, last 171" in datasheet


def test_the_same_contexts_give_the_same_bytes(tmp_path: Path, labelled: Labelled, demo_index: Path) -> None:
    first = {path.name: path.read_bytes() for path in written(tmp_path, labelled, demo_index).iterdir()}
    again = {path.name: path.read_bytes() for path in written(tmp_path, labelled, demo_index).iterdir()}
    assert first == again
    assert not list(tmp_path.glob(".*"))


def test_only_sets_are_replaced(tmp_path: Path, labelled: Labelled, demo_index: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="exists and is no diagnostic set"):
        written(tmp_path, labelled, demo_index)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"


def test_nothing_beside_a_set_is_lost(copy: Path, labelled: Labelled, demo_index: Path) -> None:
    with pytest.raises(InputError, match="holds other things too, such as abstracts"):
        write_labelled(copy, DEMO / "contexts.jsonl", labelled, Manifest.read(demo_index))
    assert (copy / "papers").is_dir()


def test_ids_without_a_context_id_are_kept_in_the_set(tmp_path: Path, demo_index: Path) -> None:
    source = write_lines(
        tmp_path / "contexts.jsonl",
        [{"text": "One two <REF>.", "cited_ids": [900000001]}, {"text": "A <REF> b c.", "cited_ids": [900000002]}],
    )
    labelled = label_contexts(list(read_contexts(source)), open_store(demo_index))
    write_labelled(tmp_path / "two", source, labelled, Manifest.read(demo_index))
    assert [context.context_id for context in read_set(tmp_path / "two").contexts] == ["line-1", "line-2"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(DEMO, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 2, "manifest.json says version 2; this citerec reads 1"),
        ("strata", 9, "manifest.json says strata 9; this citerec reads 1"),
        ("kind", "citerec-index", "manifest.json says kind citerec-index; this citerec reads citerec-diagnostic-set"),
        ("families", 3, "manifest.json is broken"),
        ("novelty", 3, "manifest.json is broken"),
    ],
)
def test_a_set_of_another_kind_or_version_is_refused(copy: Path, key: str, value: object, message: str) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(InputError, match=re.escape(message)):
        SetManifest.read(copy)


def test_a_set_that_was_changed_is_refused(copy: Path) -> None:
    with (copy / "qrels.txt").open("a") as file:
        file.write("demo-001-1 0 900000002 1\n")
    with pytest.raises(InputError, match="not those of its manifest"):
        read_set(copy)
    (copy / "contexts.jsonl").unlink()
    with pytest.raises(InputError, match=r"has no contexts\.jsonl"):
        read_set(copy)
    (copy / "manifest.json").write_text("[")
    with pytest.raises(InputError, match="broken"):
        read_set(copy)
    (copy / "manifest.json").unlink()
    with pytest.raises(InputError, match="is no diagnostic set"):
        read_set(copy)


def test_sets_are_found_here_before_those_that_are_shipped(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_set("demo").resolve() == DEMO
    (tmp_path / "diagnostics").mkdir()
    copy.rename(tmp_path / "diagnostics" / "demo")
    assert find_set("demo") == Path("diagnostics/demo")
    assert list_sets() == {"demo": Path("diagnostics/demo")}
    assert find_set("diagnostics/demo") == Path("diagnostics/demo")
    with pytest.raises(InputError, match=r"no diagnostic set 'none'. Sets are: demo"):
        find_set("none")


def test_ids(tmp_path: Path, copy: Path) -> None:
    assert parse_id("location") == (None, "location")
    assert parse_id("demo/location") == ("demo", "location")
    assert parse_id("demo") == ("demo", None)
    assert parse_id(str(copy)) == (str(copy), None)
    assert parse_id(f"{copy}/location") == (str(copy), "location")
    assert place_for("mine") == Path("diagnostics/mine")
    assert place_for(str(tmp_path / "mine")) == tmp_path / "mine"
