"""`citerec train ltr`: LambdaMART over the candidates of an index."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.contexts.learnt import LEARNT, NOTHING, Learnt
from citerec.errors import InputError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import Kind
from citerec.models.loading import MANIFEST
from citerec.recommend import Recommender
from citerec.rerank.features import FEATURES, GROUPS, PORTABLE, Floats
from citerec.rerank.ltr import MODEL, LtrManifest, LtrReranker, started
from citerec.systems import Recipe
from citerec.train.groups import Choice, choose
from citerec.train.ltr_table import Looks, Table, look
from citerec.version import __version__

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
        threads: How many threads learn at most; of little data one learns.
    """

    system: str = "hybrid"
    rounds: int = 500
    leaves: int = 31
    learning_rate: float = 0.05
    patience: int | None = 50
    start: float = 0.0
    trust: float = 1.0
    portable: bool = False
    threads: int = 2


FOR_EVERYONE = LtrOptions(rounds=120, leaves=7, patience=None, start=10.0, trust=0.9, portable=True)
"""How a ranker for other indexes learns: few leaves, and corrections of the fused score that count less than they would
where it learnt, since they must hold elsewhere: docs/ranker.md."""

_DROPPED = {"citing sentences": 0.3, "years": 0.2, "authors": 0.3, "venues": 0.5}
"""How often a portable ranker does without a group of features."""


_ROWS_OF_A_THREAD = 200_000
"""On less, threads of LightGBM wait for each other; on a busy machine that takes ten times the processor time."""


@dataclass(frozen=True, slots=True)
class Source:
    """Contexts, and the index to search for them.

    Attributes:
        index: The index.
        choice: The contexts.
        name: What the manifest calls them; by default their file.
    """

    index: Path
    choice: Choice
    name: str | None = None


def train_ltr(
    sources: Sequence[Source],
    out: Path,
    options: LtrOptions | None = None,
    on_progress: Progress = no_progress,
    parallelism: Parallelism = HERE,
) -> LtrManifest:
    """Learns a ranker from contexts and writes it to `out`.

    LambdaMART (Burges, 2010) as in LightGBM. Candidates come from the index under the leak rules: the citing
    paper's own sentences and newer ones never support them. Contexts whose cited paper is not found are left out.
    The contexts of dev decide when to stop. Each context is seen more than once (`citerec.train.ltr_table`): as it is,
    with the citing sentences of half of the papers withheld, and in a draft. Candidates are searched for in parallel;
    the trees are learnt here.

    Raises:
        SourceError: A file cannot be read.
        InputError: No context has a cited paper among its candidates, or something else is at `out`.
    """
    options = options or LtrOptions()
    RANKER.check_place(out)
    recipe = Recipe.load(options.system).without_rerankers()
    depth = recipe.settings_of(LtrReranker).depth
    sides: tuple[list[Table], list[Table]] = [], []
    learnt, fingerprints = NOTHING, []
    for source in sources:
        learn, _, dev = choose(source.choice)
        looks = Looks(depth, options.portable, source.choice.seed)
        with Recommender.open(source.index, recipe) as recommender:
            for side, chosen, tables in zip(("train", "dev"), (learn(), dev), sides, strict=True):
                doing = f"searching, {side}"
                tables.append(look(recommender, list(chosen), looks, doing, on_progress, parallelism))
            fingerprints.append(recommender.manifest.fingerprint)
            learnt |= Learnt.of(learn(), dev) | recommender.learnt
    train, held_out = map(Table.joined, sides)
    names = ", ".join(source.name or str(source.choice.path) for source in sources)
    if not (train.groups and held_out.groups):
        raise InputError(f"too few contexts of {names} have a cited paper among the candidates", "Give more of them.")
    seed = sources[0].choice.seed
    features = PORTABLE if options.portable else tuple(FEATURES)
    trees = learn_trees(train, held_out, features, options, seed, on_progress)
    count = trees.best_iteration if options.patience else trees.num_trees()
    gains = trees.feature_importance("gain", iteration=count)
    if not gains.sum():
        raise InputError(f"{names} has too few contexts to learn from", "Give more: some hundreds at least.")
    columns = [list(FEATURES).index(name) for name in features]
    # Only the order counts, so the fused score weighs more in place of trees that weigh less.
    start = round(options.start / options.trust, 2)
    facts = [source.choice.facts() | ({"contexts": source.name} if source.name else {}) for source in sources]
    manifest = LtrManifest(
        citerec=__version__,
        corpus="+".join(fingerprints),
        system=options.system,
        depth=depth,
        features=features,
        start=start,
        gain={name: round(float(gain / gains.sum()), 5) for name, gain in zip(features, gains, strict=True)},
        training={
            **asdict(options),
            **(facts[0] if len(facts) == 1 else {"sources": facts}),
            "seed": seed,
            "learnt_from": len(train.groups),
            "trees": count,
        },
        dev={
            "contexts": len(held_out.groups),
            "mrr@10": round(
                _mrr(
                    started(held_out.features, start)
                    + trees.predict(held_out.features[:, columns], num_iteration=count),
                    held_out,
                ),
                4,
            ),
            "mrr@10 before": round(_mrr(held_out.features[:, list(FEATURES).index("fused")], held_out), 4),
        },
    )
    with RANKER.writing(out) as folder:
        trees.save_model(folder / MODEL, num_iteration=count)
        learnt.write(folder / LEARNT)
        manifest.write(folder)
    return manifest


def learn_trees(
    train: Table,
    held_out: Table,
    features: Sequence[str],
    options: LtrOptions,
    seed: int,
    on_progress: Progress = no_progress,
) -> Any:
    """LightGBM's trees over some features; `held_out` decides when to stop, if the options say that it does."""
    import lightgbm

    columns = [list(FEATURES).index(name) for name in features]
    data, dev = (
        # LightGBM's names have no spaces.
        lightgbm.Dataset(
            values[:, columns],
            table.cited,
            group=list(table.groups),
            init_score=started(table.features, options.start),
            feature_name=[name.replace(" ", "_") for name in features],
        )
        for table, values in (
            (train, _with_gaps(train, seed) if options.portable else train.features),
            (held_out, held_out.features),
        )
    )
    on_progress("learning", 0, options.rounds)
    callbacks: list[Any] = [lambda state: on_progress("learning", state.iteration + 1, options.rounds)]
    if options.patience:
        callbacks.append(lightgbm.early_stopping(options.patience, verbose=False))
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
            "num_threads": min(options.threads, 1 + len(train.features) // _ROWS_OF_A_THREAD),
            "verbose": -1,
        },
        data,
        num_boost_round=options.rounds,
        valid_sets=[dev],
        callbacks=callbacks,
    )


def _with_gaps(table: Table, seed: int) -> Floats:
    """The features, of which each context lacks some groups at random."""
    draws = np.random.default_rng(seed)
    features, begin = table.features.copy(), 0
    columns = {name: [list(FEATURES).index(one) for one in GROUPS[name]] for name in _DROPPED}
    for rows in table.groups:
        for name, share in _DROPPED.items():
            if draws.random() < share:
                features[begin : begin + rows, columns[name]] = np.nan
        begin += rows
    return features


def _mrr(scores: Any, table: Table) -> float:
    total, begin = 0.0, 0
    for rows in table.groups:
        order = np.argsort(-scores[begin : begin + rows], kind="stable")[:10]
        found = np.flatnonzero(table.cited[begin : begin + rows][order])
        total += 1 / (found[0] + 1) if len(found) else 0.0
        begin += rows
    return total / len(table.groups)
