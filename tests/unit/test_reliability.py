"""Calibration error and Brier score, against a second way to compute them."""

import numpy as np
import pandas as pd
import pytest

from citerec.evaluation.metrics import reliabilities, reliability


def by_hand(stated: list[float], right: list[bool]) -> float:
    """The expected calibration error, bin by bin."""
    error = 0.0
    for number in range(10):
        last = number == 9
        inside = [
            (p, r) for p, r in zip(stated, right, strict=True) if number <= p * 10 < number + 1 or (last and p == 1)
        ]
        if inside:
            says, is_so = (sum(column) / len(inside) for column in zip(*inside, strict=True))
            error += len(inside) / len(stated) * abs(says - is_so)
    return error


def test_calibration_error_and_brier_score_are_as_a_second_implementation_finds_them() -> None:
    from sklearn.metrics import brier_score_loss

    random = np.random.default_rng(3)
    for n in (1, 7, 500):
        stated = random.random(n) ** 2
        stated[:1] = random.choice([0.0, 1.0])
        right = random.random(n) < 0.4
        found = reliability(stated, right)
        assert found.ece == pytest.approx(by_hand(stated.tolist(), right.tolist()), abs=1e-12)
        assert found.brier == pytest.approx(brier_score_loss(right, stated, pos_label=1))
        assert found.n == n


def test_a_known_case() -> None:
    found = reliability(np.array([0.05, 0.25, 0.25, 1.0]), np.array([False, True, False, True]))
    assert found.ece == pytest.approx((0.05 + 2 * 0.25 + 0) / 4)
    assert found.brier == pytest.approx((0.05**2 + 0.75**2 + 0.25**2) / 4)


def test_any_of_several_cited_papers_counts() -> None:
    ranks = pd.DataFrame({"context": list("aabbccdd"), "rank": [1, 0, 0, 10, 11, 0, 4, 1]})
    stated = pd.DataFrame({"context": list("abcd"), "first": [1.0, 0.0, 0.0, 1.0], "among_ten": [1.0, 1.0, 0.0, 1.0]})
    assert [one.brier for one in reliabilities(stated, ranks, 100).values()] == [0, 0]


def test_only_answers_with_confidence_count() -> None:
    ranks = pd.DataFrame({"context": ["c1", "c2", "c3"], "rank": [1, 0, 3]})
    stated = pd.DataFrame({"context": ["c1"], "first": [0.5], "among_ten": [0.9]})
    found = reliabilities(stated, ranks, 100)
    assert {event: (one.n, one.stated, one.right) for event, one in found.items()} == {
        "first": (1, 0.5, 1.0),
        "among_ten": (1, 0.9, 1.0),
    }
    assert list(reliabilities(stated, ranks, 5)) == ["first"]  # five hits do not show ten
    assert reliabilities(stated[:0], ranks, 100) == {}
