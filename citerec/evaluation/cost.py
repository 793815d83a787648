"""The cost of answers: time, latency, memory, GPU."""

import contextlib
import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

_EVERY_SECONDS = 0.02


@dataclass(slots=True)
class Measured:
    """What some answers cost in one process.

    Attributes:
        process: The machine and the process.
        begun: When it began, in seconds since 1970. `ended` is when it ended.
        cpu_seconds: Processor time of all threads of the process, Java's too.
        latencies: Seconds of each answer.
        memory: Largest resident memory of the process in bytes; 0 without psutil.
        gpu_memory: Largest memory in use on all GPUs together, in bytes; 0 without a GPU.
        gpu_uses: Samples of the use of the GPUs, in percent.
    """

    process: tuple[str, int]
    begun: float = 0.0
    ended: float = 0.0
    cpu_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    memory: int = 0
    gpu_memory: int = 0
    gpu_uses: list[float] = field(default_factory=list)


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
            the index, which they share; None without psutil.
        index_bytes: Size of the index on disk.
        gpu_memory_bytes: Largest memory in use on all GPUs together; None without a GPU.
        gpu_use_percent: Mean use of the GPUs; None without a GPU.
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
    gpu_use_percent: float | None = None

    @classmethod
    def of(cls, parts: Sequence[Measured], index_bytes: int) -> Self:
        """The cost of answers in parts, which several processes may have made."""
        import numpy as np

        latencies = [seconds for part in parts for seconds in part.latencies]
        median, p95 = np.percentile(latencies, [50, 95]) * 1000 if latencies else (None, None)
        wall = max(part.ended for part in parts) - min(part.begun for part in parts)
        memory: dict[tuple[str, int], int] = {}
        for part in parts:
            memory[part.process] = max(part.memory, memory.get(part.process, 0))
        uses = [use for part in parts for use in part.gpu_uses]
        return cls(
            queries=len(latencies),
            workers=len(memory),
            wall_seconds=round(wall, 4),
            cpu_seconds=round(sum(part.cpu_seconds for part in parts), 4),
            queries_per_second=round(len(latencies) / wall, 2),
            latency_median_ms=None if median is None else round(float(median), 3),
            latency_p95_ms=None if p95 is None else round(float(p95), 3),
            peak_memory_bytes=sum(memory.values()) or None,
            index_bytes=index_bytes,
            gpu_memory_bytes=max(part.gpu_memory for part in parts) or None,
            gpu_use_percent=round(sum(uses) / len(uses), 1) if uses else None,
        )


@contextlib.contextmanager
def metered() -> Iterator[Measured]:
    """Measures a `with` block, in which the seconds of each answer are added to `latencies`.

    Memory and GPU are sampled 50 times a second. What was measured is complete after the block has ended.
    """
    measured, stop = Measured((platform.node(), os.getpid())), threading.Event()
    sampler = threading.Thread(target=_sample, args=(measured, stop), daemon=True)
    sampler.start()
    measured.begun, cpu = time.time(), time.process_time()
    try:
        yield measured
    finally:
        measured.ended, measured.cpu_seconds = time.time(), time.process_time() - cpu
        stop.set()
        sampler.join()


def _sample(measured: Measured, stop: threading.Event) -> None:
    process = None
    with contextlib.suppress(ImportError):
        import psutil

        process = psutil.Process()
    with _gpus() as gpus:
        while True:
            if process is not None:
                measured.memory = max(measured.memory, process.memory_info().rss)
            if gpus:
                _sample_gpus(measured, gpus)
            if stop.wait(_EVERY_SECONDS):
                return


def _sample_gpus(measured: Measured, gpus: Sequence[Any]) -> None:
    import pynvml

    # A part of a GPU (MIG) reports its memory, but not its use.
    with contextlib.suppress(pynvml.NVMLError):
        memory = sum(int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used) for gpu in gpus)
        measured.gpu_memory = max(measured.gpu_memory, memory)
    with contextlib.suppress(pynvml.NVMLError):
        uses = [float(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu) for gpu in gpus]
        measured.gpu_uses.append(sum(uses) / len(uses))


@contextlib.contextmanager
def _gpus() -> Iterator[Sequence[Any]]:
    """The GPUs of this machine; none without NVIDIA's driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, or no GPU
        yield ()
        return
    try:
        yield [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()
