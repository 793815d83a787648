"""The command line from outside, as a newcomer meets it."""

import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import psutil
import pytest

from citerec.files.registry import missing_package
from citerec.index.manifest import Manifest, generation_of, is_index
from tests.conftest import DEMO, ROOT, Citerec, s2ag_paper, write_lines


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


def test_json_is_a_list_of_hits(citerec_here: Citerec, demo_index: Path) -> None:
    sentence = "Many trees grown on resampled data vote together <REF>."
    hits = json.loads(citerec_here("recommend", sentence, "--index", demo_index, "--format", "json", "-k", 5).stdout)
    assert [hit["rank"] for hit in hits] == [1, 2, 3, 4, 5]
    assert hits[0]["title"] == "Random Forests"
    assert isinstance(hits[0]["paper_id"], int)  # as in S2AG, and as in `cited_ids`
    assert {"paper_id", "title", "year", "score", "rank"} <= set(hits[0])
    assert sorted((hit["score"] for hit in hits), reverse=True) == [hit["score"] for hit in hits]
    old = json.loads(
        citerec_here("recommend", sentence, "--index", demo_index, "--format", "json", "--year-to", 1995).stdout
    )
    assert max(hit["year"] for hit in old) <= 1995


def test_a_text_with_several_markers_from_standard_input(citerec_here: Citerec, demo_index: Path) -> None:
    text = "Forests of trees vote <REF>. Another matter are ulcers caused by curved bacilli <REF>."
    answers = json.loads(
        citerec_here("recommend", "--index", demo_index, "--format", "json", "-k", 1, text=text).stdout
    )
    assert [answer["hits"][0]["title"] for answer in answers] == [
        "Random Forests",
        "Unidentified curved bacilli in the stomach of patients with gastritis and peptic ulceration",
    ]
    table = citerec_here("recommend", "--file", "-", "--index", demo_index, "-k", 1, text=text).stdout
    assert "[1]" in table
    assert "[2]" in table


def test_without_marker_the_whole_sentence_is_searched_with_a_note(citerec_here: Citerec, demo_index: Path) -> None:
    result = citerec_here("recommend", "random forests", "--index", demo_index, "-k", 1)
    assert "Random Forests" in result.stdout
    assert "There is no <REF> in it" in result.stderr


def test_explain_says_which_words_matched_where(citerec_here: Citerec, demo_index: Path) -> None:
    result = citerec_here("recommend", "random forests <REF>", "--index", demo_index, "-k", 1, "--explain")
    assert re.search(r"matched: random \(title\+abstract\) \d\.\d, forests \(title\) \d\.\d", result.stdout)


def test_contexts_become_a_trec_run(citerec_here: Citerec, demo_index: Path, tmp_path: Path) -> None:
    contexts = DEMO / "contexts.jsonl"
    result = citerec_here("run", contexts, "--index", demo_index, "-k", 20, "--out", "run.txt")
    assert (result.stdout, "A run of 630 contexts." in result.stderr) == ("", True)
    rows = [line.split() for line in (tmp_path / "run.txt").read_text().splitlines()]
    assert all(len(row) == 6 and row[1] == "Q0" and row[5] == "citerec" for row in rows)
    records = map(json.loads, contexts.read_text(encoding="utf-8").splitlines())
    gold = {record["context_id"]: str(record["cited_ids"][0]) for record in records}
    by_context: dict[str, list[list[str]]] = {}
    for row in rows:
        by_context.setdefault(row[0], []).append(row)
    assert set(by_context) == set(gold)
    for ranked in by_context.values():
        assert [int(row[3]) for row in ranked] == list(range(1, len(ranked) + 1))
        scores = [float(row[4]) for row in ranked]
        assert all(above > below for above, below in itertools.pairwise(scores))
    found = sum(gold[name] in {row[2] for row in ranked[:10]} for name, ranked in by_context.items())
    assert found / len(gold) > 0.8


