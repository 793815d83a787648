"""`citerec train ltr`: LambdaMART over the candidates of an index."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.contexts.learnt import LEARNT, Learnt
from citerec.errors import InputError
from citerec.groundwork.directories import Kind
from citerec.groundwork.progress import Progress, no_progress
from citerec.recommend import Recommender, SearchOptions
from citerec.records import Context
from citerec.rerank.base import MANIFEST
from citerec.rerank.features import FEATURES, Floats, features_of
from citerec.rerank.ltr import KIND, MODEL, LtrManifest, LtrReranker
from citerec.systems import Recipe
from citerec.train.groups import PROGRESS_EVERY, Choice, choose, tell
from citerec.version import __version__

RANKER = Kind("learnt ranker", KIND, MANIFEST, frozenset({MODEL, MANIFEST, LEARNT}))


@dataclass(frozen=True, slots=True)
class LtrOptions:
    """How to learn: at most `rounds` trees with `leaves` leaves each.

    Attributes:
        system: The system whose candidates are ranked; its rerankers are left out.
        patience: Trees without a better ndcg@10 on dev after which it stops.
        threads: How many searches run at once, and how many threads learn.
    """

    system: str = "hybrid"
    rounds: int = 500
    leaves: int = 31
    learning_rate: float = 0.05
    patience: int = 50
    threads: int = 2


@dataclass(frozen=True, slots=True)
class Table:
    """Features (rows, len(FEATURES)) of candidates, 1 for each cited one (rows,), and the rows of each context."""

    features: Floats
    cited: "np.ndarray[tuple[int], np.dtype[np.int8]]"
    groups: tuple[int, ...]


def train_ltr(
    choice: Choice,
    index: Path,
    out: Path,
    options: LtrOptions | None = None,
    on_progress: Progress = no_progress,
) -> LtrManifest:
    """Learns a ranker from contexts and writes it to `out`.

    LambdaMART (Burges, 2010) as in LightGBM. Candidates come from the index under the leak rules: the citing
    paper's own sentences and newer ones never support them. Contexts whose cited paper is not found are left out.
    The contexts of dev decide when to stop.

    Raises:
        SourceError: A file cannot be read.
        InputError: No context has a cited paper among its candidates, or something else is at `out`.
    """
    import lightgbm

    options = options or LtrOptions()
    RANKER.check_place(out)
    recipe = Recipe.load(options.system).without_rerankers()
    depth = recipe.settings_of(LtrReranker).depth
    learn, number, dev = choose(choice)
    with Recommender.open(index, recipe) as recommender:
        tables = []
        for what, chosen, whole in (("searching, train", learn(), number), ("searching, dev", dev, len(dev))):
            advance = functools.partial(tell, on_progress, what, whole)
            tables.append(_table(recommender, chosen, depth, options.threads, advance))
        fingerprint = recommender.manifest.fingerprint
        learnt = Learnt.of(learn(), dev) | recommender.learnt
    if not all(table.groups for table in tables):
        raise InputError(
            f"too few contexts of {choice.path} have a cited paper among the candidates", "Give more of them."
        )
    names = [name.replace(" ", "_") for name in FEATURES]
    train, held_out = (
        # LightGBM's names have no spaces.
        lightgbm.Dataset(table.features, table.cited, group=list(table.groups), feature_name=names)
        for table in tables
    )
    on_progress("learning", 0, options.rounds)
    trees = lightgbm.train(
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
            "seed": choice.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": options.threads,
            "verbose": -1,
        },
        train,
        num_boost_round=options.rounds,
        valid_sets=[held_out],
        callbacks=[
            lightgbm.early_stopping(options.patience, verbose=False),
            lambda state: on_progress("learning", state.iteration + 1, options.rounds),
        ],
    )
    gains = trees.feature_importance("gain", iteration=trees.best_iteration)
    if not gains.sum():
        raise InputError(f"{choice.path} has too few contexts to learn from", "Give more: some hundreds at least.")
    manifest = LtrManifest(
        citerec=__version__,
        corpus=fingerprint,
        system=options.system,
        depth=depth,
        features=tuple(FEATURES),
        gain={name: round(float(gain / gains.sum()), 5) for name, gain in zip(FEATURES, gains, strict=True)},
        training={
            **asdict(options),
            **choice.facts(),
            "seed": choice.seed,
            "learnt_from": len(tables[0].groups),
            "trees": trees.best_iteration,
        },
        dev={
            "contexts": len(tables[1].groups),
            "mrr@10": round(_mrr(trees.predict(tables[1].features), tables[1]), 4),
            "mrr@10 before": round(_mrr(tables[1].features[:, list(FEATURES).index("fused")], tables[1]), 4),
        },
    )
    with RANKER.writing(out) as folder:
        trees.save_model(folder / MODEL, num_iteration=trees.best_iteration)
        learnt.write(folder / LEARNT)
        (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _table(
    recommender: Recommender,
    contexts: Iterable[Context],
    depth: int,
    threads: int,
    advance: Callable[[int], None],
) -> Table:
    features, cited, groups = [np.empty((0, len(FEATURES)), np.float32)], [np.empty(0, np.int8)], []
    k = min(depth, recommender.manifest.counts.papers)
    found = recommender.candidates(recommender.topics(contexts), k, options=SearchOptions(threads=threads))
    for done, (topic, candidates) in enumerate(found, 1):
        golds = np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)).astype(np.int8)
        if golds.any():
            papers = recommender.store.papers(candidates.paper_ids(), texts=False)
            features.append(features_of(topic, candidates, papers))
            cited.append(golds)
            groups.append(len(golds))
        if done % PROGRESS_EVERY == 0:
            advance(done)
    return Table(np.concatenate(features), np.concatenate(cited), tuple(groups))


def _mrr(scores: Any, table: Table) -> float:
    total, begin = 0.0, 0
    for rows in table.groups:
        order = np.argsort(-scores[begin : begin + rows], kind="stable")[:10]
        found = np.flatnonzero(table.cited[begin : begin + rows][order])
        total += 1 / (found[0] + 1) if len(found) else 0.0
        begin += rows
    return total / len(table.groups)
