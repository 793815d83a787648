"""BARTScore (Yuan et al. 2021): how likely a BART finds a text, given another."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from citerec.files.progress import Progress
from citerec.models.batches import batches_by_length
from citerec.models.find import quiet_libraries
from citerec.write.anchors import with_bare_spans
from citerec.write.metrics.base import BartScoreDirection, Column, Floats, MetricPart, References, TextMetric, of_texts
from citerec.write.tasks import Prediction

if TYPE_CHECKING:
    from citerec.models.text_models import TextModel

DEFAULT_MODEL = "facebook/bart-large-cnn"
"""The model of the paper's BARTSCORE-CNN."""

_TOKENS, _ROWS = 4096, 8  # of a batch: the scores of all words are in memory at once
_LONGEST = 1024  # tokens that are read of a text, as in the authors' code, if the model sets no limit

_Pair = tuple[str, str]
"""What is read, and the text whose likelihood is wanted."""


class BartScore(TextMetric):
    """The mean log-probability of the tokens of a text, special ones included, given another: 0 at most.

    Long texts are cut at their ends. A blank text has no value, and so have the directions that read a target without
    one.

    Args:
        model: A folder or a name (`find_model`); facebook/bart-large-cnn by default.
        direction: What is given → what is likely. `faithfulness`: sources → text. `precision`: target → text. `recall`:
            text → target. `f`: the mean of the latter two (section 3.2 of the paper).
        references: As for `over_references`.
        device: The device, such as `cpu`; by default a GPU if there is one.

    Raises:
        InputError: There is no such device.
        ModelError: There is no such model, or it is not an encoder-decoder.
    """

    name = "bartscore"
    columns = (Column("bartscore", share=False, decimals=3),)

    def __init__(
        self,
        model: str | None = None,
        direction: BartScoreDirection = "faithfulness",
        *,
        references: References = "best",
        device: str | None = None,
    ) -> None:
        from citerec.models.text_models import TextModel

        opened = TextModel.open(model or DEFAULT_MODEL, kinds=["encoder-decoder"], device=device)
        self._model, self._references, self._direction = opened, references, direction
        self._read = opened.max_input_tokens or _LONGEST
        self._written = min(self._read, opened.max_output_tokens or _LONGEST)
        self.settings = {
            "model": opened.name,
            "identity": opened.identity,
            "direction": direction,
            "max_tokens": [self._read, self._written],
            "precision": opened.precision,
            "references": references,
        }

    def scores(self, texts: Sequence[Prediction], on_progress: Progress) -> Floats:
        """Log-probabilities, texts × 1."""
        of_each = [self._pairs(prediction) for prediction in texts]
        encode = self._model.encode_text
        with quiet_libraries():  # the tokenizer warns about texts that it cuts; `max_tokens` is in the settings
            ids = [
                (encode(given, self._read).ids, encode(wanted, self._written).ids)
                for pairs in of_each
                for of_target in pairs
                for given, wanted in of_target
            ]
        values, done = np.full(len(ids), np.nan), 0
        for rows in batches_by_length([len(given) + len(wanted) for given, wanted in ids], _TOKENS, _ROWS):
            values[rows] = _mean_log_probabilities(self._model, [ids[row] for row in rows])
            done += len(rows)
            on_progress("BARTScore", done, len(ids))
        means = values.reshape(-1, 2 if self._direction == "f" else 1).mean(axis=1)
        return of_texts(means[:, None], list(map(len, of_each)), self._references)

    def _pairs(self, prediction: Prediction) -> list[list[_Pair]]:
        """The pairs of a text, for each target those whose values are averaged."""
        text = with_bare_spans(prediction.text)
        if not text.strip():
            return []
        if self._direction == "faithfulness":
            given = " ".join(source.text for source in prediction.task.sources)
            return [[(given, text)]] if given.strip() else []
        targets = map(with_bare_spans, prediction.task.targets)
        both = [[(target, text), (text, target)] for target in targets if target.strip()]
        return [{"precision": pair[:1], "recall": pair[1:], "f": pair}[self._direction] for pair in both]


BARTSCORE = MetricPart(
    "bartscore",
    lambda options: BartScore(options.bartscore_model, options.bartscore_direction, references=options.references),
)


def _mean_log_probabilities(model: "TextModel", pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[float]:
    """The mean log-probability of the second tokens of each pair, each given the first ones and those before it."""
    import torch

    from citerec.models.text_models import IGNORED

    batch, targets = zip(*pairs, strict=True)
    labels = model.padded(targets, IGNORED)
    real = labels != IGNORED
    with torch.inference_mode(), model.autocast():
        logits = model.model(**model.tensors(batch), labels=labels).logits
    scores = logits.float().log_softmax(-1).gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    means: list[float] = (scores.masked_fill(~real, 0).double().sum(dim=1) / real.sum(dim=1)).tolist()
    return means
