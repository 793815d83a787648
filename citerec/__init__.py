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
    from citerec.contexts.topic import LeakRules as LeakRules, Topic as Topic
    from citerec.diagnostics.sets import load_set as load_set
    from citerec.evaluation.evaluate import evaluate as evaluate
    from citerec.evaluation.results import Results as Results
    from citerec.recommend import Index as Index, Recommender as Recommender
    from citerec.records import Answer as Answer, Context as Context, Filters as Filters, Hit as Hit, Paper as Paper
    from citerec.rerank.base import RERANKERS as RERANKERS, Reranker as Reranker, reranked as reranked
    from citerec.retrieve.base import (
        RETRIEVERS as RETRIEVERS,
        Candidate as Candidate,
        Candidates as Candidates,
        Retriever as Retriever,
    )
    from citerec.retrieve.run import Run as Run, SearchOptions as SearchOptions
    from citerec.systems import Recipe as Recipe
    from citerec.train.encoders import train_encoder as train_encoder, train_reranker as train_reranker
    from citerec.train.ranking import train_ltr as train_ltr, tune_fusion as tune_fusion

_IMPORTS = re.findall(r"(?m)^    from (\S+) import (\([^)]*\)|.+)$", Path(__file__).read_text(encoding="utf-8"))
_PLACES = {name: module for module, names in _IMPORTS for name in re.findall(r"\w+(?= as)", names)}
"""The public names, each with its module: those that a type checker imports above."""

__all__ = ["__version__", *_PLACES]  # the names are strings


def __getattr__(name: str) -> Any:
    # Import lazily, so that `import citerec` and `citerec --help` load neither Lucene nor pydantic.
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'citerec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
