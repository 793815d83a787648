"""How well the citation parser does, style by style: precision and recall may not fall.

Labels: `citation_sentences.txt` (300 invented sentences, on which the parser was tuned), `…_heldout.txt` (150 more,
written to fool it). Labelled by hand without the parser.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from citerec.contexts.markers import find_markers

DATA = Path(__file__).parents[2] / "data"
LABEL = re.compile(r"⟦([a-z-]+):(\d+)\|([^⟦⟧|]+)⟧")
Labels = set[tuple[int, int, str, int]]


def labelled(line: str) -> tuple[str, Labels]:
    text, gold, at = "", set(), 0
    for match in LABEL.finditer(line):
        text += line[at : match.start()]
        gold.add((len(text), len(text) + len(match[3]), match[1], int(match[2])))
        text += match[3]
        at = match.end()
    return text + line[at:], gold


def scored(sentences: Iterable[tuple[str, Labels]]) -> tuple[dict[str, tuple[float, float]], float]:
    """Precision and recall of each style and of "all"; and the share of hits whose number of works is right."""
    hits, golden, answered, works = Counter[str](), Counter[str](), Counter[str](), 0
    for text, gold in sentences:
        found = {(marker.start, marker.end, str(marker.style), marker.works) for marker in find_markers(text)}
        spans, found_spans = {each[:3] for each in gold}, {each[:3] for each in found}
        for counts, several in ((hits, spans & found_spans), (golden, spans), (answered, found_spans)):
            for _, _, style in several:
                counts.update((style, "all"))
        works += len(gold & found)
    shares = {style: (hits[style] / max(1, answered[style]), hits[style] / golden[style]) for style in golden}
    return shares, works / hits["all"]


# Precision and recall below which a change has made the parser worse: of sentences that it was tuned on, and of others.
FLOORS = {
    "numbered-brackets": ((0.98, 0.98), (0.85, 0.93)),
    "numbered-parentheses": ((0.92, 0.98), (0.5, 0.88)),
    "superscript": ((0.98, 0.98), (0.98, 0.88)),
    "author-year-parentheses": ((0.98, 0.95), (0.78, 0.83)),
    "author-year-text": ((0.87, 0.93), (0.78, 0.74)),
    "label": ((0.98, 0.98), (0.98, 0.98)),
    "mangled": ((0.93, 0.93), (0.88, 0.73)),
}


@pytest.mark.parametrize(("name", "count"), [("citation_sentences.txt", 300), ("citation_sentences_heldout.txt", 150)])
def test_labelled_sentences(name: str, count: int) -> None:
    lines = (DATA / name).read_text(encoding="utf-8").split("\n")
    sentences = [labelled(line) for line in lines if line and not line.startswith("#")]
    assert len(sentences) == count
    shares, works = scored(sentences)
    for style, floors in FLOORS.items():
        for share, floor in zip(shares[style], floors["heldout" in name], strict=True):
            assert share >= floor, style
    assert works >= 0.98
