"""Full texts in S2ORC's shape, written out section by section."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Sections = Sequence[tuple[str, str, Sequence[str]]]
"""Number, headline and paragraphs of each section; `[3]` in a paragraph cites entry b3."""


def s2orc_record(corpusid: int, sections: Sections, entries: Mapping[int, int | None]) -> dict[str, Any]:
    """A record of `s2orc`; entries lead from the number of a citation to the paper that it is matched to."""
    text = ""
    layers: dict[str, list[dict[str, Any]]] = {"sectionheader": [], "paragraph": [], "bibref": [], "bibentry": []}

    def add(layer: str, words: str, **attributes: object) -> None:
        nonlocal text
        layers[layer].append({"start": len(text), "end": len(text) + len(words), "attributes": attributes})
        text += words + "\n"

    for number, headline, paragraphs in sections:
        add("sectionheader", headline, **({"n": number} if number else {}))
        for paragraph in paragraphs:
            for match in re.finditer(r"\[(\d+)\]", paragraph):
                place = {"start": len(text) + match.start(), "end": len(text) + match.end()}
                layers["bibref"].append({**place, "attributes": {"ref_id": f"b{match[1]}"}})
            add("paragraph", paragraph)
    for entry, paper_id in entries.items():
        matched = {"matched_paper_id": paper_id} if paper_id else {}
        add("bibentry", f"Entry {entry}.", id=f"b{entry}", **matched)
    annotations = {name: json.dumps(layer) for name, layer in layers.items()}
    return {"corpusid": corpusid, "content": {"text": text, "annotations": annotations}}
