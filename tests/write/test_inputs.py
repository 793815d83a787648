"""What writers are given of the papers of a related-work task: each input of OARelatedWork."""

from pathlib import Path

import orjson
import pytest

from citerec.errors import WriterError
from citerec.write.anchors import cited_in
from citerec.write.drafting import tasks_with_input, with_input, write_batch
from citerec.write.task_files import parse_prediction, read_prediction_file, read_tasks
from citerec.write.tasks import INPUTS, Source, TextTask, sees_target
from citerec.write.writers import open_writer
from tests.conftest import Citerec, write_lines
from tests.papers.datasets.s2orc_records import s2orc_record
from tests.write.oarelatedwork_records import PUBLISHED, flattened
from tests.write.test_related_work import full_text

RIVERS, LAKES = "Rivers are long.", "Lakes are wide. They are deep."
MAPS = "We draw maps. They are blue."
ALL_RIVERS = f"{RIVERS}\nThey begin small [1].\nThey end in $$x^2$$ the sea."
ALL_MAPS = f"{MAPS}\nMaps are old. See <cite>13<sep>Of Seas<sep>UNK</cite>."


@pytest.mark.parametrize(
    ("given", "cited", "citing"),
    [
        ("abstracts", [RIVERS, LAKES], MAPS),
        ("abstracts-cited", [RIVERS, LAKES], ""),
        ("abstracts-full", [RIVERS, LAKES], ALL_MAPS),
        ("full", [ALL_RIVERS, LAKES], ALL_MAPS),
        ("full-abstract", [ALL_RIVERS, LAKES], MAPS),
        ("full-cited", [ALL_RIVERS, LAKES], ""),
        ("full-target", ["", ""], ALL_MAPS),
    ],
)
def test_each_input_of_the_published_data(given: str, cited: list[str], citing: str, tmp_path: Path) -> None:
    (task,) = tasks_with_input(write_lines(tmp_path / "test.jsonl", [PUBLISHED]), given)
    assert [source.text for source in task.sources] == cited
    assert task.citing == citing
    assert (task.citing_source.text if task.citing_source else "") == citing
    assert [source.paper_id for source in task.sources] == ["11", "12"]


def whole_task(target: str = "Saws cut trees well. Trees grow.") -> TextTask:
    rest = Source("Saws cut trees. Nobody knows.\nTrees grow.")
    cited = (Source("Saws are old.", "1", rest=rest), Source("Trees are tall.", "2"))
    own = Source("Saws cut trees well. We end.")
    return TextTask("t", cited, "We cut.", targets=(target,) if target else (), citing_rest=own)


@pytest.mark.parametrize(
    ("given", "cited", "citing"),
    [
        ("oracle", ["Saws cut trees. Trees grow.", ""], "We cut.\nSaws cut trees well."),
        ("oracle-abstract", ["Saws cut trees. Trees grow.", ""], "We cut."),
        ("oracle-cited", ["Saws cut trees. Trees grow.", ""], ""),
        ("oracle-target", ["", ""], "We cut.\nSaws cut trees well."),
        ("abstracts-oracle", ["Saws are old.", "Trees are tall."], "We cut.\nSaws cut trees well."),
    ],
)
def test_an_oracle_cuts_each_document_by_itself(given: str, cited: list[str], citing: str) -> None:
    task = with_input(whole_task(), given)
    assert [source.text for source in task.sources] == cited
    assert task.citing == citing
    with pytest.raises(WriterError, match="needs a target"):
        with_input(whole_task(target=""), given)


def test_all_that_an_oracle_cuts_is_marked(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "test.jsonl", [PUBLISHED])
    for given in INPUTS:
        out = tmp_path / f"{given}.jsonl"
        write_batch(path, open_writer("lead", "related-work"), out, input_name=given)
        (prediction,) = read_prediction_file(out)
        assert prediction.settings["input"] == prediction.task.input_name == given
        assert prediction.is_oracle == sees_target(given) == ("oracle" in given)
        record = orjson.loads(out.read_bytes())
        assert record.get("knows_target", False) == sees_target(given)
        # A text that another tool writes from these tasks is marked too.
        record.pop("knows_target", None)
        assert parse_prediction(record).is_oracle == sees_target(given)


