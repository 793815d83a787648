"""What a model wrote is looked at sentence by sentence: what it cites, and whether that was given to it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from citerec.generate.check import marked, traced
from citerec.texts.anchors import cited_in
from citerec.texts.tasks import Sentence, Source, TextTask

TASK = TextTask(
    "t",
    (
        Source("We propose graph kernels that compare molecules quickly.", "11", "Graph kernels"),
        Source("Neural machine translation with attention reaches new scores.", "12", "Attention"),
    ),
)


def sentence(text: str) -> Sentence:
    (only,) = traced(TASK, text, "model").sentences
    return only


def test_a_sentence_was_drawn_from_what_it_cites() -> None:
    assert sentence("Graph kernels compare molecules [0].") == Sentence("Graph kernels compare molecules [0].", (0,))
    both = sentence("Graph kernels [0] and machine translation with attention [1] are known.")
    assert (both.drawn_from, both.unsupported) == ((0, 1), ())


def test_a_citation_of_what_was_not_given_is_flagged() -> None:
    wrong = sentence("Graph kernels compare molecules [0, 7].")
    assert (wrong.drawn_from, wrong.unknown) == ((0,), ("[7]",))
    assert marked(wrong.text, TASK.sources) == "Graph kernels compare molecules [0, ?7]."
    named = sentence("Kernels <cite> W99 <sep> Some title </cite> compare molecules.")
    assert named.unknown == ("W99",)
    assert marked(named.text, TASK.sources) == "Kernels [?W99] compare molecules."


def test_a_citation_of_a_paper_that_says_nothing_of_it_is_flagged() -> None:
    assert sentence("Protein folding was solved by deep learning [0].").unsupported == (0,)


def test_a_sentence_that_cites_nothing_is_traced_by_its_words() -> None:
    assert sentence("Kernels compare molecules quickly.").drawn_from == (0,)
    assert sentence("Attention reaches new scores.").drawn_from == (1,)
    assert sentence("Protein folding was solved.").drawn_from == ()


@given(st.text(st.sampled_from("ab [],0127.-"), max_size=40))
def test_what_is_marked_is_what_is_unknown(text: str) -> None:
    shown = marked(text, TASK.sources)
    assert {f"[{number}]" for number in re.findall(r"\?(\d+)", shown)} == set(cited_in(text, TASK.sources).outside)
    assert all(number < 2 for one in traced(TASK, text, "model").sentences for number in one.drawn_from)
