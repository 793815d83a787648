"""The model of many machines: one takes the sum of measured rates, no shard is lost; the command writes the page."""

import gzip
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT, SHARED

pytestmark = pytest.mark.slow

BENCHMARKS = ROOT / "benchmarks"
SCRIPT = BENCHMARKS / "simulate_scale.py"


@pytest.fixture(scope="module")
def scale() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("simulate_scale")


@pytest.fixture(scope="module")
def model(scale: ModuleType) -> ModuleType:
    return sys.modules["cluster_model"]


def test_one_machine_without_failures_takes_the_sum_of_the_measured_rates(scale: ModuleType, model: ModuleType) -> None:
    stages = scale.pipeline(scale.values({}))
    hours = {result.stage.name: result.hours for result in model.simulate(stages, 1, model.Conditions(), seed=0)}
    # A million papers are encoded in 13,611 s; texts (1,500 bytes) and vectors (768) go over the driver's 1 Gbit/s.
    assert hours["encode"] == pytest.approx(200 * (13_611 + 1e6 * 2_268 / 125e6) / 3600)
    # Two processes, 0.30 million characters a second each; 39.9 contexts a text, 1,000 bytes each, over the same link.
    assert hours["extract"] == pytest.approx(10e6 * (47_854 / 0.6e6 + 39.9 * 1_000 / 125e6) / 3600)
    # Reading (slower than a network of 1 Gbit/s) takes two processors half of what it takes one.
    assert hours["fetch"] == pytest.approx((200e6 / 193_543 + 2.4e9 / 268_363) / 2 / 3600)
    assert sum(hours.values()) == pytest.approx(sum(stage.hours_of_one for stage in stages))


def test_one_driver_builds_at_the_measured_rate(scale: ModuleType, model: ModuleType) -> None:
    stages = scale.pipeline(scale.values({"one_driver": 1}))
    hours = {result.stage.name: result.hours for result in model.simulate(stages, 1, model.Conditions(), seed=0)}
    assert hours["ingest"] == pytest.approx((200 + 399) * 96.9 / 3600)
    assert hours["arrange vectors"] == pytest.approx(55_958 / 3600)
    more = {result.stage.name: result.hours for result in model.simulate(stages, 64, model.Conditions(), seed=0)}
    assert more["arrange vectors"] == hours["arrange vectors"]  # no machine helps the driver


def test_twice_the_machines_halve_the_part_that_is_parallel(model: ModuleType) -> None:
    def hours(machines: int, service: float) -> float:
        stages = [model.Stage("work", 64, 600.0, "driver", service)]
        return float(model.simulate(stages, machines, model.Conditions(), seed=1)[0].hours)

    assert [hours(machines, 0.0) for machines in (1, 2, 4, 64)] == pytest.approx([64 / 6, 32 / 6, 16 / 6, 1 / 6])
    # 64 turns of 30 s at the driver are a floor that machines cannot lower.
    assert hours(64, 30.0) == pytest.approx((600 + 64 * 30) / 3600)
    assert hours(128, 30.0) == hours(64, 30.0)


def test_what_holds_a_stage_back(model: ModuleType) -> None:
    def reason(shards: int, work: float, service: float) -> str:
        stage = model.Stage("s", shards, work, "driver", service)
        return str(model.simulate([stage], 8, model.Conditions(), seed=1)[0].held_back_by)

    assert reason(80, 100.0, 1.0) == "machines"
    assert reason(80, 100.0, 50.0) == "driver"
    assert reason(9, 100.0, 0.0) == "last shards"  # eight machines for nine shards: the second round has one


def test_failures_only_add(scale: ModuleType, model: ModuleType) -> None:
    stages = [model.Stage("a", 200, 600.0, "driver", 5.0), model.Stage("b", 40, 1800.0, "Qdrant", 30.0)]

    def mean(machines: int, deaths: float) -> tuple[float, float, int]:
        runs = [model.simulate(stages, machines, model.Conditions(deaths, spread=0.2), seed) for seed in range(8)]
        results = [result for run in runs for result in run]
        return sum(one.hours for one in results), sum(one.lost for one in results), sum(one.deaths for one in results)

    for machines in (1, 10):
        none, some, many = (mean(machines, deaths) for deaths in (0.0, 0.2, 1.0))
        assert none[0] < some[0] < many[0]
        assert none[1:] == (0, 0)
        assert 0 < some[1] < many[1]
        assert 0 < some[2] < many[2]


def test_a_machine_that_dies_costs_what_it_was_at_and_its_replacement(model: ModuleType) -> None:
    """With many deaths the hours follow the formula of work that begins anew: (exp(rate × work) - 1) / rate."""
    stage = model.Stage("a", 2000, 1800.0, "driver", 0.0)
    wrong = model.Conditions(deaths_per_hour=1.0, detect=0.0, replace=0.0)
    hours = model.simulate([stage], 4, wrong, seed=3)[0].hours
    assert hours == pytest.approx(2000 * (2.718281828**0.5 - 1) / 4, rel=0.05)


