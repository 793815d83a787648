"""The command line from outside, as a newcomer meets it."""

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rispy

from citerec.index.manifest import Manifest, generation_of
from tests.conftest import CITEREC, DEMO, Citerec, s2ag_paper, write_lines

SENTENCE = "Many trees grown on resampled data vote together <REF>."


def one_line(result: "subprocess.CompletedProcess[str]", code: int, *parts: str) -> None:
    """An error is one line: what is wrong, and what to do."""
    assert result.returncode == code, result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("citerec: ")
    for part in parts:
        assert part in result.stderr


def test_the_demo_finds_its_papers(citerec: Citerec) -> None:
    result = citerec("demo")
    assert result.returncode == 0, result.stderr
    for title in ("Attention Is All You Need", "Judgment under uncertainty", "Programmable Dual-RNA"):
        assert re.search(rf"^1 +.*{title}", result.stdout, re.MULTILINE), title
    assert "Now with your own sentence" in result.stdout


def test_recommend_in_its_forms(citerec_here: Citerec, demo_index: Path) -> None:
    asked = ("recommend", "--index", demo_index, "-k", 5)
    hits = json.loads(citerec_here(*asked, SENTENCE, "--format", "json").stdout)
    assert [hit["rank"] for hit in hits] == [1, 2, 3, 4, 5]
    assert hits[0]["title"] == "Random Forests"
    assert isinstance(hits[0]["paper_id"], int)  # as in S2AG, and as in `cited_ids`
    assert sorted((hit["score"] for hit in hits), reverse=True) == [hit["score"] for hit in hits]
    items = json.loads(citerec_here(*asked, SENTENCE, "--format", "csl").stdout)
    assert [item["title"] for item in items] == [hit["title"] for hit in hits]
    records = rispy.loads(citerec_here(*asked, SENTENCE, "--format", "ris").stdout)
    assert [record["title"] for record in records] == [hit["title"] for hit in hits]
    assert citerec_here(*asked, SENTENCE, "--format", "bibtex").stdout.startswith("@misc{breiman2001random,")
    old = json.loads(citerec_here(*asked, SENTENCE, "--format", "json", "--year-to", 1995).stdout)
    assert max(hit["year"] for hit in old) <= 1995
    text = "Forests of trees vote <REF>. Another matter are ulcers caused by curved bacilli <REF>."
    answers = json.loads(citerec_here(*asked, "--format", "json", text=text).stdout)
    assert [one["hits"][0]["title"].split()[0] for one in answers] == ["Random", "Unidentified"]
    table = citerec_here(*asked, "--file", "-", text=text).stdout
    assert "[1]" in table and "[2]" in table
    shown = citerec_here(*asked, "random forests", "--explain", "--scores")
    assert "There is no <REF> in it" in shown.stderr
    assert re.search(r"matched: random \(title\+abstract\) \d\.\d, forests \(title\) \d\.\d", shown.stdout)


def test_contexts_become_a_trec_run(citerec_here: Citerec, demo_index: Path, tmp_path: Path) -> None:
    contexts = DEMO / "contexts.jsonl"
    result = citerec_here("run", contexts, "--index", demo_index, "-k", 20, "--out", "run.txt")
    assert (result.stdout, "A run of 630 contexts." in result.stderr) == ("", True)
    rows = [line.split() for line in (tmp_path / "run.txt").read_text().splitlines()]
    assert all(len(row) == 6 and row[1] == "Q0" and row[5] == "citerec" for row in rows)
    records = map(json.loads, contexts.read_text(encoding="utf-8").splitlines())
    gold = {record["context_id"]: str(record["cited_ids"][0]) for record in records}
    assert {row[0] for row in rows} == set(gold)
    assert all(int(row[3]) == 1 or float(before[4]) > float(row[4]) for before, row in itertools.pairwise(rows))
    assert sum(gold[row[0]] == row[2] and int(row[3]) <= 10 for row in rows) / len(gold) > 0.8


