"""Of texts with one corpusid the last counts, wherever it stands."""

from pathlib import Path

from citerec.contexts.extract import Rules
from citerec.contexts.extract_shards import extract_shards
from citerec.contexts.read import read_contexts
from tests.conftest import write_lines


def text(corpusid: int, word: str) -> dict[str, object]:
    sentence = f"This was first shown in {word} [1]."
    body = {
        "text": sentence,
        "annotations": {
            "paragraph": [{"start": 0, "end": len(sentence)}],
            "bib_ref": [{"start": len(sentence) - 4, "end": len(sentence) - 1, "attributes": {"ref_id": "b0"}}],
        },
    }
    entry = {"start": 0, "end": 3, "attributes": {"id": "b0", "matched_paper_id": 7}}
    return {
        "corpusid": corpusid,
        "body": body,
        "bibliography": {"text": "Lee", "annotations": {"bib_entry": [entry]}},
    }


def test_the_last_text_of_an_id_counts(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", [text(1, "old cells"), text(2, "mice"), text(1, "cells")])
    second = write_lines(tmp_path / "b.jsonl", [text(3, "men"), text(2, "new mice")])
    extracted = extract_shards([first, second], tmp_path / "out.jsonl", Rules(), workers=1)
    contexts = {context.citing_id: context.text for context in read_contexts(tmp_path / "out.jsonl")}
    assert contexts == {
        "1": "This was first shown in cells <REF>.",
        "2": "This was first shown in new mice <REF>.",
        "3": "This was first shown in men <REF>.",
    }
    assert (extracted.texts, extracted.contexts) == (3, 3)
