"""Reads and writes tasks and predictions in the shapes of docs/formats.md; citerec's own is that of CiteBench."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from citerec.contexts.sections import is_abstract
from citerec.corpus.json_lines import (
    BadRecord,
    RecordError,
    json_object,
    list_values,
    raw_lines,
    read_failures,
    tried,
)
from citerec.corpus.values import optional_id, read_list, read_strings, read_text
from citerec.errors import InputError, SourceError
from citerec.files.progress import Progress, no_progress
from citerec.files.registry import Registry
from citerec.files.rejected import FULL_TEXT_BYTES
from citerec.files.text import printable, replaced
from citerec.files.writing import write_failures, writing_file
from citerec.write.anchors import UNKNOWN, anchors_of
from citerec.write.tasks import INPUTS, Prediction, Sentence, Source, TextTask, sees_target, text_of

Item = TypeVar("Item")

JSON_REMEDY = "Give JSON Lines, or one JSON list of objects."
"""What to give in place of a file that is neither."""
_ROWS = 16  # of Parquet in memory: one may hold a dozen full texts
_REPORTED_EVERY = 1000
_TAGS = ("abs", "ctx_b", "ctx_a")
_TAGGED = re.compile(rf"\s*<({'|'.join(_TAGS)})>(.*)</\1>\s*", re.DOTALL)
_OF_TASK = {"id", "dataset", "input", "target", "sources", "source"}
_OF_SOURCE = {"paper_id", "title", "authors"}
_OF_PREDICTION = {"prediction", "writer", "settings", "sentences", "knows_target", "served_in_training"}
_TASK = 'A task is {"input": ["<abs> … </abs>", "cited abstract", …], "target": "…"}: docs/formats.md.'
_PREDICTION = 'A prediction is a task with "prediction": "…": docs/formats.md.'


class TaskFormat(Protocol):
    """The records of a published data set, in a shape of its own."""

    name: str

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Whether a record has this shape."""

    def parse(self, record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True) -> TextTask:
        """A task with the full texts of its papers if the record has them; errors as for `parse_task`."""


TASK_FORMATS: Registry[TaskFormat] = Registry("task format", {})
"""The shapes of data sets beside citerec's own; each stands in the folder of its paper."""


def read_tasks(path: Path, *, full_texts: bool = False) -> Iterator[TextTask]:
    """Yields the tasks of a file: JSON Lines, plain or gzip, or one JSON list, or Parquet.

    Args:
        path: The file.
        full_texts: Whether tasks get the full texts of their papers (`rest`), if the file has them.

    Raises:
        SourceError: The file cannot be read, or is empty.
        InputError: A record is no task, or repeats an id; the message names its place.
    """
    return _read(path, partial(parse_task, full_texts=full_texts), _name_of, _TASK)


def read_prediction_file(path: Path) -> Iterator[Prediction]:
    """Yields the predictions of a file: tasks that have a `prediction`. Errors as for `read_tasks`."""
    return _read(
        path, parse_prediction, lambda prediction: (*_name_of(prediction.task), prediction.writer), _PREDICTION
    )


def parse_task(
    record: dict[str, Any], default_id: str = "", *, sources_needed: bool = True, full_texts: bool = False
) -> TextTask:
    """A task from its JSON object, in a shape of docs/formats.md, with `default_id` if it has no id.

    Raises:
        RecordError: It has no text to write from, if that is needed, or a field of a wrong type.
    """
    if published := next((one for _, one in TASK_FORMATS.items() if one.recognises(record)), None):
        task = published.parse(record, default_id, sources_needed=sources_needed)
        if full_texts:
            return task
        return replace(task, sources=tuple(replace(one, rest=None) for one in task.sources), citing_rest=None)
    parts: dict[str, list[str]] = {tag: [] for tag in ("", *_TAGS)}
    for text in _texts(record, "input"):
        tagged = _TAGGED.fullmatch(text)
        parts[tagged[1] if tagged else ""].append((tagged[2] if tagged else text).strip())
    citing, before, after = (" ".join(parts[tag]) for tag in _TAGS)
    sources = _sources(record, parts[""])
    if sources_needed and not any(source.text for source in sources):
        raise RecordError("input has no cited text to write from")
    input_name = record.get("given")
    is_input = isinstance(input_name, str) and input_name in INPUTS
    fields = _OF_TASK | _OF_PREDICTION | {name for name in ("title",) if "source" in record}
    fields |= {name for name in ("given",) if is_input}
    of_source = sources[0].paper_id if "source" in record else None
    return TextTask(
        task_id=optional_id(record, "id") or of_source or default_id,
        sources=sources,
        citing=citing,
        before=before,
        after=after,
        targets=tuple(_texts(record, "target")),
        dataset=read_text(record, "dataset") or "",
        extra={name: value for name, value in record.items() if name not in fields},
        input_name=str(input_name) if is_input else "",
        citing_rest=_rest_of(record["document"]) if full_texts and record.get("document") is not None else None,
    )