def test_the_life_of_an_index(citerec_here: Citerec, tmp_path: Path) -> None:
    papers = [{"paper_id": n, "title": f"Okapi number {n}", "year": 1990 + n} for n in range(20)]
    write_lines(tmp_path / "a.jsonl", papers)
    write_lines(tmp_path / "b" / "papers" / "p.jsonl", [s2ag_paper(100, "Giraffe", year=2020)])
    built = citerec_here("index", "build", "a.jsonl", "--out", "indexes/zoo").stdout
    assert built.startswith("indexes/zoo built: 20 papers.\n") and re.search(r"with abstract +0 \(0%\)", built)
    added = citerec_here("index", "add", "indexes/zoo", "b").stdout
    assert added.startswith("indexes/zoo brought up to date: 21 papers.\n")
    assert "1990–2020" in citerec_here("index", "info", "indexes/zoo").stdout
    described = json.loads(citerec_here("index", "info", "indexes/zoo", "--format", "json").stdout)
    assert (described["counts"]["papers"], described["default_system"]) == (21, "hybrid+ltr")
    assert described["default_settings"]["words"]["bm25"]["k1"] == 1.2
    assert "indexes/zoo" in citerec_here("index", "info").stdout
    unsure = citerec_here("index", "build", "indexes/zoo", "--out", "words", "--vectors", "none", "-c", "backend=onnx")
    one_line(unsure, 2, "--vectors none makes no vectors")
    assert "whole" in citerec_here("index", "verify").stdout
    citerec_here("index", "remove", "indexes/zoo", "100", code=0)
    assert Manifest.read(tmp_path / "indexes/zoo").counts.papers == 20
    (generation_of(tmp_path / "indexes/zoo") / "papers.sqlite").write_bytes(b"garbage")
    damaged = citerec_here("index", "verify")
    assert damaged.returncode == 1 and "Build it again" in damaged.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["-k", 0], ["asks for no paper", "-k 10"]),
        (["-k", 253], ["more than the 252 papers", "-k 252"]),
        (["-c", "words.bm25.k2=1"], ["not a setting", "Did you mean words.bm25.k1?"]),
        (["--system", "none"], ["no system 'none'", "bm25-one-field"]),
        (["--fromat", "json"], ["Unknown option: --fromat. Did you mean --format?"]),
        (["--index", "a.jsonl"], ["a.jsonl is a file", "build a.jsonl --out"]),
        (["--json"], ["--json is now --format json"]),
    ],
)
def test_wrong_arguments_are_one_line(
    citerec_here: Citerec, demo_index: Path, tmp_path: Path, arguments: list[object], parts: list[str]
) -> None:
    write_lines(tmp_path / "a.jsonl", [{"paper_id": 1, "title": "Okapi"}])
    index = [] if "--index" in arguments else ["--index", demo_index]
    one_line(citerec_here("recommend", "forests <REF>", *index, *arguments), 2, *parts)


def test_misspelt_and_old_names(citerec_here: Citerec) -> None:
    one_line(citerec_here("recomend", "x"), 2, "recomend", 'Did you mean "recommend"?', "See: citerec --help")
    one_line(citerec_here("recommend", "x", "--idx", "y"), 2, "Did you mean --index? See: citerec recommend --help")
    one_line(citerec_here("index", "list"), 2, "citerec index list is now: citerec index info")
    one_line(citerec_here("train", "tldr"), 2, "citerec train tldr is now: citerec train writer --kind tldr")
    one_line(citerec_here("index", "add", "x", "--index", "i"), 2, "--index is now the first argument")


def test_settings_are_printed_without_what_the_command_needs(citerec_here: Citerec) -> None:
    for command in ("train dense", "train ltr", "index add", "index encode", "diagnostics build"):
        printed = citerec_here(*command.split(), "--print-config")
        assert re.search(r"^(# )?\w+ =", printed.stdout, re.MULTILINE), printed.stderr
    one_line(citerec_here("demo", "--print-config"), 2, "Unknown option", "--print-config", "citerec demo --help")


def test_no_index_and_several(citerec_here: Citerec, tmp_path: Path) -> None:
    one_line(citerec_here("recommend", "x <REF>"), 2, "there is no index yet", "citerec demo")
    one_line(citerec_here("eval"), 2, "there is no index yet", "citerec demo")
    one_line(citerec_here("recommend", "x <REF>", "--index", "no"), 2, "there is no index no", "citerec index build")
    write_lines(tmp_path / "a.jsonl", [{"paper_id": 1, "title": "Okapi"}])
    citerec_here("index", "build", "a.jsonl", "--out", "indexes/a")
    # A checkout has the ranker that comes with citerec there.
    (tmp_path / "indexes/ranker").mkdir()
    (tmp_path / "indexes/ranker/manifest.json").write_text('{"kind": "citerec-ltr", "version": 1}')
    assert "Okapi" in citerec_here("recommend", "Okapi <REF>").stdout
    citerec_here("index", "build", "a.jsonl", "--out", "indexes/b")
    one_line(citerec_here("recommend", "x <REF>"), 2, "several indexes", "--index: indexes/a, indexes/b\n")
    one_line(citerec_here("recommend", "x <REF>", "--index", "indexes"), 2, "Choose one of those in it: indexes/a, ind")


