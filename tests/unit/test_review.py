"""The manual check: verdicts kept and read back, agreement, and sets without what was rejected."""

import csv
import functools
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.read import as_record, parse_context
from citerec.diagnostics.families import FAMILIES, Bounds
from citerec.diagnostics.review import (
    Item,
    Review,
    agreement,
    apply_reviews,
    check_may_review,
    classes_of,
    cohens_kappa,
    items_of,
    read_reviews,
    record_verdict,
    review_order,
    slot_of,
    wilson,
)
from citerec.diagnostics.sets import SET, Sampling, read_set, reviews_of, write_set
from citerec.errors import InputError
from tests.conftest import DEMO, write_lines
from tests.torture.crash_points import DIED, crashes

SHORT, LONG = ("length", "short"), ("length", "long")


def a_context(context_id: str, paper: int, slot: tuple[str, str], count: str = "0", **more: object) -> dict[str, Any]:
    cell = {"field": "Art", "years": "2001–2005", "citation_count": count, "family": slot[0], "class": slot[1]}
    labels = {"field": "Art", slot[0]: slot[1]}
    return {
        "context_id": context_id,
        "text": f"Of {context_id} it was shown that it holds <REF>.",
        "before": "Before it stood [this].",
        "after": "After it stood that.",
        "citing_id": 7,
        "citing_year": 2010,
        "section": "[Results]",
        "cited_ids": [paper],
        "marker": "[12]",
        "labels": labels,
        "cell": cell,
    }


