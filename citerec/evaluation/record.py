"""The run record of results: what was measured, how, and with which versions: `meta.json` (docs/formats.md)."""

import contextlib
import datetime
import importlib.metadata
import shlex
import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from citerec.evaluation.cost import Cost
from citerec.evaluation.predictions import ReadFile
from citerec.version import __version__
from citerec.write.metrics.base import Column

KIND: Literal["citerec-results"] = "citerec-results"
VERSION: Literal[3] = 3
"""It rises when new code would misread older results."""

_LIBRARIES = ("numpy", "tokenizers", "torch", "transformers", "sentence-transformers", "onnxruntime", "faiss-cpu",
              "lightgbm", "pyserini", "qdrant-client", "rouge-score", "bert-score")  # fmt: skip


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class FamilyInfo(_Part):
    """A family: its title, what it holds constant, its classes in order."""

    title: str
    conditions: tuple[str, ...]
    classes: tuple[str, ...]


class TrainingOverlap(_Part):
    """How many contexts served in training, and whether they were left out.

    By system how many it `learnt_from`, how many it was `tuned_on`, and the parts of it that do not say (`unsaid`).
    """

    contexts: NonNegativeInt
    left_out: bool
    systems: dict[str, dict[str, Any]]


class Measured(_Part):
    """The contexts or tasks.

    Attributes:
        name: Name of the set.
        source: The set, file or folder as it was given.
        fingerprint: Of a set that of its manifest; otherwise a digest of the contexts or tasks.
        contexts: How many contexts or tasks were used.
        asked: How many there were before some were left out, as a system learnt from them or did not answer them.
        outside: Of how many contexts no cited paper is in the index.
        citing_known: Of how many the citing paper is named; each of the others counts as a paper of its own.
        without_citing_paper: How many contexts have a citing paper that the index does not have, or none.
        without_citing_year: How many have no citing year.
        training_overlap: How many served in training; None for texts.
        spacy_model: What tagged parts of speech.
        bounds: The bounds of the classes of numbers.
        references: The file that tasks were read from.
    """

    name: str
    source: str = ""
    fingerprint: str
    contexts: NonNegativeInt
    asked: NonNegativeInt
    outside: NonNegativeInt = 0
    citing_known: NonNegativeInt
    without_citing_paper: NonNegativeInt = 0
    without_citing_year: NonNegativeInt = 0
    training_overlap: TrainingOverlap | None = None
    spacy_model: str | None = None
    bounds: dict[str, Any] | None = None
    references: ReadFile | None = None


class Pool(_Part):
    """The index: its folder, the fingerprint of its papers, how many there are, and its size on disk."""

    path: str
    fingerprint: str
    papers: NonNegativeInt
    bytes: NonNegativeInt


class SystemRecord(_Part):
    """One system.

    Attributes:
        kind: "citerec", "function" or "run"; "texts" for a system that writes.
        settings: Settings of a built-in system or of a writer; None or empty if unknown, "varies" if they differ.
        digests: Of what its answers depend on, where known: vectors, trained rankers, encoders, files of plug-ins.
        cost: None for a run made elsewhere, and for texts.
        removed: Lines of a run that broke a leak rule, by rule.
        empty: Items for which nothing was found or written; they count.
        is_oracle: Whether it saw the targets: an upper bound, which is never the best and takes no part in tests.
        missing: Tasks that the system did not answer; they are left out for all systems.
        summaries: Of texts, summaries by corpus metric and group.
        files: The files that its texts were read from.
    """

    kind: str
    settings: dict[str, Any] | str | None = None
    digests: dict[str, str] = {}
    cost: Cost | None = None
    removed: dict[str, int] = {}
    empty: NonNegativeInt = 0
    is_oracle: bool = False
    missing: NonNegativeInt = 0
    summaries: dict[str, dict[str, dict[str, Any]]] = {}
    files: tuple[ReadFile, ...] = ()


def versions() -> dict[str, str]:
    """The versions of Python and of the installed libraries that answers may depend on."""
    found = {"python": sys.version.split()[0]}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


class Record(_Part):
    """The run record.

    Attributes:
        kind: What the folder is.
        version: Of its files.
        measures: "ranks" or "texts".
        citerec: Version of citerec.
        command: The command line.
        date: When it was measured, UTC.
        versions: Of Python and of libraries.
        set: The contexts or tasks.
        index: The pool of ranked lists.
        rules: For ranked lists what was left out, and how contexts outside the index counted.
        k: How many hits of each context counted; 0 for texts.
        columns: The metrics; charts show the first one first.
        settings: For texts the settings of each metric.
        preset: For texts the preset that was used, as `citerec.write.citation.Preset.used` says it.
        families: The families, by name.
        systems: The systems, by name, in the order given.
        seed: Seed of all random numbers.
        resamples: Number of bootstrap samples.
        notes: Notes for the reader.
    """

    kind: Literal["citerec-results"] = KIND
    version: Literal[3] = VERSION
    measures: Literal["ranks", "texts"]
    citerec: str = __version__
    command: str = Field(default_factory=lambda: shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))
    date: str = Field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = Field(default_factory=versions)
    set: Measured
    index: Pool | None = None
    rules: dict[str, bool | str] = {}
    k: NonNegativeInt = 0
    columns: tuple[Column, ...]
    settings: dict[str, dict[str, Any]] = {}
    preset: dict[str, Any] | None = None
    families: dict[str, FamilyInfo] = {}
    systems: dict[str, SystemRecord] = Field(min_length=1)
    seed: NonNegativeInt
    resamples: NonNegativeInt
    notes: tuple[str, ...] = ()
