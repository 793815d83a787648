"""What holds of every reader: no line is lost, and whatever a record does to its reader is the record's fault."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.full_text import read_s2orc
from citerec.contexts.read import read_contexts
from citerec.corpus.base import FORMATS
from citerec.corpus.reading import BadRecord, Line, parsed
from citerec.discourse.classifier import read_paragraphs
from citerec.errors import InputError
from citerec.write.task_files import read_prediction_file, read_tasks, written_records
from tests.conftest import s2ag_paper

DEEP = "[" * 1000 + "]" * 1000
LONG = "9" * 5000
HOSTILE = "a\x1b]0;x\x07b\x9b31mc\x7fd"


@pytest.mark.parametrize("reader", [read_contexts, read_tasks, read_prediction_file, read_paragraphs])
@pytest.mark.parametrize(
    "line",
    [
        DEEP,
        f'{{"text": {DEEP}}}',
        f'{{"input": {DEEP}, "prediction": "x"}}',
        f'{{"text": "a <REF>", "start": {LONG}}}',
        f'{{"text": "a <REF>", "citing_year": "{LONG}", "input": ["x"], "id": {DEEP}, "prediction": ""}}',
        '{"text": "\\ud800", "input": ["\\ud800"], "prediction": ""}',
    ],
)
def test_what_a_line_does_to_its_reader_is_told_with_its_place(tmp_path: Path, reader: Any, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.jsonl, (line|record) 1: "):
        list(reader(path))


def test_a_list_is_followed_by_nothing_and_its_numbers_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'[{{"a": {LONG}}}, {{"a": 1}}]\n ', encoding="utf-8")
    first, second = (parsed(raw, dict) for _, raw in written_records(path))
    assert isinstance(first, BadRecord) and second == {"a": 1}
    path.write_text('[{"a": 1}]\n[{"a": 2}]', encoding="utf-8")
    with pytest.raises(InputError, match="more follows the end of its list"):
        list(written_records(path))


def texts_of(value: Any) -> str:
    """All texts in a record but the author's own entry."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(texts_of(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return "".join(map(texts_of, value))
    return ""


def csv_of(**cells: str) -> str:
    output = io.StringIO()
    writer = csv.DictWriter(output, list(cells))
    writer.writeheader()
    writer.writerow(cells)
    return output.getvalue()


TEXTS = dict.fromkeys(("title", "abstract", "tldr", "venue"), HOSTILE)
LISTS = ("authors", "fields_of_study")
LF = "\n"
RIS_TAGS = ("TI", "AU", "T2", "AB", "DO")
CSL = dict.fromkeys(("title", "abstract", "container-title", "DOI", "PMID"), HOSTILE)
FIELDS = ("title", "author", "journal", "abstract", "doi")
NAMES = [{"name": HOSTILE}, {"name": "{\\'e}" + HOSTILE}]
S2AG = {"authors": NAMES, "venue": HOSTILE, "externalids": {"DOI": HOSTILE, HOSTILE: "x"}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "jsonl",
            json.dumps({"paper_id": 1, "external_ids": {HOSTILE: HOSTILE}, **TEXTS, **{x: [HOSTILE] for x in LISTS}}),
        ),
        ("csv", csv_of(paper_id="1", external_ids=f"{HOSTILE}:{HOSTILE}", **TEXTS, **dict.fromkeys(LISTS, HOSTILE))),
        ("bibtex", f"@book{{a, {', '.join(f'{field}={{{HOSTILE}}}' for field in FIELDS)}}}"),
        ("ris", f"TY  - JOUR\nID  - 1\n{''.join(f'{tag}  - {HOSTILE}{LF}' for tag in RIS_TAGS)}ER  - "),
        ("csl", json.dumps([{"id": 1, "author": [{"family": HOSTILE}, {"literal": HOSTILE}], **CSL}])),
        ("s2ag-papers", json.dumps(s2ag_paper(1, HOSTILE, **S2AG, s2fieldsofstudy=[{"category": HOSTILE}]))),
        ("s2ag-abstracts", json.dumps({"corpusid": 1, "abstract": HOSTILE})),
        ("s2ag-tldrs", json.dumps({"corpusid": 1, "text": HOSTILE})),
        ("s2ag-citations", json.dumps({"citingcorpusid": 1, "citedcorpusid": 2, "contexts": [HOSTILE]})),
        ("contexts", json.dumps({"text": f"{HOSTILE} <REF>", "citing_id": 1, "cited_ids": [2]})),
    ],
)
def test_no_reader_of_papers_lets_a_control_character_through(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "hostile"
    path.write_text(text, encoding="utf-8", newline="")
    (line,) = FORMATS[name].read(path)
    assert isinstance(line, Line)
    assert not isinstance(line.record, BadRecord), line.record.reason
    shown = {field: getattr(line.record, field) for field in line.record.__dataclass_fields__ if field != "bibtex"}
    assert "a ]0;x b" in texts_of(shown)
    assert texts_of(shown).isprintable()


def test_nor_does_a_reader_of_contexts_tasks_and_full_texts(tmp_path: Path) -> None:
    fields = ("before", "after", "citing_key", "section", "source", "intent", "marker", "style", "citing_title")
    context = {"text": f"{HOSTILE} <REF>", "labels": {HOSTILE: HOSTILE}, **dict.fromkeys(fields, HOSTILE)}
    task = {"input": [f"<abs> {HOSTILE}\n\nb </abs>", HOSTILE], "target": HOSTILE, "prediction": f"{HOSTILE}\n\nb"}
    task |= {"sources": [{"title": HOSTILE, "authors": [HOSTILE]}], "writer": HOSTILE, "dataset": HOSTILE}
    task |= {"sentences": [{"text": HOSTILE, "drawn_from": [0], "unknown": [HOSTILE]}]}
    paths = [tmp_path / name for name in ("context", "task")]
    for path, record in zip(paths, (context, task), strict=True):
        path.write_text(json.dumps(record), encoding="utf-8")
    (read,) = read_contexts(paths[0])
    (prediction,) = read_prediction_file(paths[1])
    assert prediction.text.endswith("d\n\nb")
    assert prediction.task.citing.endswith("d\n\nb")
    for made in (read, prediction):
        assert "\\x1b" not in repr(made)
        assert "\\x9b" not in repr(made)
    text = {"corpusid": 1, "body": {"text": f"{HOSTILE}\n\nb"}}
    paths[0].write_text(json.dumps(text), encoding="utf-8")
    (line,) = read_s2orc(paths[0])
    assert not isinstance(line.record, BadRecord)
    assert line.record.text == "a ]0;x b 31mc d\n\nb"
