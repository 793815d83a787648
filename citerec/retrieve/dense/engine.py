"""FAISS itself, loaded when it is needed."""

from typing import Any

from citerec.errors import BuildError


def faiss_module() -> Any:
    """The module `faiss`, of `faiss-cpu` or `faiss-gpu-cu12`: its own type stubs know not half of it.

    Raises:
        BuildError: It is not installed.
    """
    try:
        import faiss
    except ImportError as error:
        raise BuildError("FAISS is not installed", "pip install 'citerec[cpu]', or 'citerec[gpu]'") from error
    return faiss
