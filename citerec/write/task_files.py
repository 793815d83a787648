"""Reads and writes tasks and predictions in the shapes of docs/formats.md; citerec's own is that of CiteBench."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from citerec.contexts.sections import is_abstract
from citerec.corpus import json_lines
from citerec.corpus.json_lines import RecordError, optional_id
from citerec.errors import InputError, SourceError, first_fault
from citerec.files.progress import Progress, no_progress
from citerec.files.registry import Registry
from citerec.files.rejected import FULL_TEXT_BYTES
from citerec.files.text import one_line, printable, replaced
from citerec.files.writing import write_failures, writing_file
from citerec.write.anchors import UNKNOWN, anchors_of
from citerec.write.tasks import INPUTS, Prediction, Sentence, Source, TextTask, sees_target, text_of

Item = TypeVar("Item")
Shape = TypeVar("Shape", bound=BaseModel)

JSON_REMEDY = "Give JSON Lines, or one JSON list of objects."
"""What to give in place of a file that is neither."""
_ROWS = 16  # of Parquet in memory: one may hold a dozen full texts
_REPORTED_EVERY = 1000
_TAGS = ("abs", "ctx_b", "ctx_a")
_TAGGED = re.compile(rf"\s*<({'|'.join(_TAGS)})>(.*)</\1>\s*", re.DOTALL)
_TASK = 'A task is {"input": ["<abs> … </abs>", "cited abstract", …], "target": "…"}: docs/formats.md.'
_PREDICTION = 'A prediction is a task with "prediction": "…": docs/formats.md.'

_Id = Annotated[str | None, BeforeValidator(lambda value: optional_id({"id": value}, "id"))]
_Line = Annotated[str, BeforeValidator(lambda value: "" if value is None else value), AfterValidator(one_line)]
_Names = Annotated[
    tuple[_Line, ...],
    BeforeValidator(lambda value: () if value is None else value),
    AfterValidator(lambda names: tuple(dict.fromkeys(filter(None, names)))),
]
_Text = Annotated[str, AfterValidator(printable)]
_Texts = Annotated[
    tuple[_Text, ...],
    BeforeValidator(lambda value: () if value is None else (value,) if isinstance(value, str) else value),
]
_SENTENCES = TypeAdapter(tuple[Sentence, ...])


class _Open(BaseModel):
    """A shape of records whose other fields are kept."""

    model_config = ConfigDict(extra="allow")


class _Paper(_Open):
    paper_id: _Id = None
    title: _Line = ""
    authors: _Names = ()


class _Task(_Open):
    id: _Id = None
    dataset: _Line = ""
    input: _Texts = ()
    target: _Texts = ()
    source: _Texts = ()
    sources: list[_Paper] | None = None


class _Predicted(BaseModel):
    """What a prediction has besides its task."""

    prediction: _Text
    writer: _Line = ""
    settings: dict[str, Any] | None = None
    sentences: tuple[Sentence, ...] | None = None
    knows_target: Any = False
    served_in_training: Any = False


class _Section(BaseModel):
    headline: str
    paragraphs: list[list[str]]
    sections: list["_Section"]

    def texts(self) -> list[list[str]]:
        """The paragraphs with those of its sections; none of an abstract."""
        if is_abstract(self.headline):
            return []
        own = [list(map(_without_numbers, paragraph)) for paragraph in self.paragraphs]
        return own + [paragraph for section in self.sections for paragraph in section.texts()]


class _Document(BaseModel):
    document: list[_Section] | None = None


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
    return _read(path, parse_prediction, lambda one: (*_name_of(one.task), one.writer), _PREDICTION)


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
    shape = _shaped(_Task, {name: value for name, value in record.items() if name not in _Predicted.model_fields})
    extra = shape.model_extra or {}
    parts: dict[str, list[str]] = {tag: [] for tag in ("", *_TAGS)}
    for text in shape.input:
        tagged = _TAGGED.fullmatch(text)
        parts[tagged[1] if tagged else ""].append((tagged[2] if tagged else text).strip())
    citing, before, after = (" ".join(parts[tag]) for tag in _TAGS)
    if "source" in record:  # a paper in sentences, as in SciTLDR
        paper = _shaped(_Paper, extra)
        sources = [Source(" ".join(shape.source), paper.paper_id, paper.title, shape.source)]
        extra.pop("title", None)
    else:
        sources = _sources(shape.sources, parts[""])
    if sources_needed and not any(source.text for source in sources):
        raise RecordError("input has no cited text to write from")
    is_input = isinstance(extra.get("given"), str) and extra["given"] in INPUTS
    document = _shaped(_Document, extra).document if full_texts else None
    return TextTask(
        task_id=shape.id or ("source" in record and sources[0].paper_id) or default_id,
        sources=tuple(sources),
        citing=citing,
        before=before,
        after=after,
        targets=shape.target,
        dataset=shape.dataset,
        input_name=extra.pop("given") if is_input else "",
        extra=extra,
        citing_rest=text_of([texts for section in document for texts in section.texts()]) if document else None,
    )


def _sources(papers: Sequence[_Paper] | None, texts: Sequence[str]) -> list[Source]:
    """The sources of a task: its texts, with what it says of the paper of each."""
    papers = papers or [_Paper()] * len(texts)
    if len(papers) != len(texts):
        raise RecordError("sources does not name one paper for each cited text of input")
    return [
        Source(text, paper.paper_id, paper.title, authors=paper.authors, extra=paper.model_extra or {})
        for text, paper in zip(texts, papers, strict=True)
    ]


def _without_numbers(sentence: str) -> str:
    """A sentence with `<cite>UNK</cite>` for `[3]` and the like: the number is not that of a source."""
    numbered = (anchor for anchor in anchors_of(sentence) if anchor.numbers)
    return replaced(sentence, ((anchor.start, anchor.end, f"<cite>{UNKNOWN}</cite>") for anchor in numbered))


def parse_prediction(record: Mapping[str, Any], default_id: str = "") -> Prediction:
    """A prediction from its JSON object; a RecordError if it is not one, or a field has a wrong type."""
    shape = _shaped(_Predicted, record)
    task = parse_task(record, default_id, sources_needed=False)
    return Prediction(
        task=task,
        text=shape.prediction,
        writer=shape.writer,
        sentences=shape.sentences or (),
        is_oracle=shape.knows_target is True or sees_target(task.input_name),
        settings=shape.settings or {},
        served_in_training=shape.served_in_training is True,
    )


def _shaped(shape: type[Shape], record: Mapping[str, Any]) -> Shape:
    """A record in a shape; a RecordError names the first field that does not fit."""
    try:
        return shape.model_validate(record)
    except ValidationError as error:
        raise RecordError(first_fault(error)) from None


def _name_of(task: TextTask) -> tuple[str, ...]:
    return task.dataset, task.task_id


def _read(
    path: Path, parse: Callable[[dict[str, Any], str], Item], name_of: Callable[[Item], tuple[str, ...]], remedy: str
) -> Iterator[Item]:
    def parsed(raw: Any, default_id: str) -> Item:
        return parse(json_lines.json_object(orjson.loads(raw) if isinstance(raw, bytes) else raw), default_id)

    seen: set[tuple[str, ...]] = set()
    for place, raw in _records(path):
        item = json_lines.tried(partial(parsed, raw, place.replace(" ", "-")), raw if isinstance(raw, bytes) else "")
        if isinstance(item, json_lines.BadRecord):
            raise InputError(f"{path}, {place}: {item.reason}", remedy)
        if (name := name_of(item)) in seen:
            raise InputError(f"{path}, {place}: {' '.join(filter(None, name))} appears twice", remedy)
        seen.add(name)
        yield item
    if not seen:
        raise SourceError(f"{path} is empty", "Give a file with one record per line.")


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its place; lines are not parsed."""
    with json_lines.read_failures(path), path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"  # whatever its name
    if is_parquet:
        return ((f"row {number}", row) for number, row in enumerate(_parquet_rows(path), 1))
    what = "record" if _is_list(path) else "line"
    return ((f"{what} {number}", raw) for number, raw in written_records(path))


