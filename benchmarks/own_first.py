"""Measures what it does to the first place that papers of the bibliography come first.

    python benchmarks/own_first.py INDEX [--system hybrid]

INDEX is one of data/acm with vectors. The contexts are those of data/acm dev in the draft. The ranker that comes with
citerec learned from them, so the default is a system without it.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from citerec.contexts.read import read_contexts
from citerec.drafts.bibliography import read_cited
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.retrieve.opened import papers_of_index

DATA = Path(__file__).parents[2] / "shared" / "data"
DEPTH, SHOWN = 50, 5
BESTS = (0, 3, 5, 10, 50)

Library = Callable[[Context], set[str]]


def own_first(ranked: list[str], own: set[str], best: int) -> list[str]:
    """A list in which papers of the library that are among so many best come first."""
    first = [paper_id for paper_id in ranked[:best] if paper_id in own]
    return first + [paper_id for paper_id in ranked if paper_id not in first]


def main() -> None:
    """Prints a line for each library and for each number of best papers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--system", default="hybrid")
    given = parser.parse_args()
    contexts = list(read_contexts(DATA / "acm" / "contexts-dev-in-draft.jsonl", cited=True))
    with Recommender.open(given.index, given.system) as system:
        found = system.candidates(system.topics(contexts), DEPTH)
        lists = {topic.context.context_id: candidates.paper_ids() for topic, candidates in found}
        entries = read_cited(DATA / "bibtex" / "sigir.bib")
        sigir = set(papers_of_index(entries, given.index, system.store).values())

    cited: dict[str, set[str]] = defaultdict(set)
    for context in contexts:
        cited[str(context.citing_id or context.citing_key)].update(context.cited_ids)
    everything = set().union(*cited.values())
    libraries: dict[str, Library] = {
        "all that the paper cites": lambda context: cited[str(context.citing_id or context.citing_key)],
        "all that any paper cites": lambda _: everything,
        "what it has cited before": lambda context: set(context.cited_before or ()),
        "sigir.bib": lambda _: sigir,
    }
    print(
        f"{given.system}, {len(contexts)} contexts: first place right (recall@{SHOWN}), own papers of the best N first"
    )
    print(f"{'library':26} {'has it':>6} {'papers':>6} " + " ".join(f"{f'N={best}':>14}" for best in BESTS))
    for name, library in libraries.items():
        sizes = sorted(len(library(context)) for context in contexts)
        has = sum(bool(library(context) & set(context.cited_ids)) for context in contexts) / len(contexts)
        cells = []
        for best in BESTS:
            shown = [(own_first(lists[one.context_id], library(one), best), set(one.cited_ids)) for one in contexts]
            first = sum(ranked[:1] != [] and ranked[0] in right for ranked, right in shown) / len(contexts)
            recall = sum(len(right.intersection(ranked[:SHOWN])) / len(right) for ranked, right in shown) / len(
                contexts
            )
            cells.append(f"{first:.3f} ({recall:.3f})")
        print(f"{name:26} {has:6.2f} {sizes[len(sizes) // 2]:6} " + " ".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
