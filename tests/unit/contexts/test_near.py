from collections.abc import Callable

import pytest

from citerec.contexts.near import cites_others, names_before, words_near
from citerec.contexts.read import contexts_of_text
from citerec.contexts.topic import Topic, topic_of
from citerec.records import Context
from tests.growth import assert_linear


def near(text: str) -> list[str]:
    return [words_near(topic_of(context)) for context in contexts_of_text(text)]


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
    assert near(text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Amento et al. <REF> found it.", {"amento"}),
        ("It was tried by De Lima and Pedersen <REF>.", {"lima", "pedersen"}),
        ("However, Smith, J. Kim and K. O'Brien (<REF>) say so.", {"smith", "kim", "o'brien"}),
        ("Moshfeghi and colleagues <REF> measured it.", {"moshfeghi"}),
        ("as van den Berg's <REF> method", {"berg"}),
        ("Smith et al. say that trees <REF> help.", set()),
        ("LambdaMART <REF> and BM25 <REF>.", set()),
        ("While <REF> is old.", set()),
        ("Smith", set()),
    ],
)
def test_names_right_before_the_marker_are_found(text: str, names: set[str]) -> None:
    assert names_before(topic_of(contexts_of_text(text)[0])) == names


@pytest.mark.parametrize("function", [words_near, names_before, cites_others])
@pytest.mark.parametrize("unit", ["Aa, ", "[1", "(A ", " ,", "A. ", "van "])
def test_no_text_makes_it_backtrack(unit: str, function: Callable[[Topic], object]) -> None:
    assert_linear(lambda text: function(topic_of(Context(text=text))), lambda times: unit * times + "<REF>", 5_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A [3] and B <REF>.", True),
        ("A […] and B <REF>.", True),
        ("A (Kim, 2001) and B <REF>.", True),
        ("Kim (2001) and B <REF>.", True),
        ("A , and B <REF>.", True),
        ("A, and B <REF>, and C (or D).", False),
        ("It ends <REF> .", False),
    ],
)
def test_other_citations_of_the_sentence_are_seen(text: str, expected: bool) -> None:
    assert cites_others(topic_of(Context(text=text))) is expected
