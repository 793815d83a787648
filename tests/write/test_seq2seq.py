"""Encoder-decoders as writers: what they read, how they write, and what is said where they cannot."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from transformers import BertConfig, BertModel

from citerec.errors import CiterecError, InputError, ModelError, WriterError
from citerec.models.text_models import TextModel
from citerec.settings import assign
from citerec.write.tasks import PREFIX, PROMPT, Source, TextTask
from citerec.write.writers.base import Kind, open_writer
from citerec.write.writers.models import (
    Generation,
    Seq2seqWriter,
    as_citation,
    encode_task,
    generation_config,
    processed,
    recipe,
)
from tests.tiny_seq2seq import write_tiny_bart, write_tiny_led, write_tiny_pegasus, write_tiny_primera

pytestmark = pytest.mark.slow

WORDS = (
    "we study cats and dogs [0] [1] [9] This paper REF propose a model for parsing . "
    "<abs> </abs> <ctx_b> </ctx_b> <ctx_a> </ctx_a>"
)
KINDS = {"bart": write_tiny_bart, "led": write_tiny_led, "pegasus": write_tiny_pegasus, "primera": write_tiny_primera}
TASKS = [
    TextTask(str(number), (Source("we study cats " * (number % 5 + 1)), Source("dogs and parsing")), citing="a model")
    for number in range(12)
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    """Models as small as these are slower with several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("seq2seq")
    return {name: write(base / name, [WORDS]) for name, write in KINDS.items()}


Open = Callable[..., Seq2seqWriter]


@pytest.fixture
def opened(folders: dict[str, Path]) -> Open:
    def call(name: str, task: Kind = "citation", **options: Any) -> Seq2seqWriter:
        return Seq2seqWriter.open(str(folders[name]), task, device="cpu", options=options)

    return call


@pytest.mark.parametrize("name", KINDS)
def test_it_writes_the_same_each_time_and_in_order(opened: Open, name: str) -> None:
    writer = opened(name, min_tokens=8, max_tokens=16, beams=3)
    predictions = list(writer.write_many(iter(TASKS)))
    assert [one.task for one in predictions] == TASKS
    assert {one.writer for one in predictions} == {name}
    again = opened(name, min_tokens=8, max_tokens=16, beams=3)
    assert [one.text for one in predictions] == [one.text for one in again.write_many(TASKS)]
    assert [one.text for one in predictions] == [again.write(task).text for task in TASKS]
    assert all(one.text for one in predictions)


def test_texts_are_given_batch_by_batch(opened: Open) -> None:
    """What was written is not lost while others are still to be."""
    tasks = iter(TASKS)
    texts = opened("led", max_tokens=4, beams=2).write_many(tasks)
    assert next(texts).task == TASKS[0]
    assert next(tasks) == TASKS[4]  # 8 rows on a processor, of two beams each
    assert [one.task for one in texts] == [*TASKS[1:4], *TASKS[5:]]


@pytest.mark.parametrize("name", KINDS)
def test_lengths_are_kept(opened: Open, folders: dict[str, Path], name: str) -> None:
    model = TextModel.open(str(folders[name]), device="cpu")
    end = model.model.generation_config.eos_token_id
    for least, most in ((2, 5), (10, 12)):
        generation = opened(name, min_tokens=least, max_tokens=most).generation
        read = [encode_task(model, task, 60).ids for task in TASKS[:4]]
        for ids in model.generate(read, generation_config(generation, 1), [model.prompt("")] * len(read)):
            assert len(ids) <= most
            # The decoder begins with what ends a text in BART and LED.
            assert end not in ids[1:least]


@pytest.mark.parametrize("name", KINDS)
def test_greedy_writing_is_the_likeliest_token_each_time(folders: dict[str, Path], name: str) -> None:
    """Against a loop over the model's own forward pass."""
    model = TextModel.open(str(folders[name]), device="cpu")
    plain = Generation(60, 0, 12, beams=1, length_penalty=1.0, no_repeat_ngram=0)
    read = encode_task(model, TASKS[0], 60)
    ids = list(model.prompt("This paper"))
    end = model.model.generation_config.eos_token_id
    last = model.model.generation_config.forced_eos_token_id
    while len(ids) < 12 and ids[-1] != end:
        with torch.inference_mode():
            logits = model.model(**model.tensors([read.ids]), decoder_input_ids=torch.tensor([ids])).logits[0, -1]
        ids.append(int(logits.argmax()) if last is None or len(ids) < 11 else last)
    (prediction,) = Seq2seqWriter(model, "citation", plain.changed({"prompt": "This paper"})).write_many(TASKS[:1])
    assert prediction.text == model.decode(ids)
    assert prediction.text.startswith("This paper")


