"""Texts written from papers: for the place of `<REF>`, TLDRs, related work, and for all tasks of a file."""

import functools
import itertools
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.contexts.full_text import Document, FullText, find_texts, read_s2orc
from citerec.contexts.sections import hierarchy, is_abstract, is_introduction, is_related_work, outermost
from citerec.corpus.base import entries_of
from citerec.corpus.reading import BadRecord, raw_lines, whole_lines
from citerec.corpus.store import PaperStore
from citerec.drafts.filling import Filling, as_source
from citerec.errors import InputError, SourceError, WriterError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.resume import digest_of, identity
from citerec.files.text import names_in, one_line, printable, replaced
from citerec.files.writing import apart, beside, write_failures
from citerec.records import MARKER, Context, Paper, json_id
from citerec.write.anchors import UNKNOWN, marked, surnames
from citerec.write.task_files import prediction_record, read_tasks, sentence_records, settings_record
from citerec.write.tasks import (
    INPUTS,
    WHOLE,
    Prediction,
    Source,
    TextTask,
    content_terms,
    sees_target,
    served_in_training,
    text_of,
)
from citerec.write.writers.base import Writer
from citerec.write.writers.extractive import oracle, source_sentences, targets_of

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
_LOOKED_AT = 100  # tasks, for full texts


def with_input(task: TextTask, input_name: str) -> TextTask:
    """A task with what an input gives of its papers.

    A full text is the abstract and the rest. A paper without one is given with its abstract, as are four of five
    cited papers in OARelatedWork. Greedy Oracle cuts each document by itself (section 6.1.2), but never the citing
    paper's abstract (figure 5). Extractive writers may take sentences of the citing paper, if it is given.

    Args:
        task: The task with abstracts, and the full texts that are to be had.
        input_name: A name of INPUTS.

    Raises:
        WriterError: The input is cut by the target, and there is none.
    """
    of_cited, of_citing = INPUTS[input_name]
    targets = targets_of(task) if sees_target(input_name) else ()
    sources, rest = [_given(of_cited, source) for source in task.sources], task.citing_rest
    if of_cited == "oracle":
        sources = [_cut(source, targets) for source in sources]
    if of_citing == "oracle" and rest:
        rest = _cut(rest, targets)
    citing = _given(of_citing, Source(task.citing, rest=rest))
    task = replace(task, citing=citing.text, citing_source=citing if citing.text else None, citing_rest=None)
    return replace(task, sources=tuple(sources), input_name=input_name)


def _given(part: str, paper: Source) -> Source:
    """A paper with nothing, its abstract, or all its text."""
    text, sentences, rest = paper.text, paper.sentences, paper.rest
    if part == "nothing":
        text, sentences = "", ()
    elif part in WHOLE and rest:
        is_split = rest.sentences and (sentences or not text)
        sentences = sentences + rest.sentences if is_split else ()
        text = "\n".join(filter(None, (text, rest.text)))
    return replace(paper, text=text, sentences=sentences, rest=None)


def _cut(document: Source, targets: Sequence[str]) -> Source:
    sentences = source_sentences(document)
    kept = tuple(sentences[number] for number in oracle(sentences, targets))
    return replace(document, text=" ".join(kept), sentences=kept)


