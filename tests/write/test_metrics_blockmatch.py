"""BlockMatch against cases worked by hand and against every assignment."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from citerec.files.progress import Progress
from citerec.papers.oarelatedwork.metrics import block_match, blocks_of, match
from citerec.write.metrics import Floats, MetricOptions, open_rouge, rouge
from citerec.write.tasks import Prediction, TextTask

MATRICES = arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(0, 1, width=32))


class SharedWords:
    """Words that two texts share, of those that either has."""

    name = "words"
    settings: Mapping[str, Any] = {}

    def pairs(self, pairs: Sequence[tuple[str, str]], on_progress: Progress) -> Floats:
        sets = [(set(one.split()), set(other.split())) for one, other in pairs]
        return np.array([len(one & other) / len(one | other) for one, other in sets], float)


def quietly(doing: str, done: int, whole: int) -> None:
    pass


def score(text: str, *targets: str, references: Any = "best") -> list[float]:
    metric = block_match(SharedWords(), references=references)
    return metric.scores([Prediction(TextTask("t", (), targets=targets), text, "w")], quietly)[0].tolist()


def test_by_hand() -> None:
    # Taking the highest pair first (0.9) leaves 0.1: the best sum is 0.8 + 0.7.
    scores = np.array([[0.9, 0.8], [0.7, 0.1]])
    assert match(scores) == (pytest.approx(0.75), pytest.approx(0.75), pytest.approx(0.75))
    # Two reference blocks, three predicted: 0.5 + 0.4 of 3, of 2; 2 * 0.3 * 0.45 / 0.75 = 0.36.
    scores = np.array([[0.5, 0.0, 0.3], [0.2, 0.0, 0.4]])
    assert match(scores) == (pytest.approx(0.3), pytest.approx(0.45), pytest.approx(0.36))


def test_paragraphs_match_in_any_order() -> None:
    target = "# Related work\nparsing of trees\n\ntagging of words"
    assert score("tagging of words\n\n\n  parsing of trees  \n# Related work", target) == [1, 1, 1]
    # One of three blocks, whole: precision 1, recall 1/3.
    assert score("parsing of trees", target) == pytest.approx([1 / 2, 1, 1 / 3])
    # A headline too many: precision 3/4.
    assert score(f"# Methods\n{target}", target) == pytest.approx([6 / 7, 3 / 4, 1])


def test_blocks_are_lines() -> None:
    assert blocks_of("# Title\n\nfirst <cite> W1 <sep> T </cite> \n \nsecond\n") == [
        "# Title",
        "first <cite>",
        "second",
    ]
    assert blocks_of(" \n") == []


def test_empty_texts_have_nothing_to_match() -> None:
    assert score("", "a block") == [0, 0, 0]
    assert score("a block", "") == [0, 0, 0]
    assert np.isnan(score("a block")).all()


def test_several_targets() -> None:
    assert score("a b", "c", "a b") == [1, 1, 1]
    assert score("a b", "c", "a b", references="first") == [0, 0, 0]


@given(MATRICES)
def test_no_assignment_is_better(scores: Floats) -> None:
    fewer, more = sorted(scores.shape)
    wide = scores if scores.shape[0] == fewer else scores.T
    best = max(
        sum(wide[row, column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(more), fewer)
    )
    matched = match(scores)
    assert matched.recall == pytest.approx(best / scores.shape[0])
    assert matched.precision == pytest.approx(best / scores.shape[1])
    total = matched.precision + matched.recall
    assert matched.f1 == pytest.approx(2 * matched.precision * matched.recall / total if total else 0)


def test_over_rouge_each_pair_is_rouge() -> None:
    metric = block_match(open_rouge(MetricOptions(), "rouge2"))
    text, target = "a b c d\ne f g", "e f h\nx\na b c"
    pairs = [[rouge(one, other)["rouge2"].f1 for one in text.split("\n")] for other in target.split("\n")]
    found = metric.scores([Prediction(TextTask("t", (), targets=(target,)), text, "w")], quietly)[0]
    expected = match(np.array(pairs))
    assert found.tolist() == [expected.f1, expected.precision, expected.recall]
    assert expected.precision == pytest.approx((pairs[0][1] + pairs[2][0]) / 2)
    assert metric.name == "blockmatch-rouge2"
    assert tuple(map(str, metric.columns)) == (
        "blockmatch_rouge2",
        "blockmatch_rouge2_precision",
        "blockmatch_rouge2_recall",
    )
    assert metric.settings["score"]["stemming"] is False
