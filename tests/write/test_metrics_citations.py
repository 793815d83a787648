"""Citation scores against cases worked by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from citerec.write.metrics import MetricOptions, citation_score, open_citations
from citerec.write.tasks import Prediction, Source, TextTask

SOURCES = tuple(Source(f"text {number}", f"W{number}", f"Title {number}") for number in range(4))


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        # Two of three cited are right, two of four wanted are found: 2 * 2/3 * 1/2 / (7/6) = 4/7.
        ("[0] and [1, 1], but [9]", "[0-3]", (2 / 3, 2 / 4, 4 / 7)),
        ("as [1] and [0] say, as [1] says", "[0, 1]", (1, 1, 1)),
        ("as [2] says", "[0, 1]", (0, 0, 0)),
        ("no citation", "none either", (1, 1, 1)),
        ("no citation", "[0]", (0, 0, 0)),
        ("[0]", "no citation", (0, 0, 0)),
        # What is not in the input: wrong in the text, left out of the target.
        ("[7]", "no citation", (0, 0, 0)),
        ("no citation", "[7]", (1, 1, 1)),
        ("[0] [7]", "[0] [7]", (1 / 2, 1, 2 / 3)),
        # Papers that nobody knows are left out everywhere.
        ("[0] #OTHEREFR", "[0], REF", (1, 1, 1)),
        ("#OTHEREFR", "#OTHEREFR", (1, 1, 1)),
        # By identifier, by title, by number.
        ("<cite> W1 <sep> x </cite> <cite> unknown <sep> title 2 </cite>", "[1] [2]", (1, 1, 1)),
        ("<cite> W8 <sep> x </cite> [1]", "<cite> W1 <sep> Title 1 <sep> Lee </cite>", (1 / 2, 1, 2 / 3)),
    ],
)
def test_by_hand(text: str, target: str, expected: tuple[float, float, float]) -> None:
    assert citation_score(text, target, SOURCES) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        # Known to no source, on both sides: by title, by identifier, by number.
        ("<cite> UNK <sep> On Trees </cite>", "<cite> UNK <sep> on trees. <sep> Lee </cite>", (1, 1, 1)),
        ("no citation", "<cite> UNK <sep> On Trees </cite>", (0, 0, 0)),
        ("[0]", "[0] <cite> UNK <sep> On Trees </cite>", (1, 1 / 2, 2 / 3)),
        ("[0] <cite> UNK <sep> Rivers </cite>", "[0] <cite> UNK <sep> On Trees </cite>", (1 / 2, 1 / 2, 1 / 2)),
        ("[0] [7]", "[0] <cite> W9 <sep> x </cite>", (1 / 2, 1 / 2, 1 / 2)),
        ("<cite> W9 <sep> x </cite> [7]", "<cite> W9 <sep> y </cite> [7]", (1, 1, 1)),
        # What neither has a name for counts nowhere, and a title of a source is that source.
        ("#OTHEREFR", "REF", (1, 1, 1)),
        ("<cite> UNK <sep> Title 2 </cite>", "[2]", (1, 1, 1)),
    ],
)
def test_by_hand_with_all_named_works(text: str, target: str, expected: tuple[float, float, float]) -> None:
    assert citation_score(text, target, SOURCES, "named") == pytest.approx(expected)


@given(st.sets(st.integers(0, 5)), st.sets(st.integers(0, 3)))
def test_f1_is_the_harmonic_mean(cited: set[int], wanted: set[int]) -> None:
    text, target = ("".join(f"[{number}]" for number in numbers) for numbers in (cited, wanted))
    precision, recall, f1 = citation_score(text, target, SOURCES)
    right = len(cited & wanted)
    if cited and wanted:
        assert (precision, recall) == (right / len(cited), right / len(wanted))
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall) if precision + recall else 0)


def test_over_texts() -> None:
    task = TextTask("t", SOURCES, targets=("[0]", "[1]"))
    texts = [Prediction(task, "[1]", "w"), Prediction(TextTask("u", SOURCES), "[1]", "w")]
    best, first = (
        open_citations(options).scores(texts, lambda *_: None)
        for options in (MetricOptions(references="best"), MetricOptions(references="first"))
    )
    assert best[0].tolist() == [1, 1, 1]
    assert first[0].tolist() == [0, 0, 0]
    assert np.isnan(best[1]).all()
