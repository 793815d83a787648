"""How well the citation parser does, style by style: precision and recall may not fall.

Labels: `citation_sentences.txt` (300 invented sentences, on which the parser was tuned), `…_heldout.txt` (150 more,
written to fool it), `real_citations.tsv` (300 real sentences, by offsets only). Labelled by hand without the parser.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from citerec.contexts.full_text import read_s2orc
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


def test_real_sentences(shared: Path) -> None:
    contexts = map(json.loads, (shared / "acl" / "contexts-dev.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {record["context_id"]: record["text"] for record in contexts}
    papers = {line.record.paper_id: line.record for line in read_s2orc(shared / "acm/s2orc/s2orc-00000.jsonl.gz")}
    gold: defaultdict[tuple[str, str], Labels] = defaultdict(set)
    with (DATA / "real_citations.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            labels = (int(row["start"]), int(row["end"]), row["style"], int(row["works"])) if row["start"] else None
            gold[row["source"], row["id"]] |= {labels} if labels else set()
    sentences: defaultdict[str, list[tuple[str, Labels]]] = defaultdict(list)
    for (source, name), labels in gold.items():
        if source == "acm-s2orc":
            paper_id, start, end = name.split(":")
            sentences[source].append((papers[paper_id].text[int(start) : int(end)], labels))
        elif source == "acl-dev":
            sentences[source].append((texts[name], labels))
    assert min(scored(sentences["acl-dev"])[0]["all"]) >= 0.94
    # Equation numbers in parentheses look like citations where no bib ref tells otherwise.
    precision, recall = scored(sentences["acm-s2orc"])[0]["all"]
    assert precision >= 0.8 and recall >= 0.98