def _sources(record: dict[str, Any], texts: Sequence[str]) -> tuple[Source, ...]:
    """The sources of a task: a paper in sentences (SciTLDR), or `texts`, with what `sources` says of each."""
    if "source" in record:
        sentences = tuple(_texts(record, "source"))
        title = read_text(record, "title") or ""
        return (Source(" ".join(sentences), optional_id(record, "paper_id"), title, sentences),)
    papers = read_list(record, "sources") or [{}] * len(texts)
    if len(papers) != len(texts) or not all(isinstance(paper, dict) for paper in papers):
        raise RecordError("sources does not name one paper for each cited text of input")
    return tuple(
        Source(
            text,
            optional_id(paper, "paper_id"),
            read_text(paper, "title") or "",
            authors=read_strings(paper, "authors"),
            extra={name: value for name, value in paper.items() if name not in _OF_SOURCE},
        )
        for text, paper in zip(texts, papers, strict=True)
    )


def _rest_of(document: Any) -> Source | None:
    """The rest of the citing paper, as `citerec data related-work` writes it."""

    def paragraphs(section: dict[str, Any]) -> list[list[str]]:
        if is_abstract(section["headline"]):
            return []
        own = [[_without_numbers(sentence) for sentence in paragraph] for paragraph in section["paragraphs"]]
        return own + [paragraph for inner in section["sections"] for paragraph in paragraphs(inner)]

    try:
        return text_of([paragraph for section in document for paragraph in paragraphs(section)])
    except (TypeError, KeyError, AttributeError):
        raise RecordError("document is no list of sections: {headline, paragraphs, sections}") from None


def _without_numbers(sentence: str) -> str:
    """A sentence with `<cite>UNK</cite>` for `[3]` and the like: the number is not that of a source."""
    numbered = (anchor for anchor in anchors_of(sentence) if anchor.numbers)
    return replaced(sentence, ((anchor.start, anchor.end, f"<cite>{UNKNOWN}</cite>") for anchor in numbered))


def parse_prediction(record: dict[str, Any], default_id: str = "") -> Prediction:
    """A prediction from its JSON object; a RecordError if it is not one, or a field has a wrong type."""
    if not isinstance(record.get("prediction"), str):
        raise RecordError("prediction is missing or is no text")
    settings = record.get("settings")
    if settings is not None and not isinstance(settings, dict):
        raise RecordError("settings is no object")
    task = parse_task(record, default_id, sources_needed=False)
    return Prediction(
        task=task,
        text=printable(record["prediction"]),
        writer=read_text(record, "writer") or "",
        sentences=tuple(map(_sentence, read_list(record, "sentences"))),
        is_oracle=record.get("knows_target") is True or sees_target(task.input_name),
        settings=settings or {},
        served_in_training=record.get("served_in_training") is True,
    )


