"""Contexts from JSON Lines files (docs/formats.md) and from running text; their JSON."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import platformdirs

from citerec.contexts.markers import CitationMarker, Style
from citerec.contexts.split import sentences_of, splitter
from citerec.corpus.base import DOCUMENTS, QUERIES
from citerec.corpus.reading import (
    BadRecord,
    RecordError,
    optional_id,
    parsed,
    raw_lines,
    read_count,
    read_list,
    read_strings,
    read_text,
    read_year,
    tried,
)
from citerec.errors import InputError, QueryError, SourceError
from citerec.files.text import printable
from citerec.files.writing import beside, remove
from citerec.records import MARKER, OTHER_MARKER, Context, Paper, json_id

_TEXTS = ("citing_key", "section", "source", "intent", "marker", "style", "citing_title")
_ALWAYS_WRITTEN = (
    *("context_id", "text", "before", "after", "citing_id", "citing_key", "citing_year", "cited_ids"),
    *("section", "source", "intent", "marker", "style", "start", "end"),
)
_CONTEXT = 'A context is {"context_id": …, "text": "… <REF> …", "cited_ids": […]}, one per line: docs/formats.md.'
_GRADE = re.compile(r"-?\d+")
_PARAGRAPH = re.compile(r"\n\s*\n")


def read_contexts(path: Path, *, cited: bool = False) -> Iterator[Context]:
    """Yields the contexts of a JSON Lines file (docs/formats.md), plain or gzip.

    Args:
        path: The file.
        cited: Whether each must name a cited paper, as evaluation requires.

    Raises:
        SourceError: The file cannot be read.
        InputError: A line is not a context, or repeats a context id; the message names the line.
    """
    lines = placed_lines(path, "one context")
    places = ((place, parsed(raw, partial(parse_context, default_id=f"line-{at}"))) for place, at, raw in lines)
    yield from checked_contexts(places, cited=cited)


def placed_lines(path: Path, content: str) -> Iterator[tuple[str, int, bytes]]:
    """The lines of a file, plain or gzip: each after its place, which errors name, and its number.

    Raises:
        SourceError: The file cannot be read, or is empty; `content` is what each line should hold.
    """
    number = 0
    for number, raw, _ in raw_lines(path):
        yield f"{path}, line {number}", number, raw
    if not number:
        raise SourceError(f"{path} is empty", f"Give a file with {content} per line.")


def checked_contexts(places: Iterable[tuple[str, Context | BadRecord]], *, cited: bool) -> Iterator[Context]:
    """The contexts of some places, which errors name; an InputError if one is none, or repeats an id.

    Args:
        places: Each place with what is there.
        cited: Whether each must name a cited paper.
    """
    seen: set[str] = set()
    for place, context in places:
        if isinstance(context, BadRecord):
            fault = context.reason
        elif context.context_id in seen:
            fault = f"context_id {context.context_id} occurs twice"
        elif cited and not context.cited_ids:
            fault = "cited_ids is missing or empty"
        else:
            seen.add(context.context_id)
            yield context
            continue
        raise InputError(f"{place}: {fault}", _CONTEXT)


def read_queries(queries: Path, qrels: Path | None = None) -> Iterator[Context]:
    """Contexts from queries and their relevant papers. A query without `<REF>` has it at its end.

    Args:
        queries: A folder of BEIR; JSON Lines with `_id` and `text`; or topics, lines with an id, a tab and a text.
        qrels: Lines of query, paper and grade, as in BEIR, or of query, iteration, paper and grade, as in TREC; of a
            folder by default its `qrels/test.tsv`, or else all that it has.

    Raises:
        SourceError: A file cannot be read.
        InputError: A line is no query or no judgement, or a query occurs twice. Those without a relevant paper are
            left out.
    """
    judged = [qrels] if qrels else sorted(queries.glob("qrels/test.tsv")) or sorted(queries.glob("qrels/*.tsv"))
    cited, columns = defaultdict[str, list[str]](list), 0
    for path in judged:
        for place, number, raw in placed_lines(path, "a query, a paper and a grade"):
            query, *paper, grade = raw.decode("utf-8", "replace").split() or [""]
            is_grade = _GRADE.fullmatch(grade)
            if number == 1 and not is_grade:  # a header
                continue
            columns = columns or len(paper)
            if not (paper and is_grade) or len(paper) != columns:
                remedy = "Write query, paper and grade on each line, or query, 0, paper and grade."
                raise InputError(f"{place}: no judgement like those before", remedy)
            cited[query] += [paper[-1]] if int(grade) > 0 else []
    lines = placed_lines(queries / QUERIES if queries.is_dir() else queries, "a query")
    yield from _cited_contexts(((place, raw) for place, _, raw in lines), cited)


def _cited_contexts(queries: Iterable[tuple[str, bytes]], cited: Mapping[str, Sequence[str]]) -> Iterator[Context]:
    contexts = ((place, tried(partial(_query, raw, cited), raw)) for place, raw in queries)
    yield from (one for one in checked_contexts(contexts, cited=False) if one.cited_ids)


def _query(raw: bytes, cited: Mapping[str, Sequence[str]]) -> Context:
    is_json, parts = raw.lstrip().startswith(b"{"), raw.decode().strip().partition("\t")
    record = orjson.loads(raw) if is_json else {"_id": parts[0], "text": parts[2]}
    name, text, metadata = str(record.get("_id", "")), str(record.get("text", "")), record.get("metadata")
    if not name or not text:
        raise RecordError("not a query: it has no id or no text")
    text = text if MARKER in text else f"{text} {MARKER}"
    # That of others may be anything; that which `write_queries` has written is the context.
    context = metadata if isinstance(metadata, dict) and "context_id" in metadata else {}
    return parse_context({**context, "context_id": name, "text": text, "cited_ids": list(cited.get(name, ()))})


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSON Lines after those that the file has."""
    with path.open("ab") as file:
        file.writelines(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)


