"""Words, the place of the marker, parts of speech."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.diagnostics.families import Sentence, is_installed, read_sentences
from citerec.errors import InputError
from citerec.records import MARKER, Context


def read(text: str, model: str | None = None) -> Sentence:
    (sentence,) = read_sentences([Context(text=text)], model)
    return sentence


@pytest.mark.parametrize(
    ("text", "length", "position"),
    [
        ("As shown by <REF>, this works.", 6, 4),
        ("This works (<REF>).", 3, 3),
        ("<REF> did it.", 3, 1),
        ("Tagged by TnT<REF>.", 4, 4),  # glued to a word
        ("A state-of-the-art method <REF> !", 7, 7),  # spaCy parts compounds
        ("It doesn't – … <REF>", 4, 4),
        ("It works <REF>.¹", 3, 3),
    ],
)
def test_words_are_tokens_with_a_letter_or_digit(text: str, length: int, position: int) -> None:
    assert read(text) == Sentence(length, position)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_marker_is_never_lost(before: str, after: str) -> None:
    sentence = read(before.replace(MARKER, "") + MARKER + after.replace(MARKER, ""))
    assert 1 <= sentence.position <= sentence.length


@pytest.mark.shared
def test_tags_are_of_the_nearest_words_and_words_are_those_that_are_counted(shared: Path) -> None:
    model = str(shared.parent / "models" / "en_ewt_tagger")
    assert read("We use the tagger, <REF>) which labels words quickly.", model) == Sentence(9, 5, "NN", "WDT")
    assert read("<REF> labels words.", model).tag_before is None
    with pytest.raises(InputError, match=r"spaCy model no_such_model cannot be loaded.*python -m spacy download"):
        read("A <REF>.", "no_such_model")
    assert [is_installed(name) for name in (model, "json", "no_such_model")] == [True, True, False]