@pytest.mark.parametrize("name", KINDS)
def test_a_prompt_begins_every_text(opened: Open, name: str) -> None:
    texts = [one.text for one in opened(name, task="tldr", prompt="This paper", max_tokens=20).write_many(TASKS)]
    assert all(text.startswith("This paper ") for text in texts)


def test_the_decoder_begins_as_it_does_in_training(folders: dict[str, Path]) -> None:
    for name, start in (("bart", ["</s>", "<s>"]), ("led", ["</s>", "<s>"]), ("pegasus", ["<pad>"])):
        model = TextModel.open(str(folders[name]), device="cpu")
        labels = torch.tensor([model.encode_text("This paper we study", 100).ids])
        shifted = model.model.prepare_decoder_input_ids_from_labels(labels)[0].tolist()
        prompt = model.prompt("This paper")
        assert shifted[: len(prompt)] == list(prompt)
        assert model.tokenizer.convert_ids_to_tokens(list(prompt)) == [*start, "This", "paper"]
        assert len(model.prompt("")) == 1


@pytest.mark.parametrize(
    ("family", "kind", "expected"),
    [
        ("led", "citation", Generation(4096, 0, 1024, 2, 2.0, 3)),  # CiteBench, appendix A.2
        ("led", "tldr", Generation(4096, 10, 45, 2, 2.0, 3)),
        ("bart", "tldr", Generation(1024, 10, 45, 6, 1.0, 3)),
        ("primera", "related-work", Generation(8192, 0, 2048, 4, 1.0, 3)),  # OARelatedWork, section 6.1.4
    ],
)
def test_published_recipes(family: str, kind: Any, expected: Generation) -> None:
    assert recipe(family, kind) == expected


def test_a_recipe_goes_as_far_as_the_model(opened: Open) -> None:
    assert opened("led").generation == replace(recipe("led", "citation"), max_input_tokens=256, max_tokens=64)
    generation = opened("bart", task="tldr").generation
    assert (generation.max_input_tokens, generation.min_tokens, generation.max_tokens) == (64, 10, 45)


def test_settings_say_all_that_texts_depend_on(opened: Open, folders: dict[str, Path]) -> None:
    settings = opened("primera", task="related-work", beams=2, post_processing="ref").settings
    assert json.loads(json.dumps(settings)) == settings
    assert settings["family"] == "primera"
    assert settings["kind"] == "related-work"
    assert (settings["beams"], settings["post_processing"], settings["precision"]) == (2, "ref", "float32")
    assert str(folders["primera"].parent) not in str(settings)
    assert settings["model"] != opened("led").settings["model"]


def test_documents_of_primera_share_what_it_reads(folders: dict[str, Path]) -> None:
    model = TextModel.open(str(folders["primera"]), device="cpu")
    name = model.tokenizer.convert_ids_to_tokens
    encoded = model.encode(["we study", "cats"], 60)
    assert name(list(encoded.ids)) == ["<s>", "we", "study", "<doc-sep>", "cats", "<doc-sep>", "</s>"]
    assert not encoded.cut
    assert model.tensors([encoded.ids, encoded.ids[-2:]])["global_attention_mask"].tolist() == [
        [1, 0, 0, 1, 0, 1, 0],
        [1, 0, 0, 0, 0, 0, 0],
    ]
    assert model.tensors([encoded.ids, encoded.ids[-2:]])["attention_mask"].tolist() == [[1] * 7, [1, 1] + [0] * 5]
    for documents in (["we study cats " * 20] * 2, ["we"] * 50, ["cats and dogs " * 30]):
        encoded = model.encode(documents, 30)
        assert len(encoded.ids) <= 30
        assert encoded.cut
        assert name(encoded.ids[-1]) == "</s>"
    tokens = name(list(model.encode(["we study cats " * 20, "dogs"], 30).ids))
    assert tokens.count("<doc-sep>") == 2
    assert tokens.index("<doc-sep>") == 14
    # LED has no such token: it reads one text, the first token with global attention.
    led = TextModel.open(str(folders["led"]), device="cpu")
    ids = led.encode(["we study", "cats"], 60).ids
    assert led.decode(ids) == "we study cats"
    assert led.tensors([ids])["global_attention_mask"].tolist() == [[1, 0, 0, 0, 0]]
    assert "global_attention_mask" not in TextModel.open(str(folders["bart"]), device="cpu").tensors([ids])


