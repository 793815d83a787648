"""`citerec train writer --kind tldr`: what it learns, what it leaves behind, and how good the shipped writer is."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.provenance import PROVENANCE
from citerec.errors import InputError, ModelError
from citerec.train.writer import train_tldr
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask, served_in_training
from citerec.write.writers import open_writer
from citerec.write.writers.trained import (
    FORM_TREES,
    PAIRS,
    SENTENCES_DIRECTORY,
    SHIPPED,
    VOCABULARY,
    WORD_TREES,
    Abstract,
    Texts,
    Vocabulary,
)

pytestmark = pytest.mark.slow

_NOUNS = "graphs trees words rivers lamps clocks paths stones birds wheels".split()
DEV = (43.60, 20.96, 34.36)
"""ROUGE-1, 2 and L of the shipped writer: docs/results.md."""
_VERBS = "sort count cut move paint weigh fold lift".split()


def _tasks(path: Path, count: int, seed: int) -> Path:
    """The TLDR is the sentence with "gadget", wherever it is, without what follows the comma."""
    draw = random.Random(seed)

    def sentence(subject: str) -> str:
        one, two, three = draw.sample(_NOUNS, 3)
        return f"{subject} {draw.choice(_VERBS)} old {one} with {two} for {three}"

    with path.open("w") as file:
        for number in range(count):
            kept = sentence("We have a gadget and")
            said = [sentence("We propose to") + "." for _ in range(3)] + [f"{kept}, which is very costly."]
            draw.shuffle(said)
            file.write(json.dumps({"paper_id": f"{seed}-{number}", "source": said, "target": [f"{kept}."]}) + "\n")
    return path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tasks `train.jsonl`, and with the writer `model` that the command trained on them."""
    folder = tmp_path_factory.mktemp("planted")
    tasks = _tasks(folder / "train.jsonl", 80, 1)
    command = ["train", "writer", "--kind", "tldr", "--tasks", tasks, "--out", folder / "model"]
    done = subprocess.run(
        [sys.executable, "-m", "citerec.cli.main", *map(str, command)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    scores = json.loads((folder / "model" / "manifest.json").read_text())["scores"]
    assert f"ROUGE-1 {scores['rouge1']:.1f} by cross-validation" in done.stdout
    assert scores["rouge1 of contribution"] + 10 < scores["rouge1"]
    return folder


def test_it_learns_a_planted_rule(planted: Path) -> None:
    writer = open_writer("trained", "tldr", options={"model": str(planted / "model")})
    others = list(read_tasks(_tasks(planted / "dev.jsonl", 40, 2)))
    right = [writer.write(task).text == task.targets[0] for task in others]
    assert np.mean(right) > 0.9


def test_it_says_what_it_learnt_from(planted: Path) -> None:
    model = planted / "model"
    assert {file.name for file in model.iterdir()} == SENTENCES_DIRECTORY.names
    writer = open_writer("trained", "tldr", options={"model": str(model)})
    assert all(served_in_training(task, writer.provenance) for task in read_tasks(planted / "train.jsonl"))
    other = _tasks(planted / "other.jsonl", 10, 3)
    assert not any(served_in_training(task, writer.provenance) for task in read_tasks(other))


def test_the_same_tasks_give_the_same_files(planted: Path) -> None:
    train_tldr(planted / "train.jsonl", planted / "again")
    for name in (WORD_TREES, FORM_TREES, VOCABULARY, PROVENANCE):
        assert (planted / "again" / name).read_bytes() == (planted / "model" / name).read_bytes()


def test_too_few_tasks_and_damaged_models_are_refused(planted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few to learn from"):
        train_tldr(_tasks(tmp_path / "few.jsonl", 3, 1), tmp_path / "model")
    with pytest.raises(ModelError, match="there is no trained writer"):
        open_writer("trained", "tldr", options={"model": str(tmp_path / "none")})
    with pytest.raises(InputError, match="there is no option 'beams' of trained"):
        open_writer("trained", "tldr", options={"beams": "3"})
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in (planted / "model").iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    (damaged / FORM_TREES).write_text("no trees")
    with pytest.raises(ModelError, match="cannot be read"):
        open_writer("trained", "tldr", options={"model": str(damaged)})


def test_the_shipped_writer_is_small_text_and_needs_no_title() -> None:
    assert {file.name for file in SHIPPED.iterdir()} == SENTENCES_DIRECTORY.names | {"datasheet.md"}
    for file in SHIPPED.iterdir():
        file.read_text(encoding="utf-8")
        assert file.stat().st_size < 1_000_000
    said = "Sorting is slow. In this paper, we propose a new sorting network, which we train by gradient descent."
    for title in ("", "Neural sorting networks"):
        task = TextTask("t", (Source(said, title=title), Source(""), Source("Saws cut trees.")))
        made = open_writer("trained", "tldr").write(task)
        assert [sentence.attributions for sentence in made.sentences] == [(0,), (2,)]
        assert "sorting network" in made.sentences[0].text
        cites = open_writer("trained", "citation").write(task)
        assert cites.sentences[0].text.startswith("[0] propose a new sorting network")
    assert open_writer("trained", "tldr").write(TextTask("t", (Source("排序很慢。"),))).text == "排序很慢。"


def _place(sentence: str, said: Sequence[str]) -> int:
    """The number of the sentence that has these words in this order."""

    def within(text: str) -> bool:
        rest = iter(re.findall(r"\w+", text.lower()))
        return all(word in rest for word in re.findall(r"\w+", sentence.lower()))

    return next(number for number, text in enumerate(said) if within(text))


def test_pairs_are_of_two_sentences_and_the_second_refers_to_none_left_out() -> None:
    sentences = ("We cut old trees with saws.", "Birds are slow to come back here.", "This takes a long time to do.")
    abstract = Abstract(sentences, "", Vocabulary(papers=10, target_words=20.0, share=0.3))
    texts = Texts(abstract, dict.fromkeys(abstract.words, 0.3)).texts
    assert texts == [*([one] for one in sentences), [sentences[0], sentences[1]], [sentences[1], sentences[2]]]
    many = Abstract([f"We cut tree {number} with {number} saws." for number in range(300)], "", abstract.vocabulary)
    assert len(Texts(many, {}).texts) == 300 + PAIRS


def test_the_shipped_writer_on_scitldr(shared: Path) -> None:
    """docs/results.md has the table: 3.8 points of ROUGE-1 above `contribution`."""
    from citerec.write.metrics import MetricOptions, open_rouge

    tasks = list(read_tasks(shared / "text" / "scitldr" / "dev.jsonl"))
    writer = open_writer("trained", "tldr")
    metric = open_rouge(MetricOptions(stemming=True, workers=1))
    texts = list(writer.write_many(tasks))
    scores = 100 * metric.scores(texts, lambda *_: None)
    before = 100 * metric.scores(list(open_writer("contribution", "tldr").write_many(tasks)), lambda *_: None)
    assert scores.mean(axis=0) == pytest.approx(DEV, abs=0.15)
    assert (scores - before).mean(axis=0)[0] > 3.6
    assert {len(text.sentences) for text in texts} == {1, 2}
    for text, task in zip(texts, tasks, strict=True):
        assert all(sentence.attributions == (0,) for sentence in text.sentences)
        said = task.sources[0].sentences
        sources = [_place(sentence.text, said) for sentence in text.sentences]
        assert sources == sorted(set(sources))
