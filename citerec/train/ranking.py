"""Training on the candidates of an index: a ranker (LambdaMART), the weights of a fusion, and the confidence."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.confidence import CALIBRATION, Calibration, Curve, Curves, calibration_folder
from citerec.contexts.provenance import LEARNT, NOTHING, Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, SettingsError
from citerec.evaluation.metrics import NOT_FOUND, measure, parse_metrics, reliability
from citerec.evaluation.record import find_overlap
from citerec.files.hashing import hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import Kind
from citerec.models.loading import MANIFEST
from citerec.recommend import Recommender
from citerec.records import EVENTS, FIRST, Context, citing_name
from citerec.rerank.ltr import FEATURES, GROUPS, MODEL, PORTABLE, FeatureRows, LtrManifest, LtrReranker, started
from citerec.retrieve.base import Candidates
from citerec.retrieve.fusion import fuse
from citerec.settings import Amount, Positive, Share
from citerec.systems import Recipe
from citerec.train.base import write_model
from citerec.train.groups import OWN, Choice, Example, choose, examples_of, own_contexts

RANKER = Kind("learnt ranker", "citerec-ltr", MANIFEST, frozenset({MODEL, MANIFEST, LEARNT}))


@dataclass(frozen=True, slots=True)
class LtrOptions:
    """How to learn: at most `rounds` trees with `leaves` leaves each.

    Attributes:
        system: The system whose candidates are ranked; its rerankers are left out.
        patience: Trees without a better ndcg@10 on dev after which it stops; None never stops.
        start: Weight of the fused score, as a share of the best one, to which the trees add while they learn.
        trust: How much of what they add counts afterwards, above 0 and at most 1: less on a corpus that they do not
            know.
        portable: Whether it learns only from features that mean the same in every index, with whatever an index may
            lack left out at random.
    """

    system: str = "hybrid"
    rounds: Positive = 500
    leaves: Positive = 31
    learning_rate: Share = 0.05
    patience: Positive | None = 50
    start: Amount = 0.0
    trust: Share = 1.0
    portable: bool = False


FOR_EVERYONE = LtrOptions(rounds=120, leaves=7, patience=None, start=10.0, trust=0.9, portable=True)
"""How a ranker for other indexes learns: few leaves, and corrections of the fused score that count less than they would
where it learnt, since they must hold elsewhere: indexes/ranker/DATASHEET.md."""

_DROPPED = {"citing sentences": 0.3, "years": 0.2, "authors": 0.3, "venues": 0.5}
"""How often a portable ranker does without a group of features."""


@dataclass(frozen=True, slots=True)
class Source:
    """Contexts, and the index to search for them.

    Attributes:
        index: The index.
        choice: The contexts; if its path is the index itself, they are the citing sentences of the index.
    """

    index: Path
    choice: Choice

    def contexts(self) -> tuple[list[Context], list[Context]]:
        """The contexts to learn from, and those to measure on."""
        index, choice = self.index, self.choice
        own = own_contexts(index, choice.limit, choice.seed) if choice.path == index else []
        return choose(choice, lambda path: own if path == index else read_contexts(path, cited=True))

    def facts(self) -> dict[str, Any]:
        """The fields of a manifest about the contexts."""
        return self.choice.facts() | ({"contexts": OWN} if self.choice.path == self.index else {})


def train_ltr(
    sources: Sequence[Source],
    out: Path,
    options: LtrOptions | None = None,
    on_progress: Progress = no_progress,
) -> LtrManifest:
    """Learns a ranker from contexts and writes it to `out`.

    LambdaMART (Burges, 2010) as in LightGBM. Candidates come from the index under the leak rules: the citing
    paper's own sentences and newer ones never support them. Contexts whose cited paper is not found are left out.
    The contexts of dev decide when to stop. Each context is seen more than once (`citerec.train.groups`): as it is,
    with the citing sentences of half of the papers withheld, and in a draft.

    Raises:
        SourceError: A file cannot be read.
        InputError: No context has a cited paper among its candidates, or something else is at `out`.
    """
    options = options or LtrOptions()
    RANKER.check_place(out)
    recipe = Recipe.load(options.system).without_rerankers()
    depth, seed = recipe.settings_of(LtrReranker).depth, sources[0].choice.seed
    train: list[Example] = []
    dev: list[Example] = []
    learnt, fingerprints = NOTHING, []
    for source in sources:
        contexts = source.contexts()
        with Recommender.open(source.index, recipe) as recommender:
            for name, of_side, examples in zip(("train", "dev"), contexts, (train, dev), strict=True):
                about: dict[str, Any] = {"doing": f"searching, {name}", "on_progress": on_progress}
                examples += examples_of(recommender, of_side, depth, seed, portable=options.portable, **about)
            fingerprints.append(recommender.manifest.fingerprint)
            learnt |= Learnt.of(*contexts) | recommender.learnt
    facts = [source.facts() for source in sources]
    too_few = f"too few contexts of {', '.join(one['contexts'] for one in facts)} have a cited paper that is found"
    if not (train and dev):
        raise InputError(too_few, "Give more: some hundreds at least.")
    features = PORTABLE if options.portable else tuple(FEATURES)
    trees = learn_trees(train, dev, features, options, seed, on_progress)
    count = trees.best_iteration if options.patience else trees.num_trees()
    gains = trees.feature_importance("gain", iteration=count)
    if not gains.sum():
        raise InputError(too_few, "Give more: some hundreds at least.")
    # Only the order counts, so the fused score weighs more in place of trees that weigh less.
    start = round(options.start / options.trust, 2)

    def scores(rows: FeatureRows) -> Any:
        return started(rows, start) + trees.predict(rows[:, _columns(features)], num_iteration=count)

    manifest = LtrManifest(
        corpus="+".join(fingerprints),
        system=options.system,
        depth=depth,
        features=features,
        start=start,
        gain={name: round(float(gain / gains.sum()), 5) for name, gain in zip(features, gains, strict=True)},
        training=asdict(options)
        | (facts[0] if len(facts) == 1 else {"sources": facts})
        | {"seed": seed, "learnt_from": len(train), "trees": count},
        dev={
            "contexts": len(dev),
            "mrr@10": _mrr(dev, scores),
            "mrr@10 before": _mrr(dev, lambda rows: rows[:, list(FEATURES).index("fused")]),
        },
    )
    return write_model(
        RANKER, out, manifest, learnt, lambda folder: trees.save_model(folder / MODEL, num_iteration=count)
    )


def learn_trees(
    train: Sequence[Example],
    dev: Sequence[Example],
    features: Sequence[str],
    options: LtrOptions,
    seed: int,
    on_progress: Progress = no_progress,
) -> Any:
    """LightGBM's trees (a `lightgbm.Booster`) over some features; dev decides when to stop, if the options say so."""
    import lightgbm

    def dataset(examples: Sequence[Example]) -> Any:
        rows = np.concatenate([one.features for one in examples])
        return lightgbm.Dataset(
            rows[:, _columns(features)],
            np.concatenate([one.cited for one in examples]),
            group=[len(one.cited) for one in examples],
            init_score=started(rows, options.start),
            feature_name=[name.replace(" ", "_") for name in features],  # LightGBM's names have no spaces
        )

    on_progress("learning", 0, options.rounds)
    return lightgbm.train(
        {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "lambdarank_truncation_level": 20,
            "num_leaves": options.leaves,
            "learning_rate": options.learning_rate,
            "min_data_in_leaf": 50,
            "feature_fraction": 0.8,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,  # with more, little data take ten times the processor time
            "verbose": -1,
            "early_stopping_round": options.patience or 0,
        },
        dataset(_with_gaps(train, seed) if options.portable else train),
        num_boost_round=options.rounds,
        valid_sets=[dataset(dev)],
        callbacks=[lambda state: on_progress("learning", state.iteration + 1, options.rounds)],
    )


