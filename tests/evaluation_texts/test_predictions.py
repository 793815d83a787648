"""What several systems wrote, from files."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from citerec.errors import InputError, SourceError
from citerec.evaluation.predictions import Predictions, citing_paper, read_predictions
from citerec.write.tasks import TextTask
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import SOURCES, TARGETS, WRITTEN, record

Texts = Mapping[str, Path]


def read(*paths: Path, references: Path | None = None) -> Predictions:
    return read_predictions([(None, path) for path in paths], references)


def test_writers_are_systems_on_the_same_tasks(predictions: Predictions) -> None:
    assert list(predictions.systems) == list(WRITTEN)
    assert predictions.oracles == {"oracle"}
    assert [task.task_id for task in predictions.tasks] == [f"task-{number}" for number in range(len(TARGETS))]
    for name, texts in predictions.systems.items():
        assert tuple(text.text for text in texts) == WRITTEN[name]
        assert [text.task for text in texts] == list(predictions.tasks)
    assert (predictions.total, predictions.left_out, set(predictions.missing.values())) == (len(TARGETS), 0, {0})


def test_only_tasks_that_all_answered_are_compared(tmp_path: Path, files: Texts) -> None:
    found = read(files["copy"], write_lines(tmp_path / "few.jsonl", [record("noise", number) for number in (4, 1)]))
    assert [task.task_id for task in found.tasks] == ["task-1", "task-4"]
    assert [text.text for text in found.systems["noise"]] == [WRITTEN["noise"][1], WRITTEN["noise"][4]]
    assert (found.total, found.left_out, found.missing) == (6, 4, {"copy": 0, "noise": 4})


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([record("noise", 0), record("copy", 0)], "copy answers task task-0 of xing twice"),
        ([record("noise", 0, id="x")], "no task is answered by all of copy, noise"),
        ([record("noise", 0, target="Another.")], "the target of task task-0 of xing differs from an earlier one"),
        ([record("noise", 0), {"id": "b", "input": ["x"], "target": "y"}], "line 2: prediction is missing, or no text"),
    ],
)
def test_what_cannot_be_compared_is_told(
    records: list[dict[str, object]], said: str, tmp_path: Path, files: Texts
) -> None:
    with pytest.raises(InputError, match=said):
        read(files["copy"], write_lines(tmp_path / "other.jsonl", records))
    with pytest.raises(SourceError, match="cannot read"):
        read(tmp_path / "none.jsonl")


def test_predictions_made_elsewhere_find_their_tasks(tmp_path: Path, files: Texts) -> None:
    tasks = files["copy"]
    bare = [{"id": f"task-{n}", "prediction": f"{n}"} for n in (5, 0)]
    found = read(write_lines(tmp_path / "bare.jsonl", bare), references=tasks)
    assert [(text.task.task_id, text.text) for text in found.systems["bare"]] == [("task-0", "0"), ("task-5", "5")]
    assert [task.targets for task in found.tasks] == [(TARGETS[0],), (TARGETS[5],)]
    assert [source.text for source in found.tasks[0].sources] == list(SOURCES)
    assert ([task.dataset for task in found.tasks], found.left_out) == (["xing", "lu"], 4)
    with pytest.raises(InputError, match=r"no tasks in .*copy\.jsonl have the id line-1"):
        read(write_lines(tmp_path / "without.jsonl", [{"prediction": "text"}]), references=tasks)


def test_one_id_in_two_data_sets_is_two_tasks(tmp_path: Path) -> None:
    copy = write_lines(tmp_path / "copy.jsonl", [record("copy", number, id="1") for number in (0, 5)])
    bare = write_lines(
        tmp_path / "b.jsonl", [{"id": "1", "dataset": name, "prediction": name} for name in ("lu", "xing")]
    )
    for found in (read(copy), read(bare, references=copy)):
        tasks = [(task.dataset, task.task_id, task.targets) for task in found.tasks]
        assert tasks == [("xing", "1", (TARGETS[0],)), ("lu", "1", (TARGETS[5],))]
    assert [text.text for text in found.systems["b"]] == ["xing", "lu"]
    with pytest.raises(InputError, match=r"2 tasks in .*copy\.jsonl have the id 1"):
        read(write_lines(tmp_path / "which.jsonl", [{"id": "1", "prediction": "text"}]), references=copy)
    other = write_lines(tmp_path / "other.jsonl", [{"id": "1", "dataset": "x", "prediction": "text"}])
    with pytest.raises(InputError, match=r"no tasks in .*copy\.jsonl have the id 1 of x"):
        read(other, references=copy)
    # Where the references name no data set, the id will do.
    nameless = write_lines(tmp_path / "nameless.jsonl", [record("copy", 0, id="1", dataset="")])
    assert [text.task.targets for text in read(other, references=nameless).systems["other"]] == [(TARGETS[0],)]


def test_the_citing_paper_is_known_by_its_id_or_its_abstract() -> None:
    assert citing_paper(TextTask("t", (), citing="Abstract", extra={"citing_id": 7})) == "7"
    assert citing_paper(TextTask("t", (), citing="Abstract")) == "Abstract"
    assert citing_paper(TextTask("t", ())) is None
