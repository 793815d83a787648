"""Training a tagger of sentences: the linear one, or a sequence classifier such as SciBERT."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from citerec.contexts.provenance import NOTHING, Provenance, digest, folded, provenance_of_part
from citerec.discourse import classifier as classifiers
from citerec.discourse.classifier import TAGGER_DIRECTORY, ClassifierTagger, Paragraph, Tagger, TaggerManifest
from citerec.discourse.linear import LinearTagger
from citerec.errors import InputError
from citerec.files.progress import no_progress
from citerec.models.find import find_model, model_identity
from citerec.settings import Positive, Share
from citerec.train.groups import How, Learner, Schedule, training, write_model

LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class TaggerOptions:
    """How to train a tagger, and on which labelled sentences to measure it. It does not learn from these.

    Attributes:
        dev: A file to measure on.
        dev_share: Without `dev`: the share of the paragraphs to hold out, from the end of the file; with 0, all are
            learned from, and nothing is measured.
        model: `linear`, or the encoder to start from: a folder or a name on the hub.
        scheme: The name of the scheme; by default recognised by the labels.
        batch: Sentences per step, for a classifier.
        max_tokens: How many tokens a classifier reads of a sentence and its neighbours.
    """

    dev: Path | None = None
    dev_share: Share = 0.15
    model: str = LINEAR
    scheme: str | None = None
    batch: Positive = 16
    max_tokens: Positive = classifiers.MAX_TOKENS


def train_tagger(
    file: Path, out: Path, options: TaggerOptions | None = None, schedule: Schedule | None = None, **how: Unpack[How]
) -> TaggerManifest:
    """Trains a tagger, in place of an earlier one at `out`. The interrupted training of a classifier is resumed.

    By default it is the linear tagger, which uses only the seed of the schedule and needs no dev sentences. `file` is
    of SciCite, ACL-ARC or CORWA; the other arguments are those of `citerec.train_reranker`.

    Raises:
        ModelError: There is no such base, or it cannot read so many tokens.
        SourceError: A file cannot be read, or is empty.
        InputError: A line is not a labelled paragraph; or nothing is left to learn from or, for a classifier, to
            measure on; or there are fewer than two labels, or no name for their scheme; or something else is at
            `out`.
        BuildError: The loss is no longer finite, or another process trains this tagger, or the disk is full.
    """
    options, schedule = options or TaggerOptions(), schedule or Schedule(learning_rate=2e-5, epochs=3)
    TAGGER_DIRECTORY.check_place(out)
    train, dev = _split(file, options)
    manifest = _manifest(file, train, dev, options, schedule)

    # Of sentences: the papers in which they stand are unknown.
    texts = ((text for paragraph in side for text in paragraph.sentences) for side in (train, dev))
    trained_on, tuned_on = (frozenset(digest("text", folded(text)) for text in side) for side in texts)

    def write(tagger: LinearTagger | ClassifierTagger, base: Provenance, facts: dict[str, Any]) -> TaggerManifest:
        scores = measure_tagger(tagger, dev) if dev else {}
        if dev:
            seen = {paragraph.sentences for paragraph in train}
            scores["repeated"] = sum(paragraph.sentences in seen for paragraph in dev)
        whole = manifest.model_copy(update={"dev": scores, "training": facts | dict(manifest.training)})
        return write_model(TAGGER_DIRECTORY, out, whole, Provenance(trained_on, tuned_on) | base, tagger.save)

    if not manifest.base:
        return write(LinearTagger.fit(train, manifest, schedule.seed, how.get("on_progress", no_progress)), NOTHING, {})
    if not dev:
        raise InputError(f"nothing of {file} was held out to measure on", "Raise dev_share, or give --dev.")
    plan = [model_identity(find_model(options.model)), file]
    with training(TAGGER_DIRECTORY, out, options, schedule, plan, **how) as own:
        classifier = ClassifierTagger.begin(manifest, seed=schedule.seed, device=how.get("device"))
        record = own.fit(_learner(classifier, train, dev, options.batch))
        return write(classifier, provenance_of_part(options.model), own.facts(record, "dev"))


def _learner(tagger: ClassifierTagger, train: Sequence[Paragraph], dev: Sequence[Paragraph], batch: int) -> Learner:
    """A classifier, and the sentences from which it learns."""
    sentences = [sentence for paragraph in train for sentence in tagger.encode(paragraph.sentences)]
    labels = [tagger.labels.index(label) for paragraph in train for label in paragraph.labels]

    def losses(examples: Sequence[tuple[Any, int]]) -> Iterator[Any]:
        import torch

        for rows, logits in tagger.logits([sentence for sentence, _ in examples]):
            gold = torch.tensor([examples[row][1] for row in rows], device=logits.device)
            yield torch.nn.functional.cross_entropy(logits, gold, reduction="sum") / len(examples)

    def evaluate() -> tuple[float, dict[str, float]]:
        scores = measure_tagger(tagger, dev)
        return scores["macro_f1"], {name: scores[name] for name in ("macro_f1", "accuracy")}

    return Learner(tagger.model, batch, list(zip(sentences, labels, strict=True)), losses, evaluate)


def measure_tagger(tagger: Tagger, paragraphs: Sequence[Paragraph]) -> dict[str, Any]:
    """Scores of a tagger on labelled sentences (at least one), by scikit-learn; shares have four digits.

    Returns:
        `macro_f1`, the mean F1 of the labels that a sentence has or was given; `accuracy`; and `labels`, by label
        `precision`, `recall` and `f1`, 0 where not defined, and the number `n` of sentences that have it.
    """
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    gold = [label for paragraph in paragraphs for label in paragraph.labels]
    predicted = [label for labels in tagger.tag([one.sentences for one in paragraphs]) for label in labels]
    labels = sorted({*gold, *predicted})
    *shares, counts = precision_recall_fscore_support(gold, predicted, labels=labels, zero_division=0)
    of_labels = {
        label: {"precision": precision, "recall": recall, "f1": f1, "n": n}
        for label, precision, recall, f1, n in zip(labels, *np.round(shares, 4).tolist(), counts.tolist(), strict=True)
    }
    macro_f1, accuracy = float(np.mean(shares[-1])), float(accuracy_score(gold, predicted))
    return {"macro_f1": round(macro_f1, 4), "accuracy": round(accuracy, 4), "labels": of_labels}


def _split(file: Path, options: TaggerOptions) -> tuple[list[Paragraph], list[Paragraph]]:
    """The paragraphs to learn from, and those to measure on."""
    train = list(classifiers.read_paragraphs(file))
    if options.dev:
        return train, list(classifiers.read_paragraphs(options.dev))
    begin = len(train) - round(options.dev_share * len(train))
    if not begin:
        raise InputError(f"{file} leaves nothing to learn from", "Lower dev_share, or give --dev FILE.")
    return train[:begin], train[begin:]


def _manifest(
    file: Path, train: Sequence[Paragraph], dev: Sequence[Paragraph], options: TaggerOptions, schedule: Schedule
) -> TaggerManifest:
    """The manifest before training, if the labels can be learned."""
    labels = tuple(sorted({label for paragraph in train for label in paragraph.labels}))
    if len(labels) < 2:
        raise InputError(f"all sentences of {file} to learn from have the label {labels[0]}", "Give more sentences.")
    if not (scheme := options.scheme or classifiers.scheme_of(labels)):
        names = f"{', '.join(labels[:8])}{' …' if len(labels) > 8 else ''}"
        raise InputError(f"{file}: the labels are of no scheme known: {names}", "Name it: -c scheme=NAME")
    held_out = f"last {options.dev_share:.0%} of the paragraphs" if options.dev_share else None
    facts = {"train": file.name, "dev": options.dev.name if options.dev else held_out, "seed": schedule.seed}
    counts = {"paragraphs": len(train), "dev_paragraphs": len(dev), "sentences": sum(len(one.labels) for one in train)}
    own: dict[str, Any] = {"model": "linear", "base": "", "max_tokens": None}
    if options.model != LINEAR:
        own = {"model": "classifier", "base": options.model, "max_tokens": options.max_tokens}
    return TaggerManifest(**own, scheme=scheme, labels=labels, training=facts | counts)
