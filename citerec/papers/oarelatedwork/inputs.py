"""What a writer is given of the papers: abstracts, full texts, or these cut by Greedy Oracle.

Docekal et al. 2024, section 3 and table 2.
"""

import functools
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import orjson

from citerec.contexts.full_text import Document, FullText, find_texts, read_s2orc
from citerec.contexts.sections import is_abstract, is_introduction, is_related_work
from citerec.corpus.reading import BadRecord
from citerec.errors import InputError, SourceError
from citerec.files.progress import Note, no_note
from citerec.files.text import replaced
from citerec.papers.common.extractive import oracle
from citerec.papers.common.sections import hierarchy, outermost
from citerec.write.anchors import UNKNOWN
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TaskInput, TextTask, text_of
from citerec.write.writers.base import targets_of
from citerec.write.writers.extractive import source_sentences

Part = Literal["nothing", "abstract", "full", "oracle"]
"""What is given of a paper; `oracle` is its full text, cut down by Greedy Oracle."""
PARTS: dict[str, tuple[Part, Part]] = {
    "abstracts": ("abstract", "abstract"),
    "abstracts-cited": ("abstract", "nothing"),
    "abstracts-full": ("abstract", "full"),
    "full": ("full", "full"),
    "full-abstract": ("full", "abstract"),
    "full-cited": ("full", "nothing"),
    "full-target": ("nothing", "full"),
    "oracle": ("oracle", "oracle"),
    "oracle-abstract": ("oracle", "abstract"),
    "oracle-cited": ("oracle", "nothing"),
    "oracle-target": ("nothing", "oracle"),
    "abstracts-oracle": ("abstract", "oracle"),
}
"""Of each input what is given of the cited papers, and of the citing paper, always without its own related work."""
WHOLE: tuple[Part, Part] = ("full", "oracle")
"""The parts that are made from a full text."""
_LOOKED_AT = 100  # tasks, for full texts


def with_input(task: TextTask, input_name: str) -> TextTask:
    """A task with what an input gives of its papers.

    A full text is the abstract and the rest. A paper without one is given with its abstract, as are four of five
    cited papers in OARelatedWork. Greedy Oracle cuts each document by itself (section 6.1.2), but never the citing
    paper's abstract (figure 5). Extractive writers may take sentences of the citing paper, if it is given.

    Args:
        task: The task with abstracts, and the full texts that are to be had.
        input_name: A name of PARTS.

    Raises:
        WriterError: The input is cut by the target, and there is none.
    """
    of_cited, of_citing = PARTS[input_name]
    targets = targets_of(task) if "oracle" in PARTS[input_name] else ()
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
    input_name: str,
    full_texts: Sequence[Path] = (),
    note: Note = no_note,
    *,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[TextTask]:
    """The tasks of a file with an input, in order, from number `start` to before `stop`.

    Full texts come from the file itself, if it is OARelatedWork's; else from S2ORC files, by id.

    Raises:
        SourceError: A file cannot be read.
        InputError: A record is no task, or the input needs full texts and no task has any.
        WriterError: The input is cut by the target, and a task has none.
    """
    of_cited, of_citing = PARTS[input_name]
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


def task_with_input(task: TextTask, input_name: str, full_texts: Sequence[Path] = (), note: Note = no_note) -> TextTask:
    """One task with an input, from S2ORC files.

    An input that Greedy Oracle cuts is cut by the related work of the paper itself.

    Raises:
        InputError: Full texts, or the paper that is written, are needed and missing.
        SourceError: Full texts cannot be read, or hold none of the papers.
        WriterError: The input is cut by the target, and there is none.
    """
    of_cited, of_citing = PARTS[input_name]
    if of_cited in WHOLE or of_citing in WHOLE:
        if not full_texts:
            raise InputError(f"--input {input_name} needs full texts", "Give S2ORC files: --full-texts PATH")
        ids = {source.paper_id for source in task.sources if source.paper_id and of_cited in WHOLE}
        if of_citing in WHOLE or "oracle" in PARTS[input_name]:
            if not task.citing_id:
                raise InputError(f"--input {input_name} needs the paper that you write", "Name it: --target ID")
            ids.add(task.citing_id)
        texts = FullTexts(full_texts, ids, note)
        if "oracle" in PARTS[input_name] and (related_work := texts.get(task.citing_id)[1]):
            task = replace(task, targets=(related_work.text,))
        task = texts.added_to(task)
    return with_input(task, input_name)


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
        paper_ids = dict.fromkeys(document.text.bib_entries[one] or UNKNOWN for one in entry_ids) or [UNKNOWN]
        spans.append((one.start, one.end, " ".join(f"<cite>{paper_id}</cite>" for paper_id in paper_ids)))
    return [
        replaced(document.whole(place), [span for span in spans if start <= span[0] and span[1] <= end], start, end)
        for start, end in document.sentences(place)
    ]


def _input(name: str) -> TaskInput:
    of_file = functools.partial(tasks_with_input, input_name=name)
    return TaskInput(name, of_file, functools.partial(task_with_input, input_name=name), "oracle" in PARTS[name])


ABSTRACTS, ABSTRACTS_CITED, ABSTRACTS_FULL, *_others = map(_input, PARTS)
FULL, FULL_ABSTRACT, FULL_CITED, FULL_TARGET, *_others = _others
ORACLE, ORACLE_ABSTRACT, ORACLE_CITED, ORACLE_TARGET, ABSTRACTS_ORACLE = _others
