"""`citerec diagnostics review`: keys are piped, sessions go on, what was rejected goes out."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from citerec.diagnostics.sets import reviews_of
from tests.conftest import DEMO, Citerec
from tests.e2e.test_cli import one_line
from tests.unit.test_review import built, everything, ids


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A small built set."""
    return built(tmp_path / "diagnostics" / "mine")


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """The demo set, copied as its error says."""
    (tmp_path / "diagnostics" / "own").mkdir(parents=True)
    for file in DEMO.glob("*.*"):
        shutil.copy(file, tmp_path / "diagnostics" / "own")
    return tmp_path / "diagnostics" / "own"


def lines(path: Path, reviewer: str = "ada") -> list[dict[str, Any]]:
    text = (reviews_of(path) / f"{reviewer}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_context_is_shown_with_all_that_is_to_be_checked(citerec_here: Citerec, mine: Path) -> None:
    result = citerec_here("diagnostics", "review", "mine", "--reviewer", "ada", text="q\n")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    shown = result.stdout
    context_id = re.search(r"Of (\w+) it was shown that it holds <REF>\.", shown)
    assert context_id
    for part in ("1 of 4", "Art · 2001–2005 · citations: group", "[Results]", "Before it stood [this].", "After it"):
        assert part in shown
    assert "held constant: the marker is the last word" in shown
    assert "stands for “[12]”" in shown
    assert re.search(r"7 \(2010\) cites \d", shown)
    assert "one whole sentence? just one citation" in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert not reviews_of(mine).exists()


def test_a_session_goes_on_where_it_stopped(citerec: Citerec, mine: Path) -> None:
    review = ("diagnostics", "review", "mine", "--reviewer", "ada")
    first = citerec(*review, text="a\nr\nhalf a [sentence]\n")
    assert first.returncode == 0, first.stderr
    assert "3 of 4" in first.stdout
    assert re.search(r"^ada +1 +1 +2 +50\.0% \[9\.5 90\.5\]", first.stdout, re.MULTILINE)
    assert "--apply" in first.stdout
    assert [(line["verdict"], line["note"]) for line in lines(mine)] == [
        ("accept", ""),
        ("reject", ""),
        ("reject", "half a [sentence]"),
    ]
    second = citerec(*review, text="a\na\n")
    assert "2 of 4" not in second.stdout
    assert "3 of 4" in second.stdout
    assert re.search(r"^ada +3 +1 +0 ", second.stdout, re.MULTILINE)
    assert "ada has judged all 4 contexts." in citerec(*review).stdout
    assert sorted(line["context_id"] for line in lines(mine) if line["note"] != "half a [sentence]") == sorted(
        ids(mine)
    )


def test_back_takes_back_what_was_decided_or_skipped_last(citerec_here: Citerec, mine: Path) -> None:
    review = ("diagnostics", "review", "mine", "--reviewer", "ada")
    citerec_here(*review, text="a\n")
    result = citerec_here(*review, text="s\nr\nno\nb\nb\nb\nb\nq\n")
    places = re.findall(r"^(\d) of 4", result.stdout, re.MULTILINE)
    assert places == ["2", "3", "4", "3", "2", "1"]
    assert "there is nothing to go back to" in result.stdout
    assert re.search(r"^ada +0 +0 +4 +–", result.stdout, re.MULTILINE)
    assert [line["verdict"] for line in lines(mine)] == ["accept", "reject", "reject", None, None]
    assert lines(mine)[3]["note"] == ""  # the reason went with the rejection


def test_notes_go_with_the_verdict(citerec_here: Citerec, mine: Path) -> None:
    review = ("diagnostics", "review", "mine", "--reviewer", "ada")
    citerec_here(*review, text="n\nlooks odd\n")  # nothing is lost where the session ends here
    result = citerec_here(*review, text="r\nno sentence\nN\nfine\nA\n")
    assert re.search("^noted: +looks odd", result.stdout, re.MULTILINE)
    last = {line["context_id"]: (line["verdict"], line["note"]) for line in lines(mine)}
    assert list(last.values()) == [("reject", "looks odd; no sentence"), ("accept", "fine")]


def test_other_keys_do_nothing(citerec_here: Citerec, mine: Path) -> None:
    result = citerec_here("diagnostics", "review", "mine", "--reviewer", "ada", text="accept\n\nx\n?\nq\na\n")
    assert result.stdout.count("no such key: ? lists them") == 3
    assert "skip until the next session" in result.stdout
    assert not reviews_of(mine).exists()


def test_a_sample_and_a_class(citerec_here: Citerec, labelled: Path) -> None:
    review = ("diagnostics", "review", "own", "--reviewer", "ada")
    sample = citerec_here(*review, "--sample", 3, text="a\na\na\n")
    assert "3 of 3" in sample.stdout
    assert re.search(r"^ada +3 +0 +627 ", sample.stdout, re.MULTILINE)
    assert "ada has judged all 3 contexts." in citerec_here(*review, "--sample", 3).stdout
    assert re.search(r"^<REF> +is word \d+ of \d+ \(medium: 15 to 30\)", sample.stdout, re.MULTILINE)
    one_class = citerec_here(*review, "--class", "low_resource/Art", text="a\n" * 20)
    assert one_class.stdout.count("low_resource: Art") >= 8
    assert "9 of 9" in one_class.stdout
    one_line(citerec_here(*review, "--class", "low_resource/Arts"), 2, "no context is in the class", "Art,")
    one_line(citerec_here(*review, "--class", "longitude/long"), 2, "no context is in the class", "length")


def test_rejected_contexts_go_out(citerec_here: Citerec, mine: Path) -> None:
    for reviewer, keys in (("ada", "r\nno\na\na\nr\n\n"), ("bob", "r\n\na\na\na\n")):
        citerec_here("diagnostics", "review", "mine", "--reviewer", reviewer, text=keys)
    status = citerec_here("diagnostics", "review", "mine", "--status")
    assert status.returncode == 0, status.stderr
    assert re.search(r"^ada +2 +2 +0 +50\.0% \[15\.0 85\.0\]", status.stdout, re.MULTILINE)
    assert re.search(r"^  length +2 +2 +0 ", status.stdout, re.MULTILINE)
    assert "ada and bob: both judged 4 contexts, 75% alike; Cohen's kappa 0.50" in status.stdout
    before = set(ids(mine))
    result = citerec_here("diagnostics", "review", "mine", "--apply")
    assert result.returncode == 0, result.stderr
    found = re.search(
        r"^2 rejected: see rejected\.jsonl; (\d) replaced; (\d) left open\.$", result.stdout, re.MULTILINE
    )
    assert found
    after = set(ids(mine))
    assert len(before - after) == 2
    assert len(after - before) == int(found[1])
    assert len(after) == 4 - int(found[2])
    assert len((mine / "rejected.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    once = everything(mine)
    assert "nothing to do" in citerec_here("diagnostics", "review", "mine", "--apply").stdout
    assert everything(mine) == once
    shown = citerec_here("diagnostics", "show", "mine/length")
    assert shown.returncode == 0, shown.stderr


def test_a_labelled_set_is_reviewed_too(citerec_here: Citerec, labelled: Path) -> None:
    citerec_here("diagnostics", "review", "own", "--reviewer", "ada", text="r\nno\n")
    result = citerec_here("diagnostics", "review", "diagnostics/own", "--apply")
    assert "629 contexts" in result.stdout
    assert "1 rejected: see rejected.jsonl; 0 replaced; 1 left open." in result.stdout
    assert "Review the" not in result.stdout
    assert len(ids(labelled)) == 629


def test_status_says_what_is_not_known(citerec_here: Citerec, mine: Path) -> None:
    assert "0 reviewers" in citerec_here("diagnostics", "review", "mine", "--status").stdout
    citerec_here("diagnostics", "review", "mine", "--reviewer", "ada", text="a\n")
    assert "kappa" not in citerec_here("diagnostics", "review", "mine", "--status").stdout
    citerec_here("diagnostics", "review", "mine", "--reviewer", "bob", text="a\n")
    assert "Cohen's kappa not defined" in citerec_here("diagnostics", "review", "mine", "--status").stdout


def test_what_cannot_be_done_is_said_in_one_line(citerec_here: Citerec, mine: Path, tmp_path: Path) -> None:
    review = ("diagnostics", "review")
    one_line(citerec_here(*review, "demo"), 2, "comes with citerec", "Copy the set first")
    one_line(citerec_here(*review, "demo", "--apply"), 2, "comes with citerec")
    one_line(citerec_here(*review, "yours"), 2, "no diagnostic set 'yours'")
    one_line(citerec_here(*review, "mine", "--reviewer", "../ada"), 2, "no reviewer's name")
    one_line(citerec_here(*review, "mine", "--status", "--apply"), 2, "not both")
    one_line(citerec_here(*review, "mine", "--apply", "--reviewer", "ada"), 2, "give them alone")
    assert not list(tmp_path.rglob("*reviews"))


def test_the_login_name_is_the_reviewer(citerec: Citerec, mine: Path) -> None:
    citerec("diagnostics", "review", "mine", text="a\n", LOGNAME="zoe")
    assert [line["verdict"] for line in lines(mine, "zoe")] == ["accept"]
    one_line(citerec("diagnostics", "review", "mine", text="a\n", LOGNAME="a b"), 2, "'a b'", "--reviewer")


def test_at_a_terminal_single_keys_do(mine: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).with_name("citerec"), "diagnostics", "review", "mine", "--reviewer", "ada"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, read = "", 0

    def until(wanted: str) -> None:
        nonlocal shown, read
        end = time.monotonic() + 60
        while wanted not in shown[read:]:
            assert time.monotonic() < end, shown
            if select.select([ours], [], [], 0.2)[0]:
                shown += os.read(ours, 1 << 16).decode(errors="replace")
        read = shown.index(wanted, read) + len(wanted)

    def type_in(keys: str, *, line: bool = False) -> None:
        end = time.monotonic() + 60
        while bool(termios.tcgetattr(ours)[3] & termios.ICANON) != line:  # until it listens for keys, or for a line
            assert time.monotonic() < end, shown
            time.sleep(0.01)
        os.write(ours, keys.encode())

    try:
        until("help >")
        type_in("a")
        until("2 of 4")
        type_in("r")
        until("no reason")
        type_in("no\n", line=True)
        until("3 of 4")
        until("help >")
        type_in("\x1b[A")
        until("no such key")
        type_in("\x03")
        until("stopped")
        assert process.wait(60) == 1
    finally:
        process.kill()
        os.close(ours)
    assert [(line["verdict"], line["note"]) for line in lines(mine)] == [
        ("accept", ""),
        ("reject", ""),
        ("reject", "no"),
    ]
