"""Writers small enough to train in a test: BART, LED, PRIMERA and PEGASUS in shape, words as their vocabulary."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LEDConfig,
    LEDForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedTokenizerFast,
    set_seed,
)

# The numbers that BART and LED give them.
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
_POSITIONS = 64
_WIDTH = 32


def write_tiny_bart(folder: Path, texts: Iterable[str]) -> Path:
    size = _write_tokenizer(folder, texts, "<s> $A </s>")
    config = BartConfig(vocab_size=size, max_position_embeddings=_POSITIONS, forced_eos_token_id=2, **_small())
    return _write(folder, BartForConditionalGeneration, config)


def write_tiny_led(folder: Path, texts: Iterable[str]) -> Path:
    return _write_led(folder, texts, [])


def write_tiny_primera(folder: Path, texts: Iterable[str]) -> Path:
    """LED with a token between documents."""
    return _write_led(folder, texts, ["<doc-sep>"])


def write_tiny_pegasus(folder: Path, texts: Iterable[str]) -> Path:
    """Begins to write with the padding token, and has no token at the beginning of a text."""
    size = _write_tokenizer(folder, texts, "$A </s>")
    config = PegasusConfig(
        vocab_size=size,
        max_position_embeddings=_POSITIONS,
        pad_token_id=1,
        eos_token_id=2,
        forced_eos_token_id=2,
        decoder_start_token_id=1,
        **_small(),
    )
    return _write(folder, PegasusForConditionalGeneration, config)


def _write_led(folder: Path, texts: Iterable[str], more: list[str]) -> Path:
    size = _write_tokenizer(folder, texts, "<s> $A </s>", more)
    config = LEDConfig(
        vocab_size=size,
        max_encoder_position_embeddings=4 * _POSITIONS,
        max_decoder_position_embeddings=_POSITIONS,
        attention_window=8,
        **_small(),
    )
    return _write(folder, LEDForConditionalGeneration, config)


def _small() -> dict[str, Any]:
    sides = ("encoder", "decoder")
    return {
        "d_model": _WIDTH,
        **{f"{side}_layers": 1 for side in sides},
        **{f"{side}_attention_heads": 2 for side in sides},
        **{f"{side}_ffn_dim": 2 * _WIDTH for side in sides},
        "init_std": 0.1,  # so narrow a model learns nothing from weights as small as BART's
        "dropout": 0.0,
    }


def _write_tokenizer(folder: Path, texts: Iterable[str], template: str, more: Iterable[str] = ()) -> int:
    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *more, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(token, vocabulary[token]) for token in ("<s>", "</s>")]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=list(more),
    ).save_pretrained(folder)
    return len(vocabulary)


def _write(folder: Path, kind: Any, config: Any) -> Path:
    set_seed(1)
    kind(config).save_pretrained(folder)
    return folder
