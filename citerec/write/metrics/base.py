"""The interfaces of text metrics, and their registry."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.settings import Positive
from citerec.write.tasks import Prediction
from citerec.write.writers.base import checked

Floats = npt.NDArray[np.float64]
References = Literal["best", "first"]
"""Which target counts if a task has several: `over_references`."""
RougeL = Literal["sentence", "summary"]
"""Whether ROUGE-L takes a text as one sequence of words, or sentence by sentence."""
CitedWorks = Literal["sources", "named"]
"""Which cited works count: sources only, or all that have an identifier or a title."""
Sentences = Literal["all", "citebench"]
"""Which sentences get a citation intent: all, or those that CiteBench labels."""
MeanOver = Literal["sentences", "datasets"]
"""What the shares of labels over several data sets are: of all sentences, or the mean of the data sets' shares."""


@dataclass(frozen=True, slots=True)
class Column:
    """A value that a metric gives each text, and how it is shown.

    Attributes:
        name: Its name.
        share: Whether it is a share from 0 to 1, which only tables show ×100.
        better: Which values are better; None if a value only describes a text, such as its length.
        decimals: How many decimals tables show.
        metric: Its metric; evaluation fills it in.
    """

    name: str
    share: bool = True
    better: Literal["higher", "lower"] | None = "higher"
    decimals: int = 2
    metric: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def judges(self) -> bool:
        """Whether some values are better than others."""
        return self.better is not None

    @property
    def title(self) -> str:
        """The name, the unit, and ↓ if lower is better."""
        return self.name + " ×100" * self.share + " ↓" * (self.better == "lower")

    def shown(self, value: float) -> float:
        """A value as tables and charts show it."""
        return 100 * value if self.share else value

    def text(self, value: float | None, fewer: int = 0) -> str:
        """A value as text, with so many decimals fewer."""
        if value is None or math.isnan(value):
            return "–"
        return f"{self.shown(value):,.{max(0, self.decimals - fewer)}f}"

    def bound(self, value: float) -> str:
        """A bound of an interval, short: ".05", "1.0", "20.2"."""
        text = self.text(value, 1)
        if self.share or self.decimals < 3:
            return text
        return self.text(value, 2) if round(value, 2) >= 1 else text.removeprefix("0")


class TextMetric(Protocol):
    """Scores texts one by one; evaluation reports the means.

    Attributes:
        name: Its name in options and in the settings of results: "rouge", "blockmatch-rouge2".
        columns: The values of a text: `rouge1`, `rouge2`, `rougeL`.
        settings: Everything that the values depend on, as JSON; results contain them.
    """

    name: str
    columns: tuple[Column, ...]
    settings: Mapping[str, Any]

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores, texts × columns; NaN if a value is not defined, such as without a target."""


class RowMetric(TextMetric):
    """A metric that scores each text by itself."""

    @abstractmethod
    def row(self, prediction: Prediction) -> Sequence[float] | Floats:
        """The values of one text, in the order of `columns`."""

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores, texts × columns."""
        rows = []
        for done, prediction in enumerate(texts, 1):
            rows.append(self.row(prediction))
            on_progress(self.name, done, len(texts))
        return np.array(rows, np.float64).reshape(-1, len(self.columns))


