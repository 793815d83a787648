"""Reranking by gradient-boosted trees over `FEATURES` of the candidates.

Features use only what the search used under its leak rules. Most are ranks among the candidates, shares of the best
one, or differences from it, and so mean the same in every index: `PORTABLE`. The others are for rankers that learn on
the index that they rank: scores, and citation counts, for how much these say depends on how contexts and papers were
chosen.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from citerec.contexts.topic import LeakRules, Topic, names_before
from citerec.errors import ModelError
from citerec.index.columns import NO_TEXT, UNKNOWN, PaperColumns, hashes_of, owners_of, words_in
from citerec.index.words.analysis import hash_of
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.records import MARKER, Reason
from citerec.rerank.base import Records, Reranker, Texts, reranked
from citerec.retrieve.base import Candidates
from citerec.retrieve.fusion import strongest
from citerec.settings import PartSettings, shipped

FeatureRows = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Columns = dict[str, npt.ArrayLike]

_SECTIONS = ("introduction", "related", "background", "method", "experiment", "result", "discussion", "conclusion")
_INTENTS = ("background", "method", "result")
_UNKNOWN = np.nan
_NEAR = 6  # words before the marker

_TITLE = "words of the title"
_RANKED = ("fused", "bm25", "citance", "citances", "dense")


class Feature(NamedTuple):
    """What a feature means, and of which kind it is: reasons are summed by kind."""

    meaning: str
    kind: str


_SIGNALS = {
    "fused": Feature("score of the fused lists", "words and vectors"),
    "bm25": Feature("BM25 of title and abstract", "title and abstract"),
    "citance": Feature("BM25 of the best citing sentence", "citing sentences"),
    "citance_2": Feature("BM25 of the second best citing sentence", "citing sentences"),
    "citances": Feature("BM25 of all citing sentences found, summed", "citing sentences"),
    "citances_found": Feature("how many citing sentences were found", "citing sentences"),
    "dense": Feature("cosine of the vectors", "vectors"),
}


def _compared(suffix: str, meaning: str) -> dict[str, Feature]:
    """Features that compare a signal of the candidates, for each of `_RANKED`."""
    signals = {name: _SIGNALS[name] for name in _RANKED}
    return {f"{name} {suffix}": one._replace(meaning=f"{meaning}: {one.meaning}") for name, one in signals.items()}


FEATURES: dict[str, Feature] = {
    **_SIGNALS,
    **_compared("rank", "rank among the candidates"),
    **_compared("share", "relative to the best candidate"),
    "citance_2 share": Feature("second best citing sentence, relative to the best of all", "citing sentences"),
    "dense gap": Feature("how far its cosine is below the best", "vectors"),
    "citing papers": Feature("papers of the index known to cite it", "citation count"),
    "citing papers rank": Feature("rank among the candidates: papers of the index known to cite it", "citation count"),
    "log citations": Feature("logarithm of 1 + the citation count that the corpus gives", "citation count"),
    "citations rank": Feature("rank among the candidates: that citation count", "citation count"),
    "age": Feature("years from the paper to the citing paper", "age"),
    "common authors": Feature("authors whom the paper shares with the citing paper", "authors in common"),
    "same venue": Feature("whether both have the same venue", "venue in common"),
    "has abstract": Feature("whether the corpus has its abstract", "abstract"),
    "title in sentence": Feature("share of the title's words that the sentence has, rare ones more", _TITLE),
    "title near": Feature(f"the same for the {_NEAR} words before the marker", _TITLE),
    "title around": Feature("the same for the sentences around", _TITLE),
    "title in citing title": Feature("the same for the title of the citing paper", _TITLE),
    "title words shared": Feature("how many words the title shares with the sentence", _TITLE),
    "title words": Feature("how many words the title has", _TITLE),
    "name in sentence": Feature("whether the sentence has the name before the title's colon", _TITLE),
    "authors named": Feature("authors whose last name the sentence has", "authors named"),
    "first author near": Feature("whether the first author's last name stands before the marker", "authors named"),
    "named before": Feature("share of the names right before the marker that are its authors", "authors named"),
    "sentence words": Feature("how many different words the sentence has", "the sentence itself"),
    "section": Feature("the section of the sentence, as a number", "the sentence itself"),
    "intent": Feature("why the paper is cited, as a number", "the sentence itself"),
    "cited before": Feature("how often the draft cites it already", "cited in the draft"),
    "cited ago": Feature("how many citations ago the draft cited it last", "cited in the draft"),
    "draft papers": Feature("how many papers the draft cites", "cited in the draft"),
    "draft mean gap": Feature("how far its cosine with what the draft cites is below the best", "near the draft"),
    "draft mean rank": Feature("rank among the candidates: that cosine", "near the draft"),
    "draft nearest": Feature("cosine with the nearest of what the draft cites", "near the draft"),
    "draft nearest rank": Feature("rank among the candidates: that cosine", "near the draft"),
    "draft cocited rank": Feature("rank: papers that cite both it and what the draft cites", "near the draft"),
    "draft coupled rank": Feature("rank: papers that both it and the draft cite", "near the draft"),
    "draft authors": Feature("papers that the draft cites of one of its authors, at most", "authors in the draft"),
    "draft venue": Feature("share of its venue in what the draft cites", "venue in the draft"),
}
"""The features by name, in the order of their columns."""

_COUNTS = {name for name, feature in FEATURES.items() if feature.kind == "citation count"}
_OF_ONE_INDEX = {*_SIGNALS, *_COUNTS, "has abstract", "section", "intent"} - {"citances_found"}
PORTABLE = tuple(name for name in FEATURES if name not in _OF_ONE_INDEX)
"""Those that mean the same in every index."""

GROUPS: dict[str, tuple[str, ...]] = {
    "citing sentences": tuple(name for name in FEATURES if name.startswith(("citance", "citing papers", "draft co"))),
    "years": ("age",),
    "authors": ("common authors", "draft authors", "authors named", "first author near", "named before"),
    "venues": ("same venue", "draft venue"),
}
"""What an index may lack altogether: the features that are unknown then."""


def features_of(
    topic: Topic, candidates: Candidates, uncited: Bools | None = None, wanted: Collection[str] = FEATURES.keys()
) -> FeatureRows:
    """The features of the candidates of one context, (candidates, len(FEATURES)); NaN where unknown.

    Args:
        topic: The topic.
        candidates: Best first.
        uncited: Which of them count as never cited, (candidates,); none by default.
        wanted: The names of the features that are used; the others may be left unknown.
    """
    papers = candidates.papers.columns.of(candidates.rows)
    signals = {name: candidates.signal(name) for name in _SIGNALS}
    columns: Columns = {**signals, "dense gap": _gaps(signals["dense"])}
    for name in _RANKED:
        columns |= {f"{name} rank": _ranks(signals[name]), f"{name} share": _shares(signals[name], signals[name])}
    columns["citance_2 share"] = _shares(signals["citance_2"], signals["citance"])
    columns |= _of_papers(topic, papers) | _of_title(topic, papers) | _of_names(topic, papers)
    if not {"citing papers", "citing papers rank"}.isdisjoint(wanted):
        columns |= _known_citations(topic, candidates, uncited)
    columns |= _of_draft(topic, candidates, papers)
    table = np.empty((len(FEATURES), len(candidates)), np.float32)
    for row, name in zip(table, FEATURES, strict=True):
        row[:] = columns.get(name, _UNKNOWN)
    return table.T


def _of_papers(topic: Topic, papers: PaperColumns) -> Columns:
    citing, year = topic.citing, topic.citing_year
    own = hashes_of(set(topic.citing_authors))
    venue = hash_of(citing.venue.casefold()) if citing and citing.venue else None
    counts = np.where(papers.citation_counts == UNKNOWN, _UNKNOWN, papers.citation_counts)
    years = np.where(papers.years == UNKNOWN, _UNKNOWN, papers.years)
    has_venue = papers.venues[:, 0] != NO_TEXT
    return {
        "has abstract": papers.has_abstract,
        "log citations": np.log1p(counts),
        "citations rank": _ranks(counts),
        "age": _UNKNOWN if year is None else year - years,
        "common authors": _shared(papers, 0, own) if len(own) else _UNKNOWN,
        "same venue": np.where(has_venue, papers.venues[:, 1] == venue, _UNKNOWN) if venue is not None else _UNKNOWN,
    }


def _known_citations(topic: Topic, candidates: Candidates, uncited: Bools | None) -> Columns:
    """How many papers are known to cite each candidate; unknown if none is known to cite any of them."""
    citing, counts = candidates.papers.citing, np.zeros(len(candidates))
    if citing is not None:
        places, _ = citing.pairs_of(candidates.rows, LeakRules().restrict(topic))
        counts = np.bincount(places, minlength=len(candidates)).astype(float)
    if uncited is not None:
        counts[uncited] = 0
    return {"citing papers": counts, "citing papers rank": _ranks(counts)} if counts.any() else {}


def _of_title(topic: Topic, papers: PaperColumns) -> Columns:
    titles, owners = len(papers.years), owners_of(papers.word_begins)
    words, numbers, counts = np.unique(papers.words, return_inverse=True, return_counts=True)
    # Rare among the titles of the candidates: the weights of words need no statistics of the corpus.
    weights = np.log1p(titles / counts)[numbers]
    whole = np.bincount(owners, weights, titles)

    def among(text: str) -> npt.NDArray[np.bool_]:
        """Which words of the titles a text has."""
        return np.asarray(_counted(words, hashes_of(words_in(text)))[numbers] > 0)

    def share(named: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Which share of each title some of its words are."""
        return np.asarray(np.bincount(owners, weights * named, titles) / np.where(whole, whole, 1.0))

    before, marker, _ = topic.context.text.partition(MARKER)
    in_sentence = among(topic.text)
    of_name = np.arange(len(owners)) < (papers.word_begins[:-1] + papers.name_words)[owners]
    names_found = np.bincount(owners, in_sentence & of_name, titles)
    heading, intent = (topic.context.section or "").casefold(), topic.context.intent
    return {
        "title in sentence": share(in_sentence),
        "title near": share(among(" ".join(before.split()[-_NEAR:]))) if marker else _UNKNOWN,
        "title around": share(among(topic.neighbours)),
        "title in citing title": share(among(topic.citing_title)) if topic.citing_title else _UNKNOWN,
        "title words shared": np.bincount(owners, in_sentence, titles),
        "title words": papers.word_begins[1:] - papers.word_begins[:-1],
        "name in sentence": (papers.name_words > 0) & (names_found == papers.name_words),
        "sentence words": len(set(words_in(topic.text))),
        "section": next((number for number, name in enumerate(_SECTIONS) if name in heading), _UNKNOWN),
        "intent": _INTENTS.index(intent) if intent in _INTENTS else _UNKNOWN,
    }


