"""What the draft cites already: found again, told apart from what is new, and never a leak."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from citerec import Context, Filters, Recipe, Recommender
from citerec.contexts.topic import LeakRules
from citerec.index.build import BuildOptions, build_index
from citerec.retrieve.draft import DraftRetriever
from tests.conftest import write_lines


def build(folder: Path) -> Path:
    """p6 cites p0 and p1, p7 cites p0 and p2, `late` cites p0 and p3; p0 cites p4."""
    pairs = [("p6", "p0"), ("p6", "p1"), ("p7", "p0"), ("p7", "p2"), ("late", "p0"), ("late", "p3"), ("p0", "p4")]
    citances = [
        {"text": f"As was shown <REF> {number}.", "citing_id": citing, "cited_ids": [cited]}
        for number, (citing, cited) in enumerate(pairs)
    ]
    papers = [{"paper_id": f"p{one}", "title": f"Paper number {one}", "year": 2000 + one} for one in range(8)]
    papers.append({"paper_id": "late", "title": "Later work", "year": 2015})
    options = BuildOptions(citances=(write_lines(folder / "citances.jsonl", citances),))
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index", options)
    return folder / "index"


def test_mentions_cocitation_and_coupling_know_nothing_newer_and_not_the_citing_paper(tmp_path: Path) -> None:
    with Recommender.open(build(tmp_path), Recipe(retrievers={"words": 1.0, "draft": 0.5})) as opened:
        (retriever,) = [one for one in opened.retrievers if isinstance(one, DraftRetriever)]

        def signals(before: str, names: str, **citing: Any) -> dict[str, list[float]]:
            (topic,) = opened.topics([Context(text="As <REF>", cited_before=tuple(before.split()), **citing)])
            rows = opened.index.rows.rows(names.split())
            values = retriever.signals(topic, rows, LeakRules().restrict(topic))
            return {name: column.tolist() for name, column in values.items()}

        mentions = signals("p1 p2 p1 unknown p3", "p1 p2 p3 p4")
        assert mentions["draft_times"] == [2, 1, 1, 0]
        np.testing.assert_equal(mentions["draft_ago"], [2, 3, 1, np.nan])
        assert signals("p0", "p1 p2 p3 p4 p6")["draft_cocited"] == [1, 1, 1, 0, 0]
        assert signals("p0", "p1 p2 p3 p4 p6")["draft_coupled"] == [0, 0, 0, 0, 1]
        assert signals("p0", "p1 p2 p3", citing_year=2008)["draft_cocited"] == [1, 1, 0]
        assert signals("p0", "p1 p2 p3", citing_year=2006)["draft_cocited"] == [1, 0, 0]
        assert signals("p0", "p1 p2", citing_id="p6", citing_year=2009)["draft_cocited"] == [0, 1]


def test_what_the_draft_cites_comes_first_if_the_sentence_fits_as_well(tmp_path: Path) -> None:
    context = Context(text="paper number <REF>", cited_before=("p3",))
    with Recommender.open(build(tmp_path), Recipe(retrievers={"words": 1.0})) as words:
        without = [hit.paper.paper_id for hit in words.search(context, 5)]
    with Recommender.open(tmp_path / "index", Recipe(retrievers={"words": 1.0, "draft": 0.5})) as opened:
        assert without[0] != opened.search(context, 3)[0].paper.paper_id == "p3"
        assert "p3" not in [hit.paper.paper_id for hit in opened.search(context, 8, Filters(year_to=2002))]
        assert "cited in the draft" in [one.name for one in opened.search(context, 1, explain=True)[0].reasons]
        for before in (None, (), ("unknown",)):
            hits = opened.search(replace(context, cited_before=before), 5)
            assert [hit.paper.paper_id for hit in hits] == without
