"""Tasks of writing, their sources, and predictions; what a writer is given of its papers, and what it learned from."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from citerec.contexts.provenance import Provenance, digest, folded
from citerec.contexts.split import PYSBD, splitter, splitter_identity
from citerec.files.registry import Registry
from citerec.files.resume import hash_sample
from citerec.files.text import STOP_WORDS, one_line, printable
from citerec.records import Paper

_WORD = re.compile(r"\w+(?:(?:[-'’]|(?<=\d)[.,](?=\d))\w+)*")
_TERM = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text, by rule (pysbd); the end of a line ends a sentence too."""
    split = splitter()
    return tuple(line[start:end] for line in text.splitlines() for start, end in split(line))


def sentences_by() -> str:
    """The package of `sentences_of` and its version, for settings."""
    return " ".join(splitter_identity(PYSBD))


def words_of(text: str) -> list[str]:
    """The words of a text as printed: letters and digits, with punctuation inside: don't, 2-gram, 0.50."""
    return _WORD.findall(text)


def terms_of(text: str) -> list[str]:
    """The words of a text for comparison: in lower case, split at hyphens, with straight apostrophes."""
    return [term.replace("’", "'") for term in _TERM.findall(text.lower())]


def content_terms(text: str) -> list[str]:
    """The words of a text for comparison that are neither in `STOP_WORDS` nor numbers."""
    return [term for term in terms_of(text) if term not in STOP_WORDS and not term.isdecimal()]


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
        rest: Its full text after the abstract, without related work; None if only the abstract is to be had.
    """

    text: str
    paper_id: str | None = None
    title: str = ""
    sentences: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    rest: "Source | None" = None

    @property
    def said(self) -> str:
        """Title, authors and text, each on separate lines."""
        return "\n".join([self.title, *self.authors, self.text])

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
        input_name: What a writer is given of the papers, a name of `INPUTS`; empty if the data set decides it.
        citing_source: The citing paper as a text that extractive writers take sentences from; None if they may not.
        citing_rest: Of the citing paper what `Source.rest` is of a source.
    """

    task_id: str
    sources: tuple[Source, ...]
    citing: str = ""
    before: str = ""
    after: str = ""
    targets: tuple[str, ...] = ()
    dataset: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    input_name: str = ""
    citing_source: Source | None = None
    citing_rest: Source | None = None

    @property
    def citing_id(self) -> str:
        """The id of the citing paper; empty if it is not known."""
        value = self.extra.get("citing_id")
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a prediction. Files call its attributions `drawn_from`.

    Attributes:
        text: The sentence.
        attributions: Numbers of the sources that it is based on, in order.
        unknown: Citations in it that match no source, as printed: "[7]". Never show them as facts.
        unsupported: Numbers of sources that it cites although hardly a word of it is in them.
    """

    text: Annotated[str, AfterValidator(printable)]
    attributions: Annotated[tuple[int, ...], Field(alias="drawn_from")] = ()
    unknown: tuple[Annotated[str, AfterValidator(printable)], ...] = ()
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


@dataclass(frozen=True, slots=True)
class TaskInput:
    """What a writer is given of the papers of a task, in the registry.

    Attributes:
        of_file: The tasks of a file with it, in order, from number `start` to before `stop`:
            `of_file(path, full_texts=…, note=…, start=…, stop=…)`.
        of_task: One task with it: `of_task(task, full_texts=…, note=…)`.
        sees_target: Whether it is chosen by looking at the target: then every text from it is an upper bound.
    """

    name: str
    of_file: Callable[..., Iterator[TextTask]]
    of_task: Callable[..., TextTask]
    sees_target: bool = False


INPUTS: Registry[TaskInput] = Registry("input", {})
"""The inputs by name: those of OARelatedWork stand in the folder of that paper."""


def sees_target(input_name: str) -> bool:
    """Whether an input was chosen by looking at the target."""
    return input_name in INPUTS and INPUTS[input_name].sees_target


def text_of(paragraphs: Sequence[Sequence[str]]) -> Source | None:
    """Paragraphs of sentences as a text, a line for each paragraph; None if there is no word."""
    lines = [sentences for paragraph in paragraphs if (sentences := list(filter(None, map(one_line, paragraph))))]
    if not lines:
        return None
    return Source("\n".join(map(" ".join, lines)), sentences=tuple(sentence for line in lines for sentence in line))


def subjects(task: TextTask) -> list[int]:
    """What a task is about: the citing paper if it is known, else the cited papers together, in any order.

    Returns:
        A number for each name of it, ids before texts. Tasks that share a number are about the same papers.
    """
    if task.citing_id or task.citing:
        ids, texts = {task.citing_id}, {folded(task.citing)}
    else:
        ids, texts = {source.paper_id or "" for source in task.sources}, {folded(one.text) for one in task.sources}
    # Ids tell papers apart only where each has one.
    names = (("id", *sorted(ids if "" not in ids else ())), ("text", *sorted(texts - {""})))
    return [hash_sample(0, *name) for name in names if len(name) > 1]


def task_digests(task: TextTask) -> list[str]:
    """Digests of a task's targets, and of what it is about."""
    targets = [digest("text", folded(target)) for target in task.targets if target.strip()]
    return targets + [digest("about", str(number)) for number in subjects(task)]


def served_in_training(task: TextTask, provenance: Provenance) -> bool:
    """Whether a writer learned from a task, or was tuned on it, or on one with the same target or subject."""
    digests = task_digests(task)
    return not (provenance.trained_on.isdisjoint(digests) and provenance.tuned_on.isdisjoint(digests))
