"""`citerec train writer --kind tldr`: which sentences of an abstract, or which parts of them, are most like a TLDR."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from citerec.contexts.learnt import Learnt
from citerec.errors import InputError
from citerec.files.hashing import file_digest, hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.train.base import write_model
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
    "colsample_bytree": 0.5,
    "subsample": 0.6,
    "subsample_freq": 1,
    "reg_lambda": 5.0,
    "max_bin": 63,
    "deterministic": True,
    "force_row_wise": True,
    "n_jobs": 1,
    "verbose": -1,
}
_WORDS = {**_SHARED, "objective": "binary", "learning_rate": 0.06, "min_child_samples": 200, "n_estimators": 180}
_FORMS = {**_SHARED, "extra_trees": True, "learning_rate": 0.05, "min_child_samples": 100, "n_estimators": 250}
LEAST_PAPERS = 3
"""Abstracts that have a word at least, for it to be in the vocabulary."""

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
        raise InputError(
            f"{path} has {len(examples)} tasks with one source and a target, too few to learn from",
            "Give more: some hundreds at least.",
        )
    on_progress("learning words", 0, 0)
    _count(examples, vocabulary)
    names = feature_names(vocabulary)
    of_words = [table(example.abstract.word_features()) for example in examples if example.abstract.words]
    words, predicted = _trees(_WORDS, seed, names[0], of_words, [one.is_in_target for one in examples], folds)
    for example, chances in zip(examples, predicted, strict=True):
        example.chances = dict(zip(example.abstract.words, chances.tolist(), strict=True))
    of_texts, labels, untrained = [], [], []
    for number, example in enumerate(examples):
        on_progress("looking at sentences", number, len(examples))
        texts = Texts(example.abstract, example.chances)
        of_texts.append(table(texts.features(), np.float32))
        labels.append(example.rouge1([" ".join(text) for text in texts.texts]))
        untrained.append(labels[-1][texts.wholes[example.abstract.contribution]])
    on_progress("learning sentences", 0, 0)
    centred = [label - label.mean() for label in labels]
    forms, predicted = _trees(_FORMS, seed, names[1], of_texts, centred, folds)
    scores = {
        "rouge1": [label[np.argmax(score)] for label, score in zip(labels, predicted, strict=True)],
        "rouge1 of contribution": untrained,
    }
    facts = {"tasks": path.name, "sha256": file_digest(path), "learnt_from": len(examples), "seed": seed}
    manifest = trained.SentencesManifest(
        training={**facts, "trees of words": _WORDS, "trees of forms": _FORMS},
        scores={name: round(100 * float(np.mean(values)), 2) for name, values in scores.items()},
    )
    counts = {stem: count for stem, count in sorted(vocabulary.counts.items()) if count[0] >= LEAST_PAPERS}

    def save(folder: Path) -> None:
        words.save_model(folder / trained.WORD_TREES)
        forms.save_model(folder / trained.FORM_TREES)
        (folder / trained.VOCABULARY).write_bytes(TypeAdapter(Vocabulary).dump_json(replace(vocabulary, counts=counts)))

    learnt = Learnt(frozenset(one for example in examples for one in task_digests(example.task)))
    return write_model(trained.SENTENCES_DIRECTORY, out, manifest, learnt, save)


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
    rows = (row for example in examples for row in example.abstract.first_features())
    labels = np.concatenate([example.is_in_target for example in examples])
    guess = LogisticRegression(max_iter=300).fit(table(rows), labels)
    vocabulary.weights = tuple(float(f"{weight:.6g}") for weight in (*guess.coef_[0], guess.intercept_[0]))


def _trees(
    parameters: Mapping[str, Any],
    seed: int,
    names: Sequence[str],
    tables: Sequence[Any],
    labels: Sequence[Floats],
    folds: list[int],
) -> tuple[Any, list[Floats]]:
    """Trees that learnt from all rows, and for each example what trees say that learnt from the other folds."""
    import lightgbm
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    trees = lightgbm.LGBMRegressor(**parameters, random_state=seed)
    rows, values, sizes = np.concatenate(tables), np.concatenate(labels), list(map(len, labels))
    predicted = cross_val_predict(trees, rows, values, cv=PredefinedSplit(np.repeat(folds, sizes)))
    names = [name.replace(" ", "_") for name in names]  # LightGBM's names have no spaces
    return trees.fit(rows, values, feature_name=names).booster_, np.split(predicted, np.cumsum(sizes)[:-1])
