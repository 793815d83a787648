"""Related work: the four inputs of OARelatedWork (Docekal et al. 2024, section 3)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from citerec.contexts.s2orc import FullText, find_texts, read_s2orc
from citerec.contexts.sections import is_introduction, is_related_work
from citerec.corpus.json_lines import BadRecord
from citerec.corpus.store import PaperStore
from citerec.errors import InputError, SourceError
from citerec.groundwork.printable import printable
from citerec.groundwork.progress import Note, no_note
from citerec.records import Paper
from citerec.texts.tasks import Source, TextTask

_SHORTEST_ABSTRACT = 40
"""Least length in characters of an abstract; a shorter text is taken for a wrong id or file name."""

Input = Literal["abstracts", "full", "full-cited", "full-target"]


def related_work_task(
    papers: Sequence[Paper],
    target: Paper | None = None,
    given: Input = "abstracts",
    full_texts: Sequence[Path] = (),
    note: Note = no_note,
) -> TextTask:
    """The task of writing related work.

    A paper without a full text is represented by its abstract, as four of five cited papers are in OARelatedWork.

    Args:
        papers: The papers to cite; `[0]`, `[1]`, … in their order.
        target: The paper to write, if known.
        given: Which texts a writer sees: abstracts of all; full texts of all, without the target's own related work;
            of the cited papers; of the target.
        full_texts: S2ORC files or folders, for all but `abstracts`.
        note: Called for each line that cannot be read.

    Raises:
        InputError: Full texts or the target are needed and missing.
        SourceError: Full texts cannot be read, or hold none of the papers.
    """
    sources = tuple(map(Source.of, papers))
    abstract = (target.abstract if target else None) or ""
    if given == "abstracts":
        return TextTask("", sources, citing=abstract)
    if not full_texts:
        raise InputError(f"--input {given} needs full texts", "Give S2ORC files: --full-texts PATH")
    if given in ("full", "full-target") and target is None:
        raise InputError(f"--input {given} needs the paper that you write", "Name it: --target ID")
    wanted = {paper.paper_id for paper in papers} if given != "full-target" else set()
    if target and given != "full-cited":
        wanted.add(target.paper_id)
    found = dict(_full_texts(full_texts, wanted, note))
    if not found:
        raise SourceError(
            f"none of the {len(wanted)} papers is among the full texts",
            "They are found by corpus id: take full texts and papers of one release.",
        )
    if given == "full-target":
        assert target is not None
        return TextTask("", tuple(replace(source, text="") for source in sources), citing=found[target.paper_id])
    sources = tuple(replace(source, text=found.get(source.paper_id or "", source.text)) for source in sources)
    return TextTask("", sources, citing=found.get(target.paper_id, abstract) if target and given == "full" else "")


def target_of(target: str | None, store: PaperStore) -> Paper | None:
    """The paper to write: one of the store, or an abstract, in a file or as text.

    Raises:
        InputError: It looks like an id or a file, and there is none.
    """
    if target is None:
        return None
    if known := store.papers([target]).get(target):
        return known
    if _is_file(target):
        return Paper("", abstract=_read(Path(target)))
    if len(target) < _SHORTEST_ABSTRACT:
        raise InputError(f"there is no paper and no file {target!r}", "Give an id, a file, or the abstract itself.")
    return Paper("", abstract=target)


def read_ids(papers: str) -> list[str]:
    """Paper ids from a list with commas, or a file with one per line; an InputError if there is none."""
    text = _read(Path(papers)) if _is_file(papers) else papers
    ids = [paper_id.strip() for line in text.splitlines() for paper_id in line.split(",") if paper_id.strip()]
    if not ids:
        raise InputError(f"there is no paper id in {papers!r}", "Give ids with commas between them, or a file.")
    return ids


def _full_texts(paths: Sequence[Path], wanted: set[str], note: Note) -> Iterator[tuple[str, str]]:
    """The running text of some papers, by id, without their related work; read until all are found."""
    left = set(wanted)
    for path in find_texts(paths):
        for line in read_s2orc(path):
            if isinstance(line.record, BadRecord):
                note(f"{path}, line {line.number} is left out: {line.record.reason}")
            elif line.record.paper_id in left:
                left.remove(line.record.paper_id)
                yield line.record.paper_id, _running(line.record)
            if not left:
                return


def _running(text: FullText) -> str:
    introduced = any(is_introduction(part.section) for part in text.paragraphs)
    paragraphs = (part for part in text.paragraphs if not is_related_work(part.section, introduced=introduced))
    return "\n".join(" ".join(text.text[part.start : part.end].split()) for part in paragraphs)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # too long for a name
        return False


def _read(path: Path) -> str:
    try:
        return printable(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", "Give a text file in UTF-8.") from error
