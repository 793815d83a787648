"""What every writer of the registry must do, how writers are found by name, and how a TLDR is made."""

import inspect
from pathlib import Path
from typing import get_args

import orjson
import pytest

from citerec.errors import InputError, WriterError
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import WRITERS, Kind, open_writer
from citerec.write.writers.trained import forms_of
from tests.tiny_seq2seq import write_tiny_bart
from tests.write.conftest import Endpoint

TASK = TextTask(
    "t",
    (Source("We study trees. They grow. In this paper, we cut them. They fall. Saws are sharp.", title="On trees"),),
    targets=("Trees are cut [0].",),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bart(tmp_path_factory.mktemp("models") / "tiny", ["we study trees . They grow"])


@pytest.mark.parametrize("name", list(WRITERS))
def test_every_writer_keeps_the_contract(
    name: str, model: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEREC_CHAT_URL", endpoint.url)
    monkeypatch.setenv("CITEREC_CHAT_MODEL", "tiny")
    known = str(model) if name == "seq2seq" else name
    writer = open_writer(known, "citation")
    orjson.dumps(dict(writer.settings))
    assert writer.is_oracle == ("oracle" in name)
    first, second = writer.write(TASK), open_writer(known, "citation").write(TASK)
    assert first == second
    assert first.task is TASK and first.writer == writer.name and first.is_oracle == writer.is_oracle
    assert " ".join(sentence.text for sentence in first.sentences).split() == first.text.split()
    assert all(number == 0 for sentence in first.sentences for number in sentence.attributions)
    assert list(writer.write_many([TASK, TASK])) == [first, first]
    assert list(writer.write_many([])) == []
    nothing = writer.write(TextTask("n", (Source(""),), targets=("x",)))
    assert name in ("chat", "seq2seq") or (nothing.text, nothing.sentences) == ("", ())
    if writer.is_oracle:
        with pytest.raises(WriterError, match="needs a target, and u has none"):
            writer.write(TextTask("u", (Source("One."),)))
    taken = inspect.signature(WRITERS[name].open).parameters
    for option, value in {"device": "cpu", "options": {"a": "b"}}.items():
        if option not in taken:
            with pytest.raises(InputError, match=f"{name} takes no {option}"):
                open_writer(name, "citation", **{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_text_has_a_writer_by_default_that_needs_no_model(kind: Kind) -> None:
    assert open_writer(None, kind).write(TASK).text


FAST = "We propose a fast method for sorting."


def forms(sentence: str) -> list[str]:
    return [form.text for form in forms_of(sentence)]


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("In this paper, we propose a fast method for sorting.", FAST),
        ("Inspired by biology, we propose a fast method for sorting.", FAST),
        ("We propose a fast method (FM) for sorting.", FAST),
        ("We propose a fast method for sorting and show that it is stable.", FAST),
        ("We propose a fast method for sorting by comparing all neighbours.", FAST),
    ],
)
def test_what_a_sentence_can_do_without_is_left_out(sentence: str, shorter: str) -> None:
    first, *others = forms(sentence)
    assert first == sentence
    assert shorter in others


@pytest.mark.parametrize(
    "sentence",
    [
        "If the graph has a cycle, we prove that the search ends.",  # a condition
        "We propose a fast method that not only sorts but, using less memory, also searches.",
        "The training of very deep networks using gradients, with noise",  # no verb: no sentence would be left
        "Ideally, we would combine the best of both of these worlds.",
        "We explain in this work how powerful language models using attention are.",
    ],
)
def test_nothing_is_left_out_that_a_sentence_needs(sentence: str) -> None:
    assert forms(sentence) == [sentence]
