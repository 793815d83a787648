"""What writers are given: each input of OARelatedWork, of published data, of our own data and of named papers."""

from pathlib import Path

import orjson
import pytest

from citerec.errors import WriterError
from citerec.papers.oarelatedwork.inputs import task_with_input, tasks_with_input, with_input
from citerec.records import Paper
from citerec.write.anchors import cited_in
from citerec.write.drafting import related_work_task, write_batch
from citerec.write.task_files import parse_prediction, read_prediction_file, read_tasks
from citerec.write.tasks import INPUTS, Source, TextTask, sees_target
from citerec.write.writers import open_writer
from tests.conftest import Citerec, write_lines
from tests.papers.datasets.s2orc_records import Sections, s2orc_record
from tests.write.oarelatedwork_records import PUBLISHED, flattened

RIVERS, LAKES = "Rivers are long.", "Lakes are wide. They are deep."
MAPS = "We draw maps. They are blue."
ALL_RIVERS = f"{RIVERS}\nThey begin small [1].\nThey end in $$x^2$$ the sea."
ALL_MAPS = f"{MAPS}\nMaps are old. See <cite>13<sep>Of Seas<sep>UNK</cite>."
OURS = {
    "id": "9",
    "citing_id": "9",
    "input": ["<abs> We do. </abs>", "One did.", "Two did."],
    "sources": [{"paper_id": 1}, {"paper_id": 2}],
    "target": "As [0] and [1] did.",
}
PAPERS = (
    Paper("1", "Okapi at TREC", "Abstract one.", authors=("Stephen Robertson",), year=1994),
    Paper("2", "BERT", "Abstract two.", year=2019),
)
SECTIONS: Sections = [
    ("", "Abstract", ["Not again."]),
    ("1", "Introduction", ["All of it."]),
    ("2", "Related Work", ["What others did."]),
    ("2.1", "Saws", ["Saws were made."]),
    ("3", "Method", ["We saw."]),
]


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """Full texts of the papers 1 and 9."""
    return write_lines(tmp_path / "s2orc.jsonl", [s2orc_record(number, SECTIONS, {}) for number in (1, 9)])


@pytest.mark.parametrize(
    ("given", "cited", "citing"),
    [
        ("abstracts-cited", [RIVERS, LAKES], ""),
        ("abstracts-full", [RIVERS, LAKES], ALL_MAPS),
        ("full", [ALL_RIVERS, LAKES], ALL_MAPS),
        ("full-abstract", [ALL_RIVERS, LAKES], MAPS),
        ("full-cited", [ALL_RIVERS, LAKES], ""),
    ],
)
def test_each_input_of_the_published_data(given: str, cited: list[str], citing: str, tmp_path: Path) -> None:
    (task,) = tasks_with_input(write_lines(tmp_path / "test.jsonl", [PUBLISHED]), given)
    assert [(source.paper_id, source.text) for source in task.sources] == [("11", cited[0]), ("12", cited[1])]
    assert task.citing == (task.citing_source.text if task.citing_source else "") == citing


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


