"""A fetched corpus brought up to date by the diffs of its source, cut to size as its release was."""

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from citerec.corpus.fetch.cut import ChangedSieve, Cut, DeletionSieve, PaperSieve, Sieve, digest_of_line
from citerec.corpus.fetch.folder import (
    KEPT,
    KEYS,
    NEAR,
    QUARANTINE,
    WANTED,
    FetchedCorpus,
    Step,
    joined_ids,
    write_quarantine,
)
from citerec.corpus.fetch.ids import Ids
from citerec.corpus.fetch.part import Job, Listing, Part, Place, kept_lines
from citerec.corpus.fetch.stage import Manner, fetch_files
from citerec.corpus.json_lines import raw_lines
from citerec.corpus.releases.base import RawRecord, RemoteFile, Update
from citerec.errors import InputError
from citerec.files.hashing import file_digest
from citerec.files.resume import Journal, forget
from citerec.files.writing import alone, beside, exchange, remove, sync_entry, write_failures
from citerec.records import Paper

_WORK, _NOTES = ".updating", "notes"
_MANY = 0.2  # share of the papers that one update hardly deletes


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
            work, old = folder / _WORK, made.state()
            names = [f"{file.dataset}/{file.name}" for file in (*update.upserts, *update.deletions)]
            journal = Journal(work, {"begin": update.begin, "end": update.end, "files": names})
            step = _Updating(made, renewal.place, update, journal, manner).run()
            made = replace(made, steps=(*made.steps, step))
            made.state().parent.mkdir(exist_ok=True)
            exchange(work, made.state())
            remove(made.state() / _NOTES)  # not before: a killed call goes on with them
            forget(made.state())
            made.write()
            for name in (KEPT, KEYS):
                (old / name).unlink(missing_ok=True)  # the later state has its own
    return made


