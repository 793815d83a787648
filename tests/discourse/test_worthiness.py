"""The model of sentences that need a citation: what it sees, and what it says of itself."""

from citerec.discourse.worthiness import BLOCKS, Placed, Sentence, is_sentence, shipped

PARAGRAPH = [
    Sentence("Lakes are deep.", cites=True),
    Sentence("Roe et al. showed that ACM lakes are deeper than 300 other ones.", cites=False),
    Sentence("We agree.", cites=False),
]


def test_what_it_sees_of_a_sentence() -> None:
    (words_of, _), (place_of, _) = BLOCKS["words"], BLOCKS["place"]
    place = place_of(Placed(PARAGRAPH, 1, "2 Related Work"))
    assert {"section related work", "before True", "after False", "near 1", "has others", "has acronym"} <= set(place)
    assert "first" not in place and "0 other" in words_of(Placed(PARAGRAPH, 1, None))
    assert {"first", "section other", "before None"} <= set(place_of(Placed(PARAGRAPH, 0, None)))
    assert {"has own", "section introduction"} <= set(place_of(Placed(PARAGRAPH, 2, "Introduction")))


def test_pieces_of_text_are_no_sentences() -> None:
    assert is_sentence(PARAGRAPH[1].text)
    assert not is_sentence("Lakes are deep.") and not is_sentence("a list of many words that does not end")


def test_the_model_that_comes_with_citerec() -> None:
    model = shipped()
    likely = model.probabilities([Placed(PARAGRAPH, at, "Related Work") for at in range(3)])
    assert likely[1] >= model.threshold > likely[2]
    assert model.manifest["held_out"]["all"]["precision"] >= 0.8
