"""The benchmark of growth: its arithmetic, its noise, and the page that it writes."""

import importlib
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("growth")
    sys.modules.pop("growth")  # another module of this name lies beside the tests


def test_the_exponent_is_that_of_the_law_behind_the_figures(growth: Any) -> None:
    sizes = {size: {"seconds": 3e-4 * size**1.1} for size in (100_000, 150_000, 1_000_000)}
    slope, at_target = growth.exponent(sizes, "seconds")
    assert slope == pytest.approx(1.1)
    assert at_target == pytest.approx(3e-4 * 2e8**1.1)
    # Small sizes count only where there are no others; figures that are missing do not.
    assert growth.exponent({1000: {"seconds": 60}, **sizes}, "seconds") == pytest.approx((slope, at_target))
    assert growth.exponent({1000: {"seconds": 2}, 4000: {"seconds": 4}}, "seconds")[0] == pytest.approx(0.5)
    assert growth.exponent(sizes, "disk_mb") is None


def test_noise_exchanges_some_words_and_keeps_the_length(growth: Any) -> None:
    text = " ".join(map(str, range(1000)))
    words = growth.exchanged(text, "x y z", random.Random(1)).split()
    assert len(words) == 1000
    assert 250 < sum(word in "xyz" for word in words) < 350
    assert growth.exchanged(text, None, random.Random(1)) == text
    assert growth.exchanged(None, "x", random.Random(1)) == ""


def test_noise_begins_where_real_papers_end(growth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"externalids": None, "s2fieldsofstudy": [{"category": "Art"}]}
    real = [({"corpusid": number, "title": "some words", **shared}, None) for number in (1, 2)]
    monkeypatch.setattr(growth, "real_papers", lambda: iter(real))
    made = [paper for (paper, _), _ in zip(growth.papers(), range(5), strict=False)]
    first = growth.FIRST_NEW_ID
    assert [paper["corpusid"] for paper in made] == [1, 2, first, first + 1, first + 2]


def test_the_page_gets_the_table_between_its_marks(growth: Any, tmp_path: Path) -> None:
    page = tmp_path / "growth.md"
    page.write_text((ROOT / "docs" / "growth.md").read_text(encoding="utf-8"), encoding="utf-8")
    for table in ("| one |", "| two |"):
        growth.write_page(page, table)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Growth")
    assert text.endswith(f"{growth.BEGIN}\n| two |\n{growth.END}\n")


def test_figures_of_each_size_and_stage_are_in_the_table(growth: Any, tmp_path: Path) -> None:
    figures = '{"seconds": 12.5, "cpu": 10, "peak_mb": 300, "disk_mb": 40, "load": 1.0}'
    for size in (100_000, 200_000):
        (tmp_path / f"{size}-build.json").write_text(figures)
        (tmp_path / f"{size}-search-bm25.json").write_text(figures)
    table = growth.table(growth.read_results(tmp_path))
    assert "| 100,000 | build | 12.5 | 10 |  | 300 | 40 | 1.0 |" in table
    assert "| search bm25 | 2 | 0.00 | 12.5 |" in table
