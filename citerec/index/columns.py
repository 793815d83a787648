"""Papers as numbers: the row of a paper is the rank of its id among all ids of the index, by their bytes.

And from filters to a mask: which papers may be found, the same for all that is searched by row.

What is known of the papers lies in columns by row: filters, sort orders and rankings need no records. Words and names
are 64-bit hashes (BLAKE2): to ask which papers have some words takes no vocabulary. Lists of words or authors are two
arrays: the values of all papers one after the other, and where those of each paper begin, with the end of the last one.
A citing sentence has a row of its own: sentences are in order of cited paper, year, citing paper and position.
"""

import contextlib
import functools
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

import numpy as np
import orjson
from numpy.lib import format as npy
from numpy.typing import NDArray

from citerec.corpus.store import PaperStore, SearchableCitance
from citerec.errors import FilterError, IndexUnusableError
from citerec.files.parallel import in_parts
from citerec.files.resume import read_json
from citerec.files.writing import write_json
from citerec.index.words.analysis import hash_of, terms_of
from citerec.records import Filters, Paper

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

Arrays = TypeVar("Arrays")


@contextlib.contextmanager
def writing_arrays(folder: Path) -> Iterator[Callable[..., None]]:
    """Yields a function that adds rows to the arrays `NAME.npy` of a folder, by name: `append(NAME=rows, …)`.

    The first rows of an array say its type. At the end all rows are on the disk.
    """
    files: dict[str, BinaryIO] = {}
    headers: dict[str, dict[str, Any]] = {}

    def append(**arrays: NDArray[Any]) -> None:
        for name, rows in arrays.items():
            if name not in files:
                files[name] = stack.enter_context((folder / f"{name}.npy").open("wb"))
                shape = (0, *rows.shape[1:])
                headers[name] = {"descr": npy.dtype_to_descr(rows.dtype), "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(files[name], headers[name])
            files[name].write(np.ascontiguousarray(rows).data.cast("B") if rows.size else b"")
            count, *row = headers[name]["shape"]
            headers[name]["shape"] = (count + len(rows), *row)

    with contextlib.ExitStack() as stack:
        yield append
        for name, file in files.items():
            file.seek(0)  # numpy leaves room in the header for any number of rows, so its length does not change
            npy.write_array_header_1_0(file, headers[name])
            file.flush()
            os.fsync(file.fileno())


def mapped(path: Path, remedy: str = "Build the index again: citerec index build …") -> NDArray[Any]:
    """An array of a `.npy` file, memory-mapped; raises IndexUnusableError if it is missing, truncated or damaged."""
    try:
        # A plain array over the map: np.memmap makes each access slower.
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise IndexUnusableError(f"{path} cannot be read ({error})".replace("\n", " "), remedy) from error


def mapped_together(kind: type[Arrays], folder: Path) -> Arrays:
    """A dataclass of arrays from the files of a folder that have the names of its fields; errors as for `mapped`."""
    return kind(**{one.name: mapped(folder / f"{one.name}.npy") for one in fields(kind)})  # type: ignore[arg-type]


def places_of(ordered: NDArray[Any], values: NDArray[Any]) -> Rows:
    """The places of values in an ordered array; -1 for missing ones. A binary search, which does not load the array."""
    if not len(ordered):
        return np.full(len(values), -1, np.int64)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[places] == values, places, -1)


def rows_of(sorted_ids: NDArray[np.bytes_], ids: Iterable[str]) -> Rows:
    """The rows of ids in a sorted array of ids; -1 for missing ones."""
    width = sorted_ids.dtype.itemsize  # keys of another width would load the array; no id is empty
    keys = [key if len(key) <= width else b"" for key in map(str.encode, ids)]
    return places_of(sorted_ids, np.array(keys, f"S{width}"))


def begins_of(lengths: Any) -> Rows:
    """Where lists of some lengths begin that lie one after the other, with the end of the last, (lists + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def owners_of(begins: Rows) -> Rows:
    """For each value of some lists the place of its list, (values,)."""
    return np.repeat(np.arange(len(begins) - 1), np.diff(begins))


def places_in(begins: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Where the values of some lists lie, list after list: where each list now begins, and their places, (values,)."""
    first = begins[rows]
    lengths = begins[rows + 1] - first
    now = begins_of(lengths)
    return now, np.arange(now[-1]) + np.repeat(first - now[:-1], lengths)


_PARTS, _ROUNDING = 32, 1e-6