def test_a_query_apart_from_the_documents(folders: dict[str, Path], tmp_path: Path) -> None:
    """As PRIMERA of OARelatedWork: its token is new, is read everywhere, and stays in the files."""
    model = TextModel.open(str(folders["primera"]), device="cpu")
    before = model.model.get_input_embeddings().weight.clone()
    model.add_query_separator()
    model.add_query_separator()
    after = model.model.get_input_embeddings().weight
    assert torch.equal(after[: len(before)], before)
    assert torch.equal(after[len(before) :], before[model.document_end][None])
    model.save(tmp_path)
    again = TextModel.open(str(tmp_path), device="cpu")
    assert again.query_end is not None and again.family == "primera"
    task = TextTask("t", (Source("cats"), Source(""), Source("dogs")), "we study", "a", "parsing")
    ids = encode_task(again, task, 60, "related-work").ids
    said = "<s> <abs> we study </abs> <ctx_b> a </ctx_b> <ctx_a> parsing </ctx_a> <query-doc-sep> "
    said += "cats <doc-sep> dogs <doc-sep> </s>"
    assert again.tokenizer.convert_ids_to_tokens(list(ids)) == said.split()
    everywhere = [token in ("<s>", "<query-doc-sep>", "<doc-sep>") for token in said.split()]
    assert again.tensors([ids])["global_attention_mask"][0].bool().tolist() == everywhere
    ids = encode_task(again, TextTask("t", (Source("we study cats " * 30),), "and " * 30), 30, "related-work").ids
    assert [*ids].index(again.query_end) == 14
    with pytest.raises(ModelError, match="has no <doc-sep> and reads one text"):
        TextModel.open(str(folders["led"]), device="cpu").add_query_separator()


def test_a_lengthened_model_has_copies_of_its_places(folders: dict[str, Path], tmp_path: Path) -> None:
    model = TextModel.open(str(folders["led"]), device="cpu")
    short = model.encode_text("we study cats and dogs", 60).ids
    with torch.inference_mode():
        before = model.loss([short], [short])
        model.lengthen(600, 150)
        assert torch.equal(model.loss([short], [short]), before)
    assert (model.max_input_tokens, model.max_output_tokens) == (600, 150)
    places = model.model.get_encoder().embed_positions.weight
    assert places.shape[0] == 600
    assert torch.equal(places[256:512], places[:256]) and torch.equal(places[512:], places[:88])
    model.lengthen(10, 10)  # never shorter
    model.save(tmp_path)
    writer = Seq2seqWriter.open(
        str(tmp_path), device="cpu", options={"max_input_tokens": 600, "max_tokens": 150, "beams": 1}
    )
    assert writer.write(TextTask("long", (Source("cats and dogs " * 190),)))
    with pytest.raises(ModelError, match="bart is not LED, PRIMERA or MPT"):
        TextModel.open(str(folders["bart"]), device="cpu").lengthen(100, 100)


def test_presets_are_what_the_authors_code_does(opened: Open, folders: dict[str, Path]) -> None:
    assert recipe("led", "citation", "citebench") == replace(
        recipe("led", "citation"), min_tokens=10, global_attention=False
    )
    assert recipe("bart", "tldr", "citesum") == replace(recipe("bart", "tldr"), beams=1)
    writer = opened("led", preset="citebench", max_tokens=20)
    assert (writer.generation.min_tokens, writer.generation.max_tokens, writer.generation.beams) == (10, 20, 2)
    assert (writer.settings["global_attention"], writer.settings["max_input_tokens"]) == (False, 256)
    ids = writer._model.encode_text("we study cats", 60).ids
    assert "global_attention_mask" not in writer._model.tensors([ids])
    plain = opened("led", min_tokens=10, max_tokens=20)
    assert plain.settings["global_attention"] is True
    assert [one.text for one in plain.write_many(TASKS)] != [one.text for one in writer.write_many(TASKS)]