@pytest.mark.parametrize("writer", ["lead", "textrank-each", "lexrank", "greedy-oracle", "ext-oracle"])
def test_extractive_writers_take_the_target_s_text_where_it_is_given(writer: str) -> None:
    own = "Saws cut trees in woods. Saws cut trees in parks. Woods and parks have trees and saws."
    task = TextTask(
        "t", (Source("Lakes are wide."), Source("Rivers are long.")), targets=(own,), citing_rest=Source(own)
    )
    opened = open_writer(writer, "related-work")
    with_own = opened.write(with_input(task, "abstracts-full"))
    assert () in [sentence.attributions for sentence in with_own.sentences]
    assert "saws" in with_own.text.lower()
    assert "saws" not in opened.write(with_input(task, "abstracts-cited")).text.lower()


def test_sentences_of_the_target_have_no_citation() -> None:
    task = with_input(whole_task(), "abstracts")
    written = open_writer("lead-each", "related-work").write(task)
    assert written.text == "We cut. Saws are old [0]. Trees are tall [1]."
    assert [sentence.attributions for sentence in written.sentences] == [(), (0,), (1,)]
    assert open_writer("attributed", "related-work").write(task).text == "Saws are old [0]. Trees are tall [1]."
    plain = open_writer("lead-each", "related-work").write(whole_task())
    assert plain.text == "Saws are old [0]. Trees are tall [1]."


def test_our_own_data_set_has_the_target_and_takes_cited_texts_from_s2orc(tmp_path: Path) -> None:
    section = {"headline": "Method", "number": "2", "paragraphs": [["We saw [0].", "We cut."]], "sections": []}
    abstract = {**section, "headline": "Abstract", "paragraphs": [["Not again."]]}
    record = {
        "id": "9",
        "citing_id": "9",
        "input": ["<abs> We do. </abs>", "One did.", "Two did."],
        "sources": [{"paper_id": 1}, {"paper_id": 2}],
        "target": "As [0] and [1] did.",
        "document": [abstract, {**section, "headline": "Setup", "paragraphs": [], "sections": [section]}],
    }
    path = write_lines(tmp_path / "train.jsonl", [record])
    (task,) = tasks_with_input(path, "full-target")
    assert task.citing == "We do.\nWe saw <cite>UNK</cite>. We cut."
    shard = write_lines(
        tmp_path / "s2orc.jsonl", [full_text(1, ("Intro", "All of one."), ("Related Work", "Not this."))]
    )
    (task,) = tasks_with_input(path, "full", (shard,))
    assert [source.text for source in task.sources] == ["One did.\nAll of one.", "Two did."]
    assert task.citing == "We do.\nWe saw <cite>UNK</cite>. We cut."


def test_citations_of_full_texts_say_which_paper_they_cite(tmp_path: Path) -> None:
    # Printed, [1] would be taken for the second source.
    text = s2orc_record(
        9, [("1", "Method", ["We cut as Roe et al. [1] did, and others [2] [3]."])], {1: 70, 2: 71, 3: None}
    )
    record = {
        "id": "9",
        "citing_id": "9",
        "input": ["<abs> We do. </abs>", "One did.", "Two did."],
        "sources": [{"paper_id": 70}, {"paper_id": 72}],
        "target": "We cut as [0] did.",
    }
    path, shard = write_lines(tmp_path / "train.jsonl", [record]), write_lines(tmp_path / "s2orc.jsonl", [text])
    (task,) = tasks_with_input(path, "oracle-target", (shard,))
    assert task.citing.startswith(
        "We do.\nWe cut as Roe et al. <cite>70</cite> did, and others <cite>71</cite> <cite>UNK</cite>."
    )
    assert cited_in(task.citing, task.sources).sources == {0}


