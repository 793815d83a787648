"""Inputs of related work: what a writer is given of its papers (Docekal et al. 2024, section 3 and table 2)."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from citerec.contexts.sections import is_abstract
from citerec.corpus.json_lines import RecordError
from citerec.files.text import one_line, replaced
from citerec.write.anchors import UNKNOWN, anchors_of
from citerec.write.tasks import Source, TextTask

Part = Literal["nothing", "abstract", "full", "oracle"]
"""What is given of a paper; `oracle` is its full text, cut down by Greedy Oracle."""


class Input(NamedTuple):
    """What is given of each cited paper, and of the citing paper, always without its own related work."""

    cited: Part
    citing: Part


INPUTS: dict[str, Input] = {
    "abstracts": Input("abstract", "abstract"),
    "abstracts-cited": Input("abstract", "nothing"),
    "abstracts-full": Input("abstract", "full"),
    "full": Input("full", "full"),
    "full-abstract": Input("full", "abstract"),
    "full-cited": Input("full", "nothing"),
    "full-target": Input("nothing", "full"),
    "oracle": Input("oracle", "oracle"),
    "oracle-abstract": Input("oracle", "abstract"),
    "oracle-cited": Input("oracle", "nothing"),
    "oracle-target": Input("nothing", "oracle"),
    "abstracts-oracle": Input("abstract", "oracle"),
}
"""The inputs by name: those of section 3, of table 2, and their cited papers or citing paper alone."""


WHOLE: tuple[Part, Part] = ("full", "oracle")
"""The parts that are made from a full text."""


def needs_full_texts(given: str) -> bool:
    """Whether an input is made from full texts."""
    return any(part in WHOLE for part in INPUTS[given])


def sees_target(given: str) -> bool:
    """Whether an input was chosen by looking at the target: then every text from it is an upper bound."""
    return given in INPUTS and "oracle" in INPUTS[given]


@dataclass(frozen=True, slots=True)
class Material:
    """A task of related work, and the full texts of its papers.

    Attributes:
        task: The task with abstracts.
        cited: For each source the rest of its paper after the abstract; None if only the abstract is to be had.
        citing: The rest of the citing paper, without abstract and related work; None if it is not to be had.
    """

    task: TextTask
    cited: tuple[Source | None, ...]
    citing: Source | None = None


def material_of(task: TextTask) -> Material:
    """The material of a task as `citerec data related-work` writes it: its `document` is the rest of the citing paper.

    A RecordError if `document` is something else.
    """
    document = task.extra.get("document")
    if document is None:
        return Material(task, (None,) * len(task.sources))
    try:
        paragraphs = [paragraph for section in document for paragraph in _paragraphs(section)]
    except (TypeError, KeyError, AttributeError):
        raise RecordError("document is no list of sections: {headline, paragraphs, sections}") from None
    return Material(task, (None,) * len(task.sources), text_of(paragraphs))


def text_of(paragraphs: list[list[str]]) -> Source | None:
    """Paragraphs of sentences as a text, a line for each paragraph; None if there is no word."""
    kept = [said for paragraph in paragraphs if (said := [line for each in paragraph if (line := one_line(each))])]
    if not kept:
        return None
    return Source("\n".join(map(" ".join, kept)), sentences=tuple(sentence for said in kept for sentence in said))


def _paragraphs(section: dict[str, Any]) -> list[list[str]]:
    if is_abstract(section["headline"]):
        return []
    inner = [paragraph for each in section["sections"] for paragraph in _paragraphs(each)]
    return [*([_without_numbers(sentence) for sentence in paragraph] for paragraph in section["paragraphs"]), *inner]


def _without_numbers(sentence: str) -> str:
    """A sentence with `<cite>UNK</cite>` for `[3]` and the like: the number is not that of a source."""
    numbered = (anchor for anchor in anchors_of(sentence) if anchor.numbers)
    return replaced(sentence, ((anchor.start, anchor.end, f"<cite>{UNKNOWN}</cite>") for anchor in numbered))
