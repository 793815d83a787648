"""A group's own retriever, reranker, family and metric, and their table for a paper.

On the command line: `citerec … --plugin group.py`. As a program: `python group.py BEIR_FOLDER OUT_FOLDER`.
"""

import sys
from pathlib import Path

from citerec import RERANKERS, RETRIEVERS, Candidate, Index, Reranker, Retriever, evaluate, reranked
from citerec.diagnostics.families import FAMILIES, Family
from citerec.evaluation.metrics import MEASURES

MEASURES["first"] = lambda gold: (gold.ranks == 1).any(axis=1)  # whether the first paper is right


@RETRIEVERS.register
class TitleWords(Retriever):
    """Papers by the share of their title's words that the sentence has."""

    name, label = "title-words", "words of the title"

    def __init__(self, index, settings):
        self.titles = {paper.paper_id: set(paper.title.casefold().split()) for paper in index.store.all_papers()}

    def search(self, topic, k, filters=None, prepared=None):
        words = set(topic.text.casefold().split())
        shares = {paper_id: len(words & title) / max(1, len(title)) for paper_id, title in self.titles.items()}
        best = sorted((paper_id for paper_id in shares if shares[paper_id]), key=lambda one: -shares[one])
        return [Candidate(paper_id, shares[paper_id]) for paper_id in best[:k]]


@RERANKERS.register
class ShortFirst(Reranker):
    """Of papers that are as good, those with a short title first."""

    name, depth = "short-first", 20

    def rerank(self, topic, candidates, papers, citances, *, explain=0):
        scores = [one.score - 0.01 * len(papers[one.paper_id].title.split()) for one in candidates[: self.depth]]
        return reranked(candidates, scores, self.name)


FAMILIES.register(
    Family(
        name="together",
        title="Papers cited together",
        classes=lambda _: ("one", "several"),
        class_of=lambda facts: "one" if len(facts.context.cited_ids) == 1 else "several",
    )
)


def measure(data, out):
    """Measures the parts beside BM25 on data in BEIR's form, and writes results, a page and a LaTeX table."""
    index, systems = Index.build(data, out / "index"), ["bm25", "title-words", "bm25+short-first"]
    results = evaluate(systems, data, index=index, families="together", metrics="first,recall@10,ndcg_cut_10,P_10")
    results.write(out / "results")
    (out / "table.tex").write_text(results.to_latex(), encoding="utf-8")


if __name__ == "__main__":
    measure(Path(sys.argv[1]), Path(sys.argv[2]))
