"""The manual check: verdicts kept and read back, agreement, and sets without what was rejected."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.read import as_record, parse_context
from citerec.diagnostics.families import Bounds, FamilyOfSet
from citerec.diagnostics.review import (
    Review,
    agreement,
    apply_reviews,
    cohens_kappa,
    items_of,
    read_reviews,
    record_verdict,
    wilson,
)
from citerec.diagnostics.sets import Sampling, read_set, reviews_of, write_set
from citerec.errors import InputError
from tests.conftest import DEMO, write_lines


def a_context(context_id: str, paper: int, label: str, count: str = "0") -> dict[str, Any]:
    return {
        "context_id": context_id,
        "text": f"Of {context_id} it was shown that it holds <REF>.",
        "before": "Before it stood [this].",
        "after": "After it stood that.",
        "citing_id": 7,
        "section": "[Results]",
        "marker": "[12]",
        "cited_ids": [paper],
        "labels": {"field": "Art", "length": label},
        "cell": {"field": "Art", "years": "2001–2005", "citation_count": count, "family": "length", "class": label},
    }


CONTEXTS = (
    a_context("s1", 1, "short"),
    a_context("s2", 2, "short", "1"),
    a_context("l1", 3, "long"),
    a_context("l2", 4, "long", "1"),
)
RESERVES = (
    a_context("r-used", 3, "short"),
    a_context("r-first", 11, "short"),
    a_context("r-second", 12, "short"),
    a_context("r-long", 11, "long"),
    a_context("r-other-cell", 13, "long", "2"),
)


def built(out: Path) -> Path:
    """A set as `diagnostics build` makes it, by hand."""
    cells = {"wanted": 5, "full": 4, "partly": 0, "empty": 1}
    drawn = {"seed": 0, "quota": {"length": 1}, "oversample": 3.3, "rounds": 3, "single": True, "split": "pysbd"}
    sampling = Sampling(**drawn, funnel={"papers": 20, "chosen": 4}, outcomes={"usable": 9}, cells=cells)
    families = {
        "field": FamilyOfSet(conditions=(), classes={"Art": 0}),
        "length": FamilyOfSet(conditions=("the marker is the last word",), classes={"short": 0, "long": 0}),
    }
    facts = {"source": "s2orc", "corpus_papers": 20, "corpus_fingerprint": None, "spacy_model": None}
    facts |= {"bounds": Bounds(), "families": families, "sampling": sampling}

    def beside(folder: Path) -> None:
        write_lines(folder / "reserves.jsonl", RESERVES)
        rows = [[*context["cell"].values(), 1, 1, 3, 9, 9, ""] for context in CONTEXTS]
        rows.append(["Art", "2001–2005", "2", "length", "long", 1, 0, 0, 9, 9, "not all papers were drawn"])
        with (folder / "cells.csv").open("w", encoding="utf-8", newline="") as file:
            heading = "field,years,citation_count,family,class,wanted,chosen,fitting_papers,drawn_papers,papers,why"
            csv.writer(file, lineterminator="\n").writerows([heading.split(","), *rows])

    records = [{**as_record(parse_context(dict(one))), "cell": one["cell"]} for one in CONTEXTS]
    write_set(out, records, facts, beside)
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
    for name in ("", "../ada", ".ada", "a b", "a" * 64, "a\n", "a\\b"):
        with pytest.raises(InputError, match="is no reviewer's name"):
            record_verdict(mine, name, "s1", "accept")
    with pytest.raises(InputError, match=r"comes with citerec.*Copy the set first"):
        record_verdict(DEMO, "ada", "demo-001-1", "reject")
    for line in ('{"context_id": "s1", "verdict": "acept"}', '{"verdict": "accept"}', "[]"):
        file.write_text(f'{{"context_id": "s1", "verdict": "accept"}}\n{line}\n')
        with pytest.raises(InputError, match=r"ada\.jsonl, line 2 is no verdict"):
            read_reviews(mine)


def test_figures_of_agreement() -> None:
    # Artstein and Poesio, Inter-Coder Agreement for Computational Linguistics (2008), their first example
    first, second = "+" * 40 + "-" * 60, "+" * 20 + "-" * 20 + "+" * 10 + "-" * 50
    assert cohens_kappa(list(zip(first, second, strict=True))) == pytest.approx((0.70 - 0.54) / (1 - 0.54))
    assert cohens_kappa(list(zip("abcc", "abbc", strict=True))) == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))
    assert cohens_kappa([]) is None and cohens_kappa([("+", "+")]) is None
    assert wilson(61, 62) == pytest.approx((0.914, 0.997), abs=0.001)
    said = {"cy": {"z": "accept"}, "bob": {"a": "accept", "b": "reject"}, "ada": {"a": "accept", "c": "accept"}}
    reviews = {name: {key: Review(key, one, "", "") for key, one in each.items()} for name, each in said.items()}  # type: ignore[arg-type]
    assert [tuple(one)[:3] for one in agreement(reviews)] == [(("ada", "bob"), 1, 1)]


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
    assert after["cells.csv"] == before["cells.csv"]
    assert applied(mine) == {} and everything(mine) == after  # again, nothing more is done
    assert sorted(path.name for path in mine.parent.iterdir()) == [".mine.lock", "mine", "mine.reviews"]
    # r-long cites paper 11, as r-first does.
    assert applied(mine, "l1") == {"l1": None} and ids(mine) == ["r-first", "s2", "l2"]


def test_what_was_rejected_never_comes_back(mine: Path) -> None:
    record_verdict(mine, "bob", "r-first", "reject")
    assert applied(mine, "s1") == {"s1": "r-second"}
    assert applied(mine, "r-second") == {"r-second": None}
    assert ids(mine) == ["s2", "l1", "l2"]
    (mine / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"holds other things too, such as thesis\.tex"):
        applied(mine, "s2")
    (mine / "thesis.tex").unlink()
    (mine / "reserves.jsonl").write_text("")
    with pytest.raises(InputError, match=r"all contexts of .* were rejected"):
        applied(mine, "l1", "l2")
    assert ids(mine) == ["s2", "l1", "l2"]
