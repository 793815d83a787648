"""What the defaults are worth on contexts that they were not chosen on. Needs ../shared/data.

    python benchmarks/heldout.py --index INDEX --contexts FILE [--system hybrid] [--work FOLDER]

The contexts are parted in two halves by citing paper (`citerec contexts split`, seed 0). The settings are chosen anew
on one half, one after the other, by recall@10; both these and the defaults are measured on the other half. The defaults
were once chosen on the whole file, so their own figures there are those of a set that was tuned on; the settings chosen
here have never seen the half that they are measured on.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from citerec import Context, Recipe, Recommender, evaluate, load_contexts
from citerec.contexts.provenance import split_contexts

GRIDS = {
    "lucene.bm25.k1": (0.9, 1.2, 1.6),
    "lucene.bm25.b": (0.4, 0.6, 0.75, 0.9),
    "lucene.weights.title": (0.0, 0.2, 0.35, 0.6),
    "lucene.neighbours": (0.0, 0.1, 0.25, 0.4),
    "lucene.weights.citances": (1.2, 1.8, 2.6),
    "lucene.citance_decay": (0.0, 0.3, 0.5),
    "retrievers.dense": (0.7, 1.0, 1.4),
    "lucene.citing_title": (0.0, 0.25, 0.5),
    "fusion.feedback": (0, 5),
}
"""What is chosen, in this order, among these values. The starting point is the first value of each."""


def recall_at_10(index: Path, recipe: Recipe, contexts: Iterable[Context]) -> float:
    """The mean share of cited papers among the first ten."""
    listed = list(contexts)
    with Recommender.open(index, recipe) as recommender:
        run = recommender.search_many(listed, 10)
    shares = [len(set(run[one.context_id]) & set(one.cited_ids)) / len(one.cited_ids) for one in listed]
    return sum(shares) / len(shares)


def tuned(index: Path, system: str, contexts: list[Context]) -> tuple[list[str], float]:
    """Assignments of settings that are best on some contexts, and what they reach there."""
    known = [key for key in GRIDS if not key.startswith(("retrievers.", "fusion.")) or system == "hybrid"]
    if not Recommender.open(index, "bm25+citances").manifest.counts.citances:
        known = [key for key in known if "citance" not in key]
    chosen = {key: GRIDS[key][0] for key in known}
    best = 0.0
    for key in known:
        for value in GRIDS[key]:
            tried = {**chosen, key: value}
            recipe = Recipe.load(system, [f"{name}={number}" for name, number in tried.items()])
            if (reached := recall_at_10(index, recipe, contexts)) > best:
                best, chosen = reached, tried
        print(f"{key} = {chosen[key]}: recall@10 {best:.4f} on the half that is tuned on", flush=True)
    return [f"{name}={number}" for name, number in chosen.items()], best


def main() -> None:
    """Prints both, with intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--contexts", type=Path, required=True)
    parser.add_argument("--system", default="hybrid")
    parser.add_argument("--work", type=Path, default=Path("heldout"))
    parser.add_argument("--limit", type=int, help="contexts to tune on, at most; by default all of one half")
    arguments = parser.parse_args()
    split_contexts(arguments.contexts, arguments.work, dev=0.0, test=0.5, seed=0)
    to_tune, held_out = (load_contexts(arguments.work / f"{name}.jsonl") for name in ("train", "test"))
    tuned_on = list(to_tune)[: arguments.limit]
    found, reached = tuned(arguments.index, arguments.system, tuned_on)
    recipe = arguments.work / "tuned.toml"
    Recipe.load(arguments.system, found).write(recipe, f"Chosen on {len(tuned_on)} contexts: {reached:.4f}.")
    systems = {"default": arguments.system, "tuned": str(recipe), "bm25": "bm25"}
    results = evaluate(systems, list(held_out), index=arguments.index, metrics="recall@10,recall@100,mrr@10")
    for name, system in results.systems.items():
        scores = system.overall
        cells = (
            f"{value:.3f} [{scores.ci[metric][0]:.3f} {scores.ci[metric][1]:.3f}]"
            for metric, value in scores.values.items()
        )
        print(f"{name:8} n {scores.n}  " + "  ".join(cells))


if __name__ == "__main__":
    main()
