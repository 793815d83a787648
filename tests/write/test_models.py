"""Encoder-decoders and causal models as writers: what they read, how they write, what is said where they cannot."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st

from citerec.errors import InputError, ModelError, WriterError
from citerec.models.text_models import TextModel
from citerec.write.tasks import PREFIX, PROMPT, Source, TextTask
from citerec.write.writers import models
from citerec.write.writers.base import Kind
from citerec.write.writers.models import Generation, Seq2seqWriter, encode_task, processed
from tests.tiny_causal import write_tiny_gpt2, write_tiny_opt
from tests.tiny_models import write_tiny_scibert
from tests.tiny_seq2seq import write_tiny_bart, write_tiny_led, write_tiny_pegasus, write_tiny_primera

pytestmark = pytest.mark.slow

WORDS = (
    "we study cats and dogs [0] [1] [9] This paper REF propose a model for parsing . "
    "<abs> </abs> <ctx_b> </ctx_b> <ctx_a> </ctx_a>"
)
ENCODERS = {
    "bart": write_tiny_bart,
    "led": write_tiny_led,
    "pegasus": write_tiny_pegasus,
    "primera": write_tiny_primera,
}
CAUSAL = {"opt": write_tiny_opt, "gpt2": write_tiny_gpt2}
KINDS = [*ENCODERS, *CAUSAL]
TASKS = [
    TextTask(str(number), (Source("we study cats " * (number % 5 + 1)), Source("dogs and parsing")), citing="a model")
    for number in range(12)
]
PROMPT_READ = "".join(models.plain_prompt(TASKS[0], "tldr"))
LINES = [f"{PROMPT_READ} This paper studies cats [0]. {end}</s>" for end in ("We parse.", "Dogs do.")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("writers")
    made = {name: write(base / name, [WORDS]) for name, write in ENCODERS.items()}
    texts = [*LINES, *("".join(models.plain_prompt(task, "tldr")) for task in TASKS[:5]), "This paper"]
    return made | {name: write(base / name, texts, LINES, steps=8) for name, write in CAUSAL.items()}


Open = Callable[..., Seq2seqWriter]


def kind_of(name: str) -> Kind:
    """Instructions for more than a TLDR have no room in models as small as these."""
    return "tldr" if name in CAUSAL else "citation"


@pytest.fixture
def opened(folders: dict[str, Path]) -> Open:
    def call(name: str, **options: Any) -> Seq2seqWriter:
        return Seq2seqWriter.open(str(folders[name]), kind_of(name), device="cpu", options=options)

    return call


@pytest.mark.parametrize("name", KINDS)
def test_greedy_writing_is_the_likeliest_token_each_time(folders: dict[str, Path], name: str) -> None:
    """Against a loop over the model's own forward pass."""
    model = TextModel.open(str(folders[name]), device="cpu")
    room = 120 if name in CAUSAL else 60
    plain = Generation(room, 0, 12, beams=1, length_penalty=1.0, no_repeat_ngram=0, prompt="This paper")
    read = encode_task(model, TASKS[0], room, kind_of(name)).ids
    ids = list(model.prompt("This paper"))
    end = model.model.generation_config.eos_token_id
    last = model.model.generation_config.forced_eos_token_id
    while len(ids) < 12 and ids[-1] != end:
        with torch.inference_mode():
            if name in CAUSAL:
                logits = model.model(torch.tensor([[*read, *ids]])).logits[0, -1]
            else:
                logits = model.model(**model.tensors([read]), decoder_input_ids=torch.tensor([ids])).logits[0, -1]
        ids.append(int(logits.argmax()) if last is None or len(ids) < 11 else last)
    (prediction,) = Seq2seqWriter(model, kind_of(name), plain).write_many(TASKS[:1])
    assert prediction.text == model.decode(ids)
    assert prediction.text.startswith("This paper")


@pytest.mark.parametrize("name", KINDS)
def test_it_writes_the_same_each_time_and_in_order(opened: Open, name: str) -> None:
    options = {"min_tokens": 8, "max_tokens": 16, "beams": 3, "prompt": "This paper"}
    options |= {"top_p": ""} if name in CAUSAL else {}
    writer, again = opened(name, **options), opened(name, **options)
    predictions = list(writer.write_many(iter(TASKS)))
    assert [one.task for one in predictions] == TASKS
    assert [one.text for one in predictions] == [again.write(task).text for task in TASKS]
    assert all(one.writer == name and one.text.startswith("This paper") for one in predictions)
    assert all(len(one.text.split()) <= 16 for one in predictions)


