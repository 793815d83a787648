"""What rankers read of candidates, as columns by row: so they need no records.

Words and names are 64-bit hashes (XXH3): to ask which papers have some words takes no vocabulary. Lists of words or
authors are two arrays: the values of all papers one after the other, and where those of each paper begin, with the end
of the last one.
"""

import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from xxhash import xxh3_64_intdigest

from citerec.corpus.store import PaperStore
from citerec.files.parts import in_parts
from citerec.records import Paper
from citerec.retrieve.dense.files import ArrayWriter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Lists = tuple[NDArray[np.int64], NDArray[np.uint64]]

COLUMNS = "columns"
"""The folder of the arrays, beside Lucene's folders."""
UNKNOWN = -1
"""Stands for an unknown year or count."""
NO_TEXT = xxh3_64_intdigest(b"")
"""Stands for an unknown venue."""

FILES: dict[str, tuple[str, tuple[int, ...]]] = {
    "years": ("<i4", ()),
    "citation_counts": ("<i4", ()),
    "venues": ("<u8", (2,)),
    "name_words": ("<i4", ()),
    "word_begins": ("<i8", ()),
    "words": ("<u8", ()),
    "author_begins": ("<i8", ()),
    "authors": ("<u8", (2,)),
}
"""The arrays of `PaperColumns`, each a file of its name: their types and the shapes of their rows."""

_LISTS = {"word_begins": "words", "author_begins": "authors"}
_WORD = re.compile(r"[^\W_]+")
_PART = 1 << 12


@dataclass(frozen=True, slots=True)
class PaperColumns:
    """What is known of some papers.

    Attributes:
        years: Years, (papers,); UNKNOWN if not known.
        citation_counts: The citation counts that the corpus gives, (papers,); the same.
        venues: Hashes of the venue as it is written, and of it in lower case, (papers, 2).
        name_words: How many of the words of the title are its name, (papers,): "BERT" of "BERT: Pre-training of …".
        word_begins: Where the words of each title begin, (papers + 1,).
        words: Hashes of the different words of the titles, in their order, (words,).
        author_begins: Where the authors of each paper begin, (papers + 1,).
        authors: Hashes of the authors' names, and of their last names in lower case, (authors, 2); 0 in place of one
            that an earlier author of the paper has too.
    """

    years: "NDArray[np.int32]"
    citation_counts: "NDArray[np.int32]"
    venues: "NDArray[np.uint64]"
    name_words: "NDArray[np.int32]"
    word_begins: "NDArray[np.int64]"
    words: "NDArray[np.uint64]"
    author_begins: "NDArray[np.int64]"
    authors: "NDArray[np.uint64]"

    @classmethod
    def read(cls, opened: "Callable[[str], NDArray[Any]]") -> Self:
        """The columns of files, each of which is opened by its name."""
        return cls(**{name: opened(name) for name in FILES})

    def of(self, rows: "Rows") -> "PaperColumns":
        """The columns of some papers, in this order."""
        word_begins, words = lists_of(self.word_begins, self.words, rows)
        author_begins, authors = lists_of(self.author_begins, self.authors, rows)
        return PaperColumns(
            self.years[rows],
            self.citation_counts[rows],
            self.venues[rows],
            self.name_words[rows],
            word_begins,
            words,
            author_begins,
            authors,
        )


class PaperFacts(NamedTuple):
    """The fields of a paper that rankers read."""

    paper_id: str
    title: str
    year: int | None
    venue: str | None
    authors: Sequence[str]
    citation_count: int | None


def facts_of(store: PaperStore) -> Iterator[PaperFacts]:
    """What rankers read of each paper, in order of id."""
    for facts in map(PaperFacts._make, store.scan(*PaperFacts._fields)):
        yield facts._replace(authors=store.json(str(facts.authors)))


def words_in(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.casefold())


def hash_of(text: str) -> int:
    """The hash of a text."""
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def hashes_of(texts: Iterable[str]) -> "NDArray[np.uint64]":
    """The hashes of the texts that are not empty, sorted, (hashes,)."""
    import numpy as np

    return np.sort(np.fromiter((hash_of(text) for text in texts if text), np.uint64))