def _columns(features: Iterable[str]) -> list[int]:
    return [list(FEATURES).index(name) for name in features]


def _with_gaps(examples: Iterable[Example], seed: int) -> list[Example]:
    """The examples, each of which lacks some groups of features at random."""
    random = np.random.default_rng(seed)
    drawn = []
    for example in examples:
        features = example.features.copy()
        for group, share in _DROPPED.items():
            if random.random() < share:
                features[:, _columns(GROUPS[group])] = np.nan
        drawn.append(example._replace(features=features))
    return drawn


def _mrr(examples: Sequence[Example], scores: Callable[[FeatureRows], Any]) -> float:
    """MRR@10 of the candidates by their scores, (rows,), which a function makes of their features."""
    total = 0.0
    for one in examples:
        best = np.argsort(-scores(one.features), kind="stable")[:10]
        ranks = np.flatnonzero(one.cited[best]) + 1
        total += 1 / ranks[0] if len(ranks) else 0.0
    return round(total / len(examples), 4)


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


LEAST = 200
"""Contexts that a calibration needs: with fewer, its error is mostly chance."""

_FOLDS = 5
_DIVISIONS = 10  # of the citing papers, to measure on: a single one says little where there are few papers
_STEPS = 10  # groups of equal size that isotonic regression sees: with single answers it follows their noise
_LEAST_IN_STEP = 10

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def train_confidence(
    contexts: Path,
    index: Path,
    system: str,
    recipe: Recipe,
    *,
    limit: int = 5000,
    seed: int = 0,
    on_progress: Progress = no_progress,
) -> Calibration:
    """Calibrates a system on contexts, and writes the calibration into the index.

    For each event (the first paper is right; one of the first ten is) a logistic regression over
    `Candidates.evidence`, then isotonic regression of its scores, each from a regression that did not see the
    context's citing paper. An answer is right if the context cites the paper, any of several. Contexts that the system
    learnt from or was tuned on, by sentence or citing paper, are left out. The leak rules hold.

    `measured` says for each event how well the probabilities fit contexts that they were not fitted on. The citing
    papers are divided into halves, ten times at random; the probabilities of each half come from the other. `ece` and
    `brier` are over both halves, mean of the ten.

    Args:
        contexts: A file of contexts with cited papers.
        index: The index.
        system: The name of the system.
        recipe: Its recipe.
        limit: The largest number of contexts, sampled by the seed.
        seed: Seed of the sample, and of halves and folds.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read.
        InputError: It has too few contexts that the system did not learn from, or their outcomes hardly differ.
        SettingsError: The index lacks what the system needs.
    """
    out = calibration_folder(index, recipe)
    CALIBRATION.check_place(out)
    given = list(read_contexts(contexts, cited=True))
    with Recommender.open(index, recipe) as recommender:
        seen, _ = find_overlap(given, {system: recommender.learnt})
        unseen = (context for context, known in zip(given, seen, strict=True) if not known)
        drawn = Choice(contexts, seed=seed).draw(limit, unseen)
        if len(drawn) < LEAST:
            besides = f" that {system} did not learn from" if seen.any() else ""
            raise InputError(
                f"{contexts} has {len(drawn):,} contexts{besides}: a calibration needs {LEAST}",
                "Give others: citerec contexts split makes a part that nothing learns from.",
            )
        answers = list(_answers(recommender, drawn, on_progress))
        made_for, corpus = recommender.made_for, recommender.manifest.fingerprint
    found = [candidates for _, candidates in answers]
    names = (citing_name(context.citing_id, context.citing_key) or context.context_id for context, _ in answers)
    papers = np.array([hash_sample(seed, name) >> 1 for name in names], np.int64)  # random numbers of citing papers
    cited = [np.isin(one.rows, one.papers.rows(context.cited_ids)) for context, one in answers]
    right = np.array([(one[0], one.any()) for one in cited], bool)
    pairs = ((name, one) for one in found for name in one.signals)
    # A signal that only repeats the scores adds nothing.
    signals = tuple(sorted({name for name, one in pairs if not np.array_equal(one.signal(name), one.scores, True)}))
    evidence = np.array([candidates.evidence(signals) for candidates in found])
    manifest = Calibration(
        **dict(fitted(evidence, right, papers)),
        corpus=corpus,
        system=system,
        recipe=recipe.whole().to_json(),
        made_for=made_for,
        signals=signals,
        training={
            "contexts": contexts.name,
            "fitted_on": len(found),
            "left_out": int(seen.sum()),
            "citing_papers": len(np.unique(papers)),
            "seed": seed,
        },
        measured=_measured(evidence, right, papers),
    )
    return write_model(CALIBRATION, out, manifest, Learnt.of(drawn), lambda _: None)