def test_bibtex_in_bibtex_out_byte_for_byte(citerec: Citerec, tmp_path: Path) -> None:
    entries = [
        '@Article{  lee:97 ,\r\n  title = "{O}kapi\tin the \\"{O}zone", year=1997\r\n}',
        "@book{kim,\n title={Giraffes}}",
    ]
    (tmp_path / "my.bib").write_bytes("\r\n\r\n".join(entries).encode())
    assert citerec("index", "build", "my.bib", "--out", "indexes/mine").returncode == 0
    # As bytes: text mode would fold the line ends.
    result = subprocess.run(
        [Path(sys.executable).with_name("citerec"), "recommend", "the okapi <REF>", "--format", "bibtex", "-k", "1"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert result.stdout == entries[0].encode() + b"\n"


def test_the_life_of_an_index(citerec: Citerec, tmp_path: Path) -> None:
    write_lines(
        tmp_path / "a.jsonl", [{"paper_id": n, "title": f"Okapi number {n}", "year": 1990 + n} for n in range(20)]
    )
    write_lines(tmp_path / "b" / "papers" / "p.jsonl", [s2ag_paper(100, "Giraffe", year=2020)])
    built = citerec("index", "build", "a.jsonl", "--out", "indexes/zoo")
    assert built.stdout.startswith("indexes/zoo built: 20 papers.\n")
    assert re.search(r"with abstract +0 \(0%\)", built.stdout)
    added = citerec("index", "add", "indexes/zoo", "b")
    assert added.stdout.startswith("indexes/zoo brought up to date: 21 papers.\n")
    info = citerec("index", "info", "indexes/zoo").stdout
    assert "1990–2020" in info
    described = json.loads(citerec("index", "info", "indexes/zoo", "--format", "json").stdout)
    assert described["counts"]["papers"] == 21
    assert described["default_system"] == "bm25"
    assert described["default_settings"]["words"]["bm25"]["k1"] == 1.2
    assert "indexes/zoo" in citerec("index", "info").stdout
    assert "indexes/zoo" in citerec("index", "info", "indexes/zoo").stdout
    assert "whole" in citerec("index", "verify").stdout
    (generation_of(tmp_path / "indexes/zoo") / "papers.sqlite").write_bytes(b"garbage")
    damaged = citerec("index", "verify")
    assert damaged.returncode == 1
    assert "Build it again" in damaged.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["-k", 0], ["asks for no paper", "-k 10"]),
        (["-k", 253], ["more than the 252 papers", "-k 252"]),
        (["-k", "ten"], ['-k: unable to convert "ten" into int']),
        (["--year-from", 2010, "--year-to", 2000], ["reversed", "--year-from 2000 --year-to 2010"]),
        (["--field", "Biologie"], ["no field of study 'Biologie'", "Did you mean 'Biology'?"]),
        (["--min-citations", -1], ["out of range"]),
        (["-c", "words.bm25.k2=1"], ["not a setting", "Did you mean words.bm25.k1?"]),
        (["--system", "none"], ["no system 'none'", "bm25-one-field"]),
        (["--fromat", "json"], ["Unknown option: --fromat. Did you mean --format?"]),
        (["--json"], ["--json is now --format json"]),
        (["--min-citations", 3_000_000_000], ["out of range"]),
        (["-c", "words.bm25.k1=inf"], ["words.bm25.k1"]),
        (["--format", "trec", "--out", "/proc/none/run"], ["cannot write /proc/none/run"]),
    ],
)
def test_wrong_arguments_are_one_line(
    citerec_here: Citerec, demo_index: Path, arguments: list[object], parts: list[str]
) -> None:
    result = citerec_here("recommend", "forests <REF>", "--index", demo_index, *arguments)
    one_line(result, 1 if "/proc/none/run" in arguments else 2, *parts)


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("", ["the sentence is empty"]),
        ("the of <REF>", ["no word to search for"]),
        ("word " * 50_000, ["50,000 words, more than 1,000"]),
    ],
    ids=["empty", "stop words", "long"],
)
def test_wrong_sentences_are_one_line(citerec_here: Citerec, demo_index: Path, sentence: str, parts: list[str]) -> None:
    one_line(citerec_here("recommend", "--index", demo_index, text=sentence), 2, *parts)


