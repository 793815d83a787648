"""Reading drafts from files."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from citerec.drafts.base import MARKS, Draft, Form, Paragraph, Source
from citerec.drafts.files import Files
from citerec.drafts.markup import read_document, read_markdown, read_org, read_typst
from citerec.drafts.project import Project, project_of
from citerec.errors import InputError
from citerec.records import MARKER

_ENDINGS = {
    "LaTeX": (".tex", ".ltx", ".latex"),
    "Markdown": (".md", ".markdown", ".qmd", ".rmd"),
    "Typst": (".typ",),
    "Org": (".org",),
    "Word": (".docx",),
    "OpenDocument": (".odt",),
    "a Jupyter notebook": (".ipynb",),
    "plain text": (".txt",),
}
_MARKERS = {"LaTeX": r"\cite{?}", "Typst": "@?", "Org": "[cite:@?]", "plain text": MARKER}  # of others: [@?]
_OF_PANDOC = (".epub", ".rst", ".rtf")
"""Endings of files that pandoc makes Markdown of."""


def read_draft(path: Path, files: Files | None = None) -> Draft:
    r"""The draft in a file: LaTeX (with files that it takes in by `\input`), Markdown, Word, plain text and so on.

    Args:
        path: The file.
        files: Where texts are read from; by default the disk.

    Raises:
        InputError: A file cannot be read, or not in its encoding, or cannot be understood; or it is a bibliography, or
            has an ending that is not known. A file without an ending is plain text.
    """
    if path.suffix.lower() == ".bib":
        raise InputError(f"{path} is a bibliography, not a draft", "Give the draft.")
    if path.suffix and not is_draft(path):
        kinds = (f"{kind} ({', '.join(endings)})" for kind, endings in _ENDINGS.items())
        remedy = f"Give {', '.join(kinds)}"
        if path.suffix.lower() in _OF_PANDOC:
            remedy += f", for example with pandoc {path} -o {path.with_suffix('.md')}"
        raise InputError(f"{path} is no draft that citerec reads", f"{remedy}.")
    files = files or Files()
    project = project_of(path.parent) if files.reads_disk else Project()
    draft = _read(path, files.text(path), files, project.mark)
    return draft if draft.bibliographies else replace(draft, bibliographies=project.bibliographies)


def draft_of_text(text: str) -> Draft:
    r"""The draft in a text without a file: with `\cite` it is LaTeX, with `[@` Markdown, otherwise plain text."""
    suffix = ".tex" if "\\cite" in text else ".md" if re.search(r"\[@|(?<!\w)@\?", text) else ".txt"
    path = Path(f"text{suffix}")
    try:
        return Draft(_read(path, text, Files(texts={path: text}, disk=False), MARKS).text or text)
    except InputError:
        return Draft(text)


def _read(path: Path, text: str, files: Files, marks: re.Pattern[str]) -> Draft:
    match draft_kind(path):
        case "LaTeX":
            from citerec.drafts.latex import read_latex  # pylatexenc takes time

            return read_latex(path, text, files, marks)
        case "Markdown" | "a Jupyter notebook":
            return read_markdown(path, text, marks)
        case "Word" | "OpenDocument":
            return read_document(path, text, marks)
        case "Typst":
            return read_typst(path, text, marks)
        case "Org":
            return read_org(path, text, marks)
    source, form = Source(path, text), Form("[", "]", "; ")
    places = tuple(source.place(*match.span()) for match in marks.finditer(text))
    return Draft(marks.sub(MARKER, text), places, paragraphs=tuple(_paragraphs(source, marks)), form=form)


def _paragraphs(source: Source, marks: re.Pattern[str]) -> Iterator[Paragraph]:
    """The paragraphs of plain text, between blank lines."""
    for match in re.finditer(r"\S.*?(?=\n[ \t\r]*\n|\s*\Z)", source.text, re.DOTALL):
        yield Paragraph(" ".join(marks.sub(MARKER, match[0]).split()), source.path, source.line(match.start()))


def check_places(draft: Draft, path: Path) -> None:
    """Checks that a draft has a place that wants a citation.

    Raises:
        InputError: It has none.
    """
    if not draft.places:
        markers = " or ".join(dict.fromkeys((place_marker(path), MARKER)))
        raise InputError(f"{path} has no place that wants a citation", f"Write {markers} where one does.")


def place_marker(path: Path) -> str:
    r"""What an author writes in such a file where a citation is missing: `\cite{?}`, `[@?]`, `<REF>` and so on."""
    return _MARKERS.get(draft_kind(path), "[@?]")


def is_draft(path: Path) -> bool:
    """Whether a file has the ending of a draft."""
    return any(path.suffix.lower() in endings for endings in _ENDINGS.values())


def draft_kind(path: Path) -> str:
    """What a file of this name is read as: LaTeX, Markdown, plain text and so on."""
    kinds = (kind for kind, endings in _ENDINGS.items() if path.suffix.lower() in endings)
    return next(kinds, "plain text")
