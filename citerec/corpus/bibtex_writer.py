"""BibTeX entries for papers: the author's own if there is one, else one made from the record."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from citerec.corpus.citation_keys import DEFAULT_PATTERN, check_key, citation_keys
from citerec.corpus.kinds import Kind, kind_of
from citerec.corpus.names import parts_of
from citerec.corpus.plain import escaped
from citerec.files.text import one_line
from citerec.records import Paper

Entry = TypeVar("Entry")

_OWN = re.compile(r"(?P<before>\s*@\s*\w+\s*[{(]\s*)(?P<key>[^\s,{}()=\"#%]+)(?=\s*,)")
_STRUCTURE_OF_TEXT = re.compile(r"([{}\"])")
_NAMED = {"{": r"{\lbrace}", "}": r"{\rbrace}", '"': '{"}'}
_NAMES = {"{": "braceleft", "}": "braceright", "\\": "backslash"}
_STRUCTURE = re.compile(r"[{}\\]")
# Between the characters of a ligature: two hyphens would become a dash.
_LIGATURES = re.compile(r"(?<=[-`'!?,<>])(?=[-`',<>])")
_EMPTY = "\ue000"  # stands for {} while braces are escaped
_SPECIAL_NAME = re.compile(r"(?:^|\s)and(?:\s|$)|^others$", re.IGNORECASE)
# Type of the entry, and the field of its venue. @misc claims neither a journal nor a conference.
_TYPES: Mapping[Kind, tuple[str, str]] = {
    "article": ("article", "journal"),
    "conference": ("inproceedings", "booktitle"),
    "preprint": ("misc", "howpublished"),
    "other": ("misc", "howpublished"),
}


def bibtex_entries(papers: Iterable[Paper], pattern: str = DEFAULT_PATTERN) -> list[str]:
    """One entry per paper, in order, with keys that do not repeat; the author's own entries byte for byte.

    Args:
        papers: The papers.
        pattern: Of the keys of entries that are made (docs/formats.md, "Citation keys").

    Raises:
        InputError: The pattern is wrong.
    """
    return each_entry(papers, pattern, _entry)


def each_entry(papers: Iterable[Paper], pattern: str, write: Callable[[str, Paper], Entry]) -> list[Entry]:
    """What `write` makes of each paper and its key, in order; InputError as for `entry_keys`."""
    papers = list(papers)
    return [write(key, paper) for key, paper in zip(entry_keys(papers, pattern), papers, strict=True)]


def entry_keys(papers: Sequence[Paper], pattern: str = DEFAULT_PATTERN) -> list[str]:
    """The key of each paper: that of the author's own entry, else one made by the pattern that no other paper has.

    Raises:
        InputError: The pattern is wrong.
    """
    own = [own_key(paper) for paper in papers]
    made = iter(citation_keys((paper for paper in papers if not own_key(paper)), pattern, set(filter(None, own))))
    return [key or next(made) for key in own]


def own_key(paper: Paper) -> str | None:
    """The key of the author's own entry; None if the paper came from elsewhere."""
    found = _OWN.match(paper.bibtex or "")
    return found["key"] if found else None


def bibtex_entry(paper: Paper, key: str) -> str:
    """The entry of a paper under a key: the author's own entry with that key if there is one, else one made.

    Raises:
        InputError: No entry can have this key.
    """
    return _entry(key if key == own_key(paper) else check_key(key), paper)


def _entry(key: str, paper: Paper) -> str:
    if own := _OWN.match(paper.bibtex or ""):
        return f"{own['before']}{key}{own.string[own.end() :]}"
    kind, title = kind_of(paper), _escaped(paper.title)
    type_name, venue = _TYPES[kind]
    eprint = paper.external_ids.get("ArXiv", "")
    fields = {
        "author": " and ".join(filter(None, map(_name, paper.authors))),
        "title": f"{{{title}}}" if title else "",
        venue: _escaped(paper.venue or ""),
        "year": str(paper.year or ""),
        "doi": _identifier(paper.external_ids.get("DOI", "")),
        "eprint": _identifier(eprint),
        "archivePrefix": "arXiv" if eprint else "",
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    return f"@{type_name}{{{key},\n" + ",\n".join(lines) + "\n}"


def _name(author: str) -> str:
    """An author's name; in braces if BibTeX would take it for two, or its words for other parts of a name."""
    given, family, suffix = map(_escaped, parts_of(author))
    if given and suffix and "," not in author:
        return f"{family}, {suffix}, {given}"
    name = _escaped(author)
    return f"{{{name}}}" if "," in name or _SPECIAL_NAME.search(name) else name


def _escaped(text: str) -> str:
    """A text as LaTeX, which BibTeX reads back: a brace of its own could end the entry, so it is named."""
    parts = _STRUCTURE_OF_TEXT.split(_LIGATURES.sub(_EMPTY, escaped(one_line(text), backslashes=False)))
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