def test_the_settings_of_a_training_are_printed_as_a_file(citerec: Citerec) -> None:
    printed = citerec("train", "dense", "--print-config")
    assert printed.returncode == 0, printed.stderr
    values = tomllib.loads(printed.stdout)
    assert values["learning_rate"] == 2e-5 and "# device =" in printed.stdout


@pytest.mark.parametrize(
    "command", ["train ltr", "train tagger", "index add", "index encode", "diagnostics build", "diagnostics label"]
)
def test_settings_are_printed_without_what_the_command_needs(citerec_here: Citerec, command: str) -> None:
    printed = citerec_here(*command.split(), "--print-config")
    assert printed.returncode == 0, printed.stderr
    assert re.search(r"^(# )?\w+ =", printed.stdout, re.MULTILINE)


def test_a_command_without_settings_refuses_to_print_them(citerec_here: Citerec, tmp_path: Path) -> None:
    one_line(citerec_here("demo", "--print-config"), 2, "Unknown option", "--print-config", "citerec demo --help")
    assert not (tmp_path / "indexes").exists()


def test_names_with_hyphens_stay_whole_in_help(citerec: Citerec) -> None:
    for command in ("check", "fill", "recommend"):
        assert not re.search(r"\w-$", citerec(command, "--help").stdout, re.MULTILINE), command
    assert "key-unknown,key-duplicate\n" in citerec("check", "--help").stdout


def test_a_misspelt_command_and_option(citerec: Citerec) -> None:
    one_line(citerec("recomend", "x"), 2, "recomend", 'Did you mean "recommend"?', "See: citerec --help")
    one_line(citerec("xyz"), 2, "xyz", "See: citerec --help")
    one_line(citerec("recommend", "x", "--idx", "y"), 2, "Did you mean --index? See: citerec recommend --help")


def test_no_index_and_several(citerec_here: Citerec, tmp_path: Path) -> None:
    one_line(citerec_here("recommend", "x <REF>"), 2, "there is no index yet", "citerec demo")
    one_line(
        citerec_here("recommend", "x <REF>", "--index", "nope"), 2, "there is no index nope", "citerec index build"
    )
    write_lines(tmp_path / "a.jsonl", [{"paper_id": 1, "title": "Okapi"}])
    one_line(citerec_here("recommend", "x <REF>", "--index", "a.jsonl"), 2, "a.jsonl is a file", "build a.jsonl --out")
    citerec_here("index", "build", "a.jsonl", "--out", "indexes/a")
    # A checkout has the ranker that comes with citerec there.
    (tmp_path / "indexes/ranker").mkdir()
    (tmp_path / "indexes/ranker/manifest.json").write_text('{"kind": "citerec-ltr", "version": 1}')
    assert "Okapi" in citerec_here("recommend", "Okapi <REF>").stdout
    citerec_here("index", "build", "a.jsonl", "--out", "indexes/b")
    one_line(citerec_here("recommend", "x <REF>"), 2, "several indexes", "--index: indexes/a, indexes/b\n")
    one_line(citerec_here("recommend", "x <REF>", "--index", "indexes"), 2, "Choose one of those in it: indexes/a, ind")


@pytest.mark.parametrize(
    ("content", "code", "parts"),
    [
        (None, 2, ["does not exist"]),
        (b"", 2, ["no format that citerec recognises", "--format"]),
        (b'{"paper_id": 1}\n{"paper_id": 2, "ti', 1, ["2 of 2 records are bad: none is good", "line 1", "--max-bad"]),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03broken", 2, ["gzip stream is broken", "zcat"]),
    ],
)
def test_bad_sources_are_one_line(
    citerec_here: Citerec, tmp_path: Path, content: bytes | None, code: int, parts: list[str]
) -> None:
    if content is not None:
        (tmp_path / "s.jsonl").write_bytes(content)
    one_line(citerec_here("index", "build", "s.jsonl", "--out", "x"), code, *parts)
    assert not is_index(tmp_path / "x")


