"""A release fetched into a new folder, cut to size, and brought up to date by the diffs of its source."""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field

from citerec.corpus.base import CORPUS, REMOVED
from citerec.corpus.json_lines import raw_lines
from citerec.errors import InputError, first_fault
from citerec.files.resume import JOURNAL, Journal, read_json
from citerec.files.writing import Kind, alone, beside, exchange, remove, write_failures, writing_file
from citerec.records import Paper
from citerec.sources.base import CORPORA, Corpus, Release, RemoteFile, Update
from citerec.sources.cut import Cut, digest_of_line, library_entries, neighbours_of, seeds_of, wanted_ids
from citerec.sources.ids import Ids
from citerec.sources.part import Manner, Part, Place
from citerec.sources.passes import KEPT, KEYS, NEAR, NOTES, WANTED, Passes, Step
from citerec.version import __version__

_UPDATING = ".updating"

KIND = Kind("fetched corpus", "corpus", CORPUS, frozenset())


class FetchedCorpus(BaseModel):
    """What is in a corpus folder.

    Attributes:
        folder: The folder.
        source: The name of its source.
        datasets: The datasets that were fetched.
        cut: The cut, as `Cut.to_json` states it.
        terms: The terms of use, as the source stated them.
        steps: The release that it began with, then its updates, in order.
    """

    model_config = ConfigDict(frozen=True)

    folder: Path = Field(exclude=True)
    kind: Literal["corpus"] = "corpus"
    version: Literal[2] = 2
    citerec: str = __version__
    source: str
    datasets: tuple[str, ...]
    cut: dict[str, Any]
    terms: str
    steps: tuple[Step, ...] = Field(min_length=1)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shards(self) -> list[dict[str, str]]:
        """The files that hold records, in the order in which they are to be read: path and format."""
        return [{"path": str(path.relative_to(self.folder)), "format": part.format} for path, part in self.files()]

    @property
    def release(self) -> str:
        """The release that it is at."""
        return self.steps[-1].release

    @property
    def papers(self) -> int:
        """How many papers it has."""
        return self.steps[-1].papers

    @property
    def state(self) -> Path:
        """The folder with the ids of what it has."""
        return self.folder / self.steps[-1].folder

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(part.size for part in self.parts)

    @property
    def parts(self) -> list[Part]:
        """All files that were read, in order."""
        return [part for step in self.steps for part in step.parts]

    def files(self) -> Iterator[tuple[Path, Part]]:
        """The files that hold records, in the order in which they are to be read."""
        for step in self.steps:
            for part in step.parts:
                if part.kept:
                    yield self.folder / step.folder / part.dataset / part.name, part

    def write(self, folder: Path) -> None:
        """Writes the manifest to a folder."""
        with writing_file(folder / CORPUS) as partial:
            partial.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The corpus in a folder.

        Raises:
            InputError: There is none, or it was written by another version.
        """
        if not KIND.is_at(folder):
            raise InputError(f"{folder} is no fetched corpus", "Fetch one: citerec corpus get SOURCE --out FOLDER")
        try:
            stated = read_json(folder / CORPUS) or {}
            return cls.model_validate({**stated, "folder": folder})
        except ValidationError as error:
            fault = first_fault(error)
            raise InputError(f"{folder / CORPUS} is damaged ({fault})", "Fetch the corpus again.") from None


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
    def mains(self) -> list[str]:
        """The datasets of the papers themselves."""
        return [name for name in self.files if name not in self.place.open().joins]

    @property
    def identity(self) -> dict[str, Any]:
        """What the result depends on."""
        return {
            "corpus": self.place.corpus,
            "release": self.release.name,
            "cut": self.cut.to_json(),
            "files": {dataset: [file.name for file in files] for dataset, files in self.files.items()},
        }


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
    found = corpus.release(release or unfinished(out).get("release"))
    known = {dataset.name: dataset for dataset in found.datasets}
    for name in datasets:
        if name not in known:
            raise InputError(
                f"release {found.name} of {corpus.name} has no dataset {name!r}", f"Choose: {', '.join(known)}."
            )
    chosen = [
        name
        for name, one in known.items()
        if name in datasets or (one.is_default and not (datasets and name in corpus.joins))
    ]
    files = {name: tuple(corpus.files(found.name, name)) for name in sorted(chosen, key=corpus.joins.__contains__)}
    for name, listed in files.items():
        if not listed and name not in corpus.joins:
            raise InputError(f"release {found.name} of {corpus.name} has no {name}", "Choose another with --release.")
    citations = tuple(corpus.files(found.name, corpus.citations)) if cut.cited_by else ()
    return Plan(place, found, files, citations, cut, out)


def unfinished(out: Path) -> dict[str, Any]:
    """The plan of work that was begun and not finished; empty if there is none."""
    return (read_json(beside(out, "getting") / JOURNAL) or {}).get("plan") or {}


def fetched_already(out: Path, source: str, release: str | None, cut: Cut) -> FetchedCorpus | None:
    """The corpus that is asked for, if it is there; errors as for `FetchedCorpus.read`."""
    if not KIND.is_at(out):
        return None
    cut.check(CORPORA[source])
    made = FetchedCorpus.read(out)
    same = made.source == source and made.cut == cut.to_json() and release in (None, made.steps[0].release)
    return made if same else None


def check_free(out: Path) -> None:
    """Raises InputError unless a corpus can be made there."""
    if KIND.is_at(out):
        made = FetchedCorpus.read(out)
        raise InputError(
            f"{out} holds {made.source} already, release {made.release}",
            f"Bring it up to date: citerec corpus update {out}. Or give another --out.",
        )
    KIND.check_place(out)


@contextlib.contextmanager
def _fetching(folder: Path) -> Iterator[None]:
    """Lets one process at a time fetch into a folder, and says what to do if the disk is full."""
    with (
        write_failures(folder, "Make room, then run the same command: it goes on where it stopped."),
        alone(beside(folder, "lock"), f"another process is fetching {folder}"),
    ):
        yield


def get_corpus(plan: Plan, manner: Manner) -> FetchedCorpus:
    """Fetches a release into its folder. Work that was stopped, even by a kill, goes on.

    Raises:
        InputError: Other work in this folder was not finished, or no paper is of the cut.
        WebError: The server does not answer, or its files are broken.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    work = beside(plan.out, "getting")
    with _fetching(plan.out):
        check_free(plan.out)
        before = unfinished(plan.out)
        if before and before != {"citerec": __version__, **plan.identity}:
            raise InputError(
                f"{work} holds other work that was not finished: {before.get('corpus')} {before.get('release')}",
                f"Repeat that command to finish it, or remove {work}, or give another --out.",
            )
        journal = Journal(work, plan.identity)
        if not journal.get("is_whole"):
            _get(plan, work, manner).write(work)
            journal.note(is_whole=True)  # a call that is killed from here on does not need the notes
        remove(work / NOTES)
        exchange(work, plan.out)
        (plan.out / JOURNAL).unlink(missing_ok=True)
    return FetchedCorpus.read(plan.out)


