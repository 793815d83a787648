"""The passes over the files of a release or of an update: what each keeps, and what is noted for the next."""

import functools
import gzip
import operator
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from citerec.corpus.base import REMOVED, UPDATES
from citerec.corpus.json_lines import writing_lines
from citerec.errors import InputError
from citerec.files.writing import remove, writing_file
from citerec.sources.base import RemoteFile, Update
from citerec.sources.cut import Cut, Sieve, kept_deletions, kept_joins, kept_papers
from citerec.sources.ids import Ids
from citerec.sources.part import Job, Manner, Part, Place, fetch_files

QUARANTINE, NOTES = "quarantine.jsonl", "notes"
KEPT, KEYS, WANTED, NEAR = "kept.ids", "keys.ids", "wanted.ids", "near.ids"
_MANY = 0.2  # share of the papers that one update hardly deletes


class Step(BaseModel):
    """The release that a corpus began with, or an update.

    Attributes:
        release: The release after it.
        folder: Where its files are, in the folder of the corpus. Those of the last step have the ids of the corpus.
        papers: How many papers the corpus had after it.
        left: Papers that were deleted, or are not of the cut any more.
        without_text: Papers that are new here, and of which it has no abstract.
        parts: The files that were read, in the order in which they are to be read here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: str
    folder: str
    papers: int
    left: int = 0
    without_text: int = 0
    parts: tuple[Part, ...]


class Passes:
    """Passes over the files of an update, or of a release, which is an update of nothing.

    Attributes:
        corpus: The corpus on its server.
        work: The folder to which what is kept is written.
        manner: How to fetch.
    """

    def __init__(self, place: Place, update: Update, work: Path, manner: Manner) -> None:
        self.corpus, self.work, self.manner = place.open(), work, manner
        self._place, self._update = place, update
        self._parts: list[Part] = []

    def read(self, dataset: str, files: Iterable[RemoteFile], sieve: Sieve, *, stage: str = "") -> None:
        """Reads the files of a dataset.

        Args:
            dataset: The dataset.
            files: Its files, and others, which are left out.
            sieve: Which records are kept.
            stage: A name for a pass that only looks at records; without one, what is kept is written.
        """
        notes = self.work / NOTES / (stage or dataset)
        out = notes if stage else self.work / dataset
        job = Job(self._place, self._update.end, self._update.begin, sieve, notes, out)
        parts = fetch_files(stage or dataset, [file for file in files if file.dataset == dataset], job, self.manner)
        self._parts += [] if stage else parts

    def ids(self, label: str, *stages: str) -> Ids:
        """The ids of a kind that were noted in some passes, which are called by their stages or datasets."""
        paths = [path for stage in stages for path in sorted((self.work / NOTES / stage).glob(f"*.{label}"))]
        return functools.reduce(operator.or_, map(Ids.load, paths), Ids())

    def noted(self, name: str, ids: Ids) -> Path:
        """A file of ids for a sieve."""
        ids.save(path := self.work / NOTES / f"{name}.ids")
        return path

    def step(
        self, cut: Cut, datasets: Sequence[str], cut_ids: Path, before: Path | None = None, lines: Path | None = None
    ) -> Step:
        """Reads the datasets, cut to size. The ids of the corpus are in the folder of the work then.

        Args:
            cut: Which papers are kept.
            datasets: The datasets.
            cut_ids: The folder with the ids of papers that are asked for, if some are.
            before: The folder with the ids of the corpus before; none for a release.
            lines: A file of `digest_of_line` of papers that are here, if the update has all papers.

        Raises:
            InputError: No paper is of the cut.
        """
        update = self._update
        mains = [name for name in datasets if name not in self.corpus.joins]
        joins = [name for name in datasets if name in self.corpus.joins]
        papers, keys = (Ids.load(before / name) if before else Ids() for name in (KEPT, KEYS))
        wanted, near = (path if (path := cut_ids / name).exists() else None for name in (WANTED, NEAR))
        sieve = functools.partial(kept_papers, cut, wanted, near, before and before / KEPT, lines)
        for name in mains:
            self.read(name, update.upserts, sieve)
        kept, left = self.ids("kept", *mains), self.ids("left", *mains)
        now = kept if update.is_whole else papers - left | kept
        known = self.noted("known", papers | now)
        if not len(papers | now):
            remove(self.work)
            raise InputError(
                "no paper of the release is of this cut", "Check the spelling of fields and venues, or ask for less."
            )
        for name in mains:
            self.read(name, update.deletions, functools.partial(kept_deletions, known))
        deleted = self.ids("deleted", *mains)
        now -= deleted
        now.save(self.work / KEPT)
        about = functools.partial(kept_joins, self.work / KEPT, before and before / KEYS)
        for name in joins:
            self.read(name, update.upserts, about)
        keys |= self.ids("keys", *joins)
        all_keys = self.noted("all-keys", keys)
        for name in joins:
            named = all_keys if name == self.corpus.citations else known
            self.read(name, update.deletions, functools.partial(kept_deletions, named))
        (keys - self.ids("deleted", self.corpus.citations)).save(self.work / KEYS)
        gone = papers - now
        self._remove(mains[0], gone - deleted)
        if len(gone) > _MANY * len(papers):
            self.manner.on_note(
                f"The update to {update.end} removed {len(gone):,} of {len(papers):,} papers: is the release whole?"
            )
        self._write_quarantine()
        return Step(
            release=update.end,
            folder=f"{UPDATES}/{update.begin}_{update.end}" if update.begin else "",
            papers=len(now),
            left=len(gone),
            without_text=len(now - papers - self.ids("about", "abstracts")) if "abstracts" in joins else 0,
            parts=tuple(self._parts),
        )

    def _remove(self, dataset: str, ids: Ids) -> None:
        """Writes a file of the papers that are not of the cut any more, or that the source does not name as deleted."""
        if len(ids):
            path = self.work / dataset / "deletes-cut.gz"
            with writing_file(path) as partial, writing_lines(partial) as write:
                for one in ids:
                    write(one.encode())
            count, size = len(ids), path.stat().st_size
            part = Part(dataset=dataset, name=path.name, format=REMOVED, read=count, kept=count, size=size)
            self._parts.append(part)

    def _write_quarantine(self) -> None:
        """Joins the bad records into one file of JSON Lines, if there are any."""
        bad = [part for part in self._parts if part.bad]
        if bad:
            with writing_file(self.work / QUARANTINE) as partial, partial.open("wb") as out:
                for part in bad:
                    with gzip.open(self.work / NOTES / part.dataset / f"{part.name}.bad") as lines:
                        shutil.copyfileobj(lines, out)