@pytest.mark.parametrize("given", list(INPUTS))
def test_all_that_an_oracle_cuts_is_marked(given: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    path = write_lines(tmp_path / "test.jsonl", [PUBLISHED])
    write_batch(path, open_writer("lead", "related-work"), out, input_name=given)
    (prediction,) = read_prediction_file(out)
    assert prediction.settings["input"] == prediction.task.input_name == given
    assert prediction.is_oracle == sees_target(given) == ("oracle" in given)
    record = orjson.loads(out.read_bytes())
    assert record.pop("knows_target", False) == sees_target(given)
    assert parse_prediction(record).is_oracle == sees_target(given)  # of another tool, too


@pytest.mark.parametrize("writer", ["lead", "textrank-each", "lexrank", "greedy-oracle", "ext-oracle"])
def test_extractive_writers_take_the_target_s_text_where_it_is_given(writer: str) -> None:
    own = "Saws cut trees in woods. Saws cut trees in parks. Woods and parks have trees and saws."
    sources = (Source("Lakes are wide."), Source("Rivers are long."))
    task = TextTask("t", sources, targets=(own,), citing_rest=Source(own))
    opened = open_writer(writer, "related-work")
    with_own = opened.write(with_input(task, "abstracts-full"))
    assert () in [sentence.attributions for sentence in with_own.sentences]  # it is not cited
    assert "saws" in with_own.text.lower()
    assert "saws" not in opened.write(with_input(task, "abstracts-cited")).text.lower()


def test_full_texts_come_from_s2orc_without_their_related_work(tmp_path: Path, shard: Path) -> None:
    path = write_lines(tmp_path / "train.jsonl", [OURS])
    (task,) = tasks_with_input(path, "full", (shard,))
    assert [source.text for source in task.sources] == ["One did.\nAll of it.\nWe saw.", "Two did."]
    assert task.citing == "We do.\nAll of it.\nWe saw."
    # A document of its own comes first.
    section = {"headline": "Method", "number": "2", "paragraphs": [["We saw [0].", "We cut."]], "sections": []}
    outer = {**section, "headline": "Setup", "paragraphs": [], "sections": [section]}
    path = write_lines(tmp_path / "own.jsonl", [{**OURS, "document": [outer]}])
    (task,) = tasks_with_input(path, "full-target")
    assert task.citing == "We do.\nWe saw <cite>UNK</cite>. We cut."


def test_citations_of_full_texts_say_which_paper_they_cite(tmp_path: Path) -> None:
    # Printed, [1] would be taken for the second source.
    sections = [("1", "Method", ["We cut as Roe et al. [1] did, and others [2] [3]."])]
    shard = write_lines(tmp_path / "s2orc.jsonl", [s2orc_record(9, sections, {1: 1, 2: 71, 3: None})])
    path = write_lines(tmp_path / "train.jsonl", [{**OURS, "target": "We cut as [0] did."}])
    (task,) = tasks_with_input(path, "oracle-target", (shard,))
    said = "We cut as Roe et al. <cite>1</cite> did, and others <cite>71</cite> <cite>UNK</cite>."
    assert task.citing.startswith(f"We do.\n{said}")
    assert cited_in(task.citing, task.sources).sources == {0}


def test_the_commands_write_and_store_tasks_with_an_input(citerec_here: Citerec, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "test.jsonl", [{**flattened(), "id": number} for number in range(3)])
    batch = ("write", "batch", path, "--kind", "related-work", "--writer", "greedy-oracle", "--out", "out.jsonl")
    done = citerec_here(*batch, "--input", "oracle-cited", "--limit", 2)
    assert done.returncode == 0, done.stderr
    assert "2 texts by greedy-oracle" in done.stdout
    assert "The input oracle-cited is cut by looking at the targets" in done.stderr
    written = read_prediction_file(tmp_path / "out.jsonl")
    assert [prediction.task.input_name for prediction in written] == ["oracle-cited"] * 2
    done = citerec_here("data", "inputs", path, path, "--input", "full-cited", "--out", "in.jsonl")
    assert done.stdout == "in.jsonl written: 6 tasks.\n"
    stored, given = next(read_tasks(tmp_path / "in.jsonl")), next(iter(tasks_with_input(path, "full-cited")))
    assert [source.text for source in stored.sources] == [source.text for source in given.sources]
    assert (stored.citing, stored.targets, stored.input_name) == (given.citing, given.targets, "full-cited")


def test_the_inputs_of_named_papers(shard: Path) -> None:
    shard.write_text("{broken\n" + shard.read_text())
    told: list[str] = []
    target = Paper("9", "Nine", "Abstract nine.")
    named = related_work_task(PAPERS, target)
    task = task_with_input(named, "full", [shard], told.append)
    texts = ["Abstract one.\nAll of it.\nWe saw.", "Abstract two."]
    assert [(source.paper_id, source.text) for source in task.sources] == list(zip("12", texts, strict=True))
    assert task.citing == "Abstract nine.\nAll of it.\nWe saw."
    assert len(told) == 1 and "s2orc.jsonl, line 1 is left out: not JSON" in told[0]
    # Nothing else of it is in its own related work.
    assert task_with_input(named, "oracle-target", [shard]).citing == "Abstract nine."
