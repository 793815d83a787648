"""`citerec eval`, `report` and `diagnostics` from outside, as a newcomer meets them."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import ir_datasets
import orjson
import pytest

from citerec import Index
from citerec.contexts.read import ir_dataset, irds_folder, read_queries
from citerec.diagnostics.sets import find_set, read_set
from citerec.discourse.classifier import TAGGER_DIRECTORY, TaggerManifest
from citerec.discourse.linear import LinearTagger
from citerec.errors import InputError
from citerec.evaluation.evaluate import read_source
from tests.conftest import DEMO, ROOT, Citerec, write_lines
from tests.discourse.toy import sentences
from tests.e2e.test_cli import one_line

FIGURE = r"0\.\d{3} \[[\d.]+ [\d.]+\]"


@pytest.fixture
def indexed(tmp_path: Path, demo_index: Path) -> Path:
    """A folder in which `make demo` has been run."""
    shutil.copytree(demo_index, tmp_path / "indexes" / "demo")
    return tmp_path


def test_the_demo_is_measured_by_location_at_once(citerec_here: Citerec, indexed: Path) -> None:
    result = citerec_here("eval", "--diagnostic", "location", code=0)
    assert result.stderr == ""
    for label, n in (("first", 71), ("middle", 208), ("last", 171)):
        assert re.search(rf"^{label} +{n} +{FIGURE} +{FIGURE} +{FIGURE} *$", result.stdout, re.MULTILINE), label
    assert re.search(r"^class +n +recall@10 +mrr@10 +ndcg@10$", result.stdout, re.MULTILINE)
    for part in ("Robustness", "worst class", "Cost", "queries/s", "newer papers left out", "[low high]: 95 %"):
        assert part in result.stdout
    assert not list(indexed.glob("results*"))  # nothing is written unasked


def test_settings_and_recipes_change_what_is_measured(citerec_here: Citerec, indexed: Path) -> None:
    given = ("eval", "--diagnostic", "intent", "--metrics", "mrr@10", "--format", "json")
    (indexed / "mine.toml").write_text("[words.bm25]\nk1 = 0.01\n")
    (indexed / "titles.toml").write_text("[words.weights]\ntext = 0.0\ntitle = 1.0\n")

    def value(*more: object, system: str = "bm25") -> dict[str, Any]:
        done = citerec_here(*given, "--system", system, *more, code=0)
        (name,) = (systems := json.loads(done.stdout)["systems"])
        return {key: part for key, part in systems[name].items() if key != "cost"}

    assert value() != value("-c", "words.bm25.k1=0.01") == value("--config", "mine.toml")
    weights = value(system="titles.toml")["settings"]["words"]["weights"]
    assert weights == {"text": 0, "title": 1, "abstract": 0, "citances": 1.8}
    one_line(citerec_here(*given, "-c", "words.bm25.k1=0.01"), 2, "go with --system only")


def test_results_side_by_side(citerec_here: Citerec, indexed: Path) -> None:
    for name in ("bm25", "bm25-one-field"):
        citerec_here("eval", "--diagnostic", "location", "--system", name, "--out", f"results/{name}", code=0)
    result = citerec_here("report", "results/bm25", "results/bm25-one-field", "--out", "both.html", code=0)
    assert re.search(rf"^first +bm25 +71 +[★▲▼ ]*{FIGURE}", result.stdout, re.MULTILINE)
    assert "Holm" in result.stdout
    assert "bm25-one-field" in (indexed / "both.html").read_text(encoding="utf-8")
    assert citerec_here("report", "results/bm25").stdout.startswith("demo  630 contexts")
    one_line(citerec_here("report", "results/none"), 2, "holds no results")
    asked = ("eval", "--diagnostic", "location", "--format", "json")
    system, run = (
        json.loads(citerec_here(*asked, *more).stdout)
        for more in (("--system", "bm25"), ("--run", "results/bm25/runs/bm25.trec"))
    )
    assert run["means"] == system["means"] and run["systems"]["bm25"]["kind"] == "run"


def test_contexts_of_ones_own_become_a_set(citerec_here: Citerec, indexed: Path) -> None:
    result = citerec_here("diagnostics", "label", DEMO / "contexts.jsonl", "--out", "mine", code=0)
    assert "There is no spaCy model en_core_web_sm" in result.stderr
    assert re.search(r"^location +450 +first 71, middle 208, last 171", result.stdout, re.MULTILINE)
    assert (indexed / "diagnostics" / "mine" / "manifest.json").is_file()
    listed = citerec_here("diagnostics", "show").stdout
    assert re.search(r"^mine/location +450 ", listed, re.MULTILINE)
    assert re.search(r"^demo/pos_before +208 ", listed, re.MULTILINE)
    shown = citerec_here("diagnostics", "show", "mine/location").stdout
    assert "held constant: the sentence is of medium length" in shown
    assert re.search(r"^first +71 ", shown, re.MULTILINE)
    assert shown.count("<REF>") == 3
    assert "medium length" in citerec_here("diagnostics", "show", "mine").stdout
    label = ("diagnostics", "label", DEMO / "contexts.jsonl", "--out", "location")
    one_line(citerec_here(*label), 2, "is a family of strata")
    one_line(citerec_here("eval", "--diagnostic", "mine/low_resource"), 2, "no context of mine has a class")
    result = citerec_here("eval", "--set", "mine", "--diagnostic", "location")
    assert re.search(rf"^first +71 +{FIGURE}", result.stdout, re.MULTILINE), result.stderr


def test_bad_contexts_and_runs(citerec_here: Citerec, indexed: Path) -> None:
    good = {"text": "Good <REF>.", "cited_ids": [900000001]}
    write_lines(indexed / "contexts.jsonl", [good, {"text": "No marker.", "cited_ids": [900000001]}])
    one_line(citerec_here("eval", "--contexts", "contexts.jsonl"), 2, "line 2: the text holds 0 <REF>")
    one_line(citerec_here("diagnostics", "label", "contexts.jsonl", "--out", "x"), 2, "line 2: the text holds 0 <REF>")
    assert not (indexed / "diagnostics").exists()
    (indexed / "run.trec").write_text("demo-001-1 Q0 900000001 1 2.0 x\nnobody Q0 900000001 1 2.0 x\n")
    one_line(citerec_here("eval", "--run", "run.trec"), 2, "line 2: there is no context 'nobody'")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--metrics", "recall@100", "-k", "50"], ["recall@100 looks at 100 hits", "-k 100"]),
        (["--system", "bm52"], ["there is no system 'bm52'", "bm25"]),
        (["--system", "bm25", "--run", "bm25=x.trec"], ["two systems are called 'bm25'", "--run NAME=FILE"]),
        (["--diagnostic", "demo/location", "--set", "other"], ["one set at a time"]),
        (["--out", "indexes"], ["indexes exists and is no folder of results"]),
        (["--contexts", "x.trec", "--diagnostic", "nothing"], ["nothing is no family of contexts", "location"]),
        (["--contexts", "topics.tsv", "--qrels", "qrels.txt"], ["line 2: no judgement like those before"]),
    ],
)
def test_wrong_arguments(citerec_here: Citerec, indexed: Path, arguments: list[str], parts: list[str]) -> None:
    (indexed / "x.trec").write_text("demo-001-1 Q0 900000001 1 2.0 x\n")
    (indexed / "topics.tsv").write_text("q1\tHelices <REF>.\nq2\tTrees <REF>.\n")
    (indexed / "qrels.txt").write_text("q1 0 900000001 1\nq2 0 900000002\n")
    one_line(citerec_here("eval", *arguments), 2, *parts)


def test_what_is_read_or_was_built_is_not_written_over(citerec_here: Citerec, indexed: Path) -> None:
    contexts = (DEMO / "contexts.jsonl").read_bytes()
    (indexed / "mine.jsonl").write_bytes(contexts)
    for arguments in (
        ("run", "mine.jsonl", "--out", "mine.jsonl"),
        ("train", "fusion", "--contexts", "mine.jsonl", "--out", "./mine.jsonl"),
    ):
        one_line(citerec_here(*arguments), 2, "mine.jsonl is the file that is read")
    assert (indexed / "mine.jsonl").read_bytes() == contexts
    citerec_here("contexts", "split", "mine.jsonl", "--out", "parts", code=0)
    train = (indexed / "parts" / "train.jsonl").read_bytes()
    one_line(citerec_here("contexts", "split", "parts/train.jsonl", "--out", "parts"), 2, "is the file that is read")
    assert (indexed / "parts" / "train.jsonl").read_bytes() == train
    citerec_here("diagnostics", "label", "mine.jsonl", "--out", "built", code=0)
    (indexed / "diagnostics" / "built" / "reserves.jsonl").touch()
    one_line(citerec_here("diagnostics", "label", "mine.jsonl", "--out", "built"), 2, "is a set that was built")


def test_a_trained_part_is_measured_by_its_folder(citerec_here: Citerec, indexed: Path) -> None:
    shutil.copytree(ROOT / "indexes" / "ranker", indexed / "models" / "mine")
    named = ("--contexts", DEMO / "contexts.jsonl", "--system", "bm25+models/mine", "--out", "results")
    citerec_here("eval", *named, code=0)
    assert "bm25+models-mine" in citerec_here("report", "results", code=0).stdout


def test_intents_that_contexts_lack_are_given_by_a_tagger(citerec_here: Citerec, indexed: Path) -> None:
    manifest = TaggerManifest(model="linear", scheme="scicite", labels=("background", "method", "result"))
    with TAGGER_DIRECTORY.writing(indexed / "tagger") as partial:
        LinearTagger.fit(sentences(), manifest, 0).save(partial)
    contexts = [orjson.loads(line) | {"intent": None} for line in (DEMO / "contexts.jsonl").read_bytes().splitlines()]
    file = write_lines(indexed / "mine.jsonl", contexts)
    measured = ("eval", "--contexts", file, "--diagnostic", "intent", "--system", "bm25")
    one_line(citerec_here(*measured), 2, "--tagger labels intents")
    result = citerec_here(*measured, "--tagger", indexed / "tagger", code=0)
    assert re.search(rf"^method +\d+ +{FIGURE}", result.stdout, re.MULTILINE), result.stdout
    citerec_here("diagnostics", "label", file, "--out", "tagged", "--tagger", indexed / "tagger", code=0)
    assert re.search(r"^tagged/intent +\d+ ", citerec_here("diagnostics", "show").stdout, re.MULTILINE)
    one_line(citerec_here("eval", "--set", "tagged", "--tagger", indexed / "tagger"), 2, "goes with --contexts only")


def test_a_set_is_written_as_a_folder_of_beir_and_measured_there(citerec_here: Citerec, indexed: Path) -> None:
    citerec_here("diagnostics", "export", "demo", "--out", "beir", code=0)
    assert list(read_queries(indexed / "beir")) == list(read_set(find_set("demo")))
    one_line(citerec_here("diagnostics", "export", "demo", "--out", "beir"), 2, "is there already")
    citerec_here("index", "build", "beir", "--out", "indexes/beir", "--vectors", "none", code=0)
    measured = [
        citerec_here(
            "eval", *what, "--index", f"indexes/{index}", "--system", "bm25", "--diagnostic", "location", code=0
        )
        for what, index, family in (((), "demo", "location"), (("--contexts", "beir"), "beir", "location"))
    ]
    demo, again = (Index(indexed / "indexes" / name) for name in ("demo", "beir"))
    assert [(one.paper_id, one.year, one.authors) for one in again] == [
        (one.paper_id, one.year, one.authors) for one in demo
    ]
    first, second = (re.search(r"^middle .*$", one.stdout, re.MULTILINE) for one in measured)
    assert first and second and first[0] == second[0]


def test_a_set_is_a_collection_of_ir_datasets_and_measured_by_its_name(
    citerec_here: Citerec, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(indexed / "cache"))
    citerec_here("diagnostics", "export", "demo", "--out", "beir", code=0)
    dataset = ir_dataset(indexed / "beir")
    demo = {context.context_id: context for context in read_set(find_set("demo"))}
    assert {one.query_id: one.text for one in dataset.queries_iter()} == {name: one.text for name, one in demo.items()}
    pairs = {(one.query_id, one.doc_id) for one in dataset.qrels_iter()}
    assert pairs == {(name, paper_id) for name, one in demo.items() for paper_id in one.cited_ids}

    ir_datasets.registry.register("citerec/demo", dataset)
    contexts = read_source("irds:citerec/demo").contexts
    assert [(one.text, one.cited_ids) for one in contexts] == [(one.text, one.cited_ids) for one in demo.values()]
    citerec_here("index", "build", "irds:citerec/demo", "--out", "indexes/irds", "--vectors", "none", code=0)
    assert (
        json.loads(citerec_here("index", "info", "indexes/irds", "--format", "json").stdout)["counts"]["papers"] == 252
    )
    with pytest.raises(InputError, match="ir_datasets cannot give 'nobody/nothing'"):
        irds_folder("irds:nobody/nothing")