def write_queries(folder: Path, contexts: Iterable[Context], papers: Iterable[Paper]) -> None:
    """Writes a new folder of BEIR that `read_queries` reads: papers are its documents, contexts its queries.

    The text of a query has its `<REF>`; its metadata is the whole context, and that of a document the rest of
    the paper.
    """
    listed = list(contexts)  # first: what is wrong with them is said before anything is written
    (folder / "qrels").mkdir(parents=True)
    write_records(folder / DOCUMENTS, map(_document, papers))
    queries = ({"_id": one.context_id, "text": one.text, "metadata": as_record(one)} for one in listed)
    write_records(folder / QUERIES, queries)
    pairs = (f"{one.context_id}\t{paper_id}\t1\n" for one in listed for paper_id in one.cited_ids)
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="") as file:
        file.writelines(["query-id\tcorpus-id\tscore\n", *pairs])


def _document(paper: Paper) -> dict[str, Any]:
    rest = {name: value for name, value in asdict(paper).items() if value and name not in ("title", "abstract")}
    return {"_id": paper.paper_id, "title": paper.title, "text": paper.abstract or "", "metadata": rest}


IRDS = "irds:"
"""Begins the address of a collection of ir_datasets (MacAvaney et al., SIGIR 2021)."""


def irds_folder(address: str) -> Path:
    """The folder of BEIR of a collection, which ir_datasets fetches at the first call; it is kept in the user's cache.

    Args:
        address: `irds:NAME`, such as `irds:beir/scidocs`.

    Raises:
        InputError: There is no such collection, or it cannot be fetched, or a query has no id or no text.
    """
    import ir_datasets

    name = address.removeprefix(IRDS)
    folder = platformdirs.user_cache_path("citerec") / "irds" / name.replace("/", "-")
    if folder.is_dir():
        return folder
    try:
        dataset, cited = ir_datasets.load(name), defaultdict[str, list[str]](list)
        for judged in dataset.qrels_iter() if dataset.has_qrels() else ():
            cited[judged.query_id] += [judged.doc_id] if judged.relevance > 0 else []
        queries = (
            (f"{address}, query {one.query_id}", orjson.dumps({"_id": one.query_id, "text": one.default_text()}))
            for one in (dataset.queries_iter() if dataset.has_queries() else ())
        )
        partial_folder = beside(folder, "new")
        remove(partial_folder)  # of an interrupted call
        write_queries(partial_folder, _cited_contexts(queries, cited), map(_paper_of_document, dataset.docs_iter()))
        partial_folder.rename(folder)
    except (KeyError, OSError, RuntimeError) as error:
        remedy = "Its collections are listed at https://ir-datasets.com."
        raise InputError(f"ir_datasets cannot give {name!r} ({error!r:.150})", remedy) from error
    return folder


def _paper_of_document(document: Any) -> Paper:
    text = getattr(document, "abstract", "") or getattr(document, "text", "") or document.default_text()
    return Paper(document.doc_id, title=getattr(document, "title", ""), abstract=text)


def ir_dataset(folder: str | Path) -> Any:
    """A folder of BEIR, such as `diagnostics export` writes, as a dataset of ir_datasets."""
    import ir_datasets
    from ir_datasets.datasets.beir import BeirQrels, BeirTitleDoc
    from ir_datasets.formats import JsonlDocs, JsonlQueries

    documents, queries, judged = (
        ir_datasets.util.LocalDownload(Path(folder, name)) for name in (DOCUMENTS, QUERIES, "qrels/test.tsv")
    )
    return ir_datasets.Dataset(
        JsonlDocs(documents, BeirTitleDoc, {"doc_id": "_id", "title": "title", "text": "text"}),
        JsonlQueries(queries, mapping={"query_id": "_id", "text": "text"}),
        BeirQrels(judged, {1: "cited"}),
    )


