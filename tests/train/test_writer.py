"""Training a writer: it learns, nothing leaks, and what is done for one seed or one data set is kept."""

import itertools
import json
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.errors import CiterecError, InputError, ModelError
from citerec.evaluation.results import Results
from citerec.evaluation.tables import over_seeds
from citerec.train.groups import Choice, Schedule
from citerec.train.writer import WriterOptions, train_seeds, train_writer
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask, subjects
from citerec.write.writers.models import Seq2seqWriter, WriterManifest, plain_prompt
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.tiny_causal import write_tiny_opt
from tests.tiny_seq2seq import write_tiny_bart
from tests.training import made_of

pytestmark = pytest.mark.slow

Train = Callable[..., WriterManifest]


def of_paper(task: str, citing: str = "", *sources: str, **more: Any) -> dict[str, Any]:
    tagged = [f"<abs> {citing} </abs>"] if citing else []
    return {"id": task, "input": [*tagged, *sources], "target": "it .", **more}


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """What is to be written names what the abstracts are about: one word of each is to be copied."""
    drawn = random.Random(1)
    pairs = itertools.product("cats dogs birds trees stars rocks".split(), "search ranking parsing tagging".split())
    return [
        of_paper(
            f"{thing}-{what}-{number}",
            f"{thing} {' '.join(drawn.choices('of the and for'.split(), k=2))} {number}",
            f"We propose {what} for {thing} .",
            target=[f"We study {what} of {thing} [0] .", " "],
        )
        for thing, what in pairs
        for number in range(4)
    ]


@pytest.fixture(scope="module")
def tasks(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("tasks") / "tasks.jsonl", records)


