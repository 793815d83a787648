"""Training on the candidates of an index: a ranker (LambdaMART), and the weights of a fusion."""

import contextlib
import copy
import functools
import itertools
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import platformdirs

from citerec.contexts.markers import marked
from citerec.contexts.provenance import NOTHING, PROVENANCE, Provenance, digest, folded
from citerec.contexts.topic import Topic
from citerec.errors import InputError, SettingsError
from citerec.evaluation.metrics import parse_metrics
from citerec.files.parallel import HERE, Parallelism, in_parts, outcomes_of
from citerec.files.progress import Progress, no_progress, told
from citerec.files.resume import digest_of, hash_sample
from citerec.files.writing import Kind, writing_file
from citerec.index.manifest import open_store
from citerec.models.loading import MANIFEST
from citerec.recommend import Recommender
from citerec.records import Context, Filters
from citerec.rerank import ltr
from citerec.rerank.ltr import FEATURES, GROUPS, MODEL, PORTABLE, FeatureRows, LtrManifest, LtrReranker, started
from citerec.retrieve.base import Candidates, Retriever
from citerec.retrieve.dense import DenseRetriever, ProfileRetriever
from citerec.retrieve.fusion import fuse
from citerec.retrieve.words import WithheldCitances, WordsRetriever, withheld
from citerec.settings import Amount, Positive, Share
from citerec.systems import Recipe
from citerec.train.groups import REPEATABLE, Choice, citing_paper, mean_scores, read_cited, write_model
from citerec.version import __version__

OWN = "the citing sentences of the index"
"""What a manifest calls them."""

LEAST_SENTENCES = 500
"""Citing sentences under which a ranker is not learnt from an index: docs/train.md has the figures."""

_TASK, _KEPT = 250, 4
"""How many contexts a process searches at a time; and of how many sides of trainings the examples are kept."""
_SPARE = 4  # sentences read for each that is asked for: some have no cited paper among the candidates

_BY_CITATIONS = ("draft_cocited", "draft_coupled")  # signals that an index without citing sentences lacks
View = tuple[bool, float]
"""A way to see contexts: whether their draft is known, and for which share of the papers citances are withheld."""
_PLAIN, _HALF, _WITHOUT = (False, 0.0), (False, 0.5), (False, 1.0)
_IN_DRAFT, _IN_DRAFT_WITHOUT = (True, 0.0), (True, 1.0)

# The views of the first context, of the second, and so on, in turns.
_OF_INDEX_WITHOUT_CITANCES = ((_PLAIN, _IN_DRAFT),)
_OF_INDEX = (_PLAIN, _HALF), (_PLAIN, _IN_DRAFT)
_PORTABLE = (_WITHOUT, _IN_DRAFT_WITHOUT, _PLAIN), (_WITHOUT, _IN_DRAFT_WITHOUT, _HALF)


class Example(NamedTuple):
    """A context in one view.

    Attributes:
        features: Of its candidates, (candidates, len(FEATURES)).
        cited: 1 for each cited one, (candidates,); one at least.
    """

    features: FeatureRows
    cited: npt.NDArray[np.int8]


