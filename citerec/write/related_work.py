"""Tasks of related work for papers that a user names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.files.progress import Note, no_note
from citerec.files.text import printable
from citerec.records import Paper
from citerec.write.inputs import FullTexts, needs_full_texts, with_input
from citerec.write.tasks import INPUTS, WHOLE, Source, TextTask, sees_target

_SHORTEST_ABSTRACT = 40
"""Least length in characters of an abstract; a shorter text is taken for a wrong id or file name."""


def related_work_task(
    papers: Sequence[Paper],
    target: Paper | None = None,
    given: str = "abstracts",
    full_texts: Sequence[Path] = (),
    note: Note = no_note,
) -> TextTask:
    """The task of writing related work.

    Args:
        papers: The papers to cite; `[0]`, `[1]`, … in their order.
        target: The paper to write, if known. An input that Greedy Oracle cuts is cut by its own related work.
        given: What a writer is given of them, a name of INPUTS: see `with_input`.
        full_texts: S2ORC files or folders, for inputs with full texts.
        note: Called for each line that cannot be read.

    Raises:
        InputError: Full texts or the target are needed and missing.
        SourceError: Full texts cannot be read, or hold none of the papers.
    """
    abstract = (target.abstract if target else None) or ""
    task = TextTask("", tuple(map(Source.of, papers)), citing=abstract)
    if not needs_full_texts(given):
        return with_input(task, given)
    if not full_texts:
        raise InputError(f"--input {given} needs full texts", "Give S2ORC files: --full-texts PATH")
    of_target = INPUTS[given].citing in WHOLE or sees_target(given)
    if of_target and target is None:
        raise InputError(f"--input {given} needs the paper that you write", "Name it: --target ID")
    wanted = {paper.paper_id for paper in papers} if INPUTS[given].cited in WHOLE else set()
    texts = FullTexts(full_texts, wanted | ({target.paper_id} if target and of_target else set()), note)
    target_id = target.paper_id if target else None
    if sees_target(given) and (related_work := texts.get(target_id)[1]):
        task = replace(task, targets=(related_work.text,))
    return with_input(texts.added_to(task, target_id), given)


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
