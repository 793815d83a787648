"""Bibliographies of papers, in each form that citerec writes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from citerec.corpus.bibtex import bibtex_entry, own_key
from citerec.corpus.citation_keys import DEFAULT_PATTERN, citation_keys
from citerec.corpus.csl import csl_item
from citerec.corpus.ris import ris_record
from citerec.records import Paper

FORMS: Mapping[str, Callable[[str, Paper], Any]] = {"bibtex": bibtex_entry, "csl": csl_item, "ris": ris_record}
"""What makes an entry of a key and a paper, by the name of the form: BibTeX, CSL-JSON, RIS."""


def entries_of(papers: Iterable[Paper], form: str = "bibtex", pattern: str = DEFAULT_PATTERN) -> list[Any]:
    """One entry per paper, in order, with keys that do not repeat; an author's own BibTeX entries byte for byte.

    Args:
        papers: The papers.
        form: One of `FORMS`. Entries are texts, or JSON objects for `csl`.
        pattern: Of the keys of entries that are made (docs/formats.md, "Citation keys").

    Raises:
        InputError: The pattern is wrong.
    """
    papers = list(papers)
    return [FORMS[form](key, paper) for key, paper in zip(entry_keys(papers, pattern), papers, strict=True)]


def entry_keys(papers: Sequence[Paper], pattern: str = DEFAULT_PATTERN) -> list[str]:
    """The key of each paper: that of the author's own entry, else one made by the pattern that no other paper has.

    Raises:
        InputError: The pattern is wrong.
    """
    own = [own_key(paper) for paper in papers]
    made = iter(citation_keys((paper for paper in papers if not own_key(paper)), pattern, set(filter(None, own))))
    return [key or next(made) for key in own]
