"""What is known of the papers of an index, as columns by row: filters, sort orders and rankers need no records.

Words and names are 64-bit hashes (BLAKE2): to ask which papers have some words takes no vocabulary. Lists of words or
authors are two arrays: the values of all papers one after the other, and where those of each paper begin, with the end
of the last one.
"""

import functools
import hashlib
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from citerec.index.arrays import mapped
from citerec.records import Paper

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

COLUMNS = "columns"
"""The folder of the arrays in an index."""
UNKNOWN = -1
"""Stands for an unknown year or count."""

FILES: dict[str, tuple[str, tuple[int, ...]]] = {
    "has_abstract": ("?", ()),
    "years": ("<i4", ()),
    "citation_counts": ("<i4", ()),
    "venues": ("<u8", (2,)),
    "name_words": ("<i4", ()),
    "word_begins": ("<i8", ()),
    "words": ("<u8", ()),
    "author_begins": ("<i8", ()),
    "authors": ("<u8", (2,)),
    "field_begins": ("<i8", ()),
    "fields": ("<u8", ()),
}
"""The arrays of `PaperColumns`, each a file of its name: their types and the shapes of their rows."""

LISTS = {"word_begins": "words", "author_begins": "authors", "field_begins": "fields"}
"""The arrays that say where lists begin, and those that hold their values."""
_WORD = re.compile(r"[^\W_]+")
_KEPT = 1 << 16  # hashes of words and names: most come again


@dataclass(frozen=True, slots=True)
class PaperColumns:
    """What is known of some papers.

    Attributes:
        has_abstract: Whether they have an abstract, (papers,).
        years: Years, (papers,); UNKNOWN if not known.
        citation_counts: The citation counts that the corpus gives, (papers,); the same.
        venues: Hashes of the venue as it is written, and of it in lower case, (papers, 2).
        name_words: How many of the words of the title are its name, (papers,): "BERT" of "BERT: Pre-training of …".
        word_begins: Where the words of each title begin, (papers + 1,).
        words: Hashes of the different words of the titles, in their order, (words,).
        author_begins: Where the authors of each paper begin, (papers + 1,).
        authors: Hashes of the authors' names, and of their last names in lower case, (authors, 2); 0 in place of one
            that an earlier author of the paper has too.
        field_begins: Where the fields of study of each paper begin, (papers + 1,).
        fields: Hashes of their names in lower case, (fields,).
    """

    has_abstract: "NDArray[np.bool_]"
    years: "NDArray[np.int32]"
    citation_counts: "NDArray[np.int32]"
    venues: "NDArray[np.uint64]"
    name_words: "NDArray[np.int32]"
    word_begins: "NDArray[np.int64]"
    words: "NDArray[np.uint64]"
    author_begins: "NDArray[np.int64]"
    authors: "NDArray[np.uint64]"
    field_begins: "NDArray[np.int64]"
    fields: "NDArray[np.uint64]"

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The columns of a folder, memory-mapped; IndexUnusableError if one is missing or damaged."""
        return cls(**{name: mapped(folder / f"{name}.npy") for name in FILES})

    def __len__(self) -> int:
        return len(self.years)

    def of(self, rows: "Rows") -> "PaperColumns":
        """The columns of some papers, in this order."""
        lists: dict[str, Any] = {}
        for begins, values in LISTS.items():
            lists[begins], places = places_in(getattr(self, begins), rows)
            lists[values] = getattr(self, values)[places]
        return PaperColumns(**{name: lists[name] if name in lists else getattr(self, name)[rows] for name in FILES})


def columns_of(papers: Iterable[Paper]) -> PaperColumns:
    """The columns of some papers, in this order."""
    import numpy as np

    listed = list(papers)
    words = [dict.fromkeys(map(hash_of, words_in(one.title))) for one in listed]
    venues = [one.venue or "" for one in listed]
    names = [name for one in listed for name in one.authors]
    author_begins = _begins([len(one.authors) for one in listed])
    authors = _hashes(names), _hashes(map(_last_name, names))
    fields = (name.casefold() for one in listed for name in one.fields_of_study)
    return PaperColumns(
        has_abstract=np.array([bool(one.abstract) for one in listed], bool),
        years=np.array([_known(one.year) for one in listed], np.int32),
        citation_counts=np.array([_known(one.citation_count) for one in listed], np.int32),
        venues=np.stack([_hashes(venues), _hashes(map(str.casefold, venues))], axis=1),
        name_words=np.array([_name_words(one.title) for one in listed], np.int32),
        word_begins=_begins([len(one) for one in words]),
        words=np.fromiter(itertools.chain.from_iterable(words), np.uint64),
        author_begins=author_begins,
        authors=np.stack([_once(owners_of(author_begins), one) for one in authors], axis=1),
        field_begins=_begins([len(one.fields_of_study) for one in listed]),
        fields=_hashes(fields),
    )


def words_in(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.casefold())


@functools.lru_cache(_KEPT)
def hash_of(text: str) -> int:
    """The hash of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


NO_TEXT = hash_of("")
"""Stands for an unknown venue."""


def hashes_of(texts: Iterable[str]) -> "NDArray[np.uint64]":
    """The hashes of the texts that are not empty, sorted, (hashes,)."""
    import numpy as np

    return np.sort(np.fromiter((hash_of(text) for text in texts if text), np.uint64))


def owners_of(begins: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """For each value of some lists the place of its list, (values,)."""
    import numpy as np

    return np.repeat(np.arange(len(begins) - 1), begins[1:] - begins[:-1])


def places_in(begins: "NDArray[np.int64]", rows: "Rows") -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Where the values of some lists lie, list after list: where each list now begins, and their places, (values,)."""
    import numpy as np

    first = begins[rows]
    lengths = begins[rows + 1] - first
    now = _begins(lengths)
    return now, np.arange(now[-1]) + np.repeat(first - now[:-1], lengths)


def _begins(lengths: "NDArray[np.int64] | Sequence[int]") -> "NDArray[np.int64]":
    import numpy as np

    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _hashes(texts: Iterable[str]) -> "NDArray[np.uint64]":
    import numpy as np

    return np.fromiter(map(hash_of, texts), np.uint64)


def _once(owners: "NDArray[np.int64]", hashes: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    """The hashes, with 0 in place of each that stands in its list before."""
    import numpy as np

    order = np.lexsort((hashes, owners))  # keeps the order of equal ones
    repeated = (np.diff(hashes[order]) == 0) & (np.diff(owners[order]) == 0)
    once = hashes.copy()
    once[order[1:][repeated]] = 0
    return once


def _name_words(title: str) -> int:
    """How many different words stand before a colon, if it is a name of one part or two."""
    name, colon, _ = title.partition(":")
    return len(set(words_in(name))) if colon and len(name.split()) <= 2 else 0


def _last_name(author: str) -> str:
    words = author.split()
    return words[-1].casefold() if words else ""


def _known(number: int | None) -> int:
    return UNKNOWN if number is None else number