class ContextFile:
    """The contexts of a JSON Lines file: an iterable with a length, which does not keep them in memory."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._count = sum(1 for _ in raw_lines(self.path))

    def __iter__(self) -> Iterator[Context]:
        return read_contexts(self.path)

    def __len__(self) -> int:
        return self._count


def load_contexts(path: str | Path) -> ContextFile:
    """The contexts of a JSON Lines file (docs/formats.md), plain or gzip, read as they are needed.

    Raises:
        SourceError: The file cannot be read.
        InputError: While iterating: a line is not a context, or repeats a context id; the message names the line.
    """
    return ContextFile(path)


def parse_context(record: dict[str, Any], default_id: str = "") -> Context:
    """A context from its JSON object.

    Raises:
        RecordError: It has no text, not exactly one `<REF>`, an id with white space, or a field of a wrong type.
    """
    text = read_text(record, "text")
    if not text:
        raise RecordError("text is missing")
    if (markers := text.count(MARKER)) != 1:
        raise RecordError(f"the text holds {markers} {MARKER}, where one should be")
    return Context(
        text=text,
        before=read_text(record, "before") or "",
        after=read_text(record, "after") or "",
        context_id=optional_id(record, "context_id") or default_id,
        citing_id=optional_id(record, "citing_id"),
        citing_year=read_year(record, "citing_year"),
        cited_ids=tuple(dict.fromkeys(_listed_ids(record, "cited_ids"))),
        labels=_read_labels(record),
        start=read_count(record, "start"),
        end=read_count(record, "end"),
        **{name: read_text(record, name) for name in _TEXTS},
        citing_authors=read_strings(record, "citing_authors"),
        cited_before=None if record.get("cited_before") is None else tuple(_listed_ids(record, "cited_before")),
    )


def _listed_ids(record: dict[str, Any], name: str) -> Iterator[str]:
    """Ids in order, those that are repeated as often as they are."""
    ids = (optional_id({name: value}, name) for value in read_list(record, name))
    return (paper_id for paper_id in ids if paper_id)


def _read_labels(record: dict[str, Any]) -> dict[str, str]:
    labels = record.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise RecordError("labels is not an object of classes by family")
    return {printable(family): printable(label) for family, label in labels.items()}


def as_record(context: Context) -> dict[str, Any]:
    """The JSON object of a context, as `parse_context` reads it; rare fields only if they are known."""
    record = {name: getattr(context, name) for name in _ALWAYS_WRITTEN}
    record["citing_id"] = json_id(context.citing_id) if context.citing_id else None
    record["cited_ids"] = list(map(json_id, context.cited_ids))
    if context.citing_title:
        record["citing_title"] = context.citing_title
    if context.citing_authors:
        record["citing_authors"] = list(context.citing_authors)
    if context.cited_before is not None:
        record["cited_before"] = list(map(json_id, context.cited_before))
    return {**record, "labels": dict(context.labels)} if context.labels else record


def contexts_of_text(text: str) -> list[Context]:
    """One context for each `<REF>` of a running text: its sentence, and the sentences around it.

    A text without `<REF>` is one context, unchanged.

    Raises:
        QueryError: The text is blank.
    """
    text = printable(text)
    if not text.strip():
        raise QueryError("the sentence is empty", 'Write one, for example: "… was shown by <REF> …"')
    if MARKER not in text:
        return [Context(text=" ".join(text.split()))]
    paragraphs = (" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(text) if MARKER in paragraph)
    return [context for paragraph in paragraphs for context in _contexts_of_paragraph(paragraph)]


def context_of_sentence(text: str) -> Context:
    """The context of the one `<REF>` of a sentence.

    Raises:
        QueryError: There is none, or there are several.
    """
    if (refs := text.count(MARKER)) != 1:
        raise QueryError(f"the sentence holds {refs} {MARKER}", f'Write one, for example: "… was shown by {MARKER} …"')
    (context,) = contexts_of_text(text)
    return context


def _contexts_of_paragraph(paragraph: str) -> Iterator[Context]:
    places = (match.span() for match in re.finditer(MARKER, paragraph))
    markers = [CitationMarker(start, end, Style.NUMBERED_BRACKETS, 1) for start, end in places]
    sentences = [paragraph[start:end] for start, end in sentences_of(paragraph, markers, splitter())]
    if "".join(sentences).count(MARKER) != len(markers):  # the splitter lost one
        sentences = [paragraph]
    plain = ["", *(" ".join(sentence.replace(MARKER, "").split()) for sentence in sentences), ""]
    for at, sentence in enumerate(sentences):
        parts = sentence.split(MARKER)
        for nth in range(1, len(parts)):
            # For other markers there is "[…]", which is no word of the sentence.
            text = OTHER_MARKER.join(parts[:nth]) + MARKER + OTHER_MARKER.join(parts[nth:])
            yield Context(text=text, before=plain[at], after=plain[at + 2])
