"""The manual check: verdicts kept and read back, agreement, and sets without what was rejected."""

import csv
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.read import as_record, parse_context
from citerec.diagnostics.families import Bounds
from citerec.diagnostics.review import (
    Review,
    agreement,
    apply_reviews,
    cohens_kappa,
    items_of,
    read_reviews,
    record_verdict,
    review_order,
    wilson,
)
from citerec.diagnostics.sets import Sampling, read_set, reviews_of, write_set
from citerec.errors import InputError
from tests.conftest import DEMO, write_lines

SHORT, LONG = ("length", "short"), ("length", "long")


def a_context(context_id: str, paper: int, slot: tuple[str, str], count: str = "0") -> dict[str, Any]:
    return {
        "context_id": context_id,
        "text": f"Of {context_id} it was shown that it holds <REF>.",
        "citing_id": 7,
        "citing_year": 2010,
        "cited_ids": [paper],
        "labels": {"field": "Art", slot[0]: slot[1]},
        "cell": {"field": "Art", "years": "2001–2005", "citation_count": count, "family": slot[0], "class": slot[1]},
    }


CONTEXTS = (
    a_context("s1", 1, SHORT),
    a_context("s2", 2, SHORT, "1"),
    a_context("l1", 3, LONG),
    a_context("l2", 4, LONG, "1"),
)
RESERVES = (
    a_context("r-used", 3, SHORT),
    a_context("r-first", 11, SHORT),
    a_context("r-second", 12, SHORT),
    a_context("r-long", 11, LONG),
    a_context("r-other-cell", 13, LONG, "2"),
)


def built(out: Path) -> Path:
    """A set as `diagnostics build` makes it, by hand."""
    cells = {"wanted": 5, "full": 4, "partly": 0, "empty": 1}
    drawn = {"seed": 0, "quota": {"length": 1}, "oversample": 3.3, "rounds": 3, "single": True, "split": "pysbd"}
    sampling = Sampling(**drawn, funnel={"papers": 20, "chosen": 4}, outcomes={"usable": 9}, cells=cells)
    facts = {
        "source": "s2orc",
        "corpus_papers": 20,
        "corpus_fingerprint": None,
        "spacy_model": None,
        "bounds": Bounds(),
        "families": {"field": ((), {"Art": 4}), "length": (("the marker is last",), {"short": 2, "long": 2})},
        "sampling": sampling,
    }

    def beside(folder: Path) -> None:
        write_lines(folder / "reserves.jsonl", RESERVES)
        (folder / "quarantine.jsonl").write_text('{"shard": "x", "line": 1}\n')
        rows = [[*context["cell"].values(), 1, 1, 3, 9, 9, ""] for context in CONTEXTS]
        rows.append(["Art", "2001–2005", "2", "length", "long", 1, 0, 0, 9, 9, "not all papers were drawn"])
        with (folder / "cells.csv").open("w", encoding="utf-8", newline="") as file:
            heading = "field,years,citation_count,family,class,wanted,chosen,fitting_papers,drawn_papers,papers,why"
            csv.writer(file, lineterminator="\n").writerows([heading.split(","), *rows])

    write_set(out, [{**as_record(parse_context(dict(one))), "cell": one["cell"]} for one in CONTEXTS], facts, beside)
    return out


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return built(tmp_path / "mine")


def ids(path: Path) -> list[str]:
    return [context.context_id for context in read_set(path).contexts]


