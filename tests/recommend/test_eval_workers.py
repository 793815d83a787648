"""Contexts answered by several processes, here or on Ray: the same figures as by one, and the same errors."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import IndexUnusableError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.results import Results
from citerec.evaluation.systems import System
from citerec.files.parallel import Parallelism
from citerec.index.build import build_index
from citerec.recommend import Recommender
from citerec.records import Context
from tests.conftest import write_lines


def few(_context: Context, _k: int) -> list[tuple[str, float]]:
    return []


def measured(systems: dict[str, System], index: Path, **options: Any) -> Results:
    return evaluate(systems, "demo", index=index, families="location", resamples=100, **options)


def files(results: Results, out: Path) -> dict[str, bytes]:
    """The files of an evaluation, without what its systems cost."""
    systems = {name: one.model_copy(update={"cost": None}) for name, one in results.record.systems.items()}
    record = results.record.model_copy(update={"systems": systems, "notes": (), "date": ""})
    replace(results, record=record).write(out)
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("workers", [2, pytest.param("ray", marks=pytest.mark.slow)])
def test_contexts_in_processes_have_the_same_figures(
    tmp_path: Path, demo_index: Path, workers: int | str, request: pytest.FixtureRequest
) -> None:
    parallelism: Parallelism = request.getfixturevalue("on_ray") if workers == "ray" else 2
    recipe = tmp_path / "few-words.toml"
    recipe.write_text("[words.bm25]\nk1 = 2.0\n", encoding="utf-8")
    systems: dict[str, System] = {"bm25": "bm25", "function": few, "other": str(recipe)}
    told: list[tuple[str, float, float]] = []
    there = measured(systems, demo_index, parallelism=parallelism, on_progress=lambda *now: told.append(now))
    here = measured(systems, demo_index)
    assert files(there, tmp_path / "there") == files(here, tmp_path / "here")
    assert list(there.systems) == list(systems)
    assert [done for doing, done, whole in told if doing == "bm25"][-1] == there.record.set.contexts
    for name in ("bm25", "other"):
        cost = there.systems[name].cost
        assert cost is not None and cost.queries == there.record.set.contexts and 1 <= cost.workers <= 2
    assert there.systems["bm25"].overall != there.systems["other"].overall


def test_a_system_of_ones_own_parts_is_not_sent_elsewhere(demo_index: Path) -> None:
    with Recommender.from_parts(demo_index) as recommender, pytest.raises(TypeError, match="parts of your own"):
        pickle.dumps(recommender)


def test_an_index_of_other_papers_is_refused_elsewhere(demo_index: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_index, copy := tmp_path / "copy")
    with Recommender.open(copy, "bm25") as recommender:
        sent = pickle.dumps(recommender)
        papers = [{"paper_id": "1", "title": "Another"}]
        build_index([write_lines(tmp_path / "papers.jsonl", papers)], copy)
    with pytest.raises(IndexUnusableError, match="other papers"):
        pickle.loads(sent)
