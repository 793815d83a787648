"""`citerec train writer`: models that learn the texts that authors wrote, and trees that learn TLDRs."""

import itertools
import re
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from citerec.contexts.provenance import Provenance, provenance_of_part
from citerec.errors import InputError
from citerec.files.progress import Progress, no_note, no_progress, told
from citerec.files.resume import digest_of, file_digest, hash_sample
from citerec.models.find import find_model, model_identity
from citerec.models.loading import MANIFEST, read_model_manifest
from citerec.models.text_models import Encoded, TextModel
from citerec.settings import Positive
from citerec.train.groups import REPEATABLE, Choice, How, Learner, Schedule, Training, plan_of, training, write_model
from citerec.write.metrics import KINDS, grown_rouge, rouge, tokens_of
from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask, subjects, task_digests
from citerec.write.writers import models, trained
from citerec.write.writers.base import Kind
from citerec.write.writers.extractive import source_sentences
from citerec.write.writers.models import WRITER_DIRECTORY, Generation, WriterManifest, encode_task
from citerec.write.writers.trained import Abstract, Texts, Vocabulary, feature_names, stems_of, table

DEFAULT_BASE = "allenai/led-base-16384"


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How to train a writer.

    Attributes:
        base: The encoder-decoder or causal model to start from: a folder or a name on the hub.
        writes: The kind of text that it writes.
        batch: Targets per step; gradients are accumulated over as many at once as memory allows.
        max_input_tokens: How many tokens it reads; by default as in the recipe for this kind of model.
        max_target_tokens: How many tokens of a target it learns; the same default.
        dev_metric: The measure on dev by which the best weights are chosen: ROUGE of greedy predictions.
        as_citations: Whether it learns "This paper REF" if a target begins with "We", as known to models trained on
            citation texts (Mao et al. 2022, section 4.1).
        preset: One of `models.PRESETS`: how it writes and reads, in place of the recipe for its family.
        lengthen: Whether an LED, PRIMERA or MPT that has room for fewer tokens is lengthened.
        query_separator: Whether PRIMERA gets the token `<query-doc-sep>` (Docekal et al. 2024, section 6.1.4).
    """

    base: str = DEFAULT_BASE
    writes: Kind = "citation"
    batch: Positive = 16
    max_input_tokens: Positive | None = None
    max_target_tokens: Positive | None = None
    as_citations: bool = False
    dev_metric: Literal["rougeL", "rouge1", "rouge2"] = "rougeL"
    preset: str | None = None
    lengthen: bool = False
    query_separator: bool = False


def train_writer(
    choice: Choice, out: Path, options: WriterOptions, schedule: Schedule, **how: Unpack[How]
) -> WriterManifest:
    """Trains a writer, in place of an earlier one at `out`. An interrupted training is resumed.

    If no step improves the base on dev, the result is the base. The base is always measured first, even without
    `first` in the schedule. Arguments are those of `citerec.train_reranker`.

    Raises:
        ModelError: There is no such base, or it cannot read or write so many tokens.
        SourceError: A file of tasks cannot be read.
        InputError: A record is not a task with a target, or one side is empty, or something else is at `out`,
            or there is no such device.
        BuildError: The loss is no longer finite, or another process trains this writer, or the disk is full.
    """
    schedule = replace(schedule, first=True)
    plan = [plan_of(choice), model_identity(find_model(options.base))]
    with training(WRITER_DIRECTORY, out, options, schedule, plan, **how) as own:
        train, dev = choice.sides(_with_target, lambda task: list(map(str, subjects(task))))
        model = TextModel.open(options.base, device=how.get("device"))
        generation = _generation(model, options)
        learner = _learner(model, generation, train, dev, own)
        record = own.fit(learner)
        facts = choice.facts("tasks", "papers") | {"limit": choice.limit, "dev_tasks": len(dev)}
        facts |= {"examples": len(learner.examples), "precision": model.precision}
        facts |= {"plan": _plan(choice, options, schedule)} | own.facts(record, "base", "writes")
        dev_values = {**record.results, f"{options.dev_metric} before": record.values[0]}
        base: dict[str, Any] = {"base": options.base, "base_identity": model.identity}
        manifest = WriterManifest(**base, writes=options.writes, generation=generation, training=facts, dev=dev_values)
        trained_on, tuned_on = (frozenset(one for task in side for one in task_digests(task)) for side in (train, dev))
        provenance = Provenance(trained_on, tuned_on) | provenance_of_part(options.base)
        return write_model(WRITER_DIRECTORY, out, manifest, provenance, model.save)


def train_seeds(
    choice: Choice, out: Path, options: WriterOptions, schedule: Schedule, seeds: Sequence[int], **how: Unpack[How]
) -> dict[int, WriterManifest]:
    """Trains a writer for each seed, in `out/seed-N`; what is done already with these settings is kept.

    The seed sets the order of the examples and what is dropped out. Which tasks are learnt from, and which are
    measured on, depends on the seed of `choice`, and is the same for all.

    Raises:
        InputError: `out` is a writer itself.
        BuildError, ModelError, SourceError: As `train_writer`.
    """
    if (out / MANIFEST).exists():
        raise InputError(f"{out} is a writer: seeds need a folder of their own", "Give another --out.")
    manifests = {}
    for seed in seeds:
        folder, own = out / f"seed-{seed}", replace(schedule, seed=seed, first=True)
        manifest = read_model_manifest(folder, WriterManifest, "a writer", f"Remove {folder}, and train it again.")
        if manifest is None or manifest.training.get("plan") != _plan(choice, options, own):
            how.get("note", no_note)(f"seed {seed}:")
            manifest = train_writer(choice, folder, options, own, **how)
        manifests[seed] = manifest
    return manifests


def _plan(choice: Choice, options: WriterOptions, schedule: Schedule) -> str:
    """A digest of everything that a writer depends on, but the device."""
    return digest_of(plan_of(choice, options, schedule, model_identity(find_model(options.base))))


def _with_target(path: Path) -> Iterator[TextTask]:
    """The tasks of a file, each with its targets that are not blank."""
    for task in read_tasks(path):
        targets = tuple(filter(str.strip, task.targets))
        if not targets:
            raise InputError(f"{path}: the task {task.task_id} has no target", "Give tasks with what authors wrote.")
        yield replace(task, targets=targets)


def _learner(
    model: TextModel, generation: Generation, train: Sequence[TextTask], dev: Sequence[TextTask], own: Training
) -> Learner:
    """A model, and the tasks from which it learns: its examples are tasks, each with one of its targets."""
    options: WriterOptions = own.options

    def read(task: TextTask) -> Encoded:
        """The input of a task as token ids."""
        return encode_task(model, task, generation.max_input_tokens, options.writes)

    def losses(examples: Sequence[tuple[TextTask, str]]) -> Iterator[Any]:
        inputs = [list(read(task).ids) for task, _ in examples]
        targets = [list(model.encode_text(target, generation.max_tokens).ids) for _, target in examples]
        return (loss * share for loss, share in model.losses(list(zip(inputs, targets, strict=True))))

    def evaluate() -> tuple[float, dict[str, float]]:
        greedy = replace(generation, beams=1, top_p=None)  # n beams would take n times as long
        inputs = list(map(read, dev))
        texts = models.write_texts(model, inputs, greedy, lambda done: own.on_progress("measuring", done, len(dev)))
        values = np.mean([_best_rouge(text, task.targets) for text, task in zip(texts, dev, strict=True)], axis=0)
        results = {kind: round(float(value), 4) for kind, value in zip(KINDS, values, strict=True)}
        return results[options.dev_metric], results

    learnt = _as_citation if options.as_citations else str
    examples = [(task, learnt(target)) for task in train for target in task.targets]
    return Learner(model.model, options.batch, examples, losses, evaluate)


def _generation(model: TextModel, options: WriterOptions) -> Generation:
    """The settings with which the trained writer writes: those of the recipe, with the lengths that it learns.

    The model is changed as the options say.
    """
    if options.lengthen:
        model.lengthen(options.max_input_tokens or 0, options.max_target_tokens or 0)
    if options.query_separator:
        model.add_query_separator()
    default = models.recipe(model.family, options.writes, options.preset)
    limits = {"max_input_tokens": options.max_input_tokens, "max_tokens": options.max_target_tokens}
    lengths = {name: length for name, length in limits.items() if length is not None}
    least = min(default.min_tokens, lengths.get("max_tokens", model.max_output_tokens or default.min_tokens))
    generation = models.fitted(model, default, {**lengths, "min_tokens": least})
    models.check_room(model, generation)
    model.global_attention = generation.global_attention
    return replace(generation, post_processing="ref") if options.as_citations else generation


def _as_citation(target: str) -> str:
    """A TLDR in the style of citation texts, for models that learnt these: "We show" becomes "This paper REF show".

    Mao et al. 2022, section 4.1: for few-shot training targets, not for those that are measured.
    """
    return re.sub(r"^\s*We\b", "This paper REF", target)


def _best_rouge(text: str, targets: Sequence[str]) -> list[float]:
    """F1 by kind without stemming, each the best over the targets."""
    scores = [rouge(text, target) for target in targets]
    return [max(score[kind].f1 for score in scores) for kind in KINDS]


# Ours, by cross-validation on SciTLDR's training part (docs/results.md).
FOLDS = 5
_SHARED: Mapping[str, Any] = REPEATABLE | {"num_leaves": 15, "max_bin": 63, "reg_lambda": 5.0}
_SAMPLED = {**_SHARED, "colsample_bytree": 0.5, "subsample": 0.6, "subsample_freq": 1}
_WORDS = {**_SAMPLED, "objective": "binary", "learning_rate": 0.06, "min_child_samples": 200, "n_estimators": 180}
_FORMS = {**_SAMPLED, "extra_trees": True, "learning_rate": 0.05, "min_child_samples": 100, "n_estimators": 250}
LEAST_PAPERS = 3
"""Abstracts that have a word at least, for it to be in the vocabulary."""

Floats = npt.NDArray[np.float64]


class _Example(NamedTuple):
    """A task to learn from.

    Attributes:
        is_in_target: Whether each word of the abstract is in a target: 1 or 0.
        fold: The part of the cross-validation that it is in.
    """

    task: TextTask
    targets: tuple[str, ...]
    abstract: Abstract
    is_in_target: Floats
    fold: int

    def rouge1(self, texts: Sequence[str]) -> Floats:
        """F1 of ROUGE-1 of some texts, stemmed, the best over the targets."""
        tokens = tokens_of(texts, stemming=True)
        scores = [grown_rouge([], tokens, target, 1) for target in tokens_of(self.targets, stemming=True)]
        return np.asarray(np.max(scores, axis=0))


def train_tldr(
    path: Path, out: Path, seed: int = 0, *, on_progress: Progress = no_progress
) -> trained.SentencesManifest:
    """Learns from tasks with targets, of one source each, and writes the writer to `out`.

    First trees for the words of an abstract: how likely each is in the TLDR. Then trees for the texts that
    can be made of it (`Texts`), which learn ROUGE-1 F1 less its mean over the abstract. These see what trees
    that did not learn from an abstract say of its words, as they will when they are used. Other tasks are left out.

    Args:
        path: The tasks.
        out: The folder of the writer.
        seed: Seed of the trees, and of the parts of the cross-validation.
        on_progress: Called with what is being done.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task, too few have one source and a target, or something else is at `out`.
    """
    trained.SENTENCES_DIRECTORY.check_place(out)
    vocabulary = Vocabulary()
    examples = _examples(path, vocabulary, seed)
    folds = [example.fold for example in examples]
    if len(set(folds)) < FOLDS:
        fault = f"{path} has {len(examples)} tasks with one source and a target, too few to learn from"
        raise InputError(fault, "Give more: some hundreds at least.")
    on_progress("learning words", 0, 0)
    _count(examples, vocabulary)
    of_words, of_forms = ({**parameters, "random_state": seed} for parameters in (_WORDS, _FORMS))
    word_names, form_names = feature_names(vocabulary)
    tables = [table(example.abstract.word_features()) for example in examples if example.abstract.words]
    words, predicted = _trees(of_words, word_names, tables, [one.is_in_target for one in examples], folds)
    tables, labels, untrained = [], [], []
    looked = told(zip(examples, predicted, strict=True), "looking at sentences", on_progress, len(examples))
    for example, chances in looked:
        texts = Texts(example.abstract, dict(zip(example.abstract.words, chances.tolist(), strict=True)))
        tables.append(table(texts.features(), np.float32))
        labels.append(example.rouge1([" ".join(text) for text in texts.texts]))
        untrained.append(labels[-1][texts.wholes[example.abstract.contribution]])
    on_progress("learning sentences", 0, 0)
    forms, predicted = _trees(of_forms, form_names, tables, [label - label.mean() for label in labels], folds)
    best = [label[np.argmax(score)] for label, score in zip(labels, predicted, strict=True)]
    scores = {"rouge1": best, "rouge1 of contribution": untrained}
    facts = {"tasks": path.name, "sha256": file_digest(path), "trained_on": len(examples), "seed": seed}
    manifest = trained.SentencesManifest(
        training={**facts, "trees of words": _WORDS, "trees of forms": _FORMS},
        scores={name: round(100 * float(np.mean(values)), 2) for name, values in scores.items()},
    )
    counts = {stem: count for stem, count in sorted(vocabulary.counts.items()) if count[0] >= LEAST_PAPERS}

    def save(folder: Path) -> None:
        words.save_model(folder / trained.WORD_TREES)
        forms.save_model(folder / trained.FORM_TREES)
        (folder / trained.VOCABULARY).write_bytes(TypeAdapter(Vocabulary).dump_json(replace(vocabulary, counts=counts)))

    provenance = Provenance(frozenset(one for example in examples for one in task_digests(example.task)))
    return write_model(trained.SENTENCES_DIRECTORY, out, manifest, provenance, save)


def _examples(path: Path, vocabulary: Vocabulary, seed: int) -> list[_Example]:
    """The tasks of one source with text, and a target; their words are not counted yet."""
    examples = []
    for task in read_tasks(path):
        sentences = tuple(filter(str.strip, source_sentences(task.sources[0]))) if len(task.sources) == 1 else ()
        targets = tuple(filter(str.strip, task.targets))
        if sentences and targets:
            stems = frozenset(stem for target in targets for stem in stems_of(target))
            abstract = Abstract(sentences, task.sources[0].title, vocabulary)
            is_in_target = np.array([word in stems for word in abstract.words], np.float64)
            fold = hash_sample(seed, str(subjects(task)[0])) % FOLDS
            examples.append(_Example(task, targets, abstract, is_in_target, fold))
    return examples


def _count(examples: Sequence[_Example], vocabulary: Vocabulary) -> None:
    """Counts the words, and learns the weights of the first guess; each abstract leaves out its own target."""
    from sklearn.linear_model import LogisticRegression

    papers, shared = Counter[str](), Counter[str]()
    for example in examples:
        papers.update(example.abstract.words)
        shared.update(itertools.compress(example.abstract.words, example.is_in_target))
    if not 0 < shared.total() < papers.total():
        raise InputError("no word of a target is in its source, or every one is", "Give abstracts with their TLDRs.")
    lengths = [len(stems_of(target)) for example in examples for target in example.targets]
    vocabulary.papers = len(examples)
    vocabulary.target_words = round(float(np.mean(lengths)), 4)
    vocabulary.share = round(shared.total() / papers.total(), 6)
    vocabulary.counts = {word: (count, shared[word]) for word, count in papers.items()}
    for one in examples:
        own = zip(one.abstract.words, one.is_in_target, strict=True)
        others = {word: (papers[word] - 1, shared[word] - int(is_shared)) for word, is_shared in own}
        one.abstract.counts = ChainMap(others, vocabulary.counts)
    rows = (row for example in examples for row in example.abstract.first_features())
    labels = np.concatenate([example.is_in_target for example in examples])
    guess = LogisticRegression(max_iter=300).fit(table(rows), labels)
    vocabulary.weights = tuple(float(f"{weight:.6g}") for weight in (*guess.coef_[0], guess.intercept_[0]))


def _trees(
    parameters: Mapping[str, Any], names: Sequence[str], tables: list[Any], labels: list[Floats], folds: list[int]
) -> tuple[Any, list[Floats]]:
    """Trees that learnt from all rows, and for each example what trees say that learnt from the other folds."""
    import lightgbm
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    trees = lightgbm.LGBMRegressor(**parameters)
    rows, values, sizes = np.concatenate(tables), np.concatenate(labels), list(map(len, labels))
    predicted = cross_val_predict(trees, rows, values, cv=PredefinedSplit(np.repeat(folds, sizes)))
    names = [name.replace(" ", "_") for name in names]  # LightGBM's names have no spaces
    return trees.fit(rows, values, feature_name=names).booster_, np.split(predicted, np.cumsum(sizes)[:-1])
