"""Files of a dataset, several at once: finished ones are noted in the journal, and never fetched again."""

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from citerec.corpus.fetch.part import Job, Part, read_part
from citerec.corpus.releases.base import RemoteFile
from citerec.errors import BuildError
from citerec.groundwork import progress
from citerec.groundwork.executors import outcomes_of
from citerec.groundwork.limits import REMEDY, too_many_bad
from citerec.groundwork.resume import Journal
from citerec.groundwork.writing import sync_entry

_SOON = 1000  # records after which a mostly bad corpus stops the work early


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
    on_progress: progress.Progress = progress.no_progress
    on_note: progress.Note = progress.no_note


@dataclass(slots=True)
class _Tally:
    """Bytes and records of the files of a stage."""

    bytes: int = 0
    size: int | None = None
    read: int = 0
    bad: int = 0
    first_bad: str = field(default="")


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
    tally = {file.name: _Tally(size=file.bytes) for file in files}
    for name, part in known.items():
        tally[name] = _Tally(part.bytes, part.bytes, part.read, part.bad, part.first_bad)
    todo = [file for file in files if file.name not in known]
    with contextlib.closing(outcomes_of(functools.partial(read_part, job), todo, workers)) as outcomes:
        for number, outcome in outcomes:
            name = todo[number].name
            if isinstance(outcome, Part):
                tally[name] = _Tally(outcome.bytes, outcome.bytes, outcome.read, outcome.bad, outcome.first_bad)
                if job.out and outcome.kept:
                    sync_entry(job.out / outcome.file_name)
                journal.finish({"stage": stage, "part": outcome.to_json()})
                known[name] = outcome
            else:
                tally[name] = _Tally(outcome.bytes, outcome.size, outcome.read, outcome.bad, outcome.first_bad)
            done, whole = _bytes(list(tally.values()))
            manner.on_progress(f"fetching {stage}", done, whole)
            _check_bad(
                list(tally.values()), manner.max_bad, done / whole if whole and len(known) < len(files) else None
            )
    return [known[file.name] for file in files]


def _bytes(tallies: list[_Tally]) -> tuple[float, float]:
    """How many bytes came, and how many there are; files of unknown size count as the mean of the others."""
    sizes = [one.size for one in tallies if one.size is not None]
    mean = sum(sizes) / len(sizes) if sizes else 0
    return sum(one.bytes for one in tallies), sum(mean if one.size is None else one.size for one in tallies)


def _check_bad(tallies: list[_Tally], max_bad: float, share_read: float | None) -> None:
    """Raises an error as soon as more records are bad than a corpus of this size may have."""
    bad = sum(one.bad for one in tallies)
    total = bad + sum(one.read for one in tallies)
    if share_read is not None and (not share_read or total < _SOON):
        return
    if fault := too_many_bad("records", bad, total, max_bad, whole=total / share_read if share_read else None):
        first = next((one.first_bad for one in tallies if one.first_bad), "")
        raise BuildError(f"{fault}{f'; the first is {first}' * bool(first)}", REMEDY)
