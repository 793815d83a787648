"""The cost of answers: time, latency, memory."""

import contextlib
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(slots=True)
class Usage:
    """What some answers cost in one process.

    Attributes:
        process: The machine and the process.
        begun: When it began, in seconds since 1970. `ended` is when it ended.
        cpu_seconds: Processor time of all threads of the process, Java's too.
        latencies: Seconds of each answer.
        memory: Resident memory of the process at the end, in bytes.
        gpu_memory: Largest memory that torch held on all GPUs together, in bytes; 0 without a GPU.
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
        gpu_memory_bytes: Largest memory that torch held on all GPUs together; None without a GPU.
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
        import numpy as np
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

    measured, cpu = Usage((platform.node(), os.getpid()), begun=time.time()), time.process_time()
    yield measured
    measured.ended, measured.cpu_seconds = time.time(), time.process_time() - cpu
    measured.memory = psutil.Process().memory_info().rss
    torch: Any = sys.modules.get("torch")
    gpus = range(torch.cuda.device_count() if torch and torch.cuda.is_initialized() else 0)
    measured.gpu_memory = sum(torch.cuda.max_memory_reserved(gpu) for gpu in gpus)
