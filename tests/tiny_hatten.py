"""HAtten models small enough for a test: word vectors of their own in GloVe's text format, random weights."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from citerec.contexts.provenance import folded
from citerec.files.progress import no_progress
from citerec.papers.diagnostic.hatten import Hatten, HattenManifest, Sizes, read_words


def write_tiny_glove(path: Path, texts: Iterable[str], dimension: int = 16) -> Path:
    """Random vectors of all words of some texts."""
    words = sorted({word for text in texts for word in folded(text).split()})
    vectors = np.random.default_rng(0).standard_normal((len(words), dimension))
    lines = (" ".join([word, *(f"{value:.4f}" for value in row)]) for word, row in zip(words, vectors, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def tiny_hatten(folder: Path, texts: list[str], **sizes: int) -> Hatten:
    """A model that has learnt nothing."""
    glove = write_tiny_glove(folder / "glove.txt", texts)
    tokenizer, words = read_words(str(glove), texts, 10_000, no_progress)
    whole = Sizes(**{"width": 16, "heads": 4, "feed_forward": 32, **sizes})
    torch.manual_seed(0)
    return Hatten(whole, tokenizer, words)


def write_tiny_hatten(folder: Path, texts: list[str]) -> Path:
    """A folder as `citerec train hatten` writes it."""
    (folder / "model").mkdir(parents=True)
    model = tiny_hatten(folder, texts)
    model.save(folder / "model")
    HattenManifest(sizes=model.sizes).write(folder / "model")
    return folder / "model"
