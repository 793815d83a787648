"""Drafts in Word, OpenDocument and Jupyter files, made and read again by libraries for these."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from docx import Document
from hypothesis import HealthCheck, given, settings, strategies as st
from odf import text as odf_text
from odf.opendocument import OpenDocumentText, load as load_odf
from odf.teletype import extractText

from citerec.drafts import Files, read_draft
from citerec.drafts.filling import Filling
from citerec.errors import InputError
from citerec.records import Paper

CROFT = Paper("1", title="Models of language", authors=("Bruce Croft",), year=2001)
_FIRST = ("Retrieval & <ranking> is old [@salton]. ", "It was shown [", "?", "] by $5 models.")


def word(path: Path) -> Path:
    document = Document()
    document.add_heading("Terms, weighted", 0)
    document.add_heading("Introduction", 1)
    paragraph = document.add_paragraph()
    for number, part in enumerate(_FIRST):  # a place of three runs, such as Word makes
        paragraph.add_run(part).bold = number == 2
    document.add_heading("Method", 1)
    document.add_table(1, 1).cell(0, 0).text = "In a table [citation needed]."
    document.save(str(path))
    return path


def word_text(path: Path) -> list[str]:
    document = Document(str(path))
    return [*(one.text for one in document.paragraphs), document.tables[0].cell(0, 0).text]


def open_document(path: Path) -> Path:
    document = OpenDocumentText()
    for level, parts in ((1, ["Introduction"]), (0, _FIRST), (1, ["Method"]), (0, ["At the end [citation needed]."])):
        element = odf_text.H(outlinelevel=1) if level else odf_text.P()
        for part in parts:
            element.addElement(odf_text.Span(text=part))
        document.text.addElement(element)
    document.save(str(path))
    return path


def open_text(path: Path) -> list[str]:
    body = load_odf(str(path)).text
    return [extractText(one) for one in body.childNodes if one.qname[1] in ("p", "h")]


def notebook(path: Path) -> Path:
    new = nbformat.v4
    first = "# Introduction\n\nRetrieval is “old” \U0001f600 [@salton].\nIt was shown [?] by models."
    cells = [new.new_markdown_cell(first), new.new_code_cell('x = "[@?]"'), new.new_markdown_cell("## Method\n[@?]")]
    nbformat.write(new.new_notebook(cells=cells), str(path))
    return path


def notebook_text(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(str(path), as_version=4).cells]


_PLACE = re.compile(r"\[(?:@?\?|citation needed)\]")

KINDS = [
    ("thesis.docx", word, word_text),
    ("thesis.odt", open_document, open_text),
    ("thesis.ipynb", notebook, notebook_text),
]


@pytest.mark.parametrize(("name", "make", "text"), KINDS)
def test_places_are_filled_and_all_else_stays(
    tmp_path: Path, name: str, make: Callable[[Path], Path], text: Callable[[Path], list[str]]
) -> None:
    path = make(tmp_path / name)
    before, data = text(path), path.read_bytes()
    filling = Filling(path, tmp_path / "refs.bib")
    draft = filling.draft
    assert [one.section for one in draft.places] == ["Introduction", "Method"]
    assert [one.key for one in draft.cited] == ["salton"]
    state = filling.files.state()
    assert filling.cite(0, [CROFT]) == ["croft2001models"]
    filling.cite(0, [CROFT], "They say “so”, & <more>.")
    filling.files.write()

    after = text(path)
    shown = [one if one.startswith("x =") else _PLACE.sub("[@croft2001models]", one) for one in before]
    assert [one.split(" They say ")[0] for one in after] == shown
    assert "They say “so”, & " in "\n".join(after)
    assert "more" in filling.files.text(path)

    filling.restore(state)
    filling.files.write()
    if name.endswith("ipynb"):
        assert path.read_bytes() == data
    else:
        with zipfile.ZipFile(path) as now, zipfile.ZipFile(io.BytesIO(data)) as old:
            assert now.namelist() == old.namelist()
            assert all(now.read(one) == old.read(one) for one in old.namelist())
    assert text(path) == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=5), st.data())
def test_a_change_changes_nothing_else(tmp_path: Path, texts: list[str], data: st.DataObject) -> None:
    cells = [{"cell_type": "markdown", "metadata": {"source": ["no"]}, "source": one.splitlines(True)} for one in texts]
    path = tmp_path / "any.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}, ensure_ascii=data.draw(st.booleans()), indent=1))
    files = Files()
    assert files.text(path) == "".join(f"{one}\n\n" for one in texts if one)
    if text := files.text(path):
        at = data.draw(st.integers(0, len(text)))
        whole = path.read_text()
        files.change(path, at, at, 'a "word"\n')
        files.write()
        written = path.read_text()
        assert written.replace('a \\"word\\"\\n', "", 1) == whole
        json.loads(written)


@pytest.mark.parametrize("name", ["broken.docx", "broken.odt", "broken.ipynb"])
def test_what_is_no_such_file_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(InputError, match="that can be read"):
        read_draft(tmp_path / name)
