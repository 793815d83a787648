"""citerec: citation recommendation, and the diagnostic sets that measure recommenders.

    import citerec

    index = citerec.Index.build("my.bib", "indexes/mine")
    hits = index.recommender().search("… was shown by <REF> …", k=10)
    results = citerec.evaluate("bm25", "demo/location")

Everything public is listed here; docs/python.md shows how to use it.
"""

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.version import __version__

if TYPE_CHECKING:
    from citerec.contexts.read import load_contexts as load_contexts
    from citerec.contexts.topic import LeakRules as LeakRules
    from citerec.contexts.topic import Topic as Topic
    from citerec.diagnostics.sets import load_set as load_set
    from citerec.evaluation.evaluate import evaluate as evaluate
    from citerec.evaluation.results import Results as Results
    from citerec.recommend import Index as Index
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
    from citerec.retrieve.base import Candidate as Candidate
    from citerec.retrieve.base import Candidates as Candidates
    from citerec.retrieve.base import Retriever as Retriever
    from citerec.retrieve.run import Run as Run
    from citerec.retrieve.run import SearchOptions as SearchOptions
    from citerec.systems import Recipe as Recipe
    from citerec.train.encoders import train_encoder as train_encoder
    from citerec.train.encoders import train_reranker as train_reranker
    from citerec.train.ranking import train_ltr as train_ltr
    from citerec.train.ranking import tune_fusion as tune_fusion

_IMPORT = re.compile(r"^    from (\S+) import (\w+) as \w+$", re.MULTILINE)
_PLACES = {name: module for module, name in _IMPORT.findall(Path(__file__).read_text(encoding="utf-8"))}
"""The public names, each with its module: those that a type checker imports above."""

__all__ = ["__version__", *_PLACES]  # the names are strings


def __getattr__(name: str) -> Any:
    # Import lazily, so that `import citerec` and `citerec --help` load neither Lucene nor pydantic.
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'citerec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