def columns_of(papers: Iterable[Paper | PaperFacts]) -> PaperColumns:
    """The columns of some papers, in this order."""
    import numpy as np

    listed = list(papers)
    words = [dict.fromkeys(_hashed(words_in(one.title))) for one in listed]
    venues = [one.venue or "" for one in listed]
    names = [name for one in listed for name in one.authors]
    author_begins = _begins([len(one.authors) for one in listed])
    authors = _hashes(names), _hashes(map(_last_name, names))
    return PaperColumns(
        years=np.array([_known(one.year) for one in listed], np.int32),
        citation_counts=np.array([_known(one.citation_count) for one in listed], np.int32),
        venues=np.stack([_hashes(venues), _hashes(map(str.casefold, venues))], axis=1),
        name_words=np.array([_name_words(one.title) for one in listed], np.int32),
        word_begins=_begins([len(one) for one in words]),
        words=np.fromiter(itertools.chain.from_iterable(words), np.uint64),
        author_begins=author_begins,
        authors=np.stack([_once(owners_of(author_begins), one) for one in authors], axis=1),
    )


def write_columns(store: PaperStore, lucene: Path) -> None:
    """Writes the columns of a store's papers, in order of id, beside Lucene's indexes."""
    folder = lucene / COLUMNS
    shutil.rmtree(folder, ignore_errors=True)  # an index that is added to has links: nothing is written into them
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(ArrayWriter(folder / f"{name}.npy", *kind)) for name, kind in FILES.items()
        }
        for arrays in _parts(store):
            for name, values in arrays.items():
                writers[name].append(values)


def first_wrong(columns: PaperColumns, store: PaperStore) -> str | None:
    """The name of an array that is not what a store's papers make of it; None if all are right."""
    import numpy as np

    read = dict.fromkeys(FILES, 0)
    for arrays in _parts(store):
        for name, values in arrays.items():
            begin, read[name] = read[name], read[name] + len(values)
            if not np.array_equal(getattr(columns, name)[begin : read[name]], values):
                return name
    return next((name for name in FILES if len(getattr(columns, name)) > read[name]), None)


def _parts(store: PaperStore) -> "Iterator[dict[str, NDArray[Any]]]":
    """The arrays of a store's papers by name, some thousand papers at a time, as they follow each other."""
    import numpy as np

    done = dict.fromkeys(_LISTS, 0)
    yield {begins: np.zeros(1, np.int64) for begins in _LISTS}
    for part in in_parts(facts_of(store), _PART):
        made = columns_of(part)
        arrays = {name: getattr(made, name) for name in FILES}
        for begins, values in _LISTS.items():
            arrays[begins] = done[begins] + arrays[begins][1:]
            done[begins] += len(arrays[values])
        yield arrays


def owners_of(begins: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """For each value of some lists the place of its list, (values,)."""
    import numpy as np

    return np.repeat(np.arange(len(begins) - 1), begins[1:] - begins[:-1])


def lists_of(begins: "NDArray[np.int64]", values: "NDArray[np.uint64]", rows: "Rows") -> "Lists":
    """Some of the lists, in this order: where they begin, and their values."""
    import numpy as np

    first = begins[rows]
    lengths = begins[rows + 1] - first
    now = _begins(lengths)
    return now, values[np.arange(now[-1]) + np.repeat(first - now[:-1], lengths)]


def _begins(lengths: "NDArray[np.int64] | list[int]") -> "NDArray[np.int64]":
    import numpy as np

    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _hashed(texts: Iterable[str]) -> Iterator[int]:
    # As `hash_of`, at half the cost. What is in a store is valid UTF-8.
    return map(xxh3_64_intdigest, map(str.encode, texts))


def _hashes(texts: Iterable[str]) -> "NDArray[np.uint64]":
    import numpy as np

    return np.fromiter(_hashed(texts), np.uint64)


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
