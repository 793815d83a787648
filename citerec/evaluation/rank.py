"""From topics and the answers of a system to the ranks of the cited papers: leak rules, order, cut."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from citerec.contexts.leaks import LeakRules
from citerec.contexts.topic import Topic, topics_of
from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.records import Context

if TYPE_CHECKING:
    import pandas as pd

Years = Mapping[str, int | None]
YearsOf = Callable[[Iterable[str]], Years]
"""Gives the years of the papers with these ids that are in the pool."""

NOT_FOUND = 0
OUTCOMES = ("found", "ranked badly", "not retrieved", "newer than the citing paper", "not in the index")
"""The outcomes of a cited paper: among the first ten, ranked after them, or not found for one of three reasons."""
FOUND_UNTIL = 10


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of an evaluation, in order.

    Attributes:
        topics: The topics.
        numbers: Number of each topic by the id of its context; -1 for contexts of the same file that are not evaluated,
            so that a run over the whole file can be read.
        clusters: Number of the citing paper of each topic.
    """

    topics: tuple[Topic, ...]
    numbers: Mapping[str, int]
    clusters: npt.NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        numbers: dict[tuple[str, str], int] = {}
        clusters = []
        for topic in self.topics:
            one = replace(topic.context, citing_id=topic.citing_id)
            kind = next((kind for kind in ("citing_id", "citing_key") if getattr(one, kind)), "context_id")
            clusters.append(numbers.setdefault((kind, getattr(one, kind)), len(numbers)))
        object.__setattr__(self, "clusters", np.array(clusters, np.int32))

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Their contexts."""
        return tuple(topic.context for topic in self.topics)

    def __len__(self) -> int:
        return len(self.topics)


def select_topics(contexts: Sequence[Context], store: PaperStore, left_out: Collection[str] = frozenset()) -> Topics:
    """The topics of contexts, except those left out by id.

    Raises:
        InputError: No context is left.
    """
    chosen = [context for context in contexts if context.context_id not in left_out]
    if not chosen:
        raise InputError("there is no context", "Give at least one, or the name of a diagnostic set.")
    numbers = dict.fromkeys((context.context_id for context in contexts), -1)
    numbers.update((context.context_id, number) for number, context in enumerate(chosen))
    return Topics(tuple(topics_of(chosen, store)), numbers)


@dataclass(frozen=True, slots=True)
class Rules(LeakRules):
    """The leak rules, and what counts.

    Attributes:
        missing: How contexts count if none of their cited papers is in the index: as "zero", or "skip".
    """

    missing: str = "zero"


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


def rank(hits: "pd.DataFrame", topics: Topics, rules: Rules, k: int) -> "tuple[pd.DataFrame, dict[str, int]]":
    """Applies the rules to hits, and ranks them by score and paper id.

    Returns:
        The first k of each topic, with their `rank` from 1; how many hits broke each rule.
    """
    codes, paper_ids = hits["paper"].cat.codes.to_numpy(np.int32), list(hits["paper"].cat.categories)
    years = np.zeros(len(paper_ids), np.int32)
    years[codes] = hits["year"]
    broken = rules.breaches(topics.topics, hits["topic"].to_numpy(), codes, paper_ids, years)
    kept = hits[~(broken.citing_paper | broken.newer)]
    kept = kept.sort_values(["topic", "score", "paper"], ascending=[True, False, True])
    kept = kept.assign(rank=kept.groupby("topic").cumcount() + 1)
    return kept[kept["rank"] <= k], {name: int(of_rule.sum()) for name, of_rule in broken._asdict().items()}


def cited_papers(topics: Topics, years: Years, rules: Rules) -> "pd.DataFrame":
    """The cited papers, in order: number of the `topic`, `context`, `paper`, and its `outcome` if it is not found."""
    import pandas as pd

    known = LeakRules(exclude_citing=False, as_of_year=rules.as_of_year)
    _, _, missed, newer, outside = OUTCOMES
    rows = []
    for number, topic in enumerate(topics.topics):
        for paper_id in topic.context.cited_ids:
            outcome = outside
            if paper_id in years:
                outcome = missed if known.permits(topic, paper_id, years[paper_id]) else newer
            rows.append((number, topic.context.context_id, paper_id, outcome))
    return pd.DataFrame(rows, columns=["topic", "context", "paper", "outcome"])


def ranks_of(cited: "pd.DataFrame", ranked: "pd.DataFrame") -> "pd.DataFrame":
    """The cited papers with their ranks among ranked hits, 0 if they are not found, and their outcomes."""
    codes = cited.assign(code=ranked["paper"].cat.categories.get_indexer(cited["paper"]))
    places = ranked.assign(code=ranked["paper"].cat.codes)[["topic", "code", "rank"]]
    ranks = codes.merge(places, how="left", on=["topic", "code"])["rank"].fillna(NOT_FOUND).to_numpy(np.int32)
    found = np.where(ranks <= FOUND_UNTIL, OUTCOMES[0], OUTCOMES[1])
    return cited.assign(rank=ranks, outcome=np.where(ranks == NOT_FOUND, cited["outcome"], found))
