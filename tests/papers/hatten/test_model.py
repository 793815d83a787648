"""HAtten's words and network: files of word vectors are read, padding changes nothing, what is saved is opened."""

import json
from pathlib import Path

import numpy as np
import pytest

from citerec import Context, Paper
from citerec.contexts.topic import topic_of
from citerec.errors import InputError, ModelError, SourceError
from citerec.files.progress import no_progress
from citerec.papers.diagnostic.hatten import (
    Hatten,
    HattenManifest,
    glove_vectors,
    paper_paragraphs,
    positions,
    read_words,
    topic_paragraphs,
)
from tests.tiny_hatten import tiny_hatten, write_tiny_glove, write_tiny_hatten
from tests.tiny_models import write_tiny_scibert

TEXTS = ["dense retrieval of papers", "a kernel for graphs", "neural ranking"]
DOCUMENTS = [
    [(0, "dense retrieval"), (1, "papers of graphs " * 9)],
    [(2, "neural")],
    [(0, "a kernel"), (1, "neural ranking"), (2, "dense papers")],
    [],
]


def test_one_function_makes_the_paragraphs_of_a_topic() -> None:
    citing = Paper("1", title="Dense retrieval", abstract="We rank.")
    topic = topic_of(Context(text="A kernel <REF>.", before="Before.", citing_id="1"), citing)
    assert topic_paragraphs(topic) == [(0, "Dense retrieval"), (1, "We rank."), (2, "A kernel . Before.")]
    assert topic_paragraphs(topic_of(Context(text="A kernel <REF>."))) == [(2, "A kernel .")]
    assert paper_paragraphs(citing) == [(0, "Dense retrieval"), (1, "We rank.")]
    assert paper_paragraphs(Paper("2", title="Alone")) == [(0, "Alone")]


def test_padding_changes_nothing(tmp_path: Path) -> None:
    model = tiny_hatten(tmp_path, TEXTS, dropout=0)
    together = model.encode(DOCUMENTS)
    alone = np.concatenate([model.encode([document]) for document in DOCUMENTS])
    assert together.shape == (4, 16)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    model.train()  # another code path: the one with gradients
    np.testing.assert_allclose(model(DOCUMENTS).detach().numpy(), together, atol=1e-5)


def test_order_type_and_length_of_paragraphs_are_read(tmp_path: Path) -> None:
    model = tiny_hatten(tmp_path, TEXTS, max_words=3)
    one = model.encode([[(0, "dense retrieval of papers")]])
    assert not np.allclose(one, model.encode([[(0, "retrieval dense of papers")]]), atol=1e-3)
    assert not np.allclose(one, model.encode([[(1, "dense retrieval of papers")]]), atol=1e-3)
    np.testing.assert_allclose(one, model.encode([[(0, "dense retrieval of kernel")]]), atol=1e-6)
    assert np.abs(positions(600, 16).numpy()).max() <= 1
    assert len(np.unique(positions(600, 16).numpy().round(4), axis=0)) == 600


def test_a_saved_model_is_opened_as_it_was(tmp_path: Path) -> None:
    model = tiny_hatten(tmp_path, TEXTS)
    (tmp_path / "saved").mkdir()
    model.save(tmp_path / "saved", HattenManifest(sizes=model.sizes, words="glove.txt"))
    opened = Hatten.open(str(tmp_path / "saved"), device="cpu")
    assert opened.dimension == 16
    assert opened.identity.startswith("sha256:")
    np.testing.assert_array_equal(opened.encode(DOCUMENTS), model.encode(DOCUMENTS))


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no HAtten") as raised:
        Hatten.open(str(write_tiny_scibert(tmp_path / "scibert", TEXTS)))
    assert "citerec train hatten" in raised.value.remedy
    broken = write_tiny_hatten(tmp_path / "tiny", TEXTS)
    whole = {path.name: path.read_bytes() for path in broken.iterdir()}
    manifest = json.loads(whole["manifest.json"])
    changes = {
        "manifest.json": [json.dumps({**manifest, "sizes": {"width": 0}}).encode(), b"{"],
        "model.safetensors": [b"no weights"],
        "tokenizer.json": [b"", b"{}"],
    }
    for name, contents in changes.items():
        for content in contents:
            (broken / name).write_bytes(content)
            with pytest.raises(ModelError, match="Train it again: citerec train hatten"):
                Hatten.open(str(broken))
        (broken / name).write_bytes(whole[name])
    with pytest.raises(InputError, match="3 heads do not divide a width of 16"):
        tiny_hatten(tmp_path / "odd", TEXTS, heads=3)


def test_word_vectors_come_from_gloves_text_format(tmp_path: Path) -> None:
    path = write_tiny_glove(tmp_path / "glove.txt", [*TEXTS, "unwanted words"])
    lines = path.read_text().splitlines()
    lines.insert(1, f". . {lines[0].split(' ', 1)[1]}")  # some files have words with spaces
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer, vectors = read_words(str(path), ["Dense papers, unheard", "dense!"], 10, no_progress)
    vocabulary = tokenizer.get_vocab()
    assert sorted(vocabulary) == ["[UNK]", "dense", "papers"]
    encoded = tokenizer.encode("Papers unheard DENSE", add_special_tokens=False)
    assert encoded.ids == [vocabulary["papers"], vocabulary["[UNK]"], vocabulary["dense"]]
    raw = dict(glove_vectors(path, {"dense", "papers"}, no_progress))
    scale = vectors[vocabulary["dense"]] / raw["dense"]
    np.testing.assert_allclose(scale, scale[0], rtol=1e-4)
    assert np.mean(vectors**2) == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(vectors[0], vectors[1:].mean(axis=0), atol=1e-5)
    only, _ = read_words(str(path), ["papers dense dense"], 1, no_progress)
    assert sorted(only.get_vocab()) == ["[UNK]", "dense"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["dense 1 2 3", "papers 1 2"], "line 2 .* is not a word and 3 numbers"),
        (["dense 1 2 3", "papers 1 two 3"], "line 2 .* is not a word and 3 numbers"),
        (["other 1 2 3"], "none of the words"),
    ],
)
def test_a_broken_file_of_word_vectors_is_said(tmp_path: Path, lines: list[str], said: str) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(SourceError, match=said):
        read_words(str(path), ["dense papers"], 10, no_progress)


def test_word_vectors_come_from_an_encoders_tokens(tmp_path: Path) -> None:
    folder = write_tiny_scibert(tmp_path / "scibert", TEXTS)
    tokenizer, vectors = read_words(str(folder), [], 10, no_progress)
    assert vectors.shape == (len(tokenizer.get_vocab()), 32)
    assert tokenizer.encode("dense kernel", add_special_tokens=False).tokens == ["dense", "kernel"]
    with pytest.raises(ModelError, match="nowhere"):
        read_words(str(tmp_path / "nowhere" / "x" / "y"), [], 10, no_progress)