def examples_of(
    recommender: Recommender,
    contexts: Sequence[Context],
    depth: int,
    seed: int,
    *,
    portable: bool,
    parallelism: Parallelism = HERE,
    on_progress: Callable[[float, float], object] = lambda _done, _whole: None,
) -> list[Example]:
    """The examples of some contexts; those whose cited papers are not among the candidates are left out.

    Args:
        recommender: Finds candidates, with the retriever `words`.
        contexts: Contexts with cited papers.
        depth: How many candidates each gets.
        seed: Seed of what is withheld, and of drafts.
        portable: Whether the ranker is for other indexes, which may have no citances at all.
        parallelism: How many processes search.
        on_progress: Called with how many were searched, and how many there are.
    """
    turns: tuple[tuple[View, ...], ...] = _OF_INDEX_WITHOUT_CITANCES
    if recommender.manifest.counts.citances:
        turns = _PORTABLE if portable else _OF_INDEX
    seen = [
        (view, one)
        for views, context, draft in zip(itertools.cycle(turns), contexts, drafted(contexts, seed))
        for view in views
        if (one := draft if view[0] else replace(context, cited_before=None)) is not None
    ]
    work = functools.partial(_examples_of_part, recommender, min(depth, recommender.manifest.counts.papers), seed)
    tasks = list(in_parts(seen, _TASK))
    parts: dict[int, dict[View, list[Example]]] = {}
    with contextlib.closing(outcomes_of(work, tasks, parallelism)) as outcomes:
        for number, examples in outcomes:
            parts[number] = examples
            on_progress(len(parts), len(tasks))
    views = sorted({view for view, _ in seen})
    return [example for view in views for number in sorted(parts) for example in parts[number].get(view, ())]


def kept_searches(retriever: Retriever) -> Retriever:
    """A retriever by vectors that keeps what it found: in several views a context may have the same vector."""
    if not isinstance(retriever, DenseRetriever | ProfileRetriever):
        return retriever
    kept: dict[tuple[Any, ...], Candidates] = {}

    def search(topic: Topic, k: int, filters: Filters, prepared: npt.NDArray[np.float32]) -> Candidates:
        key = k, filters, prepared.tobytes()
        if key not in kept:
            kept[key] = retriever.search(topic, k, filters, prepared)
        return kept[key]

    keeping = copy.copy(retriever)
    keeping.search = search  # type: ignore[assignment, method-assign]
    return keeping


def _examples_of_part(
    recommender: Recommender, k: int, seed: int, part: Sequence[tuple[View, Context]]
) -> dict[View, list[Example]]:
    seen = defaultdict[View, list[Context]](list)
    for view, context in part:
        seen[view].append(context)
    system = recommender.with_retrievers(kept_searches)
    return {view: list(_examples_in(view, system, k, seed, contexts)) for view, contexts in seen.items()}


def _examples_in(
    view: View, recommender: Recommender, k: int, seed: int, contexts: Sequence[Context]
) -> Iterator[Example]:
    """The examples of contexts that are seen in one way."""
    share = view[1]

    def changed(retriever: Retriever) -> Retriever:
        return WithheldCitances(retriever, share, seed) if isinstance(retriever, WordsRetriever) else retriever

    system = recommender.with_retrievers(changed)
    for topic, candidates in system.candidates(system.topics(contexts), k):
        cited = np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)).astype(np.int8)
        if cited.any():
            uncited = withheld(topic, candidates.rows, share, seed)
            by_citations = {name: np.where(uncited, np.nan, candidates.signal(name)) for name in _BY_CITATIONS}
            candidates = replace(candidates, signals={**candidates.signals, **by_citations})
            yield Example(ltr.features_of(topic, candidates, uncited), cited)


def kept_examples(key: str, make: Callable[[], list[Example]]) -> list[Example]:
    """Examples that were made before under a key, or else are made and kept: the search takes most of a training.

    A training with other settings of the trees has the same ones. Those of the last few keys stay in the user's cache.
    """
    folder = platformdirs.user_cache_path("citerec") / "examples"
    path = folder / f"{key}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(path) as kept:
        ends = np.cumsum(kept["lengths"])[:-1]
        pairs = zip(np.split(kept["features"], ends), np.split(kept["cited"], ends), strict=True)
        return [Example(*pair) for pair in pairs]
    if examples := make():
        folder.mkdir(parents=True, exist_ok=True)
        features, cited = (np.concatenate(column) for column in zip(*examples, strict=True))
        with contextlib.suppress(OSError), writing_file(path) as partial, partial.open("wb") as file:
            np.savez(file, features=features, cited=cited, lengths=[len(one.cited) for one in examples])
        for old in sorted(folder.glob("*.npz"), key=lambda one: one.stat().st_mtime)[:-_KEPT]:
            old.unlink(missing_ok=True)
    return examples


