"""What CiteBART needs of an encoder-decoder: the citations that a beam search finds."""

from collections.abc import Sequence

import torch
from transformers import GenerationConfig

from citerec.errors import ModelError
from citerec.models.batches import batches_by_length
from citerec.models.find import quiet_libraries
from citerec.models.text_models import TextModel
from citerec.papers.common.sequences import Allowed, only_allowed

_TOKENS_AT_ONCE = 16384  # beams included
_TEXTS_AT_ONCE = 4  # the scores of all words are kept at each step
_NOTHING = -1e6  # beams that had to write what is not allowed score less


def suggestions(
    model: TextModel, batch: Sequence[Sequence[int]], beams: int, max_new_tokens: int, allowed: Allowed | None = None
) -> list[list[tuple[str, float]]]:
    """The texts that a beam search finds for each input, best first, each once; fewer if fewer are allowed.

    A score is the log-probability of the tokens divided by their number. `allowed` says which tokens may follow.

    Raises:
        ModelError: The model cannot write so many tokens.
    """
    if model.max_output_tokens is not None and max_new_tokens >= model.max_output_tokens:
        raise ModelError(
            f"{model.name} has room for {model.max_output_tokens} tokens, not {max_new_tokens}", "Give fewer."
        )
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens,
        num_beams=beams,
        num_return_sequences=beams,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    found: list[list[tuple[str, float]]] = [[] for _ in batch]
    for rows in batches_by_length([len(one) for one in batch], _TOKENS_AT_ONCE // beams, _TEXTS_AT_ONCE):
        with torch.inference_mode(), model.autocast(), quiet_libraries():
            written = model.model.generate(
                **model.tensors([batch[row] for row in rows]),
                generation_config=config,
                logits_processor=only_allowed(allowed, len(model.prompt(""))) if allowed else None,
            )
        texts = [model.decode(ids) for ids in written.sequences.tolist()]
        scored = list(zip(texts, written.sequences_scores.tolist(), strict=True))
        for place, row in enumerate(rows):
            of_row = (one for one in scored[place * beams : (place + 1) * beams] if one[1] > _NOTHING)
            rising = sorted(of_row, key=lambda one: one[1])
            found[row] = sorted(dict(rising).items(), key=lambda one: (-one[1], one[0]))  # each with its best score
    return found
