"""Texts written from papers: for the place of `<REF>`, TLDRs, related work, and for all tasks of a file."""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.corpus.base import entries_of
from citerec.corpus.citation_keys import surnames
from citerec.corpus.reading import raw_lines, whole_lines
from citerec.drafts.filling import Filling, as_source
from citerec.errors import WriterError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import digest_of, identity
from citerec.files.text import one_line
from citerec.files.writing import apart, beside, write_failures
from citerec.records import MARKER, Context, Paper, json_id
from citerec.write.anchors import marked
from citerec.write.task_files import prediction_record, read_tasks, sentence_records, settings_record
from citerec.write.tasks import INPUTS, Prediction, Source, TextTask, content_terms, served_in_training
from citerec.write.writers.base import Writer, open_writer

usual_writer = functools.cache(functools.partial(open_writer, None))
"""The default writer of a kind of text, which is opened once."""

_NUMBERED = re.compile(r"\[(\d{1,4}(?:, \d{1,4})*)\]")


@dataclass(frozen=True, slots=True)
class CitationText:
    """A text, and the papers that `[0]`, `[1]`, … in it mean."""

    prediction: Prediction
    papers: tuple[Paper, ...]

    @property
    def without_text(self) -> tuple[Paper, ...]:
        """The papers that have no abstract or other text."""
        sources = self.prediction.task.sources
        return tuple(paper for paper, source in zip(self.papers, sources, strict=True) if not source.text)


def citation_task(context: Context, papers: Sequence[Paper], citing: Paper | None = None) -> TextTask:
    """The task of writing a citation text for a context, from the papers to cite, and the citing paper if known."""
    return TextTask(
        task_id=context.context_id,
        sources=tuple(map(Source.of, papers)),
        citing=(citing.abstract if citing else None) or "",
        before=" ".join(part for part in (context.before, context.text) if part),
        after=context.after,
    )


def draft(task: TextTask, papers: Sequence[Paper], writer: Writer) -> CitationText:
    """The writer's text for a task; a WriterError if no paper has a text, or the writer cannot write."""
    if not any(source.text for source in task.sources) and not task.citing:
        remedy = "Build the index with abstracts: citerec index build PAPERS ABSTRACTS --out INDEX"
        raise WriterError("there is nothing to write from: no paper among those found has an abstract", remedy)
    return CitationText(replace(writer.write(task), settings=writer.settings), tuple(papers))


def with_citations(context: Context, papers: Sequence[Paper]) -> str:
    """The sentence with the numbers of the papers in place of `<REF>`: "… [0, 1] …"."""
    return context.text.replace(MARKER, f"[{', '.join(map(str, range(len(papers))))}]") if papers else context.text


def in_draft(citation_text: CitationText, filling: Filling) -> str:
    r"""The text as it is written in a draft: "… \citep{salton} …" for "… [0] …".

    Papers have the keys of the bibliography, or those that they would get. Names before a number are those that the
    citation itself shows where the draft can cite so: "\\citet{salton} propose". What cites no source stays as it is.
    """
    keys = filling.bibliography.keys_for(citation_text.papers)
    text, parts, done = one_line(marked(citation_text.prediction)), list[str](), 0
    for match in _NUMBERED.finditer(text):
        numbers = [int(number) for number in match[1].split(", ")]
        if max(numbers) < len(keys):
            form, before = filling.draft.form, text[done : match.start()]
            names = surnames(citation_text.papers[numbers[0]].authors)
            if filling.draft.spoken and len(numbers) == 1 and names and before.endswith(f"{names} "):
                form, before = filling.draft.spoken, before.removesuffix(f"{names} ")
            citation = form(dict.fromkeys(keys[number] for number in numbers))
            parts += [as_source(filling.path, before), citation]
            done = match.end()
    return "".join([*parts, as_source(filling.path, text[done:])])


def draft_json(citation_text: CitationText, *, form: str | None) -> dict[str, Any]:
    """A draft as a JSON object (docs/formats.md), with its papers in a form of `entries_of`, or without."""
    value: dict[str, Any] = {
        "text": marked(citation_text.prediction),
        "writer": citation_text.prediction.writer,
        "settings": settings_record(citation_text.prediction),
        "sentences": sentence_records(citation_text.prediction),
        "papers": [
            {"number": number, "paper_id": json_id(paper.paper_id)}
            | {name: getattr(paper, name) for name in ("title", "authors", "year", "venue")}
            | {"has_text": paper not in citation_text.without_text}
            for number, paper in enumerate(citation_text.papers)
        ],
    }
    unique = {paper.paper_id: paper for paper in citation_text.papers}
    return {**value, form: entries_of(unique.values(), form)} if form else value


