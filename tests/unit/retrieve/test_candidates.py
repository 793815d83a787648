"""Candidates as columns: the same as one by one, in every order and slice."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from citerec import reranked
from citerec.retrieve.base import Candidate
from tests.columns import columns

PAPERS = "abcdefghijkl"


scores = st.lists(st.floats(-9, 9).map(lambda score: round(score, 1)), max_size=len(PAPERS))


@given(scores, st.integers(0, len(PAPERS)))
def test_reranked_orders_the_first_and_keeps_the_rest(old: list[float], read: int) -> None:
    found = columns([Candidate(name, score) for name, score in zip(PAPERS, old, strict=False)], PAPERS).in_order()
    new = [(ord(name) * 7) % 5 for name in found[:read].paper_ids()]
    again = reranked(found, new, "mine")
    head = sorted(zip(new, found.paper_ids(), strict=False), key=lambda one: -one[0])  # ties keep their order
    assert again.paper_ids() == [name for _, name in head] + found.paper_ids()[len(new) :]
    if new:
        assert again.scores[: len(new)].tolist() == pytest.approx([score for score, _ in head])
        assert (np.diff(again.scores) < 0).all()
        assert np.isnan(again.signal("mine")).tolist() == [place >= len(new) for place in range(len(again))]
