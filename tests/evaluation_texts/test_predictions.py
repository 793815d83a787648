"""What several systems wrote, from files."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.errors import InputError, SourceError
from citerec.evaluation.predictions import ReadFile, citing_paper, read_predictions
from citerec.write.tasks import TextTask
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import SOURCES, TARGETS, WRITTEN, record

Files = Callable[..., list[Path]]


def unnamed(paths: list[Path]) -> list[tuple[str | None, Path]]:
    return [(None, path) for path in paths]


def test_writers_are_systems_on_the_same_tasks(files: Files) -> None:
    found = read_predictions(unnamed(files()))
    assert list(found.systems) == list(WRITTEN)
    assert found.oracles == {"oracle"}
    assert [task.task_id for task in found.tasks] == [f"task-{number}" for number in range(len(TARGETS))]
    for name, texts in found.systems.items():
        assert tuple(text.text for text in texts) == WRITTEN[name]
        assert [text.task for text in texts] == list(found.tasks)
    assert (found.total, found.left_out, set(found.missing.values())) == (len(TARGETS), 0, {0})


def test_a_file_may_be_given_a_name_or_lends_its_own(tmp_path: Path, files: Files) -> None:
    (copy,) = files("copy")
    nameless = write_lines(tmp_path / "mine.jsonl", (record("noise", number, writer="") for number in range(6)))
    assert list(read_predictions([("renamed", copy), (None, nameless), ("again", copy)]).systems) == [
        "renamed",
        "mine",
        "again",
    ]


def test_several_writers_in_one_file_and_one_writer_in_several(tmp_path: Path) -> None:
    both = write_lines(tmp_path / "both.jsonl", [record(name, n) for n in range(3) for name in ("copy", "noise")])
    rest = write_lines(tmp_path / "rest.jsonl", [record(name, n) for n in range(3, 6) for name in ("copy", "noise")])
    found = read_predictions([(None, both), (None, rest)])
    assert {name: len(texts) for name, texts in found.systems.items()} == {"copy": 6, "noise": 6}
    with pytest.raises(InputError, match="copy answers task task-0 of xing twice"):
        read_predictions([(None, both), (None, both)])


def test_only_tasks_that_all_answered_are_compared(tmp_path: Path, files: Files) -> None:
    few = write_lines(tmp_path / "few.jsonl", [record("noise", number) for number in (4, 1)])
    found = read_predictions([*unnamed(files("copy")), (None, few)])
    assert [task.task_id for task in found.tasks] == ["task-1", "task-4"]
    assert [text.text for text in found.systems["noise"]] == [WRITTEN["noise"][1], WRITTEN["noise"][4]]
    assert (found.total, found.left_out, found.missing) == (6, 4, {"copy": 0, "noise": 4})


def test_tasks_must_be_the_same(tmp_path: Path, files: Files) -> None:
    other_ids = write_lines(tmp_path / "ids.jsonl", [record("noise", number, id=f"x{number}") for number in range(3)])
    with pytest.raises(InputError, match="no task is answered by all of copy, noise"):
        read_predictions([*unnamed(files("copy")), (None, other_ids)])
    other_target = write_lines(tmp_path / "targets.jsonl", [record("noise", 0, target="Another one.")])
    with pytest.raises(InputError, match="the target of task task-0 of xing differs from an earlier one"):
        read_predictions([*unnamed(files("copy")), (None, other_target)])


def test_predictions_made_elsewhere_find_their_tasks(tmp_path: Path) -> None:
    tasks = write_lines(
        tmp_path / "tasks.jsonl",
        [
            {key: value for key, value in record("copy", n).items() if key not in ("prediction", "writer")}
            for n in range(6)
        ],
    )
    bare = write_lines(tmp_path / "bare.jsonl", [{"id": f"task-{n}", "prediction": f"text {n}"} for n in (5, 0)])
    found = read_predictions([(None, bare)], tasks)
    assert [(text.task.task_id, text.text) for text in found.systems["bare"]] == [
        ("task-0", "text 0"),
        ("task-5", "text 5"),
    ]
    assert [task.targets for task in found.tasks] == [(TARGETS[0],), (TARGETS[5],)]
    assert [source.text for source in found.tasks[0].sources] == list(SOURCES)
    assert [task.dataset for task in found.tasks] == ["xing", "lu"]
    assert found.left_out == 4
    without_id = write_lines(tmp_path / "without.jsonl", [{"prediction": "text"}])
    with pytest.raises(InputError, match=r"no tasks in .*tasks\.jsonl have the id line-1"):
        read_predictions([(None, without_id)], tasks)


def test_one_id_in_two_data_sets_is_two_tasks(tmp_path: Path) -> None:
    def both(name: str, system: str, **changes: object) -> Path:
        records = [record(system, n, **{"id": "1", **changes}) for n in (0, 5)]
        return write_lines(tmp_path / f"{name}.jsonl", records)

    found = read_predictions(unnamed([both("copy", "copy"), both("noise", "noise")]))
    assert [(task.dataset, task.task_id, task.targets) for task in found.tasks] == [
        ("xing", "1", (TARGETS[0],)),
        ("lu", "1", (TARGETS[5],)),
    ]
    assert [text.text for text in found.systems["noise"]] == [WRITTEN["noise"][0], WRITTEN["noise"][5]]
    # The same by references.
    tasks = both("tasks", "copy")
    bare = [{"id": "1", "dataset": name, "prediction": name} for name in ("lu", "xing")]
    joined = read_predictions([(None, write_lines(tmp_path / "bare.jsonl", bare))], tasks)
    assert [(text.text, text.task.targets) for text in joined.systems["bare"]] == [
        ("xing", (TARGETS[0],)),
        ("lu", (TARGETS[5],)),
    ]
    which = write_lines(tmp_path / "which.jsonl", [{"id": "1", "prediction": "text"}])
    with pytest.raises(InputError, match=r"2 tasks in .*tasks\.jsonl have the id 1"):
        read_predictions([(None, which)], tasks)
    other = write_lines(tmp_path / "other.jsonl", [{"id": "1", "dataset": "x", "prediction": "text"}])
    with pytest.raises(InputError, match=r"no tasks in .*tasks\.jsonl have the id 1 of x"):
        read_predictions([(None, other)], tasks)
    # Where the references name no data set, the id will do.
    nameless = write_lines(tmp_path / "nameless.jsonl", [record("copy", 0, id="1", dataset="")])
    (text,) = read_predictions([(None, other)], nameless).systems["other"]
    assert (text.task.dataset, text.task.targets) == ("", (TARGETS[0],))


def test_files_are_named_with_their_digests(tmp_path: Path, files: Files) -> None:
    copy, noise = files("copy", "noise")
    more = write_lines(tmp_path / "more.jsonl", [record("copy", 0, id="another")])
    found = read_predictions([*unnamed([copy, noise, more]), ("again", copy)], references=None)
    names = {name: [file.name for file in read] for name, read in found.files.items()}
    assert names == {"copy": ["copy.jsonl", "more.jsonl"], "noise": ["noise.jsonl"], "again": ["copy.jsonl"]}
    assert found.files["again"] == found.files["copy"][:1]
    digest = hashlib.sha256(noise.read_bytes()).hexdigest()
    assert found.files["noise"] == (ReadFile("noise.jsonl", noise.stat().st_size, digest),)
    assert found.references is None


def test_what_is_no_prediction_is_told_with_its_place(tmp_path: Path) -> None:
    without = write_lines(tmp_path / "a.jsonl", [record("copy", 0), {"id": "b", "input": ["x"], "target": "y"}])
    with pytest.raises(InputError, match=r"a.jsonl, line 2: prediction is missing, or no text"):
        read_predictions([(None, without)])
    with pytest.raises(SourceError, match="cannot read"):
        read_predictions([(None, tmp_path / "none.jsonl")])


def test_the_citing_paper_is_known_by_its_id_or_its_abstract() -> None:
    assert citing_paper(TextTask("t", (), citing="Abstract", extra={"citing_id": 7})) == "7"
    assert citing_paper(TextTask("t", (), citing="Abstract")) == "Abstract"
    assert citing_paper(TextTask("t", ())) is None
