"""`citerec train ltr`: LambdaMART over the candidates of an index."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.contexts.read import read_contexts
from citerec.corpus.ingest import Progress
from citerec.directories import Kind
from citerec.errors import InputError
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.rerank.features import FEATURES, Floats, features_of
from citerec.rerank.ltr import KIND, MANIFEST, MODEL, LtrManifest
from citerec.settings import RetrievalSettings, find_recipe
from citerec.version import __version__

RANKER = Kind("learnt ranker", KIND, MANIFEST, frozenset({MODEL, MANIFEST}))


@dataclass(frozen=True, slots=True)
class LtrOptions:
    """How to learn.

    Attributes:
        system: Whose candidates are ranked: the name of a recipe without rerankers.
        limit: How many contexts to learn from at most, drawn by the seed.
        dev_share: Share of the citing papers that decides when to stop.
        rounds: Trees at most.
        leaves: Leaves of a tree.
        learning_rate: Of the boosting.
        patience: Trees without a better ndcg@10 on dev after which it stops.
        threads: How many searches run at once, and how many threads learn.
        seed: Of everything random.
    """

    system: str = "hybrid"
    limit: int = 8000
    dev_share: float = 0.1
    rounds: int = 500
    leaves: int = 31
    learning_rate: float = 0.05
    patience: int = 50
    threads: int = 2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Features of the candidates of many contexts, and which of them are cited.

    Attributes:
        features: (rows, len(FEATURES)).
        cited: (rows,), 1 for a cited paper.
        groups: Rows of each context.
    """

    features: Floats
    cited: "np.ndarray[tuple[int], np.dtype[np.int8]]"
    groups: tuple[int, ...]


def train_ltr(contexts: Path, index: Path, out: Path, options: LtrOptions, progress: Progress) -> LtrManifest:
    """Learns a ranker from contexts and writes it.

    LambdaMART (Burges, 2010) as LightGBM has it. Candidates come from the index under the leak rules: the citing
    paper's own sentences and what is newer never speak for one. Contexts whose cited paper is not found teach nothing.

    Args:
        contexts: A file of contexts with cited papers.
        index: The index.
        out: Where the ranker goes.
        options: How to learn.
        progress: Told of the work done.

    Raises:
        InputError: No context has a cited paper among its candidates, or something else stands at `out`.
    """
    import lightgbm

    RANKER.check_place(out)
    settings = RetrievalSettings.load(find_recipe(options.system))
    learn, dev = _split(_drawn(contexts, options), options)
    with Recommender.open(index, settings) as recommender:
        tables = []
        for what, chosen in (("candidates to learn from", learn), ("candidates to stop by", dev)):
            tables.append(_table(recommender, chosen, settings.ltr.depth, options, what, progress))
        fingerprint = recommender.manifest.fingerprint
    if not all(table.groups for table in tables):
        raise InputError(
            f"too few contexts of {contexts} have a cited paper among the candidates", "Give more of them."
        )
    train, held_out = (
        lightgbm.Dataset(
            table.features, table.cited, group=list(table.groups), feature_name=list(map(_column, FEATURES))
        )
        for table in tables
    )
    progress("learning", 0, options.rounds)
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
            "seed": options.seed,
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
            lambda state: progress("learning", state.iteration + 1, options.rounds),
        ],
    )
    gains = trees.feature_importance("gain", iteration=trees.best_iteration)
    manifest = LtrManifest(
        citerec=__version__,
        corpus=fingerprint,
        system=options.system,
        depth=settings.ltr.depth,
        features=tuple(FEATURES),
        gain={name: round(float(gain / gains.sum()), 5) for name, gain in zip(FEATURES, gains, strict=True)},
        training={
            **asdict(options),
            "contexts": contexts.name,
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
        (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _drawn(path: Path, options: LtrOptions) -> list[Context]:
    """Contexts drawn by the seed, in one pass and in the memory of those drawn (reservoir sampling, algorithm R)."""
    draw = random.Random(options.seed)
    drawn: list[Context] = []
    for number, context in enumerate(read_contexts(path, cited=True)):
        if number < options.limit:
            drawn.append(context)
        elif (place := draw.randrange(number + 1)) < options.limit:
            drawn[place] = context
    return drawn


def _split(contexts: Sequence[Context], options: LtrOptions) -> tuple[list[Context], list[Context]]:
    """To learn from, and to stop by: no citing paper in both."""
    citing = sorted({_citing(context) for context in contexts})
    held_out = set(random.Random(options.seed).sample(citing, max(1, round(options.dev_share * len(citing)))))
    parts: tuple[list[Context], list[Context]] = ([], [])
    for context in contexts:
        parts[_citing(context) in held_out].append(context)
    return parts


def _citing(context: Context) -> str:
    return context.citing_id or context.citing_key or context.context_id


def _table(
    recommender: Recommender, contexts: list[Context], depth: int, options: LtrOptions, what: str, progress: Progress
) -> Table:
    features, cited, groups = [np.empty((0, len(FEATURES)), np.float32)], [np.empty(0, np.int8)], []
    for done, (rows, golds) in enumerate(_groups(recommender, contexts, depth, options.threads), 1):
        if golds.any():
            features.append(rows)
            cited.append(golds)
            groups.append(len(golds))
        if done % 50 == 0 or done == len(contexts):
            progress(what, done, len(contexts))
    return Table(np.concatenate(features), np.concatenate(cited), tuple(groups))


def _groups(
    recommender: Recommender, contexts: list[Context], depth: int, threads: int
) -> "Iterator[tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int8]]]]":
    k = min(depth, recommender.manifest.counts.papers)
    for context, candidates in recommender.recommend_many(contexts, k, threads=threads):
        papers = recommender.store.papers(candidate.paper_id for candidate in candidates)
        golds = np.array([candidate.paper_id in context.cited_ids for candidate in candidates], np.int8)
        yield features_of(recommender.asked([context])[0], candidates, papers), golds


def _mrr(scores: Any, table: Table) -> float:
    total, begin = 0.0, 0
    for rows in table.groups:
        order = np.argsort(-scores[begin : begin + rows], kind="stable")[:10]
        found = np.flatnonzero(table.cited[begin : begin + rows][order])
        total += 1 / (found[0] + 1) if len(found) else 0.0
        begin += rows
    return total / len(table.groups)


def _column(name: str) -> str:
    """LightGBM's names have no blanks."""
    return name.replace(" ", "_")
