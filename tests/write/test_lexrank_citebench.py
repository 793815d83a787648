"""LexRank as CiteBench ran it is that of the package lexrank 0.1.0."""

from pathlib import Path

import pytest
from lexrank import STOPWORDS, LexRank

from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import open_writer
from citerec.write.writers.extractive import all_sentences
from tests.conftest import Citerec, write_lines

pytestmark = pytest.mark.slow


def test_it_picks_what_the_package_picks(shared: Path) -> None:
    tasks = list(read_tasks(shared / "text" / "citebench" / "sample.json"))
    sentences = [[sentence.text for sentence in all_sentences(task)] for task in tasks]
    reference = LexRank(sentences, stopwords=STOPWORDS["en"])
    writer = open_writer("lexrank-citebench", "citation")
    writer.prepare(tasks)
    for task, texts in zip(tasks, sentences, strict=True):
        written = [sentence.text for sentence in writer.write(task).sentences]
        assert written == reference.get_summary(texts, summary_size=3)


def test_words_count_by_the_whole_file(citerec_here: Citerec, tmp_path: Path) -> None:
    """A word that all tasks have weighs nothing, whether or not their texts are asked for."""
    texts = ["Cats chase mice. Cats chase birds. Mice eat cheese. Rain came.", "Cats sleep. Rain falls."]
    records = [{"id": str(number), "input": [text], "target": "."} for number, text in enumerate(texts)]
    tasks = write_lines(tmp_path / "tasks.jsonl", records)
    out = tmp_path / "out.jsonl"
    citerec_here("write", "batch", tasks, "--writer", "lexrank-citebench", "--limit", "1", "--out", out)
    writer = open_writer("lexrank-citebench", "citation")
    writer.prepare(read_tasks(tasks))
    text = writer.write(next(read_tasks(tasks))).text
    assert f'"prediction":"{text}"' in out.read_text()
    # The first is like the second by "chase" and like the third by "mice": 9/7 and 6/7 twice. The last is alone: 1.
    assert text.startswith("Cats chase mice. Rain came.")


def test_without_a_file_words_count_by_the_sentences_of_the_task() -> None:
    writer = open_writer("lexrank-citebench", "citation")
    text = "Cats chase mice. Cats chase birds. Mice eat cheese. Rain came."
    for _ in range(2):
        assert writer.write(TextTask("t", (Source(text),))).text.startswith("Cats chase mice.")
        assert writer.settings["idf"] == "sentences of the task"
        assert writer.write(TextTask("u", (Source("Rain came. Rain went. Rain came and went. Sun."),))).text


def test_without_a_word_that_counts_all_are_alike() -> None:
    writer = open_writer("lexrank-citebench", "citation")
    assert writer.write(TextTask("t", (Source("1. 2. 3. -. +."),))).text
