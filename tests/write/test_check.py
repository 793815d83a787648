"""What a model wrote is looked at sentence by sentence: what it cites, and whether that was given to it."""

import pytest
from hypothesis import given, strategies as st

from citerec.write.anchors import marked, traced
from citerec.write.tasks import Prediction, Sentence, Source, TextTask

TASK = TextTask(
    "t",
    (
        Source(
            "We propose graph kernels that compare molecules quickly.", "11", "Graph kernels", authors=("Ada Lovelace",)
        ),
        Source("Neural machine translation with attention reaches new scores.", "12", "Attention"),
    ),
)


def sentence(text: str) -> Sentence:
    (only,) = traced(TASK, text, "model").sentences
    return only


def test_a_sentence_was_drawn_from_what_it_cites() -> None:
    assert sentence("Graph kernels compare molecules [0].") == Sentence("Graph kernels compare molecules [0].", (0,))
    both = sentence("Graph kernels [0] and machine translation with attention [1] are known.")
    assert (both.attributions, both.unsupported) == ((0, 1), ())


def shown(text: str) -> str:
    return marked(traced(TASK, text, "model"))


def test_a_citation_of_what_was_not_given_is_flagged() -> None:
    wrong = sentence("Graph kernels compare molecules [0, 7].")
    assert (wrong.attributions, wrong.unknown) == ((0,), ("[7]",))
    assert shown("Graph kernels compare molecules [0, 7].") == "Graph kernels compare molecules [0, ?7]."
    named = "Kernels <cite> W99 <sep> Some title </cite> compare molecules."
    assert sentence(named).unknown == ("W99",)
    assert shown(named) == "Kernels [?W99] compare molecules."


@pytest.mark.parametrize(
    ("cites", "marks"),
    [
        ("(Smith et al., 2017)", "[?Smith et al., 2017]"),
        ("[Smith 2020]", "[?Smith 2020]"),
        ("[@smith2020]", "[?@smith2020]"),
        ("\\cite{smith}", "[?\\cite{smith}]"),
        ("[12345]", "[?12345]"),
        ("[9-3]", "[?9-3]"),
        ("[0 and 7]", "[?0 and 7]"),
        ("【7】", "[?7]"),
        ("[Source 7]", "[?Source 7]"),
        ("<cite> UNK <sep> Made up </cite>", "[?Made up]"),
    ],
)
def test_citations_in_other_styles_are_flagged(cites: str, marks: str) -> None:
    one = sentence(f"Graph kernels compare molecules {cites}.")
    assert one.attributions == ()
    assert len(one.unknown) == 1
    assert shown(f"Graph kernels compare molecules {cites}.") == f"Graph kernels compare molecules {marks}."


def test_a_name_stands_for_the_source_of_its_author() -> None:
    assert sentence("Graph kernels compare molecules (Lovelace, 1843).") == Sentence(
        "Graph kernels compare molecules (Lovelace, 1843).", (0,)
    )
    assert sentence("Weights lie in [0.5, 1] of molecules compared by kernels.").unknown == ()


def test_paragraphs_stay() -> None:
    assert shown("Kernels [0].\n\nAttention [9].") == "Kernels [0].\n\nAttention [?9]."


def test_what_was_taken_over_with_a_number_of_ours_is_marked() -> None:
    prediction = Prediction(TASK, "Trees fall [1].", "lead", (Sentence("Trees fall [1].", (0,), ("[1]",)),))
    assert marked(prediction) == "Trees fall [?1]."


def test_a_citation_of_a_paper_that_says_nothing_of_it_is_flagged() -> None:
    assert sentence("Protein folding was solved by deep learning [0].").unsupported == (0,)


def test_a_sentence_that_cites_nothing_is_traced_by_its_words() -> None:
    assert sentence("Kernels compare molecules quickly.").attributions == (0,)
    assert sentence("Attention reaches new scores.").attributions == (1,)
    assert sentence("Protein folding was solved.").attributions == ()
    assert sentence("It is 42.").attributions == ()


@given(st.text(st.sampled_from("ab [],0127.-"), max_size=40))
def test_what_is_marked_is_what_is_unknown(text: str) -> None:
    prediction = traced(TASK, text, "model")
    assert ("?" in marked(prediction)) == any(one.unknown for one in prediction.sentences)
    assert all(number < 2 for one in prediction.sentences for number in one.attributions)
    assert marked(prediction).replace("[?", "[").replace(" ?", " ").replace(" ", "").count("[") == text.count("[")
