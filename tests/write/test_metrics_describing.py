"""What describes texts: self-reference, novelty, length, grounding."""

from decimal import Decimal
from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given, strategies as st

from citerec.write.metrics import (
    NGRAMS,
    TextMetric,
    novelty,
    numbers,
    open_metrics,
    refers_to_itself,
)
from citerec.write.tasks import (
    STOP_WORDS,
    Prediction,
    Source,
    TextTask,
    content_terms,
    sentences_of,
    terms_of,
    words_of,
)

PARSER = Source("It parses 1,000 sentences in 0.50 seconds.", "W0", "A fast parser", authors=("Ada Lee",))


def opened(name: str) -> TextMetric:
    ((metric,), _) = open_metrics([name])
    return metric


def score(name: str, text: str, *sources: Source) -> list[float]:
    return opened(name).scores([Prediction(TextTask("t", sources), text, "w")], lambda *_: None)[0].tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In this paper, a parser is built.", True),
        ("As OUR  WORK shows", True),
        ("we\nintroduce X", True),
        ("Here we presented a parser of our workers.", False),
        ("Lee introduces X in this work.", False),
    ],
)
def test_self_reference(text: str, expected: bool) -> None:
    assert refers_to_itself(text) == expected
    assert score("self-reference", text) == [expected]


def test_novelty_by_hand() -> None:
    # Words: a, fast, tagger; of them "tagger" is new. Pairs: "a fast" stands in the title, "fast tagger" does not.
    assert score("novelty", "A fast tagger [0].", PARSER) == pytest.approx([1 / 3, 1 / 2, 1, np.nan], nan_ok=True)
    # No pair runs from one source into another.
    assert novelty("b c", ["a b", "c d"])[1] == 1
    assert novelty("B-c", ["a b c"])[1] == 0
    # Each as often as it comes.
    assert novelty("x x a", ["a"])[0] == pytest.approx(2 / 3)
    assert np.isnan(score("novelty", "[0]", PARSER)).all()


@given(st.text("ab c.", max_size=30), st.text("ab c.", max_size=30))
def test_longer_ngrams_are_newer(text: str, source: str) -> None:
    shares = novelty(text, [source])
    assert len(shares) == len(NGRAMS)
    known = [share for share in shares if not np.isnan(share)]
    assert all(0 <= share <= 1 for share in known)
    assert [not share for share in known] == sorted((not share for share in known), reverse=True)
    assert not any(share > 0 for share in novelty(text, [f"x {text} y"]))


def test_length_by_hand() -> None:
    # 8 words without the citations, 2 sentences; the source has 7 words.
    text = "State-of-the-art parsers don't wait [0, 1]. They parse 3.5 trees [0]."
    assert score("length", text, PARSER) == pytest.approx([8, 2, 7 / 8])
    assert score("length", "", PARSER) == pytest.approx([0, 0, np.nan], nan_ok=True)
    assert score("length", "A text.") == pytest.approx([2, 1, np.nan], nan_ok=True)


def test_grounding_by_hand() -> None:
    text = "Lee's fast parser parses 1000 sentences in 2 s, the tagger does not."
    assert content_terms(text) == ["lee's", "fast", "parser", "parses", "sentences", "s", "tagger"]
    # Lee, fast, parser; the tagger is in no source, and [7] is no number of the text.
    assert score("grounding", "Lee and a fast parser and the tagger [7].", PARSER) == pytest.approx(
        [3 / 4, np.nan], nan_ok=True
    )
    assert score("grounding", "It takes 0.5 s for 1000, and 7 for 10.", PARSER)[1] == 2 / 4
    assert score("grounding", "A GPT-2 of 50.", PARSER)[1] == 0
    assert np.isnan(score("grounding", "It is [0].", PARSER)).all()


def test_settings_name_what_splits_and_what_stops() -> None:
    assert opened("length").settings["sentences"] == f"pysbd {version('pysbd')}"
    assert opened("grounding").settings["stop_words"] == f"citerec's {len(STOP_WORDS)} function words"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000 and 1000.0", ["1000", "1000"]),
        ("95.3% of 12-15, ($3)", ["95.3", "12", "15", "3"]),
        ("GPT-2, F1, ROUGE-2, v1.5", []),
        ("a 2-gram in 1995.", ["2", "1995"]),
        ("10,20", ["10,20"]),
        ("version 1.2.3", ["1.2.3"]),
    ],
)
def test_numbers(text: str, expected: list[str]) -> None:
    found = numbers(text)
    assert [str(number) for number in found] == [
        str(Decimal(one).normalize()) if one.replace(".", "", 1).isdecimal() else one for one in expected
    ]


@given(st.text())
def test_a_source_grounds_itself(text: str) -> None:
    shares = np.array(score("grounding", text, Source(f"( {text} )")))
    assert (np.isnan(shares) | (shares == 1)).all()


def test_sentences_and_words() -> None:
    assert sentences_of("As Lee et al. (1997) show. It rains\nA headline\n\nIt does.") == (
        "As Lee et al. (1997) show.",
        "It rains",
        "A headline",
        "It does.",
    )
    assert words_of("The state-of-the-art don't, 3.5!") == ["The", "state-of-the-art", "don't", "3.5"]
    assert terms_of("The state-of-the-art don’t") == ["the", "state", "of", "the", "art", "don't"]
    assert sentences_of(" \n") == ()
