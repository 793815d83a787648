"""Runs: read from files, refused with the line that is wrong, ordered, cleaned of what leaks."""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest

from citerec.contexts.topic import LeakRules, Topic, topic_of
from citerec.errors import InputError
from citerec.evaluation.metrics import OUTCOMES, cited_papers, hits_of, rank, ranks_of
from citerec.evaluation.systems import pooled
from citerec.records import Context
from citerec.retrieve.run import Run

YEARS: dict[str, int | None] = {"p1": 2000, "p2": 2010, "p3": None, "p10": 1990, "citing": 2005}


def years_of(paper_ids: Iterable[str]) -> dict[str, int | None]:
    return {paper_id: YEARS[paper_id] for paper_id in paper_ids if paper_id in YEARS}


def read(path: Path, text: str | bytes) -> pd.DataFrame:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return pooled(Run.from_trec(path), TOPICS, ("a", "b", "unasked"), years_of)


def rows(hits: pd.DataFrame) -> list[tuple[int, str, float]]:
    return list(hits[["topic", "paper", "score"]].itertuples(index=False, name=None))


def gold(hits: pd.DataFrame, of: LeakRules, k: int) -> list[int]:
    """The ranks of the papers cited by the topics."""
    ranks: list[int] = ranks_of(cited_papers(TOPICS, YEARS, of), rank(hits, TOPICS, of, k)[0])["rank"].tolist()
    return ranks


GOOD = "a Q0 p1 1 3.5 mine\na Q0 p2 2 2.5 mine\nb Q0 p3 1 1e-3 mine\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "a Q0 p9 3 1 mine\n", "line 4: the paper 'p9' is not in the index"),
        (GOOD + "c Q0 p1 3 1 mine\n", "line 4: there is no context 'c'"),
        (GOOD + "a Q0 p1 3 1 mine\n", "line 4: context a and paper p1 are already in line 1"),
        (GOOD + "a Q0 p3 3 nan mine\n", "line 4: the score 'nan' is not a number"),
        (GOOD + "a Q0 p3 3 1\n", "line 4: 5 columns where 6 should be"),
        (GOOD + "a Q0 p3 3 1 my run\n", "line 4: 7 columns where 6 should be"),
        (GOOD.encode() + b"a Q0 p\xff 3 1 mine\n", "line 4: not UTF-8"),
        ("\n \n", "is empty"),
    ],
)
def test_a_bad_run_is_refused_with_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path / "run.trec", text)
    with pytest.raises(InputError, match="cannot read"):
        Run.from_trec(tmp_path / "none.trec")


def topics(*contexts: Context) -> list[Topic]:
    return list(map(topic_of, contexts))


TOPICS = topics(
    Context(text="A <REF>", context_id="a", citing_id="citing", citing_year=2005, cited_ids=("p1", "p2", "gone")),
    Context(text="B <REF>", context_id="b", cited_ids=("p3",)),
)


def collected(*answers: list[tuple[str, float]]) -> pd.DataFrame:
    return hits_of(answers, years_of, "mine")


def test_ties_break_by_paper_id_as_text_and_the_order_of_lines_does_not_matter() -> None:
    rules, hits = LeakRules(as_of_year=False), collected([("p2", 1), ("p10", 1), ("p1", 1), ("p3", 2)], [("p2", 5)])
    for shift in range(len(hits)):
        ranked, _ = rank(pd.concat([hits[shift:], hits[:shift]]), TOPICS, rules, 10)
        assert [paper for _, paper, _ in rows(ranked)] == ["p3", "p1", "p10", "p2", "p2"]
        assert ranked["rank"].tolist() == [1, 2, 3, 4, 1]
    assert gold(hits, rules, 10) == [2, 4, 0, 0]


def test_what_leaks_is_removed_and_counted() -> None:
    hits = collected([("citing", 9), ("p2", 8), ("p1", 7), ("p3", 6)], [("p2", 1), ("p3", 0.5)])
    fair, removed = rank(hits, TOPICS, LeakRules(), 10)
    assert rows(fair) == [(0, "p1", 7), (0, "p3", 6), (1, "p2", 1), (1, "p3", 0.5)]
    assert removed == {"citing_paper": 1, "newer": 1}
    assert gold(hits, LeakRules(), 10) == [1, 0, 0, 2]
    assert rank(hits, TOPICS, LeakRules(as_of_year=False), 10)[1] == {"citing_paper": 1, "newer": 0}
    all_of_it, removed = rank(hits, TOPICS, LeakRules(exclude_citing=False, as_of_year=False), 10)
    assert (removed, len(all_of_it)) == ({"citing_paper": 0, "newer": 0}, 6)
    # What was removed makes room among the first k.
    assert gold(collected([("citing", 9), ("p2", 8), ("p1", 7)], []), LeakRules(), 1) == [1, 0, 0, 0]


def test_what_became_of_cited_papers() -> None:
    many = [(f"p{number}", -float(number)) for number in range(1, 13)]
    years: dict[str, int | None] = {f"p{number}": 2000 for number in range(1, 20)} | {"late": 2010}
    asked = topics(
        Context(text="A <REF>", context_id="a", citing_year=2005, cited_ids=("p1", "p12", "p19", "late", "gone"))
    )
    hits = hits_of([many], lambda ids: {paper_id: years[paper_id] for paper_id in ids}, "mine")
    ranked, _ = rank(hits, asked, LeakRules(), 100)
    found = ranks_of(cited_papers(asked, years, LeakRules()), ranked)["outcome"].tolist()
    assert found == list(OUTCOMES)
    assert found == ["found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index"]


def test_an_answer_of_a_system_is_checked_too() -> None:
    for answer, message in (
        ([("p1", 1.0), ("p1", 2.0)], "gives a paper twice"),
        ([("p9", 1.0)], "gives the paper 'p9', which is not in the index"),
        ([("p1", float("nan"))], "a score that is not a number"),
    ):
        with pytest.raises(InputError, match=message):
            hits_of([answer], years_of, "mine")
    assert len(hits_of([[], []], years_of, "mine")) == 0
