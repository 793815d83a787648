"""BERTScore (Zhang et al. 2020) as the package bert-score computes it."""

import importlib.metadata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from citerec.errors import ModelError
from citerec.files.progress import Progress
from citerec.models.find import bare_name, find_model, model_failures, model_identity, quiet_libraries
from citerec.write.anchors import with_bare_spans
from citerec.write.metrics.base import Column, Floats, MetricOptions, MetricPart, PairMetric, References

DEFAULT_MODEL = "roberta-large"
"""The default of the package for English."""

# The embeddings of a part are in memory together: for a large model some 2 MB per text.
_PAIRS_AT_ONCE, _BATCH = 128, 32
_BOUNDLESS, _TOKENS_OF_BERT = 10**6, 512


class BertScore(PairMetric):
    """F1 of BERTScore of texts against their targets. Empty texts have 0 before rescaling.

    Attributes:
        settings: Model, its identity, layer and longest input in tokens; rescaling; references; the package's version.

    Raises:
        ModelError: There is no such model or layer, or the package has no best layer or no baseline for it.
    """

    name = "bertscore"
    columns = (Column("bertscore"),)

    def __init__(self, options: MetricOptions) -> None:
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
            self._scorer = BERTScorer(model_type=folder, num_layers=layer, lang="en", device=options.device)
        self._baseline = _baseline(name, hub_name, layer) if options.bertscore_rescaled else 0.0
        tokenizer = self._scorer._tokenizer
        if tokenizer.model_max_length > _BOUNDLESS:  # bert-score would fail then
            tokenizer.model_max_length = _TOKENS_OF_BERT
        self.references: References = options.references
        self.settings = {"package": f"bert-score {importlib.metadata.version('bert-score')}", "model": name}
        self.settings |= {"identity": model_identity(folder), "layer": layer}
        self.settings |= {"max_tokens": int(tokenizer.model_max_length), "references": options.references}
        self.settings |= {"rescaled": f"baseline of {hub_name}" if options.bertscore_rescaled else False}

    def pairs(self, pairs: Sequence[tuple[str, str]], on_progress: Progress) -> Floats:
        """F1 of each pair of prediction and reference, pairs × 1."""
        bare = [(with_bare_spans(prediction), with_bare_spans(reference)) for prediction, reference in pairs]
        # bert-score warns about empty texts, or fails.
        with quiet_libraries():  # transformers warns about texts that it cuts; `max_tokens` is in the settings
            blank = {text for pair in bare for text in pair if not self._scorer._tokenizer.tokenize(text)}
        full = [number for number, pair in enumerate(bare) if blank.isdisjoint(pair)]
        values = np.zeros(len(bare))
        for start in range(0, len(full), _PAIRS_AT_ONCE):
            part = full[start : start + _PAIRS_AT_ONCE]
            predictions, references = zip(*(bare[number] for number in part), strict=True)
            _, _, f1 = self._scorer.score(list(predictions), list(references), batch_size=_BATCH)
            values[part] = f1.double().numpy()
            on_progress("BERTScore", start + len(part), len(full))
        return ((values - self._baseline) / (1 - self._baseline))[:, None]


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


BERTSCORE = MetricPart("bertscore", BertScore)
