"""Systems measured on an executor: the same figures as one after the other, and the same errors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import IndexUnusableError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.results import Results
from citerec.evaluation.systems import Conditions, System
from citerec.files.parallel import Ray
from citerec.records import Context

pytestmark = pytest.mark.slow


def few(_context: Context, _k: int) -> list[tuple[str, float]]:
    return []


def measured(systems: dict[str, System], index: Path, **options: Any) -> Results:
    return evaluate(systems, "demo", index=index, families="location", resamples=100, **options)


def files(results: Results, out: Path) -> dict[str, bytes]:
    """The files of an evaluation, without what its systems cost."""
    systems = {name: replace(system, cost=None) for name, system in results.systems.items()}
    replace(results, systems=systems, notes=()).write(out)
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_systems_on_an_executor_have_the_same_figures(tmp_path: Path, demo_index: Path, on_ray: Ray) -> None:
    recipe = tmp_path / "few-words.toml"
    recipe.write_text("[words.bm25]\nk1 = 2.0\n", encoding="utf-8")
    systems: dict[str, System] = {"bm25": "bm25", "function": few, "other": str(recipe)}
    told: list[tuple[str, float, float]] = []
    there = measured(systems, demo_index, parallelism=on_ray, on_progress=lambda *now: told.append(now))
    here = measured(systems, demo_index)
    assert files(there, tmp_path / "there") == files(here, tmp_path / "here")
    assert list(there.systems) == list(systems)
    assert [done for doing, done, _ in told if doing == "systems"] == [0, 1, 2]
    assert any("measured at once" in note for note in there.notes)
    assert not any("measured at once" in note for note in here.notes)
    for name in ("bm25", "other"):
        cost = there.systems[name].cost
        assert cost is not None
        assert cost.queries == there.set["contexts"]
    assert there.systems["bm25"].overall != there.systems["other"].overall


def test_an_index_that_a_worker_finds_replaced_is_refused(
    demo_index: Path, on_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Conditions.elsewhere
    monkeypatch.setattr(Conditions, "elsewhere", lambda self: replace(elsewhere(self), fingerprint="another"))
    with pytest.raises(IndexUnusableError, match="was replaced"):
        measured({"bm25": "bm25"}, demo_index, parallelism=on_ray)
