"""Shorter forms of a sentence: what is left out, and what must stay."""

import pytest

from citerec.write.writers.trained import forms_of, leans


def _texts(sentence: str) -> list[str]:
    return [form.text for form in forms_of(sentence)]


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("In this paper, we propose a fast method for sorting.", "We propose a fast method for sorting."),
        (
            "Inspired by biology, we propose a fast method for sorting.",
            "We propose a fast method for sorting.",
        ),
        (
            "We train deep convolutional networks (CNNs) on small sets.",
            "We train deep convolutional networks on small sets.",
        ),
        (
            "We propose a fast method for sorting, which uses less memory.",
            "We propose a fast method for sorting.",
        ),
        (
            "We propose a fast method for sorting and show that it is stable.",
            "We propose a fast method for sorting.",
        ),
        (
            "We learn useful vectors of words by predicting their neighbours.",
            "We learn useful vectors of words.",
        ),
    ],
)
def test_what_a_sentence_can_do_without_is_left_out(sentence: str, shorter: str) -> None:
    forms = _texts(sentence)
    assert forms[0] == sentence
    assert shorter in forms[1:]


@pytest.mark.parametrize(
    "sentence",
    [
        "If the graph has a cycle, we prove that the search ends.",  # a condition
        "We prove that the search ends if the graph has no cycle.",
        "We propose a fast method that not only sorts but, using less memory, also searches.",
        "The training of very deep networks using gradients, with noise",  # no verb: no sentence would be left
        "Ideally, we would combine the best of both of these worlds.",
        "We explain in this work how powerful language models using attention are.",
        "Sorting is hard.",
    ],
)
def test_nothing_is_left_out_that_a_sentence_needs(sentence: str) -> None:
    assert _texts(sentence) == [sentence]


def test_a_shorter_form_has_only_words_of_its_sentence_in_their_order() -> None:
    sentence = (
        "However, to address this (long) problem, we propose a new loss, called ours, and show that it is better, "
        "using two sets; the code is public."
    )
    forms = _texts(sentence)
    assert len(forms) == len(set(forms)) > 5
    words = sentence.lower().replace(",", "").split()
    for text in forms:
        left = iter(words)
        assert all(
            any(word.strip(".;") == other.strip(".;") for other in left)
            for word in text.lower().replace(",", "").split()
        )


def test_sentences_that_refer_to_the_one_before() -> None:
    for sentence in ("This takes long.", "But it is slow.", "However, trees fall.", "Moreover, we cut them."):
        assert leans(sentence)
    for sentence in ("This paper is about trees.", "We cut trees.", "Our method is fast.", "Thistles are green."):
        assert not leans(sentence)
