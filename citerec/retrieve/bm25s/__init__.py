"""BM25 from scores that were computed before: for batches, and for machines where queries cannot be analysed by Java.

After BM25S (Lù, arXiv 2407.03618): all scores of terms in papers are a sparse matrix, and a search adds up its columns.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from citerec.contexts.topic import Topic
from citerec.errors import FilterError, IndexUnusableError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever
from citerec.retrieve.bm25s.analysis import term_weights
from citerec.retrieve.bm25s.build import BEGINS, NAME, ROWS, SCORES, VOCABULARY, Bm25sManifest, build_scores
from citerec.retrieve.bm25s.kernels import add_scores, best_rows, compiled
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.dense.files import mapped
from citerec.retrieve.dense.vectors import passing_rows
from citerec.retrieve.lucene.queries import LuceneSettings
from citerec.retrieve.topic_texts import TopicTexts, no_word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.opened import OpenIndex

_KEPT, _KEPT_MATCHING = 64, 8


class Bm25sSettings(TopicTexts):
    """How the topic is searched. k1, b and the weights of text and title are part of the scores: those of `bm25`."""


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a topic that the papers have.

    Attributes:
        terms: Their numbers, (terms,).
        weights: Their weights, (terms,): that of each text of the topic as often as it has the term.
        is_empty: Whether the topic has no term, be it known or not.
    """

    terms: "NDArray[np.int32]"
    weights: "NDArray[np.float32]"
    is_empty: bool


class Bm25sRetriever(Retriever):
    """BM25 over text and title as in the recipe `bm25`, from scores computed before. Safe to call from several threads.

    Raises:
        IndexUnusableError: The scores are damaged, or were made for other papers.
    """

    name = NAME
    label = "words"
    Settings = Bm25sSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: Bm25sSettings) -> Self:
        """Opens the scores of an index."""
        if not (index.path / NAME).is_dir():
            raise SettingsError(f"{index.path} has no scores of {NAME}", Bm25sManifest.remedy(index.path / NAME))
        return cls(index, settings)

    @classmethod
    def fits(cls, index: "OpenIndex", words: LuceneSettings) -> bool:
        """Whether the index has scores of its papers that `lucene` with some settings can use."""
        made = Bm25sManifest.of_papers(index.path, index.manifest.fingerprint)
        return made is not None and made.scores_as(words)

    @classmethod
    def for_lucene(cls, index: "OpenIndex", words: LuceneSettings) -> Self:
        """Opens it to score titles and abstracts as `lucene` would with some settings.

        Raises:
            SettingsError: The index has no scores, or they are those of other settings.
        """
        own = {name: getattr(words, name) for name in Bm25sSettings.model_fields}
        made = cls.open(index, Bm25sSettings(**own))
        if not made.manifest.scores_as(words):
            held = ", ".join(f"{name} {value:g}" for name, value in made.manifest.scoring.items())
            raise SettingsError(
                f"the scores of {NAME} in {index.path} are for {held}, and no weight of abstracts",
                "Search with these settings, or with --set lucene.engine=lucene.",
            )
        return made

    @classmethod
    def encode(cls, index: Path, _options: Any, on_progress: Progress, _parallelism: Parallelism = HERE) -> str:
        """Makes the scores of all terms."""
        return f"{build_scores(index, on_progress)} are in {index / NAME}."

    def __init__(self, index: "OpenIndex", settings: Bm25sSettings | None = None) -> None:
        self.settings = settings or Bm25sSettings()
        folder = index.path / NAME
        self.manifest = Bm25sManifest.read(folder)
        remedy = self.manifest.remedy(folder)
        if self.manifest.store != index.manifest.fingerprint:
            raise IndexUnusableError(f"the scores in {folder} were made for other papers", remedy)
        self._scores: NDArray[np.float32] = mapped(folder / SCORES)
        self._rows: NDArray[np.int32] = mapped(folder / ROWS)
        self._begins: NDArray[np.int64] = mapped(folder / BEGINS)
        self._papers = index.rows
        self._years, self._citations = mapped(folder / "years.npy"), mapped(folder / "citations.npy")
        try:
            self._numbers: dict[str, int] = orjson.loads((folder / VOCABULARY).read_bytes())
        except (OSError, ValueError) as error:
            raise IndexUnusableError(
                f"{folder / VOCABULARY} cannot be read ({error})", Bm25sManifest.remedy(folder)
            ) from error
        lengths = [len(column) for column in (self._papers, self._years, self._citations)]
        lengths += [len(self._scores), len(self._rows), len(self._begins) - 1, len(self._numbers)]
        made = self.manifest
        if lengths != [made.papers] * 3 + [made.postings] * 2 + [made.terms] * 2:
            raise IndexUnusableError(
                f"{folder} is damaged: its files have other numbers of rows", Bm25sManifest.remedy(folder)
            )
        self._passing = functools.lru_cache(_KEPT)(self._bits)
        self._index = index
        self._matching = functools.lru_cache(_KEPT_MATCHING)(self._matching_rows)

    def prepare(self, topics: Sequence[Topic]) -> list[Query]:
        """The terms of some topics, with their weights."""
        return [self._query(topic) for topic in topics]

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Query | None = None) -> Candidates:
        """The k best candidates, best first; fewer only if fewer share a word with the topic and pass the filters.

        Raises:
            QueryError: The topic has no word to search for, or too many.
            FilterError: k is under 1.
        """
        import numpy as np

        if k < 1:
            raise FilterError(f"k is {k}", "Ask for at least one paper.")
        self.settings.check_length(topic, NAME)
        query = prepared or self._query(topic)
        if query.is_empty:
            raise no_word(topic)
        scores = np.zeros(len(self._papers), np.float32)
        compiled(add_scores)(scores, query.terms, query.weights, self._begins, self._rows, self._scores)
        hidden = self._papers.rows([*filters.exclude, *filters.citing_ids])
        scores[hidden[hidden >= 0]] = 0
        best, rows = np.empty(min(k, len(scores)), np.float32), np.empty(min(k, len(scores)), np.int64)
        found = compiled(best_rows)(scores, self._passing(replace(filters, exclude=(), citing_ids=())), best, rows)
        best, rows = best[:found], rows[:found]
        scored = best.astype(np.float64)
        return Candidates(self._papers, rows, scored, {"bm25": scored}).in_order()

    def _query(self, topic: Topic) -> Query:
        import numpy as np

        found = term_weights(self.settings, topic)
        weights = {self._numbers[term]: weight for term, weight in found.items() if term in self._numbers}
        numbers = np.fromiter(weights, np.int32, len(weights))
        return Query(numbers, np.fromiter(weights.values(), np.float32, len(weights)), not found)

    def _bits(self, filters: Filters) -> "NDArray[np.uint8]":
        """A bit for each row, the first one lowest: whether it passes; an empty array if all do."""
        import numpy as np

        if filters == NO_FILTERS:
            return np.empty(0, np.uint8)
        return np.packbits(passing_rows(filters, self._years, self._citations, self._matching), bitorder="little")

    def _matching_rows(self, fields: tuple[str, ...], venues: tuple[str, ...]) -> "NDArray[np.int64]":
        # Java only where it must be.
        return self._index.lucene.matching_rows(Filters(fields=fields, venues=venues))
