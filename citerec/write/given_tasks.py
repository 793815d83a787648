"""Tasks of related work with the inputs of OARelatedWork: abstracts, full texts, or full texts cut by an oracle."""

import functools
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import orjson

from citerec.contexts.documents import Document
from citerec.contexts.hierarchy import hierarchy, outermost
from citerec.contexts.s2orc import FullText, find_texts, read_s2orc
from citerec.contexts.sections import is_abstract, is_introduction, is_related_work
from citerec.corpus.json_lines import BadRecord
from citerec.errors import InputError, SourceError
from citerec.files.progress import Note, no_note
from citerec.files.text import replaced
from citerec.write.anchors import UNKNOWN
from citerec.write.inputs import INPUTS, WHOLE, Material, Part, needs_full_texts, sees_target, text_of
from citerec.write.task_files import read_materials
from citerec.write.tasks import Source, TextTask
from citerec.write.writers.extractive import oracle, source_sentences, targets_of

_NOTHING = Source("")
_LOOKED_AT = 100  # tasks, for full texts


def with_input(material: Material, given: str) -> TextTask:
    """A task with what an input gives of its papers.

    A full text is the abstract and the rest. A paper without one is given with its abstract, as are four of five
    cited papers in OARelatedWork. Greedy Oracle cuts each document by itself (section 6.1.2), but never the citing
    paper's abstract (figure 5). Extractive writers may take sentences of the citing paper, if it is given.

    Args:
        material: The task and the full texts.
        given: A name of INPUTS.

    Raises:
        WriterError: The input is cut by the target, and there is none.
    """
    task, parts = material.task, INPUTS[given]
    targets = targets_of(task) if sees_target(given) else ()
    sources = []
    for source, rest in zip(task.sources, material.cited, strict=True):
        document = _part(parts.cited, source, rest)
        if parts.cited == "oracle":
            document = _cut(document, targets)
        sources.append(replace(source, text=document.text, sentences=document.sentences))
    abstract = Source(task.citing)
    citing = _part(parts.citing, abstract, material.citing)
    if parts.citing == "oracle" and material.citing:
        citing = _joined(abstract, _cut(material.citing, targets))
    return replace(
        task,
        sources=tuple(sources),
        citing=citing.text,
        citing_source=citing if citing.text else None,
        given=given,
    )


def _part(part: Part, abstract: Source, rest: Source | None) -> Source:
    if part == "nothing":
        return _NOTHING
    return abstract if part == "abstract" or rest is None else _joined(abstract, rest)


def _joined(one: Source, other: Source) -> Source:
    if not (one.text and other.text):
        return one if one.text else other
    known = one.sentences and other.sentences
    return Source(f"{one.text}\n{other.text}", sentences=one.sentences + other.sentences if known else ())


def _cut(document: Source, targets: Sequence[str]) -> Source:
    sentences = source_sentences(document)
    kept = tuple(sentences[number] for number in oracle(sentences, targets)) if sentences else ()
    return Source(" ".join(kept), sentences=kept)


@dataclass(slots=True)
class GivenTasks:
    """The tasks of a file with an input.

    Full texts come from the file itself, if it is OARelatedWork's; else from S2ORC files, by id.

    Args:
        given: A name of INPUTS.
        full_texts: S2ORC files or folders. They are read once.
        note: Called for each line that cannot be read.
    """

    given: str
    full_texts: tuple[Path, ...] = ()
    note: Note = no_note
    _texts: "FullTexts | None" = field(default=None, init=False)

    def tasks(self, path: Path, start: int = 0, stop: int | None = None) -> Iterator[TextTask]:
        """The tasks of a file, in order, from number `start` to before `stop`.

        Raises:
            SourceError: A file cannot be read.
            InputError: A record is no task, or the input needs full texts and no task has any.
            WriterError: The input is cut by the target, and a task has none.
        """
        if needs_full_texts(self.given):
            if self._texts is None and self.full_texts:
                read = itertools.islice(read_materials(path), stop)
                wanted = {paper_id for material in read for paper_id in _ids(material) if paper_id}
                self._texts = FullTexts(self.full_texts, wanted, self.note)
            self._check(path)
        materials = itertools.islice(read_materials(path), start, stop)
        return (with_input(self._filled(material), self.given) for material in materials)

    def _check(self, path: Path) -> None:
        """Raises InputError if none of the first hundred tasks has a full text that the input needs."""
        parts = INPUTS[self.given]
        for material in map(self._filled, itertools.islice(read_materials(path), _LOOKED_AT)):
            if (parts.cited in WHOLE and any(material.cited)) or (parts.citing in WHOLE and material.citing):
                return
        raise InputError(
            f"--input {self.given} needs full texts, and none of the first {_LOOKED_AT} tasks of {path} has any",
            "Give S2ORC files that hold these papers: --full-texts PATH; or a file of OARelatedWork with full texts.",
        )

    def _filled(self, material: Material) -> Material:
        """A material with the full texts of S2ORC. Its own of the citing paper does not say what is cited where."""
        if self._texts is None:
            return material
        *cited, citing = (self._texts.get(paper_id or "").rest for paper_id in _ids(material))
        filled = tuple(own or found for own, found in zip(material.cited, cited, strict=True))
        return replace(material, cited=filled, citing=citing or material.citing)


