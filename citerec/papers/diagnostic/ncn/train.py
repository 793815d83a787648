"""Training NCN: it learns to write the titles of cited papers (Ebesu and Fang, SIGIR 2017)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import torch

from citerec.errors import InputError
from citerec.models.loading import torch_device
from citerec.papers.diagnostic.ncn.model import (
    KINDS,
    NCN_DIRECTORY,
    PADDING,
    Manifest,
    Ncn,
    Sizes,
    Vocabulary,
    names_of,
    words_of,
)
from citerec.settings import Positive
from citerec.systems import Recipe
from citerec.train.base import How, Schedule, write_model
from citerec.train.groups import Choice, GroupTraining, group_training
from citerec.train.reranker import tuned


@dataclass(frozen=True, slots=True)
class NcnOptions:
    """How to train NCN.

    Attributes:
        sizes: The sizes of the network.
        depth: How many candidates it ranks on dev.
        batch: Cited papers per step.
    """

    sizes: Sizes = field(default_factory=Sizes)
    depth: Positive = 256
    batch: Positive = 64


def train_ncn(
    choice: Choice,
    index: Path,
    out: Path,
    options: NcnOptions,
    schedule: Schedule,
    system: Recipe | None = None,
    **how: Unpack[How],
) -> Manifest:
    """Trains an NCN, in place of an earlier one at `out`. An interrupted training is resumed.

    It learns the titles of cited papers word by word, and the best weights are kept by mrr@10 on dev, where it ranks
    the candidates of `system`. Optimiser and schedule are those of our other models, not Adam at a constant rate.
    Arguments and errors are those of `citerec.train_reranker`.
    """
    with group_training(
        NCN_DIRECTORY, choice, index, system, out, options, schedule, options.depth, negatives=False, **how
    ) as groups:
        examples, words = _survey(groups, options.sizes.vocabulary)
        if not examples:
            raise InputError(
                f"no paper that {choice.path} cites has a title in {groups.recommender.path}", "Give other contexts."
            )
        torch.manual_seed(schedule.seed)
        model = Ncn(options.sizes, words).to(torch_device(how.get("device")))
        learner = _Learner(model, groups, examples, options.batch)
        record = groups.fit(learner)
        dev = dict(record.results)
        manifest = Manifest(
            sizes=options.sizes,
            weight=dev.pop("weight"),
            training={**groups.facts(record, "sizes"), "words": {kind: len(words[kind].words) for kind in KINDS}},
            dev=dev,
        )
        return write_model(NCN_DIRECTORY, out, manifest, groups.learnt(), lambda folder: model.save(folder, manifest))


def _survey(groups: GroupTraining, size: int) -> tuple[list[tuple[int, int]], dict[str, Vocabulary]]:
    """The examples, and the words of all: an example is the number of a group and of one of its cited papers.

    A cited paper without a word in its title is no example.
    """
    examples: list[tuple[int, int]] = []
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for number, (topic, cited) in enumerate(groups.read(groups.train, "counting words")):
        counts["texts"].update(words_of(topic.passage))
        counts["authors"].update(names_of(topic.citing.authors if topic.citing else ()))
        for slot, paper in enumerate(cited):
            counts["authors"].update(names_of(paper.authors))
            if title := words_of(paper.title):
                counts["titles"].update(title)
                examples.append((number, slot))
    return examples, {kind: Vocabulary.of(words, size) for kind, words in counts.items()}


@dataclass
class _Learner:
    """An NCN, and the cited papers whose titles it learns to write."""

    model: Ncn
    groups: GroupTraining
    examples: Sequence[tuple[int, int]]
    batch: int

    def losses(self, examples: Sequence[tuple[int, int]]) -> Iterator[torch.Tensor]:
        topics, papers = zip(*self.groups.read([self.groups.train[number] for number, _ in examples]), strict=True)
        cited = [of_group[slot] for (_, slot), of_group in zip(examples, papers, strict=True)]
        losses, titles = self.model(self.model.read(topics), cited)
        yield losses.sum() / (titles != PADDING).sum()

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The best mrr@10 on dev over weights, and results with the best weight."""
        scores = []
        for group, (topic, _) in zip(self.groups.dev, self.groups.read(self.groups.dev, "measuring"), strict=True):
            papers = self.groups.recommender.store.papers(one.paper_id for one in group.candidates)
            scores.append((group, self.model.scores(topic, [papers[one.paper_id] for one in group.candidates])))
        return tuned(scores)
