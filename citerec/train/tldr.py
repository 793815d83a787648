"""`citerec train tldr`: which sentences of an abstract, or which parts of them, are most like a TLDR."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import LEARNT, Learnt
from citerec.errors import InputError
from citerec.files.hashing import file_digest, hash_sample
from citerec.files.progress import Progress, no_progress
from citerec.version import __version__
from citerec.write.metrics.rouge import GreedyRouge
from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask, subjects, task_digests
from citerec.write.writers.extractive import source_sentences
from citerec.write.writers.tldr_forms import FORM_FEATURES, AbstractForms
from citerec.write.writers.tldr_words import WORD_FEATURES, AbstractWords, Vocabulary, stems_of
from citerec.write.writers.trained import (
    DATASHEET,
    FORM_TREES,
    SENTENCES_DIRECTORY,
    VOCABULARY,
    WORD_TREES,
    SentenceModel,
    SentencesManifest,
)

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
_EVERY = 50
_NOT_NEEDED = re.compile(
    r"^(?:tree_sizes|split_gain|leaf_weight|leaf_count|internal_value|internal_weight|internal_count)=.*\n",
    re.MULTILINE,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Task:
    """A task to learn from: sentences, targets and their stems, and the part of the cross-validation that it is in."""

    task: TextTask
    sentences: tuple[str, ...]
    targets: tuple[str, ...]
    stems: frozenset[str]
    fold: int

    def labels(self, texts: Sequence[str]) -> Floats:
        """ROUGE-1 F1 of some texts, stemmed, the best over the targets."""
        scorers = [GreedyRouge(target, texts, n=1, stemming=True) for target in self.targets]
        return np.array([max(scorer.f1_with(number) for scorer in scorers) for number in range(len(texts))])


def train_tldr(
    path: Path, out: Path, *, data: str = "", seed: int = 0, on_progress: Progress = no_progress
) -> SentencesManifest:
    """Learns from tasks with targets, of one source each, and writes the writer to `out`.

    First trees for the words of an abstract: how likely each is in the TLDR. Then trees for the texts that
    can be made of it (`AbstractForms`), which learn ROUGE-1 F1 less its mean over the abstract. These see what trees
    that did not learn from an abstract say of its words, as they will when they are used. Other tasks are left out.

    Args:
        path: The tasks.
        out: The folder of the writer.
        data: What the tasks are and their licence, for the datasheet.
        seed: Seed of the trees, and of the parts of the cross-validation.
        on_progress: Called with what is being done.

    Raises:
        SourceError: The tasks cannot be read.
        InputError: A record is no task, too few have one source and a target, or something else is at `out`.
    """
    SENTENCES_DIRECTORY.check_place(out)
    tasks = _usable(path, seed)
    if len({task.fold for task in tasks}) < FOLDS:
        raise InputError(
            f"{path} has {len(tasks)} tasks with one source and a target, too few to learn from",
            "Give more: some hundreds at least.",
        )
    on_progress("looking at words", 0, 0)
    vocabulary = _counted(tasks)
    abstracts = [AbstractWords(one.sentences, one.task.sources[0].title, vocabulary, one.stems) for one in tasks]
    vocabulary = _weighted(vocabulary, abstracts, tasks)
    for abstract in abstracts:
        abstract.vocabulary = vocabulary
    words, chances = _words(abstracts, tasks, seed, on_progress)
    forms, scores, rows = _forms(abstracts, chances, tasks, seed, on_progress)
    manifest = SentencesManifest(
        citerec=__version__,
        gain={"words": _gain(words, WORD_FEATURES), "forms": _gain(forms, FORM_FEATURES)},
        training={
            "tasks": path.name,
            "sha256": file_digest(path),
            "data": data,
            "learnt_from": len(tasks),
            "texts": rows,
            "seed": seed,
            "folds": FOLDS,
            "trees of words": _WORDS,
            "trees of forms": _FORMS,
        },
        scores=scores,
    )
    frequent = {stem: count for stem, count in vocabulary.counts.items() if count[0] >= LEAST_PAPERS}
    with SENTENCES_DIRECTORY.writing(out) as folder:
        (folder / WORD_TREES).write_text(_plain(words), encoding="utf-8")
        (folder / FORM_TREES).write_text(_plain(forms), encoding="utf-8")
        replace(vocabulary, counts=frequent).write(folder / VOCABULARY)
        (folder / DATASHEET).write_text(_datasheet(manifest), encoding="utf-8")
        Learnt(frozenset(one for task in tasks for one in task_digests(task.task))).write(folder / LEARNT)
        manifest.write(folder)
        SentenceModel.open(folder)
    return manifest


def _usable(path: Path, seed: int) -> list[_Task]:
    """The tasks of one source with text, and a target."""
    found = []
    for task in read_tasks(path):
        if len(task.sources) == 1:
            sentences = tuple(filter(str.strip, source_sentences(task.sources[0])))
            targets = tuple(filter(str.strip, task.targets))
            if sentences and targets:
                stems = frozenset(stem for target in targets for stem in stems_of(target))
                found.append(_Task(task, sentences, targets, stems, hash_sample(seed, str(subjects(task)[0])) % FOLDS))
    return found


def _counted(tasks: Sequence[_Task]) -> Vocabulary:
    """The counts of all words."""
    counts: dict[str, tuple[int, int]] = {}
    for task in tasks:
        target = task.stems
        for stem in {stem for sentence in task.sentences for stem in stems_of(sentence)}:
            papers, found = counts.get(stem, (0, 0))
            counts[stem] = papers + 1, found + (stem in target)
    papers, found = (sum(one[side] for one in counts.values()) for side in (0, 1))
    if not 0 < found < papers:
        raise InputError("no word of a target is in its source, or every one is", "Give abstracts with their TLDRs.")
    words = float(np.mean([len(stems_of(target)) for task in tasks for target in task.targets]))
    return Vocabulary(len(tasks), round(words, 4), round(found / papers, 6), counts)


def _weighted(vocabulary: Vocabulary, abstracts: Sequence[AbstractWords], tasks: Sequence[_Task]) -> Vocabulary:
    """The same with the weights of the first guess; each task is seen without the counts of its own target."""
    from sklearn.linear_model import LogisticRegression

    table = np.concatenate([abstract.alone() for abstract in abstracts])
    learnt = LogisticRegression(max_iter=300).fit(table, _in_targets(abstracts, tasks))
    weights = (*learnt.coef_[0].tolist(), float(learnt.intercept_[0]))
    return replace(vocabulary, weights=tuple(float(f"{weight:.6g}") for weight in weights))


def _in_targets(abstracts: Sequence[AbstractWords], tasks: Sequence[_Task]) -> npt.NDArray[np.bool_]:
    return np.array(
        [word in task.stems for abstract, task in zip(abstracts, tasks, strict=True) for word in abstract.words]
    )


def _words(
    abstracts: Sequence[AbstractWords], tasks: Sequence[_Task], seed: int, on_progress: Progress
) -> tuple[Any, list[dict[str, float]]]:
    """The trees of words, and for each abstract the chances by trees that did not learn from it."""
    table = np.concatenate([abstract.features() for abstract in abstracts])
    labels = _in_targets(abstracts, tasks).astype(np.float64)
    folds = np.repeat([task.fold for task in tasks], [len(abstract.words) for abstract in abstracts])
    trees, predicted = _learnt({**_WORDS, "seed": seed}, table, labels, folds, WORD_FEATURES, on_progress)
    chances, done = [], 0
    for abstract in abstracts:
        own = predicted[done : done + len(abstract.words)].tolist()
        chances.append(dict(zip(abstract.words, own, strict=True)))
        done += len(own)
    return trees, chances


def _forms(
    abstracts: Sequence[AbstractWords],
    chances: Sequence[Mapping[str, float]],
    tasks: Sequence[_Task],
    seed: int,
    on_progress: Progress,
) -> tuple[Any, dict[str, float], int]:
    """The trees of texts, the scores by cross-validation, and how many texts they learnt from."""
    features, labels, untrained = [], [], []
    for number, (abstract, chance, task) in enumerate(zip(abstracts, chances, tasks, strict=True)):
        seen = AbstractForms(abstract, chance)
        label = task.labels([" ".join(seen.written(text)) for text in seen.texts])
        features.append(seen.features())
        labels.append(label)
        # The whole sentence comes before its other forms.
        untrained.append(next(label[at] for at, (of, _) in enumerate(seen.forms) if of == abstract.contribution))
        if number % _EVERY == 0:
            on_progress("looking at sentences", number, len(tasks))
    sizes = [len(label) for label in labels]
    relative = np.concatenate([label - label.mean() for label in labels])
    folds = np.repeat([task.fold for task in tasks], sizes)
    parameters = {**_FORMS, "seed": seed}
    trees, predicted = _learnt(parameters, np.concatenate(features), relative, folds, FORM_FEATURES, on_progress)
    picked = [
        label[np.argmax(scores)]
        for label, scores in zip(labels, np.split(predicted, np.cumsum(sizes)[:-1]), strict=True)
    ]
    best = [label.max() for label in labels]
    named = {"rouge1": picked, "rouge1 of contribution": untrained, "rouge1 of the best text": best}
    return trees, {name: round(100 * float(np.mean(values)), 2) for name, values in named.items()}, sum(sizes)


def _learnt(
    parameters: Mapping[str, Any],
    table: npt.NDArray[Any],
    labels: Floats,
    folds: npt.NDArray[np.int64],
    names: Sequence[str],
    on_progress: Progress,
) -> tuple[Any, Floats]:
    """Trees that learnt from all rows, and what trees that learnt from the other parts say of each."""
    import lightgbm

    names = [name.replace(" ", "_") for name in names]  # LightGBM's names have no spaces

    def learn(rows: npt.NDArray[np.bool_]) -> Any:
        return lightgbm.train(dict(parameters), lightgbm.Dataset(table[rows], labels[rows], feature_name=names))

    predicted = np.zeros(len(labels))
    for fold in range(FOLDS):
        on_progress("learning", fold, FOLDS + 1)
        held_out = folds == fold
        predicted[held_out] = learn(~held_out).predict(table[held_out], num_threads=1)
    on_progress("learning", FOLDS, FOLDS + 1)
    return learn(np.ones(len(labels), np.bool_)), predicted


def _plain(trees: Any) -> str:
    """Trees in LightGBM's text format, without what only training and explanations need: half as long."""
    text, end = trees.model_to_string(), "end of trees\n"
    return _NOT_NEEDED.sub("", text[: text.index(end)] + end)


def _gain(trees: Any, names: Sequence[str]) -> dict[str, float]:
    gains = trees.feature_importance("gain")
    shares = {name: round(float(gain / (gains.sum() or 1)), 5) for name, gain in zip(names, gains, strict=True)}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _datasheet(manifest: SentencesManifest) -> str:
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
- **Made by** `citerec train tldr --tasks {facts["tasks"]} --out FOLDER --seed {facts["seed"]}`, citerec
  {manifest.citerec}.
"""