def test_what_citebench_gives_is_read_in_its_order(folders: dict[str, Path]) -> None:
    model = TextModel.open(str(folders["led"]), device="cpu")
    task = TextTask("t", (Source("cats"), Source(""), Source("dogs")), "we study", "a", "parsing")
    expected = "<abs> we study </abs> <ctx_b> a </ctx_b> cats dogs <ctx_a> parsing </ctx_a>"
    assert model.decode(encode_task(model, task, 100).ids) == expected


def test_habits_in_the_files_of_a_model_do_not_count(folders: dict[str, Path], tmp_path: Path, opened: Open) -> None:
    shutil.copytree(folders["bart"], tmp_path / "bart")
    path = tmp_path / "bart" / "generation_config.json"
    habits = {"num_beams": 5, "max_new_tokens": 3, "repetition_penalty": 5.0, "length_penalty": -3.0, "min_length": 9}
    path.write_text(json.dumps({**json.loads(path.read_text()), **habits}))
    changed = Seq2seqWriter.open(str(tmp_path / "bart"), device="cpu", options={"max_tokens": 16, "beams": 2})
    assert changed.write(TASKS[0]).text == opened("bart", max_tokens=16, beams=2).write(TASKS[0]).text


def test_citations_of_nothing_are_flagged(opened: Open) -> None:
    prediction = opened("bart", prompt="we study cats [0] and dogs [9]", max_tokens=12).write(TASKS[0])
    assert prediction.text.startswith("we study cats [0] and dogs [9]")
    assert "[9]" in prediction.sentences[0].unknown
    assert 0 in prediction.sentences[0].attributions


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("REF proposes a parser.", "This paper proposes a parser."),
        ("A parser REF was proposed by REF.", "A parser was proposed by."),
        (" REF and REF show it.", "This paper and show it."),
        ("PREFIX REFERENCE", "PREFIX REFERENCE"),
        ("This paper REF proposes", "This paper proposes"),
        ("", ""),
    ],
)
def test_ref_becomes_this_paper_or_nothing(said: str, read: str) -> None:
    assert processed(said, "ref") == read
    assert processed(said, None) == said.strip()


@given(st.text(st.sampled_from("REF a.\n"), max_size=30))
def test_no_ref_is_left(text: str) -> None:
    assert "REF" not in processed(text, "ref").replace(".", " ").split()


def test_options_may_be_texts() -> None:
    changes: dict[str, Any] = {}
    assign(changes, ["beams=4", "prompt = This paper", "length_penalty=0.5"], tuple)
    changed = recipe("led", "tldr").changed(changes)
    assert changed == Generation(4096, 10, 45, 4, 0.5, 3, prompt="This paper")
    # Nothing turns off what a trained writer does by itself.
    off: dict[str, Any] = {}
    assign(off, ["prompt=", "post_processing="], tuple)
    assert replace(changed, post_processing="ref").changed(off) == replace(changed, prompt=None)
    with pytest.raises(InputError, match=r"'beams' has no '='\. Write -c KEY=VALUE"):
        assign(changes, ["beams"], tuple)


def test_what_few_examples_teach() -> None:
    assert as_citation("We show that we can.") == "This paper REF show that we can."
    assert as_citation("Well, We do.") == "Well, We do."


