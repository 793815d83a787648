"""Bibliographies of papers, in each form that citerec writes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from citerec.corpus.bibtex import bibtex_entries
from citerec.corpus.csl import csl_items
from citerec.corpus.ris import ris_records
from citerec.records import Paper

FORMS: Mapping[str, Callable[[Iterable[Paper]], list[Any]]] = {
    "bibtex": bibtex_entries,
    "csl": csl_items,
    "ris": ris_records,
}
"""The writers by the name of their form: BibTeX, CSL-JSON, RIS."""


def entries_of(papers: Iterable[Paper], form: str) -> list[Any]:
    """Entries of papers in one of the `FORMS`, each paper once: texts, or JSON objects for `csl`."""
    return FORMS[form]({paper.paper_id: paper for paper in papers}.values())
