"""`citerec train fusion`: tunes the weights of a system's retrievers on contexts."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from citerec.contexts.learnt import LEARNT, Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import SettingsError
from citerec.evaluation.metrics import measure, parse_metrics
from citerec.evaluation.rank import NOT_FOUND
from citerec.files.progress import Progress, no_progress
from citerec.recommend import Recommender
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.fusion import fuse
from citerec.systems import Recipe
from citerec.train.groups import Choice


@dataclass(frozen=True, slots=True)
class TunedFusion:
    """The result of tuning.

    Attributes:
        contexts: How many contexts were tried.
        metric: The metric.
        alone: The score of each list on its own, by name.
        before: The score of the system's own fusion, without its feedback.
        score: The score of the best fusion.
        recipe: The system with it.
        learnt: The contexts, and what the parts of the lists learnt from.
    """

    contexts: int
    metric: str
    alone: dict[str, float]
    before: float
    score: float
    recipe: Recipe
    learnt: Learnt


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
    """Tunes the weights of the lists by a grid search: all weights in tenths whose sum is 1.

    The lists are searched once, under the leak rules. Feedback (`fusion.feedback`) is left out.

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
    if len(names := tuple(recipe.retrievers)) < 2:
        raise SettingsError(f"{system} searches one list: there is nothing to fuse", "Name another: --system hybrid")
    depth = recipe.fusion.depth
    metrics = parse_metrics([metric], depth)
    drawn = Choice(contexts, seed=seed).draw(limit, read_contexts(contexts, cited=True))
    lists: list[dict[str, Candidates]] = [{} for _ in drawn]
    with Recommender.open(index, recipe) as whole:
        cited = [whole.index.rows.rows(context.cited_ids) for context in drawn]
        k = min(depth, whole.manifest.counts.papers)
        for retriever in whole.retrievers:
            alone = Recommender(whole.index, {retriever.name: retriever})
            for number, (_, candidates) in enumerate(alone.candidates(alone.topics(drawn), k)):
                lists[number][retriever.name] = Candidates(candidates.papers, candidates.rows, candidates.scores)
                on_progress(f"searching, {retriever.name}", number, len(drawn))
        learnt = Learnt.of(tuned_on=drawn) | whole.learnt

    def score(changed: Recipe) -> float:
        ranks = np.full((len(drawn), max(map(len, cited))), -1, np.int32)
        for own, rows, of_context in zip(ranks, cited, lists, strict=True):
            fused_lists = {name: of_context[name] for name in changed.retrievers}
            fused = fuse(fused_lists, changed.retrievers, changed.fusion, depth).rows.tolist()
            own[: len(rows)] = [fused.index(row) + 1 if row in fused else NOT_FOUND for row in rows.tolist()]
        return float(measure(metrics, ranks, depth).mean())

    weighted = recipe.fusion.model_copy(update={"method": "weighted"})
    grid = [
        recipe.model_copy(update={"retrievers": dict(zip(names, weights, strict=True)), "fusion": weighted})
        for weights in itertools.product([tenth / 10 for tenth in range(11)], repeat=len(names))
        if round(sum(weights), 1) == 1
    ]
    scores = []
    for number, one in enumerate(grid):
        on_progress("fusing", number, len(grid))
        scores.append(score(one))
    best, place = max((value, place) for place, value in enumerate(scores))  # of equals the last
    of_lists = {name: score(recipe.model_copy(update={"retrievers": {name: 1.0}})) for name in names}
    return TunedFusion(len(drawn), metric, of_lists, score(recipe), best, grid[place], learnt)


def write_recipe(tuned: TunedFusion, path: Path) -> None:
    """Writes the best fusion as a recipe, for `--system FILE`, and beside it the digests of its contexts.

    Raises:
        InputError: The file cannot be written.
    """
    digests = path.with_name(f"{path.stem}.{LEARNT}")
    recipe = tuned.recipe.model_copy(update={"tuned_on": digests.name})
    recipe.write(path, f"Tuned on {tuned.contexts} contexts by {tuned.metric}: {tuned.score:.4f}.")
    tuned.learnt.write(digests)
