"""arXiv: the lines of its metadata file, and ids of papers that were deleted (docs/formats.md).

Pages of its OAI-PMH interface are turned into the same lines: `citerec.sources.arxiv`. A parser raises
RecordError if an id is missing, or a field is of a type that cannot be read.
"""

import re
from collections.abc import Mapping
from typing import Any

from citerec.corpus.base import json_lines, paper_of
from citerec.corpus.matching import doi_in, year_in
from citerec.corpus.reading import RecordError, plain, read_external_id, read_id, read_list, read_plain, read_text
from citerec.records import Deletion, Paper

_ID = re.compile(r"\d{4}\.\d{4,5}|[a-z][a-z-]*(?:\.[A-Z]{2})?/\d{7}")
_FIRST_YEAR = 91  # of the century before: the first paper is of 1991

_FIELDS = {
    "Computer Science": "cs cmp-lg",
    "Mathematics": "math alg-geom dg-ga funct-an q-alg",
    "Physics": (
        "physics astro-ph cond-mat gr-qc hep-ex hep-lat hep-ph hep-th math-ph nlin nucl-ex nucl-th quant-ph acc-phys "
        "adap-org ao-sci atom-ph bayes-an chao-dyn chem-ph comp-gas mtrl-th patt-sol plasm-ph solv-int supr-con"
    ),
    "Economics": "econ",
    "Electrical Engineering and Systems Science": "eess",
    "Quantitative Biology": "q-bio",
    "Quantitative Finance": "q-fin",
    "Statistics": "stat",
}
_FIELD_OF = {archive: field for field, archives in _FIELDS.items() for archive in archives.split()}
"""The field of an archive, also of those that were folded into others: arXiv's own names of its groups."""


def parse_paper(record: Mapping[str, Any]) -> Paper:
    """A line of the metadata file."""
    paper_id = read_arxiv_id(record)
    doi = doi_in(read_external_id(record, "doi") or "").partition(" ")[0]  # some have several
    return paper_of(
        paper_id,
        {"ArXiv": paper_id, "DOI": doi},
        title=read_plain(record, "title") or "",
        abstract=read_plain(record, "abstract"),
        year=_year(record, paper_id),
        venue=read_plain(record, "journal-ref") or "arXiv",
        authors=_authors(record),
        fields_of_study=_fields(record),
    )


def parse_deleted(record: Mapping[str, Any]) -> Deletion:
    """A line with the `id` of a paper that was deleted."""
    return Deletion("papers", read_arxiv_id(record))


def read_arxiv_id(record: Mapping[str, Any]) -> str:
    """The `id` of a record; RecordError if it is none of arXiv."""
    paper_id = read_id(record, "id")
    if not _ID.fullmatch(paper_id):
        raise RecordError(f"id is none of arXiv: {paper_id!r:.60}")
    return paper_id


def _year(record: Mapping[str, Any], paper_id: str) -> int:
    """The year of the first version; of a record without versions, the year in its id."""
    versions = read_list(record, "versions", dict)
    created = read_text(versions[0], "created") if versions else None
    short = int(paper_id.rpartition("/")[2][:2])
    return year_in(created or "") or (1900 if short >= _FIRST_YEAR else 2000) + short


def _authors(record: Mapping[str, Any]) -> tuple[str, ...]:
    names = []
    for parts in read_list(record, "authors_parsed", list):
        last, first, suffix = [*parts, None, None, None][:3]  # affiliations may follow
        if not all(isinstance(part, str | None) for part in (last, first, suffix)):
            raise RecordError(f"authors_parsed has a name that is no text: {parts!r:.60}")
        names.append(plain(" ".join(filter(None, (first, last, suffix)))))
    return tuple(filter(None, names))


def _fields(record: Mapping[str, Any]) -> tuple[str, ...]:
    categories = (read_text(record, "categories") or "").split()
    fields = (_FIELD_OF.get(category.partition(".")[0]) for category in categories)
    return tuple(dict.fromkeys(field for field in fields if field))


def _is_paper(record: Mapping[str, Any]) -> bool:
    return {"id", "categories"} <= record.keys() and ("authors_parsed" in record or "journal-ref" in record)


PAPERS = json_lines("arxiv", parse_paper, _is_paper)
DELETED = json_lines("arxiv-deleted", parse_deleted)
