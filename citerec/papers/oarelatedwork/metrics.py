"""BARTScore (Yuan et al. 2021): how likely a BART finds a text, given another; and the settings of all metrics."""

import functools
from collections.abc import Sequence

import numpy as np

from citerec.files.progress import Progress
from citerec.models.encoder import batches_by_length
from citerec.models.find import quiet_libraries
from citerec.models.text_models import IGNORED, TextModel
from citerec.write import metrics
from citerec.write.anchors import with_bare_spans
from citerec.write.tasks import Prediction

DEFAULT_MODEL = "facebook/bart-large-cnn"
"""The model of the paper's BARTSCORE-CNN."""

_TOKENS, _ROWS = 4096, 8  # of a batch: the scores of all words are in memory at once
_LONGEST = 1024  # tokens that are read of a text, as in the authors' code, if the model sets no limit


class BartScore(metrics.TextMetric):
    """The mean log-probability of the tokens of a text, special ones included, given its sources: 0 at most.

    It is the paper's "faithfulness". Long texts are cut at their ends. A blank text, or one without sources, has none.

    Args:
        model: A folder or a name (`find_model`); facebook/bart-large-cnn by default.
        device: The device, such as `cpu`; by default a GPU if there is one.

    Raises:
        InputError: There is no such device.
        ModelError: There is no such model, or it is not an encoder-decoder.
    """

    name = "bartscore"
    columns = (metrics.Column("bartscore", share=False, decimals=3),)

    def __init__(self, model: str | None = None, *, device: str | None = None) -> None:
        self._model = opened = TextModel.open(model or DEFAULT_MODEL, kinds=["encoder-decoder"], device=device)
        self._read = opened.max_input_tokens or _LONGEST
        self._written = min(self._read, opened.max_output_tokens or _LONGEST)
        self.settings = {
            "model": opened.name,
            "identity": opened.identity,
            "direction": "faithfulness",
            "max_tokens": [self._read, self._written],
            "precision": opened.precision,
        }

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> metrics.Floats:
        """Log-probabilities, texts × 1."""
        pairs = [(" ".join(source.text for source in one.task.sources), with_bare_spans(one.text)) for one in texts]
        places = [place for place, pair in enumerate(pairs) if all(map(str.strip, pair))]
        encode = self._model.encode_text
        with quiet_libraries():  # the tokenizer warns about texts that it cuts; `max_tokens` is in the settings
            ids = [(encode(pairs[at][0], self._read).ids, encode(pairs[at][1], self._written).ids) for at in places]
        values, done = np.full((len(texts), 1), np.nan), 0
        for rows in batches_by_length([len(source) + len(wanted) for source, wanted in ids], _TOKENS, _ROWS):
            values[[places[row] for row in rows], 0] = _mean_log_probabilities(self._model, [ids[row] for row in rows])
            done += len(rows)
            on_progress("BARTScore", done, len(ids))
        return values


BARTSCORE = metrics.MetricPart("bartscore", lambda options: BartScore(options.bartscore_model, device=options.device))


def _mean_log_probabilities(model: TextModel, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[float]:
    """The mean log-probability of the second tokens of each pair, each given the first ones and those before it."""
    import torch
    from torch.nn.functional import cross_entropy

    batch, targets = zip(*pairs, strict=True)
    labels = model.padded(targets, IGNORED)
    with torch.inference_mode(), model.autocast():
        logits = model.model(**model.tensors(batch), labels=labels).logits
    losses = cross_entropy(logits.float().transpose(1, 2), labels, reduction="none")
    means: list[float] = (-losses.double().sum(dim=1) / (labels != IGNORED).sum(dim=1)).tolist()
    return means


def blocks_of(text: str) -> list[str]:
    """The blocks of a text: its lines that are not blank. Each paragraph and each headline is a line."""
    return [block for line in with_bare_spans(text).splitlines() if (block := line.strip())]


def match(scores: metrics.Floats) -> metrics.Score:
    """The best assignment of blocks, by the Hungarian algorithm, of scores (reference blocks × predicted blocks).

    Let t be the highest sum of scores of pairs that use no block twice. The result is t ÷ predicted blocks,
    t ÷ reference blocks, and their harmonic mean; all 0 if either has no block.
    """
    from scipy.optimize import linear_sum_assignment

    references, predictions = scores.shape
    if not references or not predictions:
        return metrics.Score(0.0, 0.0, 0.0)
    total = float(scores[linear_sum_assignment(scores, maximize=True)].sum())
    # The harmonic mean of t/p and t/r, without dividing by a sum that may be 0.
    return metrics.Score(total / predictions, total / references, 2 * total / (references + predictions))


def block_match(score: metrics.PairMetric, *, references: metrics.References = "best") -> metrics.PairMetric:
    """F1, precision and recall of matched blocks, by a score of two blocks; F1 leads `over_references`.

    Its name is part of the metric's: "rouge2", "bertscore". They have the same highest value as the score itself.
    """

    def matched(texts: Sequence[metrics.Pair], on_progress: Progress) -> metrics.Floats:
        blocks = [(blocks_of(target), blocks_of(text)) for text, target in texts]
        pairs = [(block, reference) for wanted, predicted in blocks for reference in wanted for block in predicted]
        ends = np.cumsum([len(wanted) * len(predicted) for wanted, predicted in blocks], dtype=int)
        parts = np.split(score.pairs(pairs, on_progress), ends)[:-1]
        scores = [match(part.reshape(*map(len, both))) for part, both in zip(parts, blocks, strict=True)]
        return np.array([(one.f1, one.precision, one.recall) for one in scores], np.float64).reshape(-1, 3)

    name = f"blockmatch-{score.name}"
    columns = tuple(metrics.Column(f"blockmatch_{score.name}{end}") for end in ("", "_precision", "_recall"))
    settings = {"blocks": "lines", "references": references, "score": {"name": score.name, **score.settings}}
    return metrics.PairMetric(name, columns, settings, references, matched)


def _open(kind: str, options: metrics.MetricOptions) -> metrics.PairMetric:
    score = options.metric(kind) if kind == "bertscore" else metrics.open_rouge(options, kind)
    return block_match(score, references=options.references)


BLOCKMATCH_ROUGE1, BLOCKMATCH_ROUGE2, BLOCKMATCH_ROUGEL, BLOCKMATCH_BERTSCORE = (
    metrics.MetricPart(f"blockmatch-{kind}", functools.partial(_open, kind)) for kind in (*metrics.KINDS, "bertscore")
)


OARELATEDWORK = metrics.Preset(
    "oarelatedwork",
    source="Docekal et al. 2024, section 4, and the code of its authors",
    metrics=("rouge", "blockmatch-rouge2", "bertscore", "blockmatch-bertscore", "citations"),
    options={
        "stemming": True,
        "rouge_l": "summary",
        "references": "first",
        "bertscore_model": "microsoft/deberta-xlarge-mnli",
        "bertscore_layer": 40,
        "bertscore_rescaled": True,
        "cited_works": "named",
    },
)
