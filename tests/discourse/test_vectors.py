"""TF-IDF is that of scikit-learn, block by block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from citerec.discourse.vectors import WEIGHTS, Vectors

_tokens = st.lists(st.sampled_from("abcdefgh"), max_size=12)


def _reference(learnt: list[list[str]], asked: list[list[str]]) -> np.ndarray:
    vectorizer = TfidfVectorizer(analyzer=lambda tokens: tokens, sublinear_tf=True, min_df=2)
    vectorizer.fit(learnt)
    return np.asarray(vectorizer.transform(asked).todense())


@given(st.lists(_tokens, min_size=2, max_size=8), st.lists(_tokens, max_size=4))
def test_as_scikit_learn(learnt: list[list[str]], asked: list[list[str]]) -> None:
    learnt = [*learnt, ["a"], ["a"]]  # it refuses an empty vocabulary
    blocks = ("words", "cues")

    def both(sentences: list[list[str]]) -> list[dict[str, list[str]]]:
        return [{"words": tokens, "cues": tokens} for tokens in sentences]

    vectors, rows = Vectors.learn(both(learnt), blocks)
    for found, sentences in ((rows.csr(), learnt), (vectors.matrix(both(asked)).csr(), asked)):
        assert found.shape == (len(sentences), len(vectors.idf))
        if sentences:
            words, cues = np.split(found.toarray(), 2, axis=1)
            assert words / WEIGHTS["words"] == pytest.approx(_reference(learnt, sentences), abs=1e-6)
            assert cues / WEIGHTS["cues"] == pytest.approx(_reference(learnt, sentences), abs=1e-6)


def test_the_vocabulary_is_in_order_and_without_what_comes_once() -> None:
    sentences = [{"words": ["b", "a", "once"]}, {"words": ["a", "b", "b"]}]
    assert Vectors.learn(sentences, ("words",))[0].vocabulary == {"words": ["a", "b"]}
