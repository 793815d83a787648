"""Building the folder of `bm25s`: the score of every term in every paper, computed once.

The files are those of the package bm25s (Lù, arXiv 2407.03618), which can open the folder; beside them is what filters
need. Memory does not grow with the papers, but with the vocabulary.
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.files.writing import remove, write_json
from citerec.retrieve.dense.build import checksum
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.listing import list_papers, paper_text
from citerec.retrieve.lucene.fields import ANALYZER
from citerec.retrieve.lucene.jvm import java_failures
from citerec.retrieve.lucene.queries import LuceneSettings
from citerec.retrieve.lucene.tokens import analyzed
from citerec.retrieve.manifest import MadeManifest, Manifest
from citerec.retrieve.staging import followed, making_folder, open_store
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "bm25s"
KIND = "citerec-bm25s"
VERSION = 1

SCORES, ROWS, BEGINS = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"
VOCABULARY, PARAMETERS = "vocab.index.json", "params.index.json"
_FILES = (SCORES, ROWS, BEGINS, VOCABULARY, PARAMETERS, "years.npy", "citations.npy")

_WORK, _TERMS = ".postings", "terms.txt"
_MOST_PAPERS = 5_000_000  # a search adds up in an array of all papers; more are made only when asked for
_BATCH = 1000
_COMMIT_EVERY = 20_000
_PART = 1 << 20
_POSTINGS = {"terms": "<i4", "papers": "<i4", "text": "<u2", "title": "<u2"}
"""A posting: numbers of term and paper, and how often the term is in the text and in the title."""
_LENGTHS = {"text-length": "<i4", "title-length": "<i4"}
_MOST_TIMES = 2**16 - 1


@dataclass(frozen=True, slots=True)
class Scoring:
    """BM25 over two fields: `text · BM25(title and abstract) + title · BM25(title)`."""

    k1: float
    b: float
    text: float
    title: float

    @classmethod
    def of(cls, lucene: LuceneSettings) -> Self:
        """That of `lucene` with some settings; the abstract alone is left out."""
        return cls(lucene.bm25.k1, lucene.bm25.b, lucene.weights.text, lucene.weights.title)


class Bm25sManifest(MadeManifest):
    """`bm25s/manifest.json`.

    Attributes:
        analyzer: The analyzer of the words.
        scoring: What the scores are: `Scoring`.
        papers: How many papers there are; their rows are in order of id. `terms` and `postings` count the others.
    """

    holds: ClassVar[str] = "scores of bm25s"
    kind: str = KIND
    version: int = VERSION
    analyzer: str
    scoring: dict[str, float]
    papers: int
    terms: int
    postings: int

    @classmethod
    def of_papers(cls, index: Path, fingerprint: str) -> Self | None:
        """The manifest in an index, if there are scores of the papers with this fingerprint."""
        try:
            made = cls.read(index / NAME)
        except IndexUnusableError:
            return None
        return made if made.store == fingerprint else None

    def __str__(self) -> str:
        return f"{self.postings:,} scores of {self.terms:,} words in {self.papers:,} papers"

    def scores_as(self, words: LuceneSettings) -> bool:
        """Whether `lucene` with some settings gives titles and abstracts these scores."""
        return not words.weights.abstract and Scoring.of(words) == Scoring(**self.scoring)


def build_scores(index: Path, on_progress: Progress, scoring: Scoring | None = None) -> Bm25sManifest:
    """Makes the scores of all terms of an index. An interrupted run is resumed.

    Raises:
        IndexUnusableError: There is no index.
        JavaError: There is no Java runtime that can analyse the words.
        BuildError: The disk is full, or another build is running.
    """
    scoring = scoring or Scoring.of(LuceneSettings())
    index = followed(index)
    Manifest.read(index)
    with making_folder(index, NAME) as folder, contextlib.closing(open_store(index)) as store:
        manifest = Manifest.read(index)  # again: the index may have been replaced before the lock was taken
        papers = manifest.counts.papers
        journal = Journal(folder, {"store": manifest.fingerprint, "analyzer": ANALYZER, "scoring": asdict(scoring)})
        work = folder / _WORK
        if "scored" not in journal.done:
            if "listed" not in journal.done:
                list_papers(folder, store.searchable_texts, lambda _: True, papers, on_progress)
                journal.finish("listed")
            _write_postings(work, store, journal, papers, on_progress)
            on_progress("scoring words", 0, 1)
            _write_scores(folder, scoring)
            journal.finish("scored")
        remove(work)
        for name in ("ids.npy", "digests.npy"):  # the index has the ids, and only encoded texts need digests
            (folder / name).unlink(missing_ok=True)
        made = Bm25sManifest(
            citerec=__version__,
            analyzer=ANALYZER,
            scoring=asdict(scoring),
            papers=papers,
            terms=len(mapped(folder / BEGINS)) - 1,
            postings=len(mapped(folder / SCORES)),
            store=manifest.fingerprint,
            checksums={name: checksum(folder / name) for name in _FILES},
        )
        made.write(folder)
        return made


def renew_scores(index: Path, on_progress: Progress) -> Bm25sManifest | None:
    """Makes the scores of an index with vectors, so that many searches are faster; errors as for `build_scores`.

    Returns:
        What was made; nothing if the scores are there, or if there are so many papers that they would cost too much.
    """
    manifest = Manifest.read(index)
    if manifest.counts.papers > _MOST_PAPERS or Bm25sManifest.of_papers(index, manifest.fingerprint):
        return None
    return build_scores(index, on_progress)


def _write_postings(work: Path, store: PaperStore, journal: Journal, papers: int, on_progress: Progress) -> None:
    """Writes the postings of all papers, in order of paper, the lengths of their fields, and the terms, one per line.

    Continues after the last commit in the journal.
    """
    after, done, postings, terms = journal.get("at") or ("", 0, 0, 0)
    work.mkdir(exist_ok=True)
    numbers = _read_terms(work, terms)
    rows = dict.fromkeys(_POSTINGS, postings) | dict.fromkeys(_LENGTHS, done)
    with contextlib.ExitStack() as stack:
        spelled = stack.enter_context((work / _TERMS).open("a", encoding="utf-8"))
        columns = {
            name: stack.enter_context(ArrayWriter(work / f"{name}.npy", dtype, rows=rows[name]))
            for name, dtype in (_POSTINGS | _LENGTHS).items()
        }

        def commit() -> None:
            nonlocal terms
            spelled.writelines(f"{term}\n" for term in itertools.islice(numbers, terms, None))
            spelled.flush()
            for column in columns.values():
                column.commit()
            terms = len(numbers)
            journal.note(at=[after, done, columns["terms"].rows, terms])

        for batch in in_parts(store.searchable_texts(after), _BATCH):
            with java_failures("analysing words"):
                texts = analyzed([*map(paper_text, batch), *(paper.title for paper in batch)])
            for name, values in _counted(texts[: len(batch)], texts[len(batch) :], numbers, done).items():
                columns[name].append(values)
            after, done = batch[-1].paper_id, done + len(batch)
            on_progress("analysing words", done, papers)
            if done % _COMMIT_EVERY == 0:
                commit()
        commit()


def _read_terms(work: Path, count: int) -> dict[str, int]:
    """The number of each of the first terms that were written; those after them, of no commit, are removed."""
    path = work / _TERMS
    if not count:
        path.unlink(missing_ok=True)
        return {}
    with path.open(encoding="utf-8", newline="\n") as file:
        numbers = {line[:-1]: number for number, line in enumerate(itertools.islice(file, count))}
    path.write_text("".join(f"{term}\n" for term in numbers), encoding="utf-8", newline="\n")
    return numbers


def _counted(
    texts: list[list[str]], titles: list[list[str]], numbers: dict[str, int], first: int
) -> dict[str, "NDArray[Any]"]:
    """The columns of the postings of some papers, of which the first has this row; gives new terms their numbers."""
    import numpy as np

    def keys_of(fields: list[list[str]]) -> tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]"]:
        lengths = np.array([len(field) for field in fields], dtype=np.int64)
        terms = (numbers.setdefault(term, len(numbers)) for field in fields for term in field)
        keys = np.fromiter(terms, np.int64, int(lengths.sum())) | np.repeat(np.arange(len(fields)) << 32, lengths)
        return *np.unique(keys, return_counts=True), lengths

    in_text, text_times, text_lengths = keys_of(texts)
    in_title, title_times, title_lengths = keys_of(titles)
    keys = np.union1d(in_text, in_title)
    times = np.zeros((2, len(keys)), dtype=np.int64)
    times[0, np.searchsorted(keys, in_text)] = text_times
    times[1, np.searchsorted(keys, in_title)] = title_times
    return {
        "terms": keys & 0xFFFFFFFF,
        "papers": first + (keys >> 32),
        "text": np.minimum(times[0], _MOST_TIMES),
        "title": np.minimum(times[1], _MOST_TIMES),
        "text-length": text_lengths,
        "title-length": title_lengths,
    }


def _write_scores(folder: Path, scoring: Scoring) -> None:
    """Writes what bm25s reads: the scores of each term by row of paper, the terms' beginnings, the vocabulary."""
    import numpy as np

    columns = {name: mapped(folder / _WORK / f"{name}.npy") for name in (*_POSTINGS, *_LENGTHS)}
    with (folder / _WORK / _TERMS).open(encoding="utf-8", newline="\n") as file:
        numbers = {line[:-1]: number for number, line in enumerate(file)}
    terms, count = columns["terms"], len(columns["terms"])
    in_field = {name: np.zeros(len(numbers), np.int64) for name in ("text", "title")}
    begins = np.zeros(len(numbers) + 1, np.int64)
    for part in _parts(count):
        begins[1:] += np.bincount(terms[part], minlength=len(numbers))
        for name, papers in in_field.items():
            papers += np.bincount(terms[part][columns[name][part] > 0], minlength=len(numbers))
    np.cumsum(begins, out=begins)
    fields = [
        _Field(columns[f"{name}-length"], papers, scoring, weight)
        for (name, papers), weight in zip(in_field.items(), (scoring.text, scoring.title), strict=True)
    ]
    heads = begins[:-1].copy()
    with _filled(folder / SCORES, "<f4", count) as scores, _filled(folder / ROWS, "<i4", count) as rows:
        for part in _parts(count):
            order = np.argsort(terms[part], kind="stable")
            mine, papers = terms[part][order], columns["papers"][part][order]
            firsts = np.flatnonzero(np.diff(mine, prepend=-1))
            lengths = np.diff(firsts, append=len(mine))
            places = np.arange(len(mine)) - np.repeat(firsts - heads[mine[firsts]], lengths)
            heads[mine[firsts]] += lengths
            in_text, in_title = (columns[name][part][order] for name in in_field)
            scores[places] = fields[0].scores(mine, papers, in_text) + fields[1].scores(mine, papers, in_title)
            rows[places] = papers
    np.save(folder / BEGINS, begins)
    write_json(folder / VOCABULARY, numbers)
    parameters: dict[str, Any] = {"method": "lucene", "idf_method": "lucene", "dtype": "float32", "int_dtype": "int32"}
    parameters |= {"k1": scoring.k1, "b": scoring.b, "delta": 0.5, "num_docs": len(columns["text-length"])}
    write_json(folder / PARAMETERS, parameters)


