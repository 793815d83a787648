from pathlib import Path

import pytest

from citerec.contexts.read import contexts_of_text, read_contexts
from citerec.errors import InputError, QueryError
from citerec.records import Context
from tests.conftest import write_lines


def test_each_marker_of_a_text_gets_its_sentence_and_the_ones_beside_it() -> None:
    text = "First one. As shown by Lee in Fig. 3, it\nworks <REF>. Then <REF> and <REF> came. Last.\n\nOther <REF>."
    contexts = contexts_of_text(text)
    assert [context.text for context in contexts] == [
        "As shown by Lee in Fig. 3, it works <REF>.",
        "Then <REF> and […] came.",
        "Then […] and <REF> came.",
        "Other <REF>.",
    ]
    assert (contexts[0].before, contexts[0].after) == ("First one.", "Then and came.")
    assert (contexts[3].before, contexts[3].after) == ("", "")
    assert contexts_of_text(" Two  sentences. Here. ") == [Context(text="Two sentences. Here.")]
    with pytest.raises(QueryError, match="empty"):
        contexts_of_text("  \n ")


def test_many_markers_in_a_long_paragraph_have_one_context_each() -> None:
    """A window of text was split for each of them: 24,000 characters took minutes."""
    text = " ".join(f"Here is sentence {number} with <REF> and then <REF>." for number in range(1, 801))
    contexts = contexts_of_text(text)
    shown = ["with <REF> and then […].", "with […] and then <REF>."]
    expected = [f"Here is sentence {number} {nth}" for number in range(1, 801) for nth in shown]
    assert [context.text for context in contexts] == expected
    assert contexts[400].before.startswith("Here is sentence 200 ")
    assert contexts[400].after.startswith("Here is sentence 202 ")


def test_contexts_are_read_as_they_stand(tmp_path: Path) -> None:
    record = {"context_id": 5, "text": "a  <REF> b", "before": None, "citing_id": 7, "citing_year": "2001"}
    record |= {"cited_ids": [3, "x", 3], "section": "intro", "source": "s", "sentiment": "extra"}
    (context,) = read_contexts(write_lines(tmp_path / "c.jsonl.gz", [record], compress=True))
    named = {"context_id": "5", "citing_id": "7", "citing_year": 2001, "section": "intro", "source": "s"}
    assert context == Context(text="a <REF> b", cited_ids=("3", "x"), **named)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ('{"text": "no marker"}', "line 1: the text holds 0 <REF>"),
        ('{"context_id": "a"}', "line 1: text is missing"),
        ('{"context_id": "a", "text": "<REF>"}\n{"context_id": "a", "text": "<REF>"}', "line 2: context_id a occurs"),
        ('{"text": "<REF>", "cited_ids": "3"}', "line 1: cited_ids is a str"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, records: str, message: str) -> None:
    (path := tmp_path / "c.jsonl").write_text(records)
    with pytest.raises(InputError, match=message):
        list(read_contexts(path))