def _is_list(path: Path) -> bool:
    """Whether a file is one JSON list, as in CiteBench, rather than JSON Lines."""
    first = next(json_lines.raw_lines(path, longest=FULL_TEXT_BYTES), None)
    return first is not None and first[1].lstrip().startswith(b"[")


def written_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """The records of a JSON file as they are written, each with its line, or with its number in the list.

    Raises:
        SourceError: The file cannot be read, its gzip stream is broken, or its list is no JSON.
    """
    if _is_list(path):
        yield from ((number, raw) for number, (_, raw) in enumerate(json_lines.list_values(path, JSON_REMEDY), 1))
    else:
        yield from ((number, raw) for number, raw, _ in json_lines.raw_lines(path, longest=FULL_TEXT_BYTES))


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as JSON objects, in order; SourceError if it is damaged, or a row is too long."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with json_lines.read_failures(path), pq.ParquetFile(path) as file:
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
    return _SENTENCES.dump_python(prediction.sentences, by_alias=True)  # type: ignore[no-any-return]


def settings_record(prediction: Prediction) -> dict[str, Any]:
    """The settings of a prediction, with the input that its writer was given, if that was chosen."""
    input_name = prediction.task.input_name
    return {**prediction.settings, **({"input": input_name} if input_name else {})}


def prediction_record(prediction: Prediction) -> dict[str, Any]:
    """The JSON object of a prediction, as `parse_prediction` reads it back."""
    others = {
        "sentences": sentence_records(prediction),
        "settings": prediction.settings and settings_record(prediction),
        "knows_target": prediction.is_oracle or sees_target(prediction.task.input_name),
        "served_in_training": prediction.served_in_training,
    }
    own = {"prediction": prediction.text, "writer": prediction.writer}
    return task_record(prediction.task) | own | {name: value for name, value in others.items() if value}
