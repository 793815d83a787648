"""Human evaluation: sheets that hide who wrote what, and ratings read back."""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from citerec.errors import InputError
from citerec.evaluation.predictions import Predictions, read_predictions
from citerec.papers.citebench.rating import SCALES, Item, Key, agreement, read_ratings, read_sheets, write_sheets
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import TARGETS, WRITTEN, record

Row = dict[str, str]
Rate = Callable[[Row], tuple[str, str]]


@pytest.fixture
def predictions(files: Callable[..., list[Path]]) -> Predictions:
    return read_predictions([(None, path) for path in files()])


def read_key(path: Path) -> Mapping[str, Item]:
    return Key.model_validate_json(path.read_bytes()).items


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
    key = read_key(key_path)
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
    alone = [sorted((1, name) for name in WRITTEN), sorted((2, name) for name in WRITTEN)]
    both = sorted(alone[0] + alone[1])
    assert sorted(map(sorted, where.values())) == sorted([both, both, *alone])
    for scale, meanings in SCALES.items():
        assert len(meanings) == 5
        told = instructions.read_text(encoding="utf-8")
        assert all(f"{scale} {rating}: {text}" in told for rating, text in enumerate(meanings, 1)), scale
    assert {item.system for item in key.values() if item.upper_bound} == {"oracle"}


def test_the_lot_decides_and_the_seed_the_lot(predictions: Predictions, tmp_path: Path) -> None:
    def written(folder: str, seed: int) -> list[bytes]:
        return [path.read_bytes() for path in write_sheets(predictions, tmp_path / folder / "sheet.csv", seed=seed)]

    assert written("a", 1) == written("b", 1)
    assert written("c", 2)[0] != written("a2", 1)[0]
    rows = [row["item"] for row in rows_of(tmp_path / "a" / "sheet-1.csv")]
    assert rows != sorted(rows)
    key = read_key(tmp_path / "a" / "sheet.key.json")
    by_number = [key[item].system for item in sorted(key)]
    assert by_number != sorted(by_number, key=list(WRITTEN).index)
    assert [item.system for item in key.values()][:3] == list(WRITTEN)


def test_one_rater_gets_one_sheet_and_nothing_is_overwritten(predictions: Predictions, tmp_path: Path) -> None:
    out = tmp_path / "mine.csv"
    sheet, *_ = write_sheets(predictions, out, raters=1)
    assert sheet.name == "mine-1.csv"
    assert len(rows_of(sheet)) == len(TARGETS) * len(WRITTEN)
    with pytest.raises(InputError, match=r"mine-1\.csv exists, perhaps with ratings in it"):
        write_sheets(predictions, out, raters=1)


def test_without_a_target_only_what_can_be_rated_is_waited_for(tmp_path: Path) -> None:
    records = [record("copy", n, **({"target": []} if n < 2 else {})) for n in range(4)]
    read = read_predictions([(None, write_lines(tmp_path / "a.jsonl", records))])
    sheet, _, key_path = write_sheets(read, tmp_path / "sheet.csv", raters=1)
    key = read_key(key_path)
    told = {key[row["item"]].task_id: row["written by the authors"] for row in rows_of(sheet)}
    unknown = "(not known: leave consistency empty)"
    assert told == {"task-0": unknown, "task-1": unknown, "task-2": TARGETS[2], "task-3": TARGETS[3]}
    whole = filled(sheet, "sheet-ben.csv", lambda row: ("4", "" if row["written by the authors"] == unknown else "3"))
    rated = read_ratings([whole], key_path)
    assert (rated["raters"], rated["texts"]) == ({"ben": {"rated": 4, "texts": 4}}, {"rated": 4, "of_key": 4})
    assert [mean["n"] for mean in rated["systems"]["copy"]["means"]["overall"].values()] == [4, 2]


def test_a_text_that_begins_as_a_formula_stays_a_text(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [record("copy", 0, prediction='=HYPERLINK("x")', target="x" * 40_000)])
    out = tmp_path / "sheet.csv"
    write_sheets(read_predictions([(None, path)]), out, raters=1)
    (row,) = rows_of(tmp_path / "sheet-1.csv")
    assert row["text to rate"] == '\'=HYPERLINK("x")'
    assert len(row["written by the authors"]) < 32_767