def _answers(
    recommender: Recommender, contexts: Sequence[Context], on_progress: Progress
) -> Iterator[tuple[Context, Candidates]]:
    """The contexts for which something was found, with it: an empty answer is never right, and says nothing."""
    k = min(FIRST, recommender.manifest.counts.papers)
    for done, (topic, candidates) in enumerate(recommender.candidates(recommender.topics(contexts), k), 1):
        if candidates:
            yield topic.context, replace(candidates, citances=(), reasons=())
        on_progress("searching", done, len(contexts))


def fitted(evidence: Floats, right: Flags, papers: Ints) -> Curves:
    """Fits the curve of each event.

    Args:
        evidence: Of each answer, (answers, pieces); NaN where it is missing.
        right: Which events came true, (answers, events).
        papers: A random number of each answer's citing paper, (answers,).

    Raises:
        InputError: All answers outside a fold of citing papers are right, or none is.
    """
    masked = np.ma.masked_invalid(evidence)
    mean, scale = masked.mean(axis=0).filled(0.0), masked.std(axis=0).filled(1.0)
    scale[scale == 0] = 1.0
    standardised = np.nan_to_num((evidence - mean) / scale)
    first, among_ten = (_curve(standardised, outcomes, papers % _FOLDS) for outcomes in right.T)
    return Curves(mean=tuple(mean.tolist()), scale=tuple(scale.tolist()), first=first, among_ten=among_ten)


