"""Shares of labels in texts, and their divergence, against scipy's."""

import math

import pytest
from hypothesis import given, strategies as st
from scipy.stats import entropy

from citerec.discourse.classifier import TaggerManifest
from citerec.discourse.linear import LinearTagger
from citerec.discourse.tagger import kl_divergence, shares_of
from citerec.errors import InputError
from tests.discourse.toy import sentences

_counts = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)


@pytest.fixture(scope="module")
def tagger() -> LinearTagger:
    labels = ("background", "method", "result")
    return LinearTagger.fit(sentences(), TaggerManifest(model="linear", scheme="scicite", labels=labels), 0)


def _shares(counts: list[int]) -> dict[str, float]:
    return {label: count / sum(counts) for label, count in zip("abc", counts, strict=True)}


@given(_counts, _counts)
def test_the_divergence_is_scipys(reference: list[int], system: list[int]) -> None:
    expected = entropy(reference, system)  # nats; infinite where a label is missing
    assert kl_divergence(_shares(reference), _shares(system)) == pytest.approx(expected, abs=1e-12)


def test_a_label_that_the_system_never_writes_is_infinitely_far() -> None:
    assert kl_divergence({"a": 1.0}, {"a": 1.0, "b": 0.0}) == 0
    assert kl_divergence({"a": 0.5, "b": 0.5}, {"a": 1.0}) == math.inf


def test_each_sentence_of_a_text_counts(tagger: LinearTagger) -> None:
    texts = [
        ["Many have worked on chess (Roy, 2007; Day, 2008).", "For chess we use the toolkit of Lee et al. (2005)."],
        ["Our result on chess is higher than that of Lee (2003)."],
        ["For speech we use the toolkit of Lee et al. (1999)."],
    ]
    assert shares_of(tagger, texts) == {"background": 0.25, "method": 0.5, "result": 0.25}
    shares = shares_of(tagger, [texts[2], []])  # a label that never comes has no share
    assert shares == {"background": 0.0, "method": 1.0, "result": 0.0}
    with pytest.raises(InputError, match="no sentence"):
        shares_of(tagger, [[]])
