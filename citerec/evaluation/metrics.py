"""Metrics in ranx's grammar, `recall@10`, and how right stated probabilities are; from ranks of the cited papers.

The ranks come from topics and the answers of a system: leak rules, order, cut. ranx itself is not used: its import
takes three seconds and its first call on a machine compiles for twenty, and from ranks each metric is a line. Tests
compare all of them with ranx, and most with trec_eval.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.contexts.topic import LeakRules, Topic
from citerec.errors import InputError
from citerec.files.text import names_in
from citerec.records import EVENTS, FIRST

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_METRICS = ("recall@10", "mrr@10", "ndcg@10")

Floats = npt.NDArray[np.float64]


class _GoldRanks:
    """The ranks of the cited papers of some contexts, as metrics with a cutoff see them.

    Attributes:
        ranks: Ascending, (contexts, papers); infinite where a paper is not among the first `cutoff` hits.
        hits: How many are, (contexts,).
        relevant: How many papers are cited, (contexts,).
    """

    def __init__(self, gold: npt.NDArray[np.int32], cutoff: int) -> None:
        self.cutoff = cutoff
        self.ranks = np.sort(np.where((gold > 0) & (gold <= cutoff), gold, np.inf), axis=1)
        self.hits = np.isfinite(self.ranks).sum(axis=1)
        self.relevant = np.maximum(1, (gold >= 0).sum(axis=1))


def _dcg(gold: _GoldRanks) -> Floats:
    return np.asarray((1 / np.log2(gold.ranks + 1)).sum(axis=1))


def _ideal_dcg(gold: _GoldRanks) -> Floats:
    gains = np.cumsum(1 / np.log2(np.arange(gold.ranks.shape[1]) + 2))
    return np.asarray(gains[np.minimum(gold.relevant, gold.cutoff) - 1])


MEASURES: Mapping[str, Callable[[_GoldRanks], Floats]] = {
    "recall": lambda gold: gold.hits / gold.relevant,
    "mrr": lambda gold: 1 / gold.ranks[:, 0],
    "ndcg": lambda gold: _dcg(gold) / _ideal_dcg(gold),
    # Precision at the rank of each cited paper; 0 at one that is not found.
    "map": lambda gold: (np.arange(1, gold.ranks.shape[1] + 1) / gold.ranks).sum(axis=1) / gold.relevant,
    "hit_rate": lambda gold: gold.hits > 0,
    "precision": lambda gold: gold.hits / gold.cutoff,
    "r-precision": lambda gold: (gold.ranks <= gold.relevant[:, None]).sum(axis=1) / gold.relevant,
    "f1": lambda gold: 2 * gold.hits / (gold.cutoff + gold.relevant),
    "hits": lambda gold: gold.hits,
    "dcg": _dcg,
}
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9-]*(?:_[a-z]+)*)(?:[@_]([1-9][0-9]{0,8}))?")
# Names of trec_eval, and of ranx.
_ALIASES = {
    "P": "precision",
    "recip_rank": "mrr",
    "ndcg_cut": "ndcg",
    "map_cut": "map",
    "Rprec": "r-precision",
    "success": "hit_rate",
}


class Metric(NamedTuple):
    """A measure with its cutoff; 0 for none."""

    name: str
    measure: str
    cutoff: int


def parse_metrics(names: str | Sequence[str], k: int) -> tuple[Metric, ...]:
    """Metrics by name, such as "recall@10", a list or a string with commas, of the first k hits; repeats are left out.

    Raises:
        InputError: A metric is unknown, or its cutoff is above k.
    """
    if isinstance(names, str):
        names = names_in(names)
    if not names:
        raise InputError("there is no metric", f"Name some: --metrics {','.join(DEFAULT_METRICS)}")
    metrics = []
    for name in names:
        parsed = _NAME.fullmatch(name)
        measure, cutoff = (_ALIASES.get(parsed[1], parsed[1]), int(parsed[2] or 0)) if parsed else ("", 0)
        if measure not in MEASURES:
            remedy = f"Metrics are: {', '.join(MEASURES)}, with a cutoff such as @10."
            raise InputError(f"there is no metric {name!r}", remedy)
        if cutoff and measure == "r-precision":
            raise InputError(f"{measure} has no cutoff", f"Write {measure}")
        if cutoff > k:
            raise InputError(f"{name} looks at {cutoff:,} hits, and {k:,} are retrieved", f"Ask for more: -k {cutoff}")
        metrics.append(Metric(f"{measure}@{cutoff}" if cutoff else measure, measure, cutoff))
    return tuple(dict.fromkeys(metrics))


def measure(metrics: Sequence[Metric], gold: npt.NDArray[np.int32], k: int) -> Floats:
    """Scores, contexts × metrics, by the ranks of the cited papers in the first k hits (`Ranking.gold`)."""
    of_cutoff = {cutoff: _GoldRanks(gold, cutoff or k) for cutoff in {metric.cutoff for metric in metrics}}
    return np.stack([MEASURES[one.measure](of_cutoff[one.cutoff]) for one in metrics], axis=1).astype(np.float64)


BINS = 10


class Reliability(NamedTuple):
    """How well stated probabilities fit what was right.

    Attributes:
        n: Number of answers.
        stated: Mean probability.
        right: Share of answers that are right.
        ece: Expected calibration error (Naeini et al., AAAI 2015), ten bins of equal width:
            `Σ_bin n_bin / n · |right_bin − stated_bin|`.
        brier: Mean squared difference between probability and outcome (Brier, 1950).
    """

    n: int
    stated: float
    right: float
    ece: float
    brier: float


def reliability(probabilities: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> Reliability:
    """The reliability of at least one probability, (answers,), given which answers are right, (answers,)."""
    of_bin = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    sums = [np.bincount(of_bin, values, BINS) for values in (probabilities, right)]
    return Reliability(
        n=len(probabilities),
        stated=float(probabilities.mean()),
        right=float(right.mean()),
        ece=float(np.abs(sums[0] - sums[1]).sum() / len(probabilities)),
        brier=float(np.square(probabilities - right).mean()),
    )


def reliabilities(confidence: "pd.DataFrame", ranks: "pd.DataFrame", k: int) -> dict[str, Reliability]:
    """The reliability of a system by event; no event that k hits cannot show, and none if nothing was stated.

    Args:
        confidence: The confidence in answers: `context`, and a column for each event.
        ranks: The ranks of the cited papers: `context`, `rank`.
        k: How many hits were looked at.
    """
    best = confidence["context"].map(ranks[ranks["rank"] != NOT_FOUND].groupby("context")["rank"].min())
    return {
        event: reliability(confidence[event].to_numpy(np.float64), (best <= last).to_numpy())
        for event, last in zip(EVENTS, (1, FIRST), strict=True)
        if len(confidence) and last <= k
    }


Years = Mapping[str, int | None]
YearsOf = Callable[[Iterable[str]], Years]
"""Gives the years of the papers with these ids that are in the pool."""

NOT_FOUND = 0
OUTCOMES = ("found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index")
"""The outcomes of a cited paper: among the first ten, ranked after them, or not found for one of three reasons."""
FOUND_UNTIL = 10


def hits_of(answers: Iterable[Sequence[tuple[str, float]]], years_of: YearsOf, name: str) -> "pd.DataFrame":
    """The hits of a system: its answers, paper ids with their scores, for each topic in order.

    Returns:
        A row for each hit: `topic`, its number; `paper`, in the order of ids; `score`; `year`, 0 where it is unknown.

    Raises:
        InputError: A paper is not in the pool, comes twice in an answer, or its score is not a number.
    """
    import pandas as pd

    rows = [(topic, *hit) for topic, answer in enumerate(answers) for hit in answer]
    hits = pd.DataFrame(rows, columns=["topic", "paper", "score"]).astype({"topic": np.int32, "score": np.float64})
    if hits.duplicated(["topic", "paper"]).any():
        raise InputError(f"{name} gives a paper twice for one context", "Give each paper once, with its best score.")
    years = years_of(hits["paper"].unique())
    if unknown := next((paper_id for paper_id in hits["paper"] if paper_id not in years), None):
        raise InputError(f"{name} gives the paper {unknown!r}, which is not in the index", "Give ids of the index.")
    if not np.isfinite(hits["score"]).all():
        raise InputError(f"{name} gives a score that is not a number", "Give finite scores.")
    papers = pd.Categorical(hits["paper"], sorted(hits["paper"].unique()), ordered=True)
    return hits.assign(paper=papers, year=np.array([years[paper_id] or 0 for paper_id in hits["paper"]], np.int32))


def rank(
    hits: "pd.DataFrame", topics: Sequence[Topic], rules: LeakRules, k: int
) -> "tuple[pd.DataFrame, dict[str, int]]":
    """Applies the rules to hits, and ranks them by score and paper id.

    Returns:
        The first k of each topic, with their `rank` from 1; how many hits broke each rule.
    """
    papers = hits["paper"].cat
    years = hits.groupby("paper", observed=False)["year"].first().to_numpy(np.int32)
    broken = rules.breaches(
        topics, hits["topic"].to_numpy(), papers.codes.to_numpy(np.int32), list(papers.categories), years
    )
    kept = hits[~(broken.citing_paper | broken.newer)]
    kept = kept.sort_values(["topic", "score", "paper"], ascending=[True, False, True])
    kept = kept.assign(rank=kept.groupby("topic").cumcount() + 1)
    return kept[kept["rank"] <= k], {name: int(of_rule.sum()) for name, of_rule in broken._asdict().items()}


def cited_papers(topics: Sequence[Topic], years: Years, rules: LeakRules) -> "pd.DataFrame":
    """The cited papers, in order: number of the `topic`, `context`, `paper`, and its `outcome` if it is not found."""
    import pandas as pd

    _, _, missed, newer, outside = OUTCOMES
    rows = []
    for number, topic in enumerate(topics):
        latest = rules.restrict(topic).as_of_year
        for paper_id in topic.context.cited_ids:
            outcome = outside
            if paper_id in years:
                outcome = missed if latest is None or (years[paper_id] or 0) <= latest else newer
            rows.append((number, topic.context.context_id, paper_id, outcome))
    return pd.DataFrame(rows, columns=["topic", "context", "paper", "outcome"])


def ranks_of(cited: "pd.DataFrame", ranked: "pd.DataFrame") -> "pd.DataFrame":
    """The cited papers with their ranks among ranked hits, 0 if they are not found, and their outcomes."""
    places = ranked[["topic", "paper", "rank"]].astype({"paper": object})
    joined = cited[["topic", "paper"]].merge(places, how="left", on=["topic", "paper"])
    ranks = joined["rank"].fillna(NOT_FOUND).to_numpy(np.int32)
    outcomes = np.where(ranks <= FOUND_UNTIL, OUTCOMES[0], OUTCOMES[1])
    return cited.assign(rank=ranks, outcome=np.where(ranks == NOT_FOUND, cited["outcome"], outcomes))
