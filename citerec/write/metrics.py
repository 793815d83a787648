"""Text metrics: their interfaces and registry, ROUGE and BERTScore by their packages, and metrics without a target.

Grounding proves nothing: a word that no source has may be right, and one that a source has may be wrong. Low values
show which texts to check.
"""

import functools
import importlib.metadata
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError, ModelError
from citerec.files.parallel import available_processors, in_parts, outcomes_of
from citerec.files.progress import Progress, told
from citerec.files.registry import Registry
from citerec.files.text import STOP_WORDS
from citerec.models.find import bare_name, find_model, model_failures, model_identity, quiet_libraries
from citerec.settings import Positive
from citerec.write.anchors import cited_in, with_bare_spans, without_anchors
from citerec.write.tasks import Prediction, Source, content_terms, sentences_by, sentences_of, terms_of, words_of
from citerec.write.writers.base import checked

Floats = npt.NDArray[np.float64]
Pair = tuple[str, str]
"""A text, and what it is compared with."""
References = Literal["best", "first"]
"""Which target counts if a task has several: `over_references`."""
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


@dataclass(slots=True)
class RowMetric:
    """A `TextMetric` that scores each text by itself; `row` gives the values of one, in the order of `columns`."""

    name: str
    columns: tuple[Column, ...]
    settings: Mapping[str, Any]
    row: Callable[[Prediction], Sequence[float] | Floats]

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores, texts × columns."""
        rows = [self.row(one) for one in told(texts, self.name, on_progress, len(texts))]
        return np.array(rows, np.float64).reshape(-1, len(self.columns))


@dataclass(slots=True)
class PairMetric:
    """A `TextMetric` that compares each text with each of its targets.

    Attributes:
        references: Which target counts if there are several: `over_references`.
        pairs: The values of pairs of text and target, pairs × columns.
    """

    name: str
    columns: tuple[Column, ...]
    settings: Mapping[str, Any]
    references: References
    pairs: Callable[[Sequence[Pair], Progress], Floats]

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Scores, texts × columns; NaN without a target."""
        targets = [prediction.task.targets for prediction in texts]
        pairs = [(text.text, target) for text, of_text in zip(texts, targets, strict=True) for target in of_text]
        parts = np.split(self.pairs(pairs, on_progress), np.cumsum(list(map(len, targets)), dtype=int))[:-1]
        return np.array([over_references(part, self.references) for part in parts]).reshape(-1, len(self.columns))


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
        rouge_l: Whether ROUGE-L takes a text as one sequence of words, or (`summary`) sentence by sentence
            (`sentences_of`); its column is `rougeLsum` then.
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
        device: Device of the models of BERTScore and BARTScore, such as `cpu`; by default a GPU if there is one.
    """

    stemming: bool = False
    rouge_l: Literal["sentence", "summary"] = "sentence"
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


DEFAULT_METRICS = ("rouge", "citations", "length", "novelty", "grounding", "self-reference")
"""The metrics that are computed if none is named."""

TEXT_METRICS: Registry[MetricPart] = Registry(
    "text metric",
    {
        name: f"citerec.write.metrics:{name.upper().replace('-', '_')}"
        for name in ("rouge", "bertscore", *DEFAULT_METRICS)
    },
)


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
            remedy = f"Give what citerec train tagger made: --tagger {name}=FOLDER"
            raise InputError(f"the metric {name} needs a tagger", remedy)
    metrics = [chosen.metric(name) for name in dict.fromkeys(names)]
    return [one for one in metrics if hasattr(one, "scores")], [one for one in metrics if not hasattr(one, "scores")]


@dataclass(frozen=True, slots=True)
class Preset:
    """Metrics and options in the registry, as the code of a paper's authors has them.

    `open_metrics(**PRESETS["citebench"].arguments())` opens the metrics, and `used` says for results what was used.

    Attributes:
        name: Its name.
        source: The paper and the files of its authors' code that the settings come from.
        options: Every one of `MetricOptions` that a metric of the preset depends on.
        metrics: The metrics. Those that need a tagger are computed only if one is given.
    """

    name: str
    source: str
    options: Mapping[str, Any]
    metrics: tuple[str, ...]

    def arguments(self, **by_hand: Any) -> dict[str, Any]:
        """The arguments of `open_metrics`.

        Args:
            by_hand: Arguments of `open_metrics` that win over the preset's: `names` or `MetricOptions`.
        """
        taggers = by_hand.get("taggers", {})
        names = [name for name in self.metrics if not TEXT_METRICS[name].needs_tagger or name in taggers]
        return {"names": names, **self.options, **by_hand}

    def used(self, **by_hand: Any) -> dict[str, Any]:
        """The preset as results name it, with what was used in its place.

        Args:
            by_hand: As for `arguments`.

        Returns:
            As JSON: `name`; `source`; `settings`, the metrics and options that were used; and `differs`, the preset's
            own values of those that are others.
        """
        options = self.arguments(**by_hand)
        own = {"metrics": list(self.metrics), **self.options}
        settings = {"metrics": list(dict.fromkeys(options["names"])), **{name: options[name] for name in self.options}}
        differs = {name: value for name, value in own.items() if settings[name] != value}
        return {"name": self.name, "source": self.source, "settings": settings, "differs": differs}


PRESETS: Registry[Preset] = Registry("preset", {})
"""The settings of papers: each stands in the folder of its paper."""


def over_references(values: Floats, references: References) -> Floats:
    """The values of a text against one of its targets, from targets × columns; all NaN if there is no target.

    `best` is the method of SciTLDR's authors (`scripts/cal-rouge.py` of their repository): the target with the highest
    value in the first column, ROUGE-1 F1 for ROUGE.
    """
    if not len(values):
        return np.full(values.shape[1], np.nan)
    return np.asarray(values[values[:, 0].argmax() if references == "best" else 0])


KINDS = ("rouge1", "rouge2", "rougeL")

# A process takes a second or more to start, so it needs enough work. Parts are small, so that all end together.
_WORTH_A_PROCESS, _PART = 500, 50


class Score(NamedTuple):
    """Precision, recall and F1 of a prediction against a reference, each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def rouge(prediction: str, reference: str, *, stemming: bool = False, kinds: Sequence[str] = KINDS) -> dict[str, Score]:
    """The scores of a text against another by kind, exactly as in rouge-score.

    Kinds are `rouge1` to `rouge9`, `rougeL`, and `rougeLsum`, for which each line of a text is a sentence.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scores = RougeScorer(list(kinds), use_stemmer=stemming).score(reference, prediction)
    return {kind: Score(*map(float, score)) for kind, score in scores.items()}


def open_rouge(options: MetricOptions, kind: str | None = None) -> PairMetric:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L, of which ROUGE-1 leads; or of one kind, as BlockMatch compares texts."""
    is_split = options.rouge_l == "summary"
    kinds: tuple[str, ...] = ("rouge1", "rouge2", "rougeLsum") if is_split else KINDS
    settings: dict[str, Any] = {"package": f"rouge-score {importlib.metadata.version('rouge-score')}"}
    settings |= {"stemming": options.stemming, "rouge_l": options.rouge_l}
    settings |= {"sentences": sentences_by()} if is_split else {}
    settings |= {"references": options.references, "measure": "f1"}
    if kind:
        kinds, settings = (kind,), {name: settings[name] for name in ("package", "stemming", "measure")}
    f1s = functools.partial(_f1s, kinds, options.stemming)

    def pairs(pairs: Sequence[Pair], on_progress: Progress) -> Floats:
        processes = max(1, min(options.workers or available_processors(), len(pairs) // _WORTH_A_PROCESS))
        values = np.empty((len(pairs), len(kinds)))
        on_progress("ROUGE", 0, len(pairs))
        for done, (number, part) in enumerate(outcomes_of(f1s, list(in_parts(pairs, _PART)), processes), 1):
            values[number * _PART : (number + 1) * _PART] = part
            on_progress("ROUGE", min(done * _PART, len(pairs)), len(pairs))
        return values

    return PairMetric(kind or "rouge", tuple(map(Column, kinds)), settings, options.references, pairs)


def tokens_of(texts: Iterable[str], *, stemming: bool) -> list[list[str]]:
    """The words of texts as rouge-score reads them."""
    from rouge_score.tokenizers import DefaultTokenizer

    return list(map(DefaultTokenizer(stemming).tokenize, texts))


def grown_rouge(text: Sequence[str], sentences: Iterable[Sequence[str]], reference: Sequence[str], n: int) -> Floats:
    """F1 of ROUGE-n of a text with each of some sentences added, all as words: exactly that of `rouge`."""
    from rouge_score.scoring import fmeasure

    wanted, seam = Counter(_ngrams(reference, n)), text[max(0, len(text) - n + 1) :]
    missing, scores = wanted - Counter(_ngrams(text, n)), []
    for sentence in sentences:
        added = Counter(_ngrams([*seam, *sentence], n)) & missing
        shared, length = wanted.total() - missing.total() + added.total(), len(text) + len(sentence) - n + 1
        scores.append(fmeasure(shared / max(length, 1), shared / max(wanted.total(), 1)))
    return np.array(scores, np.float64)


def _ngrams(terms: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(terms[start:] for start in range(n)), strict=False))


def _f1s(kinds: tuple[str, ...], stemming: bool, pairs: Sequence[Pair]) -> Floats:
    """F1 of predictions against references, pairs × kinds."""
    read = _lines if "rougeLsum" in kinds else with_bare_spans
    scores = (rouge(read(text), read(reference), stemming=stemming, kinds=kinds) for text, reference in pairs)
    return np.array([[of_pair[kind].f1 for kind in kinds] for of_pair in scores], np.float64)


@functools.lru_cache(maxsize=8)  # the pairs of one text follow each other
def _lines(text: str) -> str:
    return "\n".join(sentences_of(with_bare_spans(text)))


ROUGE = MetricPart("rouge", open_rouge)


NGRAMS = (1, 2, 3, 4)
KEYWORDS = ("our work", "in this paper", "we present", "we introduce")
"""The phrases that CiteBench looks for (Funkquist et al. 2023, section 5.4)."""

_KEYWORD = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE)
# Not inside a name: the 2 of "GPT-2" is part of a word, and counts with it.
_NUMBER = re.compile(r"(?<![^\W\d_])(?<![^\W\d_]-)(?<![\d.,])\d+(?:[.,]\d+)*")
_COMMA = re.compile(r",(?=\d{3}(?!\d))")


