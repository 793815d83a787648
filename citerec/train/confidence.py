"""How sure a system is of its answers: curves that are fitted to the evidence of answers to contexts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from citerec.confidence import CALIBRATION, DEPTH, EVIDENCE, Calibration, Curve, Curves, calibration_folder
from citerec.contexts.provenance import Provenance
from citerec.contexts.topic import Topic
from citerec.errors import InputError
from citerec.evaluation.metrics import reliability
from citerec.evaluation.record import find_overlap
from citerec.evaluation.statistics import Flags
from citerec.files.progress import Progress, no_progress, told
from citerec.files.resume import hash_sample
from citerec.recommend import Recommender
from citerec.records import EVENTS, FIRST, NO_FILTERS, Filters, citing_name
from citerec.retrieve.base import Candidates, Floats
from citerec.systems import Recipe
from citerec.train.groups import Choice, read_cited, write_model

LEAST_CONTEXTS = 200
"""Contexts that a calibration needs: with fewer, its error is mostly chance."""

_FOLDS = 5
_TINY = 1e-9
_LEAST = 5  # answers of either outcome
_COUNTED = 1500  # answers of one group that count in full: a large group must not hide the others
_PENALTY = 0.01  # of squared weights, for each answer: evidence that means little elsewhere weighs little


class Answers(NamedTuple):
    """The evidence of answers to some contexts.

    Attributes:
        evidence: Of each answer, (answers, pieces); NaN where it is missing.
        right: Whether its first paper is right, and whether one of the first ten is, (answers, 2).
        papers: A random number of each context's citing paper, (answers,).
        taken_out: The evidence of the answers without what their contexts cite, (answers, pieces); NaN unless the first
            paper is right.
    """

    evidence: Floats
    right: Flags
    papers: npt.NDArray[np.int64]
    taken_out: Floats

    def taken(self, which: Flags) -> Self:
        """Some of the answers."""
        return self._replace(**{name: column[which] for name, column in self._asdict().items()})


def answers_of(system: Recommender, topics: Iterable[Topic], seed: int = 0) -> Answers:
    """The evidence of a system's answers to topics of contexts with cited papers, under the leak rules.

    Empty answers are left out: they are never right, and say nothing.
    """
    evidence, right, papers, taken_out = [], [], [], []
    for topic in topics:
        context = topic.context
        if not (candidates := _searched(system, topic)):
            continue
        is_cited = np.isin(candidates.rows[:FIRST], candidates.papers.rows(context.cited_ids))
        evidence.append(system.evidence(topic, candidates))
        right.append((is_cited[0], is_cited.any()))
        papers.append(hash_sample(seed, citing_name(context.citing_id, context.citing_key) or context.context_id) >> 1)
        taken_out.append(np.full(len(EVIDENCE), np.nan))
        if is_cited[0]:
            cited = context.cited_ids
            before = None if topic.cited_before is None else tuple(x for x in topic.cited_before if x not in cited)
            left = tuple(paper for paper in topic.cited if paper.paper_id not in cited)
            without = replace(topic, cited_before=before, cited=left)
            if others := _searched(system, without, Filters(exclude=cited)):
                taken_out[-1] = system.evidence(without, others)
    return Answers(
        np.array(evidence, np.float64).reshape(-1, len(EVIDENCE)),
        np.array(right, bool).reshape(-1, 2),
        np.array(papers, np.int64),
        np.array(taken_out, np.float64).reshape(-1, len(EVIDENCE)),
    )


def _searched(system: Recommender, topic: Topic, filters: Filters = NO_FILTERS) -> Candidates:
    ((_, candidates),) = system.candidates([topic], min(DEPTH, system.index.most_hits), filters)
    return candidates


def fitted(groups: Sequence[Answers], others: Sequence[tuple[Floats, Floats]] = ()) -> Curves:
    """Fits the curve of each event: logistic regressions over the evidence.

    Args:
        groups: Answers to contexts, such as those of one index; no group counts for more than 1,500 answers.
        others: Evidence of sentences that are about what an index is about, and of others that are not. Without any,
            there is no curve of `Confidence.about`.

    Raises:
        InputError: Nearly all answers are right, or hardly one is.
    """
    values = np.ma.masked_invalid(np.concatenate([one.evidence for one in groups]))
    counts = np.concatenate([_counts(one.evidence) for one in groups])
    mean = np.ma.filled(np.ma.average(values, axis=0, weights=counts), 0.0)
    scale = np.sqrt(np.ma.filled(np.ma.average((values - mean) ** 2, axis=0, weights=counts), 0.0))
    scale[scale < _TINY] = 1.0
    curves = Curves(mean=tuple(mean.tolist()), scale=tuple(scale.tolist()), curves={})
    right = [one.evidence[one.right[:, 0]] for one in groups]
    events = {
        "first": (right, [one.evidence[~one.right[:, 0]] for one in groups]),
        "among_ten": tuple([one.evidence[one.right[:, 1] == is_right] for one in groups] for is_right in (True, False)),
        "fits": (right, [one.taken_out[one.right[:, 0]] for one in groups]),
    }
    if others:
        events["about"] = ([one.evidence for one in groups] + [ours for ours, _ in others], [one for _, one in others])
    return curves.model_copy(update={"curves": {name: _curve(curves, *sides) for name, sides in events.items()}})


def _counts(answers: Floats) -> Floats:
    """How much each answer of a group counts, (answers,)."""
    return np.full(len(answers), min(1.0, _COUNTED / max(len(answers), 1)))


def _curve(curves: Curves, positive: Sequence[Floats], negative: Sequence[Floats]) -> Curve:
    from sklearn.linear_model import LogisticRegression

    groups = [*positive, *negative]
    labels = np.repeat([True, False], [sum(map(len, positive)), sum(map(len, negative))])
    if min(labels.sum(), (~labels).sum()) < _LEAST:
        what = "no answer" if labels.sum() < _LEAST else "every answer"
        fault = f"there is nothing to calibrate: what was found is right in {what} of some citing papers"
        raise InputError(fault, "Give more contexts, or others.")
    counts = np.concatenate([_counts(one) for one in groups])
    regression = LogisticRegression(C=1 / (_PENALTY * counts.sum()), max_iter=1000)
    regression.fit(curves.standardised(np.concatenate(groups)), labels, sample_weight=counts)
    return Curve(weights=tuple(regression.coef_[0].tolist()), constant=float(regression.intercept_[0]))


def probabilities_of(curves: Curves, answers: Answers) -> Floats:
    """The probabilities of the events of `EVENTS` for some answers, (answers, 2)."""
    events = curves.at(answers.evidence)
    return np.stack([events["first"], np.maximum(events["first"], events["among_ten"])], axis=1)


def measured(probabilities: Floats, right: Flags) -> dict[str, dict[str, float]]:
    """How well the probabilities of each event of `EVENTS` fit some answers; both are (answers, 2)."""
    return {
        event: {"n": one.n, **{name: round(getattr(one, name), 4) for name in ("right", "ece", "brier")}}
        for event, one in zip(EVENTS, map(reliability, probabilities.T, right.T), strict=True)
    }


def train_confidence(
    choice: Choice, index: Path, system: str, recipe: Recipe, on_progress: Progress = no_progress
) -> Calibration:
    """Calibrates a system on contexts, and writes the calibration into the index.

    For each event of `Confidence` but `about` a logistic regression over `citerec.confidence.EVIDENCE`. An answer is
    right if the context cites the paper, any of several. Contexts that the system learnt from or was tuned on, by
    sentence or citing paper, are left out. The leak rules hold.

    `measured` says for each event how well the probabilities fit contexts that they were not fitted on: the
    probabilities of each fifth of the citing papers come from the others.

    Args:
        choice: The contexts: a file, and how many at most. Its seed is that of the folds too.
        index: The index.
        system: The name of the system.
        recipe: Its recipe.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: The file cannot be read.
        InputError: It has too few contexts that the system did not learn from, or their outcomes hardly differ.
        SettingsError: The index lacks what the system needs.
    """
    out = calibration_folder(index, recipe)
    CALIBRATION.check_place(out)
    contexts = list(read_cited(choice.path))
    with Recommender.open(index, recipe) as recommender:
        seen, _ = find_overlap(contexts, {system: recommender.provenance})
        drawn = choice.draw(choice.limit or len(contexts), compress(contexts, ~seen))
        if len(drawn) < LEAST_CONTEXTS:
            besides = f" that {system} did not learn from" if seen.any() else ""
            fault = f"{choice.path} has {len(drawn):,} contexts{besides}: a calibration needs {LEAST_CONTEXTS}"
            raise InputError(fault, "Give others: citerec contexts split makes a part that nothing learns from.")
        topics = told(recommender.topics(drawn), "searching", on_progress, len(drawn))
        answers = answers_of(recommender, topics, choice.seed)
        made_for, corpus = recommender.made_for, recommender.manifest.fingerprint
    probabilities = np.empty(answers.right.shape)
    for fold in range(_FOLDS):
        own = answers.papers % _FOLDS == fold
        probabilities[own] = probabilities_of(fitted([answers.taken(~own)]), answers.taken(own))
    training = {
        "contexts": choice.path.name,
        "fitted_on": len(answers.right),
        "left_out": int(seen.sum()),
        "citing_papers": len(np.unique(answers.papers)),
        "seed": choice.seed,
    }
    manifest = Calibration(
        **dict(fitted([answers])),
        corpus=corpus,
        system=system,
        recipe=recipe.whole().to_json(),
        made_for=made_for,
        evidence=tuple(EVIDENCE),
        training=training,
        measured=measured(probabilities, answers.right),
    )
    return write_model(CALIBRATION, out, manifest, Provenance.of(drawn), lambda _: None)
