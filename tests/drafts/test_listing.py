"""Papers of the author's own bibliography come first among those that are shown."""

from pathlib import Path

from citerec.drafts.bibliography import Bibliography
from citerec.drafts.files import Files
from citerec.drafts.filling import FITTING, listed
from citerec.records import Answer, Context, Hit, Paper

BIB = Path("refs.bib")
ENTRIES = """
@misc{third, title = {Trees that vote}, year = {2001}}
@misc{preprint, title = {Networks with memory}, author = {Ada Lovelace}, year = {2017}}
@misc{unseen, title = {Something else}, year = {1990}}
"""
PUBLISHED = Paper("2", "Networks with memory that lasts", year=2019)
HITS = (
    Hit(1, 9.0, Paper("1", "Weights of terms", year=2000)),
    Hit(2, 8.0, PUBLISHED, also=(Paper("20", "Networks with memory", authors=("Ada Lovelace",), year=2017),)),
    Hit(3, 7.0, Paper("3", "Trees that vote", year=2001)),
    Hit(4, 6.0, Paper("4", "Frogs", year=2001)),
)
CONTEXT = Context(text="Networks that remember <REF>.")


def test_own_papers_come_first_each_with_its_rank_and_nothing_is_lost() -> None:
    own = Bibliography([BIB], Files(texts={BIB: ENTRIES}, disk=False))
    shown = listed(Answer(CONTEXT, HITS), own)
    assert [one.key for one in shown] == ["preprint", "third", None, None]
    assert [one.hit.rank for one in shown] == [2, 3, 1, 4]
    assert [one.comes_first for one in shown] == [True, True, False, False]
    assert [one.paper.paper_id for one in shown] == ["20", "3", "1", "4"]  # the edition that the bibliography has
    unchanged = listed(Answer(CONTEXT, HITS), own, own_first=False)
    assert [(one.hit, one.key) for one in unchanged] == list(zip(HITS, (None, "preprint", "third", None), strict=True))
    low = Hit(FITTING + 1, 1.0, HITS[2].paper)  # the system ranks it low: it keeps its place
    shown = listed(Answer(CONTEXT, (*HITS[:1], low)), own)
    assert [(one.key, one.comes_first) for one in shown] == [(None, False), ("third", False)]
