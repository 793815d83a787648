"""A release fetched into a new folder, cut to size."""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.fetch.cut import (
    Cut,
    JoinSieve,
    NeighbourSieve,
    PaperSieve,
    SeedSieve,
    Sieve,
    library_entries,
    wanted_ids,
)
from citerec.corpus.fetch.folder import (
    KEPT,
    KEYS,
    NEAR,
    QUARANTINE,
    WANTED,
    FetchedCorpus,
    Step,
    is_corpus,
    joined_ids,
    write_quarantine,
)
from citerec.corpus.fetch.ids import Ids
from citerec.corpus.fetch.part import Job, Listing, Part, Place
from citerec.corpus.fetch.stage import Manner, fetch_files
from citerec.corpus.releases.base import CORPORA, Release, RemoteFile
from citerec.errors import InputError
from citerec.files.resume import JOURNAL, Journal, forget, read_json
from citerec.files.writing import alone, beside, exchange, recover, remove, write_failures
from citerec.version import __version__

_NOTES = "notes"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to fetch, and where to.

    Attributes:
        place: The corpus on its server.
        release: The release.
        files: The files of each dataset that is kept, papers first.
        citations: The files in which the neighbours of papers are looked for; empty without `Cut.cited_by`.
        cut: Which papers are kept.
        out: The folder that is made.
    """

    place: Place
    release: Release
    files: Mapping[str, tuple[RemoteFile, ...]]
    citations: tuple[RemoteFile, ...]
    cut: Cut
    out: Path

    @property
    def joins(self) -> list[str]:
        """The datasets of which only what is about kept papers is kept."""
        return [name for name in self.files if name in self.place.open().joins]

    @property
    def mains(self) -> list[str]:
        """The datasets of the papers themselves."""
        return [name for name in self.files if name not in self.place.open().joins]

    @property
    def identity(self) -> dict[str, Any]:
        """What the result depends on."""
        names = {dataset: [file.name for file in files] for dataset, files in self.files.items()}
        return {
            "corpus": self.place.corpus,
            "release": self.release.name,
            "cut": self.cut.to_json(),
            "files": names,
        }

    def listing(self, dataset: str) -> Listing:
        """Where the files of a dataset are listed."""
        return Listing(self.place, self.release.name, dataset)


def make_plan(place: Place, out: Path, release: str | None, datasets: Sequence[str], cut: Cut) -> Plan:
    """What has to be fetched for a corpus; work that was stopped keeps the release that it began with.

    Args:
        place: The corpus on its server.
        out: The folder to make.
        release: The release; by default the newest.
        datasets: The datasets; by default those that are fetched by default. Papers always are.
        cut: Which papers are kept.

    Raises:
        InputError: Something that is asked for does not exist, or `out` holds something else.
        WebError: The server does not answer.
    """
    corpus = place.open()
    cut.check(type(corpus))
    check_free(out)
    begun = (read_json(beside(out, "getting") / JOURNAL) or {}).get("plan", {}).get("release")
    found = corpus.release(release or begun)
    known = {dataset.name: dataset for dataset in found.datasets}
    for name in datasets:
        if name not in known:
            raise InputError(
                f"release {found.name} of {corpus.name} has no dataset {name!r}", f"Choose: {', '.join(known)}."
            )
    chosen = [name for name, one in known.items() if name in datasets or (not datasets and one.is_default)]
    mains = [name for name, one in known.items() if name not in corpus.joins and one.is_default]
    ordered = list(dict.fromkeys([*mains, *(name for name in chosen if name not in corpus.joins), *chosen]))
    files = {name: tuple(corpus.files(found.name, name)) for name in ordered}
    for name in mains:
        if not files[name]:
            raise InputError(f"release {found.name} of {corpus.name} has no {name}", "Choose another with --release.")
    citations: tuple[RemoteFile, ...] = ()
    if cut.cited_by:
        citations = files.get(corpus.citations) or tuple(corpus.files(found.name, corpus.citations))
    return Plan(place, found, files, citations, cut, out)


def is_begun(out: Path) -> bool:
    """Whether a folder was begun and not finished."""
    return read_json(beside(out, "getting") / JOURNAL) is not None


def fetched_already(out: Path, source: str, release: str | None, cut: Cut) -> FetchedCorpus | None:
    """The corpus that is asked for, if it is there; errors as for `FetchedCorpus.read`."""
    recover(out)
    if not is_corpus(out):
        return None
    cut.check(CORPORA[source])
    made = FetchedCorpus.read(out)
    stated = orjson.loads(orjson.dumps(cut.to_json()))
    same = made.source == source and stated == made.cut and release in (None, made.steps[0].release)
    return made if same else None


def check_free(out: Path) -> None:
    """Raises InputError unless a corpus can be made there."""
    recover(out)
    if is_corpus(out):
        made = FetchedCorpus.read(out)
        raise InputError(
            f"{out} holds {made.source} already, release {made.release}",
            f"Bring it up to date: citerec corpus update {out}. Or give another --out.",
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is no fetched corpus", "Give another --out.")


def get_corpus(plan: Plan, manner: Manner) -> FetchedCorpus:
    """Fetches a release into its folder. Work that was stopped, even by a kill, goes on.

    Raises:
        InputError: Other work in this folder was not finished, or no paper is of the cut.
        WebError: The server does not answer, or its files are broken.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    work = beside(plan.out, "getting")
    with (
        write_failures(plan.out, "Make room, then run the same command: it goes on where it stopped."),
        alone(beside(plan.out, "lock"), f"another process is fetching {plan.out}"),
    ):
        check_free(plan.out)
        before = (read_json(work / JOURNAL) or {}).get("plan")
        if before and before != orjson.loads(orjson.dumps({"citerec": __version__, **plan.identity})):
            raise InputError(
                f"{work} holds other work that was not finished: {before.get('corpus')} {before.get('release')}",
                f"Repeat that command to finish it, or remove {work}, or give another --out.",
            )
        journal = Journal(work, plan.identity)
        if not journal.get("is_whole"):
            _Getting(plan, journal, manner).run().write(work)
            journal.note(is_whole=True)  # a call that is killed from here on does not need the notes
        remove(work / _NOTES)
        exchange(work, plan.out)
        forget(plan.out)
    return FetchedCorpus.read(plan.out)


