"""`citerec train fusion`: how much the lists of words and of vectors weigh, found on contexts."""

import contextlib
import functools
import heapq
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.evaluation.metrics import parse_metrics
from citerec.groundwork.hashing import hash_sample
from citerec.groundwork.progress import Progress
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.settings import Fusion, RetrievalSettings, find_recipe
from citerec.train.groups import PROGRESS_EVERY, tell

_LISTS = ("lucene", "dense")
_NO_PAPER = "\0"


@dataclass(frozen=True, slots=True)
class Tried:
    """A way of fusing, and what it reached.

    Attributes:
        fusion: As settings have it.
        score: The metric over the contexts.
    """

    fusion: Fusion
    score: float


@dataclass(frozen=True, slots=True)
class TunedFusion:
    """What tuning found.

    Attributes:
        contexts: How many contexts it was found on.
        metric: By what.
        alone: What each list reaches on its own, by its name.
        before: What the weights of the recipe `hybrid` reach, without its feedback.
        tried: Weighted sums and reciprocal ranks, each with its best parameters; the best first.
    """

    contexts: int
    metric: str
    alone: dict[str, float]
    before: Tried
    tried: tuple[Tried, ...]


def tune_fusion(
    contexts: Path, index: Path, *, metric: str = "recall@100", limit: int = 1000, seed: int = 0, on_progress: Progress
) -> TunedFusion:
    """Looks for the weights of the lists and for the constant of reciprocal rank fusion: ranx, by grid.

    The lists are searched once, under the leak rules. Feedback (`fusion.feedback`) is left out.

    Args:
        contexts: A file of contexts with cited papers.
        index: An index with vectors.
        metric: A metric of ranx, such as `recall@100` or `mrr@10`.
        limit: How many contexts at most.
        seed: Of those drawn.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read.
        InputError: A line is no context with cited papers, or there is no such metric.
        SettingsError: The index has no vectors.
    """
    settings = RetrievalSettings.load(find_recipe("hybrid"))
    parse_metrics(metric, settings.fusion.depth)
    drawn = heapq.nsmallest(
        limit, read_contexts(contexts, cited=True), key=lambda one: hash_sample(seed, one.context_id)
    )
    runs = []
    for name in _LISTS:
        advance = functools.partial(tell, on_progress, f"searching, {name}", len(drawn))
        runs.append(_list(index, drawn, settings.model_copy(update={"retrievers": (name,)}), advance))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's, of what ranx compiles
        from ranx import Qrels, Run, evaluate, fuse, optimize_fusion

        qrels = Qrels({str(place): dict.fromkeys(context.cited_ids, 1) for place, context in enumerate(drawn)})
        lists = [Run(run) for run in runs]

        def reached(run: Run) -> float:
            return float(evaluate(qrels, run, metric))

        def tried(fusion: Fusion) -> Tried:
            if fusion.method == "rrf":
                return Tried(fusion, reached(fuse(runs=lists, norm=None, method="rrf", params={"k": fusion.k})))
            weights = {"weights": (fusion.lucene, fusion.dense)}
            return Tried(fusion, reached(fuse(runs=lists, norm="min-max", method="wsum", params=weights)))

        with contextlib.redirect_stdout(io.StringIO()):  # ranx draws bars there, whoever reads it
            constant = optimize_fusion(qrels, lists, norm=None, method="rrf", metric=metric)["k"]
            weights = optimize_fusion(qrels, lists, norm="min-max", method="wsum", metric=metric)["weights"]
        before = settings.fusion
        best = [
            tried(before.model_copy(update={"method": "rrf", "k": float(constant)})),
            tried(before.model_copy(update=dict(zip(("lucene", "dense"), map(float, weights), strict=True)))),
        ]
        return TunedFusion(
            contexts=len(drawn),
            metric=metric,
            alone={name: reached(run) for name, run in zip(_LISTS, lists, strict=True)},
            before=tried(before),
            tried=tuple(sorted(best, key=lambda one: -one.score)),
        )


def write_recipe(tuned: TunedFusion, path: Path) -> None:
    """Writes the best that was found as a recipe, for `--system FILE`.

    Raises:
        InputError: Nothing can be written there.
    """
    best = tuned.tried[0].fusion
    hybrid = RetrievalSettings.load(find_recipe("hybrid"))
    lines = [f"# Fused as {tuned.contexts} contexts want it, by {tuned.metric}: {tuned.tried[0].score:.4f}."]
    lines += [
        f'retrievers = ["{hybrid.retrievers[0]}", "{hybrid.retrievers[1]}"]',
        f"citing_title = {hybrid.citing_title:g}",
    ]
    if best.method == "rrf":
        lines += ["", "[fusion]", 'method = "rrf"', f"k = {best.k:g}"]
    else:
        lines += ["", "[fusion]", f"lucene = {best.lucene:g}", f"dense = {best.dense:g}"]
    lines += [f"feedback = {hybrid.fusion.feedback}", f"feedback_weight = {hybrid.fusion.feedback_weight:g}"]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}", "Name another file.") from error


def _list(
    index: Path, contexts: Sequence[Context], settings: RetrievalSettings, advance: Callable[[int], None]
) -> dict[str, dict[str, float]]:
    """What one retriever finds, for ranx: it takes no context without a hit, hence the paper that is none."""
    found = {}
    with Recommender.open(index, settings) as recommender:
        k = min(settings.fusion.depth, recommender.manifest.counts.papers)
        for place, (_, candidates) in enumerate(recommender.recommend_many(contexts, k)):
            scores = {candidate.paper_id: candidate.score for candidate in candidates}
            found[str(place)] = scores or {_NO_PAPER: 0.0}
            if place % PROGRESS_EVERY == 0:
                advance(place)
    return found