def lengths(prediction: Prediction) -> list[float]:
    """Words and sentences of a text, and its compression: words of the sources ÷ words of the text (SciTLDR, table 1).

    The compression is NaN if the text or the sources have no words.
    """
    words = len(words_of(without_anchors(prediction.text)))
    in_sources = sum(len(words_of(source.text)) for source in prediction.task.sources)
    return [words, len(sentences_of(prediction.text)), in_sources / words if words and in_sources else math.nan]


def novelty(prediction: Prediction) -> list[float]:
    """For each n of `NGRAMS` the share of the n-grams of a text, each as often as it occurs, that are in no source.

    Sources have a title and a text. Citations do not count; NaN if the text is shorter than n words.
    """
    terms = terms_of(without_anchors(prediction.text))
    of_sources = [terms_of(text) for one in prediction.task.sources for text in (one.title, one.text)]
    in_sources = {n: {gram for one in of_sources for gram in _ngrams(one, n)} for n in NGRAMS}
    return [_share([gram not in in_sources[n] for gram in _ngrams(terms, n)]) for n in NGRAMS]


def grounding(prediction: Prediction) -> list[float]:
    """The share of content words, and of numbers, that are in the text, title or authors of a source.

    Each word and number counts as often as it occurs; NaN if there are none.
    """
    text = without_anchors(prediction.text)
    sources = "\n".join(source.said for source in prediction.task.sources)
    terms, values = set(terms_of(sources)), set(numbers(sources))
    of_words, of_numbers = [term in terms for term in content_terms(text)], [one in values for one in numbers(text)]
    return [_share(of_words), _share(of_numbers)]


