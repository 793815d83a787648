"""`citerec train fusion`: tunes the weights of a system's retrievers on contexts."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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

_CONSTANTS = range(10, 101, 10)


class Tried(NamedTuple):
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

    def tried(weights: Mapping[str, float], **fusion: object) -> Tried:
        changed = recipe.fusion.model_copy(update=fusion)
        ranks = np.full((len(drawn), max(map(len, cited))), -1, np.int32)
        for own, rows, of_context in zip(ranks, cited, lists, strict=True):
            fused = fuse({name: of_context[name] for name in weights}, weights, changed, depth).rows.tolist()
            own[: len(rows)] = [fused.index(row) + 1 if row in fused else NOT_FOUND for row in rows.tolist()]
        score = float(measure(metrics, ranks, depth).mean())
        return Tried(recipe.model_copy(update={"retrievers": weights, "fusion": changed}), score)

    tenths = (tenths for tenths in itertools.product(range(11), repeat=len(names)) if sum(tenths) == 10)
    grids: dict[str, list[dict[str, Any]]] = {
        "rrf": [{"weights": recipe.retrievers, "k": float(constant)} for constant in _CONSTANTS],
        "weighted": [{"weights": {name: one / 10 for name, one in zip(names, of, strict=True)}} for of in tenths],
    }
    best = []
    for method, grid in grids.items():
        scores = []
        for number, one in enumerate(grid):
            on_progress(f"fusing, {method}", number, len(grid))
            scores.append(tried(**one, method=method))
        best.append(max(reversed(scores), key=lambda one: one.score))  # of equals the last
    return TunedFusion(
        contexts=len(drawn),
        metric=metric,
        # Reciprocal ranks of one list keep its order.
        alone={name: tried({name: 1.0}, method="rrf").score for name in names},
        before=tried(recipe.retrievers),
        tried=tuple(sorted(best, key=lambda one: -one.score)),
        learnt=learnt,
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
