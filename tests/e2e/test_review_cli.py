"""`citerec diagnostics review`: keys are piped, sessions go on, what was rejected goes out."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from citerec.diagnostics.sets import reviews_of
from tests.conftest import Citerec
from tests.e2e.test_cli import one_line
from tests.unit.test_review import built, ids


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A small built set."""
    return built(tmp_path / "diagnostics" / "mine")


def lines(path: Path, reviewer: str = "ada") -> list[dict[str, Any]]:
    text = (reviews_of(path) / f"{reviewer}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_context_is_shown_with_all_that_is_to_be_checked(citerec_here: Citerec, mine: Path) -> None:
    result = citerec_here("diagnostics", "review", "mine", "--reviewer", "ada", text="?\naccept\nq\n")
    assert (result.returncode, result.stderr, result.stdout.count("1 of 4")) == (0, "", 3)  # other keys do nothing
    shown = result.stdout
    assert re.search(r"Of (\w+) it was shown that it holds <REF>\.", shown)
    for part in ("1 of 4", "Art · 2001–2005 · citations: group", "[Results]", "Before it stood [this].", "After it"):
        assert part in shown
    assert re.search("held constant +the marker is the last word", shown)
    assert re.search(r"<REF> +\[12\]", shown)
    assert "one whole sentence with exactly one citation" in shown
    assert not reviews_of(mine).exists()


def test_a_session_goes_on_where_it_stopped(citerec_here: Citerec, mine: Path) -> None:
    review = ("diagnostics", "review", "mine", "--reviewer", "ada")
    citerec_here(*review, text="n\nlooks odd\n")  # nothing is lost where the session ends here
    first = citerec_here(*review, text="A\nr\nhalf a [sentence]\n")
    assert "3 of 4" in first.stdout and "--apply" in first.stdout, first.stderr
    assert re.search(r"^ada +1 +1 +2 +50\.0% \[9\.5 90\.5\]", first.stdout, re.MULTILINE)
    said = [(None, "looks odd"), ("accept", "looks odd"), ("reject", "half a [sentence]")]
    assert [(one["verdict"], one["note"]) for one in lines(mine)] == said
    second = citerec_here(*review, text="a\na\n").stdout
    assert "2 of 4" not in second and "3 of 4" in second
    assert re.search(r"^ada +3 +1 +0 ", second, re.MULTILINE)
    assert "ada has judged all 4 contexts." in citerec_here(*review).stdout
    assert {line["context_id"] for line in lines(mine)} == set(ids(mine))


def test_back_takes_back_what_was_decided_or_skipped_last(citerec_here: Citerec, mine: Path) -> None:
    review = ("diagnostics", "review", "mine", "--reviewer", "ada")
    citerec_here(*review, text="a\n")
    result = citerec_here(*review, text="s\nr\nno\nb\nb\nb\nb\nq\n")
    places = re.findall(r"^(\d) of 4", result.stdout, re.MULTILINE)
    assert places == ["2", "3", "4", "3", "2", "1", "1"]
    assert re.search(r"^ada +0 +0 +4 +–", result.stdout, re.MULTILINE)
    assert [line["verdict"] for line in lines(mine)] == ["accept", "reject", None, None]
    assert lines(mine)[2]["note"] == ""  # the reason went with the rejection


def test_rejected_contexts_go_out(citerec_here: Citerec, mine: Path) -> None:
    for reviewer, keys in (("ada", "r\nno\na\na\nr\n\n"), ("bob", "r\n\na\na\na\n")):
        citerec_here("diagnostics", "review", "mine", "--reviewer", reviewer, text=keys)
    status = citerec_here("diagnostics", "review", "mine", "--status")
    assert re.search(r"^ada +2 +2 +0 +50\.0% \[15\.0 85\.0\]", status.stdout, re.MULTILINE)
    assert re.search(r"^  length +2 +2 +0 ", status.stdout, re.MULTILINE)
    assert "ada and bob: both judged 4 contexts, 75% alike; Cohen's kappa 0.50" in status.stdout
    before = set(ids(mine))
    result = citerec_here("diagnostics", "review", "mine", "--apply")
    found = re.search(r"^2 rejected: see rejected\.jsonl; (\d) replaced by new contexts", result.stdout, re.MULTILINE)
    assert found, result.stderr
    assert len(before - set(ids(mine))) == 2 and len(ids(mine)) == 2 + int(found[1])
    assert "0 rejected" in citerec_here("diagnostics", "review", "mine", "--apply").stdout


def test_the_login_name_is_the_reviewer(citerec_here: Citerec, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    review = ("diagnostics", "review")
    one_line(citerec_here(*review, "demo"), 2, "comes with citerec", "Copy the set first")
    one_line(citerec_here(*review, "yours"), 2, "no diagnostic set 'yours'")
    monkeypatch.setenv("LOGNAME", "zoe")
    citerec_here(*review, "mine", text="a\n")
    assert [line["verdict"] for line in lines(mine, "zoe")] == ["accept"]
