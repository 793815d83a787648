"""Calibration error and Brier score, against a second way to compute them."""

import numpy as np
import pandas as pd
import pytest

from citerec.evaluation.metrics import reliabilities, reliability


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


def test_any_of_several_cited_papers_counts_and_only_answers_with_confidence() -> None:
    ranks = pd.DataFrame({"context": list("aabbccdd"), "rank": [1, 0, 0, 10, 11, 0, 4, 1]})
    stated = pd.DataFrame({"context": list("abcd"), "first": [1.0, 0.0, 0.0, 1.0], "among_ten": [1.0, 1.0, 0.0, 1.0]})
    assert [one.brier for one in reliabilities(stated, ranks, 100).values()] == [0, 0]
    found = reliabilities(stated[:1], ranks, 100)
    assert [(event, one.n, one.stated, one.right) for event, one in found.items()] == [
        ("first", 1, 1.0, 1.0),
        ("among_ten", 1, 1.0, 1.0),
    ]
    assert list(reliabilities(stated, ranks, 5)) == ["first"]  # five hits do not show ten
    assert reliabilities(stated[:0], ranks, 100) == {}