def everything(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def applied(mine: Path, *rejected: str) -> dict[str, str | None]:
    """Rejects some contexts; returns which context stands in for each."""
    for context_id in rejected:
        record_verdict(mine, "ada", context_id, "reject", "no sentence")
    return {context_id: item and item["context_id"] for context_id, item in apply_reviews(mine).items()}


def test_later_lines_win_and_all_are_kept(mine: Path) -> None:
    reviews_of(mine).mkdir()
    (file := reviews_of(mine) / "ada.jsonl").write_text('{"context_id": "s1", "verdict": "accept"}\n')
    assert read_reviews(mine)["ada"]["s1"] == Review("s1", "accept", "", "")
    record_verdict(mine, "ada", "s2", "reject", "half a sentence")
    record_verdict(mine, "ada", "s1", "reject", "über")
    record_verdict(mine, "ada", "s2", None, "odd")  # taken back
    (reviews,) = read_reviews(mine).values()
    assert [(one.verdict, one.note) for one in reviews.values()] == [("reject", "über"), (None, "odd")]
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 4 and lines[1]["when"].endswith("+00:00")
    assert applied(mine) == {"s1": "r-first"}


@pytest.mark.parametrize(
    "line", ['{"context_id": "s1", "verdict": "acept"}', '{"verdict": "accept"}', "[]", '{"context_id": "s1"}']
)
def test_a_line_that_is_no_verdict_is_named(mine: Path, line: str) -> None:
    record_verdict(mine, "ada", "s1", "accept")
    with (reviews_of(mine) / "ada.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=r"ada\.jsonl, line 2 is no verdict"):
        read_reviews(mine)


@pytest.mark.parametrize("name", ["", "../ada", "a/b", ".ada", "a b", "ada.", "a" * 64, "a\n", "-", "a\\b"])
def test_names_that_are_no_file_names_are_refused(mine: Path, name: str) -> None:
    with pytest.raises(InputError, match="is no reviewer's name"):
        record_verdict(mine, name, "s1", "accept")
    assert not reviews_of(mine).exists()


def test_what_is_shipped_is_not_written_to() -> None:
    with pytest.raises(InputError, match=r"comes with citerec.*Copy the set first"):
        record_verdict(DEMO, "ada", "demo-001-1", "reject")
    with pytest.raises(InputError, match="comes with citerec"):
        apply_reviews(DEMO)
    assert not reviews_of(DEMO).exists()


def test_every_first_part_of_the_order_has_its_share_of_every_class() -> None:
    sizes = {"short": 200, "medium": 70, "long": 30}
    items = [a_context(f"{label}-{n}", 1, ("length", label)) for label, size in sizes.items() for n in range(size)]
    order = review_order(items)
    assert {one["context_id"] for one in order} == {one["context_id"] for one in items}
    assert review_order(reversed(items)) == order
    for part in (10, 30, 60, 150):
        found = Counter(one["cell"]["class"] for one in order[:part])
        assert all(abs(found[label] - size * part / 300) < 2 for label, size in sizes.items()), (part, found)
    assert [one["context_id"] for one in order if one["cell"]["class"] == "long"] != [f"long-{n}" for n in range(30)]


Y, N = "accept", "reject"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Artstein and Poesio, Inter-Coder Agreement for Computational Linguistics (2008), their first example: 0.348
        ([(Y, Y)] * 20 + [(Y, N)] * 20 + [(N, Y)] * 10 + [(N, N)] * 50, pytest.approx((0.70 - 0.54) / (1 - 0.54))),
        ([(Y, N)] * 5, pytest.approx(0)),  # both are, each with another verdict: p_o and p_e are 0
        ([("a", "a"), ("b", "b"), ("c", "b"), ("c", "c")], pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))),
        ([], None),
        ([(Y, Y)] * 4, None),
    ],
)
def test_kappa(table: list[tuple[str, str]], expected: object) -> None:
    assert cohens_kappa(table) == expected


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 7), (400, 429)])
def test_wilson_is_that_of_the_formula(successes: int, trials: int) -> None:
    z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations
    half = z * (successes * (trials - successes) / trials + z**2 / 4) ** 0.5
    ends = ((successes + z**2 / 2 + way * half) / (trials + z**2) for way in (-1, 1))
    assert wilson(successes, trials) == pytest.approx(tuple(ends), abs=1e-9)


def verdicts(**said: str) -> Mapping[str, Review]:
    return {key: Review(key, value or None, "", "") for key, value in said.items()}  # type: ignore[arg-type]