class Tldr(NamedTuple):
    """A paper in a sentence.

    Attributes:
        text: The sentence; None if there is neither a TLDR nor an abstract.
        origin: `corpus` if it came with the paper, else the name of the writer; None without a text.
    """

    paper: Paper
    text: str | None
    origin: str | None


def tldrs(papers: Iterable[Paper], writer: Writer, *, rewrite: bool = False) -> Iterator[Tldr]:
    """A TLDR of each paper, in order: the corpus's own, else (or if `rewrite`) the writer's, from the abstract."""
    papers = list(papers)
    to_write = (paper for paper in papers if paper.abstract and (rewrite or not paper.tldr))
    tasks = (TextTask(paper.paper_id, (Source.of(paper),)) for paper in to_write)
    texts = {prediction.task.task_id: prediction.text for prediction in writer.write_many(tasks)}
    for paper in papers:
        is_own = paper.paper_id not in texts
        text = paper.tldr if is_own else texts[paper.paper_id] or None
        yield Tldr(paper, text, None if text is None else "corpus" if is_own else writer.name)


_ALIKE = 0.15  # share of the words of two papers that both have, from which they stand together (ours)


def related_work_task(papers: Sequence[Paper], target: Paper | None = None) -> TextTask:
    """The task of writing related work, from abstracts.

    Args:
        papers: The papers to cite; `[0]`, `[1]`, … in their order.
        target: The paper to write, if known.
    """
    target_id, abstract = (target.paper_id, target.abstract or "") if target else ("", "")
    return TextTask("", tuple(map(Source.of, papers)), citing=abstract, extra={"citing_id": target_id})


def by_topic(papers: Sequence[Paper]) -> list[Paper]:
    """Papers in the order of a related work: those alike together, in order of year; the group of the oldest first."""
    by_year = functools.partial(sorted, key=lambda paper: paper.year or 9999)  # unknown: last
    left, ordered = by_year(papers), list[Paper]()
    terms = {paper.paper_id: set(content_terms(f"{paper.title} {paper.abstract or ''}")) for paper in papers}

    def are_alike(one: Paper, other: Paper) -> bool:
        words, others = terms[one.paper_id], terms[other.paper_id]
        return len(words & others) / max(1, len(words | others)) >= _ALIKE

    while left:
        group = [left.pop(0)]
        for one in group:  # it grows
            near = [other for other in left if are_alike(one, other)]
            left = [other for other in left if other not in near]
            group += near
        ordered += by_year(group)
    return ordered


def write_batch(
    path: Path,
    writer: Writer,
    out: Path,
    input_name: str | None = None,
    full_texts: Sequence[Path] = (),
    *,
    limit: int | None = None,
    note: Note = no_note,
    on_progress: Progress = no_progress,
) -> tuple[int, int, int]:
    """Writes a text for each task of a file; if it was stopped, it continues.

    Args:
        path: The tasks.
        writer: The writer.
        out: JSON Lines: each task with its `prediction`, its `writer`, the writer's `settings`, and its `sentences`. It
            appears when it is complete.
        input_name: What the writer is given of the papers, a name of INPUTS; by default what the data set gives.
        full_texts: S2ORC files or folders, for inputs with full texts.
        limit: How many tasks at most.
        note: Called for each line of full texts that cannot be read.
        on_progress: Called after each text.

    Returns:
        How many texts were written, how many of them are empty, and how many cite what is no source.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task, `out` is the file of the tasks, or full texts are missing.
        WriterError: The writer cannot write.
        BuildError: The file cannot be written.
    """
    out = apart(out, path)  # a link is followed, not replaced
    whole = sum(1 for _ in itertools.islice(read_tasks(path), limit))
    writer.prepare(read_tasks(path))
    # A text of other settings is never continued.
    plan = [identity(path), dict(writer.settings), limit, input_name, list(map(str, full_texts))]
    part = beside(out, digest_of(plan))
    with write_failures(out, "Give another path, or make room; the same command then continues."):
        out.parent.mkdir(parents=True, exist_ok=True)
        begun = whole_lines(part)
        tasks: Iterator[TextTask] = itertools.islice(read_tasks(path), begun, limit)
        if input_name is not None:
            of_file = INPUTS[input_name].of_file
            tasks = of_file(path, full_texts=full_texts, note=note, start=begun, stop=limit)
        with part.open("ab") as file:
            for number, prediction in enumerate(writer.write_many(tasks), begun + 1):
                seen = served_in_training(prediction.task, writer.provenance)
                record = prediction_record(replace(prediction, settings=writer.settings, served_in_training=seen))
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
                on_progress("writing", number, whole)
        part.replace(out)
    empty = flagged = 0
    for _, line, _ in raw_lines(out):
        record = orjson.loads(line)
        empty += not record["prediction"].strip()
        flagged += any(sentence["unknown"] for sentence in record.get("sentences", ()))
    return whole, empty, flagged
