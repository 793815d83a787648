"""Labelled sentences are read from three formats, and what is none is named with its place."""

import json
from pathlib import Path

import pytest

from citerec.discourse.classifier import Paragraph, read_paragraphs, scheme_of
from citerec.errors import InputError, SourceError
from tests.conftest import write_lines

SENTENCE = {"text": "We follow  Lee et al. (2005).", "label": "method", "metadata": {}}


def test_a_sentence_is_a_paragraph_of_one_and_one_of_corwa_keeps_its_sentences_together(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train.txt", [SENTENCE])
    assert list(read_paragraphs(path)) == [Paragraph(("We follow Lee et al. (2005).",), ("method",))]
    labels = ("Single_summ", "Transition")
    corwa = {"paragraph": "[BOS] Lee parse.\n[BOS] They do.\n\n", "discourse_tags": labels}
    path = write_lines(tmp_path / "train.jsonl", [corwa], compress=True)
    assert list(read_paragraphs(path)) == [Paragraph(("Lee parse.", "They do."), labels)]


def test_a_bad_line_is_named_and_so_is_an_empty_or_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    for line, what in (
        (b"{", "unexpected end"),
        (b'{"label": "method"}', "neither text nor paragraph"),
        (b'{"text": " ", "label": "method"}', "a sentence is blank"),
        (b'{"paragraph": "Oh [BOS] So.", "discourse_tags": ["Other"]}', "does not begin with [BOS]"),
        (b'{"paragraph": "[BOS] So. [BOS] Yes.", "discourse_tags": ["Other"]}', "2 sentences, and 1 discourse_tags"),
    ):
        path.write_bytes(json.dumps(SENTENCE).encode() + b"\n\n" + line + b"\n")
        with pytest.raises(InputError) as caught:
            list(read_paragraphs(path))
        assert f"{path}, line 3: " in caught.value.message and what in caught.value.message
    path.write_bytes(b"\n")
    for wrong in (path, tmp_path / "missing"):
        with pytest.raises(SourceError, match=wrong.name):
            list(read_paragraphs(wrong))


def test_the_real_files_and_the_scheme_of_their_labels(shared: Path) -> None:
    for file, paragraphs, sentences, scheme in (
        ("scicite/dev.txt", 916, 916, "scicite"),
        ("acl_arc/dev.txt", 114, 114, "acl-arc"),
        ("corwa/train.jsonl", 1763, 8445, "corwa"),
    ):
        read = list(read_paragraphs(shared / "text" / file))
        texts = [sentence for paragraph in read for sentence in paragraph.sentences]
        assert (len(read), len(texts)) == (paragraphs, sentences) and not any("[BOS]" in text for text in texts)
        assert scheme_of(label for paragraph in read for label in paragraph.labels) == scheme
    assert scheme_of(["background", "Background"]) == ""
