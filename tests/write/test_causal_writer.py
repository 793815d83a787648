"""Causal models as writers: found by their config, searched or drawn from, within their room."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, MptConfig, MptForCausalLM

from citerec.errors import CiterecError, InputError, ModelError
from citerec.models.text_models import TextModel
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import open_writer
from citerec.write.writers.models import Seq2seqWriter, encode_task, plain_prompt
from tests.tiny_causal import write_tiny_gpt2, write_tiny_opt
from tests.tiny_seq2seq import write_tiny_bart

pytestmark = pytest.mark.slow

KINDS = {"opt": write_tiny_opt, "gpt2": write_tiny_gpt2}
TASKS = [
    TextTask(str(number), (Source(("We study cats. " * (number % 3 + 1)).strip(), title=f"Dogs {number}"),))
    for number in range(10)
]
PROMPT = "".join(plain_prompt(TASKS[2], "tldr"))
LINES = [f"{PROMPT} This paper studies cats [0]. {end}</s>" for end in ("We parse.", "Dogs do.")]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    """Models as small as these are slower with several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("causal")
    return {name: write(base / name, [*LINES, PROMPT, "This paper"], LINES, steps=8) for name, write in KINDS.items()}


Open = Callable[..., Seq2seqWriter]


@pytest.fixture
def opened(folders: dict[str, Path]) -> Open:
    def call(name: str, **options: Any) -> Seq2seqWriter:
        return Seq2seqWriter.open(str(folders[name]), "tldr", device="cpu", options={"max_tokens": 14, **options})

    return call


@pytest.mark.parametrize("name", KINDS)
def test_greedy_writing_is_the_likeliest_token_each_time(opened: Open, name: str) -> None:
    """Against a loop over the model's own forward pass."""
    writer = opened(name, top_p="", prompt="This paper", min_tokens=0)
    model = writer._model
    written = list(writer.write_many(TASKS))
    for task, prediction in zip(TASKS, written, strict=True):
        read = encode_task(model, task, 120, "tldr").ids
        ids = list(model.prompt("This paper"))
        while len(ids) < 14 and ids[-1] != 2:
            with torch.inference_mode():
                ids.append(int(model.model(torch.tensor([[*read, *ids]])).logits[0, -1].argmax()))
        assert prediction.text == model.decode(ids)
        assert prediction.text.startswith("This paper")
    assert [one.text for one in written] == [
        opened(name, top_p="", prompt="This paper", min_tokens=0).write(one).text for one in TASKS
    ]


@pytest.mark.parametrize("name", KINDS)
def test_the_same_seed_draws_the_same_texts(opened: Open, name: str) -> None:
    def texts(**options: Any) -> list[str]:
        return [one.text for one in opened(name, **options).write_many(TASKS)]

    drawn = texts(top_p=0.95)
    assert drawn == texts(top_p=0.95) != texts(top_p=0.95, seed=1)
    assert texts(top_p=1e-9) == texts(top_p="")


def test_encoder_decoders_draw_too(tmp_path: Path) -> None:
    folder = str(write_tiny_bart(tmp_path / "bart", ["we study cats and dogs ."]))
    options = {"top_p": "0.9", "beams": "1", "max_tokens": "12", "min_tokens": "8"}
    first, same, other = (
        [
            one.text
            for one in Seq2seqWriter.open(folder, device="cpu", options={**options, "seed": seed}).write_many(TASKS)
        ]
        for seed in (0, 0, 1)
    )
    assert first == same != other


def test_beams_and_lengths(opened: Open) -> None:
    writer = opened("gpt2", top_p="", beams=3, min_tokens=6, max_tokens=9)
    model = writer._model
    for prediction in writer.write_many(TASKS):
        assert 5 <= len(model.encode_text(prediction.text, 99).ids) <= 11  # words as the tokenizer cuts them again
    assert [one.text for one in writer.write_many(TASKS)] == [writer.write(task).text for task in TASKS]


