"""The model of sentences that need a citation."""

from citerec.discourse.worthiness import Placed, Sentence, is_sentence, shipped

PARAGRAPH = [
    Sentence("Lakes are deep.", cites=True),
    Sentence("Roe et al. showed that ACM lakes are deeper than 300 other ones.", cites=False),
    Sentence("We agree.", cites=False),
]


def test_the_model_that_comes_with_citerec_knows_no_pieces_of_text() -> None:
    assert is_sentence(PARAGRAPH[1].text)
    assert not is_sentence("Lakes are deep.") and not is_sentence("a list of many words that does not end")
    model = shipped()
    likely = model.probabilities([Placed(PARAGRAPH, at, "Related Work") for at in range(3)])
    assert likely[1] >= model.threshold > likely[2]
