"""Training a tagger of sentences: the linear one, or a sequence classifier such as SciBERT."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.contexts.learnt import LEARNT, NOTHING, Learnt, digest, folded, learnt_by_part
from citerec.discourse.base import TAGGER_DIRECTORY, Tagger, TaggerManifest
from citerec.discourse.classifier import MAX_TOKENS, ClassifierTagger
from citerec.discourse.linear import LinearTagger
from citerec.discourse.paragraphs import Paragraph, read_paragraphs, scheme_of
from citerec.discourse.scores import TagScores, score_labels
from citerec.errors import InputError
from citerec.files.hashing import file_digest
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.models.batches import batches_by_length
from citerec.models.find import find_model, model_identity
from citerec.train.base import Schedule, checkpoint_directory
from citerec.version import __version__

if TYPE_CHECKING:
    import torch

LINEAR = "linear"
# Tokens, padding included, whose activations are held at once.
_TOKENS_AT_ONCE = {"cpu": 8192, "cuda": 32768}
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class TaggedChoice:
    """Which labelled sentences to learn from, and which to measure on. No sentence is in both.

    Attributes:
        train: A file of SciCite, ACL-ARC or CORWA.
        dev: Another file to measure on.
        dev_share: Without `dev`: the share of the paragraphs of `train` to hold out, from the end of the file; with 0,
            all are learnt from, and nothing is measured.
    """

    train: Path
    dev: Path | None = None
    dev_share: float = 0.15

    def facts(self) -> dict[str, Any]:
        """The fields of a manifest about the choice."""
        last = f"last {self.dev_share:.0%} of the paragraphs" if self.dev_share else None
        return {"train": self.train.name, "dev": self.dev.name if self.dev else last}


@dataclass(frozen=True, slots=True)
class TaggerOptions:
    """How to train a tagger.

    Attributes:
        model: `linear`, or the encoder to start from: a folder or a name on the hub.
        scheme: The name of the scheme; by default recognised by the labels.
        batch: Sentences per step, for a classifier.
        max_tokens: How many tokens a classifier reads of a sentence and its neighbours.
    """

    model: str = LINEAR
    scheme: str | None = None
    batch: int = 16
    max_tokens: int = MAX_TOKENS


def train_tagger(
    choice: TaggedChoice,
    out: Path,
    options: TaggerOptions | None = None,
    schedule: Schedule | None = None,
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> TaggerManifest:
    """Trains a tagger, in place of an earlier one at `out`. The interrupted training of a classifier is resumed.

    By default it is the linear tagger, which uses only the seed of the schedule and needs no dev sentences.
    Arguments are those of `citerec.train_reranker`.

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
    train, dev = _split(choice)
    labels = tuple(sorted({label for paragraph in train for label in paragraph.labels}))
    if len(labels) < 2:
        raise InputError(
            f"all sentences of {choice.train} to learn from have the label {labels[0]}", "Give more sentences."
        )
    if dev and not any(label in labels for paragraph in dev for label in paragraph.labels):
        raise InputError(
            f"no label of {choice.dev or choice.train} to measure on was learnt", "Give --dev of the same scheme."
        )
    manifest = TaggerManifest(
        citerec=__version__,
        model="linear" if options.model == LINEAR else "classifier",
        base="" if options.model == LINEAR else options.model,
        scheme=options.scheme or _scheme(choice.train, labels),
        labels=labels,
        max_tokens=None if options.model == LINEAR else options.max_tokens,
        training={
            **choice.facts(),
            "paragraphs": len(train),
            "sentences": sum(len(paragraph.labels) for paragraph in train),
            "dev_paragraphs": len(dev),
            "seed": schedule.seed,
        },
    )
    if options.model == LINEAR:
        return _write(LinearTagger.fit(train, manifest, schedule.seed, on_progress), train, dev, NOTHING, out)
    return _train_classifier(train, dev, manifest, choice, out, options, schedule, device, on_progress, note)


def measure_tagger(tagger: Tagger, paragraphs: Sequence[Paragraph]) -> TagScores:
    """Scores of a tagger on labelled sentences (at least one paragraph)."""
    given = tagger.tag([paragraph.sentences for paragraph in paragraphs])
    return score_labels([label for p in paragraphs for label in p.labels], [label for p in given for label in p])


def _split(choice: TaggedChoice) -> tuple[list[Paragraph], list[Paragraph]]:
    """The paragraphs to learn from, and those to measure on."""
    train = list(read_paragraphs(choice.train))
    if choice.dev:
        return train, list(read_paragraphs(choice.dev))
    begin = len(train) - round(choice.dev_share * len(train))
    if not begin:
        raise InputError(f"{choice.train} leaves nothing to learn from", "Lower --dev-share, or give --dev FILE.")
    return train[:begin], train[begin:]


