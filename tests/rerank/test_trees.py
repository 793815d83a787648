"""Trees by numpy give the scores and SHAP values that LightGBM gives, and refuse files that they cannot read."""

import contextlib
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import pytest

from citerec.errors import ModelError
from citerec.rerank.ltr import MODEL, SHIPPED, Trees
from citerec.settings import shipped

FEATURES = 6
ODD = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-36, -1e-36, 1e-35, -1e-35, 2e-35, 1e-40, 1.0, -1.0, 3e38]


def rows_of(count: int, features: int = FEATURES, seed: int = 0, odd: float = 0.4) -> npt.NDArray[np.float32]:
    """Random rows of which some values are missing, zero, infinite or nearly zero."""
    draws = np.random.default_rng(seed)
    rows = np.round(draws.standard_normal((count, features)) * 10 ** draws.uniform(-1, 2, features), 3)
    return np.where(draws.random(rows.shape) < odd, draws.choice(ODD, rows.shape), rows).astype(np.float32)


def learnt(categories: Sequence[int] = (), **options: Any) -> str:
    """The file of trees that LightGBM learns from rows with missing values; feature 2 is mostly missing."""
    draws = np.random.default_rng(0)
    rows = draws.standard_normal((count := 3000, FEATURES)).astype(np.float32)
    rows[draws.random(rows.shape) < 0.2] = np.nan
    rows[draws.random(rows.shape) < 0.2] = 0
    rows[draws.random(count) < 0.7, 2] = np.nan
    rows[:, 5] = np.nan_to_num(rows[:, 5])
    whole = np.nan_to_num(rows)
    target = whole[:, 5] + whole[:, 0] * whole[:, 1] + 2 * np.isnan(rows[:, 2]) + np.sin(3 * whole[:, 3])
    target += whole[:, 4] == 0
    given = {"num_leaves": 15, "min_data_in_leaf": 5, "num_threads": 1, "seed": 0, "verbose": -1} | options
    if given.get("objective") in ("binary", "multiclass", "lambdarank"):
        target = target > 1
    groups = [20] * (count // 20) if options.get("objective") == "lambdarank" else None
    data = lightgbm.Dataset(rows, target, group=groups, categorical_feature=list(categories))
    return str(lightgbm.train(given, data, 25).model_to_string())


def assert_same(path: Path, rows: npt.NDArray[np.floating]) -> None:
    theirs, ours = lightgbm.Booster(model_file=path), Trees.read(path)
    scores, added = theirs.predict(rows, raw_score=True), theirs.predict(rows, pred_contrib=True)
    np.testing.assert_array_equal(ours.predict(rows), scores)  # rows that are equal for LightGBM stay equal
    np.testing.assert_allclose(ours.contributions(rows), added, rtol=0, atol=1e-9)


def written(text: str, path: Path, change: Callable[[str], str] = lambda tree: tree) -> Path:
    """A file of trees, each of them changed, with the sizes that these have then."""
    body, end, rest = text.partition("end of trees")
    head, *trees = re.split(r"^(?=Tree=)", body, flags=re.MULTILINE)
    trees = [change(tree) for tree in trees]
    head = re.sub("tree_sizes=.*", f"tree_sizes={' '.join(str(len(tree)) for tree in trees)}", head)
    path.write_text("".join([head, *trees, end, rest]))
    return path


KINDS = {
    "missing": {},
    "zero is missing": {"zero_as_missing": True},
    "a ranking": {"objective": "lambdarank"},
    "stumps": {"num_leaves": 2},
    "a word of leaves": {"num_leaves": 65, "min_data_in_leaf": 2},
    "many leaves": {"num_leaves": 400, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0},
    "deep": {"num_leaves": 40, "min_data_in_leaf": 1, "feature_fraction": 0.4, "feature_fraction_bynode": 0.4},
    "dart": {"boosting": "dart"},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_trees_of_every_kind_that_is_learnt(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / MODEL
    path.write_text(learnt(**options))
    assert_same(path, rows_of(400))
    thresholds = np.array(re.search("threshold=(.*)", path.read_text())[1].split(), float)  # type: ignore[index]
    assert_same(path, np.random.default_rng(2).choice(thresholds, (40, FEATURES)))


@pytest.mark.parametrize("seed", range(3))
def test_every_decision_at_every_split(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)

    def change(tree: str) -> str:
        def other(found: re.Match[str]) -> str:
            return found[1] + " ".join(chosen.choice(["0", "2", "4", "6", "8", "10"]) for _ in found[2].split())

        return re.sub("(decision_type=)(.*)", other, tree)

    assert_same(written(learnt(num_leaves=12), tmp_path / MODEL, change), rows_of(300, seed=seed))


def test_no_rows_and_trees_without_splits(tmp_path: Path) -> None:
    path = tmp_path / MODEL
    path.write_text(learnt())
    assert Trees.read(path).contributions(rows_of(0)).shape == (0, FEATURES + 1)
    leaf = "Tree=0\nnum_leaves=1\nnum_cat=0\nsplit_feature=\nsplit_gain=\nthreshold=\ndecision_type=\nleft_child=\n"
    leaf += "right_child=\nleaf_value=0.25\nleaf_weight=\nleaf_count=200\nis_linear=0\nshrinkage=1\n\n\n"
    assert_same(written(learnt(), path, lambda tree: leaf if tree.startswith("Tree=0\n") else tree), rows_of(50))


def refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ModelError, match=r"cannot be read.* Train it again: citerec train ltr"):
        Trees.read(path)


def test_a_file_that_is_damaged_or_of_other_trees_is_refused(tmp_path: Path) -> None:
    path, text, chosen = tmp_path / MODEL, learnt(num_leaves=6), random.Random(0)
    with pytest.raises(ModelError, match="cannot be read"):
        Trees.read(path)
    for whole in ("", "no trees", "tree\n", text.replace("Tree=3\n", ""), text.replace("max_feature_idx=5", "")):
        refused(path, whole)
    trees = text.index("end of trees")
    for end in [trees - 3, *(chosen.randrange(trees - 3) for _ in range(30))]:
        refused(path, text[:end])
    path.write_bytes(b"\xff" + text.encode())
    with pytest.raises(ModelError, match="cannot be read"):
        Trees.read(path)
    fields = {"leaf_value": "x", "leaf_count": "0", "left_child": "0", "right_child": "-1", "split_feature": "6"}
    for field, damage in {**fields, "decision_type": "1", "threshold": ""}.items():
        changed = re.sub(rf"\n{field}=\S*", f"\n{field}={damage}", text)
        refused(path, written(changed, path).read_text())
    several = {"objective": "multiclass", "num_class": 2}
    forest = {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}
    for options in ({"categories": [4]}, {"linear_tree": True}, several, forest):
        refused(path, learnt(**options))


def test_a_file_that_is_damaged_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    text, chosen, rows = learnt(num_leaves=6), random.Random(0), rows_of(5)
    for _ in range(100):
        place = chosen.randrange(text.index("end of trees"))
        (tmp_path / MODEL).write_text(text[:place] + chosen.choice("0123456789-. =\nx") + text[place + 1 :])
        with contextlib.suppress(ModelError):
            trees = Trees.read(tmp_path / MODEL)
            assert trees.predict(rows).shape == (5,)
            assert len(trees.contributions(rows)) == 5


def test_the_ranker_that_comes_with_citerec_does_without_lightgbm() -> None:
    path = shipped(SHIPPED) / MODEL
    assert_same(path, rows_of(300, Trees.read(path).features))
    code = "import sys; from citerec.rerank.ltr import LtrReranker, shipped, SHIPPED; LtrReranker(shipped(SHIPPED)); "
    subprocess.run([sys.executable, "-c", code + "assert 'lightgbm' not in sys.modules"], check=True)