def drafted(contexts: Sequence[Context], seed: int) -> Iterator[Context | None]:
    """Each context as if it stood in a draft that cites some of what its paper cites elsewhere; None if nothing.

    Contexts that say what the same text cited before stay as they are. For the others some of the other contexts of
    their citing paper are drawn, in an order that depends on the seed only.
    """
    of_paper = defaultdict(list)
    for context in contexts:
        of_paper[citing_paper(context)].append(context)
    for context in contexts:
        if context.cited_before is not None:
            yield context
            continue
        others = [one for one in of_paper[citing_paper(context)] if one.context_id != context.context_id]
        others.sort(key=lambda one: hash_sample(seed, context.context_id, one.context_id))
        some = others[: hash_sample(seed, "draft", context.context_id) % (len(others) + 1)]
        before = tuple(paper_id for one in some for paper_id in one.cited_ids)
        yield replace(context, cited_before=before) if before else None


def own_contexts(index: Path, limit: int | None, seed: int) -> list[Context]:
    """The citing sentences of an index as contexts, in order of citing paper.

    A sentence that cites several papers is one context. Of many, those of a sample of citing papers are taken.

    Raises:
        InputError: There are too few.
    """
    contexts: dict[tuple[str, str], Context] = {}
    with contextlib.closing(open_store(index)) as store:
        sentences = store.counts().citances
        share = 1.0 if limit is None else min(1.0, _SPARE * limit / max(sentences, 1))
        for one in store.searchable_citances():
            is_drawn = hash_sample(seed, "own", one.citing_id) < share * 2**64 and one.cited.paper_id != one.citing_id
            text = marked(one.text, one.cited.year) if is_drawn else None
            if text is not None:
                key = one.citing_id, digest("text", folded(text))
                own = contexts.get(key) or Context(
                    text=text, context_id="-".join(key), citing_id=one.citing_id, citing_year=one.citing_year
                )
                contexts[key] = replace(own, cited_ids=tuple(dict.fromkeys((*own.cited_ids, one.cited.paper_id))))
    if len(contexts) < share * LEAST_SENTENCES:
        fault = f"too few of the {sentences:,} citing sentences of the index show their citation"
        remedy = "Add some with `citerec index add INDEX --citances FILE`, or give contexts: --contexts FILE."
        raise InputError(f"{fault}: {LEAST_SENTENCES} are needed", f"{remedy} The default system needs neither.")
    return [contexts[key] for key in sorted(contexts)]


RANKER = Kind("learnt ranker", "citerec-ltr", MANIFEST, frozenset({MODEL, MANIFEST, PROVENANCE}))


