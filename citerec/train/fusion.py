"""`citerec train fusion`: tunes the weights of a system's retrievers on contexts."""

import contextlib
import functools
import heapq
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.contexts.learnt import LEARNT, NOTHING, Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import SettingsError
from citerec.evaluation.metrics import parse_metrics
from citerec.groundwork.hashing import hash_sample
from citerec.groundwork.progress import Progress, no_progress
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.systems import Recipe, learnt_by_system
from citerec.train.groups import PROGRESS_EVERY, tell

_NO_PAPER = "\0"


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
    """Tunes the weights of the lists and the constant of reciprocal rank fusion by ranx's grid search.

    The lists are searched once, under the leak rules. Feedback (`fusion.feedback`) is left out.

    Args:
        contexts: A file of contexts with cited papers.
        index: An index that has what the system needs.
        system: A system of several retrievers; its rerankers are left out.
        metric: A metric of ranx, such as `recall@100` or `mrr@10`.
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
    parse_metrics(metric, recipe.fusion.depth)
    drawn = heapq.nsmallest(
        limit, read_contexts(contexts, cited=True), key=lambda one: hash_sample(seed, one.context_id)
    )
    runs = []
    for name in names:
        advance = functools.partial(tell, on_progress, f"searching, {name}", len(drawn))
        runs.append(_list(index, drawn, recipe.model_copy(update={"retrievers": {name: 1.0}}), advance))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's, from code that ranx compiles
        from ranx import Qrels, Run, evaluate, fuse, optimize_fusion

        qrels = Qrels({str(place): dict.fromkeys(context.cited_ids, 1) for place, context in enumerate(drawn)})
        lists = [Run(run) for run in runs]

        def reached(run: Run) -> float:
            return float(evaluate(qrels, run, metric))

        def tried(recipe: Recipe) -> Tried:
            if recipe.fusion.method == "rrf":
                fused = fuse(runs=lists, norm=None, method="rrf", params={"k": recipe.fusion.k})
            else:
                weights = {"weights": tuple(recipe.retrievers.values())}
                fused = fuse(runs=lists, norm="min-max", method="wsum", params=weights)
            return Tried(recipe, reached(fused))

        with contextlib.redirect_stdout(io.StringIO()):  # ranx always prints progress bars there
            constant = optimize_fusion(qrels, lists, norm=None, method="rrf", metric=metric)["k"]
            weights = optimize_fusion(qrels, lists, norm="min-max", method="wsum", metric=metric)["weights"]
        by_rank = recipe.fusion.model_copy(update={"method": "rrf", "k": float(constant)})
        by_score = dict(zip(names, map(float, weights), strict=True))
        best = [
            tried(recipe.model_copy(update={"fusion": by_rank})),
            tried(recipe.model_copy(update={"retrievers": by_score})),
        ]
        return TunedFusion(
            contexts=len(drawn),
            metric=metric,
            alone={name: reached(run) for name, run in zip(names, lists, strict=True)},
            before=tried(recipe),
            tried=tuple(sorted(best, key=lambda one: -one.score)),
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


def _list(
    index: Path, contexts: Sequence[Context], recipe: Recipe, advance: Callable[[int], None]
) -> dict[str, dict[str, float]]:
    """The hits of one retriever, for ranx, which needs a hit for each context: hence the dummy paper."""
    found = {}
    with Recommender.open(index, recipe) as recommender:
        k = min(recipe.fusion.depth, recommender.manifest.counts.papers)
        for place, (_, candidates) in enumerate(recommender.candidates(recommender.topics(contexts), k)):
            scores = {candidate.paper_id: candidate.score for candidate in candidates}
            found[str(place)] = scores or {_NO_PAPER: 0.0}
            if place % PROGRESS_EVERY == 0:
                advance(place)
    return found
