"""Human evaluation: sheets that hide who wrote what, ratings read back, and metrics that agree with them."""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from citerec.errors import InputError
from citerec.evaluation.texts import Predictions, evaluate_texts, read_predictions
from citerec.papers.citebench.rating import SCALES, Key, agreement, correlate, read_ratings, read_sheets, write_sheets
from citerec.papers.common.statistics import coefficients
from citerec.write.metrics import open_metrics
from tests.conftest import Citerec, write_lines
from tests.evaluation_texts.conftest import TARGETS, WRITTEN, record

Row = dict[str, str]
Rate = Callable[[Row], tuple[str, str]]


def rows_of(sheet: Path) -> list[Row]:
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def filled(sheet: Path, name: str, rate: Rate, delimiter: str = ",", encoding: str = "utf-8") -> Path:
    """The sheet as a rater sends it back."""
    rows = rows_of(sheet)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    for row in rows:
        readability, consistency = rate(row)
        writer.writerow({**row, "readability": readability, "consistency": consistency})
    path = sheet.with_name(name)
    path.write_text(text.getvalue(), encoding, newline="")
    return path


def test_sheets_show_texts_and_hide_systems(predictions: Predictions, tmp_path: Path) -> None:
    files = write_sheets(predictions, tmp_path / "s" / "sheet.csv", tasks=2, raters=2, shared=1, seed=3)
    assert [path.name for path in files] == ["sheet-1.csv", "sheet-2.csv", "sheet.instructions.txt", "sheet.key.json"]
    *sheets, instructions, key_path = files
    key = Key.model_validate_json(key_path.read_bytes()).items
    texts = {(name, text.task.task_id): text.text for name, all_of in predictions.systems.items() for text in all_of}
    where = defaultdict(list)
    for number, sheet in enumerate(sheets, 1):
        content = sheet.read_text(encoding="utf-8-sig")
        assert not any(name in content for name in ("noise", "oracle", "task-"))  # "copy" is in no text either
        for row in rows_of(sheet):
            item = key[row["item"]]
            assert row["text to rate"] == texts[item.system, item.task_id]
            assert row["written by the authors"] == TARGETS[int(item.task_id[-1])]
            assert row["sources"].startswith("[0] Graph kernels compare molecules.")
            assert [row[scale] for scale in SCALES] == ["", ""]
            where[item.dataset, item.task_id].append((number, item.system))
    assert Counter(dataset for dataset, _ in where) == {"xing": 2, "lu": 2}
    # Of each data set one task goes to both raters, and one to one of them, with all systems' texts.
    alone = [sorted((number, name) for name in WRITTEN) for number in (1, 2)]
    both = sorted(alone[0] + alone[1])
    assert sorted(map(sorted, where.values())) == sorted([both, both, *alone])
    told = instructions.read_text(encoding="utf-8")
    for scale, meanings in SCALES.items():
        assert all(f"{scale} {rating}: {text}" in told for rating, text in enumerate(meanings, 1)), scale
    assert {item.system for item in key.values() if item.upper_bound} == {"oracle"}
    # The lot decides, and the seed the lot.
    by_number = [key[item].system for item in sorted(key)]
    assert by_number != sorted(by_number, key=list(WRITTEN).index)
    again = write_sheets(predictions, tmp_path / "again.csv", tasks=2, raters=2, shared=1, seed=3)
    assert sheets[0].read_bytes() == again[0].read_bytes()


def test_without_a_target_only_what_can_be_rated_is_waited_for(tmp_path: Path) -> None:
    records = [record("copy", 0, target=[], prediction='=HYPERLINK("x")'), record("copy", 1, target="x" * 40_000)]
    read = read_predictions([(None, write_lines(tmp_path / "a.jsonl", records))])
    sheet, _, key_path = write_sheets(read, tmp_path / "sheet.csv", raters=1)
    key = Key.model_validate_json(key_path.read_bytes()).items
    rows = {key[row["item"]].task_id: row for row in rows_of(sheet)}
    # A text that begins as a formula stays a text, and a cell is as long as a spreadsheet allows.
    assert rows["task-0"]["text to rate"] == '\'=HYPERLINK("x")'
    long = rows["task-1"]["written by the authors"]
    assert long.endswith("[…]") and len(long) < 32_767
    unknown = "(not known: leave consistency empty)"
    assert rows["task-0"]["written by the authors"] == unknown
    whole = filled(sheet, "sheet-ben.csv", lambda row: ("4", "" if row["written by the authors"] == unknown else "3"))
    rated = read_ratings([whole], key_path)
    assert (rated["raters"], rated["texts"]) == ({"ben": {"rated": 2, "texts": 2}}, {"rated": 2, "of_key": 2})
    assert [mean["n"] for mean in rated["systems"]["copy"]["means"]["overall"].values()] == [2, 1]


def test_kappa_of_a_case_worked_by_hand() -> None:
    def kappa(*pairs: tuple[int | None, int | None]) -> tuple[Any, int]:
        sheets = {rater: pd.DataFrame({scale: [pair[at] for pair in pairs] for scale in SCALES}, dtype=float)
                  for at, rater in enumerate("ab")}  # fmt: skip
        found, _ = agreement(sheets)
        return found["kappa"], found["n"]

    # Squared differences: 0 + 1 + 0 + 1 = 2. Of all sixteen pairings: 17 + 7 + 5 + 25 = 54, a quarter of that is 13.5.
    assert kappa((1, 1), (2, 3), (3, 3), (5, 4)) == (pytest.approx(1 - 2 / 13.5), 4)
    assert kappa((4, 4), (4, 4)) == (None, 2)
    assert kappa((4, 5), (4, 5)) == (0.0, 2)
    assert kappa((1, 1), (2, 3), (None, 4), (3, 3), (5, 4), (1, None))[1] == 4  # texts that both rated


