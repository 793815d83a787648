"""How models write: lengths, beams and post-processing; the published recipes."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from citerec.errors import InputError
from citerec.write.writers.base import Kind, checked

PostProcessing = Literal["ref"]
_MOST = 10_000_000  # more than any model reads or writes
_MOST_PENALTY = 10  # the power to which lengths are raised: with much more, it overflows


@dataclass(frozen=True, slots=True)
class Generation:
    """How a model writes. Lengths are in its own tokens, special ones and the prompt included.

    An InputError if two values contradict each other; `changed` also checks the range of each.

    Attributes:
        max_input_tokens: How much it reads.
        min_tokens, max_tokens: How much it writes.
        beams: Beams of beam search; 1 is greedy.
        length_penalty: With several beams: the greater, the longer the texts.
        no_repeat_ngram: How many tokens in a row may not occur twice; 0 for no limit.
        early_stopping: Whether to end as soon as there are as many complete texts as beams.
        prompt: The beginning of each text: "This paper" (CiTES).
        gold_prompt: How many of the target's first tokens each text begins with, in place of a prompt: an upper bound,
            for it shows the target to the model (3 in CiTES, Mao et al. 2022, section 4.1). 0 for none.
        post_processing: `ref` replaces a leading REF by "This paper" and removes all others (CiTES).
        global_attention: Whether LED and PRIMERA read some tokens with global attention.
        top_p: Draw each token from the likeliest ones that together have this probability (nucleus sampling), in place
            of a beam search; None for that.
        temperature: What the logits are divided by before a token is drawn.
        seed: Seed of what is drawn.
    """

    max_input_tokens: Annotated[int, Field(ge=8, le=_MOST)]
    min_tokens: Annotated[int, Field(ge=0, le=_MOST)]
    max_tokens: Annotated[int, Field(ge=2, le=_MOST)]
    beams: Annotated[int, Field(ge=1, le=_MOST)]
    length_penalty: Annotated[float, Field(ge=-_MOST_PENALTY, le=_MOST_PENALTY)]
    no_repeat_ngram: Annotated[int, Field(ge=0, le=_MOST)]
    early_stopping: bool
    prompt: str | None = None
    post_processing: PostProcessing | None = None
    global_attention: bool = True
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    gold_prompt: Annotated[int, Field(ge=0, le=_MOST)] = 0

    def __post_init__(self) -> None:
        if self.prompt and self.gold_prompt:
            raise InputError(f"a text begins with {self.prompt!r} or as its target does", "Leave one of them out.")
        if self.top_p is not None and self.beams > 1:
            raise InputError(f"top_p draws one text, beams is {self.beams}", "Give beams=1, or top_p= to search.")
        if self.min_tokens > self.max_tokens:
            raise InputError(f"min_tokens is {self.min_tokens}, max_tokens {self.max_tokens}", "Give less, or more.")

    def changed(self, changes: Mapping[str, Any]) -> "Generation":
        """The same with some options changed; values may be strings, an empty one is None: no prompt. See `checked`."""
        values = {name: None if value == "" else value for name, value in changes.items()}
        return checked(Generation, {**asdict(self), **values}, "a seq2seq writer")

    def within(self, max_input_tokens: int | None, max_output_tokens: int | None) -> "Generation":
        """The same, limited to the lengths that a model allows."""
        most = min(self.max_tokens, max_output_tokens or self.max_tokens)
        return replace(
            self,
            max_input_tokens=min(self.max_input_tokens, max_input_tokens or self.max_input_tokens),
            max_tokens=most,
            min_tokens=min(self.min_tokens, most),
        )


_FAMILIES: Mapping[str, Generation] = {
    # Funkquist et al. 2023 (CiteBench), appendix A.2.
    "led": Generation(4096, 0, 1024, beams=2, length_penalty=2.0, no_repeat_ngram=3, early_stopping=True),
    # As BART's authors write XSum, whose summaries are one sentence long (fairseq's examples/bart): 6 beams, length
    # penalty 1, no trigram twice. As much as it can, in and out: ours.
    "bart": Generation(1024, 0, 1024, beams=6, length_penalty=1.0, no_repeat_ngram=3, early_stopping=True),
    # 8 beams, as PEGASUS's authors (Zhang et al. 2020); the rest: ours.
    "pegasus": Generation(1024, 0, 1024, beams=8, length_penalty=0.8, no_repeat_ngram=0, early_stopping=True),
    # Docekal et al. 2024 (OARelatedWork), section 6.1.4: 8,192 tokens in, 2,048 out, 4 beams. The rest as LED, but no
    # preference for long texts: ours.
    "primera": Generation(8192, 0, 2048, beams=4, length_penalty=1.0, no_repeat_ngram=3, early_stopping=True),
    # Docekal et al. 2024, section 6.1.5, MPT-7b: 18,200 tokens in all, nucleus sampling with p = 0.85. As much to write
    # as PRIMERA: ours.
    "causal": Generation(
        16_152, 0, 2048, beams=1, length_penalty=1.0, no_repeat_ngram=0, early_stopping=False, top_p=0.85
    ),
}
# An encoder-decoder of a kind for which there is no recipe: ours.
_OTHER = Generation(1024, 0, 512, beams=4, length_penalty=1.0, no_repeat_ngram=3, early_stopping=True)

# As the authors' code has it, where it differs from the papers.
PRESETS: Mapping[str, Generation] = {
    # UKPLab/citebench, src/rel_work/train.py and test.py: no global attention, at least 10 tokens.
    "citebench": replace(_FAMILIES["led"], min_tokens=10, global_attention=False),
    # morningmoni/CiteSum, script/*.sh: greedy. The lengths are those for SciTLDR (script/test_tldr.sh).
    "citesum": replace(_FAMILIES["bart"], beams=1, min_tokens=10, max_tokens=45),
}

# Mao et al. 2022 (CiteSum): a TLDR has 10 to 45 tokens. XSum and Gigaword: as in script/test_xsum.sh and
# script/test_gigaword.sh of their code.
_LENGTHS: Mapping[Kind, Mapping[str, Any]] = {
    "tldr": {"min_tokens": 10, "max_tokens": 45},
    "xsum": {"min_tokens": 11, "max_tokens": 62, "beams": 4},
    "gigaword": {"min_tokens": 4, "max_tokens": 24, "beams": 32},
}


def recipe(family: str, kind: Kind, preset: str | None = None) -> Generation:
    """How a model writes by default.

    Args:
        family: A `TextModel.family`.
        kind: The kind of text.
        preset: One of `PRESETS`, in place of the recipe for family and kind, which is as published if it was:
            docs/writing.md.

    Raises:
        InputError: There is no such preset.
    """
    if preset:
        if preset not in PRESETS:
            raise InputError(f"there is no preset {preset!r} of a model", f"Give {' or '.join(PRESETS)}.")
        return PRESETS[preset]
    generation, lengths = _FAMILIES.get(family, _OTHER), dict(_LENGTHS.get(kind, {}))
    if generation.top_p is not None:  # one text is drawn
        lengths.pop("beams", None)
    return replace(generation, **lengths)


def processed(text: str, processing: PostProcessing | None) -> str:
    """A model's text after post-processing (Mao et al. 2022, section 4.1)."""
    if processing == "ref":
        text = re.sub(r"^\s*REF\b", "This paper", text)
        text = re.sub(r"\s*\bREF\b", "", text)
    return text.strip()


def as_citation(target: str) -> str:
    """A TLDR in the style of citation texts, for models that learnt these: "We show" becomes "This paper REF show".

    Mao et al. 2022, section 4.1: for few-shot training targets, not for those that are measured.
    """
    return re.sub(r"^\s*We\b", "This paper REF", target)
