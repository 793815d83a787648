"""OpenAlex: works, and the ids of works that are no longer there (docs/formats.md).

A parser raises RecordError if an id is missing, or a field is of a type that cannot be read.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from citerec.corpus import reading as values
from citerec.corpus.base import Format, json_lines, paper_of, read_lines
from citerec.corpus.matching import ARXIV_DOI, arxiv_in, doi_in, first_of
from citerec.corpus.reading import RecordError, check_size, plain
from citerec.files.text import one_line
from citerec.records import Citation, Deletion, Paper, Record

_WORK = re.compile(r"(?:https?://(?:api\.|www\.)?openalex\.org/(?:works/)?)?([Ww]\d{1,15})/?")
_NUMBER = re.compile(r"(?:https?://.*/)?(?:PMC)?(\d+)/?", re.IGNORECASE)
"""An id of PubMed or PubMed Central, or its address."""
HEADER_OF_DELETED = re.compile(rb"work_id,|merge_date,")
"""How the header of a file of deleted or merged ids begins."""


def parse_paper(record: Mapping[str, Any]) -> list[Paper]:
    """The paper of a work.

    Returns:
        Empty for what is no paper: paratext such as a table of contents, and works with neither title nor abstract.
    """
    if record.get("is_paratext") is True or record.get("type") == "paratext":
        return []
    paper = paper_of(
        read_work_id(record.get("id")),
        _external_ids(record),
        untitled=True,
        title=_title(record),
        abstract=_abstract(record.get("abstract_inverted_index")),
        year=_year(record),
        venue=_venue(record),
        authors=tuple(filter(None, map(_author, values.read_list(record, "authorships", dict)))),
        fields_of_study=_fields(record),
        citation_count=values.read_count(record, "cited_by_count"),
    )
    return [paper] if paper.title or paper.abstract else []


def parse_work(record: Mapping[str, Any]) -> list[Record]:
    """The paper of a work as `parse_paper` gives it, and a citation for each of its references, without a sentence.

    What is no work among the references is left out.
    """
    papers = parse_paper(record)
    references = record.get("referenced_works")
    texts = references if isinstance(references, list) else []
    works = (_WORK.fullmatch(one.strip()) for one in texts if isinstance(one, str))
    cited_ids = dict.fromkeys(match[1].upper() for match in works if match)
    citations = (Citation(paper.paper_id, one, citing_year=paper.year) for paper in papers for one in cited_ids)
    return [*papers, *(citation for citation in citations if citation.cited_id != citation.citing_id)]


def read_work_id(value: Any) -> str:
    """The id of a work, as "W123"; RecordError if it is none."""
    match = _WORK.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise RecordError(f"id is no work of OpenAlex: {value!r:.60}")
    return match[1].upper()


def parse_deleted(raw: bytes) -> Deletion:
    """The deletion of a line: `work_id,deleted_date`, or `merge_date,id,merge_into_id` of earlier snapshots."""
    cells = raw.decode().strip().split(",")
    if len(cells) not in (2, 3):
        raise RecordError(f"{len(cells)} cells where deleted works have 2, and merged ones 3")
    return Deletion("papers", read_work_id(cells[len(cells) - 2]))


def _title(record: Mapping[str, Any]) -> str:
    title = values.read_plain(record, "title") or values.read_plain(record, "display_name") or ""
    # `citerec check` and readers go by titles: many that were retracted say so there, but not all.
    if record.get("is_retracted") is True and title and "retract" not in title.lower():
        return f"RETRACTED: {title}"
    return title


def _abstract(index: Any) -> str | None:
    """The text of an inverted index: its words in the order of their positions.

    A position may be missing, or have two words: the words that are there are written in order.
    """
    if index is None:
        return None
    if not isinstance(index, dict):
        raise RecordError(f"abstract_inverted_index is a {type(index).__name__}, not an object")
    places = [(word, positions if isinstance(positions, list) else [positions]) for word, positions in index.items()]
    check_size(sum((len(word) + 1) * len(positions) for word, positions in places))  # before they are written out
    placed = [(position, word) for word, positions in places for position in positions]
    if wrong := [position for position, _ in placed if type(position) is not int]:
        raise RecordError(f"abstract_inverted_index has a position that is no whole number: {wrong[0]!r:.60}")
    placed.sort(key=lambda item: item[0])  # words of one position stay in the order of the index
    return plain(one_line(" ".join(word for _, word in placed))) or None


def _year(record: Mapping[str, Any]) -> int | None:
    """The year of publication, unless it is 0, or later than the year after the record was last changed: an error."""
    year = values.read_year(record, "publication_year")
    changed = str(record.get("updated_date") or "")[:4]
    return None if not year or (changed.isdecimal() and year > int(changed) + 1) else year


def _venue(record: Mapping[str, Any]) -> str | None:
    place = values.read_object(record, "primary_location")
    source = values.read_object(place, "source") or values.read_object(record, "host_venue")
    return values.read_plain(source, "display_name") or values.read_plain(place, "raw_source_name")


def _author(author: Mapping[str, Any]) -> str | None:
    name = values.read_plain(values.read_object(author, "author"), "display_name")
    return name or values.read_plain(author, "raw_author_name")


def _fields(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of its topics, the primary one first; in records without topics, its concepts of level 0."""
    topics = [values.read_object(record, "primary_topic"), *values.read_list(record, "topics", dict)]
    names = [values.read_text(values.read_object(topic, "field"), "display_name") for topic in topics]
    if not any(names):
        concepts = values.read_list(record, "concepts", dict)
        names = [values.read_text(concept, "display_name") for concept in concepts if concept.get("level") == 0]
    return tuple(dict.fromkeys(filter(None, names)))


def _external_ids(record: Mapping[str, Any]) -> dict[str, str | None]:
    ids, places = values.read_object(record, "ids"), values.read_list(record, "locations", dict | None)
    doi = doi_in(values.read_external_id(record, "doi") or values.read_external_id(ids, "doi") or "")
    pubmed, central = (_NUMBER.fullmatch(values.read_external_id(ids, key) or "") for key in ("pmid", "pmcid"))
    places = [place for place in (values.read_object(record, "primary_location"), *places) if place]
    addresses = (values.read_text(place, key) or "" for place in places for key in ("landing_page_url", "pdf_url"))
    return {
        "DOI": doi,
        "MAG": values.read_external_id(ids, "mag"),
        "PubMed": pubmed and pubmed[1],
        "PubMedCentral": central and central[1],
        "ArXiv": doi[len(ARXIV_DOI) :] if doi.casefold().startswith(ARXIV_DOI) else first_of(arxiv_in, addresses),
    }


_OF_WORKS = {"referenced_works", "abstract_inverted_index"}
# Stores keep no citation without a sentence.
WORKS = json_lines("openalex", parse_paper, lambda record: not _OF_WORKS.isdisjoint(record))
DELETED = Format(
    "openalex-deleted", partial(read_lines, parse=parse_deleted, header=HEADER_OF_DELETED), (".csv",), HEADER_OF_DELETED
)