def test_what_is_wrong_in_a_sheet_is_told_with_its_row_and_column(predictions: Predictions, tmp_path: Path) -> None:
    sheet, _, key_path = write_sheets(predictions, tmp_path / "sheet.csv", raters=1)
    fourth = rows_of(sheet)[2]["item"]
    for bad in ("6", "0", "good", "3.5", "²", "9" * 5000):
        broken = filled(sheet, "sheet-anna.csv", lambda row, bad=bad: ("4", bad if row["item"] == fourth else "2"))
        with pytest.raises(InputError, match=r"row 4, column consistency: .* is no rating\. Write 1, 2, 3, 4 or 5"):
            read_sheets([broken], key_path)
    text = sheet.read_text(encoding="utf-8-sig")
    for content, message in (
        (text.replace("readability", "how it reads"), "has no column readability"),
        (text.replace(f"\n{fourth},", "\nT999,"), "row 4, column item: 'T999' is not in the key"),
        (text + text.split("\n", 1)[1], "appears twice"),
        ("", "cannot read .* Correct the row"),
    ):
        broken.write_text(content, encoding="utf-8", newline="")
        with pytest.raises(InputError, match=message):
            read_ratings([broken], key_path)
    done = filled(sheet, "sheet-anna.csv", lambda _: ("4", "4"))
    with pytest.raises(InputError, match="two sheets are of one rater"):
        read_ratings([done, done], key_path)


# The words of each text, from few to many: what people like here.
LENGTHS = {"terse": 2, "plain": 5, "wordy": 9, "oracle": 3}


def liked(words: int) -> int:
    """How people rate a text of so many words."""
    return min(5, 1 + words // 2)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=3, max_size=9))
def test_coefficients_are_those_of_scipy(points: list[tuple[int, int, int]]) -> None:
    """Of points, each of which counts some times."""
    from scipy import stats

    x, y, times = np.array(points, float).T
    x, y = np.repeat(x, times.astype(int)), np.repeat(y, times.astype(int))
    if len(set(x)) > 1 and len(set(y)) > 1:
        expected = [stats.pearsonr(x, y)[0], stats.spearmanr(x, y)[0], stats.kendalltau(x, y)[0]]
        assert coefficients(x, y) == pytest.approx(expected, abs=1e-9)
    elif len(x):
        assert np.isnan(coefficients(x, y)).all()


def of(correlated: dict[str, Any], *wanted: str) -> dict[str, Any]:
    """The correlations of a level, a metric and a scale."""
    found: list[dict[str, Any]] = correlated["correlations"]
    return next(one for one in found if (one["level"], one["metric"], one["scale"]) == wanted)


def test_a_metric_that_people_follow_correlates_and_one_that_is_constant_does_not(
    predictions: Predictions, citerec_here: Citerec, tmp_path: Path
) -> None:
    files = []
    for system, words in LENGTHS.items():
        texts = ["word " * (words + number % 2) for number in range(len(TARGETS))]
        lines = (
            record("copy", number, writer=system, prediction=text, knows_target=system == "oracle")
            for number, text in enumerate(texts)
        )
        files.append(write_lines(tmp_path / f"{system}.jsonl", lines))
    written = read_predictions([(None, path) for path in files])
    *sheets, _, key = write_sheets(written, tmp_path / "sheet.csv", tasks=3, raters=2, shared=1)

    def rate(row: dict[str, str]) -> tuple[str, str]:
        return str(liked(len(row["text to rate"].split()))), " 3.0"

    # As spreadsheets save them.
    rated = [filled(sheets[0], "sheet-a.csv", rate, ";", "utf-8-sig"), filled(sheets[1], "sheet-b.csv", rate, "\t")]
    results = evaluate_texts(written, *open_metrics(["length", "rouge"], workers=1), resamples=200)
    results.write(tmp_path / "results")
    found = correlate(rated, key, results)
    command = ("rate", "correlate", *rated, "--key", key, "--results")
    shown = citerec_here(*command, tmp_path / "results").stdout
    assert "18 of 18 rated texts are in the results, by 3 systems" in shown
    assert json.loads(citerec_here(*command, tmp_path / "results", "--format", "json").stdout) == found
    assert found["texts"] == {"measured": 18, "of_rated": 18}
    items = json.loads(key.read_bytes())["items"].values()
    assert set(found["systems"]) == {"terse", "plain", "wordy"}
    words = of(found, "texts", "words", "readability")
    assert words["n"] == 18 and 0.9 < words["values"]["pearson"] <= 1
    low, high = words["ci"]["kendall"]
    assert low <= words["values"]["kendall"] <= high
    constant = of(found, "texts", "words", "consistency")
    assert set(constant["values"].values()) == set(constant["ci"].values()) == {None}
    # The points over systems are means of the rated texts.
    column = [one.name for one in results.columns].index("words")
    tasks = {name: [int(one["task_id"][-1]) for one in items if one["system"] == name] for name in found["systems"]}
    means = [np.mean([results.scores[name][task, column] for task in of_name]) for name, of_name in tasks.items()]
    people = [np.mean([liked(LENGTHS[name] + task % 2) for task in of_name]) for name, of_name in tasks.items()]
    systems = of(found, "systems", "words", "readability")
    assert systems["n"] == 3 and systems["values"]["kendall"] == systems["values"]["spearman"] == pytest.approx(1)
    assert systems["values"]["pearson"] == pytest.approx(np.corrcoef(means, people)[0, 1])
    with pytest.raises(InputError, match="the results have none of the texts that were rated"):
        correlate(rated, key, evaluate_texts(predictions, *open_metrics(["length"]), resamples=200))
