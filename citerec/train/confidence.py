"""`citerec train confidence`: calibrates how sure a system is of its answers, on contexts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.confidence import CALIBRATION, Calibration, Curve, Curves, calibration_folder, evidence_of
from citerec.contexts.learnt import Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.evaluation.metrics import reliability
from citerec.evaluation.overlap import find_overlap
from citerec.files.hashing import hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.recommend import Recommender
from citerec.records import EVENTS, FIRST, Context, citing_name
from citerec.retrieve.candidates import Candidates
from citerec.systems import Recipe
from citerec.train.base import write_model
from citerec.train.groups import Choice

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

    For each event (the first paper is right; one of the first ten is) a logistic regression over `evidence_of`, then
    isotonic regression of its scores, each from a regression that did not see the context's citing paper. An answer
    is right if the context cites the paper, any of several. Contexts that the system learnt from or was tuned on,
    by sentence or citing paper, are left out. The leak rules hold.

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
        seen = find_overlap(given, {system: recommender.learnt}).any
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
    evidence = np.array([evidence_of(candidates, signals) for candidates in found])
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
