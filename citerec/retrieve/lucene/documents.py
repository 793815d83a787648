"""The documents of a Lucene index as arrays: hits of a search, and ids by document."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.retrieve.lucene.fields import CITING, ID, POSITION, open_directory
from citerec.retrieve.lucene.jvm import java_class

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PART = 1 << 16


def hits_of(found: Any) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
    """The documents and the scores of hits, Java's array of `ScoreDoc`, (hits,) each.

    Reading a thousand hits one by one takes longer than finding them, so Java makes an array of each.
    """
    import numpy as np

    of_int, of_double = _hit_parts()
    stream = java_class("java.util.Arrays").stream
    documents = np.array(stream(found).mapToInt(of_int).toArray(), np.int64)
    return documents, np.array(stream(found).mapToDouble(of_double).toArray(), np.float64)


@functools.cache
def _hit_parts() -> tuple[Any, Any]:
    """Java functions from a hit to its document and its score."""
    hit, any_object = java_class("org.apache.lucene.search.ScoreDoc"), java_class("java.lang.Object")
    of_type = java_class("java.lang.invoke.MethodType").methodType
    found = []
    for name, field, result, kind in (("doc", "int", "int", "Int"), ("score", "float", "double", "Double")):
        getter = _lookup().findGetter(hit, name, _primitive(field))
        function = java_class(f"java.util.function.To{kind}Function")
        found.append(_proxied(function, getter.asType(of_type(_primitive(result), any_object))))
    return found[0], found[1]


def citing_sentence(reader: Any, document: int) -> tuple[str, int]:
    """The citing paper of a document of citances, and the position of the sentence among those of its paper."""
    leaves = reader.leaves()
    leaf = leaves.get(java_class("org.apache.lucene.index.ReaderUtil").subIndex(document, leaves))
    found = []
    for values in (leaf.reader().getBinaryDocValues(CITING), leaf.reader().getNumericDocValues(POSITION)):
        values.advanceExact(document - leaf.docBase)
        found.append(values)
    return str(found[0].binaryValue().utf8ToString()), int(found[1].longValue())


def document_ids(path: Path) -> "Iterator[list[str]]":
    """The paper ids of the documents of a Lucene index, in the order of its documents, part by part.

    Every document has an id, and no id has white space.
    """
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(open_directory(path))
    try:
        for leaf in reader.leaves():
            id_of = _id_of(leaf.reader().getBinaryDocValues(ID))
            count = int(leaf.reader().maxDoc())
            for begin in range(0, count, _PART):
                numbers = java_class("java.util.stream.IntStream").range(begin, min(begin + _PART, count))
                joined = numbers.mapToObj(id_of).collect(java_class("java.util.stream.Collectors").joining(" "))
                yield str(joined).split()
    finally:
        reader.close()


def _id_of(values: Any) -> Any:
    """A Java function from a document to its id; documents must be asked for in order."""
    doc_values = java_class("org.apache.lucene.index.BinaryDocValues")
    bytes_ref, text = java_class("org.apache.lucene.util.BytesRef"), java_class("java.lang.String")
    handles = java_class("java.lang.invoke.MethodHandles")
    of_type = java_class("java.lang.invoke.MethodType").methodType
    number, nothing = _primitive("int"), _primitive("void")
    move = _lookup().findVirtual(doc_values, "advanceExact", of_type(_primitive("boolean"), number)).bindTo(values)
    value = _lookup().findVirtual(doc_values, "binaryValue", of_type(bytes_ref)).bindTo(values)
    as_text = _lookup().findVirtual(bytes_ref, "utf8ToString", of_type(text))
    read = handles.dropArguments(handles.filterReturnValue(value, as_text), 0, number)
    moved = handles.foldArguments(read, move.asType(of_type(nothing, number)))
    return _proxied(java_class("java.util.function.IntFunction"), moved)


def _proxied(function: Any, handle: Any) -> Any:
    return java_class("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(function, handle)


def _lookup() -> Any:
    return java_class("java.lang.invoke.MethodHandles").publicLookup()


@functools.cache
def _primitive(name: str) -> Any:
    """A primitive Java class."""
    owner = {"int": "Integer", "void": "Void"}.get(name, name.capitalize())
    return java_class(f"java.lang.{owner}").TYPE
