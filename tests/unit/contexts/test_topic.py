"""What a topic takes from a sentence: its words, what stands near the marker, the keys that it cites."""

import html
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.read import contexts_of_text
from citerec.contexts.topic import Topic, clean, names_before, topic_of
from citerec.records import MARKER, Context
from citerec.retrieve.words import cites_others, words_near
from tests.growth import assert_linear

STAYS = """an array [i, j] stays
a year (in 2005) stays
an aside (Rocchio expansion on TREC 2004 runs) stays
an aside (Figure two) stays
it costs $5 here and $10 there
p < 0.05 and q > 3"""


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("as <REF> showed <REF>.", "as showed ."),
        ("known [3], [4-6] and [12, 14; 15]", "known , and"),
        ("TnT (Brants, 2000), and (see Lee et al., 1997a; Kim 2001)", "TnT , and"),
        ("by (Lin and van Dyke, 2001; cited again 2004) too", "by too"),
        (r"shown~\citep[see][p. 3]{lee:97,kim01} by \emph{many}", "shown by {many}"),
        (r"the loss $x^2 + y$ and \(a\) fall", "the loss and fall"),
        ("H<sub>2</sub>O &amp; <jats:italic>E. coli</jats:italic>", "H 2 O & E. coli"),
        ("code at https://example.org/a?b=c here", "code at here"),
        *((line, line) for line in STAYS.splitlines()),
    ],
)
def test_what_is_no_word_of_the_sentence_goes(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(alphabet="ab ([<$\\{,;1-9)]>}%&.", max_size=300))
def test_cleaning_only_takes_away(text: str) -> None:
    assert all(word in html.unescape(text) for word in clean(text + MARKER).split())


def test_neighbours_take_part_by_option() -> None:
    context = Context(text="As [3] and <REF> showed.", before="First [1].", after="Last.")
    assert topic_of(context) == Topic("As and showed.", "First . Last.", context=context)
    assert topic_of(context, neighbours=False) == Topic("As and showed.", "", context=context)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Such as BM25 <REF>, LexRank <REF> and naive Bayes <REF>.", ["Such as BM25", "LexRank", "and naive Bayes"]),
        ("the corpus (Garside et al. , 1987), the Penn Treebank <REF>, others", ["the Penn Treebank"]),
        ("As in [3, 4] or in trees <REF>, this holds.", ["or in trees"]),
        ("Some use response ranking , item recommendation <REF>, and more.", ["item recommendation"]),
        ("<REF> propose a tree-to-string model, which is new.", ["propose a tree-to-string model"]),
        ("We train with AdaGrad, <REF>.", ["We train with AdaGrad"]),
        (" ".join(f"w{n}" for n in range(30)) + " <REF> here.", [" ".join(f"w{n}" for n in range(18, 30))]),
        ("<REF>", [""]),
        ("no marker", [""]),
    ],
)
def test_each_marker_has_its_own_part_of_the_sentence(text: str, expected: list[str]) -> None:
    assert [words_near(topic_of(context)) for context in contexts_of_text(text)] == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Amento et al. <REF> found it.", "amento"),
        ("It was tried by De Lima and Pedersen <REF>.", "lima pedersen"),
        ("However, Smith, J. Kim and K. O'Brien (<REF>) say so.", "smith kim o'brien"),
        ("Moshfeghi and colleagues <REF> measured it.", "moshfeghi"),
        ("as van den Berg's <REF> method", "berg"),
        ("Smith et al. say that trees <REF> help.", ""),
        ("LambdaMART <REF> and BM25 <REF>.", ""),
        ("While <REF> is old.", ""),
        ("Smith", ""),
    ],
)
def test_names_right_before_the_marker_are_found(text: str, names: str) -> None:
    assert names_before(topic_of(contexts_of_text(text)[0])) == set(names.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A […] and B <REF>.", True),
        ("A (Kim, 2001) and B <REF>.", True),
        ("A , and B <REF>.", True),
        ("A, and B <REF>, and C (or D).", False),
    ],
)
def test_other_citations_of_the_sentence_are_seen(text: str, expected: bool) -> None:
    assert cites_others(topic_of(Context(text=text))) is expected


@pytest.mark.parametrize("function", [words_near, names_before, cites_others, lambda topic: clean(topic.context.text)])
@pytest.mark.parametrize("unit", ["(A", "[1,", "$", "<a ", r"\cite{", "(Aa 19", "http://", "\\(", "Aa, ", " ,", "van "])
def test_no_text_makes_it_backtrack(unit: str, function: Callable[[Topic], object]) -> None:
    assert_linear(lambda text: function(topic_of(Context(text=text))), lambda times: unit * times + "<REF>", 5_000)