class _Getting:
    """The passes over a release."""

    def __init__(self, plan: Plan, journal: Journal, manner: Manner) -> None:
        self._plan, self._journal, self._manner = plan, journal, manner
        self._work = journal.folder
        self._quarantined: list[tuple[Path, Part]] = []

    def run(self) -> FetchedCorpus:
        plan, cut = self._plan, self._plan.cut
        wanted = self._saved(WANTED, functools.partial(wanted_ids, cut.ids)) if cut.ids else None
        near = self._neighbourhood(cut.cited_by) if cut.cited_by else None
        sieve = PaperSieve(cut.filters, cut.languages, wanted, near)
        parts, kept_ids = self._read(plan.mains, sieve, "kept")
        if not any(part.kept for part in parts):
            remove(self._work)
            raise InputError(
                "no paper of the release is of this cut", "Check the spelling of fields and venues, or ask for less."
            )
        joined, keys = self._read(plan.joins, JoinSieve(self._saved(KEPT, kept_ids)), "keys")
        if any("keys" in part.found for part in joined):
            self._saved(KEYS, keys)
        write_quarantine(self._quarantined, self._work / QUARANTINE)
        step = Step(plan.release.name, (*parts, *joined), len(Ids.load(self._work / KEPT)))
        return FetchedCorpus(plan.out, plan.place.corpus, tuple(plan.files), cut.to_json(), plan.release.terms, (step,))

    def _read(self, datasets: Iterable[str], sieve: Sieve, label: str) -> tuple[list[Part], Callable[[], Ids]]:
        """Keeps what a sieve keeps of some datasets; also what gives the ids of a kind that it noted."""
        parts = []
        for name in datasets:
            read = self._pass(name, name, sieve, self._work / name)
            self._quarantined += [(self._notes(name), part) for part in read]
            parts.append((name, read))

        def ids() -> Ids:
            return functools.reduce(
                operator.or_, (joined_ids(self._notes(name), read, label) for name, read in parts), Ids()
            )

        return [part for _, read in parts for part in read], ids

    def _neighbourhood(self, bibliography: Path) -> Path:
        """The ids of the papers of a bibliography, and of those near to them."""
        plan, hops = self._plan, self._plan.cut.hops
        looked = [(f"{name}, for the bibliography", name) for name in plan.mains]
        seeds, entries = Ids(), Ids()
        for stage, name in looked:
            parts = self._pass(stage, name, SeedSieve(bibliography))
            seeds |= joined_ids(self._notes(stage), parts, "seeds")
            entries |= joined_ids(self._notes(stage), parts, "entries")
        whole = len(library_entries(bibliography))
        self._manner.on_note(f"{len(entries):,} of {whole:,} entries of {bibliography} are papers of the corpus.")
        if not seeds:
            remove(self._work)
            raise InputError(
                f"no entry of {bibliography} is a paper of the corpus", "Give an entry a DOI, or use --ids."
            )
        around = seeds
        for hop in range(1, hops + 1):
            stage = f"citations, hop {hop}"
            inside = self._saved(f"{_NOTES}/around-{hop}.ids", lambda: around)  # noqa: B023
            parts = self._pass(stage, plan.place.open().citations, NeighbourSieve(inside))
            around = Ids.load(inside) | joined_ids(self._notes(stage), parts, "near")
        return self._saved(NEAR, lambda: around)

    def _pass(self, stage: str, dataset: str, sieve: Sieve, out: Path | None = None) -> list[Part]:
        """Reads all files of a dataset; without a folder for what is kept it only looks."""
        plan = self._plan
        files = plan.files.get(dataset) or plan.citations
        return fetch_files(
            self._journal, stage, files, Job(plan.listing(dataset), sieve, out, self._notes(stage)), self._manner
        )

    def _notes(self, stage: str) -> Path:
        return self._work / _NOTES / stage

    def _saved(self, name: str, make: Callable[[], Ids]) -> Path:
        """A file of ids, made once."""
        path = self._work / name
        if not path.exists():
            make().save(path)
        return path
