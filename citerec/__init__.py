"""citerec: citation recommendation, and the diagnostic sets that measure recommenders.

The Python road is short:

    import citerec
    hits = citerec.Recommender.open("indexes/acm").recommend("… was shown by <REF> …", k=10)
    results = citerec.evaluate("bm25", "demo/location")
"""

import importlib
from typing import TYPE_CHECKING, Any

from citerec.version import __version__

if TYPE_CHECKING:
    from citerec.evaluation.evaluate import evaluate as evaluate
    from citerec.evaluation.results import Results as Results
    from citerec.recommend import Recommender as Recommender

_PLACES = {
    "Recommender": "citerec.recommend",
    "Results": "citerec.evaluation.results",
    "evaluate": "citerec.evaluation.evaluate",
}

__all__ = ["Recommender", "Results", "__version__", "evaluate"]


def __getattr__(name: str) -> Any:
    # Lazily, so that `import citerec` and `citerec --help` start neither Lucene nor pydantic.
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'citerec' has no attribute {name!r}")