def test_a_long_prompt_is_cut_before_its_last_words(opened: Open) -> None:
    writer = opened("gpt2", max_input_tokens=60)
    long = TextTask("long", (Source("We study cats. " * 60),))
    model = writer._model
    for task in (long, TASKS[0]):
        encoded = encode_task(model, task, 60, "tldr")
        assert (len(encoded.ids), encoded.cut) == (60, True)
        assert model.decode(encoded.ids).endswith("Summarise this paper in one sentence.")
    whole = encode_task(model, TASKS[2], 120, "tldr")
    assert (model.decode(whole.ids), whole.cut) == (PROMPT.strip(), False)


def test_the_loss_is_that_of_the_target_alone(folders: dict[str, Path]) -> None:
    model = TextModel.open(str(folders["opt"]), device="cpu")
    targets = [model.encode_text(text, 20).ids for text in (" This paper studies cats [0].", " Dogs do.")]
    read = [encode_task(model, task, 120, "tldr").ids for task in TASKS[:2]]
    assert [ids[-1] for ids in targets] == [2, 2]
    exact = []
    for before, target in zip(read, targets, strict=True):
        with torch.inference_mode():
            scores = model.model(torch.tensor([[*before, *target]])).logits[0].log_softmax(-1)
        exact += [-float(scores[len(before) - 1 + place, token]) for place, token in enumerate(target)]
    with torch.inference_mode():
        assert float(model.loss(read, targets)) == pytest.approx(sum(exact) / len(exact), abs=1e-5)
        pairs = [(list(before), list(target)) for before, target in zip(read, targets, strict=True)]
        whole = sum(float(loss) * share for loss, share in model.losses(pairs))
    assert whole == pytest.approx(sum(exact) / len(exact), abs=1e-5)


def test_mpt_may_be_lengthened(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["opt"], tmp_path / "mpt")
    (tmp_path / "mpt" / "model.safetensors").unlink()
    size = len(AutoTokenizer.from_pretrained(folders["opt"]))
    MptForCausalLM(
        MptConfig(vocab_size=size, d_model=16, n_heads=2, n_layers=1, max_seq_len=40, eos_token_id=2)
    ).save_pretrained(tmp_path / "mpt")
    model = TextModel.open(str(tmp_path / "mpt"), device="cpu")
    assert (model.family, model.max_input_tokens) == ("causal", 40)
    model.lengthen(100, 30)
    model.save(tmp_path / "longer")
    writer = Seq2seqWriter.open(
        str(tmp_path / "longer"), "tldr", device="cpu", options={"max_tokens": 30, "min_tokens": 20}
    )
    assert writer.generation.max_input_tokens == 100
    assert writer.write(TASKS[0]) == writer.write(TASKS[0])
    with pytest.raises(ModelError, match="opt is not LED, PRIMERA or MPT: it cannot be lengthened"):
        TextModel.open(str(folders["opt"]), device="cpu").lengthen(400, 30)


def test_a_folder_is_opened_as_what_its_config_says(folders: dict[str, Path]) -> None:
    writer = open_writer(str(folders["opt"]), "tldr", device="cpu", options={"max_tokens": "20"})
    settings = writer.settings
    assert json.loads(json.dumps(settings)) == settings
    assert (settings["writer"], settings["family"], settings["top_p"], settings["seed"]) == ("opt", "causal", 0.85, 0)
    assert settings["instructions"].startswith("sha256:")
    # Reading and writing share the model's 160 tokens.
    assert (settings["max_input_tokens"], settings["max_tokens"]) == (140, 20)
    assert open_writer(str(folders["opt"]), "citation", device="cpu").settings["max_tokens"] == 40


@pytest.mark.parametrize(
    ("kind", "words", "options"),
    [
        (ModelError, "room for 160 tokens, max_input_tokens is 161", {"max_input_tokens": 161}),
        (ModelError, "max_input_tokens and max_tokens together are 170", {"max_input_tokens": 150, "max_tokens": 20}),
        (ModelError, "max_input_tokens and max_tokens together are 161", {"max_tokens": 160}),
        (InputError, "top_p: Input should be less than or equal to 1", {"top_p": 2}),
        (InputError, "seed: Input should be greater than or equal to 0", {"seed": -1}),
        (InputError, "there is no preset 'led' of a model. Give citebench or citesum", {"preset": "led"}),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    opened: Open, kind: type[CiterecError], words: str, options: dict[str, Any]
) -> None:
    with pytest.raises(kind) as error:
        opened("gpt2", **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
