"""Tasks and what some systems wrote for them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from citerec.evaluation.texts import Predictions, read_predictions
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


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of predictions for each system."""
    folder = tmp_path_factory.mktemp("written")
    return {
        system: write_lines(folder / f"{system}.jsonl", (record(system, number) for number in range(len(TARGETS))))
        for system in WRITTEN
    }


@pytest.fixture(scope="session")
def predictions(files: Mapping[str, Path]) -> Predictions:
    return read_predictions([(None, path) for path in files.values()])