def _of_names(topic: Topic, papers: PaperColumns) -> Columns:
    before, marker, _ = topic.context.text.partition(MARKER)
    names = hashes_of(names_before(topic))
    just_named = hashes_of(words_in(" ".join(before.split()[-_NEAR - 2 :])))
    has_authors = np.flatnonzero(np.diff(papers.author_begins))
    first_near = np.zeros(len(papers.years))
    first_near[has_authors] = _counted(papers.authors[papers.author_begins[has_authors], 1], just_named) > 0
    return {
        "authors named": _shared(papers, 1, hashes_of(words_in(topic.context.text))),
        "first author near": first_near if marker else _UNKNOWN,
        "named before": _shared(papers, 1, names) / len(names) if len(names) else _UNKNOWN,
    }


def _of_draft(topic: Topic, candidates: Candidates, papers: PaperColumns) -> Columns:
    if topic.cited_before is None:
        return {}
    times = np.nan_to_num(candidates.signal("draft_times"))
    counted = {name: candidates.signal(f"draft_{name}") for name in ("cocited", "coupled")}
    ranks: Columns = {f"draft {name} rank": _ranks(np.where(of > 0, of, _UNKNOWN)) for name, of in counted.items()}
    ranks |= {f"draft {name} rank": _ranks(candidates.signal(f"draft_{name}")) for name in ("mean", "nearest")}
    own = times > 0
    authors = _counted(papers.authors[:, 0], hashes_of(author for one in topic.cited for author in set(one.authors)))
    most = np.zeros(len(candidates))
    np.maximum.at(most, owners_of(papers.author_begins), authors)
    venues = _counted(papers.venues[:, 0], hashes_of(one.venue or "" for one in topic.cited))
    has_venue = papers.venues[:, 0] != NO_TEXT
    return ranks | {
        "cited before": times,
        "cited ago": candidates.signal("draft_ago"),
        "draft papers": len(topic.cited),
        "draft mean gap": _gaps(candidates.signal("draft_mean")),
        "draft nearest": candidates.signal("draft_nearest"),
        # The candidate itself does not count.
        "draft authors": most - own,
        "draft venue": np.where(has_venue, (venues - own) / (len(topic.cited) or _UNKNOWN), _UNKNOWN),
    }


