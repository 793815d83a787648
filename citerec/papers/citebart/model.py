"""CiteBART (EMNLP 2025): an encoder-decoder that writes author and year of the cited paper, and its training.

It reads a passage with a mask in place of the citation, and title and abstract of the citing paper.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

from pydantic import Field

from citerec.contexts.topic import Topic, clean
from citerec.corpus.citation_keys import surnames
from citerec.corpus.matching import plain_title
from citerec.errors import InputError, QueryError
from citerec.files.parallel import in_parts
from citerec.files.writing import Kind
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest
from citerec.models.text_models import TextModel
from citerec.papers.common.written import WritingRetriever, suggestions
from citerec.records import MARKER, Filters, Paper
from citerec.retrieve.words import WordSettings, WordsRetriever
from citerec.settings import PartSettings, Positive
from citerec.train.groups import Choice, GroupTraining, How, Learner, Schedule, group_training, write_model

MAX_INPUT_TOKENS = 350  # CiteBART
_ALIKE = 1000  # how many hits of a search by words order the papers of one author and year


class CiteBartSettings(PartSettings):
    """The model, and how citations are written.

    Attributes:
        model: Encoder-decoder: a folder or a name; by default the folder `citebart` of the index.
        beams: How many citations are written; 20 in the paper.
        max_new_tokens: Longest citation, in tokens.
        max_input_tokens: How many tokens are read at most; 350 in the paper.
        constrained: Whether only citations of papers of the index can be written.
    """

    model: str | None = None
    beams: int = Field(default=20, ge=2, le=1000)
    max_new_tokens: int = Field(default=24, ge=2)
    max_input_tokens: int = Field(default=MAX_INPUT_TOKENS, ge=8)
    constrained: bool = False


class CiteBartRetriever(WritingRetriever):
    """An encoder-decoder writes author and year in place of the citation, and the papers of that name are found.

    Papers of one author and year are ordered by words, as `words` finds them.
    """

    name = "citebart"
    label = "author and year"
    Settings = CiteBartSettings
    kind = "encoder-decoder"
    writes = "citations"
    remedy = "Train one: citerec train citebart --contexts FILE --index {index}"

    def read(self, model: TextModel, topic: Topic, _room: int) -> list[int]:
        """As `input_of`."""
        return input_of(model, topic, self.settings.max_input_tokens)

    def citation(self, model: TextModel, paper: Paper) -> Sequence[int]:
        """As `citation_of`."""
        text = citation_of(paper)
        return model.encode_text(text, self.settings.max_new_tokens).ids if text else ()

    def named(self, text: str) -> Sequence[str]:
        """The papers whose citation is the same but for accents, case and punctuation."""
        return self._papers_of.get(plain_title(text), ())

    def chosen(self, topic: Topic, named: Sequence[list[str]], filters: Filters) -> Sequence[list[str]]:
        """All papers of each citation, by their places in a search by words."""
        if all(len(papers) < 2 for papers in named):
            return named
        words = WordsRetriever.open(self.index, WordSettings())
        try:
            hits = words.search(topic, min(_ALIKE, self.index.manifest.counts.papers), filters)
            places = {paper_id: place for place, paper_id in enumerate(hits.paper_ids())}
        except QueryError:  # no word to search for
            places = {}
        return [sorted(papers, key=lambda one: (places.get(one, _ALIKE), one.encode())) for papers in named]

    @functools.cached_property
    def _papers_of(self) -> Mapping[str, Sequence[str]]:
        """The papers of each citation of the index; some 150 bytes a paper."""
        papers_of = defaultdict(list)
        for paper in self.index.store.all_papers():
            papers_of[plain_title(citation_of(paper))].append(paper.paper_id)
        papers_of.pop("", None)
        return papers_of


def citation_of(paper: Paper) -> str:
    """`Surname, year`, `Surname and Surname, year` or `Surname et al., year`; empty if author or year is unknown."""
    names = surnames([name.split()[-1] for name in paper.authors if name.strip()])
    return f"{names}, {paper.year}" if names and paper.year is not None else ""


def input_of(model: TextModel, topic: Topic, max_tokens: int) -> list[int]:
    """The passage with the mask in place of the marker, then title and abstract of the citing paper, if known.

    What is too long is cut at its end.
    """
    context = topic.context
    around = (context.before, context.after) if topic.neighbours else ("", "")
    sentence = f" {model.mask} ".join(clean(part) for part in context.text.split(MARKER))
    if MARKER not in context.text:
        sentence = f"{sentence} {model.mask}"
    citing = topic.citing
    texts = [clean(around[0]), sentence, clean(around[1]), topic.citing_title, (citing and citing.abstract) or ""]
    return list(model.encode_text(" ".join(" ".join(texts).split()), max_tokens).ids)


METRIC = "accuracy"
"""The share of dev contexts for which the citation that is written first is that of a cited paper."""

_LONGEST = 24  # tokens of a citation
_AT_ONCE = 50  # dev contexts


class CiteBartManifest(ModelManifest):
    """`manifest.json` of a trained CiteBART."""

    kind: Literal["citerec-citebart"] = "citerec-citebart"
    base: str


CITEBART_DIRECTORY = Kind("CiteBART", "citerec-citebart", MANIFEST, MODEL_FILES | {MANIFEST, "generation_config.json"})


@dataclass(frozen=True, slots=True)
class CiteBartOptions:
    """How to train CiteBART.

    Attributes:
        base: The encoder-decoder to start from: a folder or a name on the hub.
        max_input_tokens: How many tokens it reads.
        batch: Cited papers per step.
    """

    base: str
    max_input_tokens: Positive = MAX_INPUT_TOKENS
    batch: Positive = 16


def train_citebart(
    choice: Choice, index: Path, out: Path, options: CiteBartOptions, schedule: Schedule, **how: Unpack[How]
) -> CiteBartManifest:
    """Trains a CiteBART, in place of an earlier one at `out`. An interrupted training is resumed.

    The weights that write most dev citations first are kept. Arguments and errors are those of
    `citerec.train_reranker`; nothing is searched, so no system is needed.
    """
    model = TextModel.open(options.base, kinds=["encoder-decoder"], device=how.get("device"))
    begun = group_training(CITEBART_DIRECTORY, choice, index, out, options, schedule, (0, 0), model.identity, **how)
    with begun as groups:
        learner = _learner(model, groups, options)
        record = groups.fit(learner)
        manifest = CiteBartManifest(
            base=options.base,
            training={**groups.facts(record, "base"), "examples": len(learner.examples)},
            dev={**record.results, f"{METRIC} before": record.values.get(0, 0.0)},
        )
        return write_model(CITEBART_DIRECTORY, out, manifest, groups.provenance(options.base), model.save)


def _learner(writer: TextModel, groups: GroupTraining, options: CiteBartOptions) -> Learner:
    """An encoder-decoder, and the citations that it learns to write.

    Its examples are the number of a group, and the citation of one of its cited papers, for each that has one.
    """
    read = functools.partial(input_of, writer, max_tokens=options.max_input_tokens)

    def losses(examples: Sequence[tuple[int, str]]) -> Iterator[Any]:
        topics = groups.read([groups.train[number] for number, _ in examples])
        targets = [list(writer.encode_text(citation, _LONGEST).ids) for _, citation in examples]
        inputs = [read(topic) for topic, _ in topics]
        return (loss * share for loss, share in writer.losses(list(zip(inputs, targets, strict=True))))

    def evaluate() -> tuple[float, dict[str, float]]:
        right = 0
        for number, part in enumerate(in_parts(dev, _AT_ONCE)):
            groups.on_progress("measuring", number * _AT_ONCE, len(dev))
            written = suggestions(writer, [ids for ids, _ in part], 1, _LONGEST)
            first = [plain_title(texts[0].text) for texts in written]
            right += sum(text in citations - {""} for text, (_, citations) in zip(first, part, strict=True))
        value = round(right / len(dev), 4)
        return value, {METRIC: value}

    citations = (filter(None, map(citation_of, cited)) for _, cited in groups.read(groups.train))
    examples = [(number, citation) for number, of_group in enumerate(citations) for citation in of_group]
    if not examples:
        fault = f"no cited paper in {groups.recommender.path} has an author and a year"
        raise InputError(fault, "Give other contexts, or records.")
    topics = groups.read(groups.dev)
    dev = [(read(topic), {plain_title(citation_of(paper)) for paper in cited}) for topic, cited in topics]
    return Learner(writer.model, options.batch, examples, losses, evaluate)
