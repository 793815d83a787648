import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.contexts.topic import Topic, clean, topic_of
from citerec.records import MARKER, Context
from tests.growth import assert_linear


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("as <REF> showed <REF>.", "as showed ."),
        ("known [3], [4-6] and [12, 14; 15]", "known , and"),
        ("an array [i, j] stays", "an array [i, j] stays"),
        ("TnT (Brants, 2000), and (see Lee et al., 1997a; Kim 2001)", "TnT , and"),
        ("a year (in 2005) stays", "a year (in 2005) stays"),
        (
            "an aside (Rocchio expansion on TREC 2004 runs) stays",
            "an aside (Rocchio expansion on TREC 2004 runs) stays",
        ),
        ("by (Lin and van Dyke, 2001; cited again 2004) too", "by too"),
        ("it costs $5 here and $10 there", "it costs $5 here and $10 there"),
        ("an aside (Figure two) stays", "an aside (Figure two) stays"),
        (r"shown~\citep[see][p. 3]{lee:97,kim01} by \emph{many}", "shown by {many}"),
        (r"the loss $x^2 + y$ and \(a\) fall", "the loss and fall"),
        ("H<sub>2</sub>O &amp; <jats:italic>E. coli</jats:italic>", "H 2 O & E. coli"),
        ("p < 0.05 and q > 3", "p < 0.05 and q > 3"),
        ("code at https://example.org/a?b=c here", "code at here"),
    ],
)
def test_what_is_no_word_of_the_sentence_goes(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_neighbours_take_part_by_option() -> None:
    context = Context(text="The middle <REF>.", before="First [1].", after="Last.")
    assert topic_of(context) == Topic("The middle .", "First . Last.", context=context)
    assert topic_of(context, neighbours=False) == Topic("The middle .", "", context=context)


@given(st.text(alphabet="ab ([<$\\{,;1-9)]>}%&.", max_size=300))
def test_cleaning_only_takes_away(text: str) -> None:
    for word in clean(text + MARKER).split():
        assert word in html.unescape(text)


@pytest.mark.parametrize("unit", ["(A", "[1,", "$", "<a ", r"\cite{", "(Aa 19", "http://", "\\("])
def test_no_text_makes_cleaning_backtrack(unit: str) -> None:
    assert_linear(clean, lambda times: unit * times, 20_000)


def test_a_writer_goes_on_from_what_stands_before_the_marker() -> None:
    context = Context(text="As [3] and <REF> showed.", before="Before.", after="After.")
    assert topic_of(context).lead == "Before. As and"
    assert topic_of(context, neighbours=False).lead == "As and"
    assert topic_of(Context(text="<REF> showed it.")).lead == "showed it."
    assert topic_of(Context(text="No marker")).lead == Topic("No marker").lead == "No marker"
