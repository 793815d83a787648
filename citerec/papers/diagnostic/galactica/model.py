"""What Galactica and title likelihood need of a causal model: beam search over references, and their likelihood."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers import GenerationConfig

from citerec.errors import ModelError
from citerec.models.batches import batches_by_length
from citerec.models.text_models import TextModel
from citerec.papers.common.sequences import Allowed, only_allowed

# Tokens in work at once: prompts with their beams, padding included.
_TOKENS_AT_ONCE = {"cpu": 16384, "cuda": 262_144}
_ROWS = 256
# Numbers of the largest array of likelihoods, tokens × vocabulary: 256 MB.
_NUMBERS_AT_ONCE = 1 << 26


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """How a text is continued.

    Attributes:
        beams: How many continuations are followed and returned.
        max_new_tokens: The longest continuation, with its end.
        ends: Tokens that end a continuation.
        length_penalty: A continuation scores the sum of its log-probabilities, divided by its length to this power.
        allowed: Which tokens may follow; all by default.
    """

    beams: int
    max_new_tokens: int
    ends: tuple[int, ...]
    length_penalty: float = 1.0
    allowed: Allowed | None = None


class Continuation(NamedTuple):
    """A written continuation: its tokens without the end, its score, and whether it came to an end."""

    ids: tuple[int, ...]
    score: float
    ended: bool


class Likelihood(NamedTuple):
    """The log-probability of a continuation (natural logarithm): its sum over the tokens, and its mean."""

    total: float
    mean: float


def token(model: TextModel, text: str) -> int:
    """The token that a text is; raises ModelError if it is several."""
    ids = model.continuation(text)
    if len(ids) != 1 or ids[0] == model.tokenizer.unk_token_id:
        raise ModelError(f"{text!r} is not one token of {model.name}", "Name one of its tokens.")
    return ids[0]


def generate(model: TextModel, prompts: Sequence[Sequence[int]], search: BeamSearch) -> list[list[Continuation]]:
    """The best continuations of each prompt that a beam search finds, best first; fewer if fewer are allowed.

    The model's end of text ends a continuation too. Prompts of similar length are continued together; those they
    share a batch with do not change the result, except for the last digits of the scores.
    """
    found: list[list[Continuation]] = [[] for _ in prompts]
    tokens = _TOKENS_AT_ONCE.get(model.device, 16384) // search.beams
    lengths = [len(prompt) + search.max_new_tokens for prompt in prompts]
    for rows in batches_by_length(lengths, tokens, _ROWS):
        with model.turn:
            written = _continued(model, [prompts[row] for row in rows], search)
        for row, continuations in zip(rows, written, strict=True):
            found[row] = continuations
    return found


def likelihoods(model: TextModel, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[Likelihood]:
    """The log-probability of each continuation of a prompt; that of an empty one is 0. The prompt is read once."""
    totals = [0.0] * len(continuations)
    asked = [number for number, ids in enumerate(continuations) if ids]
    with model.turn, torch.inference_mode(), model.autocast():
        read = model.model(input_ids=torch.tensor([list(prompt)], device=model.model.device), use_cache=True)
        first = read.logits[0, -1].float().log_softmax(-1)
        tokens = max(1, _NUMBERS_AT_ONCE // len(first))
        for batch in batches_by_length([len(continuations[number]) for number in asked], tokens, _ROWS):
            rows = [asked[place] for place in batch]
            sums = _sums(model, read.past_key_values, len(prompt), first, [continuations[row] for row in rows])
            for row, total in zip(rows, sums.tolist(), strict=True):
                totals[row] = total
    return [Likelihood(total, total / max(1, len(ids))) for total, ids in zip(totals, continuations, strict=True)]


def _continued(model: TextModel, prompts: Sequence[Sequence[int]], search: BeamSearch) -> list[list[Continuation]]:
    """The continuations of a batch."""
    ends = _ends(model, search)
    longest = max(map(len, prompts))
    allowed = only_allowed(search.allowed, longest) if search.allowed else ()
    rows = model.generate(prompts, _generation_config(search, ends), [()] * len(prompts), allowed)
    groups = (rows[begin : begin + search.beams] for begin in range(0, len(rows), search.beams))
    return [_scored(model, prompt, group, ends, search) for prompt, group in zip(prompts, groups, strict=True)]


def _scored(
    model: TextModel, prompt: Sequence[int], rows: Sequence[Sequence[int]], ends: Sequence[int], search: BeamSearch
) -> list[Continuation]:
    """What was written after a prompt, best first, without what is not allowed: that fills beams left over.

    The scores are computed anew: transformers gives none for one beam, and for several it would keep those of the
    whole vocabulary at every step.
    """
    if (allowed := search.allowed) is not None:
        rows = [row for row in rows if row[-1] in ends and all(row[at] in allowed(row[:at]) for at in range(len(row)))]
    different = list(dict.fromkeys(map(tuple, rows)))
    scores = [one.total for one in likelihoods(model, prompt, different)]
    found = [
        Continuation(row[:-1] if (ended := row[-1] in ends) else row, score / len(row) ** search.length_penalty, ended)
        for row, score in zip(different, scores, strict=True)
    ]
    return sorted(found, key=lambda one: (-one.score, one.ids))


def _sums(
    model: TextModel, read: Any, length: int, first: torch.Tensor, continuations: Sequence[Sequence[int]]
) -> torch.Tensor:
    """Summed log-probabilities of continuations, none empty, of a prompt of some length that was read.

    Args:
        model: The model.
        read: The model's keys and values of the prompt; they are copied.
        length: How many tokens the prompt has.
        first: Log-probabilities of the token after the prompt, (vocabulary,).
        continuations: Padding stands behind them, so it changes nothing.
    """
    longest = max(map(len, continuations))
    device = model.model.device
    ids = torch.tensor([[*row, *[model.pad] * (longest - len(row))] for row in continuations], device=device)
    real = torch.arange(longest, device=device) < torch.tensor([[len(row)] for row in continuations], device=device)
    scores = first[ids[:, :1]]
    if longest > 1:
        past = copy.deepcopy(read)
        past.batch_repeat_interleave(len(continuations))
        mask = torch.cat([torch.ones(len(ids), length, device=device), real[:, :-1]], dim=1).long()
        logits = model.model(input_ids=ids[:, :-1], attention_mask=mask, past_key_values=past).logits
        rest = logits.float().log_softmax(-1).gather(2, ids[:, 1:, None])[:, :, 0]
        scores = torch.cat([scores, rest], dim=1)
    return scores.masked_fill(~real, 0.0).double().sum(dim=1)


def _ends(model: TextModel, search: BeamSearch) -> tuple[int, ...]:
    own = model.model.generation_config.eos_token_id
    return tuple(dict.fromkeys([*search.ends, *([own] if isinstance(own, int) else own or ())]))


def _generation_config(search: BeamSearch, ends: Sequence[int]) -> Any:
    return GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=search.max_new_tokens,
        num_beams=search.beams,
        num_return_sequences=search.beams,
        do_sample=False,
        eos_token_id=list(ends),
        **({"length_penalty": search.length_penalty, "early_stopping": False} if search.beams > 1 else {}),
    )