def places_of_best(scores: NDArray[np.floating[Any]], k: int) -> Rows:
    """The places of the k best of some scores, and of all that equal the last of them, in order: ties are no chance.

    The k-th best of the maxima of columns is a lower bound, so that few scores need a selection.
    """
    places, columns = np.arange(len(scores)), len(scores) // _PARTS
    if k < columns:
        maxima = scores[: columns * _PARTS].reshape(_PARTS, columns).max(axis=0)
        places = np.flatnonzero(scores >= np.partition(maxima, -k)[-k] - _ROUNDING)
    best = scores[places]
    return places[best >= np.partition(best, -k)[-k] - _ROUNDING] if k < len(places) else places


COLUMNS, CITING, NAMES = "columns", "citing", "names.json"
"""The folder of the arrays in an index, the folder in it of those of citing papers, and the file in it with the
different fields of study and venues of the papers."""

UNKNOWN = -1
"""Stands for an unknown year or count."""
UNKNOWN_YEAR = 9999
"""Stands for an unknown year of a citing paper: later than all others, so nothing of it is known to be old enough."""

LISTS = {"word_begins": "words", "author_begins": "authors", "field_begins": "fields"}
"""The arrays that say where lists begin, and those that hold their values."""
_WORD = re.compile(r"[^\W_]+")
_PART = 1 << 13

Terms = Sequence[str | None]

# A mask takes a byte for each paper. Contexts of an evaluation differ only in their years.
_MASKS_KEPT = 64


@dataclass(frozen=True)
class PaperColumns:
    """What is known of some papers. Each array is a file of its name.

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

    has_abstract: Mask
    years: NDArray[np.int32]
    citation_counts: NDArray[np.int32]
    venues: NDArray[np.uint64]
    name_words: NDArray[np.int32]
    word_begins: Rows
    words: NDArray[np.uint64]
    author_begins: Rows
    authors: NDArray[np.uint64]
    field_begins: Rows
    fields: NDArray[np.uint64]

    def of(self, rows: Rows) -> "PaperColumns":
        """The columns of some papers, in this order."""
        columns = dict(vars(self))
        for begins, values in LISTS.items():
            columns[begins], places = places_in(columns[begins], rows)
            columns[values] = columns[values][places]
        lists = {*LISTS, *LISTS.values()}
        return PaperColumns(**{name: array if name in lists else array[rows] for name, array in columns.items()})


def columns_of(papers: Iterable[Paper]) -> PaperColumns:
    """The columns of some papers, in this order."""
    listed = list(papers)
    words = [dict.fromkeys(map(hash_of, words_in(one.title))) for one in listed]
    venues = [one.venue or "" for one in listed]
    names = [name for one in listed for name in one.authors]
    author_begins = begins_of([len(one.authors) for one in listed])
    last_names = (name.casefold().split()[-1] if name.strip() else "" for name in names)
    authors = _hashes(names), _hashes(last_names)
    return PaperColumns(
        has_abstract=np.array([bool(one.abstract) for one in listed], bool),
        years=_numbers(one.year for one in listed),
        citation_counts=_numbers(one.citation_count for one in listed),
        venues=np.stack([_hashes(venues), _hashes(map(str.casefold, venues))], axis=1),
        name_words=np.array([_name_words(one.title) for one in listed], np.int32),
        word_begins=begins_of([len(one) for one in words]),
        words=np.fromiter(itertools.chain.from_iterable(words), np.uint64),
        author_begins=author_begins,
        authors=np.stack([_once(owners_of(author_begins), one) for one in authors], axis=1),
        field_begins=begins_of([len(one.fields_of_study) for one in listed]),
        fields=_hashes(name.casefold() for one in listed for name in one.fields_of_study),
    )


def _numbers(values: Iterable[int | None]) -> NDArray[np.int32]:
    return np.fromiter((UNKNOWN if value is None else value for value in values), np.int32)


def words_in(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.casefold())


NO_TEXT = hash_of("")
"""Stands for an unknown venue."""


def hashes_of(texts: Iterable[str]) -> NDArray[np.uint64]:
    """The hashes of the texts that are not empty, sorted, (hashes,)."""
    return np.sort(_hashes(filter(None, texts)))


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    return np.fromiter(map(hash_of, texts), np.uint64)


def _once(owners: Rows, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The hashes, with 0 in place of each that stands in its list before."""
    order = np.lexsort((hashes, owners))  # keeps the order of equal ones
    repeated = (np.diff(hashes[order]) == 0) & (np.diff(owners[order]) == 0)
    once = hashes.copy()
    once[order[1:][repeated]] = 0
    return once


def _name_words(title: str) -> int:
    """How many different words stand before a colon, if it is a name of one part or two."""
    name, colon, _ = title.partition(":")
    return len(set(words_in(name))) if colon and len(name.split()) <= 2 else 0