def test_ratings_come_to_means_by_system(predictions: Predictions, tmp_path: Path) -> None:
    *sheets, _, key_path = write_sheets(predictions, tmp_path / "sheet.csv", tasks=3, raters=2, shared=3)
    key = read_key(key_path)
    of_system = {"copy": (2, 4), "noise": (1, 1), "oracle": (5, 5)}

    def anna(row: Row) -> tuple[str, str]:
        readability, consistency = of_system[key[row["item"]].system]
        return str(readability), f" {consistency}.0"  # as some spreadsheets save it

    def ben(row: Row) -> tuple[str, str]:
        item = key[row["item"]]
        # One better than anna by copy's readability, and lu's consistency is left open.
        readability, consistency = of_system[item.system]
        return str(readability + (item.system == "copy")), "" if item.dataset == "lu" else str(consistency)

    rated = read_ratings(
        [filled(sheets[0], "sheet-anna.csv", anna, ";", "utf-8-sig"), filled(sheets[1], "sheet-ben.csv", ben, "\t")],
        key_path,
    )
    assert rated["raters"] == {"anna": {"rated": 18, "texts": 18}, "ben": {"rated": 18, "texts": 18}}
    assert rated["texts"] == {"rated": 18, "of_key": 18}
    assert list(rated["systems"]) == list(WRITTEN)
    assert list(rated["systems"]["copy"]["means"]) == ["overall", "xing", "lu"]
    readability, consistency = rated["systems"]["copy"]["means"]["overall"].values()
    assert readability == {"n": 6, "value": 2.5, "ci": [2.5, 2.5]}
    assert (consistency["n"], consistency["value"]) == (6, 4.0)
    assert [mean["value"] for mean in rated["systems"]["oracle"]["means"]["lu"].values()] == [5.0, 5.0]
    assert rated["systems"]["oracle"]["upper_bound"] is True
    assert [(one["raters"], one["scale"], one["n"]) for one in rated["agreement"]] == [
        (["anna", "ben"], "readability", 18),
        (["anna", "ben"], "consistency", 9),
    ]
    assert rated["agreement"][1]["kappa"] == 1.0
    json.dumps(rated)


def sheet_of(rows: Iterable[tuple[float | None, ...]]) -> pd.DataFrame:
    """The ratings of a rater, a row for each text."""
    return pd.DataFrame(rows, columns=list(SCALES), dtype=float)


def kappa_of(pairs: list[tuple[int, int]]) -> float | None:
    (found,) = agreement({rater: sheet_of((pair[at], None) for pair in pairs) for at, rater in enumerate("ab")})
    kappa: float | None = found["kappa"]
    return kappa


def test_kappa_of_a_case_worked_by_hand() -> None:
    # Squared differences: 0 + 1 + 0 + 1 = 2. Of all sixteen pairings: 17 + 7 + 5 + 25 = 54, a quarter of that is 13.5.
    pairs = [(1, 1), (2, 3), (3, 3), (5, 4)]
    assert kappa_of(pairs) == pytest.approx(1 - 2 / 13.5)
    assert kappa_of([(4, 4), (4, 4)]) is None
    assert kappa_of([(4, 5), (4, 5)]) == 0.0


def test_agreement_is_over_texts_that_both_rated() -> None:
    one, other = [(1, 2), (3, None), (None, None)], [(None, None), (4, 1), (3, None)]
    (found,) = agreement({"one": sheet_of(one), "other": sheet_of(other)})
    assert (found["scale"], found["n"]) == ("readability", 1)
    assert list(agreement({"one": sheet_of(one)})) == []


def test_what_is_wrong_in_a_sheet_is_told_with_its_row_and_column(predictions: Predictions, tmp_path: Path) -> None:
    sheet, _, key_path = write_sheets(predictions, tmp_path / "sheet.csv", raters=1)
    fourth = rows_of(sheet)[2]["item"]
    for bad in ("6", "0", "good", "3.5", "-1", "²", "9" * 5000):
        broken = filled(sheet, "sheet-anna.csv", lambda row, bad=bad: ("4", bad if row["item"] == fourth else "2"))
        with pytest.raises(InputError) as raised:
            read_sheets([broken], key_path)
        assert str(raised.value) == (
            f"{broken}, row 4, column consistency: {bad!r:.60} is no rating. "
            "Write 1, 2, 3, 4 or 5, or leave the cell empty."
        )
    text = sheet.read_text(encoding="utf-8-sig")
    for content, message in (
        (text.replace("readability", "how it reads"), "has no column readability"),
        (text.replace(f"\n{fourth},", "\nT999,"), "row 4, column item: 'T999' is not in the key"),
        (text + text.split("\n", 1)[1], "appears twice"),
        ("", "cannot read .* Correct the row"),
    ):
        broken.write_text(content, encoding="utf-8", newline="")
        with pytest.raises(InputError, match=message):
            read_sheets([broken], key_path)
    with pytest.raises(InputError, match=r"sheet-1\.csv has no rating in it"):
        read_ratings([sheet], key_path)
    with pytest.raises(InputError, match="cannot read"):
        read_ratings([tmp_path / "none.csv"], key_path)
    done = filled(sheet, "sheet-anna.csv", lambda _: ("4", "4"))
    with pytest.raises(InputError, match="two sheets are of one rater"):
        read_ratings([done, done], key_path)


def test_what_is_no_key_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sheet.key.json"
    for content, message in (
        ("no json", "is no key of sheets"),
        ("[]", "is no key of sheets"),
        ('{"kind": "citerec-results", "version": 1}', r"is no key of sheets .kind: Input should be"),
        ('{"kind": "citerec-rating-key", "items": {"T1": {}}}', "is no key of sheets"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            read_sheets([], path)
    with pytest.raises(InputError, match="cannot read"):
        read_sheets([], tmp_path / "none.key.json")