def test_a_java_too_old_or_none_is_no_traceback(citerec: Citerec, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"paper_id": 1, "title": "Okapi"}])
    result = citerec("index", "build", "a.jsonl", "--out", "x", "--engine", "lucene", CITEREC_JAVA_HEAP="lots")
    one_line(result, 1, "CITEREC_JAVA_HEAP=lots is not a size")


def big_source(tmp_path: Path, papers: int) -> Path:
    words = "okapi giraffe zebra lion ranking retrieval neural citation entropy galaxy protein market".split()
    return write_lines(
        tmp_path / "big.jsonl",
        (
            {
                "paper_id": n,
                "title": f"{words[n % 12]} {words[n // 7 % 12]} {n}",
                "abstract": " ".join(words[n % 5 :] * 12),
            }
            for n in range(papers)
        ),
    )


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_index_whole(citerec: Citerec, tmp_path: Path) -> None:
    """The kernel refuses to let any file grow past 2 MB: what a full disk looks like to a build."""
    big = big_source(tmp_path, 10_000)
    write_lines(tmp_path / "a.jsonl", [{"paper_id": 1, "title": "Okapi"}])
    assert citerec("index", "build", "a.jsonl", "--out", "x").returncode == 0
    result = subprocess.run(
        [Path(sys.executable).with_name("citerec"), "index", "build", str(big), "--out", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000)),
        check=False,
    )
    one_line(result, 1, "cannot write x", "Make room", "the same command then goes on")
    assert "Okapi" in citerec("recommend", "okapi <REF>", "--index", "x").stdout
    assert citerec("index", "build", big, "--out", "x").stdout.startswith("x built: 10,000 papers")