@dataclass(frozen=True)
class CitingPapers:
    """Which papers cite each paper in sentences of the index, when, and in which sentences. Safe in several threads.

    A pair is a cited paper and one that cites it. Each array is a file of its name.

    Attributes:
        begins: Where the pairs of each row begin, (papers + 1,).
        rows: The rows of the citing papers, (pairs,); -1 for those that the index lacks.
        years: Their years, (pairs,); UNKNOWN_YEAR if unknown.
        digests: Hashes of their ids, (pairs,).
        sentence_begins: Where the sentences of each pair begin, (pairs + 1,).
        names: Their ids, bytes, (pairs,).
    """

    begins: Rows
    rows: NDArray[np.int32]
    years: NDArray[np.int16]
    digests: NDArray[np.uint64]
    sentence_begins: Rows
    names: NDArray[np.bytes_]

    def pairs_of(self, rows: Rows, filters: Filters) -> tuple[Rows, Rows]:
        """The pairs of some rows that may be known, in order: places in `rows`, and the pairs, (pairs,) each."""
        begins, pairs = places_in(self.begins, rows)
        mask = self.mask(filters, pairs)
        return owners_of(begins)[mask], pairs[mask]

    def mask(self, filters: Filters, pairs: Rows | slice = slice(None)) -> Mask:
        """Which of some pairs may be known, (pairs,): none of `citing_ids`, none newer than `as_of_year`.

        If there is such a year, none of an unknown year either.
        """
        mask = np.ones(len(self.rows[pairs]), bool)
        if filters.as_of_year is not None:
            mask &= self.years[pairs] <= filters.as_of_year
        if filters.citing_ids:
            mask &= ~np.isin(self.digests[pairs], _hashes(filters.citing_ids))
        return mask

    def sentence(self, row: int) -> tuple[str, int]:
        """The id of the citing paper of a sentence, and the position of the sentence among those of the pair."""
        pair = int(np.searchsorted(self.sentence_begins, row, "right")) - 1
        return self.names[pair].decode(), row - int(self.sentence_begins[pair])

    def sentence_row(self, row: int, citing_id: str, position: int) -> int:
        """The row of a sentence of a citing paper about the paper at a row; -1 if there is none."""
        begin, end = self.begins[row : row + 2].tolist()
        pairs = np.flatnonzero(self.names[begin:end] == citing_id.encode())
        return int(self.sentence_begins[begin + pairs[0]]) + position if len(pairs) else -1


