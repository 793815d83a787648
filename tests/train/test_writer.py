"""Training a writer: it learns, it goes on, nothing leaks, and it says what is wrong."""

import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from citerec.contexts.provenance import provenance_of_part
from citerec.errors import CiterecError, InputError, ModelError, SourceError
from citerec.train.groups import Choice, Schedule
from citerec.train.writer import WriterOptions, train_writer
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask, subjects
from citerec.write.writers.models import Seq2seqWriter, WriterManifest, plain_prompt
from tests.conftest import Citerec, write_lines
from tests.tiny_causal import write_tiny_opt
from tests.tiny_seq2seq import write_tiny_bart, write_tiny_led, write_tiny_primera
from tests.training import how_of, made_of, stop_at, stopped_and_continued

pytestmark = pytest.mark.slow

Train = Callable[..., WriterManifest]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models as small as these are slower with several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """What is to be written names what the abstracts are about: one word of each is to be copied."""
    drawn = random.Random(1)
    pairs = itertools.product("cats dogs birds trees stars rocks".split(), "search ranking parsing tagging".split())
    return [
        {
            "id": f"{thing}-{what}-{number}",
            "input": [
                f"<abs> {thing} {' '.join(drawn.choices('of the and for'.split(), k=2))} {number} </abs>",
                f"We propose {what} for {thing} .",
            ],
            "target": f"We study {what} of {thing} [0] .",
        }
        for thing, what in pairs
        for number in range(4)
    ]


@pytest.fixture(scope="module")
def tasks(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("tasks") / "tasks.jsonl", records)


