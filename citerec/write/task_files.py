"""Reads and writes tasks and predictions in the shapes of docs/formats.md; citerec's own is that of CiteBench."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import TypeAdapter

from citerec.contexts.sections import is_abstract
from citerec.corpus import reading
from citerec.corpus.reading import RecordError, optional_id, read_list, read_object, read_strings, read_text
from citerec.errors import InputError, SourceError
from citerec.files.progress import Progress, no_progress
from citerec.files.registry import Registry
from citerec.files.text import one_line, printable, replaced
from citerec.files.writing import write_failures, writing_file
from citerec.write.anchors import UNKNOWN, anchors_of
from citerec.write.tasks import INPUTS, Prediction, Sentence, Source, TextTask, sees_target, text_of

Item = TypeVar("Item")

JSON_REMEDY = "Give JSON Lines, or one JSON list of objects."
"""What to give in place of a file that is neither."""
_ROWS = 16  # of Parquet in memory: one may hold a dozen full texts
_TAGGED = re.compile(r"\s*<(abs|ctx_b|ctx_a)>(.*)</\1>\s*", re.DOTALL)
_TASK = 'A task is {"input": ["<abs> … </abs>", "cited abstract", …], "target": "…"}: docs/formats.md.'
_PREDICTION = 'A prediction is a task with "prediction": "…": docs/formats.md.'
_SENTENCES = TypeAdapter(tuple[Sentence, ...])
# What records have besides other fields, which are kept.
_OF_PREDICTION = ("prediction", "writer", "settings", "sentences", "knows_target", "served_in_training")
_OF_TASK = ("id", "dataset", "input", "target", "source", "sources")
_OF_PAPER = ("paper_id", "title", "authors")


class TaskFormat(NamedTuple):
    """The records of a published data set, in a shape of its own.

    Attributes:
        recognises: Whether a record has this shape.
        parse: Makes a task of a record, with the full texts of its papers if the record has them. Errors, and arguments
            but `full_texts`, are those of `parse_task`.
    """

    name: str
    recognises: Callable[[Mapping[str, Any]], object]
    parse: Callable[..., TextTask]


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
    return _read(path, partial(parse_task, full_texts=full_texts), lambda task: (task.dataset, task.task_id), _TASK)


def read_prediction_file(path: Path) -> Iterator[Prediction]:
    """Yields the predictions of a file: tasks that have a `prediction`. Errors as for `read_tasks`."""
    return _read(path, parse_prediction, lambda one: (one.task.dataset, one.task.task_id, one.writer), _PREDICTION)


def parse_task(
    record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True, full_texts: bool = False
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
    extra = _without(record, (*_OF_TASK, *_OF_PREDICTION))
    parts: dict[str, list[str]] = {"": [], "abs": [], "ctx_b": [], "ctx_a": []}
    for text in _texts(record, "input"):
        tagged = _TAGGED.fullmatch(text)
        parts[tagged[1] if tagged else ""].append((tagged[2] if tagged else text).strip())
    if in_sentences := isinstance(record.get("source"), list):  # as in SciTLDR
        sentences = _texts(record, "source")
        sources = [replace(_source(" ".join(sentences), record), sentences=sentences, authors=(), extra={})]
        extra.pop("title", None)
    else:
        papers = read_list(record, "sources", dict) or [{}] * len(parts[""])
        if len(papers) != len(parts[""]):
            raise RecordError("sources does not name one paper for each cited text of input")
        sources = list(map(_source, parts[""], papers))
    if sources_needed and not any(source.text for source in sources):
        raise RecordError("input has no cited text to write from")
    return TextTask(
        task_id=optional_id(record, "id") or (in_sentences and sources[0].paper_id) or default_id,
        sources=tuple(sources),
        citing=" ".join(parts["abs"]),
        before=" ".join(parts["ctx_b"]),
        after=" ".join(parts["ctx_a"]),
        targets=_texts(record, "target"),
        dataset=read_text(record, "dataset") or "",
        input_name=extra.pop("given") if extra.get("given") in INPUTS else "",
        extra=extra,
        citing_rest=text_of(list(_paragraphs(read_list(record, "document")))) if full_texts else None,
    )


def _without(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The texts of a list; one text is a list of one."""
    value = record.get(name)
    return tuple(map(printable, [value] if isinstance(value, str) else read_list(record, name, str)))


def _source(text: str, paper: Mapping[str, Any]) -> Source:
    """A source with what a record says of its paper."""
    title, authors = read_text(paper, "title") or "", read_strings(paper, "authors")
    return Source(text, optional_id(paper, "paper_id"), title, authors=authors, extra=_without(paper, _OF_PAPER))


