"""`citerec eval`, `report` and `diagnostics` from outside, as a newcomer meets them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DEMO, Citerec, write_lines
from tests.e2e.test_cli import one_line

FIGURE = r"0\.\d{3} \[[\d.]+ [\d.]+\]"


@pytest.fixture
def indexed(tmp_path: Path, demo_index: Path) -> Path:
    """A folder in which `make demo` has been run."""
    shutil.copytree(demo_index, tmp_path / "indexes" / "demo")
    return tmp_path


def test_the_demo_is_measured_by_location_at_once(citerec: Citerec, indexed: Path) -> None:
    result = citerec("eval", "--diagnostic", "location")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for label, n in (("first", 71), ("middle", 208), ("last", 171)):
        assert re.search(rf"^{label} +{n} +{FIGURE} +{FIGURE} +{FIGURE} *$", result.stdout, re.MULTILINE), label
    assert re.search(r"^class +n +recall@10 +mrr@10 +ndcg@10$", result.stdout, re.MULTILINE)
    for part in ("Robustness", "worst class", "Cost", "queries/s", "newer papers left out", "[low high]: 95 %"):
        assert part in result.stdout
    assert not list(indexed.glob("results*"))  # nothing is written unasked


def test_several_systems_are_compared(citerec_here: Citerec, indexed: Path) -> None:
    result = citerec_here("eval", "--diagnostic", "demo/intent", "--system", "bm25", "--system", "bm25-one-field")
    assert result.returncode == 0, result.stderr
    assert "▲ ▼ higher or lower than bm25" in result.stdout
    assert re.search(r"^method +bm25 +55 ", result.stdout, re.MULTILINE)


def test_overall_is_over_all_contexts_whichever_families_are_asked_for(citerec_here: Citerec, indexed: Path) -> None:
    # Some of these sentences are not of medium length, which the family of places holds constant.
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    write_lines(indexed / "contexts.jsonl", map(json.loads, lines))
    command = ["eval", "--contexts", "contexts.jsonl", "--system", "bm25", "--metrics", "mrr@10"]
    everything = json.loads(citerec_here(*command, "--format", "json").stdout)
    one = json.loads(citerec_here(*command, "--diagnostic", "location", "--format", "json", "--out", "one").stdout)
    overall = [[mean for mean in value["means"] if mean["family"] == "overall"] for value in (one, everything)]
    assert (overall[0][0]["n"], overall[0]) == (60, overall[1])
    assert list(one["families"]) == ["location"]
    for value in (one, everything):
        in_class = sum(mean["n"] for mean in value["means"] if mean["family"] == "location")
        assert value["without_class"]["location"] == 60 - in_class == 18
    shown = citerec_here(*command, "--diagnostic", "location").stdout
    assert "(location)  held constant: the sentence is of medium length; 18 contexts have no class" in shown
    assert "18 contexts have no class" in (indexed / "one" / "report.html").read_text(encoding="utf-8")
    assert "18 contexts have no class" in citerec_here("report", "one").stdout


def test_a_recipe_of_ones_own_is_a_system(citerec_here: Citerec, indexed: Path) -> None:
    (indexed / "titles.toml").write_text("[words.weights]\ntext = 0.0\ntitle = 1.0\n")
    value = json.loads(
        citerec_here("eval", "--diagnostic", "length", "--system", "titles.toml", "--format", "json").stdout
    )
    assert list(value["systems"]) == ["titles"]
    assert value["systems"]["titles"]["settings"]["words"]["weights"] == {
        "text": 0, "title": 1, "abstract": 0, "citances": 1.8,
    }  # fmt: skip


def test_results_are_written_and_a_run_gives_the_same_figures(citerec_here: Citerec, indexed: Path) -> None:
    command = ["eval", "--diagnostic", "location", "--system", "bm25", "--out", "results/demo"]
    first = citerec_here(*command)
    assert first.returncode == 0, first.stderr
    assert "results/demo/report.html" in first.stderr
    value = json.loads((indexed / "results" / "demo" / "meta.json").read_text())
    assert value["command"].startswith("citerec eval --diagnostic location --system bm25")
    shown = json.loads(citerec_here(*command[:-2], "--format", "json").stdout)
    system = shown["systems"]["bm25"]
    again = citerec_here("eval", "--diagnostic", "location", "--run", "results/demo/runs/bm25.trec", "--format", "json")
    assert json.loads(again.stdout)["means"] == shown["means"]
    rescored = json.loads(again.stdout)["systems"]["bm25"]
    assert (rescored["kind"], rescored["cost"]) == ("run", None)
    assert (rescored["outcomes"], rescored["ranks"], rescored["empty"]) == (
        system["outcomes"], system["ranks"], system["empty"],
    )  # fmt: skip


def test_results_side_by_side(citerec_here: Citerec, indexed: Path) -> None:
    for name in ("bm25", "bm25-one-field"):
        assert (
            citerec_here("eval", "--diagnostic", "location", "--system", name, "--out", f"results/{name}").returncode
            == 0
        )
    result = citerec_here("report", "results/bm25", "results/bm25-one-field", "--out", "both.html")
    assert result.returncode == 0, result.stderr
    assert re.search(rf"^first +bm25 +71 +[★▲▼ ]*{FIGURE}", result.stdout, re.MULTILINE)
    assert "Holm" in result.stdout
    assert "bm25-one-field" in (indexed / "both.html").read_text(encoding="utf-8")
    assert citerec_here("report", "results/bm25").stdout.startswith("demo  630 contexts")
    assert citerec_here("report", "results/bm25", "--out", "new/page.html").returncode == 0
    # Also where the reader of the output closes it.
    command = f"{Path(sys.executable).with_name('citerec')} report results/bm25 --out page.html | true"
    assert subprocess.run(["bash", "-c", command], cwd=indexed, capture_output=True, check=True).stderr == b""
    assert (indexed / "page.html").exists()
    one_line(citerec_here("report", "results/none"), 2, "holds no results")


def test_a_run_that_leaks_is_cleaned_and_told(citerec_here: Citerec, indexed: Path) -> None:
    write_lines(
        indexed / "contexts.jsonl",
        [
            {"context_id": f"c{number}", "text": "It was <REF> once.", "cited_ids": [900000001], "citing_id": 900000002,
             "citing_year": 2000}
            for number in range(3)
        ],
    )  # fmt: skip
    lines = [
        f"c{number} Q0 {paper} 1 {-paper} x\n" for number in range(3) for paper in (900000001, 900000002, 900000041)
    ]
    (indexed / "mine.trec").write_text("".join(lines))
    result = citerec_here("eval", "--contexts", "contexts.jsonl", "--run", "other=mine.trec", "--metrics", "mrr@10")
    assert "other broke the rules: 3 lines with the citing paper and 3 with newer papers" in " ".join(
        result.stdout.split()
    ), result.stderr
    kept = citerec_here(
        "eval", "--contexts", "contexts.jsonl", "--run", "mine.trec", "--include-citing", "--no-as-of-year",
        "--metrics", "mrr@10",
    )  # fmt: skip
    assert "broke the rules" not in kept.stdout
    assert "newer papers NOT left out" in kept.stdout


def test_contexts_of_ones_own_become_a_set(citerec_here: Citerec, indexed: Path) -> None:
    result = citerec_here("diagnostics", "label", DEMO / "contexts.jsonl", "--out", "mine")
    assert result.returncode == 0, result.stderr
    assert "There is no spaCy model en_core_web_sm" in result.stderr
    assert re.search(r"^location +450 +first 71, middle 208, last 171", result.stdout, re.MULTILINE)
    assert "too few to say much" in result.stdout or "few" not in result.stdout
    assert (indexed / "diagnostics" / "mine" / "manifest.json").is_file()
    listed = citerec_here("diagnostics", "show").stdout
    assert re.search(r"^mine/location +450 ", listed, re.MULTILINE)
    assert re.search(r"^demo/pos_before +208 ", listed, re.MULTILINE)
    shown = citerec_here("diagnostics", "show", "mine/location").stdout
    assert "held constant: the sentence is of medium length" in shown
    assert re.search(r"^first +71 ", shown, re.MULTILINE)
    assert shown.count("<REF>") == 3
    assert "medium length" in citerec_here("diagnostics", "show", "mine").stdout
    demo = citerec_here("diagnostics", "show", "demo/location").stdout
    assert all(line.startswith("  ") or re.match(r"(first|middle|last) +\d", line) for line in demo.splitlines()[3:])
    one_line(
        citerec_here("diagnostics", "label", DEMO / "contexts.jsonl", "--out", "location"), 2, "is a family of strata"
    )
    one_line(
        citerec_here("eval", "--diagnostic", "mine/low_resource"), 2, "no context of mine has a class of low_resource"
    )
    result = citerec_here("eval", "--set", "mine", "--diagnostic", "location")
    assert re.search(rf"^first +71 +{FIGURE}", result.stdout, re.MULTILINE), result.stderr


BAD_RUNS = [
    ("demo-001-1 Q0 900000001 1 2.0 x\ndemo-001-1 Q0 1 2 1.0 x\n", "line 2: the paper '1' is not in the index"),
    ("demo-001-1 Q0 900000001 1 2.0 x\nnobody Q0 900000001 1 2.0 x\n", "line 2: there is no context 'nobody'"),
    ("demo-001-1 Q0 900000001 1 2.0 x\n" * 2, "line 2: context demo-001-1 and paper 900000001 are already in line 1"),
    ("demo-001-1 Q0 900000001 1 nan x\n", "line 1: the score 'nan' is not a number"),
    ("demo-001-1 900000001 1 2.0 x\n", "line 1: 5 columns where 6 should be"),
    ("", "run.trec is empty"),
]


@pytest.mark.parametrize(("text", "message"), BAD_RUNS, ids=[message for _, message in BAD_RUNS])
def test_bad_runs(citerec_here: Citerec, indexed: Path, text: str, message: str) -> None:
    (indexed / "run.trec").write_text(text)
    one_line(citerec_here("eval", "--run", "run.trec"), 2, message)


BAD_CONTEXTS = [
    ({"text": "No marker.", "cited_ids": [900000001]}, "line 2: the text holds 0 <REF>"),
    ({"text": "A <REF> b."}, "line 2: cited_ids is missing or empty"),
    ({"text": "A <REF> b.", "cited_ids": []}, "line 2: cited_ids is missing or empty"),
    ({"text": "A <REF> b.", "cited_ids": [1], "labels": 3}, "line 2: labels"),
]


@pytest.mark.parametrize(("record", "message"), BAD_CONTEXTS, ids=[message for _, message in BAD_CONTEXTS])
def test_bad_contexts(citerec_here: Citerec, indexed: Path, record: dict[str, object], message: str) -> None:
    write_lines(indexed / "contexts.jsonl", [{"text": "Good <REF>.", "cited_ids": [900000001]}, record])
    one_line(citerec_here("eval", "--contexts", "contexts.jsonl"), 2, message)
    one_line(citerec_here("diagnostics", "label", "contexts.jsonl", "--out", "x"), 2, message)
    assert not (indexed / "diagnostics").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--diagnostic", "locaton"], ["there is no diagnostic set 'locaton'", "location"]),
        (["--diagnostic", "demo/locaton"], ["there is no family 'locaton'", "location"]),
        (["--diagnostic", "other/location"], ["there is no diagnostic set 'other'"]),
        (["--set", "none"], ["there is no diagnostic set 'none'"]),
        (["--metrics", "recal@10"], ["there is no metric 'recal@10'", "Metrics are: recall"]),
        (["--metrics", ","], ["there is no metric"]),
        (["--metrics", "recall@100", "-k", "50"], ["recall@100 looks at 100 hits", "-k 100"]),
        (["-k", "1000"], ["-k 1,000 is not between 1 and the 252 papers"]),
        (["--system", "bm52"], ["there is no system 'bm52'", "bm25"]),
        (["--system", "bm25", "--run", "bm25=x.trec"], ["two systems are called 'bm25'", "--run NAME=FILE"]),
        (["--run", "none.trec"], ["cannot read none.trec"]),
        (["--run", "indexes"], ["cannot read indexes"]),
        (["--system", "bm25", "--run", "a$b=x.trec"], ["'a$b' cannot name a system"]),
        (["--out", "."], ["is the current folder, or holds it"]),
        (["--out", "indexes/demo/CURRENT/x"], ["cannot write", "is not a folder to write to"]),
        (["--contexts", "none.jsonl"], ["cannot read none.jsonl"]),
        (["--set", "demo", "--contexts", "x.jsonl"], ["give one of --set and --contexts"]),
        (["--diagnostic", "demo/location", "--contexts", "x.jsonl"], ["the name of a family"]),
        (["--diagnostic", "demo/location", "--set", "other"], ["one set at a time"]),
        (["--seed", "-1"], ["--seed", ">= 0"]),
        (["--index", "indexes/none"], ["there is no index indexes/none"]),
        (["--workers", "0"], ["--workers"]),
        (["--out", "indexes"], ["indexes exists and is no folder of results"]),
    ],
)
def test_bad_arguments_end_in_one_line(
    citerec_here: Citerec, indexed: Path, arguments: list[str], parts: list[str]
) -> None:
    (indexed / "x.trec").write_text("demo-001-1 Q0 900000001 1 2.0 x\n")
    one_line(citerec_here("eval", *arguments), 2, *parts)


def test_a_set_of_another_version_ends_in_one_line(citerec_here: Citerec, indexed: Path) -> None:
    shutil.copytree(DEMO, indexed / "diagnostics" / "old")
    manifest = indexed / "diagnostics" / "old" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 0}))
    one_line(citerec_here("eval", "--set", "old"), 2, "says version 0; this citerec reads 1")
    one_line(citerec_here("diagnostics", "show", "old"), 2, "says version 0")
    assert "says version 0" in " ".join(citerec_here("diagnostics", "show").stdout.split())


def test_without_any_index_it_says_how_to_get_one(citerec: Citerec) -> None:
    one_line(citerec("eval", "--diagnostic", "location"), 2, "there is no index yet", "citerec demo")


def test_the_index_that_a_set_was_made_for_is_found_among_others(citerec_here: Citerec, indexed: Path) -> None:
    shutil.copytree(DEMO / "papers", indexed / "few")
    assert citerec_here("index", "build", "few", "--out", "indexes/a-first").returncode == 0
    value = json.loads(citerec_here("eval", "--diagnostic", "intent", "--format", "json").stdout)
    assert value["index"]["path"] == "indexes/demo"


def test_many_metrics_do_not_push_the_names_out(citerec_here: Citerec, indexed: Path) -> None:
    metrics = "recall@10,mrr@10,ndcg@10,map@100,precision@5"
    both = ("--system", "bm25", "--system", "bm25-one-field")
    result = citerec_here("eval", "--diagnostic", "location", *both, "--metrics", metrics)
    assert re.search(rf"^first +bm25 +71(?:[★▲▼ ]+{FIGURE}){{5}}", result.stdout, re.MULTILINE), result.stdout
    assert re.search(rf"^ +bm25-one-field +71(?:[★▲▼ ]+{FIGURE}){{5}}", result.stdout, re.MULTILINE)


def test_results_are_written_even_if_nobody_reads_the_output(citerec: Citerec, indexed: Path) -> None:
    import os
    import subprocess
    import sys

    reading, writing = os.pipe()
    os.close(reading)
    command = [Path(sys.executable).with_name("citerec"), "eval", "--diagnostic", "location", "--out", "results/a"]
    subprocess.run(command, cwd=indexed, stdout=writing, stderr=subprocess.DEVNULL, check=False, timeout=120)
    os.close(writing)
    assert (indexed / "results" / "a" / "meta.json").is_file()


def test_few_hits_are_called_what_they_are(citerec_here: Citerec, indexed: Path) -> None:
    result = citerec_here("eval", "--diagnostic", "location", "-k", 5, "--metrics", "recall@5")
    assert "first 5" in result.stdout
    assert "first 10" not in result.stdout


def test_help_of_eval_is_light(citerec: Citerec) -> None:
    code = "import sys; from citerec.cli.main import cli; cli(['eval', '--help']); "
    # The help names the systems that there are: the modules of all parts are loaded, and with them numpy and pydantic.
    heavy = ("spacy", "ranx", "torch", "transformers", "jpype", "lightgbm", "faiss", "pandas", "scipy", "matplotlib")
    code += f"print([m for m in {heavy} if m in sys.modules])"
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--system", "bm25"],  # every family of the demo set: its classes are known, but for those found on the spot
        ["--system", "bm25", "--contexts", DEMO / "contexts.jsonl", "--diagnostic", "year"],
    ],
)
def test_eval_imports_only_what_it_uses(indexed: Path, arguments: list[object]) -> None:
    code = "import sys\nfrom citerec.cli.main import cli\ncli(sys.argv[1:])\n"
    heavy = ("spacy", "ranx", "numba", "torch", "transformers", "lightgbm", "faiss", "scipy", "matplotlib")
    code += f"print([m for m in {heavy} if m in sys.modules])"
    import subprocess
    import sys

    command = [sys.executable, "-c", code, "eval", "--metrics", "recall@10,ndcg@10", *map(str, arguments)]
    done = subprocess.run(command, cwd=indexed, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
