"""Inputs of related work for papers that are named, from S2ORC files; and what is said when something lacks."""

from pathlib import Path

import pytest

from citerec.errors import InputError, SourceError, WriterError
from citerec.index.build import open_store
from citerec.records import Paper
from citerec.write.drafting import draft, read_ids, related_work_task, target_of
from citerec.write.writers import open_writer
from tests.conftest import write_lines

PAPERS = [Paper("1", "One", "Abstract one."), Paper("2", "Two", "Abstract two.")]
TARGET = Paper("9", "Nine", "Abstract nine.")


def full_text(paper_id: int, *sections: tuple[str, str]) -> dict[str, object]:
    text, headers, paragraphs = "", [], []
    for heading, paragraph in sections:
        headers.append({"start": len(text), "end": len(text) + len(heading)})
        text += f"{heading}\n"
        paragraphs.append({"start": len(text), "end": len(text) + len(paragraph)})
        text += f"{paragraph}\n"
    layers = {"section_header": headers, "paragraph": paragraphs}
    return {"corpusid": paper_id, "body": {"text": text, "annotations": layers}, "bibliography": {"text": ""}}


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    return [
        write_lines(
            tmp_path / "s2orc.jsonl",
            [
                full_text(1, ("1 Introduction", "All of one."), ("2 Related Work", "What others did.")),
                full_text(9, ("1 Introduction", "All of nine."), ("2 Related Work", "The target itself.")),
            ],
        )
    ]


@pytest.mark.parametrize(
    ("given", "sources", "citing"),
    [
        ("abstracts", ["Abstract one.", "Abstract two."], "Abstract nine."),
        ("full", ["Abstract one.\nAll of one.", "Abstract two."], "Abstract nine.\nAll of nine."),
        ("full-cited", ["Abstract one.\nAll of one.", "Abstract two."], ""),
        ("full-target", ["", ""], "Abstract nine.\nAll of nine."),
        ("oracle-target", ["", ""], "Abstract nine."),  # nothing else is in its own related work
    ],
)
def test_the_inputs(given: str, sources: list[str], citing: str, texts: list[Path]) -> None:
    task = related_work_task(PAPERS, TARGET, given, texts)
    assert [source.text for source in task.sources] == sources
    assert task.citing == citing
    assert [source.paper_id for source in task.sources] == ["1", "2"]


def test_what_lacks_is_told(texts: list[Path]) -> None:
    with pytest.raises(InputError, match="needs full texts"):
        related_work_task(PAPERS, TARGET, "full")
    with pytest.raises(InputError, match="needs the paper that you write"):
        related_work_task(PAPERS, None, "full-target", texts)
    with pytest.raises(SourceError, match="none of the 1 papers is among the full texts"):
        related_work_task([PAPERS[1]], None, "full-cited", texts)


def test_lines_that_cannot_be_read_are_told(texts: list[Path]) -> None:
    texts[0].write_text("{broken\n" + texts[0].read_text())
    told: list[str] = []
    task = related_work_task(PAPERS, TARGET, "full", texts, told.append)
    assert task.citing == "Abstract nine.\nAll of nine."
    (line,) = told
    assert "s2orc.jsonl, line 1 is left out: not JSON" in line


def test_a_full_text_needs_no_abstract(texts: list[Path]) -> None:
    papers = [Paper("1", "One"), Paper("2", "Two")]
    made = draft(related_work_task(papers, None, "full-cited", texts), papers, open_writer("lead-each", "related-work"))
    assert made.prediction.text == "All of one [0]."
    assert made.without_text == (papers[1],)
    with pytest.raises(WriterError, match="nothing to write from"):
        draft(related_work_task(papers), papers, open_writer("lead-each", "related-work"))


def test_a_target_is_an_id_or_a_file(demo_index: Path, tmp_path: Path) -> None:
    store = open_store(demo_index)
    found = target_of("900000041", store)
    assert found is not None
    assert found.title == "Attention Is All You Need"
    (tmp_path / "abstract.txt").write_text("What we do here.")
    of_file = target_of(str(tmp_path / "abstract.txt"), store)
    assert of_file is not None
    assert of_file.abstract == "What we do here."
    with pytest.raises(InputError, match="no paper and no file 'nobody'"):
        target_of("nobody", store)
    assert target_of(None, store) is None


def test_ids_come_with_commas_or_out_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("1\n2, 3\n\n")
    assert read_ids(str(tmp_path / "ids")) == read_ids("1,2,3") == ["1", "2", "3"]
    with pytest.raises(InputError, match="no paper id"):
        read_ids(" ,")
