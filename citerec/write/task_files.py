"""Reads tasks and predictions from files of the shapes in docs/formats.md."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

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
from citerec.files.registry import Registry
from citerec.files.rejected import FULL_TEXT_BYTES
from citerec.files.text import printable
from citerec.write.inputs import INPUTS, Material, material_of, sees_target
from citerec.write.tasks import Prediction, Sentence, Source, TextTask

Made = TypeVar("Made")

JSON_REMEDY = "Give JSON Lines, or one JSON list of objects."
"""What to give in place of a file that is neither."""
_ROWS = 16  # of Parquet in memory: one may hold a dozen full texts
_TAGGED = re.compile(r"\s*<(abs|ctx_b|ctx_a)>(.*)</\1>\s*", re.DOTALL)
_ATTRIBUTES = {"abs": "citing", "ctx_b": "before", "ctx_a": "after"}
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

    def parse(self, record: Mapping[str, Any], default_id: str = "", *, sources_needed: bool = True) -> Material:
        """A task with the full texts of its papers; errors as for `parse_task`."""


TASK_FORMATS: Registry[TaskFormat] = Registry("task format", {})
"""The shapes of data sets beside citerec's own; each stands in the folder of its paper."""


def read_tasks(path: Path) -> Iterator[TextTask]:
    """Yields the tasks of a file: JSON Lines, plain or gzip, or one JSON list, or Parquet.

    Tasks of OARelatedWork have the abstracts of its papers; `read_materials` gives the full texts too.

    Raises:
        SourceError: The file cannot be read, or is empty.
        InputError: A record is no task, or repeats an id; the message names its place.
    """
    return _read(path, parse_task, _name_of, _TASK)


def read_materials(path: Path) -> Iterator[Material]:
    """Yields the tasks of a file with the full texts in it. Errors as for `read_tasks`."""
    return _read(path, parse_material, lambda material: _name_of(material.task), _TASK)


def read_prediction_file(path: Path) -> Iterator[Prediction]:
    """Yields the predictions of a file: tasks that have a `prediction`. Errors as for `read_tasks`."""
    return _read(
        path, parse_prediction, lambda prediction: (*_name_of(prediction.task), prediction.writer), _PREDICTION
    )


def parse_task(record: dict[str, Any], default_id: str = "", *, sources_needed: bool = True) -> TextTask:
    """A task from its JSON object, in a shape of docs/formats.md, with `default_id` if it has no id.

    Raises:
        RecordError: It has no text to write from, if that is needed, or a field of a wrong type.
    """
    if published := _format_of(record):
        return published.parse(record, default_id, sources_needed=sources_needed).task
    parts: dict[str, list[str]] = {name: [] for name in _ATTRIBUTES.values()}
    sources = []
    for text in _texts(record, "input"):
        if tagged := _TAGGED.fullmatch(text):
            parts[_ATTRIBUTES[tagged[1]]].append(tagged[2].strip())
        else:
            sources.append(Source(text.strip()))
    paper_id = optional_id(record, "paper_id")
    if "source" in record:
        sentences = tuple(_texts(record, "source"))
        sources = [Source(" ".join(sentences), paper_id, read_text(record, "title") or "", sentences)]
    elif papers := read_list(record, "sources"):
        if len(papers) != len(sources) or not all(isinstance(paper, dict) for paper in papers):
            raise RecordError("sources does not name one paper for each cited text of input")
        sources = [
            Source(
                source.text,
                optional_id(paper, "paper_id"),
                read_text(paper, "title") or "",
                authors=read_strings(paper, "authors"),
                extra={name: value for name, value in paper.items() if name not in _OF_SOURCE},
            )
            for source, paper in zip(sources, papers, strict=True)
        ]
    if sources_needed and not any(source.text for source in sources):
        raise RecordError("input has no cited text to write from")
    given = record.get("given")
    is_known = isinstance(given, str) and given in INPUTS
    known = (
        _OF_TASK | _OF_PREDICTION | ({"title"} if "source" in record else set()) | ({"given"} if is_known else set())
    )
    citing, before, after = (" ".join(parts[name]) for name in _ATTRIBUTES.values())
    return TextTask(
        task_id=optional_id(record, "id") or (paper_id if "source" in record else None) or default_id,
        sources=tuple(sources),
        targets=tuple(_texts(record, "target")),
        dataset=read_text(record, "dataset") or "",
        extra={name: value for name, value in record.items() if name not in known},
        citing=citing,
        before=before,
        after=after,
        given=str(given) if is_known else "",
    )


def parse_material(record: dict[str, Any], default_id: str = "") -> Material:
    """A task from its JSON object with the full texts in it. Errors as for `parse_task`."""
    if published := _format_of(record):
        return published.parse(record, default_id)
    return material_of(parse_task(record, default_id))


def _format_of(record: Mapping[str, Any]) -> TaskFormat | None:
    return next((one for _, one in TASK_FORMATS.items() if one.recognises(record)), None)


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
        is_oracle=record.get("knows_target") is True or sees_target(task.given),
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
    path: Path, parse: Callable[[dict[str, Any], str], Made], name: Callable[[Made], tuple[str, ...]], remedy: str
) -> Iterator[Made]:
    seen: set[tuple[str, ...]] = set()
    for place, raw in _records(path):
        made = tried(partial(_made, raw, parse, place.replace(" ", "-")), raw if isinstance(raw, bytes) else "")
        if isinstance(made, BadRecord):
            raise InputError(f"{path}, {place}: {made.reason}", remedy)
        if (called := name(made)) in seen:
            raise InputError(f"{path}, {place}: {' '.join(filter(None, called))} appears twice", remedy)
        seen.add(called)
        yield made
    if not seen:
        raise SourceError(f"{path} is empty", "Give a file with one record per line.")


def _made(raw: Any, parse: Callable[[dict[str, Any], str], Made], default_id: str) -> Made:
    return parse(json_object(orjson.loads(raw) if isinstance(raw, bytes) else raw), default_id)


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its place; lines are not parsed."""
    if _is_parquet(path):
        yield from ((f"row {number}", row) for number, row in enumerate(_parquet_rows(path), 1))
        return
    what = "record" if is_list(path) else "line"
    yield from ((f"{what} {number}", raw) for number, raw in written_records(path))


def is_list(path: Path) -> bool:
    """Whether a file is one JSON list, as in CiteBench, rather than JSON Lines."""
    first = next(raw_lines(path, longest=FULL_TEXT_BYTES), None)
    return first is not None and first[1].lstrip().startswith(b"[")


def written_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """The records of a JSON file as they are written, each with its line, or with its number in the list.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, or its list is no JSON.
    """
    if is_list(path):
        yield from ((number, value.raw) for number, value in enumerate(list_values(path, JSON_REMEDY), 1))
    else:
        yield from ((number, raw) for number, raw, _ in raw_lines(path, longest=FULL_TEXT_BYTES))


def _is_parquet(path: Path) -> bool:
    """Whether a file begins like Parquet, regardless of its name; SourceError if it cannot be opened."""
    with read_failures(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


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
