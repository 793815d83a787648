"""`citerec train ltr`: LambdaMART over the candidates of an index."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.contexts.learnt import LEARNT, NOTHING, Learnt
from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import Kind
from citerec.models.loading import MANIFEST
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.rerank.features import FEATURES, GROUPS, PORTABLE, FeatureRows
from citerec.rerank.ltr import MODEL, LtrManifest, LtrReranker, started
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
