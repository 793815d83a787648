"""What the linear tagger sees: forms of citations, not their names, and what stands about them."""

from hypothesis import given, strategies as st

from citerec.discourse.linear import BLOCKS, describe


def tokens(paragraph: list[str]) -> list[dict[str, list[str]]]:
    """The tokens of each sentence, by block."""
    return [{name: tokens_of(sentence) for name, (tokens_of, _) in BLOCKS.items()} for sentence in describe(paragraph)]


PARAGRAPH = ["We follow Lee et al. ( 2005 ) closely .", "It parses (Kim, 2003; Wu, 2004).", "So it does."]


def test_citations_are_seen_by_their_form() -> None:
    first, second, third = tokens(PARAGRAPH)
    assert {"-1follow", "1closely", "^we follow cite:text"} <= set(first["surroundings"])
    assert "we use cite:text" in first["cues"]
    assert "cite:paren+" in second["cues"]
    assert not any("cite:" in token for token in third["cues"])
    # The names are in the words, for those who cite the same paper for the same reason.
    assert "lee" in first["words"]
    assert not any("lee" in token for token in first["surroundings"])


def test_a_sentence_knows_its_neighbours() -> None:
    first, second, third = tokens(PARAGRAPH)
    assert "firstTrue" in first["place"] and "lastTrue" in third["place"]
    assert "-1citations1" in second["place"] and "-1citations1" in third["place"]
    assert "since-none" in first["place"]
    assert "since group2" in third["place"]
    (alone,) = tokens(PARAGRAPH[1:2])
    assert alone["place"] != second["place"]
    assert all(alone[block] == second[block] for block in BLOCKS if block != "place")


def test_spaces_before_punctuation_change_nothing() -> None:
    (tight,), (wide,) = (tokens([text]) for text in ("As (Lee, 2005) say.", "As ( Lee , 2005 ) say ."))
    assert tight == wide


@given(st.lists(st.text(), max_size=4))
def test_any_text_can_be_described(paragraph: list[str]) -> None:
    described = tokens(paragraph)
    assert len(described) == len(paragraph)
    assert all(all(isinstance(token, str) for token in one) for blocks in described for one in blocks.values())
