"""`citerec.Index`: an index directory, from Python."""

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.errors import InputError
from citerec.files.addresses import path_of
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress, no_progress
from citerec.index.build import (
    BuildOptions,
    add_to_index,
    build_index,
    encode_index,
    remove_papers,
    update_index,
)
from citerec.index.manifest import Manifest, open_store
from citerec.index.vectors.build import DenseOptions
from citerec.recommend import Recommender
from citerec.records import Paper
from citerec.systems import Recipe, default_system

Papers = str | Path | Iterable[str | Path] | Iterable[Paper]
"""Files and folders of papers (docs/formats.md), or papers."""


class Index:
    """An index of papers: a directory with a paper store, its words and, once encoded, vectors.

    Create one with `Index.build`, or open an existing one with `Index.open`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest = Manifest.read(self.path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Opens the index in a directory; errors as for `Manifest.read`: there is none, or it cannot be used."""
        return cls(path)

    @classmethod
    def build(
        cls,
        papers: Papers,
        out: str | Path,
        *,
        citances: Sequence[str | Path] = (),
        options: BuildOptions | None = None,
        on_progress: Progress = no_progress,
    ) -> Self:
        """Builds an index, in place of one that is already at `out`. An interrupted build from files is resumed.

        Args:
            papers: Files and folders (docs/formats.md), or papers in memory.
            out: The index directory.
            citances: Files of contexts whose sentences help to find the papers that they cite.
            options: How to read and build.
            on_progress: Called as the work goes on.

        Raises:
            SourceError: A source is missing, broken, empty, or of no known format.
            BuildError: Too many records are bad, or the disk is full, or another build is running.
        """
        with _as_files(papers) as sources:
            build_index(sources, Path(out), _with_citances(options, citances), on_progress)
        return cls(out)

    def add(
        self,
        papers: Papers,
        *,
        citances: Sequence[str | Path] = (),
        options: BuildOptions | None = None,
        on_progress: Progress = no_progress,
    ) -> None:
        """Adds papers, or replaces older records by newer ones; arguments and errors as for `build`."""
        with _as_files(papers) as sources:
            add_to_index(sources, self.path, _with_citances(options, citances), on_progress)
        self.manifest = Manifest.read(self.path)

    def update(
        self,
        folders: str | Path | Iterable[str | Path] = (),
        *,
        options: BuildOptions | None = None,
        on_progress: Progress = no_progress,
    ) -> None:
        """Brings the index up to date with the updates of the corpus that it was built from.

        Only what is new is read.

        Args:
            folders: The folder of the corpus, or several; by default those that the index was built from.
            options: How to read.
            on_progress: Called as the work goes on.

        Raises:
            InputError: The index was not built from such a folder.
            SourceError: A file that the index has read is gone or changed: it has to be built again.
            BuildError: Too many records are bad, or the disk is full, or another build is running.
        """
        given = [folders] if isinstance(folders, str | Path) else list(folders)
        self.manifest = update_index([Path(folder) for folder in given], self.path, options, on_progress)

    def remove(self, ids: Path | Iterable[str | int], *, on_progress: Progress = no_progress) -> None:
        """Removes papers with their abstracts and TLDRs; sentences about them are no longer found.

        What they say of other papers stays. A later record of such a paper brings it back.

        Args:
            ids: Ids of papers, or the path of a file with one in each line; unknown ones are ignored.
            on_progress: Called as the work goes on.

        Raises:
            InputError: `ids` is a text: its letters would be the ids.
            SourceError: No paper would be left.
            BuildError: The disk is full, or another build is running.
        """
        if isinstance(ids, str):
            raise InputError(f"remove cannot take the text {ids!r:.80}", f"Give [{ids!r:.80}], or Path({ids!r:.80}).")
        with contextlib.ExitStack() as stack:
            if not isinstance(ids, Path):
                ids = stack.enter_context(_as_lines(ids))
            self.manifest = remove_papers(ids, self.path, on_progress=on_progress)

    def encode(
        self,
        model: str = "all-MiniLM-L6-v2",
        *,
        parallelism: Parallelism = HERE,
        on_progress: Progress = no_progress,
        **options: Any,
    ) -> None:
        """Makes a vector of each paper, so that it is found by meaning too.

        An interrupted run is resumed.

        Args:
            model: The encoder of the papers, and later of the queries: a folder, or a name.
            parallelism: Ray, or a number of processes (docs/scale.md).
            on_progress: Called as the work goes on.
            options: Further attributes of `citerec.index.vectors.build.DenseOptions`, such as `backend="onnx-int8"`.

        Raises:
            ModelError: The model cannot be found or loaded.
            InputError: There is no such option.
            BuildError: The disk is full, or another build is running.
        """
        known = {field.name for field in dataclasses.fields(DenseOptions)} - {"model"}
        if unknown := sorted(options.keys() - known):
            raise InputError(f"encode has no option {unknown[0]!r}", f"Options are: {', '.join(sorted(known))}.")
        encode_index(self.path, DenseOptions(model, **options), on_progress, parallelism=parallelism)

    def recommender(self, system: str | Path | Recipe | None = None) -> Recommender:
        """Opens a system on this index; see `Recommender.open`."""
        return Recommender.open(self.path, system)

    def papers(self, paper_ids: Iterable[str | int]) -> dict[str, Paper]:
        """Records by id; unknown ids are left out."""
        store = open_store(self.path)
        try:
            return store.papers(map(str, paper_ids))
        finally:
            store.close()

    @property
    def default_system(self) -> str:
        """The system used by default: the best that the index supports."""
        return default_system(self.path)

    def __len__(self) -> int:
        return self.manifest.counts.papers

    def __repr__(self) -> str:
        return f"<Index {self.path}: {len(self):,} papers, {self.default_system}>"


def _with_citances(options: BuildOptions | None, citances: Sequence[str | Path]) -> BuildOptions:
    options = options or BuildOptions()
    return dataclasses.replace(options, citances=(*options.citances, *map(path_of, citances)))


@contextmanager
def _as_files(papers: Papers) -> Iterator[list[Path]]:
    """The given files, or a temporary file with the given papers."""
    if isinstance(papers, str | Path):
        yield [path_of(papers)]
        return
    given = iter(papers)
    first = next(given, None)
    if first is None:
        raise InputError("there are no papers", "Give files, folders, or papers.")
    if not isinstance(first, Paper):
        yield [path_of(str(path)) for path in itertools.chain([first], given)]
        return
    with tempfile.TemporaryDirectory(prefix="citerec-") as folder:
        path = Path(folder) / "papers.jsonl"
        with path.open("wb") as file:
            for paper in itertools.chain([first], given):
                file.write(orjson.dumps(paper, option=orjson.OPT_APPEND_NEWLINE))
        yield [path]


@contextmanager
def _as_lines(ids: Iterable[str | int]) -> Iterator[Path]:
    """A temporary file with an id in each line."""
    with tempfile.TemporaryDirectory(prefix="citerec-") as folder:
        path = Path(folder) / "removed.txt"
        path.write_text("".join(f"{paper_id}\n" for paper_id in ids), encoding="utf-8")
        yield path
