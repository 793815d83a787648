"""What is to be written, from what, and what a writer made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """A text to write from: a cited paper, as the writer sees it.

    Attributes:
        text: Its abstract, or all of its text; the title stands before it only where the data set has it so.
        paper_id: Which paper it is, where that is known.
        title: Its title, where that is known.
        sentences: Its sentences, where the data set has it split; else they are split when they are needed.
        authors: Who wrote it, given name first, where that is known.
        extra: What else the record says of it; it is written out again.
    """

    text: str
    paper_id: str | None = None
    title: str = ""
    sentences: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class TextTask:
    """A text to write: a citation text, a TLDR, a section of related work.

    `[0]`, `[1]`, … in what is written stand for the sources in their order (docs/formats.md).

    Attributes:
        task_id: Identifier, unique in its data set.
        sources: The cited papers.
        citing: The abstract of the citing paper, or its full text; empty where it is not known.
        before: What stands before the text to write.
        after: What stands after it.
        targets: What authors wrote in its place; several where the data set has several.
        dataset: Name of the data set; results are given for each.
        extra: Fields of the record that citerec does not know; they are written out again.
    """

    task_id: str
    sources: tuple[Source, ...]
    citing: str = ""
    before: str = ""
    after: str = ""
    targets: tuple[str, ...] = ()
    dataset: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that was written, and what stands behind it.

    Attributes:
        text: The sentence.
        attributions: Numbers of the sources that it was drawn from, in order.
        unknown: Citations in it that stand for no source, as they are written: "[7]". Never to be shown as fact.
        unsupported: Numbers of the sources that it cites, though hardly a word of it stands there.
    """

    text: str
    attributions: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    unsupported: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a writer wrote for a task.

    Attributes:
        task: The task.
        text: All of it.
        writer: Who wrote it: "lead", "allenai/led-base-16384".
        sentences: Its sentences in order, each with its sources; empty where nobody has looked yet.
        is_oracle: Whether the writer saw the targets: an upper bound, not a system.
        settings: All that the writer's texts depend on, as JSON takes it; empty where that is not known.
    """

    task: TextTask
    text: str
    writer: str
    sentences: tuple[Sentence, ...] = ()
    is_oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
