"""The words by which the citation parser tells citations from similar text: vocabulary.toml."""

import functools
import tomllib
from importlib import resources


@functools.cache
def vocabulary(name: str) -> frozenset[str]:
    """A set of words by its name in the file, in lower case."""
    return frozenset(_vocabularies()[name].split())


@functools.cache
def _vocabularies() -> dict[str, str]:
    return tomllib.loads(resources.files("citerec.contexts").joinpath("vocabulary.toml").read_text(encoding="utf-8"))