class _Updating:
    """The passes of one update. All upserts come before all deletions."""

    def __init__(self, made: FetchedCorpus, place: Place, update: Update, journal: Journal, manner: Manner) -> None:
        self._made, self._place, self._update = made, place, update
        self._journal, self._manner, self._work = journal, manner, journal.folder
        self._corpus = place.open()
        self._quarantined: list[tuple[Path, Part]] = []
        self._before = Ids.load(made.state() / KEPT)

    def run(self) -> Step:
        """Fetches and cuts to size; ids and files are in the folder of the work then."""
        mains = [name for name in self._made.datasets if name not in self._corpus.joins]
        joins = [name for name in self._made.datasets if name in self._corpus.joins]
        upserts, now = self._papers(mains)
        known = self._saved("known", self._before | now)
        deletions = self._read("deletes", mains, lambda _: DeletionSieve(known))
        now -= self._found(deletions, "deleted")
        kept = self._save(KEPT, now)
        joined, joined_deletions, keys = self._joined(joins, kept, known)
        gone = self._before - now
        cut_off = gone - self._found(deletions, "deleted")
        # Citations of their own dataset are named by their own keys; those of OpenAlex are in the records of papers.
        lines: dict[str, Ids] = {
            name: cut_off for name in (*mains, *joins) if name in mains or name != self._corpus.citations
        }
        if keys is not None:
            without = self._found(joined, "left") - self._found(joined, "keys")
            without |= self._citations_of(gone, keys, joined) if len(cut_off) else Ids()
            lines[self._corpus.citations] = without
            self._save(KEYS, keys - without)
        removed = [part for name, ids in lines.items() for part in self._removals(name, ids)]
        if len(gone) > _MANY * len(self._before):
            self._manner.on_note(
                f"The update to {self._update.end} removed {len(gone):,} of {len(self._before):,} papers: "
                "is the release whole?"
            )
        write_quarantine(self._quarantined, self._work / QUARANTINE)
        parts = (*_flat(upserts), *_flat(joined), *_flat(deletions), *_flat(joined_deletions), *removed)
        about = self._found({name: parts for name, parts in joined.items() if name == "abstracts"}, "about")
        new = now - self._before - about if "abstracts" in joins else Ids()
        return Step(self._update.end, parts, len(now), len(gone), len(new))

    def _papers(self, mains: Sequence[str]) -> tuple[Mapping[str, list[Part]], Ids]:
        """Upserts of papers, and the papers that are kept after them."""
        made, update = self._made, self._update
        cut = Cut.of_json(made.cut)
        wanted, near = (path if path.exists() else None for path in (made.folder / WANTED, made.folder / NEAR))
        known = self._saved("lines", self._lines_here(mains)) if update.is_whole else None
        sieve = PaperSieve(cut.filters, cut.languages, wanted, near, made.state() / KEPT, known)
        upserts = self._read("upserts", mains, lambda _: sieve)
        now = Ids() if update.is_whole else self._before
        for name, parts in upserts.items():
            for part in parts:  # of two records of a paper the later one counts
                notes = self._notes(f"{name} upserts")
                now = now - joined_ids(notes, [part], "left") | joined_ids(notes, [part], "kept")
        return upserts, now

    def _joined(
        self, joins: Sequence[str], kept: Path, known: Path
    ) -> tuple[Mapping[str, list[Part]], Mapping[str, list[Part]], Ids | None]:
        """Upserts and deletions of what is about kept papers; and the keys of the records that are there after them."""
        before = self._made.state() / KEYS
        has_keys = self._corpus.citations in joins
        keys = Ids.load(before) if before.exists() else Ids()
        saved = self._saved("keys", keys)
        upserts = self._read("upserts", joins, lambda _: ChangedSieve(kept, saved))
        keys |= self._found(upserts, "keys")
        all_keys = self._saved("all-keys", keys)
        deletions = self._read(
            "deletes", joins, lambda name: DeletionSieve(all_keys if name == self._corpus.citations else known)
        )
        of_citations = {name: parts for name, parts in deletions.items() if name == self._corpus.citations}
        return upserts, deletions, keys - self._found(of_citations, "deleted") if has_keys else None

    def _read(self, kind: str, datasets: Iterable[str], sieve_of: Callable[[str], Sieve]) -> dict[str, list[Part]]:
        """Reads the upserts or deletions of some datasets."""
        source = self._update.upserts if kind == "upserts" else self._update.deletions
        read: dict[str, list[Part]] = {}
        for name in datasets:
            files = [file for file in source if file.dataset == name]
            stage = f"{name} {kind}"
            listing = Listing(self._place, self._update.end, name, self._update.begin)
            job = Job(listing, sieve_of(name), self._work / name, self._notes(stage))
            read[name] = fetch_files(self._journal, stage, files, job, self._manner)
            self._quarantined += [(job.notes, part) for part in read[name]]
        return read

    def _found(self, read: Mapping[str, Sequence[Part]], label: str) -> Ids:
        """The ids of a kind that were noted in upserts or deletions."""
        kind = "deletes" if label == "deleted" else "upserts"
        return functools.reduce(
            operator.or_,
            (joined_ids(self._notes(f"{name} {kind}"), parts, label) for name, parts in read.items()),
            Ids(),
        )

    def _removals(self, dataset: str, ids: Ids) -> Iterator[Part]:
        """A file of deletions, of what is not of the cut any more or was not named by the source."""
        if not len(ids):
            return
        path = self._work / dataset / "deletes-cut.jsonl.gz"
        made = [self._corpus.removal(dataset, one) for one in ids]
        with kept_lines(path) as write:
            for _, line in made:
                write(line)
        sync_entry(path)
        size, checksum = path.stat().st_size, f"sha256:{file_digest(path)}"
        yield Part(dataset, path.name, made[0][0], 0, len(made), len(made), 0, size, checksum)

    def _citations_of(self, gone: Ids, keys: Ids, joined: Mapping[str, Sequence[Part]]) -> Ids:
        """The keys of the records here that are about papers that are gone."""
        name, found = self._corpus.citations, set[str]()
        here = [*_local(self._made, [name]), *((self._work / name / part.file_name, part) for part in joined[name])]
        for record in self._records(here):
            if record.key is not None and record.paper_id is not None:
                (found.add if record.paper_id in gone else found.discard)(record.key)  # the later record counts
        return Ids(found) & keys

    def _lines_here(self, mains: Sequence[str]) -> Ids:
        """Digests of the records of papers as they are here."""
        latest = {
            paper.paper_id: digest_of_line(record.raw)
            for record in self._records(_local(self._made, mains))
            for paper in (record.records if isinstance(record.records, tuple) else ())
            if isinstance(paper, Paper)
        }
        return Ids(latest.values())

    def _records(self, files: Iterable[tuple[Path, Part]]) -> Iterator[RawRecord]:
        for path, part in files:
            if part.kept and not part.name.startswith("deletes-"):
                lines = (raw for _, raw, _ in raw_lines(path, blank_too=True))
                yield from self._corpus.records(RemoteFile(part.dataset, part.name, part.format, ""), lines)

    def _notes(self, stage: str) -> Path:
        return self._work / _NOTES / stage

    def _saved(self, name: str, ids: Ids) -> Path:
        return self._save(f"{_NOTES}/{name}.ids", ids)

    def _save(self, name: str, ids: Ids) -> Path:
        ids.save(self._work / name)
        return self._work / name


def _flat(read: Mapping[str, Sequence[Part]]) -> Iterator[Part]:
    return (part for parts in read.values() for part in parts)


def _local(made: FetchedCorpus, datasets: Sequence[str]) -> Iterator[tuple[Path, Part]]:
    """The files of some datasets that are here, in the order in which they are read."""
    for number, step in enumerate(made.steps):
        for part in step.parts:
            if part.dataset in datasets:
                yield made.folder / made.place(number) / part.dataset / part.file_name, part