def test_agreement_is_of_what_both_judged() -> None:
    reviews = {
        "cy": verdicts(z="accept"),
        "bob": verdicts(a="accept", b="accept", c="reject", e="reject", f="accept"),
        "ada": verdicts(a="accept", b="reject", c="reject", d="accept", e="", f="accept"),
    }
    ((names, both, alike, kappa),) = agreement(reviews)
    assert (names, both, alike) == (("ada", "bob"), 4, 3)
    assert kappa == pytest.approx((3 / 4 - 1 / 2) / (1 - 1 / 2))  # 2 and 3 accepted of 4: p_e (2·3 + 2·1) / 16


def test_a_reserve_of_the_same_class_and_cell_stands_in(mine: Path) -> None:
    record_verdict(mine, "bob", "s1", "accept")
    before = everything(mine)
    assert applied(mine, "s1") == {"s1": "r-first"}  # r-used cites a paper of l1
    assert ids(mine) == ["r-first", "s2", "l1", "l2"]
    manifest = read_set(mine).manifest
    assert manifest.families["length"].classes == {"short": 2, "long": 2}
    assert manifest.sampling.cells == {"wanted": 5, "full": 4, "partly": 0, "empty": 1}
    assert (mine / "qrels.txt").read_text().splitlines()[0] == "r-first 0 11 1"
    left = [item["context_id"] for item in items_of(mine, "reserves.jsonl")]
    assert left == ["r-used", "r-second", "r-long", "r-other-cell"]
    (gone,) = items_of(mine, "rejected.jsonl")
    assert [(one["reviewer"], one["why"]) for one in gone["rejected_by"]] == [("ada", "no sentence")]
    after = everything(mine)
    assert all(after[name] == before[name] for name in ("cells.csv", "quarantine.jsonl"))
    # Applied again, nothing more is done.
    assert applied(mine) == {} and everything(mine) == after
    assert sorted(path.name for path in mine.parent.iterdir()) == [".mine.lock", "mine", "mine.reviews"]


def test_what_cannot_be_replaced_is_left_open(mine: Path) -> None:
    assert applied(mine, "l2") == {"l2": None}
    manifest = read_set(mine).manifest
    assert (manifest.contexts, manifest.families["length"].classes) == (3, {"short": 2, "long": 1})
    assert manifest.sampling.cells == {"wanted": 5, "full": 3, "partly": 0, "empty": 2}
    with (mine / "cells.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["chosen"], row["why"]) for row in csv.DictReader(file)]
    left_open = ("0", "rejected in review, and no reserve was left")
    assert rows == [("1", "")] * 3 + [left_open, ("0", "not all papers were drawn")]
    assert "short 2 *few*, long 1 *few*" in (mine / "DATASHEET.md").read_text(encoding="utf-8")


def test_a_paper_is_used_once(mine: Path, tmp_path: Path) -> None:
    # With l1 gone its paper 3 is free for r-used, which leaves paper 11 to r-long.
    assert applied(mine, "s1", "l1") == {"s1": "r-used", "l1": "r-long"}
    other = built(tmp_path / "other")
    assert applied(other, "s1") == {"s1": "r-first"}
    assert applied(other, "l1") == {"l1": None}  # r-long cites paper 11, as r-first does
    assert ids(other) == ["r-first", "s2", "l2"]


def test_what_was_rejected_never_comes_back(mine: Path) -> None:
    record_verdict(mine, "bob", "r-first", "reject")
    assert applied(mine, "s1") == {"s1": "r-second"}
    assert applied(mine, "r-second") == {"r-second": None}
    assert ids(mine) == ["s2", "l1", "l2"]
    assert [item["context_id"] for item in items_of(mine, "rejected.jsonl")] == ["s1", "r-second"]


def test_sets_that_are_left_as_they_are(mine: Path) -> None:
    (mine / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"holds other things too, such as thesis\.tex"):
        applied(mine, "s1")
    (mine / "thesis.tex").unlink()
    (mine / "reserves.jsonl").write_text("")
    before = everything(mine)
    with pytest.raises(InputError, match=r"all contexts of .* were rejected"):
        applied(mine, "s2", "l1", "l2")
    assert everything(mine) == before
