"""CHEN's records (Chen et al., 2021): documents that begin with their markers, and texts that cite them by number."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from citerec.corpus.json_lines import RecordError
from citerec.files.text import one_line

ANCHOR = re.compile(r"\[(\d{1,9})\]")
_AT = re.compile(r"@cite_(\d+)")
_GROUP = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)+)\]")
_BEGINS = re.compile(r"\s*\[(\d{1,9}|x)\]\s*")
_ANYWHERE = re.compile(r"(?:^|(?<=\s))\[(\d{1,9}|x)\]\s*")
_SENTENCE_ENDS = re.compile(r"[.!?][\"'”’)\]]*\s*$")
_LOOKED_AT = 20  # characters before a marker


def with_anchors(text: str) -> str:
    """A text with `[1]` for each paper that it cites, also if it cites by `@cite_1`, or several at once: `[1,2]`."""
    text = _AT.sub(r"[\1]", text)
    return _GROUP.sub(lambda group: ", ".join(f"[{number}]" for number in re.findall(r"\d+", group[1])), text)


def documents(value: Any) -> tuple[list[str], list[str]]:
    """Names and texts of documents, a list or one text (else RecordError); no names unless each has its number."""
    if isinstance(value, str):
        value = list(_parted(value))
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RecordError("multi_doc is neither a text nor a list of texts")
    marked = [_BEGINS.match(text) for text in value]
    texts = [one_line(text[mark.end() if mark else 0 :]) for text, mark in zip(value, marked, strict=True)]
    names = [mark[1] for mark in marked if mark and mark[1] != "x"]
    return (names if len(set(names)) == len(texts) else []), texts


def _parted(text: str) -> Iterator[str]:
    """Splits a text where documents begin: at `[x]`, or at the next number. Others are citations in an abstract.

    If the next number occurs several times, the first after the end of a sentence counts, or else the first before a
    capital.
    """
    marks = list(_ANYWHERE.finditer(text)) if _BEGINS.match(text) else []
    starts, at = [0], 0
    while at < len(marks):
        name = marks[at][1]
        following = [mark for mark in marks[at + 1 :] if mark[1] == (name if name == "x" else str(int(name) + 1))]
        after_sentence = (mark for mark in following if name == "x" or _ends_sentence(text, mark.start()))
        before_capital = (mark for mark in following if text[mark.end() : mark.end() + 1].isupper())
        found = next(after_sentence, next(before_capital, None))
        if found is None:
            break
        starts.append(found.start())
        at = marks.index(found)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield text[start:end]


def _ends_sentence(text: str, end: int) -> bool:
    return bool(_SENTENCE_ENDS.search(text[max(0, end - _LOOKED_AT) : end]))


def first_number(records: Iterable[Mapping[str, Any]]) -> int:
    """The number, 0 or 1, from which most texts of a file count documents without numbers.

    A text that cites 0 counts from 0; one that does not, but cites the number of its documents, counts from 1.
    """
    shown = [0, 0]
    for record in records:
        try:
            names, texts = documents(record.get("multi_doc"))
        except RecordError:
            continue
        text = record.get("abs")
        if names or not isinstance(text, str):
            continue
        cited = {int(number) for number in ANCHOR.findall(with_anchors(text))}
        if 0 in cited:
            shown[0] += 1
        elif len(texts) in cited:
            shown[1] += 1
    return int(shown[1] > shown[0])
