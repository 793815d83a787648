"""A record of OARelatedWork in each of the shapes in which it is published."""

import json
from typing import Any


def sentence(text: str, *citations: tuple[int | None, int, int], headline: str | None = None) -> dict[str, Any]:
    """A sentence of a tree, with the index, start and end of each citation."""
    spans = [{"index": index, "start": start, "end": end} for index, start, end in citations]
    return {"headline": headline, "content": {"text": text, "citations": spans, "references": []}}


def tree(headline: str | None, *content: dict[str, Any]) -> dict[str, Any]:
    """A node of a tree."""
    return {"headline": headline, "content": list(content)}


_SEE = sentence("Rivers were mapped by [3] and [4], see Fig. 1.", (0, 22, 25), (1, 30, 33))
_SEE["content"]["references"] = [{"index": 0, "start": 39, "end": 45}]
_RELATED_WORK = tree(
    "Related Work",
    tree(None, _SEE, sentence("Then came"), sentence("y = 1", headline="formula")),
    tree(
        "Lakes", tree(None, sentence("Lakes were counted [5].", (2, 19, 22)), sentence("Some say (X).", (None, 9, 12)))
    ),
)
_TARGET_PAPER = tree(
    "Of Maps", tree("Introduction", tree(None, sentence("Maps are old."), sentence("See [6].", (3, 4, 7))))
)
_ABSTRACT = [[sentence("We draw maps."), sentence("They are blue.")]]
_RIVERS = tree(
    "Of Rivers",
    tree("Abstract", tree(None, sentence("Rivers are long."))),
    tree(
        "Sources",
        tree(None, sentence("They begin small [1].", (0, 17, 20))),
        tree("Ends", tree("[1]", sentence("They end in"), sentence("x^2", headline="formula"), sentence("the sea."))),
    ),
)
_LAKES = tree("Of Lakes", tree("Abstract", tree(None, sentence("Lakes are wide."), sentence("They are deep."))))


def _entry(paper_id: int | None, title: str, *authors: str) -> dict[str, Any]:
    return {"id": paper_id, "title": title, "year": 2001, "authors": list(authors)}


def _paper(paper_id: int, title: str, hierarchy: Any, *bibliography: dict[str, Any]) -> dict[str, Any]:
    figure = {"type": "figure", "description": "A map."}
    facts = {"id": paper_id, "s2orc_id": None, "mag_id": 5, "doi": None, "title": title, "year": 2001}
    more = {"authors": ["Ada Roe"], "fields_of_study": ["Maps"], "non_plaintext_content": [figure]}
    return {**facts, **more, "hierarchy": hierarchy, "bibliography": list(bibliography)}


def tree_record() -> dict[str, Any]:
    """The record with trees, as the authors' own files have them, and the cited papers in it."""
    bibliography = [
        _entry(11, "Of Rivers", "Ada Roe"),
        _entry(None, "A Lost Map", "Ben Poe"),
        _entry(12, "Of Lakes"),
        _entry(13, "Of Seas"),
    ]
    return {
        **_paper(7, "Of Maps", _TARGET_PAPER, *bibliography),
        "abstract": [_flat_paragraph(["Of Maps", "Abstract"], each) for each in _ABSTRACT],
        "related_work": _RELATED_WORK,
        "referenced": [
            _paper(11, "Of Rivers", _RIVERS, _entry(12, "Of Lakes", "Ada Roe")),
            _paper(12, "Of Lakes", _LAKES),
        ],
    }


def string_record() -> dict[str, Any]:
    """The record with trees as strings, as in the configuration `oa_related_work`."""
    record = tree_record()
    for paper in (record, *record["referenced"]):
        paper["hierarchy"] = json.dumps(paper["hierarchy"])
    return {**record, "related_work": json.dumps(record["related_work"])}


def flattened() -> dict[str, Any]:
    """The record with lists of sections, as in the configuration `flattened_sections`."""
    record = tree_record()
    for paper in (record, *record["referenced"]):
        paper["hierarchy"] = _sections(paper["hierarchy"], [])
    return {**record, "related_work": _sections(record["related_work"], [])}


def _sections(node: dict[str, Any], path: list[str]) -> list[dict[str, Any]]:
    here = [*path, node["headline"]]
    paragraphs = [child for child in node["content"] if "text" in child["content"][0]["content"]]
    own = [_flat_paragraph([*here, f"[{at}]"], child["content"]) for at, child in enumerate(paragraphs)]
    inner = [section for child in node["content"] if child not in paragraphs for section in _sections(child, here)]
    return [*([{"title_path": here, "paragraphs": own}] if own else []), *inner]


def _flat_paragraph(path: list[str], sentences: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"title_path": [*path, each["headline"] or f"[{at}]"], **each["content"]} for at, each in enumerate(sentences)
    ]


PUBLISHED = string_record()
