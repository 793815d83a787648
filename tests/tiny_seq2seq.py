"""Writers small enough to train in a test: BART, LED, PRIMERA and PEGASUS in shape, words as their vocabulary."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    LEDConfig,
    PegasusConfig,
    PreTrainedTokenizerFast,
    set_seed,
)

# The numbers that BART and LED give them.
NAMED = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_POSITIONS = 64
_WIDTH = 32


def write_tiny_bart(folder: Path, texts: Iterable[str]) -> Path:
    return _write(folder, texts, BartConfig, max_position_embeddings=_POSITIONS, forced_eos_token_id=2)


def write_tiny_led(folder: Path, texts: Iterable[str], more: Iterable[str] = ()) -> Path:
    return _write(
        folder,
        texts,
        LEDConfig,
        more=more,
        max_encoder_position_embeddings=4 * _POSITIONS,
        max_decoder_position_embeddings=_POSITIONS,
        attention_window=8,
    )


def write_tiny_primera(folder: Path, texts: Iterable[str]) -> Path:
    """LED with a token between documents."""
    return write_tiny_led(folder, texts, ["<doc-sep>"])


def write_tiny_pegasus(folder: Path, texts: Iterable[str]) -> Path:
    """Begins to write with the padding token, and has no token at the beginning of a text."""
    special = {"pad_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": 2, "decoder_start_token_id": 1}
    return _write(folder, texts, PegasusConfig, "$A </s>", max_position_embeddings=_POSITIONS, **special)


def _write(
    folder: Path,
    texts: Iterable[str],
    kind: Any,
    template: str = "<s> $A </s>",
    more: Iterable[str] = (),
    **options: Any,
) -> Path:
    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {token: number for number, token in enumerate([*NAMED.values(), *more, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(token, vocabulary[token]) for token in ("<s>", "</s>")]
    )
    small = {"layers": 1, "attention_heads": 2, "ffn_dim": 2 * _WIDTH}
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in small.items()}
    # So narrow a model learns nothing from weights as small as BART's.
    config = kind(vocab_size=len(vocabulary), d_model=_WIDTH, init_std=0.1, dropout=0.0, **sizes, **options)
    set_seed(1)
    AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=list(more), **NAMED)
    fast.save_pretrained(folder)
    return folder
