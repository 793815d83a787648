"""Labelled sentences are read from three formats, and what is none is named with its place."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import RecordError
from citerec.discourse.classifier import SCHEMES, Paragraph, parse_paragraph, read_paragraphs, scheme_of
from citerec.errors import InputError, SourceError
from tests.conftest import write_lines

SENTENCE = {"text": "We follow  Lee et al. (2005).", "label": "method", "metadata": {}}
CORWA = {
    "id": "77_1",
    "paragraph": "[BOS] Lee (2005) parse.\n[BOS] They parse well.\n\n",
    "discourse_tags": ["Single_summ", "Transition"],
    "span_citation_mapping": [{"span_type": "Dominant"}],
}

_words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="[]"), min_size=1)
_sentences = st.lists(_words, min_size=1, max_size=5).map(" ".join)


def test_a_sentence_is_a_paragraph_of_one(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train.txt", [SENTENCE])
    assert list(read_paragraphs(path)) == [Paragraph("line-1", ("We follow Lee et al. (2005).",), ("method",))]


def test_a_paragraph_of_corwa_keeps_its_sentences_together(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(gzip.compress(json.dumps(CORWA).encode()))
    expected = Paragraph("77_1", ("Lee (2005) parse.", "They parse well."), ("Single_summ", "Transition"))
    assert list(read_paragraphs(tmp_path / "train.jsonl")) == [expected]


@given(st.lists(st.tuples(_sentences, _words), min_size=1, max_size=6))
def test_what_was_written_is_read(pairs: list[tuple[str, str]]) -> None:
    sentences, labels = zip(*pairs, strict=True)
    text = "".join(f"[BOS] {sentence}\n" for sentence in sentences) + "\n"
    paragraph = parse_paragraph({"id": "1", "paragraph": text, "discourse_tags": list(labels)})
    assert paragraph == Paragraph("1", sentences, labels)
    alone = [parse_paragraph({"text": sentence, "label": label}) for sentence, label in pairs]
    assert [one.sentences + one.labels for one in alone] == pairs


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["id", "text", "label", "paragraph", "discourse_tags"]), _json))
def test_any_object_is_read_or_refused(record: dict[str, object]) -> None:
    try:
        paragraph = parse_paragraph(record)
    except RecordError:
        return
    assert len(paragraph.sentences) == len(paragraph.labels) > 0
    assert all(paragraph.sentences) and all(paragraph.labels)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{", "unexpected end"),
        (b"[1]", "a list where a JSON object should be"),
        (b'{"label": "method"}', "neither text nor paragraph"),
        (b'{"text": " ", "label": "method"}', "a sentence is blank"),
        (b'{"text": "So.", "label": null}', "a label is missing"),
        (b'{"paragraph": "So.", "discourse_tags": ["Other"]}', "does not begin with [BOS]"),
        (b'{"paragraph": "Oh [BOS] So.", "discourse_tags": ["Other"]}', "does not begin with [BOS]"),
        (b'{"paragraph": "[BOS] So. [BOS] Yes.", "discourse_tags": ["Other"]}', "2 sentences, and 1 discourse_tags"),
        (b'{"paragraph": "[BOS] So.", "discourse_tags": "Other"}', "not a list"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, what: str) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(json.dumps(SENTENCE).encode() + b"\n\n" + line + b"\n")
    with pytest.raises(InputError) as caught:
        list(read_paragraphs(path))
    assert what in caught.value.message
    assert f"{path}, line 3: " in caught.value.message
    assert "docs/train.md" in caught.value.remedy


def test_an_empty_or_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"\n")
    for name in ("empty", "missing"):
        with pytest.raises(SourceError, match=name):
            list(read_paragraphs(tmp_path / name))


def test_a_scheme_is_told_by_its_labels() -> None:
    for name, labels in SCHEMES.items():
        assert scheme_of(labels) == scheme_of(list(labels)[:2]) == name
    assert scheme_of(["background", "Background"]) == ""


@pytest.mark.parametrize(
    ("file", "paragraphs", "sentences", "scheme"),
    [
        ("scicite/dev.txt", 916, 916, "scicite"),
        ("acl_arc/dev.txt", 114, 114, "acl-arc"),
        ("corwa/train.jsonl", 1763, 8445, "corwa"),
    ],
)
def test_the_real_files(shared: Path, file: str, paragraphs: int, sentences: int, scheme: str) -> None:
    found = list(read_paragraphs(shared / "text" / file))
    texts = [sentence for paragraph in found for sentence in paragraph.sentences]
    assert (len(found), len(texts)) == (paragraphs, sentences) and not any("[BOS]" in text for text in texts)
    assert scheme_of(label for paragraph in found for label in paragraph.labels) == scheme