def test_each_family_reads_in_its_own_way(folders: dict[str, Path]) -> None:
    led, primera = (TextModel.open(str(folders[name]), device="cpu") for name in ("led", "primera"))
    task = TextTask("t", (Source("cats"), Source(""), Source("dogs")), "we study", "a", "parsing")
    # As CiteBench gives it; LED reads one text, the first token with global attention.
    expected = "<abs> we study </abs> <ctx_b> a </ctx_b> cats dogs <ctx_a> parsing </ctx_a>"
    assert led.decode(encode_task(led, task, 100).ids) == expected
    assert led.tensors([led.encode_text("we study", 9).ids])["global_attention_mask"].tolist() == [[1, 0, 0, 0]]
    # Documents of PRIMERA share what it reads.
    encoded = primera.encode(["we study", "cats"], 60)
    tokens = primera.tokenizer.convert_ids_to_tokens(list(encoded.ids))
    assert tokens == ["<s>", "we", "study", "<doc-sep>", "cats", "<doc-sep>", "</s>"]
    tensors = primera.tensors([encoded.ids, encoded.ids[-2:]])
    assert tensors["global_attention_mask"].tolist() == [[1, 0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0, 0]]
    assert tensors["attention_mask"].tolist() == [[1] * 7, [1, 1] + [0] * 5]
    for documents in (["we study cats " * 20, "dogs"], ["we"] * 50):
        encoded = primera.encode(documents, 30)
        assert len(encoded.ids) <= 30 and encoded.cut and encoded.ids[-1] == primera.encode(["we"], 9).ids[-1]


@given(st.text(st.sampled_from("REF a.\n"), max_size=30))
def test_ref_becomes_this_paper_or_nothing(text: str) -> None:
    assert "REF" not in processed(text, "ref").replace(".", " ").split()
    assert processed("REF proposes a parser.", "ref") == "This paper proposes a parser."
    assert processed("A parser REF was proposed by REF.", "ref") == "A parser was proposed by."
    assert processed("PREFIX REFERENCE", "ref") == "PREFIX REFERENCE"
    assert processed("REF proposes.", None) == "REF proposes."


def test_a_text_may_begin_as_the_target_does_and_is_then_an_oracles(opened: Open) -> None:
    writer = opened("bart", max_tokens=12, beams=2, gold_prompt=3)
    assert writer.is_oracle
    assert writer.settings["gold_prompt"] == 3
    for target in ("cats and dogs are", "dogs", "a model for parsing ."):
        written = writer.write(replace(TASKS[0], targets=(target, "other")))
        assert written.is_oracle
        assert " ".join(written.text.split()).startswith(" ".join(target.split()[:3]))
    with pytest.raises(WriterError, match="needs a target"):
        writer.write(TASKS[0])


def test_a_task_has_its_own_prompt_and_prefix(opened: Open) -> None:
    writer = opened("bart", max_tokens=12, beams=2, prompt="we study cats [0] and dogs [9]")
    own = replace(TASKS[0], extra={PROMPT: "cats and"})
    plain, prompted = writer.write_many([TASKS[0], own])
    assert plain.text.startswith("we study cats [0] and dogs [9]") and prompted.text.startswith("cats and")
    assert "[9]" in plain.sentences[0].unknown  # nothing has this number
    assert not prompted.is_oracle
    with pytest.raises(WriterError, match="prompt of 0 is longer"):
        writer.write(replace(TASKS[0], extra={PROMPT: "cats " * 20}))
    prefixed = encode_task(writer._model, replace(TASKS[0], extra={PREFIX: "propose"}), 40).ids
    assert prefixed[2:] == encode_task(writer._model, TASKS[0], 40).ids[1:]


def test_a_wrong_option_or_folder_is_told_in_one_line(opened: Open, folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"room for 64 tokens, max_input_tokens is 65\. Give at most 64"):
        opened("bart", max_input_tokens=65)
    with pytest.raises(InputError, match=r"there is no option 'beam' of a seq2seq writer\. Give max_input_tokens, "):
        opened("bart", beam=2)
    pickled = shutil.copytree(folders["bart"], tmp_path / "pickled")
    torch.save({}, pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    strange = shutil.copytree(folders["bart"], tmp_path / "strange")
    (strange / "manifest.json").write_text('{"kind": "citerec-writer", "version": 2}')
    write_tiny_scibert(tmp_path / "bert", [WORDS])
    for name, words in (
        ("nowhere", "there is no model folder"),
        ("bert", "is no encoder-decoder or causal model"),
        ("pickled", "model.safetensors"),
        ("strange", "is not of a writer that this citerec reads"),
    ):
        with pytest.raises(ModelError) as error:
            Seq2seqWriter.open(str(tmp_path / name), device="cpu")
        assert words in str(error.value) and "\n" not in str(error.value)
