"""Causal language models small enough to train in a test: OPT and GPT-2 in shape, words as their vocabulary."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2Config, OPTConfig, PreTrainedTokenizerFast, set_seed

from tests.tiny_seq2seq import NAMED

START, END = "[START_REF]", "[END_REF]"
_SPECIAL = [*NAMED.values(), START, END]
_POSITIONS = 160


def write_tiny_opt(folder: Path, texts: Iterable[str], lines: Sequence[str] = (), *, steps: int = 0) -> Path:
    """A model of Galactica's shape; it learns to write the lines in so many steps."""
    tokenizer = _tokenizer(texts)
    config = OPTConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=_POSITIONS,
        hidden_size=32,
        word_embed_proj_dim=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        activation_function="gelu",
        enable_bias=False,
        init_std=0.1,  # so narrow a model learns nothing from weights as small as OPT's
        dropout=0.0,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    return _write(folder, config, tokenizer, lines, steps)


def write_tiny_gpt2(folder: Path, texts: Iterable[str], lines: Sequence[str] = (), *, steps: int = 0) -> Path:
    """A model with learnt places, whose tokenizer names no padding."""
    tokenizer = _tokenizer(texts)
    tokenizer.pad_token = None
    size = {"n_positions": _POSITIONS, "n_embd": 32, "n_layer": 1, "n_head": 2, "initializer_range": 0.1}
    no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = GPT2Config(vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=2, **size, **no_dropout)
    return _write(folder, config, tokenizer, lines, steps)


def _tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Words with the space before them, commas and single letters, as byte-level tokenizers have them."""
    split = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False)])
    words = sorted({word for text in texts for word, _ in split.pre_tokenize_str(text)} - set(_SPECIAL))
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=[START, END], **NAMED)


def _write(folder: Path, config: Any, tokenizer: Any, lines: Sequence[str], steps: int) -> Path:
    set_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    if steps:
        _learn(model, [tokenizer(line)["input_ids"] for line in lines], steps)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _learn(model: Any, rows: list[list[int]], steps: int) -> None:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[1] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        model(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss.backward()
        optimizer.step()
    model.eval()
