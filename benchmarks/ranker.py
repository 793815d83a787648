"""How good the ranker for everyone is where it did not learn: python benchmarks/ranker.py ACL_INDEX ACM_INDEX.

Two questions, on dev of both corpora, with the leak rules on. How good are trees that learnt from the other one only?
And how good are those that learnt from both, on citing papers that they did not see: the citing papers of data/acm are
dealt into FOLDS parts, and each part is ranked by trees that learnt from data/acl and the other parts. Candidates are
searched for once; docs/train.md has the commands that make the ranker itself.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from citerec.contexts.read import read_contexts
from citerec.files.hashing import hash_sample
from citerec.files.progress import no_progress
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.rerank.ltr import FEATURES, PORTABLE, LtrSettings, features_of, started
from citerec.systems import Recipe
from citerec.train.groups import Choice, citing_paper
from citerec.train.ranking import FOR_EVERYONE, Example, examples_of, learn_trees

DATA = Path(__file__).parents[2] / "shared" / "data"
DRAFT = DATA / "acm" / "contexts-dev-in-draft.jsonl"
RECIPE = Path(__file__).with_name("ranker.toml")
FOLDS = 4
LIMIT = 1400  # contexts of data/acl, as in docs/train.md
DEPTH, SEED = LtrSettings().depth, 0


class Ranked(NamedTuple):
    """The candidates of a context: features, which the draft cites, which are cited, and how many should be found."""

    context: Context
    features: Any
    own: Any
    cited: Any
    golds: int


def main() -> None:
    """Prints the rows of indexes/ranker/DATASHEET.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("acl", type=Path, help="index of data/acl, with vectors")
    parser.add_argument("acm", type=Path, help="index of data/acm, with vectors")
    given = parser.parse_args()
    acl = looked(given.acl, Choice(DATA / "acl" / "contexts-train.jsonl", limit=LIMIT).sides()[0])
    folds: list[list[Context]] = [[] for _ in range(FOLDS)]
    for context in read_contexts(DRAFT, cited=True):
        folds[fold_of(context)].append(context)
    acm = [looked(given.acm, fold) for fold in folds]
    draft, alone = (ranked(given.acm, DRAFT, in_draft=in_draft) for in_draft in (True, False))
    elsewhere = ranked(given.acl, DATA / "acl" / "contexts-dev.jsonl", in_draft=False)
    hybrid = scored_by(lambda one: one.features[:, list(FEATURES).index("fused")])
    show("data/acl, hybrid", elsewhere, hybrid(elsewhere))
    show("data/acl, without data/acl", elsewhere, scored_by(trees(acm))(elsewhere))
    without = scored_by(trees([acl]))
    parts = [scored_by(trees([acl, *(acm[other] for other in range(FOLDS) if other != fold)])) for fold in range(FOLDS)]
    for name, contexts in (("data/acm, no draft", alone), ("data/acm, in the draft", draft)):
        show(f"{name}, hybrid", contexts, hybrid(contexts))
        show(f"{name}, without data/acm", contexts, without(contexts))
        numbers = [fold_of(one.context) for one in contexts]
        by_fold = [part(contexts) for part in parts]
        show(f"{name}, other citing papers", contexts, [by_fold[fold][at] for at, fold in enumerate(numbers)])
        show(f"{name}, the same, again 0", contexts, [by_fold[fold][at] for at, fold in enumerate(numbers)], again=0.0)


def fold_of(context: Context) -> int:
    """The part in which the citing paper of a context is."""
    return hash_sample(0, "fold", citing_paper(context)) % FOLDS


def looked(index: Path, contexts: Sequence[Context]) -> list[Example]:
    """What trees learn from."""
    with Recommender.open(index, Recipe.load(RECIPE)) as recommender:
        return examples_of(recommender, contexts, DEPTH, SEED, portable=True)


def ranked(index: Path, file: Path, *, in_draft: bool) -> list[Ranked]:
    """The candidates of `hybrid`, as it is by default."""
    contexts = {one.context_id: one for one in read_contexts(file, cited=True)}
    searched = [one if in_draft else replace(one, cited_before=None) for one in contexts.values()]
    with Recommender.open(index, Recipe.load("hybrid")) as recommender:
        found = recommender.candidates(recommender.topics(searched), DEPTH)
        return [
            Ranked(
                contexts[topic.context.context_id],
                features_of(topic, candidates),
                np.nan_to_num(candidates.signal("draft_times")) > 0,
                np.isin(candidates.rows, candidates.papers.rows(topic.context.cited_ids)),
                len(topic.context.cited_ids),
            )
            for topic, candidates in found
        ]


def trees(parts: Sequence[Sequence[Example]]) -> Callable[[Ranked], Any]:
    """Scores by trees that learnt from some examples."""
    examples = list(itertools.chain.from_iterable(parts))
    model = learn_trees(examples, examples, FOR_EVERYONE, SEED, no_progress)
    columns = [list(FEATURES).index(name) for name in PORTABLE]
    weight = FOR_EVERYONE.start / FOR_EVERYONE.trust
    return lambda one: started(one.features, weight) + model.predict(one.features[:, columns])


def scored_by(score: Callable[[Ranked], Any]) -> Callable[[Sequence[Ranked]], list[Any]]:
    """The scores of all candidates of each context."""
    return lambda contexts: [score(one) for one in contexts]


def show(name: str, contexts: Sequence[Ranked], scores: Sequence[Any], again: float = LtrSettings().again) -> None:
    """Prints R@10, R@100 and MRR@10, and R@10 of what is cited for the first time and again."""
    rows = []
    for one, score in zip(contexts, scores, strict=True):
        added = again * one.own if "hybrid" not in name else 0
        found = np.flatnonzero(one.cited[np.argsort(-(score + added), kind="stable")])
        first = not set(one.context.cited_ids) & set(one.context.cited_before or ())
        rows.append((first, (found < 10).sum() / one.golds, (found < 100).sum() / one.golds, *found[:1]))
    means = [np.mean([row[at] for row in rows]) for at in (1, 2)]
    reciprocal = np.mean([1 / (row[3] + 1) if row[3:] and row[3] < 10 else 0.0 for row in rows])
    halves = {
        what: [row[1] for row in rows if row[0] == flag] for what, flag in (("first time", True), ("again", False))
    }
    apart = "".join(f"  {what} {np.mean(some):.3f} (n = {len(some)})" for what, some in halves.items() if some)
    print(f"{name}: n = {len(rows)}  R@10 {means[0]:.3f}  R@100 {means[1]:.3f}  MRR@10 {reciprocal:.3f}{apart}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
