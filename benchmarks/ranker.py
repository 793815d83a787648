"""How good the pretrained ranker is on what it did not see: python benchmarks/ranker.py ACL ACM ACL2 ACM2.

The indexes are of data/acl and data/acm, the first two with MiniLM's vectors, the others with those of static
encoders that did not see the corpus in question: `citerec train static` on the others. Trees learn from both kinds of
vectors, and are measured on each. Two questions, on dev of both corpora, with the leak rules on. How good are trees
that learnt from the other corpus only? And how good are those that learnt from both, on citing papers that they did
not see: the citing papers of data/acm are dealt into FOLDS parts, and each part is ranked by trees that learnt from
data/acl and the other parts. Candidates are searched for once; docs/train.md has the commands that make the ranker
itself.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from citerec.contexts.read import read_contexts
from citerec.files.progress import no_progress
from citerec.files.resume import hash_sample
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.rerank.ltr import FEATURES, PORTABLE, LtrSettings, features_of, started
from citerec.systems import Recipe
from citerec.train.groups import Choice, citing_paper
from citerec.train.ranking import PRETRAINED, Example, examples_of, learn_trees

DATA = Path(__file__).parents[2] / "shared" / "data"
DRAFT = DATA / "acm" / "contexts-dev-in-draft.jsonl"
RECIPE = Path(__file__).with_name("ranker.toml")
FOLDS = 4
KINDS = ("MiniLM", "static")
LIMIT = 4000  # contexts of data/acl, as in docs/train.md
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
    parser.add_argument("indexes", type=Path, nargs=4, metavar="INDEX", help="data/acl, data/acm; the same, static")
    of_acl, of_acm = (parser.parse_args().indexes[place::2] for place in (0, 1))
    contexts = Choice(DATA / "acl" / "contexts-train.jsonl", limit=LIMIT).sides()[0]
    acl = [looked(index, contexts) for index in of_acl]
    folds: list[list[Context]] = [[] for _ in range(FOLDS)]
    for context in read_contexts(DRAFT, cited=True):
        folds[fold_of(context)].append(context)
    acm = [[looked(index, fold) for index in of_acm] for fold in folds]
    others = [[*acl, *itertools.chain.from_iterable(acm[:fold] + acm[fold + 1 :])] for fold in range(FOLDS)]
    without_acl, without_acm, *parts = Parallel(-1)(
        delayed(learnt)(part) for part in ([*itertools.chain.from_iterable(acm)], acl, *others)
    )
    for kind, acl_index, acm_index in zip(KINDS, of_acl, of_acm, strict=True):
        elsewhere = ranked(acl_index, DATA / "acl" / "contexts-dev.jsonl", in_draft=False)
        show(f"{kind}, data/acl, hybrid", elsewhere, hybrid(elsewhere))
        show(f"{kind}, data/acl, without data/acl", elsewhere, scored_by(trees(without_acl))(elsewhere))
        for name, in_draft in (("data/acm, no draft", False), ("data/acm, in the draft", True)):
            contexts_ranked = ranked(acm_index, DRAFT, in_draft=in_draft)
            show(f"{kind}, {name}, hybrid", contexts_ranked, hybrid(contexts_ranked))
            show(f"{kind}, {name}, without data/acm", contexts_ranked, scored_by(trees(without_acm))(contexts_ranked))
            numbers = [fold_of(one.context) for one in contexts_ranked]
            by_fold = [scored_by(trees(part))(contexts_ranked) for part in parts]
            scores = [by_fold[fold][at] for at, fold in enumerate(numbers)]
            show(f"{kind}, {name}, other citing papers", contexts_ranked, scores)
            show(f"{kind}, {name}, the same, again 0", contexts_ranked, scores, again=0.0)


def hybrid(contexts: Sequence[Ranked]) -> list[Any]:
    """The scores of `hybrid`."""
    return [one.features[:, list(FEATURES).index("fused")] for one in contexts]


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


def learnt(parts: Sequence[Sequence[Example]]) -> str:
    """Trees that learnt from some examples, as LightGBM writes them."""
    examples = list(itertools.chain.from_iterable(parts))
    return str(learn_trees(examples, examples[:1], PRETRAINED, SEED, no_progress).model_to_string())


def trees(model: str) -> Callable[[Ranked], Any]:
    """Scores by trees."""
    import lightgbm

    booster = lightgbm.Booster(model_str=model)
    columns = [list(FEATURES).index(name) for name in PORTABLE]
    weight = PRETRAINED.start / PRETRAINED.trust
    return lambda one: started(one.features, weight) + booster.predict(one.features[:, columns])


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