def _ids(material: Material) -> list[str | None]:
    """The ids of the sources, and last that of the citing paper."""
    return [*(source.paper_id for source in material.task.sources), material.task.extra.get("citing_id")]


class Parts(NamedTuple):
    """What follows the abstract in a full text, without related work; and the related work. None if there is none."""

    rest: Source | None = None
    related_work: str | None = None


class FullTexts:
    """Some papers' texts from S2ORC, kept in a temporary file.

    Args:
        paths: S2ORC files or folders, read until all papers are found.
        wanted: Ids of papers.
        note: Called for each line that cannot be read.

    Raises:
        SourceError: A file cannot be read, or none of the papers is found.
    """

    def __init__(self, paths: Sequence[Path], wanted: set[str], note: Note = no_note) -> None:
        self._database = sqlite3.connect("")  # on disk if it is large, and gone at the end
        self._database.execute("CREATE TABLE texts (id TEXT PRIMARY KEY, rest TEXT, related_work TEXT)")
        left = set(wanted)
        for path in find_texts(paths):
            for line in read_s2orc(path):
                if not left:
                    return
                if isinstance(line.record, BadRecord):
                    note(f"{path}, line {line.number} is left out: {line.record.reason}")
                elif line.record.paper_id in left:
                    left.remove(line.record.paper_id)
                    row = (line.record.paper_id, *_parts(line.record))
                    self._database.execute("INSERT INTO texts VALUES (?, ?, ?)", row)
        if left == wanted:
            raise SourceError(
                f"none of the {len(left)} papers is among the full texts",
                "They are found by corpus id: take full texts and papers of one release.",
            )

    def get(self, paper_id: str) -> Parts:
        """The text of a paper; without parts if it was not found."""
        row = self._database.execute("SELECT rest, related_work FROM texts WHERE id = ?", (paper_id,)).fetchone()
        rest, related_work = map(text_of, map(orjson.loads, row)) if row else (None, None)
        return Parts(rest, related_work.text if related_work else None)


def _parts(text: FullText) -> tuple[bytes, bytes]:
    """The paragraphs but those of abstract and related work, and those of related work, as JSON."""
    document = Document(text)
    flat = document.sections()
    introduced = any(is_introduction(section.headline) for section in flat)
    of_abstract = {place for section in flat if is_abstract(section.headline) for place in section.paragraphs}
    # With its subsections: the text to write must not be among those given.
    found = list(outermost(hierarchy(flat), functools.partial(is_related_work, introduced=introduced)))
    left_out = of_abstract.union(*(section.all_paragraphs() for section in found))
    rest = [place for place in range(len(document.paragraphs)) if place not in left_out]
    first = found[0].all_paragraphs() if found else []
    of_rest, of_first = ([_sentences(document, place) for place in places] for places in (rest, first))
    return orjson.dumps(of_rest), orjson.dumps(of_first)


def _sentences(document: Document, place: int) -> list[str]:
    """The sentences of a paragraph with `<cite>ID</cite>`: a printed number would be taken for that of a source."""
    spans = [(one.start, one.end, _named(document.text, entry_ids)) for one, entry_ids in document.citations(place)]
    return [
        replaced(document.whole(place), [span for span in spans if start <= span[0] and span[1] <= end], start, end)
        for start, end in document.sentences(place)
    ]


def _named(text: FullText, entry_ids: Sequence[str]) -> str:
    found = (text.bib_entries.get(entry_id) for entry_id in entry_ids)
    paper_ids = dict.fromkeys(entry.paper_id or UNKNOWN for entry in found if entry) or [UNKNOWN]
    return " ".join(f"<cite>{paper_id}</cite>" for paper_id in paper_ids)
