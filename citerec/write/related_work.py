"""Tasks of related work: what a writer is given of the papers, and tasks for papers that a user names."""

import functools
import itertools
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from citerec.contexts.documents import Document
from citerec.contexts.s2orc import FullText, find_texts, read_s2orc
from citerec.contexts.sections import hierarchy, is_abstract, is_introduction, is_related_work, outermost
from citerec.corpus.json_lines import BadRecord
from citerec.corpus.store import PaperStore
from citerec.errors import InputError, SourceError
from citerec.files.progress import Note, no_note
from citerec.files.text import names_in, printable, replaced
from citerec.records import Paper
from citerec.write.anchors import UNKNOWN
from citerec.write.task_files import read_tasks
from citerec.write.tasks import INPUTS, WHOLE, Part, Source, TextTask, sees_target, text_of
from citerec.write.writers.extractive import oracle, source_sentences, targets_of

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
    own = citing if citing.text else None
    whole = replace(task, sources=tuple(sources), citing=citing.text, citing_source=own)
    return replace(whole, citing_rest=None, input_name=input_name)


def _given(part: Part, paper: Source) -> Source:
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
    is_whole, ids = needs_full_texts(input_name), set[str]()
    if full_texts and is_whole:
        for task in itertools.islice(read_tasks(path), stop):
            ids.update(filter(None, (task.citing_id, *(source.paper_id for source in task.sources))))
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


def needs_full_texts(input_name: str) -> bool:
    """Whether an input is made from full texts."""
    return any(part in WHOLE for part in INPUTS[input_name])


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
            raise SourceError(
                f"none of the {len(left)} papers is among the full texts",
                "They are found by corpus id: take full texts and papers of one release.",
            )

    def get(self, paper_id: str | None) -> tuple[Source | None, Source | None]:
        """What follows the abstract of a paper, without related work; and the related work. None if missing."""
        row = self._database.execute("SELECT parts FROM texts WHERE id = ?", (paper_id,)).fetchone()
        rest, related_work = map(text_of, orjson.loads(row[0]) if row else ([], []))
        return rest, related_work

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
    spans = [(one.start, one.end, _named(document.text, entry_ids)) for one, entry_ids in document.citations(place)]
    return [
        replaced(document.whole(place), [span for span in spans if start <= span[0] and span[1] <= end], start, end)
        for start, end in document.sentences(place)
    ]


def _named(text: FullText, entry_ids: Sequence[str]) -> str:
    entries = (text.bib_entries.get(entry_id) for entry_id in entry_ids)
    paper_ids = dict.fromkeys(entry.paper_id or UNKNOWN for entry in entries if entry) or [UNKNOWN]
    return " ".join(f"<cite>{paper_id}</cite>" for paper_id in paper_ids)


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
    if needs_full_texts(input_name):
        if not full_texts:
            raise InputError(f"--input {input_name} needs full texts", "Give S2ORC files: --full-texts PATH")
        ids = {paper.paper_id for paper in papers if INPUTS[input_name].cited in WHOLE}
        if INPUTS[input_name].citing in WHOLE or sees_target(input_name):
            if target is None:
                raise InputError(f"--input {input_name} needs the paper that you write", "Name it: --target ID")
            ids.add(target_id)
        texts = FullTexts(full_texts, ids, note)
        if sees_target(input_name) and (related_work := texts.get(target_id)[1]):
            task = replace(task, targets=(related_work.text,))
        task = texts.added_to(task)
    return with_input(task, input_name)


def target_of(target: str | None, store: PaperStore) -> Paper | None:
    """The paper to write: one of the store, or the abstract in a file; an InputError if there is none."""
    if target is None:
        return None
    text = _text_of(target)
    paper = store.papers([target]).get(target) or (Paper("", abstract=text) if text != target else None)
    if paper is None:
        raise InputError(f"there is no paper and no file {target!r}", "Give an id, or a file with the abstract.")
    return paper


def read_ids(papers: str) -> list[str]:
    """Paper ids from a list with commas, or a file with one per line; an InputError if there is none."""
    ids = names_in(",".join(_text_of(papers).splitlines()))
    if not ids:
        raise InputError(f"there is no paper id in {papers!r}", "Give ids with commas between them, or a file.")
    return ids


def _text_of(name: str) -> str:
    """What a file holds; the name itself if there is no such file."""
    if not os.path.isfile(name):  # noqa: PTH113  Path.is_file fails at a long text
        return name
    try:
        return printable(Path(name).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"cannot read {name}", "Give a text file in UTF-8.") from None