def numbers(text: str) -> list[Decimal | str]:
    """The numbers of a text by their value: 1,000 is 1000, and 0.50 is 0.5; as printed if they have none: 1.2.3."""
    return [
        Decimal(plain).normalize() if re.fullmatch(r"[0-9]+(\.[0-9]+)?", plain := _COMMA.sub("", printed)) else printed
        for printed in _NUMBER.findall(text)
    ]


def self_reference(prediction: Prediction) -> list[float]:
    """1 if a text refers to itself, else 0. Targets do too: 5 % of CiteBench's (appendix A.6)."""
    return [float(_KEYWORD.search(prediction.text) is not None)]


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else math.nan


WORDS = "letters and digits; hyphens inside; no citations"
"""What counts as a word in the length of a text."""
NEW_NGRAMS = {"ngrams": list(NGRAMS), "of": "words in small letters, parted at hyphens; no citations"}
"""The settings of novelty."""


def _open_length(_options: MetricOptions) -> RowMetric:
    columns = [Column(name, share=False, better=None) for name in ("words", "sentences", "compression")]
    return RowMetric("length", tuple(columns), {"words": WORDS, "sentences": sentences_by()}, lengths)


def _describing(
    name: str, row: Callable[[Prediction], list[float]], columns: Sequence[str], settings: Mapping[str, Any]
) -> MetricPart:
    """A metric of shares that needs no target, and has no options."""
    shares = tuple(Column(column, better=None) for column in columns)
    return MetricPart(name, lambda _: RowMetric(name, shares, settings, row))


