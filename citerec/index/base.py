"""The interface of the engines that search the words of an index, and their registry."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.corpus.store import Counts, PaperStore
from citerec.errors import SettingsError
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.index.candidates import Candidate, Candidates
from citerec.index.vectors.vectors import Vectors
from citerec.index.words.texts import TopicTexts
from citerec.records import Filters, Match
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex


PAPERS, CITANCES = "papers", "citances"
"""What an engine holds: a document for each paper, and one for each citing sentence."""

TEXT, TITLE, ABSTRACT, CITANCE = "contents", "title", "abstract", "citance"
"""The fields of words: three of papers, one of citing sentences. Anserini calls title and abstract `contents`, too."""


class Bm25Settings(PartSettings):
    """BM25's parameters. Defaults chosen on data/acm dev: docs/results.md."""

    k1: float = Field(default=1.2, ge=0, le=1000, description="how slowly repeats of a word saturate")
    b: float = Field(default=0.75, ge=0, le=1, description="how much long texts are penalised")


class Weights(PartSettings):
    """Weights of a word by its field; 0 leaves the field out.

    Defaults chosen on the dev contexts of data/acm and data/acl: docs/results.md.
    """

    text: float = Field(default=1.0, ge=0, le=1000, description="title and abstract as one field")
    title: float = Field(default=0.35, ge=0, le=1000, description="the title alone")
    abstract: float = Field(
        default=0.0, ge=0, le=1000, description="the abstract alone, in an index built with -c abstract_field=true"
    )
    citances: float = Field(default=1.8, ge=0, le=1000, description="sentences of other papers that cite the paper")


class WordSettings(TopicTexts):
    """BM25 over the fields of papers and over citing sentences."""

    bm25: Bm25Settings = Bm25Settings()
    weights: Weights = Weights()
    citance_decay: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="weight of each further citing sentence of a paper, against its better one",
    )


class Words(ABC):
    """The words of an open index, searched. Safe to use from several threads; ties are ordered by paper id.

    A paper scores the weighted sum of BM25 over its fields, and of its best citing sentences, each further one decayed:
    `Σ_f w_f · BM25_f + w_citances · Σ_j decay^j · BM25(sentence_j)` over the sentences that pass the filters.
    """

    @abstractmethod
    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        """The k best candidates, best first; fewer if fewer share a word with the topic and pass the filters.

        Any `sort` (one of `citerec.index.filters.SORTS`) but relevance orders every paper that shares a word with it.
        """

    @abstractmethod
    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first.

        Without citing sentences their scores add up to its score. Of its sentences only the best one is explained.
        """


class Layout(NamedTuple):
    """How the words of an index are written.

    Attributes:
        engine: The engine.
        abstract_field: Whether abstracts are a field of their own.
        url: Where a server keeps them; None if the index does.
        quantization: How the server keeps vectors in memory: `none`, `int8` or `binary`.
        shards: The shards of each collection in a cluster; None for the server's default.
        replicas: Copies of each shard; the same.
    """

    engine: str = "embedded"
    abstract_field: bool = False
    url: str | None = None
    quantization: str = "none"
    shards: int | None = None
    replicas: int | None = None

    @property
    def fields(self) -> dict[str, list[str]]:
        """The fields of words of `PAPERS` and `CITANCES`."""
        return {PAPERS: [TEXT, TITLE, *[ABSTRACT] * self.abstract_field], CITANCES: [CITANCE]}


class Engine(ABC):
    """Writes the words of the papers of an index, and opens what it has written.

    Attributes:
        name: Its name in `citerec index build --engine`.
        FOLDER: The folder of its files in an index.
    """

    name: ClassVar[str]
    FOLDER: ClassVar[str]

    @classmethod
    @abstractmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        """Writes the words of a store into the folder of a generation, whose columns and vectors are there.

        Args:
            folder: The folder of the generation.
            before: That of the generation before; it may not exist.
            store: The papers.
            layout: How words are written.
            counts: The counts of the store.
            on_progress: Called as the work goes on.

        Returns:
            What users should know of it; empty for nothing.
        """

    @classmethod
    @abstractmethod
    def open(cls, index: "OpenIndex", settings: WordSettings) -> Words:
        """The words of an open index, to search with some settings.

        Raises:
            IndexUnusableError: They are missing or damaged.
            SettingsError: No field has a weight, or one that the index lacks, or it was built with other settings.
        """

    @classmethod
    def vectors(cls, index: "OpenIndex", name: str, probe: int | None) -> Vectors:
        """The vectors of a folder of an index, to search; `probe` is how far an index over them is searched."""
        return Vectors(index.folder / name, probe)


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    {
        "embedded": "citerec.index.words.embedded:Embedded",
        "lucene": "citerec.index.lucene.words:Lucene",
        "qdrant": "citerec.index.qdrant.engine:Qdrant",
    },
    error=SettingsError,
)
"""Every engine, by name."""


def check_weights(settings: WordSettings, *, citances: bool, abstract: bool, index: Path) -> None:
    """Raises SettingsError if nothing can be searched, or a field that the index lacks has a weight."""
    weights = settings.weights
    if not (weights.text or weights.title or weights.abstract or (weights.citances and citances)):
        raise SettingsError("every weight is 0", "Give one field a weight: -c words.weights.text=1")
    if weights.abstract and not abstract:
        raise SettingsError(
            f"words.weights.abstract is {weights.abstract:g}, but {index} has no field of abstracts",
            "Set it to 0, or build the index again with -c abstract_field=true.",
        )


def matches(
    written: Mapping[str, str], scores: "dict[str, float]", places: "dict[str, list[str]]"
) -> tuple[Match, ...]:
    """One match per word as written, best first: "state-of-the-art" is several terms.

    Args:
        written: For each term the word that has it.
        scores: The score of each term.
        places: The names of the fields that each term is in.
    """
    of_word: dict[str, float] = {}
    fields: dict[str, dict[str, None]] = {}
    for term, score in scores.items():
        if score > 0:
            word = written[term]
            of_word[word] = of_word.get(word, 0.0) + score
            fields.setdefault(word, {}).update(dict.fromkeys(places[term]))
    found = [Match(word, tuple(fields[word]), score) for word, score in of_word.items()]
    return tuple(sorted(found, key=lambda match: (-match.score, match.word)))
