"""Means, intervals and tests of texts: cases with a known answer, and `eval`'s own way."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from citerec.evaluation.statistics import (
    DATASET,
    UNNAMED,
    Comparison,
    Floats,
    Grouping,
    Mean,
    compare,
    group_scores,
    grouping_of,
    holm,
)

NAN = np.nan


def apart(number: int) -> list[str]:
    return [f"paper {one}" for one in range(number)]


def means(scores: Floats, grouping: Grouping, seed: int, resamples: int) -> dict[str, list[Mean]]:
    """By group, "overall" and data sets, a mean for each column."""
    names = [f"column {number}" for number in range(scores.shape[1])]
    found = group_scores(scores, names, grouping, seed, resamples)
    labels = ["overall", *(label for _, label in grouping.groups)]
    return {label: list(scores.means.values()) for label, scores in zip(labels, found, strict=True)}


def comparisons(scores: dict[str, Floats], columns: list[str], grouping: Grouping, seed: int) -> tuple[Comparison, ...]:
    return compare(scores, columns, grouping, seed, together="pairs")


def test_means_are_over_the_texts_that_have_a_value() -> None:
    groups = grouping_of(["a", "a", "b", ""], apart(4))
    scores = np.array([[1.0, NAN], [0.0, 5.0], [4.0, NAN], [NAN, NAN]])
    found = means(scores, groups, 0, 100)
    assert list(found) == ["overall", "a", "b", UNNAMED]
    assert [(mean.n, mean.value) for mean in found["overall"]] == [(3, pytest.approx(5 / 3)), (1, 5.0)]
    assert [(mean.n, mean.value) for mean in found["a"]] == [(2, 0.5), (1, 5.0)]
    assert [(mean.n, mean.value) for mean in found["b"]] == [(1, 4.0), (0, None)]
    assert [(mean.n, mean.value, mean.ci) for mean in found[UNNAMED]] == [(0, None, None)] * 2


def test_one_data_set_needs_no_group_of_its_own() -> None:
    assert grouping_of(["a", "a"], apart(2)).groups == []


def test_intervals_of_known_cases() -> None:
    even = np.array([[0.0], [1.0]] * 200)
    ((of_texts,),) = means(even, grouping_of(["a"] * 400, apart(400)), 0, 2000).values()
    half = 1.96 * 0.5 / 400**0.5  # of a normal distribution
    assert of_texts.ci == pytest.approx((0.5 - half, 0.5 + half), abs=0.006)
    # The same texts of two papers only: one draw in four has one paper twice.
    ((of_papers,),) = means(even, grouping_of(["a"] * 400, ["p", "q"] * 200), 0, 2000).values()
    assert of_papers.ci == (0.0, 1.0)
    ((alike,),) = means(np.full((30, 1), 0.25), grouping_of(["a"] * 30, apart(30)), 0, 100).values()
    assert alike.ci == (0.25, 0.25)
    ((of_one,),) = means(even, grouping_of(["a"] * 400, ["p"] * 400), 0, 100).values()
    assert of_one.ci is None


def test_p_values_of_known_cases() -> None:
    groups = grouping_of(["a"] * 3, apart(3))
    first = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    second = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    better, same = comparisons({"one": first, "two": second}, ["x", "y"], groups, seed=0)
    # All three must keep, or all change, their sign: 2 of 8 ways.
    assert (better.metric, better.n, better.difference) == ("x", 3, 1.0)
    assert better.p == pytest.approx(0.25, abs=0.02)
    assert (same.difference, same.p, same.p_holm) == (0.0, 1.0, 1.0)
    # Of one paper they change together: it says nothing.
    clustered = grouping_of(["a"] * 3, ["p"] * 3)
    assert comparisons({"one": first, "two": second}, ["x", "y"], clustered, seed=0)[0].p == 1.0


def test_two_systems_are_compared_as_eval_compares_them() -> None:
    random = np.random.default_rng(3)
    datasets, papers = ["a", "b", "c"] * 20, [f"paper {number // 2}" for number in range(60)]
    groups = grouping_of(datasets, papers)
    scores = {"one": random.normal(0.6, 1, (60, 2)), "two": random.normal(0, 1, (60, 2))}
    theirs = compare(scores, ["x", "y"], groups, seed=7)
    ours = comparisons(scores, ["x", "y"], groups, seed=7)

    def by_question(found: object) -> dict[object, object]:
        return {(c.metric, c.label): (c.n, c.difference, c.p, c.p_holm) for c in found}  # type: ignore[attr-defined]

    assert by_question(ours) == by_question(theirs)


def test_all_pairs_and_data_sets_of_a_column_are_corrected_together() -> None:
    random = np.random.default_rng(5)
    groups = grouping_of(["a", "b"] * 15, apart(30))
    scores = {name: random.normal(mean, 1, (30, 1)) for name, mean in (("one", 0.0), ("two", 0.7), ("three", 1.4))}
    found = comparisons(scores, ["x"], groups, seed=0)
    assert len(found) == 3 * 3
    for overall in (True, False):
        asked = [c for c in found if (c.family != DATASET) == overall]
        assert [c.p_holm for c in asked] == holm(np.array([c.p for c in asked])).tolist()
        assert any(c.p_holm > c.p for c in asked)


def test_a_pair_is_compared_where_both_have_a_value() -> None:
    groups = grouping_of(["a"] * 4, apart(4))
    scores = {"one": np.array([[1.0], [NAN], [3.0], [4.0]]), "two": np.array([[0.0], [9.0], [NAN], [1.0]])}
    (found,) = comparisons(scores, ["x"], groups, seed=0)
    assert (found.n, found.difference) == (2, 2.0)
    assert comparisons({"one": scores["one"], "two": np.full((4, 1), NAN)}, ["x"], groups, seed=0) == ()


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.floats(0, 1) | st.just(NAN)), min_size=1, max_size=12
    )
)
def test_means_lie_within_their_intervals_and_are_those_of_numpy(texts: list[tuple[str, int, float]]) -> None:
    datasets, papers, values = zip(*texts, strict=True)
    groups = grouping_of(datasets, [str(paper) for paper in papers])
    found = means(np.array(values)[:, None], groups, 0, 100)
    for name, members in zip(["overall", *(label for _, label in groups.groups)], groups.members.T, strict=True):
        (mean,) = found[name]
        of_group = np.array(values)[members & ~np.isnan(values)]
        assert mean.n == len(of_group)
        if len(of_group):
            assert mean.value == pytest.approx(of_group.mean())
        if mean.ci:
            assert of_group.min() - 1e-9 <= mean.ci[0] <= mean.ci[1] <= of_group.max() + 1e-9
