"""`citerec train confidence`: calibrates how sure a system is of its answers, on contexts."""

import heapq
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.confidence import (
    CALIBRATION,
    Calibration,
    Curve,
    calibration_folder,
    evidence_of,
    standardised,
)
from citerec.contexts.learnt import LEARNT, Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.evaluation.overlap import find_overlap
from citerec.evaluation.reliability import reliability
from citerec.files.hashing import hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.index.candidates import Candidates
from citerec.recommend import Recommender
from citerec.records import EVENTS, FIRST, Context, citing_name
from citerec.systems import Recipe
from citerec.train.groups import PROGRESS_EVERY
from citerec.version import __version__

LEAST = 200
"""Contexts that a calibration needs: with fewer, its error is mostly chance."""

_FOLDS = 5
_DIVISIONS = 10  # of the citing papers, to measure on: a single one says little where there are few papers
_LEAST_PAPERS = 10
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
    `brier` are over both halves, mean of the ten; `highest ece` is that of the worst. `ece of halves` is the mean of
    each half's own, `ece by chance` what probabilities without error would show on as many contexts.

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
        seen = find_overlap(given, {system: recommender.learnt}).any if given else np.zeros(0, bool)
        unseen = (context for context, known in zip(given, seen, strict=True) if not known)
        drawn = heapq.nsmallest(limit, unseen, key=lambda one: hash_sample(seed, one.context_id))
        if len(drawn) < LEAST:
            besides = f" that {system} did not learn from" if seen.any() else ""
            raise InputError(
                f"{contexts} has {len(drawn):,} contexts{besides}: a calibration needs {LEAST}",
                "Give others: citerec contexts split makes a part that nothing learns from.",
            )
        answers, right, numbers = _answers(recommender, drawn, seed, on_progress)
        made_for, corpus = recommender.made_for, recommender.manifest.fingerprint
    if (papers := len(np.unique(numbers))) < _LEAST_PAPERS:
        raise InputError(
            f"{contexts} has contexts of {papers} citing papers: a calibration needs {_LEAST_PAPERS}", "Give others."
        )
    signals = _signals(answers)
    evidence = np.array([evidence_of(found, signals) for found in answers])
    mean, scale, (first, among_ten) = fitted(evidence, right, numbers)
    manifest = Calibration(
        citerec=__version__,
        corpus=corpus,
        system=system,
        recipe=recipe.whole().to_json(),
        made_for=made_for,
        signals=signals,
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        first=first,
        among_ten=among_ten,
        training={
            "contexts": contexts.name,
            "fitted_on": len(answers),
            "left_out": int(seen.sum()),
            "found_nothing": len(drawn) - len(answers),
            "citing_papers": papers,
            "seed": seed,
        },
        measured=_measured(evidence, right, numbers),
    )
    with CALIBRATION.writing(out) as folder:
        Learnt.of(drawn).write(folder / LEARNT)
        manifest.write(folder)
    return manifest


def _answers(
    recommender: Recommender, contexts: Sequence[Context], seed: int, on_progress: Progress
) -> tuple[list[Candidates], Flags, Ints]:
    """The answers that found something, which events came true, (answers, events), and a number of the citing paper.

    The numbers are random, and depend on seed and paper only.
    """
    answers, right, papers = [], [], []
    k = min(FIRST, recommender.manifest.counts.papers)
    found = recommender.candidates(recommender.topics(contexts), k)
    for done, (topic, candidates) in enumerate(found, 1):
        context = topic.context
        if candidates:  # an empty answer is never right: there is nothing to learn
            cited = np.isin(candidates.rows, candidates.papers.rows(context.cited_ids))
            answers.append(replace(candidates, citances=(), reasons=()))
            right.append([bool(cited[0]), bool(cited.any())])
            papers.append(
                hash_sample(seed, citing_name(context.citing_id, context.citing_key) or context.context_id) >> 1
            )
        if done % PROGRESS_EVERY == 0:
            on_progress("searching", done, len(contexts))
    return answers, np.array(right, bool), np.array(papers, np.int64)