def _get(plan: Plan, work: Path, manner: Manner) -> FetchedCorpus:
    """Reads a release into a folder of work."""
    files = tuple(file for files in plan.files.values() for file in files)
    passes, cut = Passes(plan.place, Update("", plan.release.name, files, ()), work, manner), plan.cut
    if cut.ids:
        wanted_ids(cut.ids).save(work / WANTED)
    if cut.cited_by:
        _neighbourhood(plan, cut.cited_by, passes).save(work / NEAR)
    return FetchedCorpus(
        folder=plan.out,
        source=plan.place.corpus,
        datasets=tuple(plan.files),
        cut=cut.to_json(),
        terms=plan.release.terms,
        steps=(passes.step(cut, list(plan.files), work),),
    )


def _neighbourhood(plan: Plan, bibliography: Path, passes: Passes) -> Ids:
    """The ids of the papers of a bibliography, and of those near to them."""
    looked = {f"{name}, for the bibliography": name for name in plan.mains}
    for stage, name in looked.items():
        passes.read(name, plan.files[name], functools.partial(seeds_of, bibliography), stage=stage)
    around, entries = (passes.ids(label, *looked) for label in ("seeds", "entries"))
    whole = len(library_entries(bibliography))
    passes.manner.on_note(f"{len(entries):,} of {whole:,} entries of {bibliography} are papers of the corpus.")
    if not around:
        remove(passes.work)
        raise InputError(f"no entry of {bibliography} is a paper of the corpus", "Give an entry a DOI, or use --ids.")
    for hop in range(1, plan.cut.hops + 1):
        stage, sieve = f"citations, hop {hop}", functools.partial(neighbours_of, passes.noted(f"around-{hop}", around))
        passes.read(passes.corpus.citations, plan.citations, sieve, stage=stage)
        around |= passes.ids("near", stage)
    return around


def update_corpus(folder: Path, manner: Manner, url: str | None = None) -> FetchedCorpus:
    """Applies what changed since a corpus was fetched or brought up to date, in order; work that was stopped goes on.

    Each update counts only when it is complete. If nothing changed, the corpus is as it was.

    Args:
        folder: The folder of the corpus.
        manner: How to fetch.
        url: The address of its source, if it is not the usual one.

    Raises:
        InputError: There is no corpus, or the source needs a key.
        WebError: The server does not answer, or its files are broken.
        BuildError: Too many records are bad, the disk is full, or a process died.
    """
    FetchedCorpus.read(folder)  # no lock is made where there is none
    with _fetching(folder):
        made = FetchedCorpus.read(folder)
        place = Place(made.source, url)
        for update in place.open().updates(made.release, made.datasets):
            work, before = folder / _UPDATING, made.state
            names = [f"{file.dataset}/{file.name}" for file in (*update.upserts, *update.deletions)]
            Journal(work, {"begin": update.begin, "end": update.end, "files": names})
            passes = Passes(place, update, work, manner)
            lines = passes.noted("lines", _lines_of(made, passes.corpus)) if update.is_whole else None
            step = passes.step(Cut.of_json(made.cut), made.datasets, folder, before, lines)
            made = made.model_copy(update={"steps": (*made.steps, step)})
            made.state.parent.mkdir(exist_ok=True)
            exchange(work, made.state)
            remove(made.state / NOTES)  # not before: a killed call goes on with them
            (made.state / JOURNAL).unlink(missing_ok=True)
            made.write(folder)
        for name in (KEPT, KEYS):
            for path in (folder / name, *folder.glob(f"updates/*/{name}")):
                if path.parent != made.state:  # the latest state has its own; a killed call may have left others
                    path.unlink(missing_ok=True)
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