def test_what_is_wrong_is_said_in_one_line(folders: dict[str, Path], tmp_path: Path) -> None:
    BertModel(
        BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    ).save_pretrained(tmp_path / "bert")
    pickled = shutil.copytree(folders["bart"], tmp_path / "pickled")
    torch.save({}, pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    strange = shutil.copytree(folders["bart"], tmp_path / "strange")
    (strange / "manifest.json").write_text('{"kind": "citerec-writer", "version": 2}')
    (tmp_path / "empty").mkdir()
    bart = str(folders["bart"])
    cases: list[tuple[type[CiterecError], str, str, dict[str, Any]]] = [
        (ModelError, "there is no model folder './nowhere'", "./nowhere", {}),
        (ModelError, "cannot be loaded", str(tmp_path / "empty"), {}),
        (ModelError, "is no encoder-decoder or causal model", str(tmp_path / "bert"), {}),
        (ModelError, "model.safetensors", str(pickled), {}),
        (ModelError, "is not of a writer that this citerec reads", str(strange), {}),
        (ModelError, "room for 64 tokens, max_input_tokens is 65. Give at most 64", bart, {"max_input_tokens": 65}),
        (ModelError, "room for 64 tokens, max_tokens is 2000", bart, {"max_tokens": 2000}),
        (InputError, "there is no option 'beam' of a seq2seq writer. Give max_input_tokens, ", bart, {"beam": 2}),
        (InputError, "beams: Input should be greater than or equal to 1", bart, {"beams": 0}),
        (InputError, "beams: Input should be a valid integer", bart, {"beams": "many"}),
        (InputError, "post_processing: Input should be 'ref'", bart, {"post_processing": "none"}),
        (InputError, "min_tokens is above max_tokens, 20", bart, {"min_tokens": 30, "max_tokens": 20}),
        (InputError, "max_tokens: Input should be a valid integer", bart, {"max_tokens": ""}),
        *(
            (InputError, f"there is no option '{name}' of a seq2seq writer", bart, {name: "x"})
            for name in ("task", "device", "name", "generation", "options", "cls")
        ),
    ]
    for kind, words, name, options in cases:
        with pytest.raises(kind) as error:
            Seq2seqWriter.open(name, device="cpu", options=options)
        assert words in str(error.value), str(error.value)
        assert "\n" not in str(error.value)
    for device in ("foo", "meta", "cuda:99", "cpu:x"):
        with pytest.raises(InputError, match=rf"torch has no device '{device}' here\. Give cpu"):
            Seq2seqWriter.open(bart, device=device)


def test_writers_are_opened_by_folder(folders: dict[str, Path]) -> None:
    writer = open_writer(str(folders["led"]), "tldr")
    assert writer.name == "led"
    assert writer.settings["kind"] == "tldr"
    assert not writer.is_oracle


def test_a_text_may_begin_as_the_target_does_and_is_then_an_oracles(opened: Open) -> None:
    tasks = [
        replace(task, targets=(target, "other"))
        for task, target in zip(TASKS, ["cats and dogs are", "dogs", "a model for parsing ."] * 4, strict=True)
    ]
    writer = opened("bart", max_tokens=12, beams=2, gold_prompt=3)
    assert writer.is_oracle
    assert writer.settings["gold_prompt"] == 3
    written = list(writer.write_many(tasks))
    assert all(one.is_oracle for one in written)
    for one in written:
        begun = one.task.targets[0].split()[:3]
        assert one.text.split()[: len(begun)] == begun
    assert [one.text for one in written] == [writer.write(task).text for task in tasks]
    with pytest.raises(WriterError, match="needs a target"):
        writer.write(TASKS[0])


def test_a_task_has_its_own_prompt_and_prefix(opened: Open) -> None:
    writer = opened("bart", max_tokens=12, beams=2, prompt="This paper")
    own = replace(TASKS[0], extra={PROMPT: "cats and"})
    texts = [one.text for one in writer.write_many([TASKS[0], own])]
    assert texts[0].startswith("This paper") and texts[1].startswith("cats and")
    assert not any(one.is_oracle for one in writer.write_many([own]))
    read = encode_task(writer._model, replace(TASKS[0], extra={PREFIX: "propose"}), 40)
    plain = encode_task(writer._model, TASKS[0], 40)
    assert len(read.ids) == len(plain.ids) + 1
    assert read.ids[2:] == plain.ids[1:]
    with pytest.raises(WriterError, match="prompt of 0 is longer"):
        writer.write(replace(TASKS[0], extra={PROMPT: "cats " * 20}))


@pytest.mark.parametrize(("kind", "least", "most", "beams"), [("xsum", 11, 62, 4), ("gigaword", 4, 24, 32)])
def test_news_are_written_as_in_citesums_transfer(kind: Any, least: int, most: int, beams: int) -> None:
    found = recipe("bart", kind)
    assert (found.min_tokens, found.max_tokens, found.beams) == (least, most, beams)
    # A causal model draws one text.
    drawn = recipe("causal", kind)
    assert (drawn.min_tokens, drawn.max_tokens, drawn.beams) == (least, most, 1)
