"""Labelled sentences from files: SciCite's and ACL-ARC's citing sentences, CORWA's paragraphs of related work."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from citerec.corpus.json_lines import BadRecord, RecordError, optional_id, parsed, raw_lines, read_list, read_text
from citerec.errors import InputError, SourceError
from citerec.files.text import printable

SCHEMES = {
    "scicite": frozenset({"background", "method", "result"}),
    "acl-arc": frozenset({"Background", "CompareOrContrast", "Extends", "Future", "Motivation", "Uses"}),
    "corwa": frozenset({"Multi_summ", "Narrative_cite", "Other", "Reflection", "Single_summ", "Transition"}),
}
"""Labels of the known schemes: citation intents (Cohan et al. 2019; Jurgens et al. 2018), sentences of related work
(Li et al. 2022)."""

_BEGIN = "[BOS]"
_REMEDY = 'A line is {"text": "…", "label": "…"}, or {"paragraph": "[BOS] …", "discourse_tags": ["…"]}: docs/train.md.'


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Consecutive sentences, each with its label. A single sentence is a paragraph of one.

    Attributes:
        paragraph_id: Identifier: the record's own, else its line.
        sentences: The sentences in order; white space folded.
        labels: One label for each sentence.
    """

    paragraph_id: str
    sentences: tuple[str, ...]
    labels: tuple[str, ...]


def read_paragraphs(path: Path) -> Iterator[Paragraph]:
    """Yields the paragraphs of a file of SciCite, ACL-ARC or CORWA, plain or gzip; CORWA's spans are not read.

    Raises:
        SourceError: The file cannot be read, or is empty.
        InputError: A line is of neither shape; the message names it.
    """
    paragraph = None
    for number, raw, _ in raw_lines(path):
        paragraph = parsed(raw, partial(parse_paragraph, default_id=f"line-{number}"))
        if isinstance(paragraph, BadRecord):
            raise InputError(f"{path}, line {number}: {paragraph.reason}", _REMEDY)
        yield paragraph
    if paragraph is None:
        raise SourceError(f"{path} is empty", "Give a file with one labelled sentence or paragraph per line.")


def parse_paragraph(record: dict[str, Any], default_id: str = "") -> Paragraph:
    """A paragraph from its JSON object.

    Raises:
        RecordError: It is of neither shape, a sentence is blank, or there are not as many labels as sentences.
    """
    if "paragraph" in record:  # as in CORWA: one sentence after each mark
        before, *sentences = map(str.strip, (read_text(record, "paragraph") or "").split(_BEGIN))
        labels = read_list(record, "discourse_tags")
        if before or not sentences:
            raise RecordError(f"the paragraph does not begin with {_BEGIN}")
        if len(labels) != len(sentences):
            raise RecordError(f"{len(sentences)} sentences, and {len(labels)} discourse_tags")
    elif "text" in record:
        sentences, labels = [read_text(record, "text") or ""], [record.get("label")]
    else:
        raise RecordError("there is neither text nor paragraph")
    if not all(sentences):
        raise RecordError("a sentence is blank")
    if not all(isinstance(label, str) and label.strip() for label in labels):
        raise RecordError("a label is missing or is no text")
    shown = tuple(printable(label).strip() for label in labels)
    return Paragraph(optional_id(record, "id") or default_id, tuple(sentences), shown)


def scheme_of(labels: Iterable[str]) -> str:
    """The name of the scheme that has all these labels; empty if no known scheme has them."""
    names = frozenset(labels)
    return next((scheme for scheme, known_labels in SCHEMES.items() if names <= known_labels), "")
