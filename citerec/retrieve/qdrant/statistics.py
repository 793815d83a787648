"""What Lucene knows of the words of an index: mean lengths of fields, and the terms."""

from pathlib import Path
from typing import Any, NamedTuple

from citerec.errors import IndexUnusableError
from citerec.retrieve.lucene import fields
from citerec.retrieve.lucene.jvm import java_class, java_failures
from citerec.retrieve.qdrant.points import CITANCE, TEXT, TITLE, term_index
from citerec.retrieve.staging import LUCENE

_FIELDS = {"papers": {TEXT: fields.TEXT, TITLE: fields.TITLE}, "citances": {CITANCE: fields.CITANCE}}


class WordStatistics(NamedTuple):
    """Statistics of an index.

    Attributes:
        means: How many words each field has in the mean of the documents that have it, as Lucene counts them.
        collisions: How many terms share their index in the vector `words` with another one; they count as one term.
    """

    means: dict[str, float]
    collisions: int


def word_statistics(index: Path, *, collisions: bool = True) -> WordStatistics:
    """The statistics of an index; counting collisions reads the whole vocabulary.

    Raises:
        IndexUnusableError: Lucene cannot open the index.
        JavaError: There is no Java runtime that can run Lucene.
    """
    means, shared = {}, 0
    with java_failures(f"reading {index}", IndexUnusableError):
        for name, of_index in _FIELDS.items():
            if not (index / LUCENE / name).is_dir():
                continue
            directory = fields.open_directory(index / LUCENE / name)
            reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
            try:
                for field, lucene in of_index.items():
                    documents = int(reader.getDocCount(lucene))
                    means[field] = int(reader.getSumTotalTermFreq(lucene)) / documents if documents else 1.0
                if collisions:
                    shared += _collisions(reader, of_index)
            finally:
                reader.close()
    return WordStatistics(means, shared)


def _collisions(reader: Any, of_index: dict[str, str]) -> int:
    """How many terms of some fields share their index with an earlier one."""
    import numpy as np

    indices = []
    for field, lucene in of_index.items():
        terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, lucene)
        if terms is None:
            continue
        each = terms.iterator()
        while (term := each.next()) is not None:
            indices.append(term_index.__wrapped__(field, str(term.utf8ToString())))
    return len(indices) - len(np.unique(np.array(indices, np.uint32)))
