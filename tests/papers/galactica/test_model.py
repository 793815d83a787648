"""Causal language models: opened, asked for continuations and for likelihoods."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from transformers import AutoModelForCausalLM

from citerec.errors import ModelError
from citerec.models.text_models import TextModel
from citerec.papers.common.written import TokenSequences, Written, suggestions
from citerec.papers.diagnostic.galactica import likelihoods
from tests.tiny_causal import END, START, write_tiny_gpt2, write_tiny_opt
from tests.tiny_seq2seq import write_tiny_bart

TITLES = [" Deep parsing, Roe", " Shallow parsing of very long sentences, Poe", " Deep trees", " Deep trees, Low"]
LINES = [f"Parsers read trees {START}{title}{END}" for title in TITLES]
PROMPTS = [f"Parsers {START}", f"Trees of very long sentences read deep trees of parsing {START}", START]
TEXTS = [*LINES, *PROMPTS]


@pytest.fixture(scope="module", params=[write_tiny_opt, write_tiny_gpt2])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    write: Callable[..., Path] = request.param
    return TextModel.open(str(write(tmp_path_factory.mktemp("causal") / "model", TEXTS, LINES, steps=3)), device="cpu")


def written(model: TextModel, prompts: list[tuple[int, ...]], beams: int = 4, **more: Any) -> list[list[Written]]:
    (end,) = model.continuation(END)
    return suggestions(model, prompts, beams, 12, end, **more)


def test_likelihoods_are_those_that_transformers_computes(model: TextModel) -> None:
    plain = AutoModelForCausalLM.from_pretrained(model.name).eval()
    asked = [model.continuation(title + END, after=START) for title in TITLES]
    for text in PROMPTS:
        prompt = model.last_tokens(text, 50)
        found = likelihoods(model, prompt, [*asked, ()])
        for ids, likelihood in zip(asked, found[:-1], strict=True):
            with torch.no_grad():
                logits = plain(torch.tensor([[*prompt, *ids]])).logits[0].log_softmax(-1)
            exact = sum(float(logits[len(prompt) - 1 + place, one]) for place, one in enumerate(ids))
            assert likelihood == pytest.approx(exact, abs=1e-4)
        assert found[-1] == 0


def test_prompts_of_several_lengths_are_continued_together_as_alone(model: TextModel) -> None:
    prompts = [model.last_tokens(text, 50) for text in PROMPTS]
    together = written(model, prompts)
    for prompt, found in zip(prompts, together, strict=True):
        (alone,) = written(model, [prompt])
        assert [one.text for one in found] == [one.text for one in alone]
        assert [one.score for one in found] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_a_continuation_scores_its_log_probability_by_its_length(model: TextModel) -> None:
    """Of those that are written to their end."""
    titles = [model.continuation(title + END, after=START) for title in TITLES]
    prompt = model.last_tokens(PROMPTS[0], 50)
    means = {
        model.decode(ids[:-1]): likelihood / len(ids)
        for ids, likelihood in zip(titles, likelihoods(model, prompt, titles), strict=True)
    }
    for beams in (1, 4):
        (found,) = written(model, [prompt], beams, allowed=TokenSequences(titles))
        assert len(found) == beams
        for one in found:
            assert one.score == pytest.approx(means[one.text], abs=1e-4)


def test_constrained_search_finds_what_is_allowed_and_in_the_order_of_likelihood(model: TextModel) -> None:
    wanted = [model.continuation(title + END, after=START) for title in TITLES]
    for text in PROMPTS:
        prompt = model.last_tokens(text, 50)
        (found,) = written(model, [prompt], 6, allowed=TokenSequences(wanted))
        by_likelihood = zip(likelihoods(model, prompt, wanted), wanted, strict=True)
        exact = sorted(((one / len(ids), model.decode(ids[:-1])) for one, ids in by_likelihood), reverse=True)
        assert [one.text for one in found] == [text for _, text in exact]  # six beams, four titles
        assert [one.score for one in found] == pytest.approx([mean for mean, _ in exact], abs=1e-4)


def test_only_the_end_of_a_long_prompt_is_read(model: TextModel) -> None:
    long, short = "Trees " * 50 + PROMPTS[0], model.last_tokens(PROMPTS[0], 50)
    found = model.last_tokens(long, len(short))
    assert len(found) == len(short)
    assert found[-2:] == short[-2:]  # the first word has a space before it there
    assert model.last_tokens("", 5)  # something must be there to go on from


def test_what_is_no_causal_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no causal model"):
        TextModel.open(str(write_tiny_bart(tmp_path / "bart", TEXTS)), kinds=["causal model"])
    with pytest.raises(ModelError, match="there is no model folder"):
        TextModel.open(str(tmp_path / "none"))


@given(st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=5), max_size=30))
def test_the_tokens_that_may_follow_are_those_of_the_set(sequences: list[list[int]]) -> None:
    found = TokenSequences(sequences)
    rows = {tuple(row) for row in sequences}
    assert len(found) == len(rows)
    assert found.longest == max(map(len, rows), default=0)
    beginnings = {row[:length] for row in rows for length in range(len(row) + 1)} | {(), (7, 7, 7)}
    for begun in beginnings:
        following = {row[len(begun)] for row in rows if row[: len(begun)] == begun and len(row) > len(begun)}
        assert found.following(begun) == sorted(following)
        assert (begun in found) == (begun in rows)


def test_a_large_set_stays_small_in_memory() -> None:
    numbers = np.random.default_rng(0).integers(0, 50_000, (20_000, 12))
    found = TokenSequences(numbers)
    assert sum(map(sys.getsizeof, (found._rows, *found._rows))) < 20_000 * (12 * 4 + 45)
    assert all(row.tolist() in found for row in itertools.islice(numbers, 50))