def _paragraphs(sections: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The paragraphs of sections, in sentences, and of those in them; none of an abstract.

    `[3]` and the like become `<cite>UNK</cite>`: the number is not that of a source.
    """
    for section in sections:
        if not is_abstract(section["headline"]):
            for paragraph in section["paragraphs"]:
                yield list(map(_without_numbers, paragraph))
            yield from _paragraphs(section["sections"])


def _without_numbers(sentence: str) -> str:
    numbered = (anchor for anchor in anchors_of(sentence) if anchor.numbers)
    return replaced(sentence, ((anchor.start, anchor.end, f"<cite>{UNKNOWN}</cite>") for anchor in numbered))


def parse_prediction(record: Mapping[str, Any], default_id: str = "") -> Prediction:
    """A prediction from its JSON object; a RecordError if it is not one, or a field has a wrong type."""
    if not isinstance(record.get("prediction"), str):
        raise RecordError("prediction is missing, or no text")
    task = parse_task(record, default_id, sources_needed=False)
    return Prediction(
        task=task,
        text=printable(record["prediction"]),
        writer=read_text(record, "writer") or "",
        sentences=_SENTENCES.validate_python(read_list(record, "sentences")),
        is_oracle=record.get("knows_target") is True or sees_target(task.input_name),
        settings=read_object(record, "settings"),
        served_in_training=record.get("served_in_training") is True,
    )


def _read(
    path: Path, parse: Callable[..., Item], name_of: Callable[[Item], tuple[str, ...]], remedy: str
) -> Iterator[Item]:
    """The items of a file, each with a name of its own."""
    with reading.read_failures(path), path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"  # whatever its name
    kind, records = ("row", enumerate(_parquet_rows(path), 1)) if is_parquet else written_records(path)
    seen: set[tuple[str, ...]] = set()
    for number, raw in records:
        item = reading.parsed(raw, partial(parse, default_id=f"{kind}-{number}"))
        if isinstance(item, reading.BadRecord):
            raise InputError(f"{path}, {kind} {number}: {item.reason}", remedy)
        if (name := name_of(item)) in seen:
            raise InputError(f"{path}, {kind} {number}: {' '.join(filter(None, name))} appears twice", remedy)
        seen.add(name)
        yield item
    if not seen:
        raise SourceError(f"{path} is empty", "Give a file with one record per line.")


def written_records(path: Path) -> tuple[str, Iterator[tuple[int, Any]]]:
    """The records of a JSON file as they are written: a "record" of one list with its number, or a "line" with its own.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, or its list is no JSON.
    """
    first = next(reading.raw_lines(path, longest=reading.FULL_TEXT_BYTES), None)
    if first is not None and first[1].lstrip().startswith(b"["):  # as in CiteBench
        return "record", ((number, raw) for number, (_, raw) in enumerate(reading.list_values(path, JSON_REMEDY), 1))
    return "line", ((number, raw) for number, raw, _ in reading.raw_lines(path, longest=reading.FULL_TEXT_BYTES))


def _parquet_rows(path: Path) -> Iterator[bytes]:
    """The rows of a Parquet file as JSON objects, in order; SourceError if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with reading.read_failures(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                yield from map(orjson.dumps, batch.to_pylist())
    except pa.ArrowException as error:
        raise SourceError(f"{path} is damaged: {one_line(str(error))}", "Download the file again.") from error


def write_tasks(tasks: Iterable[TextTask], out: Path, on_progress: Progress = no_progress) -> int:
    """Writes tasks as JSON Lines, all of them or no file; returns how many.

    Raises:
        BuildError: The file cannot be written.
    """
    number = 0
    with write_failures(out), writing_file(out) as partial_file, partial_file.open("wb") as file:
        for number, task in enumerate(tasks, 1):
            file.write(orjson.dumps(task_record(task), option=orjson.OPT_APPEND_NEWLINE))
            on_progress("tasks", number, 0)
    return number


def input_of(task: TextTask) -> list[str]:
    """The input in CiteBench's form: citing abstract, context before, cited texts, context after, each if known."""
    parts = [("abs", task.citing), ("ctx_b", task.before), ("ctx_a", task.after)]
    citing, before, after = ([f"<{tag}> {text} </{tag}>"] if text else [] for tag, text in parts)
    # A source without text is kept, because the numbers in the text count it.
    return [*citing, *before, *(source.text for source in task.sources), *after]


def task_record(task: TextTask) -> dict[str, Any]:
    """The JSON object of a task, as `parse_task` reads it back; one target is a text, not a list."""
    sources: dict[str, Any]
    if len(task.sources) == 1 and task.sources[0].sentences:
        sources = {"source": list(task.sources[0].sentences), "title": task.sources[0].title or None}
    else:
        papers = [
            {"paper_id": source.paper_id, "title": source.title, "authors": list(source.authors), **source.extra}
            for source in task.sources
        ]
        is_known = any(one.paper_id or one.title or one.authors or one.extra for one in task.sources)
        sources = {"input": input_of(task), "sources": papers if is_known else None}
    targets = task.targets[0] if len(task.targets) == 1 else list(task.targets) or None
    own = {"id": task.task_id, "dataset": task.dataset or None, **sources, "target": targets}
    own |= {"given": task.input_name or None}
    return {name: value for name, value in own.items() if value is not None} | dict(task.extra)


def sentence_records(prediction: Prediction) -> list[dict[str, Any]]:
    """The JSON objects of the sentences of a prediction."""
    return list(_SENTENCES.dump_python(prediction.sentences, by_alias=True))


def settings_record(prediction: Prediction) -> dict[str, Any]:
    """The settings of a prediction, with the input that its writer was given, if that was chosen."""
    input_name = prediction.task.input_name
    return {**prediction.settings, **({"input": input_name} if input_name else {})}


def prediction_record(prediction: Prediction) -> dict[str, Any]:
    """The JSON object of a prediction, as `parse_prediction` reads it back."""
    others: dict[str, Any] = {"sentences": sentence_records(prediction)}
    others |= {"settings": prediction.settings and settings_record(prediction)}
    others |= {"knows_target": prediction.is_oracle or sees_target(prediction.task.input_name)}
    others |= {"served_in_training": prediction.served_in_training}
    own = {"prediction": prediction.text, "writer": prediction.writer}
    return task_record(prediction.task) | own | {name: value for name, value in others.items() if value}
