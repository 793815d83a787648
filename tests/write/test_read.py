"""Tasks and predictions go into files and come back; what is no task is told with its place."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.errors import InputError, SourceError
from citerec.write.task_files import (
    input_of,
    parse_prediction,
    parse_task,
    prediction_record,
    read_prediction_file,
    read_tasks,
    task_record,
)
from citerec.write.tasks import Prediction, Sentence, Source, TextTask
from tests.conftest import write_lines

RECORD = {
    "input": ["<abs> We do. </abs>", "<ctx_b> Before. </ctx_b>", "One did.", "Two did.", "<ctx_a> After. </ctx_a>"],
    "target": "As [0] and [1] did.",
}


def test_the_shape_of_citebench() -> None:
    task = parse_task(RECORD, "line-1")
    assert task == TextTask(
        "line-1", (Source("One did."), Source("Two did.")), "We do.", "Before.", "After.", ("As [0] and [1] did.",)
    )
    assert input_of(task) == RECORD["input"]


def test_the_shape_of_scitldr() -> None:
    record = {"source": ["We did.", "It works."], "target": ["They did.", "It did."], "paper_id": "x1", "rouge": [0.1]}
    task = parse_task(record)
    assert task.task_id == "x1"
    assert task.sources == (Source("We did. It works.", "x1", sentences=("We did.", "It works.")),)
    assert task.targets == ("They did.", "It did.")
    assert task_record(task) == {**record, "id": "x1"}


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="<>"), min_size=1)
texts = st.lists(words, min_size=1, max_size=5).map(" ".join)


tasks = st.builds(
    TextTask,
    task_id=words,
    sources=st.lists(
        st.builds(
            Source,
            texts,
            st.none() | words,
            st.just("") | texts,
            authors=st.just(()) | st.just(("A B",)),
            extra=st.just({}) | st.just({"year": 2001}),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    citing=st.just("") | texts,
    before=st.just("") | texts,
    after=st.just("") | texts,
    targets=st.lists(texts, max_size=2).map(tuple),
    dataset=st.just("") | words,
    extra=st.dictionaries(st.sampled_from(["title", "venue"]), st.integers(), max_size=2),
)


@given(tasks)
def test_tasks_come_back(task: TextTask) -> None:
    assert parse_task(json.loads(json.dumps(task_record(task)))) == task


@given(tasks, texts, st.lists(st.builds(Sentence, texts, st.just((0,)), st.just(("[7]",)))).map(tuple), st.booleans())
def test_predictions_come_back(task: TextTask, text: str, sentences: tuple[Sentence, ...], knows: bool) -> None:
    prediction = Prediction(task, text, "lead", sentences, knows, {"beams": 4})
    assert parse_prediction(json.loads(json.dumps(prediction_record(prediction)))) == prediction


def test_a_json_list_is_read_as_its_records(tmp_path: Path) -> None:
    listed, lines = tmp_path / "tasks.json", write_lines(tmp_path / "tasks.jsonl", [RECORD, RECORD])
    listed.write_text(json.dumps([RECORD, RECORD], indent=1))
    of_list, of_lines = list(read_tasks(listed)), list(read_tasks(lines))
    assert [task.task_id for task in of_list] == ["record-1", "record-2"]
    assert [task.task_id for task in of_lines] == ["line-1", "line-2"]
    assert [task.sources for task in of_list] == [task.sources for task in of_lines]


def test_predictions_made_elsewhere_need_no_input(tmp_path: Path) -> None:
    (prediction,) = read_prediction_file(write_lines(tmp_path / "p.jsonl", [{"id": "a", "prediction": "So [0]."}]))
    assert (prediction.task.task_id, prediction.text, prediction.task.sources) == ("a", "So [0].", ())


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"target": "x"}, "no cited text"),
        ({"input": ["<abs> only </abs>"]}, "no cited text"),
        ({"input": 3}, "input is a int, not a list"),
        ({"input": ["x"], "target": {"a": 1}}, "target is a dict, not a list"),
        ({"input": ["x", "y"], "sources": [{"paper_id": 1}]}, "not name one paper for each"),
        ([1], "a list where a JSON object"),
    ],
)
def test_what_is_no_task_is_told_with_its_place(tmp_path: Path, record: object, said: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(f"{json.dumps(RECORD)}\n{json.dumps(record)}\n")
    with pytest.raises(InputError, match=f"line 2: .*{said}"):
        list(read_tasks(path))


def test_files_of_nothing_and_repeats(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is empty"):
        list(read_tasks(write_lines(tmp_path / "none.jsonl", [])))
    twice = write_lines(tmp_path / "twice.jsonl", [{**RECORD, "id": 1}, {**RECORD, "id": 1}])
    with pytest.raises(InputError, match="line 2: 1 appears twice"):
        list(read_tasks(twice))
    parts = [{**RECORD, "id": 1, "dataset": name} for name in "ab"]
    assert len(list(read_tasks(write_lines(tmp_path / "parts.jsonl", parts)))) == 2
    (tmp_path / "cut.json").write_text("[{")
    with pytest.raises(InputError, match="line 1: its list is no JSON"):
        list(read_tasks(tmp_path / "cut.json"))
    with pytest.raises(InputError, match="prediction is missing"):
        list(read_prediction_file(write_lines(tmp_path / "tasks.jsonl", [RECORD])))


def test_real_files(shared: Path) -> None:
    sample = list(read_tasks(shared / "text" / "citebench" / "sample.json"))
    assert (len(sample), sum(len(task.sources) for task in sample)) == (50, 242)
    dev = list(read_tasks(shared / "text" / "scitldr" / "dev.jsonl"))
    assert (len(dev), max(len(task.targets) for task in dev)) == (619, 4)
    assert all(parse_task(task_record(task)) == task for task in [*sample, *dev])