@settings(max_examples=40, deadline=None)
@given(
    shards=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    machines=st.integers(1, 40),
    deaths=st.floats(0, 3),
    work=st.floats(1, 2000),
    service=st.floats(0, 200),
    seed=st.integers(0, 1000),
)
def test_every_shard_is_done_exactly_once_and_nothing_is_faster_than_possible(
    model: ModuleType, shards: list[int], machines: int, deaths: float, work: float, service: float, seed: int
) -> None:
    stages = [model.Stage(f"stage {number}", count, work, "place", service) for number, count in enumerate(shards)]
    wrong = model.Conditions(deaths, detect=30, replace=100, slow_share=0.1, slow_factor=2)
    for result in model.simulate(stages, machines, wrong, seed):
        assert result.done == [1] * result.stage.shards
        seconds = result.hours * 3600 + 1e-6
        assert seconds >= result.stage.shards * service
        assert seconds >= work + service
        assert seconds >= result.stage.shards * (work + service) / machines
        assert result.utilisation <= 1 + 1e-9
        assert result.served * 3600 <= seconds


def test_a_seed_gives_the_same_run_and_another_one_another(scale: ModuleType, model: ModuleType) -> None:
    v = scale.values({})
    runs = [model.simulate(scale.pipeline(v), 200, scale.conditions(v), seed) for seed in (5, 5, 6)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_the_interval_is_that_of_the_seeds(scale: ModuleType, model: ModuleType) -> None:
    found = scale.repeated({"deaths": 1, "papers": 1e6, "texts": 1e4}, 3, seeds=5)
    assert found["hours"]["low"] < found["hours"]["mean"] < found["hours"]["high"]
    assert sum(one["hours"] for one in found["stages"].values()) == pytest.approx(found["hours"]["mean"])
    # Each stage is paid for its own hours: machines, driver and its nodes.
    paid = {"push": 3 * 0.1 + 0.1 + 8 * 0.4, "ingest": 3 * 0.1 + 0.1 + 8 * 0.4}
    cost = sum(one["hours"] * paid.get(name, 0.4) for name, one in found["stages"].items())
    assert found["cost"]["mean"] == pytest.approx(cost)


def test_measured_inputs_stand_in_the_pages_that_they_name(scale: ModuleType) -> None:
    for name, one in scale.INPUTS.items():
        page = ROOT / one.source.partition(":")[0]
        if one.quote:
            assert one.quote in page.read_text(encoding="utf-8"), f"{name}: {page.name} has not {one.quote!r}"
        assert bool(one.quote) == (one.basis not in {"assumed", "given"} and page.suffix == ".md"), name


@pytest.mark.shared
def test_full_texts_are_as_long_as_those_of_the_shared_data(scale: ModuleType) -> None:
    lengths, markers, packed = [], [], 0
    for path in sorted((SHARED / "acm" / "s2orc").glob("*.gz")):
        packed += path.stat().st_size
        with gzip.open(path) as file:
            for content in (json.loads(line)["content"] for line in file):
                lengths.append(len(content["text"]))
                markers.append(len(json.loads(content["annotations"]["bibref"] or "[]")))
    count, inputs = len(lengths), scale.values({})
    assert inputs["text_bytes"] == pytest.approx(sum(lengths) / count, abs=0.5)
    assert inputs["text_sentences"] == pytest.approx(sum(markers) / count, abs=0.05)
    assert inputs["text_packed"] == pytest.approx(packed / count, abs=0.5)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def test_the_command_writes_json_plot_and_page(tmp_path: Path, scale: ModuleType) -> None:
    page = tmp_path / "docs" / "simulated-scale.md"
    page.parent.mkdir()
    page.write_text((ROOT / "docs" / "simulated-scale.md").read_text(encoding="utf-8"), encoding="utf-8")
    small = ("--machines", "1,4", "--seeds", "2", "--scenario", "gpu", "--set", "papers=2e6", "--set", "texts=1e5")
    outputs = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        done = run("--work", str(folder), *small, "--docs", str(page))
        assert done.returncode == 0, done.stderr
        outputs.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert outputs[0] == outputs[1]
    found = json.loads(outputs[0][0])
    hours = [row["hours"]["mean"] for row in found["scenarios"]["gpu"]["machines"]]
    assert hours[1] < hours[0] < 5  # a hundredth of the size
    assert found["scenarios"]["gpu"]["changes"] == {"gpu": 1, "papers": 2e6, "texts": 1e5}
    text = page.read_text(encoding="utf-8")
    assert f"`gpu`: {scale.SCENARIOS['gpu'][0]}" in text
    assert text.count(scale.BEGIN) == text.count(scale.END) == 1
    assert (tmp_path / "docs" / "simulated-scale.svg").read_bytes() == outputs[0][1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--work", "x", "--set", "qdrant=3"], "there is no input 'qdrant'; --inputs lists them"),
        (["--work", "x", "--set", "qdrant_nodes=many"], "'many' is not a number; write qdrant_nodes=8"),
        (["--work", "x", "--set", "papers=-1"], "must be"),
        (["--work", "x", "--machines", "0"], "must be"),
        (["--work", "x", "--machines", "4,x"], "must be"),
        (["--work", "x", "--seeds", "0"], "must be"),
        ([], "--work FOLDER is missing"),
    ],
)
def test_wrong_arguments_end_in_one_line(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_has_the_inputs_of_the_code(scale: ModuleType) -> None:
    text = (ROOT / "docs" / "simulated-scale.md").read_text(encoding="utf-8")
    assert scale.inputs_table() in text, "stale: run benchmarks/simulate_scale.py --docs docs/simulated-scale.md"
