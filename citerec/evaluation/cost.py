"""The cost of answers: time, latency, memory, GPU."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

_EVERY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of all answers of a system.

    Attributes:
        queries: How many contexts it answered.
        threads: How many at once.
        wall_seconds: Time that passed.
        cpu_seconds: Processor time of all threads, Java's too.
        queries_per_second: Contexts answered in a second.
        latency_median_ms: Median time of one answer; several threads slow each other down.
        latency_p95_ms: 95th percentile of the time of one answer.
        peak_memory_bytes: Largest resident memory of the whole process: Python, Java, models; None without psutil.
        index_bytes: Size of the index on disk.
        gpu_memory_bytes: Largest memory in use on all GPUs together; None without a GPU.
        gpu_use_percent: Mean use of the GPUs; None without a GPU.
    """

    queries: int
    threads: int
    wall_seconds: float
    cpu_seconds: float
    queries_per_second: float
    latency_median_ms: float | None
    latency_p95_ms: float | None
    peak_memory_bytes: int | None
    index_bytes: int
    gpu_memory_bytes: int | None = None
    gpu_use_percent: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


class Meter:
    """Measures the cost of a `with` block. Memory and GPU are sampled 50 times a second."""

    def __init__(self, threads: int, index_bytes: int) -> None:
        self.latencies: list[float] = []
        self._threads, self._index_bytes = threads, index_bytes
        self._stop = threading.Event()
        self._peak_memory = self._peak_gpu_memory = 0
        self._gpu_uses: list[float] = []

    def __enter__(self) -> Self:
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._wall, self._cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self._stop.set()
        self._sampler.join()

    def cost(self, queries: int) -> Cost:
        """The cost, after the block has ended."""
        import numpy as np

        median, p95 = np.percentile(self.latencies, [50, 95]) * 1000 if self.latencies else (None, None)
        return Cost(
            queries=queries,
            threads=self._threads,
            wall_seconds=round(self._wall, 4),
            cpu_seconds=round(self._cpu, 4),
            queries_per_second=round(queries / self._wall, 2),
            latency_median_ms=None if median is None else round(float(median), 3),
            latency_p95_ms=None if p95 is None else round(float(p95), 3),
            peak_memory_bytes=self._peak_memory or None,
            index_bytes=self._index_bytes,
            gpu_memory_bytes=self._peak_gpu_memory or None,
            gpu_use_percent=round(sum(self._gpu_uses) / len(self._gpu_uses), 1) if self._gpu_uses else None,
        )

    def _sample(self) -> None:
        process = _process()
        with _gpus() as gpus:
            while True:
                if process is not None:
                    self._peak_memory = max(self._peak_memory, process.memory_info().rss)
                if gpus:
                    self._look_at(gpus)
                if self._stop.wait(_EVERY_SECONDS):
                    return

    def _look_at(self, gpus: Sequence[Any]) -> None:
        import pynvml

        # A part of a GPU (MIG) reports its memory, but not its use.
        with contextlib.suppress(pynvml.NVMLError):
            memory = sum(int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used) for gpu in gpus)
            self._peak_gpu_memory = max(self._peak_gpu_memory, memory)
        with contextlib.suppress(pynvml.NVMLError):
            uses = [float(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu) for gpu in gpus]
            self._gpu_uses.append(sum(uses) / len(uses))


def _process() -> Any | None:
    """What tells the memory of this process; None without the package psutil."""
    try:
        import psutil
    except ImportError:
        return None
    return psutil.Process()


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
