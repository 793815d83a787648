"""`citerec train writer --kind tldr`: which sentences of an abstract, or which parts of them, are most like a TLDR."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from citerec.contexts.learnt import LEARNT, Learnt
from citerec.errors import InputError
from citerec.files.hashing import file_digest, hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.version import __version__
from citerec.write.metrics.rouge import GreedyRouge
from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask, subjects, task_digests
from citerec.write.writers import trained
from citerec.write.writers.extractive import source_sentences
from citerec.write.writers.trained import Abstract, Texts, Vocabulary, feature_names, stems_of, table

# Ours, by cross-validation on SciTLDR's training part (docs/results.md).
FOLDS = 5
_SHARED: Mapping[str, Any] = {
    "num_leaves": 15,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.6,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "max_bin": 63,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
_WORDS = {**_SHARED, "objective": "binary", "learning_rate": 0.06, "min_data_in_leaf": 200, "num_iterations": 180}
_FORMS = {
    **_SHARED,
    "objective": "regression",
    "extra_trees": True,
    "learning_rate": 0.05,
    "min_data_in_leaf": 100,
    "num_iterations": 250,
}
LEAST_PAPERS = 3
"""Abstracts that have a word at least, for it to be in the vocabulary."""
_NOT_NEEDED = re.compile(
    r"^(?:tree_sizes|split_gain|leaf_weight|leaf_count|internal_value|internal_weight|internal_count)=.*\n",
    re.MULTILINE,
)

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _Example:
    """A task to learn from.

    Attributes:
        is_in_target: Whether each word of the abstract is in a target: 1 or 0.
        fold: The part of the cross-validation that it is in.
        chances: Of its words, by trees that did not learn from it.
    """

    task: TextTask
    targets: tuple[str, ...]
    abstract: Abstract
    is_in_target: Floats
    fold: int
    chances: dict[str, float] = field(default_factory=dict)

    def rouge1(self, texts: Sequence[str]) -> Floats:
        """F1 of ROUGE-1 of some texts, stemmed, the best over the targets."""
        scorers = [GreedyRouge(target, texts, n=1, stemming=True) for target in self.targets]
        return np.array([max(scorer.f1_with(number) for scorer in scorers) for number in range(len(texts))])


@dataclass(frozen=True, slots=True)
class TldrOptions:
    """How to train the extractive writer of TLDRs.

    Attributes:
        data: What the tasks are and their licence, for the datasheet.
        seed: Seed of the trees, and of the parts of the cross-validation.
    """

    data: str = ""
    seed: int = 0


def train_tldr(
    path: Path, out: Path, options: TldrOptions | None = None, *, on_progress: Progress = no_progress
) -> trained.SentencesManifest:
    """Learns from tasks with targets, of one source each, and writes the writer to `out`.

    First trees for the words of an abstract: how likely each is in the TLDR. Then trees for the texts that
    can be made of it (`Texts`), which learn ROUGE-1 F1 less its mean over the abstract. These see what trees
    that did not learn from an abstract say of its words, as they will when they are used. Other tasks are left out.

    Args:
        path: The tasks.
        out: The folder of the writer.
        options: Its options.
        on_progress: Called with what is being done.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task, too few have one source and a target, or something else is at `out`.
    """
    trained.SENTENCES_DIRECTORY.check_place(out)
    options, vocabulary = options or TldrOptions(), Vocabulary()
    seed = options.seed
    examples = _examples(path, vocabulary, seed)
    if len({example.fold for example in examples}) < FOLDS:
        raise InputError(
            f"{path} has {len(examples)} tasks with one source and a target, too few to learn from",
            "Give more: some hundreds at least.",
        )
    on_progress("looking at words", 0, 0)
    _count(examples, vocabulary)
    names_of_words, names_of_forms = feature_names(vocabulary)
    folds = _Folds([example.fold for example in examples], seed, on_progress)
    words, predicted = folds.trees(
        _WORDS,
        names_of_words,
        [table(one.abstract.word_features()) for one in examples if one.abstract.words],
        [example.is_in_target for example in examples],
    )
    for example, chances in zip(examples, predicted, strict=True):
        example.chances = dict(zip(example.abstract.words, chances.tolist(), strict=True))
    tables, labels, untrained = _texts(examples, on_progress)
    forms, predicted = folds.trees(_FORMS, names_of_forms, tables, [label - label.mean() for label in labels])
    picked = [label[np.argmax(scores)] for label, scores in zip(labels, predicted, strict=True)]
    scores = {"rouge1": picked, "rouge1 of contribution": untrained}
    scores["rouge1 of the best text"] = [label.max() for label in labels]
    facts = {"tasks": path.name, "sha256": file_digest(path), "data": options.data, "learnt_from": len(examples)}
    facts |= {"texts": sum(map(len, labels)), "seed": seed, "folds": FOLDS}
    manifest = trained.SentencesManifest(
        citerec=__version__,
        gain={"words": _gain(words), "forms": _gain(forms)},
        training={**facts, "trees of words": _WORDS, "trees of forms": _FORMS},
        scores={name: round(100 * float(np.mean(values)), 2) for name, values in scores.items()},
    )
    counts = {stem: count for stem, count in sorted(vocabulary.counts.items()) if count[0] >= LEAST_PAPERS}
    with trained.SENTENCES_DIRECTORY.writing(out) as folder:
        (folder / trained.WORD_TREES).write_text(_plain(words), encoding="utf-8")
        (folder / trained.FORM_TREES).write_text(_plain(forms), encoding="utf-8")
        (folder / trained.VOCABULARY).write_bytes(TypeAdapter(Vocabulary).dump_json(replace(vocabulary, counts=counts)))
        (folder / trained.DATASHEET).write_text(_datasheet(manifest), encoding="utf-8")
        Learnt(frozenset(one for example in examples for one in task_digests(example.task))).write(folder / LEARNT)
        manifest.write(folder)
        trained.SentenceModel(folder)
    return manifest


def _examples(path: Path, vocabulary: Vocabulary, seed: int) -> list[_Example]:
    """The tasks of one source with text, and a target; their words are not counted yet."""
    examples = []
    for task in read_tasks(path):
        sentences = tuple(filter(str.strip, source_sentences(task.sources[0]))) if len(task.sources) == 1 else ()
        targets = tuple(filter(str.strip, task.targets))
        if sentences and targets:
            stems = frozenset(stem for target in targets for stem in stems_of(target))
            abstract = Abstract(sentences, task.sources[0].title, vocabulary, stems)
            is_in_target = np.array([word in stems for word in abstract.words], np.float64)
            fold = hash_sample(seed, str(subjects(task)[0])) % FOLDS
            examples.append(_Example(task, targets, abstract, is_in_target, fold))
    return examples


def _count(examples: Sequence[_Example], vocabulary: Vocabulary) -> None:
    """Counts the words of all abstracts, and how many of them are in the TLDRs."""
    papers, shared = Counter[str](), Counter[str]()
    for example in examples:
        papers.update(example.abstract.words)
        shared.update(itertools.compress(example.abstract.words, example.is_in_target))
    if not 0 < shared.total() < papers.total():
        raise InputError("no word of a target is in its source, or every one is", "Give abstracts with their TLDRs.")
    lengths = [len(stems_of(target)) for example in examples for target in example.targets]
    vocabulary.target_words = round(float(np.mean(lengths)), 4)
    vocabulary.share = round(shared.total() / papers.total(), 6)
    vocabulary.counts = {word: (count, shared[word]) for word, count in papers.items()}


def _texts(
    examples: Sequence[_Example], on_progress: Progress
) -> tuple[list[npt.NDArray[Any]], list[Floats], list[float]]:
    """The features and ROUGE-1 of the texts of each abstract, and ROUGE-1 of the sentence of `contribution`."""
    tables, labels, untrained = [], [], []
    for number, example in enumerate(examples):
        on_progress("looking at sentences", number, len(examples))
        texts = Texts(example.abstract, example.chances)
        tables.append(table(texts.features(), np.float32))
        labels.append(example.rouge1([" ".join(text) for text in texts.texts]))
        untrained.append(labels[-1][texts.wholes[example.abstract.contribution]])
    return tables, labels, untrained


@dataclass(frozen=True, slots=True)
class _Folds:
    """The part of the cross-validation that each example is in."""

    of_examples: Sequence[int]
    seed: int
    on_progress: Progress

    def trees(
        self,
        parameters: Mapping[str, Any],
        names: Sequence[str],
        tables: Sequence[npt.NDArray[Any]],
        labels: Sequence[Floats],
    ) -> tuple[Any, list[Floats]]:
        """Trees that learnt from all rows, and for each example what trees say that learnt from the other folds."""
        import lightgbm

        rows, values = np.concatenate(tables), np.concatenate(labels)
        sizes = [len(label) for label in labels]
        folds = np.repeat(self.of_examples, sizes)
        names = [name.replace(" ", "_") for name in names]  # LightGBM's names have no spaces

        def learn(chosen: npt.NDArray[np.bool_]) -> Any:
            data = lightgbm.Dataset(rows[chosen], values[chosen], feature_name=names)
            return lightgbm.train({**parameters, "seed": self.seed}, data)

        predicted = np.zeros(len(values))
        for fold in range(FOLDS):
            self.on_progress("learning", fold, FOLDS + 1)
            held_out = folds == fold
            predicted[held_out] = learn(~held_out).predict(rows[held_out], num_threads=1)
        self.on_progress("learning", FOLDS, FOLDS + 1)
        return learn(folds >= 0), np.split(predicted, np.cumsum(sizes)[:-1])


def _plain(trees: Any) -> str:
    """Trees in LightGBM's text format, without what only training and explanations need: half as long."""
    text, end = trees.model_to_string(), "end of trees\n"
    return _NOT_NEEDED.sub("", text[: text.index(end)] + end)


