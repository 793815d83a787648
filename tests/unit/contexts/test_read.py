import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from citerec.contexts.read import contexts_of_text, read_contexts
from citerec.errors import InputError, QueryError, SourceError
from citerec.records import Context


def test_each_marker_of_a_text_gets_its_sentence_and_the_ones_beside_it() -> None:
    text = (
        "First one. As shown by Lee et al. in Fig. 3, it\nworks <REF>. Then <REF> and <REF> came. Last.\n\nOther <REF>."
    )
    contexts = contexts_of_text(text)
    assert [context.text for context in contexts] == [
        "As shown by Lee et al. in Fig. 3, it works <REF>.",
        "Then <REF> and […] came.",
        "Then […] and <REF> came.",
        "Other <REF>.",
    ]
    assert contexts[0].before == "First one."
    assert contexts[0].after == "Then and came."
    assert (contexts[3].before, contexts[3].after) == ("", "")


def test_a_text_without_marker_is_one_context() -> None:
    assert contexts_of_text(" Two  sentences. Here. ") == [Context(text="Two sentences. Here.")]


def test_a_blank_text_is_an_error() -> None:
    with pytest.raises(QueryError, match="empty"):
        contexts_of_text("  \n ")


def test_a_sentence_without_end_is_an_error() -> None:
    with pytest.raises(QueryError, match="does not end"):
        contexts_of_text("word " * 50_000 + "<REF>")


def test_a_long_text_with_sentences_is_no_error() -> None:
    contexts = contexts_of_text("A sentence of some length stands here. " * 3000 + "The one <REF>. " + "More. " * 3000)
    assert [context.text for context in contexts] == ["The one <REF>."]


def test_names_before_a_marker_stay_in_its_sentence() -> None:
    contexts = contexts_of_text("It began. Lee et al. <REF> went on. <REF> ended it.")
    assert [context.text for context in contexts] == ["Lee et al. <REF> went on.", "<REF> ended it."]


def test_many_markers_in_a_long_paragraph_have_one_context_each() -> None:
    """A window of text was split for each of them: 24,000 characters took minutes."""
    text = " ".join(f"Here is sentence {number} with <REF> and then <REF>." for number in range(1, 801))
    contexts = contexts_of_text(text)
    shown = ["with <REF> and then […].", "with […] and then <REF>."]
    assert [context.text for context in contexts] == [
        f"Here is sentence {number} {nth}" for number in range(1, 801) for nth in shown
    ]
    assert contexts[400].before.startswith("Here is sentence 200 ")
    assert contexts[400].after.startswith("Here is sentence 202 ")


def lines(path: Path, *records: object) -> Path:
    path.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))
    return path


def test_contexts_are_read_as_they_stand(tmp_path: Path) -> None:
    record = {
        "context_id": 5, "text": "a  <REF> b", "before": None, "citing_id": 7, "citing_year": "2001",
        "cited_ids": [3, "x", 3], "section": "intro", "source": "s", "sentiment": "extra",
    }  # fmt: skip
    (context,) = read_contexts(lines(tmp_path / "c.jsonl.gz", record))
    assert context == Context(
        text="a <REF> b",
        context_id="5",
        citing_id="7",
        citing_year=2001,
        cited_ids=("3", "x"),
        section="intro",
        source="s",
    )


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"text": "no marker"}], "line 1: the text holds 0 <REF>"),
        ([{"text": "<REF> and <REF>"}], "line 1: the text holds 2 <REF>"),
        ([{"context_id": "a"}], "line 1: text is missing"),
        ([{"context_id": "a b", "text": "<REF>"}], "line 1: context_id has white space"),
        ([{"context_id": "a", "text": "<REF>"}] * 2, "line 2: context_id a occurs twice"),
        ([{"text": "<REF>", "cited_ids": "3"}], "line 1: cited_ids is a str"),
        ([["<REF>"]], "line 1: a list"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, records: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(read_contexts(lines(tmp_path / "c.jsonl.gz", *records)))


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is empty"):
        list(read_contexts(lines(tmp_path / "c.jsonl.gz")))


def test_several_threads_split_texts_at_once() -> None:
    texts = [f"In the beginning {word}. Then <REF> {word}. At last {word}, and {word}. End." * 8 for word in "abcdefgh"]
    alone = [contexts_of_text(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            assert list(pool.map(contexts_of_text, texts)) == alone


def test_a_sign_within_a_marker_makes_no_place() -> None:
    texts = [context.text for context in contexts_of_text("a <RE\ue000F> b <REF> c\ue000d")]
    assert texts == ["a <RE F> b <REF> cd"]