def item(context_id: str, slot: tuple[str, str]) -> Item:
    return a_context(context_id, 1, slot)


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
    sampling = Sampling(
        seed=0,
        quota={"length": 1},
        oversample=3.333333,
        rounds=3,
        single=True,
        split="pysbd",
        funnel={"papers": 20, "chosen": 4},
        outcomes={"usable": 9},
        cells={"wanted": 5, "full": 4, "partly": 0, "empty": 1},
    )
    facts = {
        "source": "s2orc",
        "corpus_papers": 20,
        "corpus_fingerprint": None,
        "spacy_model": None,
        "bounds": Bounds(length=None, field=None, citation_count=None),
        "families": {
            "field": ((), {"Art": 4}),
            "length": (("the marker is the last word",), {"short": 2, "long": 2}),
        },
        "sampling": sampling,
    }

    def beside(folder: Path) -> None:
        write_lines(folder / "reserves.jsonl", RESERVES)
        (folder / "quarantine.jsonl").write_text('{"shard": "x", "line": 1}\n')
        rows = [[*context["cell"].values(), 1, 1, 3, 9, 9, ""] for context in CONTEXTS]
        rows.append(["Art", "2001–2005", "2", "length", "long", 1, 0, 0, 9, 9, "not all papers were drawn"])
        with (folder / "cells.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            heading = "field,years,citation_count,family,class,wanted,chosen,fitting_papers,drawn_papers,papers,why"
            writer.writerows([heading.split(","), *rows])

    write_set(out, [{**as_record(parse_context(dict(one))), "cell": one["cell"]} for one in CONTEXTS], facts, beside)
    return out


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return built(tmp_path / "mine")


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """The demo set, as one's own."""
    (tmp_path / "labelled").mkdir()
    for file in DEMO.glob("*.*"):
        shutil.copy(file, tmp_path / "labelled")
    return tmp_path / "labelled"


def ids(path: Path) -> list[str]:
    return [context.context_id for context in read_set(path).contexts]


def rows(path: Path) -> list[dict[str, str]]:
    with (path / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def everything(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


# Verdicts


def test_later_lines_win_and_all_are_kept(mine: Path) -> None:
    record_verdict(mine, "ada", "s1", "accept")
    record_verdict(mine, "ada", "s2", "reject", "half a sentence")
    record_verdict(mine, "ada", "s1", "reject", "über")
    record_verdict(mine, "bob", "s1", None, "odd")
    reviews = read_reviews(mine)
    assert list(reviews) == ["ada", "bob"]
    assert [(one.context_id, one.verdict, one.note) for one in reviews["ada"].values()] == [
        ("s2", "reject", "half a sentence"),
        ("s1", "reject", "über"),
    ]
    assert reviews["bob"]["s1"].verdict is None
    lines = [json.loads(line) for line in (reviews_of(mine) / "ada.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 3
    assert set(lines[0]) == {"context_id", "verdict", "note", "when"}
    assert lines[0]["when"].endswith("+00:00")


def test_a_verdict_can_be_taken_back(mine: Path) -> None:
    record_verdict(mine, "ada", "s1", "reject")
    record_verdict(mine, "ada", "s1", None)
    assert apply_reviews(mine) == {}


def test_a_line_without_note_and_time_counts(mine: Path) -> None:
    reviews_of(mine).mkdir()
    (reviews_of(mine) / "ada.jsonl").write_text('{"context_id": "s1", "verdict": "accept"}\n')
    assert read_reviews(mine)["ada"]["s1"] == Review("s1", "accept", "", "")
    record_verdict(mine, "ada", "s2", "accept")
    assert list(read_reviews(mine)["ada"]) == ["s1", "s2"]


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


def test_what_is_shipped_is_not_written_to(mine: Path) -> None:
    with pytest.raises(InputError, match=r"comes with citerec.*Copy the set first"):
        record_verdict(DEMO, "ada", "demo-001-1", "reject")
    with pytest.raises(InputError, match="comes with citerec"):
        apply_reviews(DEMO)
    assert not (reviews_of(DEMO)).exists()
    check_may_review(mine)


# The order


def test_every_first_part_has_its_share_of_every_class() -> None:
    sizes = {"short": 200, "medium": 70, "long": 30}
    items = [item(f"{label}-{n}", ("length", label)) for label, size in sizes.items() for n in range(size)]
    order = review_order(items)
    assert len({one["context_id"] for one in order}) == 300
    for part in (10, 30, 60, 150):
        found = Counter(one["cell"]["class"] for one in order[:part])
        assert all(abs(found[label] - size * part / 300) < 2 for label, size in sizes.items()), (part, found)
    assert [one["context_id"] for one in order if one["cell"]["class"] == "long"] != [f"long-{n}" for n in range(30)]


def test_every_context_has_the_same_chance_to_come_early() -> None:
    # 400 sets of two classes of very different size: a tenth is reviewed.
    early = Counter[str]()
    for number in range(400):
        items = [item(f"{number}-{n}", ("length", f"rare {number}" if n < 3 else f"usual {number}")) for n in range(30)]
        early.update(one["cell"]["class"].partition(" ")[0] for one in review_order(items)[:3])
    assert early["rare"] / (400 * 3) == pytest.approx(0.1, abs=0.025)


def test_the_order_is_the_same_whatever_order_the_set_has() -> None:
    items = items_of(DEMO)
    order = review_order(items)
    assert {one["context_id"] for one in order} == {one["context_id"] for one in items}
    assert review_order(reversed(items)) == order


def test_a_sampled_context_is_checked_for_the_class_that_it_was_chosen_for(mine: Path, labelled: Path) -> None:
    first = items_of(mine)[0]
    assert slot_of(first) == ("Art", "2001–2005", "0", "length", "short")
    assert classes_of(first) == {"length": "short"}
    plain = items_of(labelled)[0]
    assert slot_of(plain) is None
    assert classes_of(plain) == plain["labels"]


# Figures


def pairs(both_yes: int, only_first: int, only_second: int, both_no: int) -> list[tuple[str, str]]:
    yes, no = "accept", "reject"
    counts = {(yes, yes): both_yes, (yes, no): only_first, (no, yes): only_second, (no, no): both_no}
    return [pair for pair, n in counts.items() for _ in range(n)]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Artstein and Poesio, Inter-Coder Agreement for Computational Linguistics (2008), their first example: 0.348
        (pairs(20, 20, 10, 50), (0.70 - 0.54) / (1 - 0.54)),
        (pairs(20, 5, 10, 15), 0.4),  # p_o 35/50, p_e (25 · 30 + 25 · 20) / 2500 = 0.5
        (pairs(0, 5, 0, 0), 0.0),  # both are, each with another verdict: p_o and p_e are 0
        ([("a", "a"), ("b", "b"), ("c", "b"), ("c", "c")], (3 / 4 - 5 / 16) / (1 - 5 / 16)),  # more than two verdicts
    ],
)
def test_kappa(table: list[tuple[str, str]], expected: float) -> None:
    assert cohens_kappa(table) == pytest.approx(expected)
    assert cohens_kappa([(other, one) for one, other in table]) == pytest.approx(expected)


@pytest.mark.parametrize("table", [[], pairs(4, 0, 0, 0), pairs(0, 0, 0, 1)])
def test_kappa_is_not_defined_where_all_is_alike(table: list[tuple[str, str]]) -> None:
    assert cohens_kappa(table) is None


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 7), (61, 62), (400, 429)])
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


