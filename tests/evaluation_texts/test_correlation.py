"""Metrics against people's ratings: coefficients against scipy's, points worked by hand, the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from citerec.errors import InputError
from citerec.evaluation.predictions import read_predictions
from citerec.evaluation.results import Results
from citerec.evaluation.texts import evaluate_texts
from citerec.papers.citebench.rating import correlate, write_sheets
from citerec.papers.common.correlation import coefficients
from citerec.write.metrics import open_metrics
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.evaluation_texts.conftest import TARGETS, record
from tests.evaluation_texts.test_human import filled

# The words of each text, from few to many: what people like here.
LENGTHS = {"terse": 2, "plain": 5, "wordy": 9, "oracle": 3}
VALUES = st.lists(st.integers(0, 4), min_size=3, max_size=9)


@pytest.fixture
def rated(tmp_path: Path) -> tuple[list[Path], Path, Results]:
    """Sheets on which a text is rated by its number of words, their key, and results."""
    files = []
    for system, words in LENGTHS.items():
        texts = ["word " * (words + number % 2) for number in range(len(TARGETS))]
        lines = (
            record("copy", number, writer=system, prediction=text, knows_target=system == "oracle")
            for number, text in enumerate(texts)
        )
        files.append(write_lines(tmp_path / f"{system}.jsonl", lines))
    predictions = read_predictions([(None, path) for path in files])
    *sheets, _, key = write_sheets(predictions, tmp_path / "sheet.csv", tasks=3, raters=2, shared=1)

    def rate(row: dict[str, str]) -> tuple[str, str]:
        words = len(row["text to rate"].split())
        return str(min(5, 1 + words // 2)), "3"

    done = [filled(sheet, f"sheet-r{number}.csv", rate) for number, sheet in enumerate(sheets)]
    results = evaluate_texts(predictions, *open_metrics(["length", "rouge"], workers=1), resamples=200)
    results.write(tmp_path / "results")
    return done, key, results


@given(st.data())
def test_coefficients_are_those_of_scipy(data: st.DataObject) -> None:
    from scipy import stats

    first = data.draw(VALUES)
    second = data.draw(st.lists(st.integers(0, 4), min_size=len(first), max_size=len(first)))
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(first), max_size=len(first)).filter(any))
    x, y = (np.repeat(np.array(values, float), times) for values in (first, second))
    found = coefficients(x, y)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert np.isnan(found).all()
    else:
        expected = [stats.pearsonr(x, y)[0], stats.spearmanr(x, y)[0], stats.kendalltau(x, y)[0]]
        assert found == pytest.approx(expected, abs=1e-9)


def of(correlated: dict[str, Any], *wanted: str) -> dict[str, Any]:
    """The correlations of a level, a metric and a scale."""
    found: list[dict[str, Any]] = correlated["correlations"]
    return next(one for one in found if (one["level"], one["metric"], one["scale"]) == wanted)


def test_a_metric_that_people_follow_correlates_and_one_that_is_constant_does_not(
    rated: tuple[list[Path], Path, Results],
) -> None:
    sheets, key, results = rated
    found = correlate(sheets, key, results)
    assert found["texts"] == {"measured": 18, "of_rated": 18}
    assert len(json.loads(key.read_bytes())["items"]) == 24  # with those of the upper bound
    assert set(found["systems"]) == {"terse", "plain", "wordy"}
    words = of(found, "texts", "words", "readability")
    assert words["n"] == 18 and 0.9 < words["values"]["pearson"] <= 1
    low, high = words["ci"]["kendall"]
    assert low <= words["values"]["kendall"] <= high
    systems = of(found, "systems", "words", "readability")
    assert systems["n"] == 3 and systems["values"]["kendall"] == systems["values"]["spearman"] == pytest.approx(1)
    constant = of(found, "texts", "words", "consistency")
    assert set(constant["values"].values()) == set(constant["ci"].values()) == {None}


def test_the_points_over_systems_are_means_of_the_rated_texts(rated: tuple[list[Path], Path, Results]) -> None:
    from scipy.stats import pearsonr

    sheets, key, results = rated
    column = [one.name for one in results.columns].index("words")
    items = json.loads(key.read_bytes())["items"].values()
    names = ("terse", "plain", "wordy")
    tasks = {name: [int(one["task_id"][-1]) for one in items if one["system"] == name] for name in names}
    means = [np.mean([results.scores[name][task, column] for task in tasks[name]]) for name in names]
    people = [np.mean([min(5, 1 + (LENGTHS[name] + task % 2) // 2) for task in tasks[name]]) for name in names]
    found = of(correlate(sheets, key, results), "systems", "words", "readability")
    assert found["values"]["pearson"] == pytest.approx(pearsonr(means, people)[0])


def test_the_command_shows_what_python_finds(
    citerec_here: Citerec, rated: tuple[list[Path], Path, Results], tmp_path: Path
) -> None:
    sheets, key, _ = rated
    given_ = ["rate", "correlate", *sheets, "--key", key, "--results"]
    shown = citerec_here(*given_, tmp_path / "results")
    assert "18 of 18 rated texts are in the results, by 3 systems" in shown.stdout
    value = json.loads(citerec_here(*given_, tmp_path / "results", "--format", "json").stdout)
    assert value == correlate(sheets, key, Results.read(tmp_path / "results"))
    one_line(citerec_here(*given_, tmp_path), 2, "holds no results")


def test_results_of_other_texts_are_refused(
    rated: tuple[list[Path], Path, Results], files: Callable[..., list[Path]]
) -> None:
    sheets, key, _ = rated
    others = read_predictions([(None, path) for path in files("copy", "noise")])
    results = evaluate_texts(others, *open_metrics(["length"]), resamples=200)
    with pytest.raises(InputError, match="the results have none of the texts that were rated"):
        correlate(sheets, key, results)
