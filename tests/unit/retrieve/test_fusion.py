"""Fusion against ranx, and what it promises of ties and signals."""

import pytest
from hypothesis import given, strategies as st

from citerec.retrieve.base import Candidate, Candidates
from citerec.retrieve.fusion import Fusion, fuse
from tests.columns import columns

_scores = st.dictionaries(
    st.sampled_from([f"p{number}" for number in range(12)]), st.floats(0.01, 50).map(lambda x: round(x, 3)), min_size=1
)


_PAPERS = [*(f"p{number}" for number in range(12)), *"abcd"]


def ranked(scores: dict[str, float], signal: str) -> Candidates:
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return columns([Candidate(paper_id, score, None, {signal: score}) for paper_id, score in ordered], _PAPERS)


def by_ranx(lists: list[dict[str, float]], **how: object) -> dict[str, float]:
    from ranx import Run, fuse as ranx_fuse

    runs = [Run({"q": scores}) for scores in lists]
    return dict(ranx_fuse(runs=runs, **how).to_dict()["q"])


@pytest.mark.usefixtures("plain_ranx")
@pytest.mark.parametrize(
    ("words", "vectors"),
    [
        ({"a": 9.0, "b": 4.0, "c": 1.0}, {"b": 0.9, "d": 0.7, "a": 0.2}),
        ({"a": 2.0, "b": 1.0}, {"c": 0.5, "d": 0.1}),
    ],
)
def test_it_agrees_with_ranx(words: dict[str, float], vectors: dict[str, float]) -> None:
    lists = {"words": ranked(words, "bm25"), "dense": ranked(vectors, "dense")}
    ours = {hit.paper_id: hit.score for hit in fuse(lists, {}, Fusion(method="rrf", k=60))}
    assert ours == pytest.approx(by_ranx([words, vectors], method="rrf", params={"k": 60}))
    ours = {hit.paper_id: hit.score for hit in fuse(lists, {"words": 0.5, "dense": 2}, Fusion())}
    theirs = by_ranx([words, vectors], norm="min-max", method="wsum", params={"weights": (0.5, 2.0)})
    assert ours == pytest.approx(theirs)


@given(_scores, _scores, st.sampled_from(["rrf", "weighted"]))
def test_every_paper_comes_once_in_order(words: dict[str, float], vectors: dict[str, float], method: str) -> None:
    fused = fuse(
        {"words": ranked(words, "bm25"), "dense": ranked(vectors, "dense")},
        {},
        Fusion.model_validate({"method": method}),
    )
    assert sorted(hit.paper_id for hit in fused) == sorted(words.keys() | vectors.keys())
    assert [(-hit.score, hit.paper_id) for hit in fused] == sorted((-hit.score, hit.paper_id) for hit in fused)
    for hit in fused:
        assert hit.signals.get("bm25") == words.get(hit.paper_id)
        assert hit.signals.get("dense") == vectors.get(hit.paper_id)
        assert hit.signals["fused"] == hit.score
