"""`citerec train writer --kind tldr`: what it learns, what it leaves behind, and how good the shipped writer is."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.provenance import PROVENANCE
from citerec.errors import InputError, ModelError
from citerec.write.metrics import MetricOptions, open_rouge
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask, served_in_training
from citerec.write.writers import open_writer
from citerec.write.writers.trained import FORM_TREES, SENTENCES_DIRECTORY, SHIPPED, VOCABULARY, WORD_TREES
from tests.conftest import Citerec, write_lines

pytestmark = pytest.mark.slow

NOUNS = "graphs trees words rivers lamps clocks paths stones birds wheels".split()
VERBS = "sort count cut move paint weigh fold lift".split()
DEV = {True: (43.70, 20.99, 34.41), False: (43.02, 20.72, 33.74)}
"""ROUGE-1, 2 and L of the shipped writer, as abstracts say it or in the third person: docs/results.md."""


def write_tasks(path: Path, count: int, seed: int) -> Path:
    """The TLDR is the sentence with "gadget", wherever it is, without what follows the comma."""
    draw = random.Random(seed)

    def sentence(subject: str) -> str:
        one, two, three = draw.sample(NOUNS, 3)
        return f"{subject} {draw.choice(VERBS)} old {one} with {two} for {three}"

    records = []
    for number in range(count):
        kept = sentence("We have a gadget and")
        said = [sentence("We propose to") + "." for _ in range(3)] + [f"{kept}, which is very costly."]
        draw.shuffle(said)
        records.append({"paper_id": f"{seed}-{number}", "source": said, "target": [f"{kept}."]})
    return write_lines(path, records)


def test_it_learns_a_planted_rule_says_from_what_and_damage_is_refused(citerec_here: Citerec, tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "train.jsonl", 80, 1)
    for name in ("model", "again"):
        done = citerec_here("train", "writer", "--kind", "tldr", "--tasks", tasks, "--out", name)
        assert done.returncode == 0, done.stderr
    model = tmp_path / "model"
    scores = json.loads((model / "manifest.json").read_text())["scores"]
    assert f"ROUGE-1 {scores['rouge1']:.1f} by cross-validation" in done.stdout
    assert scores["rouge1 of contribution"] + 10 < scores["rouge1"]
    for name in (WORD_TREES, FORM_TREES, VOCABULARY, PROVENANCE):
        assert (tmp_path / "again" / name).read_bytes() == (model / name).read_bytes()
    writer = open_writer("trained", "tldr", options={"model": str(model), "as_written": True})
    others = list(read_tasks(write_tasks(tmp_path / "dev.jsonl", 40, 2)))
    assert np.mean([writer.write(task).text == task.targets[0] for task in others]) > 0.9
    assert all(served_in_training(task, writer.provenance) for task in read_tasks(tasks))
    assert not any(served_in_training(task, writer.provenance) for task in others)

    few = citerec_here("train", "writer", "--kind", "tldr", "--out", "few", "--tasks", write_tasks(tasks, 3, 1))
    assert few.returncode == 2 and "too few to learn from" in few.stderr
    shutil.copytree(model, tmp_path / "damaged")
    (tmp_path / "damaged" / FORM_TREES).write_text("no trees")
    for name, message in (("none", "there is no trained writer"), ("damaged", "cannot be read")):
        with pytest.raises(ModelError, match=message):
            open_writer("trained", "tldr", options={"model": str(tmp_path / name)})


def test_the_shipped_writer_is_small_text_and_needs_no_title() -> None:
    assert {file.name for file in SHIPPED.iterdir()} == SENTENCES_DIRECTORY.names | {"datasheet.md"}
    assert all(len(file.read_text(encoding="utf-8")) < 1_000_000 for file in SHIPPED.iterdir())
    said = "Sorting is slow. In this paper, we propose a new sorting network, which we train by gradient descent."
    for title in ("", "Neural sorting networks"):
        task = TextTask("t", (Source(said, title=title), Source(""), Source("Saws cut trees.")))
        written, cites = (open_writer("trained", kind).write(task) for kind in ("tldr", "citation"))
        assert [sentence.attributions for sentence in written.sentences] == [(0,), (2,)]
        assert "sorting network" in written.sentences[0].text
        assert cites.sentences[0].text.startswith("[0] propose a new sorting network")
    assert open_writer("trained", "tldr").write(TextTask("t", (Source("排序很慢。"),))).text == "排序很慢。"
    for as_written, begins in (("false", "Proposes"), ("true", "We propose")):
        writer = open_writer("trained", "tldr", options={"as_written": as_written})
        assert writer.write(TextTask("t", (Source(said),))).text.startswith(begins)
    with pytest.raises(InputError, match="as_written"):
        open_writer("trained", "tldr", options={"as_written": "maybe"})


def test_the_shipped_writer_on_scitldr(shared: Path) -> None:
    """docs/results.md has the table: 3.8 points of ROUGE-1 above `contribution`."""
    tasks = list(read_tasks(shared / "text" / "scitldr" / "dev.jsonl"))
    metric = open_rouge(MetricOptions(stemming=True, workers=1))
    before = 100 * metric.scores(list(open_writer("contribution", "tldr").write_many(tasks)), lambda *_: None)
    for as_written, expected in DEV.items():
        texts = list(open_writer("trained", "tldr", options={"as_written": as_written}).write_many(tasks))
        scores = 100 * metric.scores(texts, lambda *_: None)
        assert scores.mean(axis=0) == pytest.approx(expected, abs=0.15)
        assert (scores - before).mean(axis=0)[0] > (3.6 if as_written else 2.9)
    assert {len(text.sentences) for text in texts} == {1, 2}