def test_no_subsection_of_the_related_work_is_given(tmp_path: Path) -> None:
    sections = [
        ("", "Abstract", ["Not this."]),
        ("1", "Introduction", ["We cut trees."]),
        ("2", "Related Work", ["What others did."]),
        ("2.1", "Saws", ["Saws were made."]),
        ("2.2", "Trees", ["Trees were grown."]),
        ("3", "Method", ["We saw."]),
    ]
    record = {"id": "9", "citing_id": "9", "input": ["<abs> We do. </abs>", "One did."], "target": "[0] did."}
    shard = write_lines(tmp_path / "s2orc.jsonl", [s2orc_record(9, sections, {})])
    (task,) = tasks_with_input(write_lines(tmp_path / "train.jsonl", [record]), "full-target", (shard,))
    assert task.citing == "We do.\nWe cut trees.\nWe saw."


def test_a_batch_with_an_input_from_outside(citerec_here: Citerec, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "test.jsonl", [{**flattened(), "id": number} for number in range(3)])
    out = tmp_path / "out.jsonl"
    arguments = ["write", "batch", path, "--kind", "related-work", "--writer", "greedy-oracle", "--out", out]
    done = citerec_here(*arguments, "--input", "oracle-cited", "--limit", 2)
    assert done.returncode == 0, done.stderr
    assert "2 texts by greedy-oracle" in done.stdout
    assert "The input oracle-cited is cut by looking at the targets" in done.stderr
    assert [prediction.task.input_name for prediction in read_prediction_file(out)] == ["oracle-cited"] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "some"], "'some' is not one of abstracts, abstracts-cited"),
        (["--input", "full"], "needs full texts, and none of the first 100 tasks"),
        (["--full-texts", "x"], "--full-texts goes with --input only"),
        (["--input", "full", "--full-texts", "nowhere"], "nowhere does not exist"),
    ],
)
def test_a_batch_that_cannot_be_given_is_told(
    arguments: list[str], said: str, citerec_here: Citerec, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "t.jsonl", [{"input": ["One did."], "target": "[0] did."}])
    failed = citerec_here("write", "batch", path, "--writer", "lead", "--out", tmp_path / "o.jsonl", *arguments)
    assert failed.returncode == 2
    assert said in " ".join(failed.stderr.split())


def test_a_batch_that_was_stopped_goes_on_with_its_input(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "test.jsonl", [{**PUBLISHED, "id": number} for number in range(5)])
    writer = open_writer("lead-each", "related-work")
    write_batch(path, writer, tmp_path / "whole.jsonl", input_name="full")

    def stop(_doing: str, done: float, _whole: float) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_batch(path, writer, tmp_path / "out.jsonl", input_name="full", on_progress=stop)
    seen: list[float] = []
    write_batch(path, writer, tmp_path / "out.jsonl", input_name="full", on_progress=lambda *told: seen.append(told[1]))
    assert seen == [3, 4, 5]
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_tasks_with_an_input_are_written_for_training(tmp_path: Path, citerec_here: Citerec) -> None:
    published = write_lines(tmp_path / "test.jsonl", [PUBLISHED])
    done = citerec_here("data", "inputs", published, "--input", "full-cited", "--out", "full-cited.jsonl")
    assert (done.returncode, done.stdout) == (0, "full-cited.jsonl written: 1 task.\n")
    (written,), (given,) = read_tasks(tmp_path / "full-cited.jsonl"), tasks_with_input(published, "full-cited")
    assert [source.text for source in written.sources] == [source.text for source in given.sources]
    assert (written.citing, written.targets) == (given.citing, given.targets)
    assert written.input_name == "full-cited"
    both = citerec_here("data", "inputs", published, published, "--input", "full-cited", "--out", "both.jsonl")
    assert both.stdout == "both.jsonl written: 2 tasks.\n"
    wrong = citerec_here("data", "inputs", published, "--input", "ful", "--out", "ful.jsonl")
    assert (wrong.returncode, (tmp_path / "ful.jsonl").exists()) == (2, False)
