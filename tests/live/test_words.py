"""Which words of a sentence are asked for."""

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.topic import topic_of
from citerec.records import Context
from citerec.retrieve.live import queries_of, telling_words, words_of


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Attention alone suffices to translate well <REF>.", ["Attention", "translate"]),
        (
            "We use BERT (Devlin et al., 2019) and self-training as Amento et al. <REF> do.",
            ["BERT", "self", "training", "Amento"],
        ),
        ("In 2019, results of previous work were shown <REF>.", []),
        ("Graph neural networks and graph kernels <REF>", ["Graph", "neural", "networks", "kernels"]),
    ],
)
def test_words_of_a_sentence(sentence: str, words: list[str]) -> None:
    assert words_of(topic_of(Context(text=sentence))) == words


def test_names_of_methods_come_first_then_long_words_and_authors_last() -> None:
    context = Context(text="Convolution was replaced by attention, which BERT made popular, see Vaswani <REF>.")
    assert telling_words(topic_of(context)) == ["BERT", "Convolution", "attention", "replaced", "Vaswani"]
    assert list(queries_of(topic_of(context), 3)) == ["Convolution attention BERT", "Convolution BERT", "BERT"]


def test_the_sentences_around_serve_where_the_sentence_has_no_word() -> None:
    context = Context(text="This was shown by <REF>.", before="Transformers translate well.")
    assert words_of(topic_of(context)) == ["Transformers", "translate"]
    assert list(queries_of(topic_of(Context(text="<REF>")), 5)) == []


@given(st.text(), st.integers(1, 10))
def test_queries_are_plain_words(text: str, most: int) -> None:
    queries = list(queries_of(topic_of(Context(text=text)), most))
    sizes = [len(query.split()) for query in queries]
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(query.replace(" ", "").isalnum() and len(query.split()) <= most for query in queries)
