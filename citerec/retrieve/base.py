"""The interface of retrievers, and their registry.

A retriever is one module of `citerec.retrieve` (or an entry point of the group `citerec.retrievers` in another
package) with a subclass of `Retriever` that registers itself:

    @RETRIEVERS.register
    class Nearest(Retriever):
        name = "nearest"
        ...

It can then be named in a recipe, in `--system`, and in `-c nearest.KEY=VALUE`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from citerec.contexts.learnt import NOTHING, Learnt
from citerec.contexts.topic import Topic
from citerec.errors import FilterError, QueryError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.records import NO_FILTERS, Filters, Match
from citerec.retrieve.candidates import Candidate, Floats, Rows
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.index.vectors.build import DenseOptions
    from citerec.retrieve.opened import OpenIndex


def check_asked(topic: Topic, k: int) -> None:
    """Raises FilterError if k is under 1, and QueryError if the topic is blank."""
    if k < 1:
        raise FilterError(f"k is {k}", "Ask for at least one paper.")
    if not topic.passage:
        raise QueryError("the sentence is empty", "Write one with content words.")


class Retriever(ABC):
    """Finds candidates for a topic. Safe to call from several threads; ties are ordered by paper id.

    Attributes:
        name: Its name in recipes, settings and errors.
        label: The name of its share of a fused score in reasons.
        Settings: The class of its settings: a `PartSettings` whose fields all have defaults and descriptions.
        filters_itself: Whether `search` leaves out what the filters forbid. If it does not, the pipeline does so
            afterwards, and the list may become shorter than k.
        service: The web service that it asks, which gets words of the text; it needs no index. Empty for all others.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    Settings: ClassVar[type[PartSettings]] = PartSettings
    filters_itself: ClassVar[bool] = False
    service: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the retriever on an index.

        Args:
            index: The index: its folder, paper store, manifest and words.
            settings: An instance of `Settings`.

        Raises:
            SettingsError: The index lacks what it needs.
            IndexUnusableError: What it needs is damaged.
        """

    @classmethod
    def encode(
        cls, _index: Path, _options: "DenseOptions", _on_progress: Progress, _parallelism: Parallelism = HERE
    ) -> str:
        """Makes what it searches, such as vectors, in the folder of its name in an index: `citerec index encode`.

        Args:
            _index: The index.
            _options: The encoder, the kind of FAISS index, and so on.
            _on_progress: Called as the work goes on.
            _parallelism: Where it is made, as in `citerec index encode --on`; without meaning for quick work.

        Returns:
            What to print about them; nothing if the folder is one of `citerec.index.vectors.vectors.Vectors`.

        Raises:
            SettingsError: There is nothing to make, which is the default.
        """
        raise SettingsError(f"the retriever {cls.name!r} searches no vectors", "Name another with --retriever.")

    @classmethod
    def learnt_at(cls, _index: Path, _settings: Any) -> Learnt:
        """What it learnt from, if citerec trained it; nothing by default."""
        return NOTHING

    @abstractmethod
    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Any = None) -> Sequence[Candidate]:
        """The k best candidates, best first; fewer if fewer are found: a list, or `Candidates`, which are faster.

        Args:
            topic: The topic to search for.
            k: How many candidates, from 1.
            filters: Which papers may be found, and what must not be known; they include the leak rules.
            prepared: What `prepare` returned for the topic; None if it was not called.

        Raises:
            QueryError: The topic holds nothing to search for.
            FilterError: k is under 1.
        """

    def prepare(self, topics: Sequence[Topic]) -> Sequence[Any]:
        """What a search needs of each topic, made for many at once, such as vectors; None for each by default."""
        return [None] * len(topics)

    def with_feedback(self, _prepared: Any, _rows: Rows, _weight: float) -> Any | None:
        """What `prepare` returned, moved towards the papers at some rows; None (the default) if nothing can be moved.

        These papers are then scored by it if there is `scored`, else it is searched for.
        """
        return None

    def scored(self, _prepared: Any, _rows: Rows) -> Floats | None:
        """The scores of the papers at some rows, (rows,); None (the default) if only a search can score papers.

        NaN stands for a paper that has no score. The scores are also a signal of the candidates that only other
        retrievers found, under the retriever's name.
        """
        return None

    def signals(self, _topic: Topic, _rows: Rows, _filters: Filters) -> Mapping[str, Floats]:
        """Further signals of the candidates at some rows, for rerankers: by name, (rows,) each; none by default.

        NaN is unknown. What the filters hide must not be used.
        """
        return {}

    def explain(self, _topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first; none by default."""
        return [()] * len(candidates)

    def counts(self) -> Counter[str]:
        """What was counted in the searches since the last call, such as what was not found; by default nothing."""
        return Counter()

    def remark(self, _counts: Mapping[str, int]) -> str:
        """What users should know of some counts, perhaps of several processes together; empty for nothing."""
        return ""

    def close(self) -> None:
        """Closes files and releases models."""
        return


_RETRIEVE = "citerec.retrieve"
RETRIEVERS: Registry[type[Retriever]] = Registry(
    "retriever",
    {
        "dense": f"{_RETRIEVE}.dense:DenseRetriever",
        "draft": f"{_RETRIEVE}.draft:DraftRetriever",
        "openalex-api": f"{_RETRIEVE}.live:OpenAlexRetriever",
        "profile": f"{_RETRIEVE}.profile:ProfileRetriever",
        "s2-api": f"{_RETRIEVE}.live:S2Retriever",
        "words": f"{_RETRIEVE}.words:WordsRetriever",
    },
)
"""Every retriever, by name."""
