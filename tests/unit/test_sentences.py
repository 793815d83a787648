"""Words, the place of the marker, parts of speech."""

import sys
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
        ("This works <REF>.", 3, 3),
        ("This works (<REF>).", 3, 3),
        ("<REF> did it.", 3, 1),
        ("Tagged by TnT<REF>.", 4, 4),  # glued to a word
        ("A state-of-the-art method <REF> !", 7, 7),  # spaCy parts compounds
        ("It doesn't – … <REF>", 4, 4),
        ("<REF>", 1, 1),
        ("It works <REF>.¹", 3, 3),
    ],
)
def test_words_are_tokens_with_a_letter_or_digit(text: str, length: int, position: int) -> None:
    sentence = read(text)
    assert (sentence.length, sentence.position) == (length, position)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_marker_is_never_lost(before: str, after: str) -> None:
    sentence = read(before.replace(MARKER, "") + MARKER + after.replace(MARKER, ""))
    assert 1 <= sentence.position <= sentence.length


@pytest.mark.shared
def test_tags_are_of_the_nearest_words(shared: Path) -> None:
    model = str(shared.parent / "models" / "en_ewt_tagger")
    sentence = read("We use the tagger, <REF>) which labels words quickly.", model)
    assert (sentence.length, sentence.position) == (9, 5)
    assert (sentence.tag_before, sentence.tag_after) == ("NN", "WDT")
    edge = read("<REF> labels words <REF>".removesuffix(" <REF>"), model)
    assert edge.tag_before is None
    assert read("<REF> labels words.", model).position == read("<REF> labels words.").position


@pytest.mark.shared
def test_counting_and_tagging_see_the_same_words(shared: Path) -> None:
    from citerec.contexts.read import read_contexts

    contexts = list(read_contexts(shared / "acm" / "contexts-dev.jsonl"))[:200]
    model = str(shared.parent / "models" / "en_ewt_tagger")
    counted, tagged = read_sentences(contexts), read_sentences(contexts, model)
    assert [(s.length, s.position) for s in counted] == [(s.length, s.position) for s in tagged]


def test_a_missing_model_is_an_error_that_says_how_to_get_one() -> None:
    with pytest.raises(InputError, match=r"spaCy model no_such_model cannot be loaded.*python -m spacy download"):
        read("A <REF>.", "no_such_model")


def test_a_model_that_does_not_tag_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="does not tag"):
        read("A <REF>.", str(tmp_path / "blank"))


def test_whether_a_model_is_installed_is_told_without_loading_it(tmp_path: Path) -> None:
    loaded = "spacy" in sys.modules
    assert is_installed(str(tmp_path))
    assert is_installed("json")
    assert not is_installed("no_such_model")
    assert not is_installed("no/such/folder")
    assert ("spacy" in sys.modules) == loaded