def _scheme(path: Path, labels: Sequence[str]) -> str:
    if scheme := scheme_of(labels):
        return scheme
    raise InputError(
        f"{path}: the labels are of no scheme known: {', '.join(labels[:8])}{' …' if len(labels) > 8 else ''}",
        "Name it: --scheme NAME",
    )


def _measured(tagger: Tagger, train: Sequence[Paragraph], dev: Sequence[Paragraph]) -> dict[str, Any]:
    """The scores on dev, and the macro-F1 without paragraphs that were also learnt from."""
    if not dev:
        return {}
    learnt = {paragraph.sentences for paragraph in train}
    new = [paragraph for paragraph in dev if paragraph.sentences not in learnt]
    repeated = len(dev) - len(new)
    found = measure_tagger(tagger, dev).as_json() | {"repeated": repeated}
    if repeated and new:
        found["macro_f1 without repeated"] = round(measure_tagger(tagger, new).macro_f1, 4)
    return found


def _train_classifier(
    train: Sequence[Paragraph],
    dev: Sequence[Paragraph],
    manifest: TaggerManifest,
    choice: TaggedChoice,
    out: Path,
    options: TaggerOptions,
    schedule: Schedule,
    device: str | None,
    on_progress: Progress,
    note: Note,
) -> TaggerManifest:
    from citerec.train.trainer import LossTrainer

    if not dev:
        raise InputError(f"nothing of {choice.train} was held out to measure on", "Raise --dev-share, or give --dev.")
    tagger = ClassifierTagger.begin(manifest, seed=schedule.seed, device=device)
    plan = {
        "base": model_identity(find_model(options.model)),
        "train": file_digest(choice.train),
        "dev": file_digest(choice.dev) if choice.dev else choice.dev_share,
        "options": asdict(options),
        "schedule": asdict(schedule),
        "device": tagger.model.device.type,
    }
    with checkpoint_directory(out, plan) as folder:
        learner = _Learner(tagger, train, dev, options.batch)
        record = LossTrainer(learner, schedule, folder, on_progress, note).fit()
        facts = {**manifest.training, "batch": options.batch, **asdict(schedule), **record.facts()}
        tagger.manifest = manifest.model_copy(update={"training": facts})
        return _write(tagger, train, dev, learnt_by_part(options.model), out)


def _write(
    tagger: ClassifierTagger | LinearTagger,
    train: Sequence[Paragraph],
    dev: Sequence[Paragraph],
    of_base: Learnt,
    out: Path,
) -> TaggerManifest:
    """Writes a tagger with its scores on dev, and returns its manifest."""
    tagger.manifest = tagger.manifest.model_copy(update={"dev": _measured(tagger, train, dev)})
    learnt_from, tuned_on = (
        frozenset(digest("text", folded(text)) for one in side for text in one.sentences) for side in (train, dev)
    )
    with TAGGER_DIRECTORY.writing(out) as partial:
        tagger.save(partial)
        (Learnt(learnt_from, tuned_on) | of_base).write(partial / LEARNT)  # of sentences; their papers are unknown
    return tagger.manifest


@dataclass
class _Learner:
    """A classifier, and the sentences from which it learns."""

    tagger: ClassifierTagger
    train: Sequence[Paragraph]
    dev: Sequence[Paragraph]
    batch: int

    def __post_init__(self) -> None:
        self.model = self.tagger.model
        self.examples = [
            (sentence, self.tagger.labels.index(label))
            for one in self.train
            for sentence, label in zip(self.tagger.encode(one.sentences), one.labels, strict=True)
        ]

    def losses(self, examples: Sequence[tuple[Any, int]]) -> "Iterator[torch.Tensor]":
        import torch

        device = self.model.device
        lengths = [len(sentence["input_ids"]) for sentence, _ in examples]
        for rows in batches_by_length(lengths, _TOKENS_AT_ONCE.get(device.type, 8192), _ROWS_AT_ONCE):
            logits = self.tagger.logits([examples[row][0] for row in rows])
            gold = torch.tensor([examples[row][1] for row in rows], device=device)
            yield torch.nn.functional.cross_entropy(logits, gold, reduction="sum") / len(examples)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        scores = measure_tagger(self.tagger, self.dev)
        return scores.macro_f1, {"macro_f1": scores.macro_f1, "accuracy": scores.accuracy}