# Where they are


def test_wherever_it_stops_no_verdict_is_lost(tmp_path: Path) -> None:
    mine = tmp_path / "folder" / "mine"

    def prepare() -> None:
        shutil.rmtree(mine.parent, ignore_errors=True)
        built(mine)
        write_lines(reviews_of(mine) / "ada.jsonl", [{"context_id": "s1", "verdict": "reject"}])

    for outcome in crashes(functools.partial(apply_reviews, mine), prepare):
        assert outcome.code in (0, DIED), outcome.output
        assert SET.is_at(mine)
        assert list(read_reviews(mine)["ada"]) == ["s1"]
        assert ids(mine) in (["s1", "s2", "l1", "l2"], ["r-first", "s2", "l1", "l2"])
    assert ids(mine) == ["r-first", "s2", "l1", "l2"]


# Applying


def stands(applied: Mapping[str, Item | None]) -> dict[str, str | None]:
    """Which context stands in for each rejected one."""
    return {context_id: item and item["context_id"] for context_id, item in applied.items()}


def test_a_reserve_of_the_same_class_and_cell_stands_in(mine: Path) -> None:
    record_verdict(mine, "ada", "s1", "reject", "no sentence")
    record_verdict(mine, "bob", "s1", "accept")
    before, verdicts = everything(mine), everything(reviews_of(mine))
    applied = apply_reviews(mine)
    assert everything(reviews_of(mine)) == verdicts
    assert stands(applied) == {"s1": "r-first"}
    assert ids(mine) == ["r-first", "s2", "l1", "l2"]  # r-used cites a paper of l1
    found = read_set(mine)
    assert found.manifest.families["length"].classes == {"short": 2, "long": 2}
    assert found.manifest.sampling is not None
    assert found.manifest.sampling.cells == {"wanted": 5, "full": 4, "partly": 0, "empty": 1}
    assert (mine / "qrels.txt").read_text().splitlines()[0] == "r-first 0 11 1"
    assert [item["context_id"] for item in items_of(mine, "reserves.jsonl")] == [
        "r-used", "r-second", "r-long", "r-other-cell",
    ]  # fmt: skip
    (gone,) = items_of(mine, "rejected.jsonl")
    assert gone["context_id"] == "s1"
    (said,) = gone["rejected_by"]
    assert (said["reviewer"], said["why"]) == ("ada", "no sentence")
    after = everything(mine)
    for name in ("cells.csv", "quarantine.jsonl"):
        assert after[name] == before[name], name
    assert slot_of(items_of(mine)[0]) == ("Art", "2001–2005", "0", "length", "short")