def _counted(hashes: npt.NDArray[np.uint64], pool: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How often each hash is in a pool, which is sorted."""
    return np.asarray(np.searchsorted(pool, hashes, "right") - np.searchsorted(pool, hashes))


def _shared(papers: PaperColumns, column: int, names: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many names of its authors each paper shares with given ones; column 0 has names, 1 last names."""
    named = _counted(papers.authors[:, column], names) > 0
    return np.bincount(owners_of(papers.author_begins)[named], minlength=len(papers.years))


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks from 1, best first; NaN for missing values."""
    order = np.argsort(-values, kind="stable")
    return np.where(np.isnan(values), _UNKNOWN, np.argsort(order) + 1.0)


def _shares(values: npt.NDArray[np.float64], of: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values as shares of the best one of others; NaN where it is not above 0."""
    return values / (np.fmax.reduce(of, initial=0.0) or _UNKNOWN)


def _gaps(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far values are below the best one; NaN for missing values."""
    return np.asarray(np.fmax.reduce(values, initial=-np.inf) - values)


Rows = npt.NDArray[np.floating]

_ZERO = float(np.float32(1e-35))
"""LightGBM takes numbers up to this one, or its negative, for zero."""
_ROWS = 16
"""How many rows are explained at once: more need more memory, and are no faster."""


class _Split(NamedTuple):
    """A split of a tree: rows whose feature is above the threshold go right.

    Attributes:
        decision: LightGBM's bits. 2: missing values go left. 4: zeros and NaN are missing; 8: NaN is; else NaN is zero.
        cut: The leaf that was cut in two. What went left kept its number; what went right got the next free one.
        share: The share of the training rows that went right.
    """

    feature: int
    decision: int
    threshold: float
    cut: int
    share: float


class _Tree:
    """A tree as a part of the file describes it.

    Attributes:
        splits: In the order in which it grew.
        values: Of its leaves.
        mean: Of the values, over the training rows.

    Raises:
        ValueError, LookupError: It is damaged, or of another kind.
    """

    def __init__(self, fields: Mapping[str, str], features: int) -> None:
        self.values, thresholds = ([float(one) for one in fields[name].split()] for name in ("leaf_value", "threshold"))
        names = ("split_feature", "decision_type", "left_child", "right_child")
        numbers = [[int(one) for one in fields[name].split()] for name in names]
        # Trees that only predict may lack the counts, by which contributions are weighted.
        counts = [int(one) for one in fields.get("leaf_count", "1 " * len(self.values)).split()]
        fits = len(self.values) == len(counts) == len(thresholds) + 1
        if not fits or min(counts) < 1 or fields.get("is_linear", "0") != "0":
            raise ValueError("no tree of constant leaves")
        self.mean = sum(value * count for value, count in zip(self.values, counts, strict=True)) / sum(counts)
        leaf_of = {~leaf: leaf for leaf in range(len(counts))}
        self.splits: list[_Split] = []
        # From the last split to the first: each then has two leaves below it, which become one again.
        for new, split in reversed([*enumerate(zip(*numbers, thresholds, strict=True), 1)]):
            feature, decision, left, right, threshold = split
            cut = leaf_of[new - 1] = leaf_of[left]
            if not (cut < new == leaf_of[right] and 0 <= feature < features and decision in range(0, 12, 2)):
                raise ValueError("no split by a number in a growing tree")
            counts[cut] += counts[new]
            self.splits.insert(0, _Split(feature, decision, threshold, cut, counts[new] / counts[cut]))


class _Leaves:
    """Leaves behind equally many gates. A gate is all the splits by one feature on the way to a leaf.

    Args:
        leaves: The value of each, and the turns to take at the splits of each of its gates, by feature.
        turned: The share of the training rows at a split that take a turn, for all turns.

    Attributes:
        features: Of the gates, (gates x leaves,): of each leaf's first gate, then of each leaf's second, and so on.
    """

    def __init__(self, leaves: Sequence[tuple[float, Mapping[int, tuple[int, ...]]]], turned: Floats) -> None:
        self._values = np.array([[value] for value, _ in leaves])
        gates = [gate for nth in zip(*(way.items() for _, way in leaves), strict=True) for gate in nth]
        self.features = np.array([feature for feature, _ in gates])
        self._turns = np.array([turn for _, turns in gates for turn in turns])
        self._starts = np.cumsum([0, *(len(turns) for _, turns in gates)])[:-1]
        self._passed = np.multiply.reduceat(turned[self._turns], self._starts).reshape(-1, len(leaves), 1)
        points, weights = np.polynomial.legendre.leggauss((len(self._passed) + 1) // 2)
        self._quadrature = [*zip((points + 1) / 2, weights / 2, strict=True)]

    def explained(self, taken: Bools) -> Floats:
        """What each gate adds to the scores of rows, (gates x leaves, rows), given which turns they take.

        A leaf adds its value v to the scores of rows that pass all its gates; where features are unknown, v times the
        shares of training rows that pass their gates. Shapley values of such a product are integrals (Owen, Multilinear
        extensions of games, 1972): gate i adds v (o_i - z_i) times the integral over t from 0 to 1 of the product, over
        the other gates j, of o_j t + z_j (1 - t). Here o is 1 if the row passes, else 0, and z is the share. Quadrature
        with half as many points as gates is exact for this polynomial.
        """
        passes = np.logical_and.reduceat(taken[self._turns], self._starts).astype(np.float64)
        passes = passes.reshape(*self._passed.shape[:2], -1)
        integrals = np.zeros_like(passes)
        for point, weight in self._quadrature:
            factors = passes * point + self._passed * (1 - point)
            integrals += weight * factors.prod(axis=0) / factors
        return np.asarray(self._values * (passes - self._passed) * integrals).reshape(len(self.features), -1)


class Trees:
    """Trees that add up to a score: LightGBM's raw score, of which some objectives make a probability or the like.

    Attributes:
        features: How many features a row has.
    """

    def __init__(self, trees: list[_Tree], features: int) -> None:
        self.features, self._trees = features, trees
        self._values = np.array([*zip_longest(*(tree.values for tree in trees), fillvalue=0.0)]).T
        none = _Split(0, 0, 0.0, self._values.shape[1], 0.0)  # of trees with fewer splits: no leaf is cut
        table = np.array([*zip_longest(*(tree.splits for tree in trees), fillvalue=none)])
        feature, decision, threshold, cut, self._shares = table.transpose(2, 0, 1)
        self._thresholds, self._cuts = threshold[..., None], cut[..., None].astype(np.min_scalar_type(none.cut))
        # Splits by one feature that decide alike share a column, in which missing values are where they belong.
        columns, places = np.unique(16 * feature + decision, return_inverse=True)
        self._columns = places.reshape(feature.shape)
        self._features, bits = np.divmod(columns.astype(np.intp), 16)
        self._zero_is_missing = (bits & 4 > 0)[:, None]
        self._missing = np.select([bits < 4, bits & 2 > 0], [0.0, -np.inf], np.nan)[:, None]

    @classmethod
    def read(cls, path: Path, command: str = "citerec train ltr") -> Self:
        """The trees of a file; `command` trains them again.

        Raises:
            ModelError: It is damaged, or has trees of another kind: linear ones, of several classes, a random forest,
                or with splits by categories.
        """
        try:
            bodies = path.read_text(encoding="utf-8").partition("\nend of trees")[0].split("\nTree=")
            head, *trees = (dict(line.partition("=")[::2] for line in body.splitlines()) for body in bodies)
            sizes = [str(len(f"Tree={body}\n")) for body in bodies[1:]]
            is_whole = sizes == head.get("tree_sizes", " ".join(sizes)).split()
            if not is_whole or head["num_tree_per_iteration"] != "1" or "average_output" in head:
                raise ValueError("trees are missing or cut off, or do not add up to one score")
            features = int(head["max_feature_idx"]) + 1
            return cls([_Tree(tree, features) for tree in trees], features)
        except (OSError, ValueError, LookupError, ArithmeticError) as error:
            what = f"{path} cannot be read: it is damaged, or has trees of a kind that citerec does not train"
            raise ModelError(what, f"Train it again: {command}") from error

    def predict(self, rows: Rows) -> Floats:
        """The score of each row, (rows,), from its features.

        As in QuickScorer (Lucchese et al., SIGIR 2015), a split is decided for all rows before it is known which of
        them come to it. The trees then grow again: from the leaf that is cut, the rows that go right move on.
        """
        leaves = np.zeros((len(self._trees), len(rows)), self._cuts.dtype)
        for new, (left, cut) in enumerate(zip(self._lefts(rows), self._cuts, strict=True), 1):
            leaves[(leaves == cut) & ~left] = new
        return np.asarray(np.take_along_axis(self._values, leaves, axis=1).sum(axis=0))

    def contributions(self, rows: Rows) -> Floats:
        """What each feature adds to the score of each row, and last the mean score, (rows, features + 1).

        SHAP values, given what the training rows say of unknown features: Lundberg et al., From local explanations to
        global understanding with explainable AI for trees, 2020.
        """
        added = np.full((len(rows), self.features + 1), sum(tree.mean for tree in self._trees))
        features = np.concatenate([leaves.features for leaves in self._leaves])
        for start in range(0, len(rows), _ROWS):
            lefts = np.concatenate([*self._lefts(rows[start : start + _ROWS])])
            taken = np.concatenate([lefts, ~lefts])
            gates = np.concatenate([leaves.explained(taken) for leaves in self._leaves])
            added[start : start + _ROWS, :-1] = [np.bincount(features, row, self.features) for row in gates.T]
        return added

    def _lefts(self, rows: Rows) -> Iterator[Bools]:
        """For each split in turn, in which trees which rows go left there, (trees, rows)."""
        columns = rows.T[self._features].astype(np.float64)
        columns[np.abs(columns) <= _ZERO] = 0
        columns = np.where(np.isnan(columns) | (self._zero_is_missing & (columns == 0)), self._missing, columns)
        for chosen, thresholds in zip(self._columns, self._thresholds, strict=True):
            yield columns[chosen] <= thresholds

    @cached_property
    def _leaves(self) -> list[_Leaves]:
        """All leaves with gates. Turns have numbers: left at each split as `_lefts` has them, then right at each."""
        by_size = defaultdict(list)
        for number, tree in enumerate(self._trees):
            ways: list[dict[int, tuple[int, ...]]] = [{}]
            for place, split in enumerate(tree.splits):
                way, left = ways[split.cut], place * len(self._trees) + number
                gate = way.get(split.feature, ())
                ways[split.cut] = way | {split.feature: (*gate, left)}
                ways.append(way | {split.feature: (*gate, left + self._shares.size)})
            for value, way in zip(tree.values, ways, strict=True):
                by_size[len(way)].append((value, way))
        turned = np.concatenate([1 - self._shares.ravel(), self._shares.ravel()])
        return [_Leaves(leaves, turned) for size, leaves in by_size.items() if size]


MODEL = "model.txt"
_FUSED = "fused share"
SHIPPED = "ranker"
"""The folder of the ranker that comes with citerec."""


class LtrSettings(PartSettings):
    """How the learnt ranker is used.

    Attributes:
        depth: How many candidates are reranked; the rest follow them.
        again: Added to the scores of what the draft cites already; below 0 makes room for what is new.
        model: Folder of the learnt ranker; by default that of the index, else the one that comes with citerec.
    """

    depth: int = Field(default=300, ge=1)
    again: float = Field(default=-2.5, ge=-100, le=100)
    model: str | None = None


class LtrManifest(ModelManifest):
    """`manifest.json` of a learnt ranker: its training, its scores on dev, its features and their gain."""

    kind: Literal["citerec-ltr"] = "citerec-ltr"
    corpus: str
    """Fingerprint of the index that it learnt on; of several, joined."""
    system: str
    depth: int
    features: tuple[str, ...]
    start: float = 0.0
    """Weight of the fused score, as a share of the best one, to which the trees add: see `started`."""
    gain: dict[str, float]
    """Share of each feature in the gain of the trees."""


class LtrReranker(Reranker):
    """Ranks candidates by gradient-boosted trees. Safe to call from several threads.

    Raises:
        ModelError: There is no trained ranker, it is damaged, or it was trained on other features.
    """

    name = "ltr"
    Settings = LtrSettings
    reads = "nothing"
    is_default = True

    @classmethod
    def open(cls, index: Path, folder: Path | None, settings: LtrSettings) -> Self:
        """Opens the ranker in a folder, or the one of the index, or the one that comes with citerec."""
        return cls(cls.place(index, folder, settings), settings)

    @classmethod
    def place(cls, index: Path, folder: Path | None, settings: LtrSettings) -> Path:
        """As `Reranker.place`; where there is none, that of the one that comes with citerec."""
        own = super().place(index, folder, settings)
        return own if folder or settings.model or (own / MANIFEST).is_file() else shipped(SHIPPED)

    def __init__(self, path: Path, settings: LtrSettings | None = None) -> None:
        self.folder = path
        remedy = "Train it: citerec train ltr --contexts FILE --index INDEX"
        if (manifest := read_model_manifest(path, LtrManifest, "a learnt ranker", remedy)) is None:
            raise ModelError(f"there is no learnt ranker in {path}", remedy)
        self.manifest = manifest
        self._trees = Trees.read(path / MODEL)
        features = manifest.features
        if len(features) != self._trees.features or not set(features) <= set(FEATURES):
            raise ModelError(f"{path} was trained on other features", "Train it again: citerec train ltr")
        chosen = settings or LtrSettings()
        self.depth, self._again = chosen.depth, chosen.again
        self._columns = [list(FEATURES).index(name) for name in features]

    def rerank(
        self, topic: Topic, candidates: Candidates, _papers: Records, _citances: Texts, *, explain: int = 0
    ) -> Candidates:
        """Candidates in their new order, with new scores; those beyond `depth` follow in their order."""
        head = candidates[: self.depth]
        features = features_of(topic, head, wanted=self.manifest.features)
        again = self._again * (head.signal("draft_times") > 0)
        scores = self.scores(features) + again
        if not explain:
            return reranked(candidates, scores, self.name)
        shown = np.argsort(-scores, kind="stable")[:explain]  # contributions cost more than scores
        reasons = dict(zip(shown.tolist(), self.reasons(features[shown], again[shown]), strict=True))
        return reranked(candidates, scores, self.name, reasons=[reasons.get(at, ()) for at in range(len(head))])

    def scores(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """The score for each row of `features_of`, (rows,)."""
        added = self._trees.predict(features[:, self._columns])
        return np.asarray(started(features, self.manifest.start) + added)

    def reasons(self, features: npt.NDArray[np.float32], again: Any = 0.0) -> list[tuple[Reason, ...]]:
        """The reasons that add up to the score of each row, except for a constant.

        The SHAP values of the trees, summed by kind of feature.
        `again` is what was added for papers that the draft cites already: a number, or (rows,).
        """
        values = self._trees.contributions(features[:, self._columns])
        kinds = list(dict.fromkeys(feature.kind for feature in FEATURES.values()))
        sums = np.zeros((len(values), len(kinds)))
        for column, name in enumerate(self.manifest.features):
            sums[:, kinds.index(FEATURES[name].kind)] += values[:, column]
        sums[:, kinds.index(FEATURES[_FUSED].kind)] += started(features, self.manifest.start)
        sums[:, kinds.index(FEATURES["cited before"].kind)] += again
        return [strongest(map(Reason, kinds, row)) for row in sums.tolist()]


def started(features: npt.NDArray[np.float32], weight: float) -> npt.NDArray[np.float64]:
    """What the trees add to: a weight times the fused score as a share of the best one, (rows,).

    Trees that learnt what to add to it hold better on other corpora than trees alone: indexes/ranker/DATASHEET.md.
    """
    return np.asarray(weight * np.nan_to_num(features[:, list(FEATURES).index(_FUSED)].astype(float)))