def test_a_build_that_is_killed_or_stopped_goes_on(citerec_here: Citerec, tmp_path: Path) -> None:
    papers = [{"paper_id": n, "title": f"Okapi {n}", "abstract": "zebras and lions " * (n % 50)} for n in range(30_000)]
    write_lines(tmp_path / "a.jsonl", papers[:1])
    big = write_lines(tmp_path / "big.jsonl", papers)
    citerec_here("index", "build", "a.jsonl", "--out", "x")
    citerec_here("index", "build", big, "--out", "undisturbed")
    for how, begun, code in (
        (signal.SIGKILL, "x/making/papers.sqlite", -signal.SIGKILL),
        (signal.SIGINT, "x/making/words", 1),
    ):
        command = [CITEREC, "index", "build", big, "--out", "x"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not (tmp_path / begun).exists():
                time.sleep(0.02)
            process.send_signal(how)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        assert "whole" in citerec_here("index", "verify", "x").stdout
        assert Manifest.read(tmp_path / "x").counts.papers == 1
    # A busy machine shows a line of progress before it.
    assert errors.splitlines()[-1] == "citerec: stopped. Nothing is lost: repeat the command to resume or restart."
    citerec_here("index", "build", big, "--out", "x", code=0)
    assert Manifest.read(tmp_path / "x") == Manifest.read(tmp_path / "undisturbed")
    asked = ("recommend", "zebras and lions <REF>", "-k", 100, "--format", "json", "--index")
    assert citerec_here(*asked, "x").stdout == citerec_here(*asked, "undisturbed").stdout


PARTS = ("jpype", "lightgbm", "faiss", "ranx", "scipy", "matplotlib", "spacy", "torch", "transformers")


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], (*PARTS, "numpy", "pydantic", "pyserini", "ray", "upath")),
        (["eval", "--help"], (*PARTS, "pandas")),
        (["eval", "--metrics", "recall@10,ndcg@10", "--system", "bm25", "--set", "demo"], (*PARTS, "numba")),
    ],
    ids=["help", "help of eval", "eval"],
)
def test_only_what_is_used_is_imported(demo_index: Path, arguments: list[str], heavy: tuple[str, ...]) -> None:
    code = "import sys\nfrom citerec.cli.main import main\ntry: main()\nexcept SystemExit: pass\n"
    code += f"print([m for m in {heavy} if m in sys.modules])"
    given = [*arguments, "--index", demo_index] if "--set" in arguments else arguments
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_has_its_help_without_extras() -> None:
    code = (
        "import sys\n"
        "from citerec.files.registry import EXTRAS\n"
        "sys.modules |= dict.fromkeys([module for modules in EXTRAS.values() for module in modules])\n"
        "from citerec.cli.main import cli\n"
        "from docs.reference import commands\n"
        "for path, _ in list(commands()): cli.help_print(path.split()[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: citerec ") > 54
    assert "key-unknown,key-duplicate" in done.stdout  # names with hyphens stay whole


@pytest.mark.parametrize(
    "command",
    ["recommend 'forests <REF>' --format json -k 200 | head -c 10", "eval --set demo --out results | true"],
    ids=["recommend", "eval"],
)
def test_a_reader_that_leaves_is_no_error(demo_index: Path, tmp_path: Path, command: str) -> None:
    program, _, reader = command.partition(" |")
    line = f"{CITEREC} {program} --index {demo_index} | {reader}"
    run = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Traceback" not in run.stderr and "Broken" not in run.stderr
    assert (tmp_path / "results" / "meta.json").exists() == command.startswith("eval")  # written all the same


def test_the_systems_are_listed_with_what_they_lack(citerec_here: Citerec, demo_index: Path) -> None:
    def lacks(*more: object) -> dict[str, str]:
        listed = json.loads(citerec_here("systems", "--format", "json", *more).stdout)
        return {one["system"]: one["lacks"] for one in listed}

    nowhere, here = lacks(), lacks("--index", demo_index)
    assert nowhere["bm25"] == "an index" and not nowhere["s2-api"] and not here["bm25"]
    assert "index encode" in here["hybrid"] and "its ranker ncn" in here["ncn"]
    assert "The default here is bm25." in citerec_here("systems", "--index", demo_index).stdout