@pytest.fixture(scope="module")
def bases(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    texts = ["This paper REF", *(" ".join([*record["input"], record["target"]]) for record in records)]
    prompt = "".join(plain_prompt(TextTask("", (Source("We propose it ."),)), "tldr"))
    folder = tmp_path_factory.mktemp("bases")
    return {
        "bart": str(write_tiny_bart(folder / "bart", texts)),
        "led": str(write_tiny_led(folder / "led", texts)),
        "primera": str(write_tiny_primera(folder / "primera", texts)),
        "opt": str(write_tiny_opt(folder / "opt", [*texts, *(record["target"] for record in records), prompt])),
    }


@pytest.fixture
def train(tasks: Path, bases: dict[str, str]) -> Train:
    """Trains with what the test changes."""

    def call(out: Path, base: str = "bart", *, tasks: Path = tasks, **changes: Any) -> WriterManifest:
        choice = made_of(Choice, changes, path=tasks, dev_share=0.25, dev_limit=8)
        options = made_of(WriterOptions, changes, base=bases.get(base, base), batch=8, max_target_tokens=16)
        schedule = made_of(Schedule, changes, learning_rate=5e-3, evaluations=2)
        return train_writer(choice, out, options, schedule, device="cpu", **how_of(changes))

    return call


def sides(choice: Choice) -> tuple[list[TextTask], list[TextTask]]:
    """The tasks to measure on, and those to learn from."""
    learn, dev = choice.sides(read_tasks, lambda task: list(map(str, subjects(task))))
    return dev, learn


@pytest.mark.parametrize("base", ["bart", "led"])
def test_it_learns_what_to_write_and_the_writer_opens_it(
    train: Train, tasks: Path, bases: dict[str, str], tmp_path: Path, base: str
) -> None:
    said: list[str] = []
    manifest = train(tmp_path / "model", base, epochs=15, evaluations=3, note=said.append)
    assert manifest.dev["rougeL before"] < 0.2
    assert manifest.dev["rougeL"] > 0.8
    assert manifest.dev["rouge2"] <= manifest.dev["rouge1"]
    assert len(said) == len(manifest.training["dev_values"]) == 4
    writer = Seq2seqWriter.open(str(tmp_path / "model"), device="cpu")
    assert writer.generation == manifest.generation
    assert writer.generation.max_tokens == 16
    assert writer.settings["family"] == base
    assert manifest.base_identity == Seq2seqWriter.open(bases[base], device="cpu").settings["model"]
    assert manifest.base_identity != writer.settings["model"]
    provenance = provenance_of_part(tmp_path / "model")
    assert len(provenance.trained_on) > len({task.citing for task in read_tasks(tasks)}) / 2
    assert len(provenance.tuned_on) > manifest.training["dev_tasks"]
    some = list(read_tasks(tasks))[::5]
    # Of two beams of so sure a model, the second ends at once.
    written = list(Seq2seqWriter.open(str(tmp_path / "model"), device="cpu", options={"beams": 1}).write_many(some))
    assert sum(one.text == one.task.targets[0] for one in written) > 0.8 * len(some)
    assert [one.task for one in written] == some
    assert written[0].sentences[0].attributions == (0,)
    # For another kind of text: the recipe of the model.
    assert Seq2seqWriter.open(str(tmp_path / "model"), "tldr", device="cpu").generation.min_tokens == 10


def test_a_stopped_training_goes_on(train: Train, tmp_path: Path) -> None:
    options = {"epochs": 12, "limit": 40, "checkpoint_every": 8}
    whole = train(tmp_path / "whole", **options)
    assert whole.training["steps"] == 60
    stops = (("training", 13), ("training", 40), ("measuring", 8))
    broken = stopped_and_continued(train, tmp_path / "broken", *stops, **options)
    assert broken.training["steps"] == 60
    assert broken.dev["rougeL"] == pytest.approx(whole.dev["rougeL"], abs=0.2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".broken.lock", ".whole.lock", "broken", "whole"]


def test_a_causal_model_learns_what_to_write(train: Train, tasks: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "model", "opt", writes="tldr", epochs=16, evaluations=1)
    assert manifest.dev["rougeL before"] < 0.2
    assert manifest.dev["rougeL"] > 0.8
    writer = Seq2seqWriter.open(str(tmp_path / "model"), "tldr", device="cpu", options={"top_p": None, "min_tokens": 0})
    assert (writer.generation.max_tokens, writer.settings["family"]) == (16, "causal")
    some = list(read_tasks(tasks))[::9]
    assert sum(one.text == one.task.targets[0] for one in writer.write_many(some)) > 0.4 * len(some)


def test_lion_and_the_dev_metric_are_named(train: Train, tmp_path: Path) -> None:
    options = {"optimizer": "lion", "warm_up": 2, "decay": 0.0, "learning_rate": 2e-3, "epochs": 15, "limit": 40}
    options |= {"checkpoint_every": 30, "dev_metric": "rouge2"}

    manifest = stopped_and_continued(train, tmp_path / "model", ("training", 50), **options)
    assert manifest.training["optimizer"] == "lion"
    assert max(manifest.training["dev_values"].values()) == manifest.dev["rouge2"] > manifest.dev["rouge2 before"]


def test_primera_of_oarelatedwork(train: Train, tmp_path: Path) -> None:
    """Longer than the base, with a token after the query; stopped, it goes on."""
    options = {"base": "primera", "lengthen": True, "query_separator": True, "limit": 24, "epochs": 2}
    options |= {"max_input_tokens": 300, "max_target_tokens": 80, "writes": "related-work", "checkpoint_every": 2}

    stopped_and_continued(train, tmp_path / "model", ("training", 3), **options)
    writer = Seq2seqWriter.open(str(tmp_path / "model"), "related-work", device="cpu")
    assert (writer.generation.max_input_tokens, writer.generation.max_tokens) == (300, 80)
    assert writer._model.max_input_tokens == 300
    assert writer._model.query_end is not None
    for change, words in (
        ({"lengthen": True}, "is not LED, PRIMERA or MPT"),
        ({"query_separator": True}, "has no <doc-sep>"),
    ):
        with pytest.raises(ModelError, match=words):
            train(tmp_path / "opt", base="opt", **change)


def test_led_as_in_citebench_is_trained_without_global_attention(train: Train, tmp_path: Path) -> None:
    options = {"base": "led", "limit": 16, "epochs": 1, "evaluations": 1}
    plain, preset = train(tmp_path / "plain", **options), train(tmp_path / "preset", **options, preset="citebench")
    assert (preset.generation.global_attention, preset.generation.min_tokens) == (False, 10)
    assert plain.generation.global_attention
    opened = Seq2seqWriter.open(str(tmp_path / "preset"), device="cpu")
    assert opened.generation == preset.generation


def test_the_seed_decides(train: Train, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(tmp_path / name, seed=seed, limit=16, epochs=10)
    first, same, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert first == same != other


def test_a_base_that_gains_nothing_stays_as_it_was(train: Train, tmp_path: Path, bases: dict[str, str]) -> None:
    manifest = train(tmp_path / "model", learning_rate=1e-12, limit=16)
    assert manifest.training["best_step"] == 0
    kept = Seq2seqWriter.open(str(tmp_path / "model"), device="cpu")._model.model.state_dict()
    base = Seq2seqWriter.open(bases["bart"], device="cpu")._model.model.state_dict()
    assert all(torch.equal(kept[name], base[name]) for name in base)


def test_few_examples_that_begin_as_citations_do(train: Train, tasks: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "model", limit=32, as_citations=True, writes="tldr", epochs=20, evaluations=1)
    assert (manifest.training["examples"], manifest.training["limit"]) == (32, 32)
    assert manifest.generation.post_processing == "ref"
    assert (manifest.generation.min_tokens, manifest.generation.max_tokens) == (10, 16)
    writer = Seq2seqWriter.open(str(tmp_path / "model"), "tldr", device="cpu", options={"min_tokens": 0})
    plain = Seq2seqWriter.open(
        str(tmp_path / "model"), "tldr", device="cpu", options={"min_tokens": 0, "post_processing": None}
    )
    task = next(read_tasks(tasks))
    assert plain.write(task).text.startswith("This paper REF study")
    assert writer.write(task).text.startswith("This paper study")


def test_what_dev_is_about_is_not_learnt_from(
    train: Train, records: list[dict[str, Any]], tasks: Path, tmp_path: Path
) -> None:
    # Another task of the same citing paper, and one of the same cited paper without a citing one.
    cited = [{"id": f"tldr-{number}", "source": ["We propose it ."], "target": "it ."} for number in range(3)]
    both = write_lines(tmp_path / "both.jsonl", [*records, *cited])
    dev = write_lines(tmp_path / "dev.jsonl", [{**records[0], "id": "x", "input": [records[0]["input"][0], "."]}])
    same = sum(record["input"][0] == records[0]["input"][0] for record in records)
    manifest = train(tmp_path / "a", tasks=both, dev=dev)
    assert manifest.training["examples"] == len(records) + 3 - same
    assert (manifest.training["dev"], manifest.training["dev_tasks"]) == ("dev.jsonl", 1)
    manifest = train(tmp_path / "b", tasks=both, dev=write_lines(tmp_path / "dev2.jsonl", cited[:1]))
    assert manifest.training["examples"] == len(records)
    # A share of the papers, on one side only.
    held_out = train(tmp_path / "c", dev_limit=1000)
    assert held_out.training["examples"] + held_out.training["dev_tasks"] == len(records)
    assert 0.05 * len(records) < held_out.training["dev_tasks"] < 0.6 * len(records)


def of_paper(task: str, citing: str = "", *sources: str, **more: Any) -> dict[str, Any]:
    tagged = [f"<abs> {citing} </abs>"] if citing else []
    return {"id": task, "input": [*tagged, *sources], "target": "it .", **more}


@pytest.mark.parametrize(
    ("dev", "leaks", "others"),
    [
        (  # the citing paper by its id, whatever else is told of it
            of_paper("dev", "We study cats.", "dogs", citing_id=9),
            [of_paper("a", "We study many cats.", "birds", citing_id="9"), of_paper("b", "", "trees", citing_id=9)],
            [of_paper("c", "We study birds.", "dogs", citing_id=8), of_paper("d", "", "dogs")],
        ),
        (  # by its abstract, as words
            of_paper("dev", "We study cats.", "dogs", "birds"),
            [of_paper("a", "WE study  cats", "trees"), of_paper("b", "We study cats.", "stars", citing_id="9")],
            [of_paper("c", "We study cats and dogs.", "dogs", "birds"), of_paper("d", "", "dogs", "birds")],
        ),
        (  # the cited papers together, in whatever order, where no citing paper is known
            of_paper("dev", "", "cats", "dogs"),
            [of_paper("a", "", "dogs", "cats"), of_paper("b", "", "Dogs .", "cats", "cats")],
            [of_paper("c", "", "cats", "birds"), of_paper("d", "", "cats"), of_paper("e", "We do.", "cats", "dogs")],
        ),
        (  # they by id too, where each has one
            of_paper("dev", "", "cats", "dogs", sources=[{"paper_id": "1"}, {"paper_id": "2"}]),
            [of_paper("a", "", "Dogs!", "many cats", sources=[{"paper_id": "2"}, {"paper_id": "1"}])],
            [of_paper("b", "", "cats", "birds", sources=[{"paper_id": "1"}, {"paper_id": "3"}])],
        ),
        (  # the paper that a TLDR is of, with and without its id; also as the paper that cites
            {"paper_id": "9", "source": ["We study", "cats."], "target": "cats"},
            [
                {"id": "a", "source": ["We study cats."], "target": "cats"},
                {"id": "b", "paper_id": 9, "source": ["Cats are studied."], "target": "cats"},
                of_paper("c", "We study cats.", "dogs"),
            ],
            [
                {"paper_id": "8", "source": ["We study dogs."], "target": "dogs"},
                of_paper("d", "We do.", "We study cats."),
            ],
        ),
        (
            {"id": "dev", "source": ["???"], "target": "t"},
            [{"id": "a", "source": ["???"], "target": "t"}],
            [{"id": "b", "source": ["!!!"], "target": "t"}],
        ),
    ],
)
def test_what_two_tasks_are_about_is_known_by_every_name_of_it(
    tmp_path: Path, dev: dict[str, Any], leaks: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    choice = Choice(
        write_lines(tmp_path / "tasks.jsonl", [*leaks, *others]), write_lines(tmp_path / "dev.jsonl", [dev])
    )
    measured, left = sides(choice)
    assert len(measured) == 1
    expected = list(read_tasks(write_lines(tmp_path / "others.jsonl", others)))
    assert [task.sources for task in left] == [task.sources for task in expected]


def test_a_share_of_the_papers_is_held_out_by_every_name_too(tmp_path: Path) -> None:
    # Of each paper: two tasks with id and abstract, one with the abstract alone.
    records = [
        of_paper(f"{paper}-{number}", f"We study {paper}.", f"cited {number}", **more)
        for paper in range(60)
        for number, more in enumerate([{"citing_id": paper}, {"citing_id": paper}, {}])
    ]
    measured, left = sides(Choice(write_lines(tmp_path / "tasks.jsonl", records), dev_share=0.3, dev_limit=1000))

    def papers(tasks: Any) -> set[str]:
        return {task.task_id.partition("-")[0] for task in tasks}

    of_left = papers(left)
    assert of_left.isdisjoint(papers(measured))
    assert 5 < len(papers(measured)) < 40
    assert len(of_left) > 20


def test_each_target_is_an_example_and_the_best_counts_on_dev(train: Train, tmp_path: Path) -> None:
    several = [
        {
            "id": str(number),
            "source": [f"We propose {what} ."],
            "target": ["stars rocks", " ", f"We study {what} .", ""],
        }
        for number, what in enumerate(["search", "ranking", "parsing", "tagging", "cats"] * 4)
    ]
    dev = write_lines(tmp_path / "dev.jsonl", [{**several[0], "source": ["We propose dogs ."]}])
    manifest = train(tmp_path / "model", tasks=write_lines(tmp_path / "tasks.jsonl", several), dev=dev, epochs=1)
    assert manifest.training["examples"] == 40
    # Blank targets are no targets on dev either.
    plain = write_lines(tmp_path / "plain.jsonl", [{**several[0], "source": ["We propose dogs ."], "target": "stars"}])
    blank = write_lines(
        tmp_path / "blank.jsonl", [{**several[0], "source": ["We propose dogs ."], "target": ["", "stars", " "]}]
    )
    losses = [
        train(tmp_path / dev.stem, tasks=tmp_path / "tasks.jsonl", dev=dev, epochs=1).dev for dev in (plain, blank)
    ]
    assert losses[0] == losses[1]


def test_what_began_on_another_device_begins_again(train: Train, tmp_path: Path) -> None:
    """What was computed in bfloat16 does not go on in 32 bits."""

    def stopped() -> None:
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "model", limit=40, on_progress=stop_at("training", 4))

    stopped()
    plan = tmp_path / ".model.training" / "journal.json"
    written = plan.read_bytes()
    assert written.count(b'"device":"cpu"') == 1
    mark = plan.with_name("mark")
    mark.touch()
    stopped()
    assert mark.exists()
    plan.write_bytes(written.replace(b'"device":"cpu"', b'"device":"cuda"'))
    stopped()
    assert not mark.exists()
    assert plan.read_bytes() == written


def test_what_is_wrong_is_said_in_one_line(train: Train, records: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    without = write_lines(tmp_path / "without.jsonl", [records[0], {"id": "no", "input": ["a"]}])
    unread = write_lines(tmp_path / "unread.jsonl", [records[0], {"target": "b"}])
    all_of_dev = write_lines(tmp_path / "all.jsonl", records)
    cases: list[tuple[type[CiterecError], str, dict[str, Any]]] = [
        (SourceError, "none.jsonl: No such file", {"tasks": tmp_path / "none.jsonl"}),
        (SourceError, "is empty", {"tasks": tmp_path / "empty.jsonl"}),
        (SourceError, "gone.jsonl", {"dev": tmp_path / "gone.jsonl"}),
        (InputError, "the task no has no target", {"tasks": without}),
        (InputError, "unread.jsonl, line 2", {"tasks": unread}),
        (InputError, "left to measure on", {"dev_share": 0.0}),
        (InputError, "left to learn from", {"dev_share": 1.0}),
        (InputError, "left to learn from", {"dev": all_of_dev}),
        (ModelError, "no model folder", {"base": "./nowhere"}),
        (ModelError, "room for 64 tokens, max_tokens is 65", {"max_target_tokens": 65}),
        (ModelError, "room for 64 tokens, max_input_tokens is 1000", {"max_input_tokens": 1000}),
    ]
    for kind, words, changes in cases:
        with pytest.raises(kind) as error:
            train(tmp_path / "model", **changes)
        assert words in str(error.value), str(error.value)
        assert not (tmp_path / "model").exists()
    with pytest.raises(InputError, match="is no trained writer"):
        train(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_the_command_trains(citerec_here: Citerec, tasks: Path, bases: dict[str, str], tmp_path: Path) -> None:
    arguments = ("train", "writer", "--tasks", tasks, "--base", bases["bart"], "--limit", 16, "-c", "epochs=1")
    done = citerec_here(
        *arguments,
        "--out",
        "model",
        *"-c dev_share=0.25 -c dev_limit=4 -c max_target_tokens=16 -c optimizer=lion -c warm_up=1".split(),
        *"-c decay=0 -c dev_metric=rouge2 -c preset=citesum".split(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("model trained: rouge2 0.")
    assert "dev 0." in done.stderr
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert (manifest["kind"], manifest["writes"], manifest["base"]) == ("citerec-writer", "citation", bases["bart"])
    training = manifest["training"]
    assert [training[name] for name in ("optimizer", "warm_up", "decay", "preset")] == ["lion", 1, 0, "citesum"]
    assert manifest["generation"]["beams"] == 1

    written = citerec_here("write", "batch", tasks, "--writer", "model", "--out", "model.jsonl")
    assert written.returncode == 0, written.stderr
    assert citerec_here("write", "batch", tasks, "--writer", "lead", "--out", "lead.jsonl").returncode == 0
    measure = ("eval-text", "model.jsonl", "lead.jsonl", "--metrics", "rouge", "--resamples", 100, "--format", "json")
    fair = citerec_here(*measure)
    compared, whole = json.loads(fair.stdout)["set"]["contexts"], len(tasks.read_text().splitlines())
    assert compared <= whole - 16 - 4
    assert f"some served in training (model: {whole - compared})" in fair.stderr
    everything = citerec_here(*measure, "--include-training-tasks")
    assert json.loads(everything.stdout)["set"]["contexts"] == whole
    assert f"served in training are measured too (model: {whole - compared})" in everything.stderr
    lines = (tmp_path / "model.jsonl").read_text().splitlines()
    (tmp_path / "seen.jsonl").write_text("\n".join(line for line in lines if '"served_in_training":true' in line))
    refused = citerec_here("eval-text", "seen.jsonl", "--metrics", "rouge")
    assert refused.returncode == 2
    assert "served in no training" in refused.stderr


def test_the_command_says_what_is_wrong(citerec_here: Citerec, tasks: Path, bases: dict[str, str]) -> None:
    arguments = ("train", "writer", "--tasks", tasks, "--out", "model")
    for more, words in (
        (("--base", "./nowhere"), "there is no model folder './nowhere'"),
        (("--base", bases["led"], "-c", "max_target_tokens=10000"), "room for 64 tokens, max_tokens is 10000"),
        (("--dev", "none.jsonl"), "none.jsonl"),
        (("-c", "dev_share=2"), "dev_share = 2: Input should be less than or equal to 1"),
        (("--kind", "poems"), "poems"),
    ):
        wrong = citerec_here(*arguments, *more)
        assert wrong.returncode == 2
        assert words in wrong.stderr
        assert len(wrong.stderr.splitlines()) == 1
