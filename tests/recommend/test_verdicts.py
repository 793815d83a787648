"""Verdicts: how sure the default system is of each paper, by the calibration that comes with citerec."""

from pathlib import Path

import pytest

from citerec.recommend import Recommender
from citerec.records import Context
from tests.conftest import Citerec

CLEAR = "The Transformer of Vaswani et al. <REF> uses attention alone."
NO_MEANING = "Qwertz uiopas dfghjk lyxcvb <REF>."
FOREIGN = "The bishop lent the abbey forty shillings for sheep and candles <REF>."


@pytest.fixture(scope="module")
def demo(hybrid_index: Path) -> Recommender:
    return Recommender.open(hybrid_index)


def test_each_paper_has_a_verdict_that_does_not_depend_on_how_many_are_asked_for(demo: Recommender) -> None:
    answer = demo.search(CLEAR, 20)
    assert answer[0].paper.title == "Attention Is All You Need" and answer[0].verdict == "sure"
    assert {hit.verdict for hit in answer[1:]} <= {"likely", "weak"} and not answer.nothing_fits
    assert {hit.verdict for hit in answer[10:]} == {"weak"}
    for k in (1, 5, 200):
        assert demo.search(CLEAR, k).confidence == answer.confidence
        assert [hit.verdict for hit in demo.search(CLEAR, k)][:20] == [hit.verdict for hit in answer][:k]


@pytest.mark.parametrize("text", [NO_MEANING, FOREIGN])
def test_where_nothing_fits_it_says_so(demo: Recommender, text: str) -> None:
    answer = demo.search(text, explain=True)
    assert answer.nothing_fits and len(answer) == 10 and {hit.verdict for hit in answer} == {"weak"}
    assert answer.to_json()["nothing_fits"] is True


def test_without_the_cited_paper_it_is_less_sure(demo: Recommender, hybrid_index: Path) -> None:
    answer = demo.search(CLEAR)
    assert answer.confidence is not None
    context = Context(text=CLEAR, citing_id=answer[0].paper.paper_id)  # the citing paper is no answer
    without = demo.search(context).confidence
    assert without is not None and without.first < answer.confidence.first and without.fits < answer.confidence.fits


@pytest.mark.parametrize(("system", "settings"), [("hybrid", ()), ("bm25", ()), ("hybrid+ltr", ("ltr.depth=50",))])
def test_other_systems_and_settings_have_no_verdicts(
    hybrid_index: Path, system: str, settings: tuple[str, ...]
) -> None:
    from citerec.systems import Recipe

    with Recommender.open(hybrid_index, Recipe.load(system, list(settings))) as recommender:
        answer = recommender.search(CLEAR)
    assert answer.confidence is None and answer[0].verdict is None and "verdict" not in answer.to_json()["hits"][0]


def test_the_table_has_verdicts_in_place_of_scores(hybrid_index: Path, citerec_here: Citerec) -> None:
    ask = ("recommend", CLEAR, "--index", hybrid_index, "-k", 2)
    plain, scores = citerec_here(*ask).stdout, citerec_here(*ask, "--scores", "--explain").stdout
    assert "sure" in plain and "score" not in plain and "The first is right with " in plain
    assert "score" in scores and "lifted by: " in scores and "why: its words (" in scores
    assert "lifted by" not in citerec_here(*ask, "--explain").stdout
    nothing = citerec_here("recommend", NO_MEANING, "--index", hybrid_index).stdout
    assert "Nothing in this index seems to fit." in nothing and "is right with" not in nothing
    for form in ("trec", "bibtex"):
        assert citerec_here("recommend", NO_MEANING, "--index", hybrid_index, "--format", form).stdout