@dataclass(frozen=True)
class PaperRows:
    """The papers of an index, in order of their ids. Safe to use from several threads.

    Attributes:
        ids: Their ids, bytes, (papers,); memory-mapped.
        columns: What is known of them, by row.
        citing: Who cites them; None for an index without citing sentences.
        names: Their `fields` of study and `venues`, as they are written, in order of their small letters.
    """

    ids: NDArray[np.bytes_]
    columns: PaperColumns
    citing: CitingPapers | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The rows of a generation of an index.

        Raises:
            IndexUnusableError: They are missing or damaged.
        """
        folder = folder / COLUMNS
        citing = mapped_together(CitingPapers, folder / CITING) if (folder / CITING).is_dir() else None
        if (names := read_json(folder / NAMES)) is None:
            fault = f"{folder / NAMES} cannot be read (it is missing or damaged)"
            raise IndexUnusableError(fault, "Build the index again.")
        return cls(mapped(folder / "ids.npy"), mapped_together(PaperColumns, folder), citing, names)

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, paper_ids: Sequence[str]) -> Rows:
        """The rows of some papers; -1 for those that the index lacks."""
        return rows_of(self.ids, paper_ids)

    def paper_ids(self, rows: Rows) -> list[str]:
        """The ids of some rows."""
        return [key.decode() for key in self.ids[rows].tolist()]

    @functools.cached_property
    def _venue_terms(self) -> Mapping[str, Terms]:
        return {name: terms_of(name) for name in self.names["venues"]}

    @functools.cached_property
    def _masks(self) -> Callable[[Filters], Mask]:
        return functools.lru_cache(_MASKS_KEPT)(self._passing)

    def passing(self, filters: Filters) -> Mask:
        """Which papers pass all filters, (papers,).

        Raises:
            FilterError: A venue has no word.
        """
        mask = self._masks(replace(filters, exclude=(), citing_ids=())).copy()
        hidden = self.rows([*filters.exclude, *filters.citing_ids])
        mask[hidden[hidden >= 0]] = False
        return mask

    def _passing(self, filters: Filters) -> Mask:
        """Which papers pass all filters but `exclude` and `citing_ids`, (papers,); errors as for `passing`."""
        columns, low, high = self.columns, filters.year_from, filters.year_to
        mask = np.ones(len(self), dtype=bool)
        if filters.as_of_year is not None:
            mask &= columns.years <= filters.as_of_year  # an unknown year passes: it is not known to be newer
        if low is not None or high is not None:
            mask &= columns.years >= (low or 0)
        if high is not None:
            mask &= columns.years <= high
        if filters.min_citations is not None:
            mask &= columns.citation_counts >= max(0, filters.min_citations)
        if filters.fields:
            matches = begins_of(np.isin(columns.fields, hashes_of(map(str.casefold, filters.fields))))
            mask &= matches[columns.field_begins[1:]] > matches[columns.field_begins[:-1]]
        if filters.venues:
            phrases = [*map(phrase_of, filters.venues)]
            having = (name for name, terms in self._venue_terms.items() if any(_has_phrase(terms, p) for p in phrases))
            mask &= np.isin(columns.venues[:, 0], hashes_of(having))
        return mask


def phrase_of(venue: str) -> Terms:
    """The terms of a venue that is asked for, without gaps at its ends; FilterError if it has no word."""
    terms = terms_of(venue)
    places = [place for place, term in enumerate(terms) if term is not None]
    if not places:
        raise FilterError(f"the venue {venue!r} has no word", "Give words of its name, for example SIGIR.")
    return terms[places[0] : places[-1] + 1]


def _has_phrase(terms: Terms, phrase: Terms) -> bool:
    """Whether the terms of a phrase follow each other somewhere; a gap stands for any word."""
    windows = (terms[begin : begin + len(phrase)] for begin in range(len(terms) - len(phrase) + 1))
    return any(all(word in (None, term) for word, term in zip(phrase, one, strict=True)) for one in windows)


def write_rows(folder: Path, store: PaperStore) -> None:
    """Writes the ids and the columns of a store's papers into a folder, which is made; `PaperRows.open` reads them.

    `digests` and `citing/sentence_digests` tell which papers changed from one generation to the next.
    """
    folder.mkdir()
    ids = f"S{max(len(paper_id.encode()) for (paper_id,) in store.select('papers', 'paper_id'))}"
    names: dict[str, set[str]] = {"fields": set(), "venues": set()}
    written = Counter[str]()  # values of lists
    with writing_arrays(folder) as append:
        for number, part in enumerate(in_parts(store.all_papers(), _PART)):
            columns = dict(vars(columns_of(part)))
            for begins, values in LISTS.items():
                columns[begins] = written[values] + columns[begins][number > 0 :]
                written[values] += len(columns[values])
            keys = np.array([paper.paper_id.encode() for paper in part], ids)
            digests = np.array([hash_of.__wrapped__(orjson.dumps(paper).decode()) for paper in part], np.uint64)
            append(ids=keys, digests=digests, **columns)
            names["fields"].update(name for paper in part for name in paper.fields_of_study)
            names["venues"].update(paper.venue for paper in part if paper.venue)
    ordered = {kind: sorted(some, key=lambda name: (name.casefold(), name)) for kind, some in names.items()}
    write_json(folder / NAMES, ordered)


def sentences_of(store: PaperStore) -> Iterator[list[SearchableCitance]]:
    """The citing sentences about each paper of a store, in the order of their rows."""
    for _, about in itertools.groupby(store.searchable_citances(), lambda one: one.cited.paper_id):
        yield sorted(about, key=lambda one: (_year(one), one.citing_id.encode(), one.position))


def write_citing(folder: Path, store: PaperStore) -> None:
    """Writes who cites the papers of the `ids.npy` in the folder of the columns: the arrays of `CitingPapers`."""
    ids = mapped(folder / "ids.npy")
    folder = folder / CITING
    folder.mkdir()
    names: list[bytes] = []
    sentences: list[int] = []  # of each pair
    counts, digests = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.uint64)
    with writing_arrays(folder) as append:
        for said in sentences_of(store):
            pairs = [list(group) for _, group in itertools.groupby(said, lambda one: one.citing_id)]
            citing = [pair[0].citing_id for pair in pairs]
            row = int(rows_of(ids, [said[0].cited.paper_id])[0])
            digests[row] = hash_of(repr([(one.citing_id, one.citing_year, one.text) for one in said]))
            counts[row] = len(citing)
            names += map(str.encode, citing)
            sentences += map(len, pairs)
            years = np.array([_year(pair[0]) for pair in pairs], np.int16)
            append(rows=rows_of(ids, citing).astype(np.int32), years=years, digests=_hashes(citing))
        append(begins=begins_of(counts), sentence_begins=begins_of(sentences))
        append(sentence_digests=digests, names=np.array(names, np.bytes_))


def _year(sentence: SearchableCitance) -> int:
    return UNKNOWN_YEAR if sentence.citing_year is None else sentence.citing_year
