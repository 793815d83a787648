"""A fetched corpus brought up to date by the diffs of its source, cut to size as its release was."""

from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.base import REMOVED
from citerec.corpus.json_lines import raw_lines
from citerec.errors import InputError
from citerec.files.resume import Journal, forget
from citerec.files.writing import alone, beside, exchange, remove, write_failures
from citerec.records import Paper
from citerec.sources.base import Corpus, RemoteFile, Update
from citerec.sources.cut import Cut, digest_of_line
from citerec.sources.fetch import FetchedCorpus
from citerec.sources.ids import Ids
from citerec.sources.part import Manner, Place
from citerec.sources.passes import KEPT, KEYS, NOTES, Passes

_WORK = ".updating"


@dataclass(frozen=True, slots=True)
class Renewal:
    """What is new for a fetched corpus.

    Attributes:
        corpus: The corpus as it is here.
        place: Where it comes from.
        updates: What changed, in order; empty if nothing did.
    """

    corpus: FetchedCorpus
    place: Place
    updates: tuple[Update, ...]


def find_updates(folder: Path, url: str | None = None) -> Renewal:
    """Asks what changed since a corpus was fetched or brought up to date.

    Raises:
        InputError: There is no corpus, or the source needs a key.
        WebError: The server does not answer.
    """
    made = FetchedCorpus.read(folder)
    place = Place(made.source, url)
    return Renewal(made, place, tuple(place.open().updates(made.release, made.datasets)))


def update_corpus(renewal: Renewal, manner: Manner) -> FetchedCorpus:
    """Applies updates in order; each counts only when it is complete. Work that was stopped goes on.

    Raises:
        WebError: The server does not answer, or its files are broken.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    folder = renewal.corpus.folder
    with (
        write_failures(folder, "Make room, then run the same command: it goes on where it stopped."),
        alone(beside(folder, "lock"), f"another process is fetching {folder}"),
    ):
        made = FetchedCorpus.read(folder)
        if made.release != renewal.corpus.release:
            raise InputError(f"{folder} was brought up to date by another process", "Look again: repeat the command.")
        for update in renewal.updates:
            work, before = folder / _WORK, made.state
            names = [f"{file.dataset}/{file.name}" for file in (*update.upserts, *update.deletions)]
            Journal(work, {"begin": update.begin, "end": update.end, "files": names})
            passes = Passes(renewal.place, update, work, manner)
            lines = passes.noted("lines", _lines_of(made, passes.corpus)) if update.is_whole else None
            step = passes.step(Cut.of_json(made.cut), made.datasets, folder, before, lines)
            made = made.model_copy(update={"steps": (*made.steps, step)})
            made.state.parent.mkdir(exist_ok=True)
            exchange(work, made.state)
            remove(made.state / NOTES)  # not before: a killed call goes on with them
            forget(made.state)
            made.write()
            for name in (KEPT, KEYS):
                (before / name).unlink(missing_ok=True)  # the later state has its own
    return made


def _lines_of(made: FetchedCorpus, corpus: Corpus) -> Ids:
    """Digests of the records of papers as they are here: of several of a paper, that of the last one."""
    latest: dict[str, str] = {}
    for path, part in made.files():
        if part.dataset not in corpus.joins and part.format != REMOVED:
            lines = (raw for _, raw, _ in raw_lines(path, blank_too=True))
            for record in corpus.records(RemoteFile(part.dataset, part.name, part.format, ""), lines):
                digest = digest_of_line(record.raw)
                latest |= {one.paper_id: digest for one in record.records if isinstance(one, Paper)}
    return Ids(latest.values())