def test_what_cannot_be_replaced_is_left_open(mine: Path) -> None:
    record_verdict(mine, "ada", "l2", "reject")
    applied = apply_reviews(mine)
    assert stands(applied) == {"l2": None}
    manifest = read_set(mine).manifest
    assert manifest.contexts == 3
    assert manifest.families["length"].classes == {"short": 2, "long": 1}
    assert manifest.sampling is not None
    assert manifest.sampling.cells == {"wanted": 5, "full": 3, "partly": 0, "empty": 2}
    assert [(row["chosen"], row["why"]) for row in rows(mine)] == [
        ("1", ""),
        ("1", ""),
        ("1", ""),
        ("0", "rejected in review, and no reserve was left"),
        ("0", "not all papers were drawn"),
    ]
    assert "short 2 *few*, long 1 *few*" in (mine / "DATASHEET.md").read_text(encoding="utf-8")


def test_no_paper_is_used_by_two_replacements(mine: Path) -> None:
    record_verdict(mine, "ada", "s1", "reject")
    record_verdict(mine, "ada", "l1", "reject")
    applied = apply_reviews(mine)
    # With l1 gone its paper 3 is free for r-used, which leaves paper 11 to r-long.
    assert stands(applied) == {"s1": "r-used", "l1": "r-long"}
    papers = [paper for context in read_set(mine).contexts for paper in context.cited_ids]
    assert len(papers) == len(set(papers))


def test_a_paper_that_a_replacement_uses_is_used(mine: Path) -> None:
    record_verdict(mine, "ada", "s1", "reject")
    apply_reviews(mine)
    record_verdict(mine, "ada", "l1", "reject")
    assert stands(apply_reviews(mine)) == {"l1": None}  # r-long cites paper 11, as r-first does
    assert ids(mine) == ["r-first", "s2", "l2"]


def test_what_was_rejected_never_comes_back(mine: Path) -> None:
    record_verdict(mine, "bob", "r-first", "reject")
    for rejected, instead in (("s1", "r-second"), ("r-second", None)):
        record_verdict(mine, "ada", rejected, "reject")
        assert stands(apply_reviews(mine)) == {rejected: instead}
    assert ids(mine) == ["s2", "l1", "l2"]
    assert [item["context_id"] for item in items_of(mine, "rejected.jsonl")] == ["s1", "r-second"]


def test_applying_twice_does_nothing_more(mine: Path) -> None:
    record_verdict(mine, "ada", "s1", "reject")
    record_verdict(mine, "ada", "l2", "reject")
    apply_reviews(mine)
    once = everything(mine)
    assert apply_reviews(mine) == {}
    assert everything(mine) == once
    assert sorted(path.name for path in mine.parent.iterdir()) == [".mine.lock", "mine", "mine.reviews"]


def test_a_labelled_set_only_loses_contexts(labelled: Path) -> None:
    record_verdict(labelled, "ada", "demo-001-1", "reject")
    applied = apply_reviews(labelled)
    assert stands(applied) == {"demo-001-1": None}
    before, after = read_set(DEMO).manifest, read_set(labelled).manifest
    assert after.families["location"].classes["middle"] == before.families["location"].classes["middle"] - 1
    assert after.families["intent"] == before.families["intent"]
    assert not (labelled / "cells.csv").exists()
    assert set(after.families) <= set(FAMILIES)


def test_an_empty_set_is_not_written(mine: Path) -> None:
    (mine / "reserves.jsonl").write_text("")
    for context_id in ids(mine):
        record_verdict(mine, "ada", context_id, "reject")
    before = everything(mine)
    with pytest.raises(InputError, match=r"all contexts of .* were rejected"):
        apply_reviews(mine)
    assert everything(mine) == before


def test_a_folder_with_other_things_is_left_alone(mine: Path) -> None:
    (mine / "thesis.tex").write_text("precious")
    record_verdict(mine, "ada", "s1", "reject")
    with pytest.raises(InputError, match=r"holds other things too, such as thesis\.tex\. .*move them"):
        apply_reviews(mine)
    assert (mine / "thesis.tex").read_text() == "precious"
