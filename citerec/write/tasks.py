"""Tasks of writing, their sources, and predictions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from citerec.records import Paper

PREFIX, PROMPT = "input_prefix", "decoder_prompt"
"""Fields of `TextTask.extra` for models: words before the input, and words with which the text begins."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text to write from: a cited paper as the writer sees it.

    Attributes:
        text: Its abstract or full text; it begins with the title only if it does so in the data set.
        paper_id: Its id, if it is known.
        title: Its title, if it is known.
        sentences: Its sentences, if the data set has them; else they are split when needed.
        authors: Its authors, given name first, if they are known.
        extra: Other fields of the record, kept for output.
    """

    text: str
    paper_id: str | None = None
    title: str = ""
    sentences: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, paper: Paper) -> "Source":
        """A paper with its abstract, empty if it has none."""
        return cls(paper.abstract or "", paper.paper_id, paper.title, authors=paper.authors)


@dataclass(frozen=True, slots=True)
class TextTask:
    """A text to write: a citation text, a TLDR, a section of related work.

    `[0]`, `[1]`, … in the text stand for the sources in their order (docs/formats.md).

    Attributes:
        task_id: Identifier, unique in its data set.
        sources: The cited papers.
        citing: The abstract of the citing paper, or its full text; empty if it is not known.
        before: The text before the one to write.
        after: The text after it.
        targets: The texts that authors wrote there.
        dataset: Name of the data set.
        extra: Other fields of the record, kept for output.
        given: What a writer is given of the papers, a name of `citerec.write.inputs.INPUTS`; empty if the data set
            decides it.
        citing_source: The citing paper as a text that extractive writers take sentences from; None if they may not.
    """

    task_id: str
    sources: tuple[Source, ...]
    citing: str = ""
    before: str = ""
    after: str = ""
    targets: tuple[str, ...] = ()
    dataset: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    given: str = ""
    citing_source: Source | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a prediction.

    Attributes:
        text: The sentence.
        attributions: Numbers of the sources that it is based on, in order.
        unknown: Citations in it that match no source, as printed: "[7]". Never show them as facts.
        unsupported: Numbers of sources that it cites although hardly a word of it is in them.
    """

    text: str
    attributions: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    unsupported: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """The text that a writer made for a task.

    Attributes:
        task: The task.
        text: The text.
        writer: Name of the writer: "lead", "allenai/led-base-16384".
        sentences: Its sentences in order, with attributions; empty if they are not known.
        is_oracle: Whether the writer saw the targets: an upper bound, not a system.
        settings: Everything that the writer's texts depend on, as JSON; empty if not known.
        served_in_training: Whether the writer learned from this task, or from one about the same papers.
    """

    task: TextTask
    text: str
    writer: str
    sentences: tuple[Sentence, ...] = ()
    is_oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    served_in_training: bool = False
