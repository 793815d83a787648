"""LaTeX is decoded part by part, and reads as if it were decoded as a whole."""

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import decoded

PIECES = {
    "word": "word", "é,": "é,", r"na\"ive": "naïve", r"Schr{\"o}dinger": "Schrödinger",
    r"\emph{two words}": "two words", r"\emph {two words}": "two words", r"{\em it is}": "it is", r"\c c": "ç",
    r"\v{S}ime": "Šime", "R&D": "R&D",
    "$x^2 + {y}$": "$x^2 + {y}$", "$$x ~ y$$": "$$x ~ y$$", r"\( a ~ b \)": r"\( a ~ b \)", r"30\%": "30%",
    "30%": "30%", "a~b": "a b", r"R\&D": "R&D", "--": "–", "``quoted words''": "“quoted words”", "{BERT}": "BERT",
    r"{{A} {B}}": "A B", r"\textbackslash{}": "\\",
}  # fmt: skip


@given(st.lists(st.sampled_from(sorted(PIECES)), max_size=8))
def test_parts_are_decoded_as_they_would_be_alone(pieces: list[str]) -> None:
    assert decoded(" ".join(pieces)) == " ".join(PIECES[piece] for piece in pieces)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a { b", "a b"),
        ("a } b~c", "a b c"),
        ("costs $5 and~more", "costs $5 and~more"),  # all after an open $ counts as mathematics
        (r"ends in \emph", "ends in"),
        (r"\begin{it} a~b \end{it} c~d", "a b c d"),
        ("  a \n b  ", "a b"),
        ("", ""),
    ],
)
def test_what_does_not_end(text: str, plain: str) -> None:
    assert decoded(text) == plain
