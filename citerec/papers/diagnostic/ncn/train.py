"""Training NCN: it learns to write the titles of cited papers (Ebesu and Fang, SIGIR 2017)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.contexts.learnt import LEARNT
from citerec.contexts.topic import Topic
from citerec.errors import InputError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.papers.diagnostic.ncn.model import NCN_DIRECTORY, Costs, Manifest, Ncn, Total
from citerec.papers.diagnostic.ncn.network import Sizes
from citerec.papers.diagnostic.ncn.words import KINDS, Vocabularies, Vocabulary, names_of, words_of
from citerec.records import Paper
from citerec.systems import Recipe
from citerec.train.base import Schedule
from citerec.train.groups import PROGRESS_EVERY, Choice, Group, GroupTraining, group_training
from citerec.train.reranker import metrics_at, tuned
from citerec.version import __version__

if TYPE_CHECKING:
    import torch

_GROUPS_AT_ONCE = 500
_ALONE = 1e6  # a weight beside which the score of the search does not count
_TOTALS: tuple[Total, ...] = ("sum", "mean")


@dataclass(frozen=True, slots=True)
class NcnOptions:
    """How to train NCN.

    Attributes:
        sizes: The sizes of the network.
        depth: How many candidates it ranks on dev.
        batch: Cited papers per step.
    """

    sizes: Sizes = field(default_factory=Sizes)
    depth: int = 256
    batch: int = 64


def train_ncn(
    choice: Choice,
    index: Path,
    out: Path,
    options: NcnOptions,
    schedule: Schedule,
    system: Recipe | None = None,
    *,
    device: str | None = None,
    on_progress: Progress = no_progress,
    note: Note = no_note,
) -> Manifest:
    """Trains an NCN, in place of an earlier one at `out`. An interrupted training is resumed.

    It learns the titles of cited papers word by word, and the best weights are kept by mrr@10 on dev, where it ranks
    the candidates of `system`. Optimiser and schedule are those of our other models, not Adam at a constant rate.
    Arguments and errors are those of `citerec.train_reranker`.
    """
    from citerec.train.trainer import LossTrainer

    NCN_DIRECTORY.check_place(out)
    with group_training(
        choice, index, system, out, options, schedule, options.depth, device, on_progress, negatives=False
    ) as groups:
        examples, words = _survey(groups, options.sizes.vocabulary)
        if not examples:
            raise InputError(
                f"no paper that {choice.path} cites has a title in {groups.recommender.path}", "Give other contexts."
            )
        model = Ncn.begin(options.sizes, words, seed=schedule.seed, device=device)
        learner = _Learner(model, groups, examples, options.batch)
        record = LossTrainer(learner, schedule, groups.folder, on_progress, note).fit()
        manifest = model.manifest.model_copy(
            update={
                "citerec": __version__,
                "weight": record.results["weight"],
                "total": _TOTALS[int(record.results["mean"])],
                "training": {**groups.facts(record, "sizes"), "words": words.sizes},
                "dev": {name: value for name, value in record.results.items() if name not in ("weight", "mean")},
            }
        )
        with NCN_DIRECTORY.writing(out) as partial:
            groups.learnt().write(partial / LEARNT)
            model.save(partial, manifest)
    return manifest


def _read(groups: GroupTraining, numbers: Sequence[int]) -> list[tuple[Topic, list[Paper]]]:
    """The topics of some groups to learn from, each with the records of its cited papers."""
    chosen = [groups.train[number] for number in numbers]
    topics = groups.recommender.topics(group.context for group in chosen)
    papers = groups.recommender.store.papers({paper_id for group in chosen for paper_id in group.gold})
    cited = ([papers[paper_id] for paper_id in group.gold] for group in chosen)
    return list(zip(topics, cited, strict=True))


def _survey(groups: GroupTraining, size: int) -> tuple[list[tuple[int, int]], Vocabularies]:
    """The examples, and the words of all: an example is the number of a group and of one of its cited papers.

    A cited paper without a word in its title is no example.
    """
    examples: list[tuple[int, int]] = []
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for begin in range(0, len(groups.train), _GROUPS_AT_ONCE):
        groups.on_progress("counting words", begin, len(groups.train))
        numbers = range(begin, min(begin + _GROUPS_AT_ONCE, len(groups.train)))
        for number, (topic, cited) in zip(numbers, _read(groups, numbers), strict=True):
            counts["texts"].update(words_of(topic.passage))
            counts["authors"].update(names_of(topic.citing.authors if topic.citing else ()))
            for slot, paper in enumerate(cited):
                counts["authors"].update(names_of(paper.authors))
                if title := words_of(paper.title):
                    counts["titles"].update(title)
                    examples.append((number, slot))
    return examples, Vocabularies({kind: Vocabulary.of(words, size) for kind, words in counts.items()})


@dataclass
class _Learner:
    """An NCN, and the cited papers whose titles it learns to write."""

    ncn: Ncn
    groups: GroupTraining
    examples: Sequence[tuple[int, int]]
    batch: int

    def __post_init__(self) -> None:
        self.model = self.ncn.network.module

    def losses(self, examples: Sequence[tuple[int, int]]) -> "Iterator[torch.Tensor]":
        topics = _read(self.groups, [number for number, _ in examples])
        papers = [cited[slot] for (_, slot), (_, cited) in zip(examples, topics, strict=True)]
        memories = self.ncn.remember([topic for topic, _ in topics])
        losses, titles = self.ncn.cross_entropies(memories, papers)
        yield losses.sum() / int(titles.lengths.sum())

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The best mrr@10 on dev over weights, and over sum or mean of a title's cross-entropy; results with these."""
        costs: list[tuple[Group, Costs]] = []
        recommender, dev = self.groups.recommender, self.groups.dev
        for number, group in enumerate(dev):
            if number % PROGRESS_EVERY == 0:
                self.groups.on_progress("measuring", number, len(dev))
            (topic,) = recommender.topics([group.context])
            papers = recommender.store.papers(candidate.paper_id for candidate in group.candidates)
            costs.append((group, self.ncn.costs(topic, [papers[one.paper_id] for one in group.candidates])))
        values: list[tuple[float, dict[str, float]]] = []
        for mean, total in enumerate(_TOTALS):
            scores = [(group, one.scores(total)) for group, one in costs]
            best, results = tuned(scores)
            alone = {f"{name} alone": value for name, value in metrics_at(scores, _ALONE).items()}
            values.append((best, {**results, **alone, "mean": float(mean)}))
        return max(values, key=lambda value: value[0])  # the sum if both are as good