def _sentence(value: Any) -> Sentence:
    try:
        return Sentence(
            printable(str(value["text"])),
            tuple(map(int, value["drawn_from"])),
            tuple(printable(str(name)) for name in value.get("unknown", ())),
            tuple(map(int, value.get("unsupported", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise RecordError("a sentence is not {text, drawn_from, unknown, unsupported}") from None


def _name_of(task: TextTask) -> tuple[str, ...]:
    return task.dataset, task.task_id


def _texts(record: dict[str, Any], name: str) -> list[str]:
    value = record.get(name)
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise RecordError(f"{name} is neither a text nor a list of texts")
    return [printable(text) for text in values]


def _read(
    path: Path, parse: Callable[[dict[str, Any], str], Item], name_of: Callable[[Item], tuple[str, ...]], remedy: str
) -> Iterator[Item]:
    def parsed(raw: Any, default_id: str) -> Item:
        return parse(json_object(orjson.loads(raw) if isinstance(raw, bytes) else raw), default_id)

    seen: set[tuple[str, ...]] = set()
    for place, raw in _records(path):
        item = tried(partial(parsed, raw, place.replace(" ", "-")), raw if isinstance(raw, bytes) else "")
        if isinstance(item, BadRecord):
            raise InputError(f"{path}, {place}: {item.reason}", remedy)
        if (name := name_of(item)) in seen:
            raise InputError(f"{path}, {place}: {' '.join(filter(None, name))} appears twice", remedy)
        seen.add(name)
        yield item
    if not seen:
        raise SourceError(f"{path} is empty", "Give a file with one record per line.")


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its place; lines are not parsed."""
    with read_failures(path), path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"  # whatever its name
    if is_parquet:
        yield from ((f"row {number}", row) for number, row in enumerate(_parquet_rows(path), 1))
        return
    what = "record" if _is_list(path) else "line"
    yield from ((f"{what} {number}", raw) for number, raw in written_records(path))


def _is_list(path: Path) -> bool:
    """Whether a file is one JSON list, as in CiteBench, rather than JSON Lines."""
    first = next(raw_lines(path, longest=FULL_TEXT_BYTES), None)
    return first is not None and first[1].lstrip().startswith(b"[")


def written_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """The records of a JSON file as they are written, each with its line, or with its number in the list.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, or its list is no JSON.
    """
    if _is_list(path):
        yield from ((number, value.raw) for number, value in enumerate(list_values(path, JSON_REMEDY), 1))
    else:
        yield from ((number, raw) for number, raw, _ in raw_lines(path, longest=FULL_TEXT_BYTES))


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as JSON objects, in order; SourceError if it is damaged, or a row is too long."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with read_failures(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                if any(batch.slice(row, 1).nbytes > FULL_TEXT_BYTES for row in range(batch.num_rows)):
                    raise SourceError(f"{path} has a row of more than {FULL_TEXT_BYTES:,} bytes", "Leave it out.")
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        fault = str(error).splitlines()[0]
        raise SourceError(f"{path} is damaged: {fault}", "Download the file again.") from error


def write_tasks(tasks: Iterable[TextTask], out: Path, on_progress: Progress = no_progress) -> int:
    """Writes tasks as JSON Lines, all of them or no file; returns how many.

    Raises:
        BuildError: The file cannot be written.
    """
    number = 0
    with write_failures(out), writing_file(out) as partial_file, partial_file.open("wb") as file:
        for number, task in enumerate(tasks, 1):
            file.write(orjson.dumps(task_record(task), option=orjson.OPT_APPEND_NEWLINE))
            if number % _REPORTED_EVERY == 0:
                on_progress("tasks", number, 0)
    return number


def input_of(task: TextTask) -> list[str]:
    """The input in CiteBench's form: citing abstract, context before, cited texts, context after, each if known."""
    before = [f"<abs> {task.citing} </abs>"] if task.citing else []
    before += [f"<ctx_b> {task.before} </ctx_b>"] if task.before else []
    after = [f"<ctx_a> {task.after} </ctx_a>"] if task.after else []
    # A source without text is kept, because the numbers in the text count it.
    return [*before, *(source.text for source in task.sources), *after]


def task_record(task: TextTask) -> dict[str, Any]:
    """The JSON object of a task, as `parse_task` reads it back; one target is a text, not a list."""
    record: dict[str, Any] = {"id": task.task_id}
    if task.dataset:
        record["dataset"] = task.dataset
    if len(task.sources) == 1 and task.sources[0].sentences:
        (source,) = task.sources
        record |= {"source": list(source.sentences)}
        if source.title:
            record["title"] = source.title
    else:
        record["input"] = input_of(task)
        if any(source.paper_id or source.title or source.authors or source.extra for source in task.sources):
            record["sources"] = [
                {"paper_id": source.paper_id, "title": source.title, "authors": list(source.authors), **source.extra}
                for source in task.sources
            ]
    if task.targets:
        record["target"] = task.targets[0] if len(task.targets) == 1 else list(task.targets)
    if task.input_name:
        record["given"] = task.input_name
    return {**record, **task.extra}


def sentence_record(sentence: Sentence) -> dict[str, Any]:
    """The JSON object of a sentence of a prediction."""
    return {
        "text": sentence.text,
        "drawn_from": sentence.attributions,
        "unknown": sentence.unknown,
        "unsupported": sentence.unsupported,
    }


def settings_record(prediction: Prediction) -> dict[str, Any]:
    """The settings of a prediction, with the input that its writer was given, if that was chosen."""
    input_name = prediction.task.input_name
    return {**prediction.settings, **({"input": input_name} if input_name else {})}


def prediction_record(prediction: Prediction) -> dict[str, Any]:
    """The JSON object of a prediction, as `parse_prediction` reads it back."""
    record = {**task_record(prediction.task), "prediction": prediction.text, "writer": prediction.writer}
    if prediction.sentences:
        record["sentences"] = list(map(sentence_record, prediction.sentences))
    if prediction.settings:
        record["settings"] = settings_record(prediction)
    if prediction.is_oracle or sees_target(prediction.task.input_name):
        record["knows_target"] = True
    if prediction.served_in_training:
        record["served_in_training"] = True
    return record
