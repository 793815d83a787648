"""Statistics of data sets of texts: what is counted, and which tasks are nearly the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from citerec.papers.common.statistics import task_statistics
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.tiny_seq2seq import write_tiny_bart

RECORDS = [
    {"id": "a", "input": ["<abs> We cite. </abs>", "One two three.", "Four."], "target": "One two, six [0]."},
    {"id": "b", "source": ["One two three four."], "target": ["Two three.", " ", "Nine nine."]},
    {"id": "c", "source": ["No target here."]},
]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "tasks.jsonl", RECORDS)


def spread(mean: Any, median: float | None) -> dict[str, Any]:
    return {"mean": pytest.approx(mean), "median": median}


def test_tasks_and_targets_are_described(tasks: Path, tmp_path: Path) -> None:
    found = task_statistics({"mine": tasks}, over=(3, 5), near=0.9)["sets"]["mine"]
    assert (found["tasks"], found["targets"]) == (3, 3)
    assert found["sources"] == spread(4 / 3, 1)
    # Tags are no words, but tokens of a model.
    assert found["input_words"] == spread((6 + 4 + 3) / 3, 4)
    assert found["input_tokens"] == spread((8 + 4 + 3) / 3, 4)
    assert found["target_words"] == spread((3 + 2 + 2) / 3, 2)
    assert found["target_tokens"] == spread((4 + 2 + 2) / 3, 2)
    assert found["compression"] == spread((4 / 3 + 2 + 2) / 3, 2)
    assert found["novelty"]["1"]["mean"] == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert found["novelty"]["3"] == spread(1, 1)  # of the only target with three words
    assert found["novelty"]["4"] == {"mean": None, "median": None}
    assert found["inputs_over"] == {"3": pytest.approx(2 / 3), "5": pytest.approx(1 / 3)}
    assert found["targets_over"] == {"3": pytest.approx(1 / 3), "5": 0}
    folder = write_tiny_bart(tmp_path / "bart", ["One two three four."])
    of_model = task_statistics({"mine": tasks}, over=(), near=0, tokenizer=str(folder))["sets"]["mine"]
    assert of_model["input_tokens"]["median"] == 6  # with those at both ends


def test_tasks_of_nearly_the_same_input_are_found(tmp_path: Path) -> None:
    def of(name: str, *texts: str) -> Path:
        records = [{"id": str(number), "input": [text], "target": "t"} for number, text in enumerate(texts)]
        return write_lines(tmp_path / name, records)

    first = of("a.jsonl", "cats hunt birds", "Cats hunt birds!", "dogs sleep long", "trees grow slowly")
    other = of("b.jsonl", "stars shine brightly", "slowly trees grow")
    found = task_statistics({"first": first, "other": other}, over=(), near=0.9, against=other)
    of_first, of_other = found["sets"]["first"], found["sets"]["other"]
    assert of_first["near"] == {"pairs": 1, "share": 0.5}
    assert of_first["against"] == {"pairs": 1, "share": 0.25}
    assert of_other["near"]["pairs"] == 0
    assert of_other["against"]["share"] == 1


def test_the_command_prints_a_table_or_json_or_what_is_wrong(citerec_here: Citerec, tasks: Path) -> None:
    arguments = ("data", "statistics", f"mine={tasks}", tasks, "--over", "3")
    table = citerec_here(*arguments)
    assert table.returncode == 0, table.stderr
    assert table.stdout.splitlines()[0].split() == ["mine", "tasks"]
    found = json.loads(citerec_here(*arguments, "--format", "json").stdout)
    assert found["sets"]["mine"] == found["sets"]["tasks"]
    assert found["sets"]["mine"]["inputs_over"] == {"3": pytest.approx(2 / 3)}
    for wrong, words in (((tasks, tasks), "two files have the name"), ((tasks, "--over", "many"), "--over 'many'")):
        one_line(citerec_here("data", "statistics", *wrong), 2, words)
