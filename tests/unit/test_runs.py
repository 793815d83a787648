"""Runs: read from files, refused with the line that is wrong, ordered, cleaned of what leaks."""

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.topic import topic_of
from citerec.errors import InputError
from citerec.evaluation.rank import OUTCOMES, PooledRun, Rules, Topics, outcomes, rank
from citerec.evaluation.systems import pooled
from citerec.records import Context
from citerec.retrieve.run import Run

YEARS: dict[str, int | None] = {"p1": 2000, "p2": 2010, "p3": None, "p10": 1990, "citing": 2005}


def years_of(paper_ids: Iterable[str]) -> dict[str, int | None]:
    return {paper_id: YEARS[paper_id] for paper_id in paper_ids if paper_id in YEARS}


def read(path: Path, text: str | bytes) -> PooledRun:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return pooled(Run.from_trec(path), TOPICS, years_of)


def rows(run: PooledRun) -> list[tuple[int, str, float]]:
    papers = [run.paper_ids[paper] for paper in run.papers]
    return list(zip(run.contexts.tolist(), papers, run.scores.tolist(), strict=True))


GOOD = "a Q0 p1 1 3.5 mine\na Q0 p2 2 2.5 mine\nb Q0 p3 1 1e-3 mine\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(" ", "\t"),
        GOOD.replace(" ", "  "),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD.rstrip("\n"),
        GOOD + "unasked Q0 p1 1 1 mine\n",
        GOOD.replace("Q0 p1 1", "0 p1 17"),
        gzip.compress(GOOD.encode()),
    ],
    ids=["spaces", "tabs", "wide", "crlf", "blank lines", "no last newline", "unasked", "odd ranks", "gzip"],
)
def test_runs_as_people_write_them(tmp_path: Path, text: str | bytes) -> None:
    assert rows(read(tmp_path / "run.trec", text)) == [(0, "p1", 3.5), (0, "p2", 2.5), (1, "p3", 0.001)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "a Q0 p9 3 1 mine\n", "line 4: the paper 'p9' is not in the index"),
        (GOOD + "c Q0 p1 3 1 mine\n", "line 4: there is no context 'c'"),
        (GOOD + "a Q0 p1 3 1 mine\n", "line 4: context a and paper p1 are already in line 1"),
        (GOOD + "a Q0 p3 3 nan mine\n", "line 4: the score 'nan' is not a number"),
        (GOOD + "a Q0 p3 3 inf mine\n", "line 4: the score 'inf' is not a number"),
        (GOOD + "a Q0 p3 3 high mine\n", "line 4: the score 'high' is not a number"),
        (GOOD + "a Q0 p3 3 1\n", "line 4: 5 columns where 6 should be"),
        (GOOD + "a Q0 p3 3 1 my run\n", "line 4: 7 columns where 6 should be"),
        (GOOD.encode() + b"a Q0 p\xff 3 1 mine\n", "line 4: not UTF-8"),
        ("", "is empty"),
        ("\n \n", "is empty"),
    ],
)
def test_a_bad_run_is_refused_with_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path / "run.trec", text)


def test_a_missing_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        Run.from_trec(tmp_path / "none.trec")


def topics(*contexts: Context) -> Topics:
    numbers = {context.context_id: number for number, context in enumerate(contexts)}
    return Topics(tuple(map(topic_of, contexts)), {**numbers, "unasked": -1})


TOPICS = topics(
    Context(text="A <REF>", context_id="a", citing_id="citing", citing_year=2005, cited_ids=("p1", "p2", "gone")),
    Context(text="B <REF>", context_id="b", cited_ids=("p3",)),
)


def collected(*answers: list[tuple[str, float]]) -> PooledRun:
    return PooledRun.of(answers, years_of, "mine")


def test_ties_break_by_paper_id_as_text() -> None:
    run = collected([("p2", 1), ("p10", 1), ("p1", 1), ("p3", 2)], [])
    ranking = rank(run, TOPICS, Rules(as_of_year=False), 10)
    assert [paper for _, paper, _ in rows(ranking.run)] == ["p3", "p1", "p10", "p2"]
    assert ranking.gold.tolist() == [[2, 4, 0], [0, -1, -1]]


def test_what_leaks_is_removed_and_counted() -> None:
    run = collected([("citing", 9), ("p2", 8), ("p1", 7), ("p3", 6)], [("p2", 1), ("p3", 0.5)])
    fair = rank(run, TOPICS, Rules(), 10)
    assert rows(fair.run) == [(0, "p1", 7), (0, "p3", 6), (1, "p2", 1), (1, "p3", 0.5)]
    assert fair.removed == (1, 1)
    assert fair.gold[0].tolist() == [1, 0, 0]
    newer_too = rank(run, TOPICS, Rules(as_of_year=False), 10)
    assert newer_too.removed == (1, 0)
    all_of_it = rank(run, TOPICS, Rules(exclude_citing=False, as_of_year=False), 10)
    assert (all_of_it.removed, len(all_of_it.run)) == ((0, 0), 6)


def test_only_the_first_k_count_and_what_was_removed_makes_room() -> None:
    run = collected([("citing", 9), ("p2", 8), ("p1", 7)], [])
    assert rank(run, TOPICS, Rules(), 1).gold[0].tolist() == [1, 0, 0]


def test_order_of_the_lines_does_not_matter() -> None:
    lines = [(0, 0, 1.0), (1, 1, 5.0), (0, 2, 3.0), (1, 0, 5.0), (0, 1, 2.0)]
    ids = ("p1", "p2", "p3")
    years = np.array([0, 0, 0], np.int32)
    for shift in range(len(lines)):
        turned = lines[shift:] + lines[:shift]
        contexts, papers, scores = (np.array(column) for column in zip(*turned, strict=True))
        run = PooledRun(contexts.astype(np.int32), papers.astype(np.int32), scores, ids, years)
        assert rows(rank(run, TOPICS, Rules(), 10).run) == [
            (0, "p3", 3), (0, "p2", 2), (0, "p1", 1), (1, "p1", 5), (1, "p2", 5),
        ]  # fmt: skip


def test_what_became_of_cited_papers() -> None:
    many = [(f"p{number}", -float(number)) for number in range(1, 13)]
    years: dict[str, int | None] = {f"p{number}": 2000 for number in range(1, 20)} | {"late": 2010}
    asked = topics(
        Context(text="A <REF>", context_id="a", citing_year=2005, cited_ids=("p1", "p12", "p19", "late", "gone"))
    )
    run = PooledRun.of([many], lambda ids: {paper_id: years[paper_id] for paper_id in ids}, "mine")
    ranking = rank(run, asked, Rules(), 100)
    found = [OUTCOMES[number] for number in outcomes(ranking, asked, years, Rules())[0]]
    assert found == ["found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index"]


def test_an_answer_of_a_system_is_checked_too() -> None:
    for answers, message in [
        ([[("p1", 1.0), ("p1", 2.0)]], "gives a paper twice"),
        ([[("p9", 1.0)]], "gives the paper 'p9', which is not in the index"),
        ([[("p1", float("nan"))]], "a score that is not a number"),
    ]:
        with pytest.raises(InputError, match=message):
            PooledRun.of(answers, years_of, "mine")
    assert len(PooledRun.of([[], []], years_of, "mine")) == 0
