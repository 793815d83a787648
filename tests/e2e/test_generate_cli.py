"""`citerec write` and `recommend --tldr`, without a model."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pytest

from citerec.errors import WriterError
from citerec.files.progress import no_progress
from citerec.write.drafting import write_batch
from citerec.write.task_files import read_prediction_file
from citerec.write.tasks import Prediction, TextTask, terms_of
from citerec.write.writers.extractive import ExtractiveWriter, lead
from tests.conftest import Citerec, write_lines

SENTENCE = "Attention alone, without recurrence or convolution, suffices to translate well <REF>."
ATTENTION, LSTM = "900000041", "900000032"


def test_a_citation_text(citerec: Citerec, demo_index: Path) -> None:
    found = citerec("write", "citation", SENTENCE, "--index", demo_index, "-k", 2)
    assert found.returncode == 0, found.stderr
    text, _, rest = found.stdout.partition("— attributed")
    assert "suffices to translate well [0, 1]." in text
    assert "[0]" in text.split("well [0, 1].")[1]
    assert "[0]  Attention Is All You Need" in rest
    assert "@" in rest
    assert "title = {{Attention Is All You Need}}" in rest


def test_a_citation_text_as_json_of_papers_that_are_named(citerec_here: Citerec, demo_index: Path) -> None:
    found = citerec_here(
        "write", "citation", SENTENCE, "--index", demo_index, "--papers", f"{LSTM},{ATTENTION}", "--format", "json"
    )
    value = json.loads(found.stdout)
    assert [paper["paper_id"] for paper in value["papers"]] == [int(LSTM), int(ATTENTION)]
    assert [sentence["drawn_from"] for sentence in value["sentences"]] == [[0], [1]]
    assert all(sentence["unknown"] == [] for sentence in value["sentences"])
    assert value["text"] == " ".join(sentence["text"] for sentence in value["sentences"])
    assert len(value["bibtex"]) == 2


def test_the_paper_that_is_written_is_not_cited(citerec_here: Citerec, demo_index: Path) -> None:
    found = citerec_here(
        "write", "citation", SENTENCE, "--index", demo_index, "--citing", ATTENTION, "--format", "json"
    )
    assert int(ATTENTION) not in [paper["paper_id"] for paper in json.loads(found.stdout)["papers"]]


def test_tldrs(citerec_here: Citerec, demo_index: Path) -> None:
    found = citerec_here("write", "tldr", LSTM, ATTENTION, "--index", demo_index)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("TLDR: ") == 2
    assert " ".join(found.stdout.split()).count("from its abstract, by the writer trained") == 2
    as_json = json.loads(citerec_here("write", "tldr", LSTM, "--index", demo_index, "--format", "json").stdout)
    assert as_json[0]["origin"] == "trained"
    assert as_json[0]["paper_id"] == int(LSTM)


def test_recommendations_with_tldrs(citerec: Citerec, demo_index: Path) -> None:
    table = citerec("recommend", SENTENCE, "--index", demo_index, "-k", 2, "--tldr")
    assert table.stdout.count("TLDR: ") == 2
    hits = json.loads(
        citerec("recommend", SENTENCE, "--index", demo_index, "-k", 2, "--tldr", "--format", "json").stdout
    )
    assert [hit["tldr_origin"] for hit in hits] == ["trained"] * 2
    assert all(set(terms_of(hit["tldr"])) <= set(terms_of(hit["abstract"])) for hit in hits)


def test_a_corpus_s_own_tldr_is_shown_as_such(citerec_here: Citerec, tmp_path: Path) -> None:
    paper = {"paper_id": "own", "title": "Trees", "abstract": "Trees are cut.", "tldr": "Cut them."}
    index = tmp_path / "index"
    built = citerec_here("index", "build", write_lines(tmp_path / "papers.jsonl", [paper]), "--out", index)
    assert built.returncode == 0, built.stderr
    assert "Cut them.  — of the corpus" in citerec_here("write", "tldr", "own", "--index", index).stdout
    anew = citerec_here("write", "tldr", "own", "--index", index, "--anew").stdout
    assert "Trees are cut.  — from its abstract" in anew


def test_related_work(citerec_here: Citerec, demo_index: Path) -> None:
    papers = f"{LSTM},{ATTENTION}"
    found = citerec_here(
        "write", "related-work", "--papers", papers, "--index", demo_index, "--writer", "lead-each", "--format", "json"
    )
    value = json.loads(found.stdout)
    assert [sentence["drawn_from"] for sentence in value["sentences"]] == [[0], [1]]
    assert "[0]" in value["sentences"][0]["text"]


def test_a_batch_comes_out_in_the_same_format(citerec_here: Citerec, tmp_path: Path) -> None:
    tasks = [
        {"id": "a", "input": ["<abs> We. </abs>", "We propose saws. They cut."], "target": "[0] cut.", "note": 1},
        {"id": "b", "input": ["Trees fall."], "target": "[0] fall."},
    ]
    out = tmp_path / "out.jsonl"
    done = citerec_here(
        "write", "batch", write_lines(tmp_path / "t.jsonl", tasks), "--writer", "lead-each", "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert "2 texts by lead-each" in done.stdout
    records = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert [{name: record[name] for name in task} for task, record in zip(tasks, records, strict=True)] == tasks
    assert [record["prediction"] for record in records] == ["We propose saws [0].", "Trees fall [0]."]
    assert not list(tmp_path.glob(".out*"))
    assert all(record["settings"] == {"writer": "lead-each"} for record in records)
    oracle = citerec_here("write", "batch", out, "--writer", "ext-oracle", "--out", tmp_path / "oracle.jsonl")
    assert "an upper bound, not a system" in oracle.stderr
    assert all(orjson.loads(line)["knows_target"] for line in (tmp_path / "oracle.jsonl").read_bytes().splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["citation", "No marker."], "the sentence holds 0 <REF>"),
        (["citation", "Two <REF> and <REF>."], "the sentence holds 2 <REF>"),
        (["citation", SENTENCE, "--writer", "leed"], "there is no writer 'leed'"),
        (["citation", SENTENCE, "--writer", "no/such-folder/here"], "there is no"),
        (["citation", SENTENCE, "--papers", "1,2"], "has no paper '1', '2'"),
        (["citation", SENTENCE, "--papers", ",,"], "there is no paper id"),
        (["tldr", "1"], "has no paper '1'"),
        (["related-work", "--papers", ","], "there is no paper id"),
        (["related-work", "--papers", LSTM, "--input", "full"], "needs full texts"),
        (["related-work", "--papers", LSTM, "--target", "nobody"], "there is no paper and no file 'nobody'"),
        (["citation", SENTENCE, "--writer", "ext-oracle"], "needs a target"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, citerec_here: Citerec, demo_index: Path) -> None:
    failed = citerec_here("write", *arguments, "--index", demo_index)
    assert said in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert failed.returncode in (1, 2)


def test_batches_of_what_is_no_task(citerec_here: Citerec, tmp_path: Path) -> None:
    bad = write_lines(tmp_path / "bad.jsonl", [{"target": "x"}])
    for path, said in ((bad, "line 1: input has no cited text"), (tmp_path / "none.jsonl", "cannot read")):
        failed = citerec_here("write", "batch", path, "--writer", "lead", "--out", tmp_path / "out.jsonl")
        assert failed.returncode == 2
        assert said in failed.stderr
    assert not (tmp_path / "out.jsonl").exists()
    good = write_lines(tmp_path / "good.jsonl", [{"input": ["Trees fall."]}])
    failed = citerec_here("write", "batch", good, "--writer", "lead", "--out", good)
    assert failed.returncode == 2
    assert "holds the tasks themselves" in failed.stderr


def test_a_batch_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """A writer that fails at the third task is asked again from there."""
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": name, "input": [f"Text {name}."]} for name in "abcd"])
    asked: list[str] = []

    class Failing(ExtractiveWriter):
        def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
            for task in tasks:
                asked.append(task.task_id)
                if asked == ["a", "b", "c"]:
                    raise WriterError("stopped", "Go on.")
                yield self.write(task)

    writer, out = Failing("lead", lead), tmp_path / "out.jsonl"
    with pytest.raises(WriterError):
        write_batch(tasks, writer, out, on_progress=no_progress)
    assert not out.exists()
    assert write_batch(tasks, writer, out, on_progress=no_progress).texts == 4
    assert asked == ["a", "b", "c", "c", "d"]
    assert [record.task.task_id for record in read_prediction_file(out)] == list("abcd")
    assert not list(tmp_path.glob(".out*"))
