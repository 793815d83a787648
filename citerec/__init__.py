"""citerec: citation recommendation, and the diagnostic sets that measure recommenders.

    import citerec

    index = citerec.Index.build("my.bib", "indexes/mine")
    hits = index.recommender().search("… was shown by <REF> …", k=10)
    results = citerec.evaluate("bm25", "demo/location")

Everything public is listed here; docs/python.md shows how to use it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from citerec.version import __version__

if TYPE_CHECKING:
    from citerec.contexts.leaks import LeakRules as LeakRules
    from citerec.contexts.read import load_contexts as load_contexts
    from citerec.contexts.topic import Topic as Topic
    from citerec.diagnostics.sets import load_set as load_set
    from citerec.evaluation.evaluate import evaluate as evaluate
    from citerec.evaluation.results import Results as Results
    from citerec.index.candidates import Candidate as Candidate
    from citerec.index.candidates import Candidates as Candidates
    from citerec.library import Index as Index
    from citerec.recommend import Recommender as Recommender
    from citerec.records import Answer as Answer
    from citerec.records import Context as Context
    from citerec.records import Filters as Filters
    from citerec.records import Hit as Hit
    from citerec.records import Paper as Paper
    from citerec.rerank.base import RERANKERS as RERANKERS
    from citerec.rerank.base import Reranker as Reranker
    from citerec.rerank.base import reranked as reranked
    from citerec.retrieve.base import RETRIEVERS as RETRIEVERS
    from citerec.retrieve.base import Retriever as Retriever
    from citerec.retrieve.run import Run as Run
    from citerec.retrieve.run import SearchOptions as SearchOptions
    from citerec.systems import Recipe as Recipe
    from citerec.train.dense import train_encoder as train_encoder
    from citerec.train.fusion import tune_fusion as tune_fusion
    from citerec.train.ltr import train_ltr as train_ltr
    from citerec.train.reranker import train_reranker as train_reranker

_PLACES = {
    "Answer": "citerec.records",
    "Candidate": "citerec.index.candidates",
    "Candidates": "citerec.index.candidates",
    "Context": "citerec.records",
    "Filters": "citerec.records",
    "Hit": "citerec.records",
    "Index": "citerec.library",
    "LeakRules": "citerec.contexts.leaks",
    "Paper": "citerec.records",
    "RERANKERS": "citerec.rerank.base",
    "RETRIEVERS": "citerec.retrieve.base",
    "Recipe": "citerec.systems",
    "Recommender": "citerec.recommend",
    "Reranker": "citerec.rerank.base",
    "Results": "citerec.evaluation.results",
    "Retriever": "citerec.retrieve.base",
    "Run": "citerec.retrieve.run",
    "SearchOptions": "citerec.retrieve.run",
    "Topic": "citerec.contexts.topic",
    "evaluate": "citerec.evaluation.evaluate",
    "load_contexts": "citerec.contexts.read",
    "load_set": "citerec.diagnostics.sets",
    "train_encoder": "citerec.train.dense",
    "train_ltr": "citerec.train.ltr",
    "reranked": "citerec.rerank.base",
    "train_reranker": "citerec.train.reranker",
    "tune_fusion": "citerec.train.fusion",
}

__all__ = ["__version__", *_PLACES]  # the names are strings


def __getattr__(name: str) -> Any:
    # Import lazily, so that `import citerec` and `citerec --help` load neither Lucene nor pydantic.
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'citerec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
