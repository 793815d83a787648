"""The run record of results, `meta.json`: what was measured, how, with which versions, and at what cost.

It also holds which contexts a measured system learnt from: results on them say little about new contexts.
"""

import contextlib
import datetime
import importlib.metadata
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from citerec.contexts.provenance import Provenance, digests_of
from citerec.files.resume import file_digest
from citerec.records import Context
from citerec.version import __version__
from citerec.write.metrics import Column


@dataclass(slots=True)
class Usage:
    """What some answers cost in one process.

    Attributes:
        process: The machine and the process.
        begun: When it began, in seconds since 1970. `ended` is when it ended.
        cpu_seconds: Processor time of all threads of the process, Java's too.
        latencies: Seconds of each answer.
        memory: Resident memory of the process at the end, in bytes.
        gpu_memory: Largest memory that torch held on its GPU, in bytes; 0 without one.
    """

    process: tuple[str, int]
    begun: float = 0.0
    ended: float = 0.0
    cpu_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    memory: int = 0
    gpu_memory: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of all answers of a system.

    Attributes:
        queries: How many contexts it answered.
        workers: How many processes answered.
        wall_seconds: Time that passed.
        cpu_seconds: Processor time of all these processes, Java's too.
        queries_per_second: Contexts answered in a second.
        latency_median_ms: Median time of one answer; several processes slow each other down.
        latency_p95_ms: 95th percentile of the time of one answer.
        peak_memory_bytes: Largest resident memory of these processes together: Python, Java, models, and the pages of
            the index, which they share.
        index_bytes: Size of the index on disk.
        gpu_memory_bytes: Largest memory that torch held on its GPU; None without one.
    """

    queries: int
    workers: int
    wall_seconds: float
    cpu_seconds: float
    queries_per_second: float
    latency_median_ms: float | None
    latency_p95_ms: float | None
    peak_memory_bytes: int | None
    index_bytes: int
    gpu_memory_bytes: int | None = None

    @classmethod
    def of(cls, parts: Sequence[Usage], index_bytes: int) -> Self:
        """The cost of answers in parts, which several processes may have made."""
        import pandas as pd

        latencies = [seconds for part in parts for seconds in part.latencies]
        median, p95 = (1000 * np.percentile(latencies, [50, 95])).round(3).tolist() if latencies else (None, None)
        wall = max(part.ended for part in parts) - min(part.begun for part in parts)
        peaks = pd.DataFrame(parts).groupby("process")[["memory", "gpu_memory"]].max()
        memory, gpu_memory = peaks.sum().tolist()
        return cls(
            queries=len(latencies),
            workers=len(peaks),
            wall_seconds=round(wall, 4),
            cpu_seconds=round(sum(part.cpu_seconds for part in parts), 4),
            queries_per_second=round(len(latencies) / wall, 2),
            latency_median_ms=median,
            latency_p95_ms=p95,
            peak_memory_bytes=memory or None,
            index_bytes=index_bytes,
            gpu_memory_bytes=gpu_memory or None,
        )


@contextlib.contextmanager
def metered() -> Iterator[Usage]:
    """Measures a `with` block, in which the seconds of each answer are added to `latencies`."""
    import psutil

    torch: Any = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    measured, cpu = Usage((platform.node(), os.getpid()), begun=time.time()), time.process_time()
    yield measured
    measured.ended, measured.cpu_seconds = time.time(), time.process_time() - cpu
    measured.memory = psutil.Process().memory_info().rss
    torch = sys.modules.get("torch")
    measured.gpu_memory = torch.cuda.max_memory_reserved() if torch and torch.cuda.is_initialized() else 0


KIND: Literal["citerec-results"] = "citerec-results"

_LIBRARIES = ("numpy", "tokenizers", "torch", "transformers", "sentence-transformers", "onnxruntime", "faiss-cpu",
              "lightgbm", "pyserini", "qdrant-client", "rouge-score", "bert-score")  # fmt: skip


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read: its name without the folder, its size, and its digest."""

    name: str
    bytes: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} ({self.bytes:,} bytes, sha256 {self.sha256[:12]}…)"

    @classmethod
    def of(cls, path: Path) -> Self:
        """Reads the size and digest of a file."""
        return cls(path.name, path.stat().st_size, file_digest(path))


class FamilyInfo(_Part):
    """A family: its title, what it holds constant, its classes in order."""

    title: str
    conditions: tuple[str, ...]
    classes: tuple[str, ...]


class TrainingOverlap(_Part):
    """How many contexts served in training, and whether they were left out.

    By system how many it `trained_on`, how many it was `tuned_on`, and the parts of it that do not say (`unsaid`).
    """

    contexts: NonNegativeInt
    left_out: bool
    systems: dict[str, dict[str, Any]]

    def notes(self, of_all: int) -> list[str]:
        """The overlap in words; there are so many contexts in all."""
        notes = []
        if self.contexts:
            who = "; ".join(
                f"{name} learnt from {one['trained_on']:,} and was tuned on {one['tuned_on']:,}"
                for name, one in self.systems.items()
                if one["trained_on"] or one["tuned_on"]
            )
            what = "They are measured all the same: figures on them say little about new contexts."
            if self.left_out:
                what = "They are left out for all systems (--include-training-contexts keeps them)."
            number = f"{self.contexts:,} of {of_all:,} contexts, by sentence or by citing paper, served in training"
            notes.append(f"{number}: {who}. {what}")
        for name, one in self.systems.items():
            if one["unsaid"]:
                seen = "do not say what they learnt from, so they may have seen these contexts."
                notes.append(f"{name}: parts ({', '.join(one['unsaid'])}) {seen}")
        return notes


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
    """The index: its folder, its engine, the fingerprint of its papers, how many there are, and its size on disk."""

    path: str
    engine: str
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
    version_of = {"python": sys.version.split()[0]}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version_of[name] = importlib.metadata.version(name)
    return version_of


class Record(_Part):
    """The run record.

    Attributes:
        kind: What the folder is.
        version: Of its files; it rises when new code would misread older ones.
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
        preset: For texts the preset that was used, as `citerec.write.metrics.Preset.used` says it.
        families: The families, by name.
        systems: The systems, by name, in the order given.
        seed: Seed of all random numbers.
        resamples: Number of bootstrap samples.
        notes: Notes for the reader.
    """

    kind: Literal["citerec-results"] = KIND
    version: Literal[3] = 3
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


def find_overlap(
    contexts: Sequence[Context], provenance: Mapping[str, Provenance], *, left_out: bool = True
) -> tuple[npt.NDArray[np.bool_], TrainingOverlap]:
    """Finds the contexts whose sentence or citing paper is among those that systems learnt from or were tuned on.

    Args:
        contexts: The contexts.
        provenance: By system, what it learnt from.
        left_out: Whether these contexts are left out, for the record.

    Returns:
        Which contexts at least one system learnt from or was tuned on, (contexts,); and the overlap for the run record.
    """
    digests = [digests_of(context) for context in contexts]

    def among(some: frozenset[str]) -> npt.NDArray[np.bool_]:
        return np.array([not some.isdisjoint(of_context) for of_context in digests], bool)

    seen, systems = np.zeros(len(contexts), bool), {}
    for name, one in provenance.items():
        trained_on, tuned_on = among(one.trained_on), among(one.tuned_on)
        seen |= trained_on | tuned_on
        numbers = {"trained_on": int(trained_on.sum()), "tuned_on": int((tuned_on & ~trained_on).sum())}
        systems[name] = {**numbers, "unsaid": [*one.unsaid]}
    return seen, TrainingOverlap(contexts=int(seen.sum()), left_out=left_out, systems=systems)