LENGTH = MetricPart("length", _open_length)
NOVELTY = _describing("novelty", novelty, [f"novelty{n}" for n in NGRAMS], NEW_NGRAMS)
_STOPPED = {"stop_words": f"citerec's {len(STOP_WORDS)} function words"}
GROUNDING = _describing("grounding", grounding, ["grounding_words", "grounding_numbers"], _STOPPED)
SELF_REFERENCE = _describing("self-reference", self_reference, ["self_reference"], {"keywords": list(KEYWORDS)})


def citation_score(text: str, target: str, sources: Sequence[Source], works: CitedWorks = "sources") -> Score:
    """Precision, recall and F1 over the sets of cited papers.

    All are 1 if both sets are empty, and 0 if one is.

    Args:
        text: The text.
        target: What the author wrote.
        sources: What the text was written from.
        works: What counts. With `sources`, a citation of no source is wrong in the text, and ignored in the target,
            because no writer could make it; works that only a title names are ignored in both. With `named`, as in
            OARelatedWork, all cited works count on both sides, by identifier or else by title.
    """
    by_title = works == "named"
    in_text, of_target = cited_in(text, sources), cited_in(target, sources)
    ours, theirs = in_text.works(by_title=by_title), of_target.works(by_title=True) if by_title else of_target.sources
    if not ours and not theirs:
        return Score(1.0, 1.0, 1.0)
    right, both = len(ours & theirs), len(ours) + len(theirs)
    return Score(right / max(len(ours), 1), right / max(len(theirs), 1), 2 * right / both)


def open_citations(options: MetricOptions) -> RowMetric:
    """F1, precision and recall of the papers that texts cite; F1 leads `over_references`."""

    def row(prediction: Prediction) -> Floats:
        text, task = prediction.text, prediction.task
        scores = [citation_score(text, target, task.sources, options.cited_works) for target in task.targets]
        values = np.array([(one.f1, one.precision, one.recall) for one in scores]).reshape(-1, 3)
        return over_references(values, options.references)

    columns = tuple(map(Column, ("citation_f1", "citation_precision", "citation_recall")))
    return RowMetric("citations", columns, {"works": options.cited_works, "references": options.references}, row)


