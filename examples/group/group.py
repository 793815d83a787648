"""A group's own retriever, reranker, family and metric. On the command line: `citerec … --plugin group.py`."""

from citerec import RERANKERS, RETRIEVERS, Candidate, Reranker, Retriever, reranked
from citerec.diagnostics.families import FAMILIES, Family
from citerec.evaluation.metrics import MEASURES

MEASURES["first"] = lambda gold: (gold.ranks == 1).any(axis=1)  # whether the first paper is right


@RETRIEVERS.register
class TitleWords(Retriever):
    """Papers by the share of their title's words that the sentence has."""

    name, label = "title-words", "words of the title"

    @classmethod
    def open(cls, index, settings):
        retriever = cls()
        retriever.titles = {paper.paper_id: set(paper.title.casefold().split()) for paper in index.store.all_papers()}
        return retriever

    def search(self, topic, k, filters=None, prepared=None):
        words = set(topic.text.casefold().split())
        shares = {paper_id: len(words & title) / max(1, len(title)) for paper_id, title in self.titles.items()}
        best = sorted((paper_id for paper_id in shares if shares[paper_id]), key=lambda one: -shares[one])
        return [Candidate(paper_id, shares[paper_id]) for paper_id in best[:k]]


@RERANKERS.register
class ShortFirst(Reranker):
    """Of papers that are as good, those with a short title first."""

    name, depth = "short-first", 20

    @classmethod
    def open(cls, index, folder, settings):
        return cls()

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