def tasks_with_input(
    path: Path,
    input_name: str | None,
    full_texts: Sequence[Path] = (),
    note: Note = no_note,
    *,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[TextTask]:
    """The tasks of a file with an input, in order, from number `start` to before `stop`.

    Full texts come from the file itself, if it is OARelatedWork's; else from S2ORC files, by id.

    Args:
        path: The tasks.
        input_name: A name of INPUTS; None for what the data set gives.
        full_texts: S2ORC files or folders.
        note: Called for each line that cannot be read.
        start: The number of the first task.
        stop: The number after that of the last one; None for all.

    Raises:
        SourceError: A file cannot be read.
        InputError: A record is no task, or the input needs full texts and no task has any.
        WriterError: The input is cut by the target, and a task has none.
    """
    if input_name is None:
        return itertools.islice(read_tasks(path), start, stop)
    of_cited, of_citing = INPUTS[input_name]
    is_whole = of_cited in WHOLE or of_citing in WHOLE
    named = itertools.islice(read_tasks(path), stop) if full_texts and is_whole else ()
    ids = {one for task in named for one in (task.citing_id, *(source.paper_id for source in task.sources)) if one}
    texts = FullTexts(full_texts if is_whole else (), ids, note)

    def tasks() -> Iterator[TextTask]:
        return map(texts.added_to, read_tasks(path, full_texts=True))

    if is_whole and not any(
        (of_cited in WHOLE and any(source.rest for source in task.sources)) or (of_citing in WHOLE and task.citing_rest)
        for task in itertools.islice(tasks(), _LOOKED_AT)
    ):
        raise InputError(
            f"--input {input_name} needs full texts, and none of the first {_LOOKED_AT} tasks of {path} has any",
            "Give S2ORC files that hold these papers: --full-texts PATH; or a file of OARelatedWork with full texts.",
        )
    return (with_input(task, input_name) for task in itertools.islice(tasks(), start, stop))


class FullTexts:
    """Some papers' texts from S2ORC, kept in a temporary file.

    Args:
        paths: S2ORC files or folders, read until all papers are found.
        paper_ids: The papers.
        note: Called for each line that cannot be read.

    Raises:
        SourceError: A file cannot be read, or none of the papers is found.
    """

    def __init__(self, paths: Sequence[Path], paper_ids: set[str], note: Note = no_note) -> None:
        self._database = sqlite3.connect("")  # on disk if it is large, and gone at the end
        self._database.execute("CREATE TABLE texts (id TEXT PRIMARY KEY, parts TEXT)")
        left = set(paper_ids)
        for path, line in ((file, line) for file in find_texts(paths) for line in read_s2orc(file)):
            if not left:
                return
            if isinstance(line.record, BadRecord):
                note(f"{path}, line {line.number} is left out: {line.record.reason}")
            elif (paper_id := line.record.paper_id) in left:
                left.remove(paper_id)
                self._database.execute("INSERT INTO texts VALUES (?, ?)", (paper_id, orjson.dumps(_parts(line.record))))
        if paper_ids and left == paper_ids:
            remedy = "They are found by corpus id: take full texts and papers of one release."
            raise SourceError(f"none of the {len(left)} papers is among the full texts", remedy)

    def get(self, paper_id: str | None) -> Sequence[Source | None]:
        """What follows the abstract of a paper, without related work; and the related work. None if missing."""
        row = self._database.execute("SELECT parts FROM texts WHERE id = ?", (paper_id,)).fetchone()
        return [text_of(part) for part in (orjson.loads(row[0]) if row else ([], []))]

    def added_to(self, task: TextTask) -> TextTask:
        """A task with these texts. Its own of the citing paper is replaced: it does not say what is cited where."""
        sources = tuple(replace(source, rest=source.rest or self.get(source.paper_id)[0]) for source in task.sources)
        return replace(task, sources=sources, citing_rest=self.get(task.citing_id)[0] or task.citing_rest)


def _parts(text: FullText) -> list[list[list[str]]]:
    """The paragraphs but those of abstract and related work, and those of related work, in sentences."""
    document = Document(text)
    flat = document.sections()
    introduced = any(is_introduction(section.headline) for section in flat)
    # With its subsections: the text to write must not be among those given.
    related_work = list(outermost(hierarchy(flat), functools.partial(is_related_work, introduced=introduced)))
    left_out = {place for section in flat if is_abstract(section.headline) for place in section.paragraphs}
    left_out = left_out.union(*(section.all_paragraphs() for section in related_work))
    rest = (place for place in range(len(document.paragraphs)) if place not in left_out)
    first = related_work[0].all_paragraphs() if related_work else []
    return [[_sentences(document, place) for place in places] for places in (rest, first)]


def _sentences(document: Document, place: int) -> list[str]:
    """The sentences of a paragraph with `<cite>ID</cite>`: a printed number would be taken for that of a source."""
    spans = []
    for one, entry_ids in document.citations(place):
        entries = (document.text.bib_entries.get(entry_id) for entry_id in entry_ids)
        paper_ids = dict.fromkeys(entry.paper_id or UNKNOWN for entry in entries if entry) or [UNKNOWN]
        spans.append((one.start, one.end, " ".join(f"<cite>{paper_id}</cite>" for paper_id in paper_ids)))
    return [
        replaced(document.whole(place), [span for span in spans if start <= span[0] and span[1] <= end], start, end)
        for start, end in document.sentences(place)
    ]


def related_work_task(
    papers: Sequence[Paper],
    target: Paper | None = None,
    input_name: str = "abstracts",
    full_texts: Sequence[Path] = (),
    note: Note = no_note,
) -> TextTask:
    """The task of writing related work.

    Args:
        papers: The papers to cite; `[0]`, `[1]`, … in their order.
        target: The paper to write, if known. An input that Greedy Oracle cuts is cut by its own related work.
        input_name: What a writer is given of them, a name of INPUTS: see `with_input`.
        full_texts: S2ORC files or folders, for inputs with full texts.
        note: Called for each line that cannot be read.

    Raises:
        InputError: Full texts or the target are needed and missing.
        SourceError: Full texts cannot be read, or hold none of the papers.
    """
    target_id, abstract = (target.paper_id, target.abstract or "") if target else ("", "")
    task = TextTask("", tuple(map(Source.of, papers)), citing=abstract, extra={"citing_id": target_id})
    of_cited, of_citing = INPUTS[input_name]
    if of_cited in WHOLE or of_citing in WHOLE:
        if not full_texts:
            raise InputError(f"--input {input_name} needs full texts", "Give S2ORC files: --full-texts PATH")
        ids = {paper.paper_id for paper in papers if of_cited in WHOLE}
        if of_citing in WHOLE or sees_target(input_name):
            if target is None:
                raise InputError(f"--input {input_name} needs the paper that you write", "Name it: --target ID")
            ids.add(target_id)
        texts = FullTexts(full_texts, ids, note)
        if sees_target(input_name) and (related_work := texts.get(target_id)[1]):
            task = replace(task, targets=(related_work.text,))
        task = texts.added_to(task)
    return with_input(task, input_name)


def by_topic(papers: Sequence[Paper]) -> list[Paper]:
    """Papers in the order of a related work: those alike together, in order of year; the group of the oldest first."""
    left, ordered = sorted(papers, key=_year), list[Paper]()
    terms = {paper.paper_id: set(content_terms(f"{paper.title} {paper.abstract or ''}")) for paper in papers}
    while left:
        group = [left.pop(0)]
        for one in group:  # it grows
            near = [other for other in left if _share(terms[one.paper_id], terms[other.paper_id]) >= _ALIKE]
            left = [other for other in left if other not in near]
            group += near
        ordered += sorted(group, key=_year)
    return ordered


def _share(one: set[str], other: set[str]) -> float:
    """The share of the words of two texts that both have."""
    return len(one & other) / max(1, len(one | other))


def _year(paper: Paper) -> int:
    return paper.year or 9999  # unknown: last


def target_of(target: str | None, store: PaperStore) -> Paper | None:
    """The paper to write: one of the store, or the abstract in a file; an InputError if there is none."""
    if target is None:
        return None
    if paper := store.papers([target]).get(target):
        return paper
    if (text := _text_of(target)) == target:
        raise InputError(f"there is no paper and no file {target!r}", "Give an id, or a file with the abstract.")
    return Paper("", abstract=text)


def read_ids(papers: str) -> list[str]:
    """Paper ids from a list with commas, or a file with one per line; an InputError if there is none."""
    ids = names_in(",".join(_text_of(papers).splitlines()))
    if not ids:
        raise InputError(f"there is no paper id in {papers!r}", "Give ids with commas between them, or a file.")
    return ids


def _text_of(name: str) -> str:
    """What a file holds; the name itself if there is no such file, or if no file could be named so."""
    try:
        return printable(Path(name).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"cannot read {name}", "Give a text file in UTF-8.") from None
    except (OSError, ValueError):
        return name


def write_batch(
    path: Path,
    writer: Writer,
    out: Path,
    *,
    input_name: str | None = None,
    full_texts: Sequence[Path] = (),
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
        full_texts: S2ORC files or folders, for inputs with full texts: see `tasks_with_input`.
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
        tasks = tasks_with_input(path, input_name, full_texts, note, start=begun, stop=limit)
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
