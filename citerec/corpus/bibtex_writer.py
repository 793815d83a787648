"""BibTeX entries for papers: the author's own if there is one, else one made from the record."""

import functools
import itertools
import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from typing import cast

from citerec.groundwork.printable import one_line
from citerec.records import Paper

_WORD = re.compile(r"[A-Za-z0-9]+")
_SKIPPED = {"a", "an", "the", "on", "of", "in", "for", "and", "to", "with", "from"}
_STRUCTURE_OF_TEXT = re.compile(r"([{}\"])")
_NAMED = {"{": r"{\lbrace}", "}": r"{\rbrace}", '"': '{"}'}
_NAMES = {"{": "braceleft", "}": "braceright", "\\": "backslash"}
_STRUCTURE = re.compile(r"[{}\\]")
# Between the characters of a ligature: two hyphens would become a dash.
_LIGATURES = re.compile(r"(?<=[-`'!?,<>])(?=[-`',<>])")
_EMPTY = "\ue000"  # stands for {} while braces are escaped
_SPECIAL_NAME = re.compile(r"(?:^|\s)and(?:\s|$)|^others$", re.IGNORECASE)
_DIGITAL = {"DOI": "doi", "ArXiv": "eprint"}


def bibtex_entries(papers: Iterable[Paper]) -> list[str]:
    """One entry per paper, in order, with keys that do not repeat; the author's own entries byte for byte."""
    keys: set[str] = set()
    entries = []
    for paper in papers:
        if paper.bibtex:
            entries.append(paper.bibtex)
            keys.add(paper.paper_id)
            continue
        key = base = _key(paper)
        suffixes = itertools.chain(string.ascii_lowercase, map("-{}".format, itertools.count(27)))
        while key in keys:
            key = base + next(suffixes)
        keys.add(key)
        entries.append(_entry(key, paper))
    return entries


def _key(paper: Paper) -> str:
    surname = paper.authors[0].split()[-1] if paper.authors and paper.authors[0].split() else "anonymous"
    words = [word for word in _WORD.findall(_ascii(paper.title)) if word.lower() not in _SKIPPED]
    name = "".join(_WORD.findall(_ascii(surname))).lower()
    return (name or "anonymous") + str(paper.year or "") + (words[0].lower() if words else "")


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _entry(key: str, paper: Paper) -> str:
    title = _escaped(paper.title)
    fields = {
        "author": " and ".join(filter(None, map(_name, paper.authors))),
        "title": f"{{{title}}}" if title else "",
        "year": str(paper.year or ""),
        "howpublished": _escaped(paper.venue or ""),
        **{name: _identifier(paper.external_ids.get(scheme, "")) for scheme, name in _DIGITAL.items()},
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    # The record does not say whether its venue is a journal or a conference: @misc claims neither.
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def _name(author: str) -> str:
    """An author's name; in braces if BibTeX would take it for two, or its words for other parts of a name."""
    name = _escaped(author)
    return f"{{{name}}}" if "," in name or _SPECIAL_NAME.search(name) else name


def _escaped(text: str) -> str:
    """A text as LaTeX, which BibTeX reads back: a brace of its own could end the entry, so it is named."""
    parts = _STRUCTURE_OF_TEXT.split(_LIGATURES.sub(_EMPTY, one_line(text)))
    latex = "".join(_NAMED.get(part) or _encoder()(part) for part in parts)
    return latex.replace(_EMPTY, "{}")


@functools.cache
def _encoder() -> Callable[[str], str]:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    # In braces, as BibTeX wants accents: in a name, `\\~n` would be the end of a word.
    encoder = UnicodeToLatexEncoder(
        replacement_latex_protection="braces-all", unknown_char_policy="keep", unknown_char_warning=False
    )
    return cast("Callable[[str], str]", encoder.unicode_to_latex)


def _identifier(text: str) -> str:
    """An identifier, which is no LaTeX: only what could end the field is named, as `read_bibtex` reads it back."""
    return _STRUCTURE.sub(lambda match: f"{{\\text{_NAMES[match[0]]}}}", one_line(text))
