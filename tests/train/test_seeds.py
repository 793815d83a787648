"""Writers of several seeds, and the matrix of transfer: stopped work goes on, and values are means over seeds."""

import itertools
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from citerec.errors import InputError
from citerec.evaluation.results import Results
from citerec.evaluation.tables import OverSeeds, over_seeds
from citerec.papers.citebench.transfer import (
    Transfer,
    measure_transfer,
    predictions_of,
    train_and_write,
    transfer_table,
)
from citerec.train.groups import Choice, Schedule
from citerec.train.writer import WriterOptions, train_seeds
from citerec.write.metrics import Column, open_metrics
from citerec.write.writers.models import Seq2seqWriter
from tests.conftest import Citerec, write_lines
from tests.tiny_seq2seq import write_tiny_bart

pytestmark = pytest.mark.slow

SCHEDULE = Schedule(learning_rate=5e-3, epochs=8, evaluations=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models as small as these are slower with several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def records(verb: str, numbers: range) -> list[dict[str, Any]]:
    """Each data set has a verb of its own, which a writer learns."""
    things = list(itertools.product("cats dogs birds trees".split(), "one two three four five six".split()))
    return [
        {"id": f"{verb}-{number}", "input": [f"{things[number][1]} {things[number][0]} {verb} ."], "target": text}
        for number in numbers
        for text in [f"they {verb} {things[number][0]} ."]
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sets")
    made = {
        f"{verb}-{part}": write_lines(folder / f"{verb}-{part}.jsonl", records(verb, numbers))
        for verb in ("hunt", "sleep")
        for part, numbers in (("train", range(18)), ("test", range(16, 24)))
    }
    texts = [
        " ".join([*record["input"], record["target"]])
        for verb in ("hunt", "sleep")
        for record in records(verb, range(24))
    ]
    return {**made, "base": write_tiny_bart(folder / "bart", texts)}


def options(files: dict[str, Path]) -> WriterOptions:
    return WriterOptions(base=str(files["base"]), batch=6, max_target_tokens=10)


def test_each_seed_has_its_folder_and_what_is_done_is_kept(files: dict[str, Path], tmp_path: Path) -> None:
    choice = Choice(files["hunt-train"], dev_share=0.2, dev_limit=3)
    said: list[str] = []

    def train(out: Path, *seeds: int, **more: Any) -> Any:
        said.clear()
        return train_seeds(choice, out, options(files), SCHEDULE, seeds, device="cpu", note=said.append, **more)

    def stops(doing: str, done: float, _whole: float) -> None:
        if doing == "training" and done >= 5 and "seed 2:" in said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "led", 1, 2, on_progress=stops)
    assert [path.name for path in (tmp_path / "led").iterdir() if path.name[0] != "."] == ["seed-1"]
    first = (tmp_path / "led" / "seed-1" / "model.safetensors").stat()
    found = train(tmp_path / "led", 1, 2)
    assert "seed 1:" not in said and "seed 2:" in said
    assert (tmp_path / "led" / "seed-1" / "model.safetensors").stat() == first
    assert [manifest.training["seed"] for manifest in found.values()] == [1, 2]
    assert found == train(tmp_path / "led", 1, 2)
    assert said == []
    weights = [(tmp_path / "led" / f"seed-{seed}" / "model.safetensors").read_bytes() for seed in (1, 2)]
    assert weights[0] != weights[1]
    assert Seq2seqWriter.open(str(tmp_path / "led" / "seed-2"), device="cpu").name == "led/seed-2"
    with pytest.raises(InputError, match="is a writer"):
        train(tmp_path / "led" / "seed-1", 3)


def test_a_matrix_of_transfer_is_trained_written_and_measured(files: dict[str, Path], tmp_path: Path) -> None:
    transfer = Transfer(
        {verb: Choice(files[f"{verb}-train"], dev_share=0.2, dev_limit=3) for verb in ("hunt", "sleep")},
        {verb: files[f"{verb}-test"] for verb in ("hunt", "sleep")},
        (1, 2),
    )
    written: list[str] = []

    def stops(doing: str, _done: float, _whole: float) -> None:
        if doing == "writing" and predictions_of(tmp_path, "hunt", "hunt", 2).exists():
            raise KeyboardInterrupt

    schedule = Schedule(learning_rate=1e-2, epochs=25, evaluations=2)
    with pytest.raises(KeyboardInterrupt):
        train_and_write(transfer, tmp_path, options(files), schedule, device="cpu", on_progress=stops)
    place = predictions_of(tmp_path, "hunt", "hunt", 1)
    before = place.stat()
    train_and_write(transfer, tmp_path, options(files), schedule, device="cpu", note=written.append)
    assert place.stat() == before
    assert written[0] == "training on hunt"
    (metrics, _) = open_metrics(["rouge"])
    matrix = measure_transfer(transfer, tmp_path, metrics)
    # The last two tasks of a set that is learnt from are those that it is tested on, too.
    assert matrix["tasks"] == {verb: {"compared": 6, "asked": 8} for verb in ("hunt", "sleep")}
    values = {(a, b): matrix["values"][a][b]["rougeL"] for a in ("hunt", "sleep") for b in ("hunt", "sleep")}
    assert all(value["n"] == 2 for value in values.values())
    for verb, other in (("hunt", "sleep"), ("sleep", "hunt")):
        assert values[verb, verb]["mean"] > values[other, verb]["mean"] + 0.1
    column = next(one for one in metrics[0].columns if one.name == "rougeL")
    table = transfer_table(matrix, column)
    assert [column.heading for column in table.columns] == ["trained on", "hunt", "sleep"]
    assert [[cell.spans[0][0] == "★ " for cell in row[1:]] for row in table.rows] == [[True, False], [False, True]]


def test_the_commands_train_with_seeds_and_measure_over_them(
    citerec_here: Citerec, files: dict[str, Path], tmp_path: Path
) -> None:
    shared = ("--base", files["base"], "--seeds", "3,5", "-c", "epochs=1", "-c", "evaluations=1")
    shared = (*shared, "-c", "device=cpu", "-c", "max_target_tokens=10", "-c", "dev_share=0.2")
    done = citerec_here("train", "writer", "--tasks", files["hunt-train"], "--out", "led", *shared)
    assert done.returncode == 0, done.stderr
    assert "over 2 seeds" in done.stdout.splitlines()[-1]
    for seed in (3, 5):
        folder = f"led/seed-{seed}"
        arguments = ("write", "batch", files["hunt-test"], "--writer", folder, "--out", f"{seed}.jsonl")
        assert citerec_here(*arguments).returncode == 0
    measured = citerec_here("eval-text", "3.jsonl", "5.jsonl", "--metrics", "rouge", "--resamples", 100, "--out", "r")
    assert measured.returncode == 0, measured.stderr
    assert "Over seeds: mean ± standard deviation" in measured.stdout
    results = Results.read(tmp_path / "r")
    values = [results.systems[f"led/seed-{seed}"].overall.values["rouge1"] for seed in (3, 5)]
    over = over_seeds(results)["led"]["overall"]["rouge1"]
    assert over == (pytest.approx(statistics.fmean(values)), pytest.approx(statistics.stdev(values)), 2)
    sets = [f"--{part}=hunt={files[f'hunt-{part}']}" for part in ("train", "test")]
    moved = citerec_here("train", "transfer", *sets, "--out", "t", *shared)
    assert moved.returncode == 0, moved.stderr
    assert "6 of 8" in moved.stdout
    matrix = json.loads((tmp_path / "t" / "matrix.json").read_text())
    assert (matrix["seeds"], matrix["tasks"]) == ([3, 5], {"hunt": {"compared": 6, "asked": 8}})
    assert matrix["values"]["hunt"]["hunt"]["rougeL"].keys() == {"mean", "sd", "n"}
    for arguments, words in (
        ((*sets, "--seeds", "a"), "--seeds 'a'"),
        ((*sets, "--metric", "loss"), "--metric 'loss'"),
        ((*sets, "--dev", "x=y"), "--dev x"),
        ((*sets, "--test", "hunt=again"), "'hunt=again'"),
        ((*sets, "--test", "../x=none.jsonl"), "no name of a folder"),
    ):
        wrong = citerec_here("train", "transfer", *arguments, "--out", "t", "--base", files["base"])
        assert wrong.returncode == 2
        assert words in wrong.stderr
        assert len(wrong.stderr.splitlines()) == 1


def test_values_over_seeds() -> None:
    assert OverSeeds.of([1.0, None, 3.0]) == OverSeeds(2.0, statistics.stdev([1, 3]), 2)
    assert OverSeeds.of([None]) == OverSeeds(None, None, 0)
    names = dict.fromkeys(["a/seed-1", "a/seed-22", "b", "seed-3"])
    assert over_seeds(SimpleNamespace(systems=names, groups=[], columns=[])) == {"a": {}}  # type: ignore[arg-type]
    lower = Column("lines", share=False, better="lower")
    none = {"lines": OverSeeds(None, None, 0)._asdict()}
    values = {
        "a": {"x": {"lines": OverSeeds(2, 0.5, 2)._asdict()}, "y": none},
        "b": {"x": {"lines": OverSeeds(1, None, 1)._asdict()}, "y": none},
    }
    tasks = {test: {"compared": 8, "asked": 8} for test in "xy"}
    table = transfer_table({"tasks": tasks, "values": values}, lower)
    shown = [["".join(text for text, _ in cell.spans) for cell in row[1:]] for row in table.rows]
    assert shown == [["2.00 ± 0.50", "–"], ["★ 1.00", "–"]]
