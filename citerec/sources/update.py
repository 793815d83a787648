"""A fetched corpus brought up to date by the diffs of its source, cut to size as its release was."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.base import REMOVED
from citerec.corpus.json_lines import raw_lines
from citerec.errors import InputError
from citerec.files.resume import Journal, forget
from citerec.files.writing import alone, beside, exchange, remove, write_failures
from citerec.sources.base import RawRecord, RemoteFile, Update
from citerec.sources.cut import Cut, Sieve, digest_of_line, kept_deletions, kept_joins, kept_papers, papers_of
from citerec.sources.fetch import KEPT, KEYS, NEAR, NOTES, WANTED, FetchedCorpus, Passes, Step
from citerec.sources.ids import Ids
from citerec.sources.part import Job, Listing, Manner, Part, Place, found_ids, kept_lines

_WORK = ".updating"
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
            Journal(work, {"begin": update.begin, "end": update.end, "files": names})
            step = _Updating(made, renewal.place, update, work, manner).run()
            made = made.model_copy(update={"steps": (*made.steps, step)})
            made.state().parent.mkdir(exist_ok=True)
            exchange(work, made.state())
            remove(made.state() / NOTES)  # not before: a killed call goes on with them
            forget(made.state())
            made.write()
            for name in (KEPT, KEYS):
                (old / name).unlink(missing_ok=True)  # the later state has its own
    return made


Parts = Mapping[str, Sequence[Part]]
"""The parts of passes, by their stage."""


class _Updating(Passes):
    """The passes of one update. All upserts come before all deletions."""

    def __init__(self, made: FetchedCorpus, place: Place, update: Update, work: Path, manner: Manner) -> None:
        super().__init__(work, manner)
        self._made, self._place, self._update, self._corpus = made, place, update, place.open()
        self._mains = [name for name in made.datasets if name not in self._corpus.joins]
        self._joins = [name for name in made.datasets if name in self._corpus.joins]

    def run(self) -> Step:
        """Fetches and cuts to size; ids and files are in the folder of the work then."""
        before = Ids.load(self._made.state() / KEPT)
        upserts, now = self._papers(before)
        known = self._noted("known", before | now)
        deletions = self._each("deletes", self._mains, lambda _: functools.partial(kept_deletions, known))
        deleted = self.ids(deletions, "deleted")
        now -= deleted
        now.save(self.work / KEPT)
        joined, joined_deletions = self._texts(known)
        gone = before - now
        removed = self._removed(gone - deleted)
        if len(gone) > _MANY * len(before):
            self.manner.on_note(
                f"The update to {self._update.end} removed {len(gone):,} of {len(before):,} papers: "
                "is the release whole?"
            )
        self.write_quarantine()
        read = (upserts, joined, deletions, joined_deletions)
        about = self.ids({stage: parts for stage, parts in joined.items() if stage == "abstracts upserts"}, "about")
        return Step(
            release=self._update.end,
            papers=len(now),
            left=len(gone),
            without_text=len(now - before - about) if "abstracts" in self._joins else 0,
            parts=(*(part for passes in read for parts in passes.values() for part in parts), *removed),
        )

    def _papers(self, before: Ids) -> tuple[Parts, Ids]:
        """Upserts of papers, and the papers that are kept after them."""
        made, cut = self._made, Cut.of_json(self._made.cut)
        wanted, near = (path if path.exists() else None for path in (made.folder / WANTED, made.folder / NEAR))
        known = self._noted("lines", self._lines_here()) if self._update.is_whole else None
        kept_before = made.state() / KEPT
        sieve = functools.partial(kept_papers, cut.filters, cut.languages, wanted, near, kept_before, known)
        upserts = self._each("upserts", self._mains, lambda _: sieve, cut)
        now = Ids() if self._update.is_whole else before
        for stage, parts in upserts.items():
            for part in parts:  # of two records of a paper the later one counts
                left, kept = (found_ids(self.notes(stage), [part], label) for label in ("left", "kept"))
                now = now - left | kept
        return upserts, now

    def _texts(self, known: Path) -> tuple[Parts, Parts]:
        """Upserts and deletions of what is about kept papers."""
        before, citations = self._made.state() / KEYS, self._corpus.citations
        keys = Ids.load(before) if before.exists() else Ids()
        sieve = functools.partial(kept_joins, self.work / KEPT, self._noted("keys", keys))
        upserts = self._each("upserts", self._joins, lambda _: sieve)
        keys |= self.ids(upserts, "keys")
        all_keys = self._noted("all-keys", keys)
        deletions = self._each(
            "deletes",
            self._joins,
            lambda name: functools.partial(kept_deletions, all_keys if name == citations else known),
        )
        if citations in self._joins:
            of_citations = {stage: parts for stage, parts in deletions.items() if stage == f"{citations} deletes"}
            (keys - self.ids(of_citations, "deleted")).save(self.work / KEYS)
        return upserts, deletions

    def _each(
        self, kind: str, datasets: Iterable[str], sieve_of: Callable[[str], Sieve], cut: Cut | None = None
    ) -> Parts:
        """Reads the upserts or deletions of some datasets."""
        source = self._update.upserts if kind == "upserts" else self._update.deletions
        read = {}
        for name in datasets:
            stage, files = f"{name} {kind}", [file for file in source if file.dataset == name]
            listing = Listing(self._place, self._update.end, name, self._update.begin)
            job = Job(listing, sieve_of(name), self.notes(stage), self.work / name, cut.filters if cut else None)
            read[stage] = self.read(stage, files, job)
        return read

    def _removed(self, ids: Ids) -> list[Part]:
        """A file of the papers that are not of the cut any more, or that the source does not name as deleted."""
        if not len(ids):
            return []
        path = self.work / self._mains[0] / "deletes-cut.gz"
        with kept_lines(path) as write:
            for one in ids:
                write(f"{one}\n".encode())
        count, size = len(ids), path.stat().st_size
        return [Part(dataset=self._mains[0], name=path.name, format=REMOVED, read=count, kept=count, size=size)]

    def _lines_here(self) -> Ids:
        """Digests of the records of papers as they are here."""
        records = self._records(self._made.files(self._mains))
        latest = {paper.paper_id: digest_of_line(record.raw) for record in records for paper in papers_of(record)}
        return Ids(latest.values())

    def _records(self, files: Iterable[tuple[Path, Part]]) -> Iterator[RawRecord]:
        for path, part in files:
            if part.kept and part.format != REMOVED:
                lines = (raw for _, raw, _ in raw_lines(path, blank_too=True))
                yield from self._corpus.records(RemoteFile(part.dataset, part.name, part.format, ""), lines)

    def _noted(self, name: str, ids: Ids) -> Path:
        path = self.work / NOTES / f"{name}.ids"
        ids.save(path)
        return path
