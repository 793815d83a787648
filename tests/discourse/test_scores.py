"""Scores of labels are those of scikit-learn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from citerec.discourse.scores import score_labels

_labels = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.tuples(_labels, _labels), min_size=1, max_size=30))
def test_as_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    gold, given_ = map(list, zip(*pairs, strict=True))
    scores = score_labels(gold, given_)
    assert scores.macro_f1 == pytest.approx(f1_score(gold, given_, average="macro", zero_division=0))
    assert scores.accuracy == pytest.approx(accuracy_score(gold, given_))
    names = list(scores.labels)
    expected = zip(*precision_recall_fscore_support(gold, given_, labels=names, zero_division=0), strict=True)
    for name, (precision, recall, f1, n) in zip(names, expected, strict=True):
        found = scores.labels[name]
        assert (found.precision, found.recall, found.f1, found.n) == pytest.approx((precision, recall, f1, n))


def test_by_hand() -> None:
    scores = score_labels(["a", "a", "b", "c"], ["a", "b", "b", "b"])
    # a: 1 of 1 right, 1 of 2 found; b: 1 of 3 right, 1 of 1 found; c: never given.
    assert scores.labels["a"].f1 == pytest.approx(2 / 3)
    assert scores.labels["b"].f1 == pytest.approx(1 / 2)
    assert scores.labels["c"].f1 == 0
    assert scores.macro_f1 == pytest.approx((2 / 3 + 1 / 2) / 3)
    assert scores.accuracy == 0.5