@dataclass(frozen=True, slots=True)
class LtrOptions:
    """How to learn: at most `rounds` trees with `leaves` leaves each.

    Attributes:
        system: The system whose candidates are ranked; its rerankers are left out.
        rounds: The most trees.
        leaves: The leaves of a tree, at most.
        learning_rate: How much of a tree counts, 0 to 1.
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

    @property
    def features(self) -> tuple[str, ...]:
        """What it learns from."""
        return PORTABLE if self.portable else tuple(FEATURES)


PRETRAINED = LtrOptions(rounds=300, leaves=7, patience=None, start=10.0, trust=0.9, portable=True)
"""How the pretrained ranker learns: few leaves, and corrections of the fused score that count less than they would
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
        return choice.sides(lambda path: own if path == index else read_cited(path))

    def facts(self) -> dict[str, Any]:
        """The fields of a manifest about the contexts."""
        return self.choice.facts() | ({"contexts": OWN} if self.choice.path == self.index else {})


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
    The contexts of dev decide when to stop. Each context is seen more than once (`examples_of`): as it is,
    with the citing sentences of half of the papers withheld, and in a draft. `parallelism` says how many processes
    search.

    Raises:
        SourceError: A file cannot be read.
        InputError: No context has a cited paper among its candidates, or something else is at `out`.
    """
    options = options or LtrOptions()
    RANKER.check_place(out)
    recipe = Recipe.load(options.system).without_rerankers()
    depth, seed = recipe.settings_of(LtrReranker).depth, sources[0].choice.seed
    sides: dict[str, list[Example]] = {"train": [], "dev": []}
    provenance, fingerprints, learnt_from = NOTHING, [], 0
    for source in sources:
        contexts = source.contexts()
        learnt_from += len(contexts[0])
        with Recommender.open(source.index, recipe) as recommender:
            for (name, examples), of_side in zip(sides.items(), contexts, strict=True):
                how: dict[str, Any] = {"portable": options.portable, "parallelism": parallelism}
                hook = functools.partial(on_progress, f"searching, {name}")
                make = functools.partial(examples_of, recommender, of_side, depth, seed, **how, on_progress=hook)
                same = [__version__, recommender.made_for, depth, seed, options.portable, *of_side]
                examples += kept_examples(digest_of(same), make)
            fingerprints.append(recommender.manifest.fingerprint)
            provenance |= Provenance.of(*contexts) | recommender.provenance
    facts = [source.facts() for source in sources]
    fault = f"too few contexts of {', '.join(one['contexts'] for one in facts)} have a cited paper that is found"
    too_few = InputError(fault, "Give more: some hundreds at least.")
    if not all(sides.values()):
        raise too_few
    features = options.features
    trees = learn_trees(sides["train"], sides["dev"], options, seed, on_progress)
    gains = trees.feature_importance("gain")
    if not gains.sum():
        raise too_few
    # Only the order counts, so the fused score weighs more in place of trees that weigh less.
    start = round(options.start / options.trust, 2)

    rows = np.concatenate([one.features for one in sides["dev"]])
    ends = np.cumsum([len(one.cited) for one in sides["dev"]])[:-1]

    def mrr(scores: FeatureRows) -> float:
        ranked = [np.argsort(-part, kind="stable").tolist() for part in np.split(scores, ends)]
        cited = [np.flatnonzero(one.cited).tolist() for one in sides["dev"]]
        return round(mean_scores(cited, ranked, ["mrr@10"])["mrr@10"], 4)

    learned = started(rows, start) + trees.predict(rows[:, _columns(features)])
    dev = {"contexts": len(sides["dev"]), "mrr@10": mrr(learned)}
    dev["mrr@10 before"] = mrr(rows[:, _columns(["fused"])[0]])
    about = asdict(options) | (facts[0] if len(facts) == 1 else {"sources": facts})
    about |= {"seed": seed, "trained_on": learnt_from, "examples": len(sides["train"])}
    about |= {"trees": trees.best_iteration or trees.num_trees()}
    gain = {name: round(float(one / gains.sum()), 5) for name, one in zip(features, gains, strict=True)}
    origin = {"corpus": "+".join(fingerprints), "system": options.system, "depth": depth}
    manifest = LtrManifest(**origin, features=features, start=start, gain=gain, training=about, dev=dev)
    return write_model(RANKER, out, manifest, provenance, lambda folder: trees.save_model(folder / MODEL))


def learn_trees(
    train: Sequence[Example], dev: Sequence[Example], options: LtrOptions, seed: int, on_progress: Progress
) -> Any:
    """LightGBM's trees (a `lightgbm.Booster`) over the features; dev decides when to stop, if the options say so.

    Whatever reads them reads those up to the best on dev, then.
    """
    import lightgbm

    def dataset(examples: Sequence[Example]) -> Any:
        rows = np.concatenate([one.features for one in examples])
        return lightgbm.Dataset(
            rows[:, _columns(options.features)],
            np.concatenate([one.cited for one in examples]),
            group=[len(one.cited) for one in examples],
            init_score=started(rows, options.start),
            feature_name=[name.replace(" ", "_") for name in options.features],  # LightGBM's names have no spaces
        )

    on_progress("learning", 0, options.rounds)
    parameters = {"objective": "lambdarank", "lambdarank_truncation_level": 20, "metric": "ndcg", "eval_at": [10]}
    parameters |= {"num_leaves": options.leaves, "min_data_in_leaf": 50, "learning_rate": options.learning_rate}
    parameters |= {"feature_fraction": 0.8, "bagging_fraction": 0.8, "bagging_freq": 1}
    parameters |= {"seed": seed, "early_stopping_round": options.patience or 0}
    return lightgbm.train(
        parameters | REPEATABLE,
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
        groups = [GROUPS[group] for group, share in _DROPPED.items() if random.random() < share]
        features[:, _columns(itertools.chain.from_iterable(groups))] = np.nan
        drawn.append(Example(features, example.cited))
    return drawn


class TunedFusion(NamedTuple):
    """The result of tuning.

    Attributes:
        contexts: How many contexts were tried.
        metric: The metric.
        alone: The score of each list on its own, by name.
        before: The score of the system's own fusion, without its feedback.
        score: The score of the best fusion.
        recipe: The system with it.
        provenance: The contexts, and what the parts of the lists learnt from.
    """

    contexts: int
    metric: str
    alone: dict[str, float]
    before: float
    score: float
    recipe: Recipe
    provenance: Provenance


def tune_fusion(
    contexts: Path,
    index: Path,
    *,
    system: str = "hybrid",
    metric: str = "recall@100",
    limit: int = 1000,
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
    parse_metrics([metric], depth)
    drawn = Choice(contexts).draw(limit, read_cited(contexts))
    lists = [dict[str, Candidates]() for _ in drawn]
    with Recommender.open(index, recipe) as whole:
        cited = [whole.index.rows.rows(context.cited_ids).tolist() for context in drawn]
        if all(row < 0 for rows in cited for row in rows):
            remedy = "Give the index of the corpus that they cite: --index"
            raise InputError(f"no cited paper of any context is in {index}", remedy)
        k = min(depth, whole.manifest.counts.papers)
        for retriever in whole.retrievers:
            alone = Recommender(whole.index, {retriever.name: retriever})
            for number, (_, candidates) in enumerate(alone.candidates(alone.topics(drawn), k)):
                lists[number][retriever.name] = replace(candidates, signals={})
                on_progress(f"searching, {retriever.name}", number, len(drawn))
        provenance = Provenance.of(tuned_on=drawn) | whole.provenance

    def score(changed: Recipe) -> float:
        used = ({name: of_context[name] for name in changed.retrievers} for of_context in lists)
        fused = [fuse(one, changed.retrievers, changed.fusion, depth).rows.tolist() for one in used]
        return mean_scores(cited, fused, [metric], depth)[metric]

    weighted = recipe.fusion.model_copy(update={"method": "weighted"})
    grid = [
        recipe.model_copy(update={"retrievers": dict(zip(names, weights, strict=True)), "fusion": weighted})
        for weights in itertools.product([tenth / 10 for tenth in range(11)], repeat=len(names))
        if round(sum(weights), 1) == 1
    ]
    scores = [score(one) for one in told(grid, "fusing", on_progress, len(grid))]
    best, place = max((value, place) for place, value in enumerate(scores))  # of equals the last
    of_lists = {name: score(recipe.model_copy(update={"retrievers": {name: 1.0}})) for name in names}
    return TunedFusion(len(drawn), metric, of_lists, score(recipe), best, grid[place], provenance)


def write_recipe(tuned: TunedFusion, path: Path) -> None:
    """Writes the best fusion as a recipe, for `--system FILE`, and beside it the digests of its contexts.

    Raises:
        InputError: The file cannot be written.
    """
    digests = path.with_name(f"{path.stem}.{PROVENANCE}")
    recipe = tuned.recipe.model_copy(update={"tuned_on": digests.name})
    recipe.write(path, f"Tuned on {tuned.contexts} contexts by {tuned.metric}: {tuned.score:.4f}.")
    tuned.provenance.write(digests)
