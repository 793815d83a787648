"""Training NCN: it learns to write the titles of cited papers (Ebesu and Fang, SIGIR 2017)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.contexts.learnt import LEARNT
from citerec.contexts.topic import Topic
from citerec.errors import InputError
from citerec.files.progress import Note, Progress, no_note, no_progress
from citerec.models.loading import torch_device
from citerec.papers.diagnostic.ncn.model import NCN_DIRECTORY, Costs, Manifest, Ncn, Total
from citerec.papers.diagnostic.ncn.network import Sizes
from citerec.papers.diagnostic.ncn.words import KINDS, Vocabularies, Vocabulary, names_of, words_of
from citerec.recommend import Recommender
from citerec.records import Paper
from citerec.systems import Recipe
from citerec.train.base import Schedule, checkpoint_directory
from citerec.train.groups import (
    PROGRESS_EVERY,
    Choice,
    Group,
    Groups,
    facts_of,
    learnt_by,
    mine_groups,
    plan_of,
    without_rerankers,
)
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
    from citerec.train.trainer import learn

    NCN_DIRECTORY.check_place(out)
    device = torch_device(device)
    with Recommender.open(index, without_rerankers(index, system)) as recommender:
        given = {**asdict(options), "sizes": options.sizes.model_dump()}
        plan = plan_of(choice, recommender, given, schedule, device.partition(":")[0])
        with checkpoint_directory(out, plan) as folder:
            train, dev = mine_groups(choice, recommender, options.depth, folder, on_progress, negatives=False)
            reader = _Reader(train, recommender)
            examples, words = reader.survey(options.sizes.vocabulary, on_progress)
            if not examples:
                raise InputError(
                    f"no paper that {choice.path} cites has a title in {recommender.path}", "Give other contexts."
                )
            model = Ncn.begin(options.sizes, words, seed=schedule.seed, device=device)
            learner = _Learner(model, reader, examples, dev, options.batch, on_progress)
            record = learn(learner, schedule, folder, on_progress, note)
            learnt = {name: value for name, value in asdict(options).items() if name != "sizes"}
            chosen = ("weight", "mean")
            manifest = model.manifest.model_copy(
                update={
                    "citerec": __version__,
                    "weight": record.results["weight"],
                    "total": _TOTALS[int(record.results["mean"])],
                    "training": {
                        **facts_of(choice, recommender, (train, dev), learnt | asdict(schedule), record),
                        "words": words.sizes,
                    },
                    "dev": {name: value for name, value in record.results.items() if name not in chosen},
                }
            )
            with NCN_DIRECTORY.writing(out) as partial:
                learnt_by(train, dev, recommender).write(partial / LEARNT)
                model.save(partial, manifest)
    return manifest


class _Reader:
    """The contexts to learn from, with the records of the papers that they cite."""

    def __init__(self, groups: Groups, recommender: Recommender) -> None:
        self.recommender = recommender
        self._groups = groups

    def read(self, numbers: Sequence[int]) -> list[tuple[Group, Topic, list[Paper]]]:
        """Some groups, each with its topic and the records of its cited papers."""
        groups = [self._groups[number] for number in numbers]
        topics = list(self.recommender.topics(group.context for group in groups))
        papers = self.recommender.store.papers({paper_id for group in groups for paper_id in group.gold})
        return [
            (group, topic, [papers[paper_id] for paper_id in group.gold])
            for group, topic in zip(groups, topics, strict=True)
        ]

    def survey(self, size: int, on_progress: Progress) -> tuple[list[tuple[int, int]], Vocabularies]:
        """The examples, and the words of all: an example is the number of a group and of one of its cited papers.

        A cited paper without a word in its title is no example.
        """
        examples: list[tuple[int, int]] = []
        counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        for begin in range(0, len(self._groups), _GROUPS_AT_ONCE):
            on_progress("counting words", begin, len(self._groups))
            numbers = range(begin, min(begin + _GROUPS_AT_ONCE, len(self._groups)))
            for number, (_, topic, cited) in zip(numbers, self.read(numbers), strict=True):
                counts["texts"].update(words_of(topic.passage))
                counts["authors"].update(names_of(topic.citing.authors if topic.citing else ()))
                for slot, paper in enumerate(cited):
                    counts["authors"].update(names_of(paper.authors))
                    if title := words_of(paper.title):
                        counts["titles"].update(title)
                        examples.append((number, slot))
        return examples, Vocabularies({kind: Vocabulary.of(found, size) for kind, found in counts.items()})


@dataclass
class _Learner:
    """An NCN, and the cited papers whose titles it learns to write."""

    ncn: Ncn
    reader: _Reader
    examples: Sequence[tuple[int, int]]
    dev: Groups
    batch: int
    on_progress: Progress

    def __post_init__(self) -> None:
        self.model = self.ncn.network.module

    def losses(self, examples: Sequence[tuple[int, int]]) -> "Iterator[torch.Tensor]":
        groups = self.reader.read([number for number, _ in examples])
        papers = [cited[slot] for (_, slot), (_, _, cited) in zip(examples, groups, strict=True)]
        memories = self.ncn.remember([topic for _, topic, _ in groups])
        losses, titles = self.ncn.cross_entropies(memories, papers)
        yield losses.sum() / int(titles.lengths.sum())

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The best mrr@10 on dev over weights, and over sum or mean of a title's cross-entropy; results with these."""
        costs: list[tuple[Group, Costs]] = []
        recommender = self.reader.recommender
        for number, group in enumerate(self.dev):
            if number % PROGRESS_EVERY == 0:
                self.on_progress("measuring", number, len(self.dev))
            (topic,) = recommender.topics([group.context])
            papers = recommender.store.papers(candidate.paper_id for candidate in group.candidates)
            found = [papers[candidate.paper_id] for candidate in group.candidates]
            costs.append((group, self.ncn.costs(topic, found)))
        values: list[tuple[float, dict[str, float]]] = []
        for mean, total in enumerate(_TOTALS):
            scores = [(group, one.scores(total)) for group, one in costs]
            best, results = tuned(scores)
            alone = {f"{name} alone": value for name, value in metrics_at(scores, _ALONE).items()}
            values.append((best, {**results, **alone, "mean": float(mean)}))
        return max(values, key=lambda value: value[0])  # the sum if both are as good
