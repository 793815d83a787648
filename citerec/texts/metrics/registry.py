"""Metrics of texts by name."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from citerec.errors import InputError
from citerec.texts.metrics.bertscore import BertScore
from citerec.texts.metrics.blockmatch import BlockMatch
from citerec.texts.metrics.citations import Citations
from citerec.texts.metrics.grounding import Grounding
from citerec.texts.metrics.length import Length
from citerec.texts.metrics.metric import CorpusMetric, References, TextMetric
from citerec.texts.metrics.novelty import Novelty
from citerec.texts.metrics.rouge import KINDS, Rouge, RougeL, RougePairs
from citerec.texts.metrics.self_reference import SelfReference

DISCOURSE = ("intent", "corwa")
"""Metrics that need a tagger's folder."""

METRICS = (
    "rouge",
    "bertscore",
    *(f"blockmatch-{kind}" for kind in (*KINDS, "bertscore")),
    "citations",
    "self-reference",
    "novelty",
    "length",
    "grounding",
    *DISCOURSE,
)
"""Names of all metrics."""

_TAGGER = "Give what citerec train tagger made: --tagger {}=FOLDER"


def open_metrics(
    names: Sequence[str],
    *,
    stemming: bool = False,
    rouge_l: RougeL = "sentence",
    references: References = "best",
    bertscore_model: str | None = None,
    bertscore_layer: int | None = None,
    taggers: Mapping[str, Path] | None = None,
    workers: int | None = None,
) -> tuple[list[TextMetric], list[CorpusMetric]]:
    """Metrics by name, models loaded.

    Args:
        names: Of `METRICS`; one that comes twice counts once.
        stemming: Of ROUGE, alone and in BlockMatch: `Rouge`.
        rouge_l: The kind of ROUGE-L: `Rouge`. Of blocks always that of a sentence.
        references: What counts where there are several targets: `over_references`.
        bertscore_model: `BertScore.open`.
        bertscore_layer: `BertScore.open`.
        taggers: Folder of the tagger, by the name of the metric: "intent", "corwa".
        workers: Processes for ROUGE; None for as many as there are processors.

    Returns:
        Metrics of texts, and metrics of whole systems, each in the order of their names.

    Raises:
        InputError: There is no such metric, none at all, or no tagger for it.
        ModelError: A model or tagger cannot be opened.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise InputError("no metric is named", f"Choose: {', '.join(METRICS)}.")
    for name in wanted:
        if name not in METRICS:
            near = difflib.get_close_matches(name, METRICS, 1)
            did = f"Did you mean {near[0]}? " if near else ""
            raise InputError(f"there is no metric of texts {name!r}", f"{did}Choose: {', '.join(METRICS)}.")
        if name in DISCOURSE and name not in (taggers or {}):
            raise InputError(f"the metric {name} needs a tagger", _TAGGER.format(name))

    @cache  # alone and in BlockMatch it is the same model
    def bertscore() -> BertScore:
        return BertScore.open(bertscore_model, bertscore_layer, references=references)

    makers: dict[str, Callable[[], TextMetric]] = {
        "rouge": partial(Rouge, stemming=stemming, rouge_l=rouge_l, references=references, workers=workers),
        "bertscore": bertscore,
        "blockmatch-bertscore": lambda: BlockMatch(bertscore(), references=references),
        "citations": partial(Citations, references=references),
        "self-reference": SelfReference,
        "novelty": Novelty,
        "length": Length,
        "grounding": Grounding,
    }
    for kind in KINDS:
        score = RougePairs(kind, stemming=stemming, workers=workers)
        makers[f"blockmatch-{kind}"] = partial(BlockMatch, score, references=references)
    return (
        [makers[name]() for name in wanted if name not in DISCOURSE],
        [_discourse(name, (taggers or {})[name]) for name in wanted if name in DISCOURSE],
    )


def _discourse(name: str, folder: Path) -> CorpusMetric:
    from citerec.discourse.tagger import open_tagger
    from citerec.models.find import model_identity
    from citerec.texts.metrics.discourse import Discourse

    if not folder.is_dir():  # else it would be looked for on the hub
        raise InputError(f"there is no tagger in {folder}", _TAGGER.format(name))
    return Discourse(name, open_tagger(folder), model_identity(str(folder)))