class PairMetric(TextMetric):
    """A metric that compares each text with each of its targets.

    Attributes:
        references: Which target counts if there are several: `over_references`.
    """

    references: References

    @abstractmethod
    def pairs(self, pairs: Sequence[tuple[str, str]], on_progress: Progress) -> Floats:
        """The values of each pair of text and target, pairs × columns."""

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores, texts × columns; NaN without a target."""
        pairs = [(prediction.text, target) for prediction in texts for target in prediction.task.targets]
        values = self.pairs(pairs, on_progress)
        return of_texts(values, [len(prediction.task.targets) for prediction in texts], self.references)


class CorpusMetric(Protocol):
    """Scores all texts of a system on a data set together; `name` and `settings` as in `TextMetric`."""

    name: str
    settings: Mapping[str, Any]

    def summary(self, texts: Sequence[Prediction], on_progress: Progress) -> Mapping[str, Any]:
        """The summary as JSON, without NaN or infinite numbers."""


@dataclass(frozen=True)
class MetricOptions:
    """Options of metrics; each metric reads its own.

    Attributes:
        stemming: Whether ROUGE stems words (Porter), which CiteBench does not do: it changes ROUGE-1 and L by some
            three points.
        rouge_l: How ROUGE-L takes a text; with `summary` (`sentences_of`) its column is `rougeLsum`.
        references: Which target counts if there are several: `over_references`.
        bertscore_model: A folder or a name (`find_model`); roberta-large by default. The package knows the best layer
            and the baseline of a model by its name; a folder is taken for the model whose name it has.
        bertscore_layer: The layer, from 1; by default the best one according to the package's authors.
        bertscore_rescaled: Whether scores are rescaled by the package's English baseline of the model.
        bartscore_model: A folder or a name; facebook/bart-large-cnn by default.
        cited_works: Which cited works count.
        intent_sentences: Which sentences get a citation intent.
        discourse_mean: How labels over several data sets are counted.
        taggers: Folder of the tagger, by the name of the metric: "intent", "corwa".
        labels: By the name of the metric other names for the labels of its tagger: `citerec.discourse.tagger`.
        workers: Processes for ROUGE; None for as many as there are processors.
        device: Device of BERTScore's model, such as `cpu`; by default a GPU if there is one.
    """

    stemming: bool = False
    rouge_l: RougeL = "sentence"
    references: References = "best"
    bertscore_model: str | None = None
    bertscore_layer: Positive | None = None
    bertscore_rescaled: bool = False
    bartscore_model: str | None = None
    cited_works: CitedWorks = "sources"
    intent_sentences: Sentences = "all"
    discourse_mean: MeanOver = "sentences"
    taggers: Mapping[str, Path] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workers: Positive | None = None
    device: str | None = None
    _opened: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def metric(self, name: str) -> Any:
        """The metric of this name, opened once: BERTScore alone and in BlockMatch use the same model."""
        if name not in self._opened:
            self._opened[name] = TEXT_METRICS[name].open(self)
        return self._opened[name]


@dataclass(frozen=True, slots=True)
class MetricPart:
    """A metric in the registry.

    Attributes:
        open: Opens it; heavy packages are imported there.
        needs_tagger: Whether it needs the folder of a tagger.
    """

    name: str
    open: Callable[[MetricOptions], TextMetric | CorpusMetric]
    needs_tagger: bool = False


_METRICS = "citerec.write.metrics"
TEXT_METRICS: Registry[MetricPart] = Registry(
    "text metric",
    {
        "rouge": f"{_METRICS}.rouge:ROUGE",
        "bertscore": f"{_METRICS}.bertscore:BERTSCORE",
        "citations": f"{_METRICS}.describing:CITATIONS",
        "length": f"{_METRICS}.describing:LENGTH",
        "novelty": f"{_METRICS}.describing:NOVELTY",
        "grounding": f"{_METRICS}.describing:GROUNDING",
        "self-reference": f"{_METRICS}.describing:SELF_REFERENCE",
    },
)


DEFAULT_METRICS = ("rouge", "citations", "length", "novelty", "grounding", "self-reference")
"""The metrics that are computed if none is named."""

TAGGED_METRICS = ("intent", "corwa")
"""The built-in metrics that need a tagger."""


def open_metrics(names: Sequence[str], **options: Any) -> tuple[list[TextMetric], list[CorpusMetric]]:
    """Metrics of texts and metrics of whole systems by names of `TEXT_METRICS`, models loaded.

    Args:
        names: The metrics; repeated names count once.
        options: `MetricOptions`.

    Raises:
        InputError: There is no such metric, none at all, or no tagger for it; or an option is unknown or wrong.
        ModelError: A model or tagger cannot be opened.
    """
    chosen = checked(MetricOptions, options, "text metrics")
    if not names:
        raise InputError("no metric is named", f"Choose: {', '.join(TEXT_METRICS)}.")
    for name in names:
        if TEXT_METRICS[name].needs_tagger and name not in chosen.taggers:
            raise InputError(
                f"the metric {name} needs a tagger", f"Give what citerec train tagger made: --tagger {name}=FOLDER"
            )
    metrics = [chosen.metric(name) for name in dict.fromkeys(names)]
    return [one for one in metrics if hasattr(one, "scores")], [one for one in metrics if not hasattr(one, "scores")]


def of_texts(values: Floats, targets: Sequence[int], references: References) -> Floats:
    """One row for each text, from values of each text against each of its targets: `over_references`.

    Args:
        values: The values, pairs × columns, in the order of texts and targets.
        targets: How many rows of them each text has.
        references: Which of them counts.
    """
    parts = np.split(values, np.cumsum(targets, dtype=int))[:-1]
    return np.array([over_references(part, references) for part in parts]).reshape(-1, values.shape[1])


def over_references(values: Floats, references: References) -> Floats:
    """The values of a text against one of its targets, from targets × columns; all NaN if there is no target.

    `best` is the method of SciTLDR's authors (`scripts/cal-rouge.py` of their repository): the target with the highest
    value in the first column, ROUGE-1 F1 for ROUGE.
    """
    if not len(values):
        return np.full(values.shape[1], np.nan)
    return np.asarray(values[values[:, 0].argmax() if references == "best" else 0])
