"""Metrics, intervals and tests, each against a second implementation."""

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, strategies as st
from scipy import stats

from citerec.evaluation.metrics import MEASURES, measure, parse_metrics, reliability
from citerec.evaluation.statistics import holm, intervals, randomisation_test, total

K = 20
NAMES = {
    "recall@10": "recall_10",
    "mrr": "recip_rank",
    "ndcg@10": "ndcg_cut_10",
    "map@20": "map_cut_20",
    "precision@5": "P_5",
    "hit_rate@5": "success_5",
    "r-precision": "Rprec",
}
RANKS = st.lists(
    st.lists(st.integers(0, K), min_size=1, max_size=6).filter(
        lambda ranks: len({rank for rank in ranks if rank}) == sum(map(bool, ranks))
    ),
    min_size=1,
    max_size=15,
)


def gold_of(contexts: list[list[int]]) -> np.ndarray:
    gold = np.full((len(contexts), max(map(len, contexts))), -1, np.int32)
    for row, ranks in enumerate(contexts):
        gold[row, : len(ranks)] = ranks
    return gold


def gold_names(ranks: list[int]) -> dict[str, int]:
    """The cited papers of a context, by the names that they have in runs."""
    return {f"r{rank}" if rank else f"lost{slot}": 1 for slot, rank in enumerate(ranks)}


@given(RANKS)
def test_metrics_are_those_of_trec_eval(contexts: list[list[int]]) -> None:
    scores = measure(parse_metrics(list(NAMES), K), gold_of(contexts), K)
    qrels = {str(number): gold_names(ranks) for number, ranks in enumerate(contexts)}
    run = {name: {f"r{rank}": float(-rank) for rank in range(1, K + 1)} for name in qrels}
    asked = {"recall.10", "recip_rank", "ndcg_cut.10", "map_cut.20", "P.5", "success.5", "Rprec"}
    found = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    for number in range(len(contexts)):
        theirs = [found[str(number)][name] for name in NAMES.values()]
        assert scores[number].tolist() == pytest.approx(theirs, abs=1e-6)


@pytest.mark.usefixtures("plain_ranx")
def test_metrics_are_those_of_ranx_on_its_own_objects() -> None:
    from ranx import Qrels, Run, evaluate

    random = np.random.default_rng(5)
    contexts = [[int(rank) for rank in random.permutation(40)[: random.integers(1, 5)]] for _ in range(50)]
    contexts = [[rank if rank <= K else 0 for rank in ranks] for ranks in contexts]
    names = [f"{name}@{k}" for name in MEASURES if name != "r-precision" for k in (1, 3, 10, K)] + list(MEASURES)
    scores = measure(parse_metrics(names, K), gold_of(contexts), K)
    qrels = {f"{number:02}": gold_names(ranks) for number, ranks in enumerate(contexts)}
    run = {name: {f"r{rank}": float(-rank) for rank in range(1, K + 1)} for name in qrels}
    theirs = evaluate(Qrels(qrels), Run(run), names, return_mean=False)
    for column, name in enumerate(names):
        assert scores[:, column].tolist() == pytest.approx(theirs[name].tolist(), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_helps_and_keeps_the_order(p_values: list[float]) -> None:
    raw = np.array(p_values)
    corrected = holm(raw)
    assert (corrected >= raw - 1e-12).all() and corrected.max() <= 1
    assert (np.diff(corrected[np.argsort(raw, kind="stable")]) >= -1e-12).all()
    # Worked by hand: 0.01 × 4, 0.02 × 3, then 0.03 × 2 = 0.06, then 0.04 × 1 raised to what stands before it.
    assert holm(np.array([0.04, 0.01, 0.03, 0.02])).tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm(np.array([])).tolist() == []


def everyone(count: int) -> np.ndarray:
    return np.ones((count, 1), bool)


def test_intervals_are_those_of_scipys_bootstrap() -> None:
    values = np.random.default_rng(1).random((200, 1)) ** 2
    totals = total(values, np.arange(200, dtype=np.int32), everyone(200))
    (((low, high),),) = intervals(totals, seed=0, resamples=5000)
    theirs = stats.bootstrap((values[:, 0],), np.mean, method="percentile", n_resamples=5000, rng=2).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_contexts_of_one_paper_count_as_one() -> None:
    values = np.random.default_rng(1).random((50, 1))
    apart = intervals(total(values, np.arange(50, dtype=np.int32), everyone(50)), seed=0)
    tenfold, of_one_paper = np.repeat(values, 10, axis=0), np.repeat(np.arange(50, dtype=np.int32), 10)
    together = intervals(total(tenfold, of_one_paper, everyone(500)), seed=0)
    assert together == pytest.approx(apart)  # ten times the same sentence adds nothing
    as_if_apart = intervals(total(tenfold, np.arange(500, dtype=np.int32), everyone(500)), seed=0)
    assert np.diff(as_if_apart[0, 0]) < 0.5 * np.diff(together[0, 0])


def test_the_randomisation_test_is_that_of_scipy() -> None:
    random = np.random.default_rng(7)
    first = random.random((40, 1))
    second = first + random.normal(0.05, 0.2, (40, 1))
    clusters = np.arange(40, dtype=np.int32)
    p = randomisation_test(total(first - second, clusters, everyone(40)), seed=0)
    theirs = stats.permutation_test(
        (first[:, 0], second[:, 0]), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=20_000, rng=1,
    )  # fmt: skip
    assert float(p[0, 0]) == pytest.approx(theirs.pvalue, abs=0.015)


def test_equal_systems_do_not_differ_and_clear_ones_do() -> None:
    values, clusters = np.random.default_rng(1).random((30, 1)), np.arange(30, dtype=np.int32)
    p_values = [randomisation_test(total(values - other, clusters, everyone(30)), 0) for other in (values, values + 1)]
    assert [float(p[0, 0]) for p in p_values] == pytest.approx([1, 1 / 10_001])


def test_calibration_error_and_brier_score_are_as_a_second_implementation_finds_them() -> None:
    from sklearn.metrics import brier_score_loss

    random = np.random.default_rng(3)
    for n in (1, 7, 500):
        stated = random.random(n) ** 2
        stated[:1] = random.choice([0.0, 1.0])
        right = random.random(n) < 0.4
        bins = np.minimum((stated * 10).astype(int), 9)
        gaps = [abs(stated[bins == one].sum() - right[bins == one].sum()) / n for one in range(10)]
        found = reliability(stated, right)
        assert (found.n, found.ece) == (n, pytest.approx(sum(gaps), abs=1e-12))
        assert found.brier == pytest.approx(brier_score_loss(right, stated, pos_label=1))
