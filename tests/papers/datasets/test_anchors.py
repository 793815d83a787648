"""Anchors as CiteBench numbers them."""

import re

from hypothesis import given, strategies as st

from citerec.papers.common.pair_sets import OTHER, positions, unified

CITE = re.compile(r"@cite_\d+")
WORDS = st.lists(st.one_of(st.sampled_from(["so", "they", "say.", "[see"]), st.integers(0, 6).map("@cite_{}".format)))


def test_numbers_go_up_with_each_new_paper_and_stay() -> None:
    text, order = unified(
        "After @cite_12 and @cite_3, @cite_1 agrees with @cite_12.", CITE, positions(["@cite_1", "@cite_3", "@cite_12"])
    )
    assert text == "After [0] and [1], [2] agrees with [0]."
    assert order == [2, 1, 0]


def test_what_is_not_in_the_input_is_marked_and_what_is_not_mentioned_comes_last() -> None:
    text, order = unified("@cite_9 differs from @cite_2.", CITE, positions(["@cite_1", "@cite_2", "@cite_3"]))
    assert text == f"{OTHER} differs from [0]."
    assert order == [1, 0, 2]


@given(WORDS, st.lists(st.integers(0, 5), unique=True))
def test_every_anchor_still_leads_to_its_paper(words: list[str], papers: list[int]) -> None:
    names = [f"@cite_{paper}" for paper in papers]
    text, order = unified(" ".join(words), CITE, positions(names))
    assert sorted(order) == list(range(len(papers)))  # each paper once, none lost

    written = re.findall(r"\[(\d+)\]|(#OTHEREFR)", text)
    cited = [word for word in words if CITE.fullmatch(word)]
    assert [OTHER if other else names[order[int(number)]] for number, other in written] == [
        name if name in names else OTHER for name in cited
    ]
    first_mentions = list(dict.fromkeys(int(number) for number, _ in written if number))
    assert first_mentions == list(range(len(first_mentions)))
    assert CITE.sub("@", " ".join(words)) == re.sub(r"\[\d+\]|#OTHEREFR", "@", text)  # the rest of the text stays
