"""Files of a dataset, several at once: finished ones are noted in the journal, and never fetched again."""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from citerec.corpus.fetch.part import Job, Part, read_part
from citerec.corpus.releases.base import RemoteFile
from citerec.files.parallel import outcomes_of
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.files.rejected import Rejected
from citerec.files.resume import Journal
from citerec.files.writing import sync_entry


@dataclass(frozen=True, slots=True)
class Manner:
    """How to fetch.

    Attributes:
        workers: How many files at once; None for as many as the source allows.
        max_bad: Share of bad records, 0 to 1, above which the work stops.
        on_progress: Called with bytes as they come.
        on_note: Called with a line about what is worth knowing.
    """

    workers: int | None = None
    max_bad: float = 0.05
    on_progress: Progress = no_progress
    on_note: Note = no_note


def fetch_files(journal: Journal, stage: str, files: Sequence[RemoteFile], job: Job, manner: Manner) -> list[Part]:
    """The parts that some files give, in their order. Those that the journal has are taken from there.

    Args:
        journal: Where finished files are noted.
        stage: A name of this work, unique in the journal.
        files: The files, of one dataset.
        job: What to do with each; `out` and `notes` get a folder for the dataset.
        manner: How to fetch.

    Raises:
        WebError: A file cannot be fetched.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    known = {entry["part"]["name"]: Part.of_json(entry["part"]) for entry in journal.done if entry["stage"] == stage}
    place = job.listing.place
    workers = min(manner.workers or place.open().workers, place.open().workers)
    rejected = Rejected(manner.max_bad)
    for part in known.values():
        rejected.add(part.read, part.bad, part.first_bad)
    todo = [file for file in files if file.name not in known]
    with contextlib.closing(outcomes_of(functools.partial(read_part, job), todo, workers)) as outcomes:
        for number, part in outcomes:
            if job.out and part.kept:
                sync_entry(job.out / part.file_name)
            journal.finish({"stage": stage, "part": part.to_json()})
            known[todo[number].name] = part
            rejected.add(part.read, part.bad, part.first_bad)
            done, whole = _bytes(files, known)
            manner.on_progress(f"fetching {stage}", done, whole)
            rejected.check(done / whole if whole and len(known) < len(files) else None)
    rejected.check()
    return [known[file.name] for file in files]


def _bytes(files: Sequence[RemoteFile], known: Mapping[str, Part]) -> tuple[float, float]:
    """How many bytes came, and how many there are; files of unknown size count as the mean of the others."""
    sizes = [known[file.name].bytes if file.name in known else file.bytes for file in files]
    told = [size for size in sizes if size is not None]
    mean = sum(told) / len(told) if told else 0
    return sum(part.bytes for part in known.values()), sum(mean if size is None else size for size in sizes)
