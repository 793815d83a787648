"""`citerec train fusion`: tunes the weights of a system's retrievers on contexts."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from citerec.contexts.learnt import LEARNT, NOTHING, Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import SettingsError
from citerec.evaluation.metrics import measure, parse_metrics
from citerec.evaluation.rank import NOT_FOUND
from citerec.files.hashing import hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.index.candidates import Candidates
from citerec.index.columns import columns_of
from citerec.index.rows import PaperRows
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.retrieve.fusion import fuse
from citerec.systems import Recipe, learnt_by_system
from citerec.train.groups import PROGRESS_EVERY

_CONSTANTS = range(10, 101, 10)


@dataclass(frozen=True, slots=True)
class Tried:
    """A fusion, and its score."""

    recipe: Recipe
    score: float


@dataclass(frozen=True, slots=True)
class TunedFusion:
    """The result of tuning.

    Attributes:
        alone: The score of each list on its own, by name.
        before: The score of the system's own fusion, without its feedback.
        tried: Weighted sums and reciprocal ranks, each with its best parameters; the best first.
        learnt: The contexts, and what the parts of the lists learnt from.
    """

    contexts: int
    metric: str
    alone: dict[str, float]
    before: Tried
    tried: tuple[Tried, ...]
    learnt: Learnt = NOTHING


def tune_fusion(
    contexts: Path,
    index: Path,
    *,
    system: str = "hybrid",
    metric: str = "recall@100",
    limit: int = 1000,
    seed: int = 0,
    on_progress: Progress = no_progress,
) -> TunedFusion:
    """Tunes the weights of the lists and the constant of reciprocal rank fusion by a grid search.

    It tries all weights in tenths whose sum is 1, and the constants 10, 20, … 100. The lists are searched once, under
    the leak rules. Feedback (`fusion.feedback`) is left out.

    Args:
        contexts: A file of contexts with cited papers.
        index: An index that has what the system needs.
        system: A system of several retrievers; its rerankers are left out.
        metric: A metric in ranx's grammar, such as `recall@100` or `mrr@10`; of the first `fusion.depth` hits.
        limit: The largest number of contexts.
        seed: Seed of the sample of contexts.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read.
        InputError: A line is not a context with cited papers, or there is no such metric.
        SettingsError: The system has one list only, or the index lacks what it needs.
    """
    recipe = Recipe.load(system).without_rerankers()
    names = tuple(recipe.retrievers)
    if len(names) < 2:
        raise SettingsError(f"{system} searches one list: there is nothing to fuse", "Name another: --system hybrid")
    depth = recipe.fusion.depth
    metrics = parse_metrics([metric], depth)
    drawn = heapq.nsmallest(
        limit, read_contexts(contexts, cited=True), key=lambda one: hash_sample(seed, one.context_id)
    )
    recipes = [recipe.model_copy(update={"retrievers": {name: 1.0}}) for name in names]
    lists, papers = _as_columns([_list(index, drawn, one, on_progress) for one in recipes])
    cited = [papers.rows(context.cited_ids) for context in drawn]

    def reached(rankings: Iterable[Candidates]) -> float:
        gold = np.full((len(drawn), max(map(len, cited))), -1, np.int32)
        for place, ranking in enumerate(rankings):
            for slot, row in enumerate(cited[place]):
                at = np.flatnonzero(ranking.rows == row)
                gold[place, slot] = at[0] + 1 if len(at) else NOT_FOUND
        return float(measure(metrics, gold, depth).mean())

    def tried(recipe: Recipe) -> Tried:
        each = (dict(zip(names, found, strict=True)) for found in zip(*lists, strict=True))
        return Tried(recipe, reached(fuse(found, recipe.retrievers, recipe.fusion, depth) for found in each))

    def best(grid: Sequence[Recipe]) -> Tried:
        """Of equals the last."""
        scores = []
        for number, one in enumerate(grid):
            on_progress(f"fusing, {one.fusion.method}", number, len(grid))
            scores.append(tried(one))
        return max(reversed(scores), key=lambda one: one.score)

    by_rank = [_with_fusion(recipe, method="rrf", k=float(constant)) for constant in _CONSTANTS]
    by_score = [
        _with_fusion(recipe, method="weighted").model_copy(
            update={"retrievers": dict(zip(names, weights, strict=True))}
        )
        for weights in _weights(len(names))
    ]
    return TunedFusion(
        contexts=len(drawn),
        metric=metric,
        alone={name: reached(alone) for name, alone in zip(names, lists, strict=True)},
        before=tried(recipe),
        tried=tuple(sorted((best(by_rank), best(by_score)), key=lambda one: -one.score)),
        learnt=Learnt.of(tuned_on=drawn) | learnt_by_system(index, recipe),
    )


def write_recipe(tuned: TunedFusion, path: Path) -> None:
    """Writes the best fusion as a recipe, for `--system FILE`, and beside it the digests of its contexts.

    Raises:
        InputError: The file cannot be written.
    """
    best = tuned.tried[0]
    digests = path.with_name(f"{path.stem}.{LEARNT}")
    recipe = best.recipe.model_copy(update={"tuned_on": digests.name})
    recipe.write(path, f"Tuned on {tuned.contexts} contexts by {tuned.metric}: {best.score:.4f}.")
    tuned.learnt.write(digests)


def _with_fusion(recipe: Recipe, **how: object) -> Recipe:
    return recipe.model_copy(update={"fusion": recipe.fusion.model_copy(update=how)})


def _weights(lists: int) -> Iterator[tuple[float, ...]]:
    """All weights in tenths whose sum is 1."""
    for tenths in itertools.product(range(11), repeat=lists):
        if sum(tenths) == 10:
            yield tuple(one / 10 for one in tenths)


def _list(
    index: Path, contexts: Sequence[Context], recipe: Recipe, on_progress: Progress
) -> list[list[tuple[str, float]]]:
    """The hits of one retriever for each context, best first: ids and scores."""
    found = []
    doing = f"searching, {'+'.join(recipe.retrievers)}"
    with Recommender.open(index, recipe) as recommender:
        k = min(recipe.fusion.depth, recommender.manifest.counts.papers)
        for place, (_, candidates) in enumerate(recommender.candidates(recommender.topics(contexts), k)):
            found.append(candidates.pairs())
            if place % PROGRESS_EVERY == 0:
                on_progress(doing, place, len(contexts))
    return found


def _as_columns(lists: Sequence[Sequence[Sequence[tuple[str, float]]]]) -> tuple[list[list[Candidates]], PaperRows]:
    """Lists of hits as rows of all papers that they name, and these papers."""
    named = {paper_id.encode() for found in lists for hits in found for paper_id, _ in hits}
    papers = PaperRows(np.array(sorted(named), "S"), columns_of([]))

    def columns(hits: Sequence[tuple[str, float]]) -> Candidates:
        return Candidates(papers, papers.rows([one for one, _ in hits]), np.array([score for _, score in hits], float))

    return [[columns(hits) for hits in found] for found in lists], papers