class _Field:
    """BM25 of one field as Lucene computes it, in 32 bits: `weight · idf · tf / (tf + k1 · (1 − b + b · dl / avgdl))`.

    `idf` is `ln(1 + (N − df + 0.5) / (df + 0.5))`, where N papers have the field; `dl` is the length that Lucene keeps.

    Args:
        lengths: How many words the field has in each paper, (papers,).
        papers: In how many papers' field each term is, (terms,).
        scoring: k1 and b.
        weight: The weight of the field.
    """

    def __init__(
        self, lengths: "NDArray[np.int32]", papers: "NDArray[np.int64]", scoring: Scoring, weight: float
    ) -> None:
        import numpy as np

        having = max(1, int(np.count_nonzero(lengths)))  # papers that have the field
        average = np.float32(lengths.sum(dtype=np.int64) / having)
        idf = np.array([math.log(1 + (having - count + 0.5) / (count + 0.5)) for count in papers.tolist()], np.float32)
        self._weights = np.float32(weight) * idf
        k1, b, one = np.float32(scoring.k1), np.float32(scoring.b), np.float32(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._norms = one / (k1 * ((one - b) + b * kept_length(lengths).astype(np.float32) / average))

    def scores(self, terms: "NDArray[Any]", papers: "NDArray[Any]", times: "NDArray[Any]") -> "NDArray[np.float32]":
        """The scores of some postings, (postings,); 0 where the term is not in the field."""
        import numpy as np

        weights = self._weights[terms]
        with np.errstate(invalid="ignore"):
            found = weights - weights / (np.float32(1) + times.astype(np.float32) * self._norms[papers])
        scores: NDArray[np.float32] = np.where(times > 0, found, np.float32(0))
        return scores


def kept_length(lengths: "NDArray[np.int32]") -> "NDArray[np.int64]":
    """Lengths as Lucene keeps them in one byte: those above 39 are rounded down to four binary digits beyond 24.

    `SmallFloat.intToByte4` of Lucene: numbers below 24 are kept as they are.
    """
    import numpy as np

    above = np.maximum(lengths.astype(np.int64) - 24, 0)
    shifts = np.maximum(np.frexp(above.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (above >> shifts << shifts))


def _parts(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _PART) for begin in range(0, count, _PART))


@contextlib.contextmanager
def _filled(path: Path, dtype: str, count: int) -> Iterator["NDArray[Any]"]:
    """An array on disk to write to in any order; first written as zeros, so that a full disk is an error, no signal."""
    import numpy as np

    with ArrayWriter(path, dtype) as writer:
        for part in _parts(count):
            writer.append(np.zeros(min(count, part.stop) - part.start, dtype))
    array = np.load(path, mmap_mode="r+") if count else np.zeros(0, dtype)
    yield array
    if isinstance(array, np.memmap):
        array.flush()