def test_a_build_that_is_killed_or_stopped_goes_on(citerec: Citerec, tmp_path: Path) -> None:
    """Kills at any moment are for `make torture`."""
    big = big_source(tmp_path, 30_000)
    write_lines(tmp_path / "a.jsonl", [{"paper_id": 1, "title": "Okapi"}])
    citerec("index", "build", "a.jsonl", "--out", "x")
    citerec("index", "build", big, "--out", "undisturbed")
    for how, begun, code in (
        (signal.SIGKILL, "x/making/papers.sqlite", -signal.SIGKILL),
        (signal.SIGINT, "x/making/words", 1),
    ):
        process = subprocess.Popen(
            [Path(sys.executable).with_name("citerec"), "index", "build", str(big), "--out", "x"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        while process.poll() is None and not (tmp_path / begun).exists():
            time.sleep(0.02)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        assert "whole" in citerec("index", "verify", "x").stdout
        assert Manifest.read(tmp_path / "x").counts.papers == 1
    assert errors.strip() == "citerec: stopped. Nothing is lost: repeat the command to resume or restart."
    assert citerec("index", "build", big, "--out", "x").returncode == 0
    assert Manifest.read(tmp_path / "x") == Manifest.read(tmp_path / "undisturbed")
    answers = [
        citerec("recommend", "neural citation ranking <REF>", "--index", name, "-k", 100, "--format", "json").stdout
        for name in ("x", "undisturbed")
    ]
    assert answers[0] == answers[1]
    assert "whole" in citerec("index", "verify", "x").stdout


def test_the_processes_of_a_killed_build_do_not_stay(citerec: Citerec, tmp_path: Path) -> None:
    for number in range(2):
        rows = ({"paper_id": f"{number}-{n}", "title": "okapi " * 40} for n in range(40_000))
        write_lines(tmp_path / "s" / f"{number}.jsonl", rows)
    process = subprocess.Popen(
        [Path(sys.executable).with_name("citerec"), "index", "build", "s", "--out", "x"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    while len(others := psutil.Process(process.pid).children()) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)  # ends only when nobody holds the other end of the pipe
    _, alive = psutil.wait_procs(others, timeout=60)
    assert alive == []


def test_help_is_light(citerec: Citerec) -> None:
    code = (
        "import sys; sys.argv = ['citerec', '--help']\n"
        "from citerec.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'jpype', 'pyserini', 'pydantic', 'numpy', 'ray', 'upath'}\n"
        "heavy &= set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


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


def test_a_package_is_named_also_where_its_error_was_wrapped() -> None:
    wrapped = ImportError("cannot import the module of a command")
    wrapped.__cause__ = ImportError("no module", name="pyroaring.sets")
    assert "pip install 'citerec[scale]'" in str(missing_package(wrapped))
    assert missing_package(ImportError("no module", name="unheard_of")) is None


def test_a_reader_that_leaves_is_no_error(citerec: Citerec, demo_index: Path) -> None:
    program = Path(sys.executable).with_name("citerec")
    command = f"{program} recommend 'forests <REF>' --index {demo_index} --format json -k 200 | head -c 10"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert result.stderr == ""


@pytest.mark.slow
def test_it_works_from_a_wheel(tmp_path: Path) -> None:
    """What `citerec demo` and the page of `citerec serve` need is inside the wheel."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("citerec-*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "site"], check=True)
    page = ROOT / "citerec" / "serve" / "page"
    shipped = {path.name for path in (tmp_path / "site" / "citerec" / "serve" / "page").iterdir()}
    assert shipped == {path.name for path in page.iterdir()} >= {"index.html", "app.js"}
    code = (
        "import citerec, sys; from citerec.cli.main import main\n"
        "sys.argv = ['citerec', 'demo']; print(citerec.__file__); main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert str(tmp_path / "site") in result.stdout
    assert "indexes/demo built: 252 papers" in result.stdout


def test_the_systems_are_listed_with_what_they_lack(citerec_here: Citerec, demo_index: Path) -> None:
    def listing(*more: object) -> dict[str, dict[str, str]]:
        return {one["system"]: one for one in json.loads(citerec_here("systems", "--format", "json", *more).stdout)}

    listed, here = listing(), listing("--index", demo_index)
    assert listed["bm25"]["lacks"] == "an index" and not listed["s2-api"]["lacks"]
    assert not here["bm25"]["lacks"] and "index encode" in here["hybrid"]["lacks"]
    assert "its ranker ncn" in here["ncn"]["lacks"]
    shown = citerec_here("systems", "--index", demo_index).stdout
    assert "The default here is bm25." in shown and all(name in shown for name in here)


def test_settings_change_the_systems_that_eval_measures(
    citerec_here: Citerec, demo_index: Path, tmp_path: Path
) -> None:
    given = ("eval", "--diagnostic", "intent", "--index", demo_index, "--metrics", "mrr@10", "--format", "json")
    (tmp_path / "mine.toml").write_text("[words.bm25]\nk1 = 0.01\n")

    def value(*more: object) -> object:
        done = citerec_here(*given, *more)
        assert done.returncode == 0, done.stderr
        return {name: part for name, part in json.loads(done.stdout)["systems"]["bm25"].items() if name != "cost"}

    named = ("--system", "bm25")
    assert value(*named) != value(*named, "-c", "words.bm25.k1=0.01") == value(*named, "--config", "mine.toml")
    refused = citerec_here(*given, "-c", "words.bm25.k1=0.01")
    assert refused.returncode == 2 and "go with --system only" in refused.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("index", "list"), "citerec index list is now: citerec index info"),
        (("train", "tldr"), "citerec train tldr is now: citerec train writer --kind tldr"),
        (("recommend", "x", "--set", "a=1"), "--set is now -c KEY=VALUE"),
        (("recommend", "--contexts", "x"), "--contexts is now citerec run CONTEXTS"),
        (("index", "add", "x", "--index", "i"), "--index is now the first argument"),
    ],
)
def test_an_old_name_says_the_new_one(citerec_here: Citerec, old: tuple[str, ...], new: str) -> None:
    done = citerec_here(*old)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert new in done.stderr
