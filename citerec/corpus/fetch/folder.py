"""The folder of a fetched corpus: what is in it, by `corpus.json`, and where its files lie."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.fetch.ids import Ids
from citerec.corpus.fetch.part import Part
from citerec.corpus.sources import CORPUS, UPDATES
from citerec.errors import InputError
from citerec.files.writing import Kind, writing_file
from citerec.version import __version__

MANIFEST, QUARANTINE = CORPUS, "quarantine.jsonl"
KEPT, KEYS, WANTED, NEAR = "kept.ids", "keys.ids", "wanted.ids", "near.ids"
_VERSION = 1
_KIND = Kind("corpus", "corpus", MANIFEST, frozenset())


@dataclass(frozen=True, slots=True)
class Step:
    """The release that a corpus began with, or an update.

    Attributes:
        release: The release after it.
        parts: The files that were read, in the order in which they are to be read here.
        papers: How many papers the corpus had after it.
        left: In an update: papers that were deleted, or are not of the cut any more.
        without_text: In an update: papers that are new here, and of which the update has no abstract.
    """

    release: str
    parts: tuple[Part, ...]
    papers: int
    left: int = 0
    without_text: int = 0


@dataclass(frozen=True, slots=True)
class FetchedCorpus:
    """What is in a corpus folder.

    Attributes:
        folder: The folder.
        source: The name of its source.
        datasets: The datasets that were fetched.
        cut: The cut, as `Cut.to_json` states it.
        terms: The terms of use, as the source stated them.
        steps: The release that it began with, then its updates, in order.
    """

    folder: Path
    source: str
    datasets: tuple[str, ...]
    cut: Mapping[str, Any]
    terms: str
    steps: tuple[Step, ...] = field(default=())

    @property
    def release(self) -> str:
        """The release that it is at."""
        return self.steps[-1].release

    @property
    def papers(self) -> int:
        """How many papers it has."""
        return self.steps[-1].papers

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(part.size for part in self.parts)

    @property
    def parts(self) -> Iterator[Part]:
        """All files that were read, in order."""
        return (part for step in self.steps for part in step.parts)

    def state(self) -> Path:
        """The folder with the ids that the corpus has now: its own, or that of the last update."""
        return self.folder / self.place(len(self.steps) - 1)

    def place(self, step: int) -> str:
        """The folder of a step, from that of the corpus."""
        return f"{UPDATES}/{self.steps[step - 1].release}_{self.steps[step].release}" if step else ""

    def shards(self) -> list[dict[str, str]]:
        """The files that hold records, in the order in which they are to be read: path and format."""
        return [
            {"path": str(Path(self.place(number), part.dataset, part.file_name)), "format": part.format}
            for number, step in enumerate(self.steps)
            for part in step.parts
            if part.kept
        ]

    def write(self, folder: Path | None = None) -> None:
        """Writes the manifest, to another folder if one is given."""
        first, *updates = (
            {
                "release": step.release,
                "papers": step.papers,
                "left": step.left,
                "without_text": step.without_text,
                "parts": [part.to_json() for part in step.parts],
            }
            for step in self.steps
        )
        stated = {
            "kind": "corpus",
            "version": _VERSION,
            "citerec": __version__,
            "source": self.source,
            "release": self.release,
            "papers": self.papers,
            "datasets": self.datasets,
            "cut": self.cut,
            "terms": self.terms,
            "shards": self.shards(),
            "base": first,
            "updates": updates,
        }
        with writing_file((folder or self.folder) / MANIFEST) as partial:
            partial.write_bytes(orjson.dumps(stated, option=orjson.OPT_INDENT_2) + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "FetchedCorpus":
        """The corpus in a folder.

        Raises:
            InputError: There is none, or it was written by another version.
        """
        if not _KIND.is_at(folder):
            raise InputError(f"{folder} is no fetched corpus", "Fetch one: citerec corpus get SOURCE --out FOLDER")
        try:
            stated = orjson.loads((folder / MANIFEST).read_bytes())
            if stated["version"] != _VERSION:
                raise InputError(
                    f"{folder} was fetched by citerec {stated['citerec']}", "Use that version, or fetch it again."
                )
            steps = [
                Step(
                    one["release"],
                    tuple(map(Part.of_json, one["parts"])),
                    one["papers"],
                    one["left"],
                    one["without_text"],
                )
                for one in (stated["base"], *stated["updates"])
            ]
            return cls(
                folder, stated["source"], tuple(stated["datasets"]), stated["cut"], stated["terms"], tuple(steps)
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{folder / MANIFEST} is damaged ({error})", "Fetch the corpus again.") from None


def is_corpus(folder: Path) -> bool:
    """Whether a folder is a fetched corpus."""
    return _KIND.is_at(folder)


def joined_ids(notes: Path, parts: Iterable[Part], label: str) -> Ids:
    """The ids of a kind that were noted in some files."""
    found = Ids()
    for part in parts:
        if label in part.found:
            found |= Ids.load(notes / f"{part.name}.{label}")
    return found


def write_quarantine(parts: Sequence[tuple[Path, Part]], path: Path) -> None:
    """Joins the bad records of files, each with the folder of its notes, into one file of JSON Lines.

    There is no file if there are none.
    """
    import gzip
    import shutil

    bad = [notes / f"{part.name}.bad" for notes, part in parts if part.bad]
    if bad:
        with writing_file(path) as partial, partial.open("wb") as out:
            for place in bad:
                with gzip.open(place) as lines:
                    shutil.copyfileobj(lines, out)
