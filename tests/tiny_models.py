"""Models small enough to train in a test, of SciBERT's shape: its layers and proportions, a vocabulary of their own."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, BertTokenizerFast, set_seed

from citerec.models.encoder import TABLE, WEIGHTS


def write_tiny_scibert(folder: Path, texts: Iterable[str], hidden: int = 32) -> Path:
    """An encoder as the hub gives SciBERT: config.json, tokenizer and weights, without a head for pairs."""
    folder.mkdir(parents=True)
    words = Counter(word for text in texts for word in _words(text))
    letters = sorted({letter for word in words for letter in word})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    pieces += sorted(word for word, _ in words.most_common(800) if len(word) > 1)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=512)
    tokenizer.save_pretrained(folder)
    # SciBERT: 768 wide, 12 heads of 64, feed-forward of four widths.
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=hidden // 16,
        intermediate_size=4 * hidden,
        max_position_embeddings=512,
        initializer_range=0.1,  # so narrow a model learns nothing from weights as small as SciBERT's
    )
    set_seed(1)
    BertModel(config).save_pretrained(folder)
    return folder


def write_tiny_static(folder: Path, texts: Iterable[str], width: int = 32) -> Path:
    """A static encoder in the form of sentence-transformers: it opens quickly, as it needs no torch."""
    folder.mkdir(parents=True)
    words = sorted({word for text in texts for word in _words(text)})
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, **{word: at for at, word in enumerate(words, 1)}}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(1).standard_normal((len(words) + 1, width)).astype(np.float32)
    save_file({TABLE: table}, folder / WEIGHTS)
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    (folder / "modules.json").write_text(json.dumps([module]), encoding="utf-8")
    return folder


def _words(text: str) -> list[str]:
    return "".join(letter.lower() if letter.isalnum() else " " for letter in text).split()