def _gain(trees: Any) -> dict[str, float]:
    """The share of each feature in the gain of some trees, the greatest first."""
    gains = trees.feature_importance("gain")
    shares = (gains / (gains.sum() or 1)).round(5).tolist()
    named = zip((name.replace("_", " ") for name in trees.feature_name()), shares, strict=True)
    return dict(sorted(named, key=lambda item: -item[1]))


def _datasheet(manifest: trained.SentencesManifest) -> str:
    """What the writer learnt from, and what to expect of it."""
    facts, scores = manifest.training, manifest.scores
    return f"""# Datasheet of a trained writer of TLDRs

- **Learnt from**: {facts["data"] or facts["tasks"]}. {facts["learnt_from"]:,} abstracts with TLDRs, {facts["texts"]:,}
  texts of their sentences. File `{facts["tasks"]}`, sha256 `{facts["sha256"]}`.
- **Model**: regression trees of LightGBM, in its text format, for words (`words.txt`) and for texts of one
  or two sentences (`forms.txt`); counts of word stems (`vocabulary.json`). No text of an abstract or a TLDR is in it.
- **Predicts** how high ROUGE-1 F1 (stemmed) of one or two sentences, or of shorter forms of them, is against the TLDR.
  The highest is taken. Each sentence is one of the abstract, with parts left out by rule (`shorten.py`).
- **Cross-validated** in {facts["folds"]} parts, ROUGE-1 × 100: {scores["rouge1"]:.1f}; the untrained `contribution`
  {scores["rouge1 of contribution"]:.1f}; the best of all texts {scores["rouge1 of the best text"]:.1f}.
- **Not for** other languages than English, or texts that are no abstracts. It counts words and knows no facts: that a
  sentence is picked does not make it true.
- **Digests** of the tasks that it learnt from are in `learnt.json`; `eval-text` leaves these tasks out.
- **Made by** `citerec train writer --kind tldr --tasks {facts["tasks"]} --out FOLDER --seed {facts["seed"]}`, citerec
  {manifest.citerec}.
"""
