"""The road from a sentence to ranked papers: query, retrieve, fill in the records."""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from citerec.contexts.learnt import Learnt
from citerec.contexts.query import Query, query_of
from citerec.contexts.read import contexts_of_text
from citerec.corpus.store import PaperStore
from citerec.errors import QueryError
from citerec.records import MARKER, Citance, Context, Hit, Paper, citing_name
from citerec.rerank.reranker import Asked, Reranker, citance_texts
from citerec.rerank.systems import best_system, learnt_by_system, open_rerankers
from citerec.retrieve.hybrid import HybridRetriever
from citerec.retrieve.index import open_store, recover
from citerec.retrieve.lucene import answered_in_threads
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.protocol import NO_FILTERS, Candidate, Filters
from citerec.retrieve.validate import check_filters, checked_k
from citerec.settings import RetrievalSettings, find_recipe

_PART = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """What is recommended for one context."""

    context: Context
    hits: tuple[Hit, ...]


class Recommender:
    """Recommends papers to cite. Safe to call from several threads.

    Args:
        retriever: Finds candidates.
        rerankers: Rank the candidates anew, one after the other.
        store: Has the full records.
        manifest: What the index holds.
        path: Where it lies.
    """

    def __init__(
        self,
        retriever: HybridRetriever,
        rerankers: Sequence[Reranker],
        store: PaperStore,
        manifest: Manifest,
        path: Path,
    ) -> None:
        self._retriever = retriever
        self._rerankers = rerankers
        self.store = store
        self.manifest = manifest
        self.path = path

    @property
    def settings(self) -> RetrievalSettings:
        """How candidates are found and scored."""
        return self._retriever.settings

    @property
    def learnt(self) -> Learnt:
        """What its trained parts learnt from, and were tuned on."""
        return learnt_by_system(self.path, self.settings)

    @classmethod
    def open(cls, index: str | Path, settings: RetrievalSettings | None = None) -> Self:
        """Opens an index directory.

        Args:
            index: The directory.
            settings: How to find and rank; the best that the index supports by default (`best_system`).

        Raises:
            IndexUnusableError: There is none, or it is half built, broken, or of another version.
            SettingsError: The settings ask for what the index has not.
            JavaError: There is no Java to run Lucene on.
        """
        path = Path(index)
        recover(path)
        manifest = Manifest.read(path)
        settings = settings or RetrievalSettings.load(find_recipe(best_system(path)))
        rerankers = open_rerankers(path, settings)
        return cls(HybridRetriever.open(path, settings), rerankers, open_store(path), manifest, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the index's files."""
        self._retriever.close()
        self.store.close()

    def recommend(
        self,
        sentence: str | Context,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        sort: str = "relevance",
        explain: bool = False,
    ) -> list[Hit]:
        """The k best papers to cite at `<REF>`.

        Args:
            sentence: A text with at most one `<REF>`, or a context. Without `<REF>` all of it is the query.
            k: How many papers, from 1 to the size of the index; 10 by default.
            filters: Which papers may be recommended.
            sort: One of `citerec.retrieve.lucene_queries.SORTS`.
            explain: Whether to say which words matched, in which field.

        Returns:
            Hits, best first; fewer than k where fewer papers share a word with the sentence and pass the filters.

        Raises:
            QueryError: The sentence holds no word to search for, too many words, or several `<REF>`.
            FilterError: k or a filter is out of range, or names a field that the index lacks.
        """
        if isinstance(sentence, str):
            contexts = contexts_of_text(sentence)
            if len(contexts) > 1:
                raise QueryError(f"the text holds {len(contexts)} {MARKER}", "Call recommend_text, which answers each.")
            sentence = contexts[0]
        k = checked_k(k, self.manifest)
        check_filters(filters, self.store, self._retriever.matches_nothing)
        asked = self.asked([sentence], neighbours=True)[0]
        candidates = self._candidates(asked, k, _with_leak_rules(filters, asked), sort, explain=explain)
        return self._hits(asked.query, candidates, explain=explain)

    def recommend_text(
        self,
        text: str,
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        sort: str = "relevance",
        explain: bool = False,
        citing_id: str | None = None,
        citing_title: str | None = None,
    ) -> list[Answer]:
        """An answer for each `<REF>` of a running text, in order; other arguments and errors as for `recommend`.

        Args:
            text: What is written.
            k: How many papers each.
            filters: Which papers may be recommended.
            sort: Their order.
            explain: Whether to say what speaks for them.
            citing_id: The paper that is written, where it is in the index; it is never recommended.
            citing_title: Its title, where it is not: systems with vectors search by it too.
        """
        contexts = (
            replace(context, citing_id=citing_id, citing_title=citing_title) for context in contexts_of_text(text)
        )
        return [
            Answer(context, tuple(self.recommend(context, k, filters, sort=sort, explain=explain)))
            for context in contexts
        ]

    def recommend_many(
        self,
        contexts: Iterable[Context],
        k: int | None = None,
        filters: Filters = NO_FILTERS,
        *,
        exclude_citing: bool = True,
        as_of_year: bool = True,
        neighbours: bool = True,
        explain: bool = False,
        threads: int = 2,
        latencies: list[float] | None = None,
    ) -> Iterator[tuple[Context, list[Candidate]]]:
        """Candidates for many contexts, in order, several at once; ids and scores only.

        A context without a word to search for finds nothing.

        Args:
            contexts: The contexts; read as they are needed.
            k: How many candidates each, from 1 to the size of the index; 10 by default.
            filters: Which papers may be recommended.
            exclude_citing: Leave out the citing paper, and what it wrote about others.
            as_of_year: Leave out what is newer than the citing paper, where its year is known.
            neighbours: Whether the sentences before and after take part in the query.
            explain: Whether candidates are to say what their scores are made of.
            threads: How many searches run at once.
            latencies: Takes the seconds that each search took, in no order.

        Raises:
            FilterError: k or a filter is out of range, or names a field that the index lacks.
        """
        k = checked_k(k, self.manifest)
        check_filters(filters, self.store, self._retriever.matches_nothing)
        # A part at a time: a thread pool would take in all of them at once.
        remaining = iter(contexts)
        while part := list(itertools.islice(remaining, _PART)):
            begun = time.perf_counter()
            questions = self.asked(part, neighbours=neighbours)
            vectors = self._retriever.vectors_of([asked.query for asked in questions])
            share = (time.perf_counter() - begun) / len(part)

            def answer(task: tuple[Asked, Any], share: float = share) -> list[Candidate]:
                asked, vector = task
                begun = time.perf_counter()
                fair = _with_leak_rules(filters, asked, exclude_citing=exclude_citing, as_of_year=as_of_year)
                try:
                    return self._candidates(asked, k, fair, vector=vector, explain=explain)
                except QueryError:
                    return []
                finally:
                    if latencies is not None:
                        latencies.append(share + time.perf_counter() - begun)

            yield from zip(
                part, answered_in_threads(answer, zip(questions, vectors, strict=True), threads), strict=True
            )

    def hits(
        self, context: Context, candidates: Sequence[Candidate], *, explain: bool = False, neighbours: bool = True
    ) -> list[Hit]:
        """Candidates with their full records; `neighbours` as they were found with."""
        return self._hits(self.asked([context], neighbours=neighbours)[0].query, candidates, explain=explain)

    def titles(self, hits: Iterable[Hit]) -> dict[str, str]:
        """Titles of the papers whose citing sentences speak for some hits, by id."""
        citing = {hit.citance.citing_id for hit in hits if hit.citance}
        return {paper_id: paper.title for paper_id, paper in self.store.papers(citing).items()}

    def nothing_passes(self, filters: Filters) -> bool:
        """Whether the filters leave no paper of the index."""
        return self._retriever.matches_nothing(filters)

    def asked(self, contexts: Sequence[Context], *, neighbours: bool = True) -> list[Asked]:
        """Contexts with their queries, and their citing papers where the index has them."""
        citing = self.store.papers({context.citing_id for context in contexts if context.citing_id})
        found = [citing.get(context.citing_id or "") for context in contexts]
        return [
            Asked(context, query_of(context, neighbours=neighbours, citing_title=title), paper)
            for context, paper in zip(contexts, found, strict=True)
            for title in [(paper.title if paper else context.citing_title) or ""]
        ]

    def _candidates(
        self,
        asked: Asked,
        k: int,
        filters: Filters,
        sort: str = "relevance",
        *,
        vector: Any = None,
        explain: bool = False,
    ) -> list[Candidate]:
        rerankers = self._rerankers if sort == "relevance" else ()
        # What is ranked anew must not depend on how many are asked for.
        depth = max([k, *(reranker.depth for reranker in rerankers)])
        candidates = self._retriever.search(asked.query, depth, filters, sort, vector, explain=explain)
        for reranker in rerankers:
            head = candidates[: reranker.depth]
            papers = self.store.papers(candidate.paper_id for candidate in head)
            citances = citance_texts(self.store, head) if reranker.reads_citances else {}
            candidates = reranker.rerank(asked, candidates, papers, citances, explain=explain)
        return candidates[:k]

    def _hits(self, query: Query, candidates: Sequence[Candidate], *, explain: bool) -> list[Hit]:
        papers = self.store.papers(candidate.paper_id for candidate in candidates)
        return [
            Hit(
                rank=rank,
                score=candidate.score,
                paper=papers.get(candidate.paper_id) or Paper(candidate.paper_id),
                citance=self._citance(candidate),
                matches=self._retriever.explain(query, candidate) if explain else (),
                reasons=candidate.reasons,
            )
            for rank, candidate in enumerate(candidates, 1)
        ]

    def _citance(self, candidate: Candidate) -> Citance | None:
        if candidate.citance is None:
            return None
        citing_id, position, score = candidate.citance
        return Citance(citing_id, self.store.citances(candidate.paper_id, citing_id)[position], score)


def _with_leak_rules(
    filters: Filters, asked: Asked, *, exclude_citing: bool = True, as_of_year: bool = True
) -> Filters:
    """The filters, and what a fair answer must not know: the citing paper, and what came after it."""
    name = citing_name(asked.context.citing_id, asked.context.citing_key) if exclude_citing else None
    years = [year for year in (filters.as_of_year, asked.citing_year if as_of_year else None) if year is not None]
    return replace(filters, citing_id=name or filters.citing_id, as_of_year=min(years, default=None))
