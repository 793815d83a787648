"""Runs: refused with the line that is wrong, ordered, and what became of the cited papers."""

import re
from pathlib import Path

import pandas as pd
import pytest

from citerec.contexts.topic import LeakRules, topic_of
from citerec.errors import InputError
from citerec.evaluation.metrics import OUTCOMES, cited_papers, hits_of, rank, ranks_of
from citerec.records import Context
from citerec.retrieve.run import Run

GOOD = b"a Q0 p1 1 3.5 mine\na Q0 p2 2 2.5 mine\nb Q0 p3 1 1e-3 mine\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + b"a Q0 p1 3 1 mine\n", "line 4: context a and paper p1 are already in line 1"),
        (GOOD + b"a Q0 p3 3 nan mine\n", "line 4: the score 'nan' is not a number"),
        (GOOD + b"a Q0 p3 3 1\n", "line 4: 5 columns where 6 should be"),
        (GOOD + b"a Q0 p\xff 3 1 mine\n", "line 4: not UTF-8"),
        (b"\n \n", "is empty"),
    ],
)
def test_a_bad_run_is_refused_with_its_line(tmp_path: Path, text: bytes, message: str) -> None:
    (path := tmp_path / "run.trec").write_bytes(text)
    with pytest.raises(InputError, match=re.escape(message)):
        Run.from_trec(path)


def test_ties_break_by_paper_id_as_text_and_the_order_of_lines_does_not_matter() -> None:
    topics = [topic_of(Context(text="A <REF>", context_id=name)) for name in "ab"]
    answers = [[("p2", 1.0), ("p10", 1.0), ("p1", 1.0), ("p3", 2.0)], [("p2", 5.0)]]
    hits = hits_of(answers, lambda ids: dict.fromkeys(ids, 2000), "mine")
    for shift in range(len(hits)):
        ranked, _ = rank(pd.concat([hits[shift:], hits[:shift]]), topics, LeakRules(), 10)
        assert ranked["paper"].tolist() == ["p3", "p1", "p10", "p2", "p2"]
        assert ranked["rank"].tolist() == [1, 2, 3, 4, 1]


def test_what_became_of_cited_papers() -> None:
    many = [("late", 1.0), *((f"p{number}", -float(number)) for number in range(1, 13))]
    years: dict[str, int | None] = {f"p{number}": 2000 for number in range(1, 20)} | {"late": 2010}
    cited = ("p1", "p12", "p19", "late", "gone")
    asked = [topic_of(Context(text="A <REF>", context_id="a", citing_year=2005, cited_ids=cited))]
    hits = hits_of([many], lambda ids: {paper_id: years[paper_id] for paper_id in ids}, "mine")
    ranked, _ = rank(hits, asked, LeakRules(), 12)
    assert ranked["paper"].tolist() == [f"p{number}" for number in range(1, 13)]  # what is left out makes room
    found = ranks_of(cited_papers(asked, years, LeakRules()), ranked)["outcome"].tolist()
    assert found == list(OUTCOMES)
    assert found == ["found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index"]
