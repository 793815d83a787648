import unicodedata

from hypothesis import given, strategies as st

from citerec.files.text import one_line, printable


@given(st.text())
def test_no_control_character_is_left_and_offsets_stay(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not any(unicodedata.category(character) == "Cc" for character in shown if character not in "\t\n")
    assert all(old == new for old, new in zip(text, shown, strict=True) if unicodedata.category(old) != "Cc")


@given(st.text(st.sampled_from("ab \t\n\x00\x7f\xa0\u2003\u200b\u00ad漢") | st.characters()))
def test_a_text_on_one_line_is_that_of_the_slow_way(text: str) -> None:
    assert one_line(text) == " ".join(printable(text).split())
    assert one_line("  a  b   c ") == one_line("a b c") == "a b c"
    assert printable("a\n\nb\x1b]0;x\x07\x9b31m") == "a\n\nb ]0;x  31m"
