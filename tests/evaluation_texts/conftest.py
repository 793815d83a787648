"""Tasks and what some systems wrote for them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import write_lines

SOURCES = (
    "Graph kernels compare molecules. They need 40 seconds on 1,000 graphs.",
    "We train a network to rank citations. It reaches a recall of 0.53.",
)
TARGETS = (
    "Graph kernels compare molecules [0], and networks rank citations [1].",
    "A network that ranks citations was trained before [1].",
    "Comparing molecules takes long with kernels of graphs [0].",
    "In this paper we rank citations without graphs.",
    "Networks reach a recall of 0.53 [1], kernels need 40 seconds [0].",
    "Kernels [0] and networks [1] differ.",
)
WRITTEN: Mapping[str, tuple[str, ...]] = {
    "copy": tuple(f"{SOURCES[number % 2].split('. ')[0]} [{number % 2}]." for number in range(len(TARGETS))),
    "noise": (
        "Nothing fits here [7].",
        "<script>alert('x')</script> & more",
        "",
        "Bananas.",
        "9 of 10 <b>",
        "We present.",
    ),
    "oracle": TARGETS,
}


def record(system: str, number: int, **changes: object) -> dict[str, object]:
    """What a system wrote for a task; the first half of the tasks is of one data set, the others of another."""
    return {
        "id": f"task-{number}",
        "dataset": "xing" if number < len(TARGETS) // 2 else "lu",
        "input": ["<abs> The citing paper. </abs>", *SOURCES],
        "citing_id": 10 + number,
        "target": TARGETS[number],
        "prediction": WRITTEN[system][number],
        "writer": system,
        **({"knows_target": True} if system == "oracle" else {}),
        **changes,
    }


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., list[Path]]:
    """Writes a file of predictions for each system."""

    def write(*systems: str) -> list[Path]:
        return [
            write_lines(tmp_path / f"{system}.jsonl", (record(system, number) for number in range(len(TARGETS))))
            for system in systems or WRITTEN
        ]

    return write


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
