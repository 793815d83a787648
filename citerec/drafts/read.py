"""Reading drafts from files."""

import re
from pathlib import Path

from citerec.drafts.base import Draft, Source
from citerec.drafts.latex import read_latex
from citerec.drafts.markdown import read_markdown
from citerec.errors import InputError
from citerec.records import MARKER

_LATEX = frozenset({".tex", ".ltx", ".latex"})
_MARKDOWN = frozenset({".md", ".markdown", ".qmd", ".rmd"})


def read_draft(path: Path) -> Draft:
    r"""The draft in a file: LaTeX (with the files that it takes in by `\input`), Markdown, or plain text.

    Raises:
        InputError: The file cannot be read, or is not UTF-8, or cannot be understood; or it is LaTeX or Markdown, and
            has no place that wants a citation.
    """
    text, kind = read_text(path), path.suffix.lower()
    if kind in _LATEX | _MARKDOWN:
        writer = read_latex(path, text, read_text) if kind in _LATEX else read_markdown(path, text)
        draft = writer.draft()
        if not draft.places:
            example = r"\cite{?}" if kind in _LATEX else "[@?]"
            raise InputError(
                f"{path} has no place that wants a citation", f"Write {example} or {MARKER} where one does."
            )
        return draft
    source = Source(path, text)
    places = (source.place(*match.span()) for match in re.finditer(re.escape(MARKER), text))
    return Draft(text, tuple(places))


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with its ends of lines.

    Raises:
        InputError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Give a text file.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error
