"""BibTeX entries for papers: the author's own if there is one, else one made from the record."""

import itertools
import re
import string
import unicodedata
from collections.abc import Iterable

from citerec.records import Paper

_WORD = re.compile(r"[A-Za-z0-9]+")
_SKIPPED = {"a", "an", "the", "on", "of", "in", "for", "and", "to", "with", "from"}
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
    fields = {
        "author": " and ".join(paper.authors),
        "title": f"{{{paper.title}}}" if paper.title else "",
        "year": str(paper.year or ""),
        "howpublished": paper.venue or "",
        **{name: paper.external_ids.get(scheme, "") for scheme, name in _DIGITAL.items()},
    }
    lines = [f"  {name} = {{{_escaped(name, value)}}}" for name, value in fields.items() if value]
    # The record does not say whether its venue is a journal or a conference: @misc claims neither.
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def _escaped(name: str, value: str) -> str:
    from pylatexenc.latexencode import unicode_to_latex

    if name in _DIGITAL.values():
        return value
    braced = value.startswith("{") and value.endswith("}")
    text = unicode_to_latex(value[1:-1] if braced else value, unknown_char_policy="keep", unknown_char_warning=False)
    return f"{{{text}}}" if braced else str(text)