@pytest.fixture(scope="module")
def bases(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    texts = ["This paper REF", *(" ".join([*record["input"], record["target"][0]]) for record in records)]
    prompt = "".join(plain_prompt(TextTask("", (Source("We propose it ."),)), "tldr"))
    folder = tmp_path_factory.mktemp("bases")
    return {
        "bart": str(write_tiny_bart(folder / "bart", texts)),
        "opt": str(write_tiny_opt(folder / "opt", [*texts, *(record["target"][0] for record in records), prompt])),
    }


@pytest.fixture
def train(tasks: Path, bases: dict[str, str]) -> Train:
    """Trains with what the test changes."""

    def call(out: Path, base: str = "bart", *, tasks: Path = tasks, **changes: Any) -> WriterManifest:
        choice = made_of(Choice, changes, path=tasks, dev_share=0.25, dev_limit=8)
        options = made_of(WriterOptions, changes, base=bases.get(base, base), batch=8, max_target_tokens=16)
        schedule = made_of(Schedule, changes, learning_rate=5e-3, evaluations=2)
        return train_writer(choice, out, options, schedule, device="cpu")

    return call


@pytest.mark.parametrize(
    ("base", "kind", "options"),
    [("bart", "citation", {"beams": 1}), ("opt", "tldr", {"top_p": None, "min_tokens": 0})],
    ids=["encoder-decoder", "causal"],
)
def test_it_learns_what_to_write_and_the_writer_opens_it(
    train: Train, tasks: Path, bases: dict[str, str], tmp_path: Path, base: str, kind: str, options: dict[str, Any]
) -> None:
    manifest = train(tmp_path / "model", base, writes=kind, epochs=16, evaluations=1)
    assert manifest.dev["rougeL before"] < 0.2 and manifest.dev["rougeL"] > 0.8
    writer = Seq2seqWriter.open(str(tmp_path / "model"), kind, device="cpu", options=options)
    assert manifest.base_identity == Seq2seqWriter.open(bases[base], kind, device="cpu").settings["model"]
    provenance = provenance_of_part(tmp_path / "model")
    assert len(provenance.trained_on) > len({task.citing for task in read_tasks(tasks)}) / 2
    assert len(provenance.tuned_on) > manifest.training["dev_tasks"]
    some = list(read_tasks(tasks))[::9]
    written = list(writer.write_many(some))
    assert sum(one.text == one.task.targets[0] for one in written) > 0.4 * len(some)


ABOUT = {
    "citing id": (
        of_paper("dev", "We study cats.", "dogs", citing_id=9),
        of_paper("leak", "We study many cats.", "birds", citing_id="9"),
        of_paper("other", "We study birds.", "dogs", citing_id=8),
    ),
    "citing abstract": (
        of_paper("dev", "We study cats.", "dogs"),
        of_paper("leak", "WE study  cats", "trees", citing_id="9"),
        of_paper("other", "We study cats and dogs.", "dogs"),
    ),
    "cited papers": (
        of_paper("dev", "", "cats", "dogs"),
        of_paper("leak", "", "Dogs .", "cats", "cats"),
        of_paper("other", "We do.", "cats", "dogs"),
    ),
    "tldr": (
        {"paper_id": "9", "source": ["We study", "cats."], "target": "cats"},
        of_paper("leak", "We study cats.", "dogs"),
        of_paper("other", "We do.", "We study cats."),
    ),
}


@pytest.mark.parametrize("tasks", ABOUT.values(), ids=ABOUT)
def test_what_two_tasks_are_about_is_known_by_every_name_of_it(
    tmp_path: Path, tasks: tuple[dict[str, Any], ...]
) -> None:
    dev, leak, other = tasks
    choice = Choice(write_lines(tmp_path / "all.jsonl", [leak, other]), write_lines(tmp_path / "dev.jsonl", [dev]))
    learn, measured = choice.sides(read_tasks, lambda task: list(map(str, subjects(task))))
    assert len(measured) == 1
    assert [task.task_id for task in learn] == ["other"]


def test_what_is_wrong_is_said_in_one_line(train: Train, records: list[dict[str, Any]], tmp_path: Path) -> None:
    without = write_lines(tmp_path / "without.jsonl", [records[0], {"id": "no", "input": ["a"]}])
    cases: list[tuple[type[CiterecError], str, dict[str, Any]]] = [
        (InputError, "the task no has no target", {"tasks": without}),
        (InputError, "left to learn from", {"dev": write_lines(tmp_path / "all.jsonl", records)}),
        (ModelError, "room for 64 tokens, max_tokens is 65", {"max_target_tokens": 65}),
        (ModelError, "is not LED, PRIMERA or MPT", {"base": "opt", "lengthen": True}),
        (ModelError, "has no <doc-sep>", {"base": "opt", "query_separator": True}),
    ]
    for kind, words, changes in cases:
        with pytest.raises(kind, match=words):
            train(tmp_path / "model", **changes)
        assert not (tmp_path / "model").exists()


def test_the_command_trains_and_what_served_is_not_measured(
    citerec_here: Citerec, tasks: Path, bases: dict[str, str], tmp_path: Path
) -> None:
    arguments = ("train", "writer", "--tasks", tasks, "--base", bases["bart"], "--limit", 16, "--out", "model")
    options = "-c epochs=1 -c dev_share=0.25 -c dev_limit=4 -c max_target_tokens=16 -c optimizer=lion -c warm_up=1"
    done = citerec_here(*arguments, *options.split(), *"-c decay=0 -c dev_metric=rouge2 -c preset=citesum".split())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("model trained: rouge2 0.")
    training = json.loads((tmp_path / "model" / "manifest.json").read_text())["training"]
    assert [training[name] for name in ("optimizer", "warm_up", "decay", "preset")] == ["lion", 1, 0, "citesum"]
    for writer in ("model", "lead"):
        citerec_here("write", "batch", tasks, "--writer", writer, "--out", f"{writer}.jsonl")
    measure = ("eval-text", "model.jsonl", "lead.jsonl", "--metrics", "rouge", "--resamples", 100, "--format", "json")
    fair = citerec_here(*measure)
    compared, whole = json.loads(fair.stdout)["set"]["contexts"], len(tasks.read_text().splitlines())
    assert compared <= whole - 16 - 4
    assert f"some served in training (model: {whole - compared})" in fair.stderr
    everything = citerec_here(*measure, "--include-training-tasks")
    assert json.loads(everything.stdout)["set"]["contexts"] == whole


def test_each_seed_has_its_folder_and_what_is_done_is_kept(
    citerec_here: Citerec, tasks: Path, bases: dict[str, str], tmp_path: Path
) -> None:
    choice, schedule = Choice(tasks, dev_share=0.25, dev_limit=3, limit=16), Schedule(learning_rate=5e-3, epochs=2)
    said: list[str] = []

    def train(*seeds: int, **more: Any) -> Any:
        said.clear()
        how = {"device": "cpu", "note": said.append, **more}
        return train_seeds(choice, tmp_path / "led", WriterOptions(bases["bart"], batch=6), schedule, seeds, **how)

    def stops(doing: str, _done: float, _whole: float) -> None:
        if doing == "training" and "seed 2:" in said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(1, 2, on_progress=stops)
    trained = train(1, 2)
    assert "seed 1:" not in said and "seed 2:" in said
    assert [manifest.training["seed"] for manifest in trained.values()] == [1, 2]
    assert trained == train(1, 2) and said == []
    some = write_lines(tmp_path / "some.jsonl", map(json.loads, tasks.read_text().splitlines()[:24]))
    for seed in (1, 2):
        writer = ("--writer", f"led/seed-{seed}", "--out", f"{seed}.jsonl", "-c", "max_tokens=8", "-c", "beams=1")
        assert citerec_here("write", "batch", some, *writer).returncode == 0
    measured = citerec_here("eval-text", "1.jsonl", "2.jsonl", "--metrics", "rouge", "--resamples", 100, "--out", "r")
    assert "Over seeds: mean ± standard deviation" in measured.stdout, measured.stderr
    results = Results.read(tmp_path / "r")
    values = [results.systems[f"led/seed-{seed}"].overall.values["rouge1"] for seed in (1, 2)]
    over = over_seeds(results)["led"]["overall"]["rouge1"]
    assert over == (pytest.approx(statistics.fmean(values)), pytest.approx(statistics.stdev(values)), 2)


def test_a_matrix_of_transfer_is_trained_written_and_measured(
    citerec_here: Citerec, bases: dict[str, str], tmp_path: Path
) -> None:
    pairs, sets = list(itertools.product("cats dogs birds trees stars rocks".split(), range(4))), []
    for verb in ("study", "propose"):
        tasks = [
            {"id": f"{verb}-{thing}-{count}", "input": [f"{count} {thing} {verb} ."], "target": f"We {verb} {thing} ."}
            for thing, count in pairs
        ]
        for part, some in (("train", tasks[:18]), ("test", tasks[16:])):
            sets.append(f"--{part}={verb}={write_lines(tmp_path / f'{verb}-{part}.jsonl', some)}")
    command = ("train", "transfer", *sets, "--out", "t", "--base", bases["bart"])
    options = "-c epochs=25 -c learning_rate=0.01 -c evaluations=2 -c device=cpu -c max_target_tokens=10"
    done = citerec_here(*command, "--seeds", "1,2", *options.split(), "-c", "dev_share=0.2")
    assert done.returncode == 0, done.stderr
    matrix = json.loads((tmp_path / "t" / "matrix.json").read_text())
    assert matrix["tasks"] == {verb: {"compared": 4, "asked": 8} for verb in ("study", "propose")}  # others served
    for verb, other in (("study", "propose"), ("propose", "study")):
        mine, theirs = (matrix["values"][trained][verb]["rougeL"] for trained in (verb, other))
        assert mine["n"] == 2 and mine["mean"] > theirs["mean"] + 0.1
    one_line(citerec_here(*command, "--test", "../x=none.jsonl"), 2, "no name of a folder")
