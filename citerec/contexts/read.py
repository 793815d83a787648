"""Contexts from JSON Lines files and from running text."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.json_lines import RecordError, raw_lines
from citerec.corpus.values import optional_id, read_count, read_list, read_text
from citerec.errors import InputError, QueryError, SourceError
from citerec.records import MARKER, Context

_PARAGRAPH = re.compile(r"\n\s*\n")
# Splitting takes time with the square of the text, so that a marker is looked at in this much of it on either side.
_WINDOW_CHARACTERS = 8000


def read_contexts(path: Path) -> Iterator[Context]:
    """Yields the contexts of a JSON Lines file (docs/formats.md), plain or gzip.

    Raises:
        SourceError: The file cannot be read.
        InputError: A line is no context, or repeats a context id; the message names the line.
    """
    seen: set[str] = set()
    for number, raw, _ in raw_lines(path):
        try:
            record = orjson.loads(raw)
            if not isinstance(record, dict):
                raise RecordError(f"a {type(record).__name__} where a JSON object should be")
            context = parse_context(record, default_id=f"line-{number}")
            if context.context_id in seen:
                raise RecordError(f"context_id {context.context_id} stands twice")
        except (RecordError, orjson.JSONDecodeError) as error:
            raise InputError(
                f"{path}, line {number}: {error}",
                'A context is {"context_id": …, "text": "… <REF> …"}, one a line: docs/formats.md.',
            ) from error
        seen.add(context.context_id)
        yield context
    if not seen:
        raise SourceError(f"{path} is empty", "Give a file with one context a line.")


def parse_context(record: dict[str, Any], default_id: str = "") -> Context:
    """A context from its JSON object.

    Raises:
        RecordError: It has no text, not exactly one `<REF>`, an id with white space, or a field of a wrong type.
    """
    text = read_text(record, "text")
    if not text:
        raise RecordError("text is missing")
    if (markers := text.count(MARKER)) != 1:
        raise RecordError(f"the text holds {markers} {MARKER}, where one should be")
    context_id = optional_id(record, "context_id") or default_id
    cited = [optional_id({"cited_ids": value}, "cited_ids") for value in read_list(record, "cited_ids")]
    return Context(
        text=text,
        before=read_text(record, "before") or "",
        after=read_text(record, "after") or "",
        context_id=context_id,
        citing_id=optional_id(record, "citing_id"),
        citing_key=read_text(record, "citing_key"),
        citing_year=read_count(record, "citing_year"),
        cited_ids=tuple(dict.fromkeys(value for value in cited if value)),
        section=read_text(record, "section"),
        source=read_text(record, "source"),
    )


def contexts_of_text(text: str) -> list[Context]:
    """One context for each `<REF>` of a running text: its sentence, and the sentences beside it.

    A text without `<REF>` is one context, as it stands.

    Raises:
        QueryError: The text is blank, or a sentence has no end.
    """
    if not text.strip():
        raise QueryError("the sentence is empty", 'Write one, for example: "… was shown by <REF> …"')
    if MARKER not in text:
        return [Context(text=" ".join(text.split()))]
    return [
        context
        for paragraph in _PARAGRAPH.split(text)
        if MARKER in paragraph
        for context in _contexts_of_paragraph(" ".join(paragraph.split()))
    ]


def _contexts_of_paragraph(paragraph: str) -> Iterator[Context]:
    position = paragraph.find(MARKER)
    while position >= 0:
        end = position + len(MARKER)
        first, last = max(0, position - _WINDOW_CHARACTERS), min(len(paragraph), end + _WINDOW_CHARACTERS)
        left, right = paragraph[first:position].replace(MARKER, ""), paragraph[end:last].replace(MARKER, "")
        yield _context(left, right, cut_left=first > 0, cut_right=last < len(paragraph))
        position = paragraph.find(MARKER, end)


def _context(left: str, right: str, *, cut_left: bool, cut_right: bool) -> Context:
    # A private-use character stands for the marker: the splitter takes "<REF>" apart from its sentence.
    sign = "\ue000"
    sentences = [" ".join(sentence.split()) for sentence in _splitter().segment(left + sign + right)]
    at = next((n for n, sentence in enumerate(sentences) if sign in sentence), None)
    if at is None:  # the splitter dropped the sign: the window itself is the sentence
        return Context(text=" ".join(f"{left}{MARKER}{right}".split()))
    if (cut_left and at == 0) or (cut_right and at == len(sentences) - 1):
        raise QueryError(
            f"the sentence around {MARKER} does not end within {_WINDOW_CHARACTERS:,} characters",
            "Give the sentence itself, or a text with full stops.",
        )
    return Context(
        text=sentences[at].replace(sign, MARKER),
        before=sentences[at - 1] if at else "",
        after=sentences[at + 1] if at + 1 < len(sentences) else "",
    )


@functools.cache
def _splitter() -> Any:
    from pysbd import Segmenter

    return Segmenter(language="en", clean=False)