def _signals(answers: Sequence[Candidates]) -> tuple[str, ...]:
    """The signals that say more than the scores do, in order."""
    names = sorted({name for found in answers for name in found.signals})
    return tuple(
        name
        for name in names
        if any(not np.array_equal(found.signal(name), found.scores, equal_nan=True) for found in answers)
    )


def fitted(evidence: Floats, right: Flags, papers: Ints) -> tuple[Floats, Floats, list[Curve]]:
    """Fits the curve of each event.

    Args:
        evidence: Of each answer, (answers, pieces); NaN where it is missing.
        right: Which events came true, (answers, events).
        papers: A random number of each answer's citing paper, (answers,).

    Returns:
        Mean and deviation of each piece of evidence, and the curves.
    """
    known = np.maximum((~np.isnan(evidence)).sum(axis=0), 1)
    mean = np.nansum(evidence, axis=0) / known
    deviation = np.sqrt(np.nansum(np.square(evidence - mean), axis=0) / known)
    scale = np.where(deviation > 0, deviation, 1.0)
    of_answers = standardised(evidence, mean, scale)
    return mean, scale, [_curve(of_answers, column, papers) for column in right.T]


def _curve(evidence: Floats, right: Flags, papers: Ints) -> Curve:
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    folds = papers % _FOLDS
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
    count = min(_STEPS, max(1, len(right) // _LEAST_IN_STEP))
    steps = np.array_split(np.argsort(scores, kind="stable"), count)
    isotonic = IsotonicRegression().fit(
        [scores[step].mean() for step in steps],
        [right[step].mean() for step in steps],
        sample_weight=[len(step) for step in steps],
    )
    return Curve(
        weights=tuple(regression.coef_[0].tolist()),
        constant=float(regression.intercept_[0]),
        scores=tuple(isotonic.X_thresholds_.tolist()),
        probabilities=tuple(isotonic.y_thresholds_.tolist()),
    )


def _measured(evidence: Floats, right: Flags, papers: Ints) -> dict[str, dict[str, float]]:
    """How well each event's probabilities fit answers that they were not fitted on, over several divisions."""
    random = np.random.default_rng(0)
    found: dict[str, list[tuple[float, ...]]] = {event: [] for event in EVENTS}
    for division in range(_DIVISIONS):
        second = papers >> (8 + division) & 1 == 1  # a bit of a random number
        stated = np.empty(right.shape)
        for half in (second, ~second):
            mean, scale, curves = fitted(evidence[~half], right[~half], papers[~half])
            known = standardised(evidence[half], mean, scale)
            stated[half] = np.stack([curve.at(known) for curve in curves], axis=1)
        for column, event in enumerate(EVENTS):
            probabilities, came_true = stated[:, column], right[:, column]
            both = reliability(probabilities, came_true)
            halves = [reliability(probabilities[half], came_true[half]).ece for half in (second, ~second)]
            chance = reliability(probabilities, random.random(len(probabilities)) < probabilities).ece
            found[event].append((both.ece, float(np.mean(halves)), chance, both.brier))
    return {event: _summed(right[:, column], found[event]) for column, event in enumerate(EVENTS)}


def _summed(came_true: Flags, divisions: Sequence[tuple[float, ...]]) -> dict[str, float]:
    ece, of_halves, by_chance, brier = np.mean(divisions, axis=0).tolist()
    share = float(came_true.mean())
    values = {
        "right": share,
        "ece": ece,
        "highest ece": max(one[0] for one in divisions),
        "ece of halves": of_halves,
        "ece by chance": by_chance,
        "brier": brier,
        "brier of the mean": share * (1 - share),
    }
    return {"n": len(came_true), **{name: round(value, 4) for name, value in values.items()}}
