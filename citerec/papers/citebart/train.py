"""Training CiteBART: it learns to write author and year of the cited paper (EMNLP 2025)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from citerec.contexts.topic import Topic
from citerec.corpus.matching import plain_title
from citerec.errors import InputError
from citerec.files.parallel import in_parts
from citerec.files.writing import Kind
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest
from citerec.models.text_models import TextModel
from citerec.papers.citebart.retriever import MAX_INPUT_TOKENS, citation_of, input_of
from citerec.papers.common.written import suggestions
from citerec.settings import Positive
from citerec.systems import Recipe
from citerec.train.base import How, Schedule, write_model
from citerec.train.groups import PROGRESS_EVERY, Choice, GroupTraining, group_training

if TYPE_CHECKING:
    import torch

DEFAULT_BASE = "facebook/bart-base"
METRIC = "accuracy"
"""The share of dev contexts for which the citation that is written first is that of a cited paper."""

_LONGEST = 24  # tokens of a citation


class CiteBartManifest(ModelManifest):
    """`manifest.json` of a trained CiteBART."""

    kind: Literal["citerec-citebart"] = "citerec-citebart"
    base: str


_FILES = MODEL_FILES | {MANIFEST, "generation_config.json"}
CITEBART_DIRECTORY = Kind(name="CiteBART", kind="citerec-citebart", manifest=MANIFEST, names=_FILES)


@dataclass(frozen=True, slots=True)
class CiteBartOptions:
    """How to train CiteBART.

    Attributes:
        base: The encoder-decoder to start from: a folder or a name on the hub.
        max_input_tokens: How many tokens it reads.
        batch: Cited papers per step.
    """

    base: str = DEFAULT_BASE
    max_input_tokens: Positive = MAX_INPUT_TOKENS
    batch: Positive = 16


def train_citebart(
    choice: Choice,
    index: Path,
    out: Path,
    options: CiteBartOptions,
    schedule: Schedule,
    **how: Unpack[How],
) -> CiteBartManifest:
    """Trains a CiteBART, in place of an earlier one at `out`. An interrupted training is resumed.

    The weights that write most dev citations first are kept. Arguments and errors are those of
    `citerec.train_reranker`; nothing is searched, so no system is needed.
    """
    model = TextModel.open(options.base, kinds=["encoder-decoder"], device=how.get("device"))
    more: dict[str, Any] = {"negatives": False, "identity": model.identity, **how}
    system = Recipe.load("bm25")
    with group_training(CITEBART_DIRECTORY, choice, index, system, out, options, schedule, 0, **more) as groups:
        learner = _Learner(model, groups, options)
        record = groups.fit(learner)
        manifest = CiteBartManifest(
            base=options.base,
            training={**groups.facts(record, "base"), "examples": len(learner.examples)},
            dev={**record.results, f"{METRIC} before": record.values.get(0, 0.0)},
        )
        return write_model(CITEBART_DIRECTORY, out, manifest, groups.learnt(options.base), model.save)


@dataclass
class _Learner:
    """An encoder-decoder, and the citations that it learns to write.

    Attributes:
        examples: The number of a group, and the citation of one of its cited papers, for each that has one.
    """

    writer: TextModel
    groups: GroupTraining
    options: CiteBartOptions

    def __post_init__(self) -> None:
        self.model, self.batch = self.writer.model, self.options.batch
        train, dev = self.groups.read(self.groups.train), self.groups.read(self.groups.dev)
        self.examples = [
            (number, citation)
            for number, (_, cited) in enumerate(train)
            for citation in filter(None, map(citation_of, cited))
        ]
        if not self.examples:
            raise InputError(
                f"no cited paper in {self.groups.recommender.path} has an author and a year",
                "Give other contexts, or records.",
            )
        self._dev = [(self._input(topic), {plain_title(citation_of(paper)) for paper in cited}) for topic, cited in dev]

    def losses(self, examples: Sequence[tuple[int, str]]) -> "Iterator[torch.Tensor]":
        topics = self.groups.read([self.groups.train[number] for number, _ in examples])
        targets = [list(self.writer.encode_text(citation, _LONGEST).ids) for _, citation in examples]
        inputs = [self._input(topic) for topic, _ in topics]
        return (loss * share for loss, share in self.writer.losses(list(zip(inputs, targets, strict=True))))

    def evaluate(self) -> tuple[float, dict[str, float]]:
        right = done = 0
        for part in in_parts(self._dev, PROGRESS_EVERY):
            self.groups.on_progress("measuring", done, len(self._dev))
            written = suggestions(self.writer, [ids for ids, _ in part], 1, _LONGEST)
            first = [plain_title(texts[0].text) for texts in written]
            right += sum(text in citations - {""} for text, (_, citations) in zip(first, part, strict=True))
            done += len(part)
        value = round(right / len(self._dev), 4)
        return value, {METRIC: value}

    def _input(self, topic: Topic) -> list[int]:
        return input_of(self.writer, topic, self.options.max_input_tokens)
