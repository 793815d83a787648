"""Semantic Scholar's bulk shards: `papers`, `abstracts`, `tldrs`, `citations` (docs/formats.md).

A parser raises RecordError if an id is missing, or a field is of a type that cannot be read.
"""

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

from citerec.corpus import reading as values
from citerec.corpus.base import DATASETS, json_lines, paper_of
from citerec.files.text import one_line, printable
from citerec.records import Citation, Deletion, Paper, PaperText, Record

# SciCite and older releases name the same class of intent differently.
_INTENTS = {"methodology": "method", "method": "method", "background": "background", "result": "result"}


def parse_paper(record: Mapping[str, Any]) -> Paper:
    """A record of `papers`."""
    journal, ids = record.get("journal"), values.read_object(record, "externalids")
    journal_name = values.read_plain(journal, "name") if isinstance(journal, dict) else None
    schemes = [scheme for scheme, value in ids.items() if value is not None and scheme != "CorpusId"]  # most are null
    # The same category occurs once per source; "And" is written both ways.
    fields = (values.read_text(item, "category") for item in values.read_list(record, "s2fieldsofstudy", dict))
    names = (values.read_plain(author, "name") for author in values.read_list(record, "authors", dict))
    return paper_of(
        values.read_id(record, "corpusid"),
        {printable(scheme): values.read_external_id(ids, scheme) for scheme in schemes},
        untitled=True,  # the abstract comes apart
        title=values.read_plain(record, "title") or "",
        year=values.read_year(record, "year"),
        venue=values.read_plain(record, "venue") or journal_name,
        authors=tuple(filter(None, names)),
        fields_of_study=tuple(dict.fromkeys(field.replace(" And ", " and ") for field in fields if field)),
        citation_count=values.read_count(record, "citationcount"),
    )


def text_of(table: str, key: str, record: Mapping[str, Any]) -> PaperText:
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


def known_intents(names: Any) -> tuple[str, ...]:
    """The intents of a list by citerec's names for them; others are left out, and so are values that are not a list."""
    if not isinstance(names, list):
        return ()
    return tuple(dict.fromkeys(_INTENTS[value] for value in names if isinstance(value, str) and value in _INTENTS))


PAPERS = json_lines(  # s2orc_v2 has titles too
    "s2ag-papers", parse_paper, lambda record: {"corpusid", "title"} <= record.keys() and "body" not in record
)
ABSTRACTS = json_lines("s2ag-abstracts", partial(text_of, "abstracts", "abstract"), {"corpusid", "abstract"}.issubset)
TLDRS = json_lines("s2ag-tldrs", partial(text_of, "tldrs", "text"), {"corpusid", "text", "model"}.issubset)
CITATIONS = json_lines("s2ag-citations", parse_citation, {"citingcorpusid"}.issubset)
CHANGED_CITATIONS = json_lines("s2ag-citations-upserts", parse_changed_citation)
DELETED_PAPERS, DELETED_ABSTRACTS, DELETED_TLDRS, DELETED_CITATIONS = (
    json_lines(f"s2ag-{dataset}-deletes", partial(parse_deletion, dataset)) for dataset in DATASETS
)
