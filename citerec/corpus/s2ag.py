"""Semantic Scholar's bulk shards: `papers`, `abstracts`, `tldrs`, `citations` (docs/formats.md).

A parser raises RecordError if an id is missing, or a field is of a type that cannot be read.
"""

import functools
import itertools
from collections.abc import Mapping
from typing import Any

from citerec.corpus import values
from citerec.corpus.base import DATASETS, json_lines
from citerec.files.text import one_line, printable
from citerec.records import Citation, Deletion, Paper, PaperText, Record

# SciCite and older releases name the same class of intent differently.
_INTENTS = {"methodology": "method", "method": "method", "background": "background", "result": "result"}


def parse_paper(record: Mapping[str, Any]) -> Paper:
    """A record of `papers`."""
    journal = record.get("journal")
    # The same category occurs once per source; "And" is written both ways.
    fields = (values.read_text(item, "category") for item in values.read_list(record, "s2fieldsofstudy", dict))
    return Paper(
        paper_id=values.read_id(record, "corpusid"),
        title=values.read_plain(record, "title") or "",
        year=values.read_year(record, "year"),
        venue=values.read_plain(record, "venue")
        or (values.read_plain(journal, "name") if isinstance(journal, dict) else None),
        authors=tuple(
            name for author in values.read_list(record, "authors", dict) if (name := values.read_plain(author, "name"))
        ),
        fields_of_study=tuple(dict.fromkeys(field.replace(" And ", " and ") for field in fields if field)),
        citation_count=values.read_count(record, "citationcount"),
        external_ids=_external_ids(record),
    )


def parse_text(table: str, key: str, record: Mapping[str, Any]) -> PaperText:
    """A record of `abstracts` or `tldrs`, whose text is the value of a key."""
    return PaperText(table, values.read_id(record, "corpusid"), values.read_text(record, key))


def parse_citation(record: Mapping[str, Any]) -> Citation:
    """A record of `citations`; its intents flat (old releases) or one list per context (new ones)."""
    contexts = values.read_list(record, "contexts", str | None)
    nested = values.read_list(record, "intents")
    if all(isinstance(item, str) for item in nested):
        nested = [nested] * len(contexts)
    pairs = zip(contexts, itertools.chain(nested, itertools.repeat(None)), strict=False)
    kept = [(text, known_intents(intents)) for context, intents in pairs if (text := one_line(context or ""))]
    texts, intents = zip(*kept, strict=True) if kept else ((), ())
    ids = values.read_id(record, "citingcorpusid"), values.optional_id(record, "citedcorpusid")
    citation_id = values.optional_id(record, "citationid") or ""
    return Citation(*ids, texts, intents, record.get("isinfluential") is True, citation_id)


def parse_deletion(dataset: str, record: Mapping[str, Any]) -> Deletion:
    """A record of the deletions of a dataset: its primary key there."""
    return Deletion(dataset, values.read_id(record, "citationid" if dataset == "citations" else "corpusid"))


def parse_changed_citation(record: Mapping[str, Any]) -> list[Record]:
    """A record of `citations` in an update: it replaces that of its id, even if it lacks sentences or names others."""
    citation = parse_citation(record)
    return [Deletion("citations", citation.citation_id), citation] if citation.citation_id else [citation]


def _external_ids(record: Mapping[str, Any]) -> dict[str, str]:
    ids = values.read_object(record, "externalids")
    given = [scheme for scheme, value in ids.items() if value is not None and scheme != "CorpusId"]  # most are null
    found = {printable(scheme): values.read_external_id(ids, scheme) for scheme in given}
    return {scheme: value for scheme, value in found.items() if value}


def known_intents(names: Any) -> tuple[str, ...]:
    """The intents of a list by citerec's names for them; others are left out, and so are values that are not a list."""
    if not isinstance(names, list):
        return ()
    return tuple(dict.fromkeys(_INTENTS[value] for value in names if isinstance(value, str) and value in _INTENTS))


PAPERS = json_lines(  # s2orc_v2 has titles too
    "s2ag-papers", parse_paper, lambda record: {"corpusid", "title"} <= record.keys() and "body" not in record
)
ABSTRACTS, TLDRS = (
    json_lines(f"s2ag-{table}", functools.partial(parse_text, table, key), keys.issubset)
    for table, key, keys in (
        ("abstracts", "abstract", {"corpusid", "abstract"}),
        ("tldrs", "text", {"corpusid", "text", "model"}),
    )
)
CITATIONS = json_lines("s2ag-citations", parse_citation, {"citingcorpusid"}.issubset)
CHANGED_CITATIONS = json_lines("s2ag-citations-upserts", parse_changed_citation)
DELETED_PAPERS, DELETED_ABSTRACTS, DELETED_TLDRS, DELETED_CITATIONS = (
    json_lines(f"s2ag-{dataset}-deletes", functools.partial(parse_deletion, dataset)) for dataset in DATASETS
)
