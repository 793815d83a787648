"""citerec: citation recommendation, and the diagnostic sets that measure recommenders.

The Python road is two lines:

    from citerec import Recommender
    hits = Recommender.open("indexes/acm").recommend("… was shown by <REF> …", k=10)
"""

from typing import TYPE_CHECKING, Any

from citerec.version import __version__

if TYPE_CHECKING:
    from citerec.recommend import Recommender as Recommender

__all__ = ["Recommender", "__version__"]


def __getattr__(name: str) -> Any:
    # Lazily, so that `import citerec` and `citerec --help` start neither Lucene nor pydantic.
    if name == "Recommender":
        from citerec.recommend import Recommender

        return Recommender
    raise AttributeError(f"module 'citerec' has no attribute {name!r}")