def _curve(evidence: Floats, right: Flags, folds: Ints) -> Curve:
    """As scikit-learn's `CalibratedClassifierCV`, but isotonic regression sees means of groups of answers."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    for others in (right[folds != fold] for fold in range(_FOLDS)):
        if others.all() or not others.any():
            what = "every answer" if others.any() else "no answer"
            raise InputError(
                f"there is nothing to calibrate: what was found is right in {what} of some citing papers",
                "Give more contexts, or others.",
            )
    regression = LogisticRegression(max_iter=1000)
    # A regression that has seen an answer scores it too well.
    scores = cross_val_predict(regression, evidence, right, cv=PredefinedSplit(folds), method="decision_function")
    regression.fit(evidence, right)
    steps = np.array_split(np.argsort(scores, kind="stable"), min(_STEPS, max(1, len(right) // _LEAST_IN_STEP)))
    means = np.array([(scores[step].mean(), right[step].mean()) for step in steps])
    isotonic = IsotonicRegression().fit(*means.T, sample_weight=[len(step) for step in steps])
    return Curve(
        weights=tuple(regression.coef_[0].tolist()),
        constant=float(regression.intercept_[0]),
        scores=tuple(isotonic.X_thresholds_.tolist()),
        probabilities=tuple(isotonic.y_thresholds_.tolist()),
    )


def _measured(evidence: Floats, right: Flags, papers: Ints) -> dict[str, dict[str, float]]:
    """How well each event's probabilities fit answers that they were not fitted on: means of several divisions."""
    fits = []
    for division in range(_DIVISIONS):
        second = papers >> (8 + division) & 1 == 1  # a bit of a random number
        stated = np.empty(right.shape)
        for half in (second, ~second):
            stated[half] = fitted(evidence[~half], right[~half], papers[~half]).at(evidence[half])
        fits.append([reliability(one, outcomes) for one, outcomes in zip(stated.T, right.T, strict=True)])
    measured = {}
    for event, outcomes, of_event in zip(EVENTS, right.T, zip(*fits, strict=True), strict=True):
        ece, brier = (np.mean([getattr(one, name) for one in of_event]) for name in ("ece", "brier"))
        values = {"right": outcomes.mean(), "ece": ece, "brier": brier}
        measured[event] = {"n": len(right), **{name: round(float(value), 4) for name, value in values.items()}}
    return measured