CITATIONS = MetricPart("citations", open_citations)

DEFAULT_MODEL = "roberta-large"
"""The default of the package for English."""

# The embeddings of a part are in memory together: for a large model some 2 MB per text.
_PAIRS_AT_ONCE, _BATCH = 128, 32
_BOUNDLESS, _TOKENS_OF_BERT = 10**6, 512


def open_bertscore(options: MetricOptions) -> PairMetric:
    """F1 of BERTScore (Zhang et al. 2020), as the package bert-score computes it. Empty texts have 0 before rescaling.

    Raises:
        ModelError: There is no such model or layer, or the package has no best layer or no baseline for it.
    """
    name, layer = options.bertscore_model or DEFAULT_MODEL, options.bertscore_layer
    with quiet_libraries(), model_failures(name):
        folder = find_model(name)
        from bert_score import BERTScorer
        from bert_score.utils import model2layers

        hub_name = _known_as(name, model2layers)
        layer = layer or model2layers.get(hub_name)
        if layer is None:
            raise ModelError(f"bert-score knows no best layer of the model {name!r}", "Name one: bertscore_layer.")
        # What it rescales is rescaled here: it fails at texts without a word, and for others it is one formula.
        scorer = BERTScorer(model_type=folder, num_layers=layer, lang="en", device=options.device)
    baseline = _baseline(name, hub_name, layer) if options.bertscore_rescaled else 0.0
    tokenizer = scorer._tokenizer
    if tokenizer.model_max_length > _BOUNDLESS:  # bert-score would fail then
        tokenizer.model_max_length = _TOKENS_OF_BERT

    def pairs(pairs: Sequence[Pair], on_progress: Progress) -> Floats:
        bare = [(with_bare_spans(text), with_bare_spans(reference)) for text, reference in pairs]
        # bert-score warns about empty texts, or fails.
        with quiet_libraries():  # transformers warns about texts that it cuts; `max_tokens` is in the settings
            blank = {text for pair in bare for text in pair if not tokenizer.tokenize(text)}
        full = [number for number, pair in enumerate(bare) if blank.isdisjoint(pair)]
        values = np.zeros((len(bare), 1))
        for start in range(0, len(full), _PAIRS_AT_ONCE):
            part = full[start : start + _PAIRS_AT_ONCE]
            texts, references = zip(*(bare[number] for number in part), strict=True)
            _, _, f1 = scorer.score(list(texts), list(references), batch_size=_BATCH)
            values[part, 0] = f1.double().numpy()
            on_progress("BERTScore", start + len(part), len(full))
        return (values - baseline) / (1 - baseline)

    settings: dict[str, Any] = {"package": f"bert-score {importlib.metadata.version('bert-score')}", "model": name}
    settings |= {"identity": model_identity(folder), "layer": layer, "max_tokens": int(tokenizer.model_max_length)}
    rescaled = f"baseline of {hub_name}" if options.bertscore_rescaled else False
    settings |= {"references": options.references, "rescaled": rescaled}
    return PairMetric("bertscore", (Column("bertscore"),), settings, options.references, pairs)


def _known_as(name: str, names: Iterable[str]) -> str:
    """The name by which bert-score knows a model: a folder `deberta-xlarge-mnli` is that model of the hub."""
    bare = bare_name(name)
    if not Path(bare).expanduser().is_dir():
        return bare
    return next((one for one in names if one.rpartition("/")[2] == Path(bare).name), name)


def _baseline(name: str, hub_name: str, layer: int) -> float:
    """The F1 of unrelated English texts by a layer of a model, as the package has it."""
    import bert_score

    path = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{hub_name}.tsv"
    if not path.is_file():
        remedy = "Leave out rescaling; or give a folder that is named as the hub names the model."
        raise ModelError(f"bert-score has no baseline of the model {name!r}", remedy)
    return float(np.loadtxt(path, delimiter=",", skiprows=1)[layer][3])  # layer, precision, recall, F1


BERTSCORE = MetricPart("bertscore", open_bertscore)
