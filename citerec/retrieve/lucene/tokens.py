"""Texts analysed by Lucene's analyzer, many at once."""

import functools
from collections.abc import Sequence
from typing import Any

from citerec.retrieve.lucene.fields import analyzer
from citerec.retrieve.lucene.jvm import java_class, java_text

_BETWEEN = "\n"  # never part of a term: white space ends words


def analyzed(texts: Sequence[str]) -> list[list[str]]:
    """The terms of each text, in order, as Lucene indexes them. Call it within `java_failures`."""
    if not texts:
        return []
    listed = java_class("java.util.Arrays").stream(java_class("java.lang.String[]")([*map(java_text, texts)]))
    joined = listed.map(_analyze()).collect(java_class("java.util.stream.Collectors").joining(_BETWEEN))
    return [line.split(" ") if line else [] for line in str(joined).split(_BETWEEN)]


@functools.cache
def _analyze() -> Any:
    """A Java function from a text to its terms as one text: one call for many texts, instead of one for each term."""
    handles, types = java_class("java.lang.invoke.MethodHandles"), java_class("java.lang.invoke.MethodType")
    text, listed, anything = map(java_class, ("java.lang.String", "java.util.List", "java.lang.Object"))
    sequence, several = java_class("java.lang.CharSequence"), java_class("java.lang.Iterable")
    lookup = handles.publicLookup()
    to_terms = lookup.findStatic(
        java_class("io.anserini.analysis.AnalyzerUtils"),
        "analyze",
        types.methodType(listed, java_class("org.apache.lucene.analysis.Analyzer"), text),
    )
    join = handles.insertArguments(
        lookup.findStatic(text, "join", types.methodType(text, sequence, several)),
        0,
        java_class("java.lang.String")(" "),
    )
    to_terms = handles.insertArguments(to_terms, 0, analyzer())
    whole = handles.filterReturnValue(to_terms, join.asType(types.methodType(text, listed)))
    whole = whole.asType(types.methodType(anything, anything))
    proxies = java_class("java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(java_class("java.util.function.Function"), whole)
