import pytest
from hypothesis import example, given, strategies as st

from citerec.corpus.reading import decoded, escaped, plain
from citerec.files.text import one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Research &amp; Development", "Research & Development"),
        ("AT&T and R&D; more", "AT&T and R&D; more"),
        ("H<sub>2</sub>O in <i>Vis-\\`{a}-Vis</i> tasks", "H2O in Vis-à-Vis tasks"),
        ("<jats:p>One.</jats:p><jats:p>Two.</jats:p>", "One. Two."),
        ("How the <b> tag is used", "How the <b> tag is used"),
        ("&lt;b&gt;bold&lt;/b&gt;", "<b>bold</b>"),
        ("The <C,A>,T Framework for n<4", "The <C,A>,T Framework for n<4"),
        ("Nystr\\\"{o}m & P\\'olya &amp; $\\alpha$-stable", "Nyström & Pólya & $\\alpha$-stable"),
        ("A $\\mathcal{N}=4$ theory and $a<i>b</i>$", "A $\\mathcal{N}=4$ theory and $a<i>b</i>$"),
        ("<math><mi>x</mi></math>", "<math><mi>x</mi></math>"),
        ("{bs,hr,sr}WaC at 50% ~ now", "{bs,hr,sr}WaC at 50% ~ now"),
        ("a\x1b  b", "a b"),
    ],
)
def test_text_is_shown_as_text(text: str, shown: str) -> None:
    assert plain(text) == shown


PIECES = st.sampled_from(
    ["&amp;", "&lt;", "&#38;", "<i>", "</i>", "<br>", "<p ", ">", "\\alpha", "\\", "$", "{", "}", " ", "a", "é", "amp;"]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join))
@example("$<i>\\x</i>$ \\y <b>z</b> &amp;lt;")
def test_what_is_escaped_is_read_back(text: str) -> None:
    assert plain(escaped(text)) == one_line(text)


def test_a_command_without_its_arguments_stays() -> None:
    for text in (r"Trees \textcolor", r"Trees \"\href", r"Trees \footnote"):
        assert plain(text) == text


def test_what_does_not_end() -> None:
    texts = {"a { b": "a b", "a } b~c": "a b c", r"ends in \emph": "ends in", "  a \n b  ": "a b", "": ""}
    texts |= {r"\begin{it} a~b \end{it} c~d": "a b c d"}
    texts |= {"costs $5 and~more": "costs $5 and~more"}  # all after an open $ counts as mathematics
    assert {text: decoded(text) for text in texts} == texts
