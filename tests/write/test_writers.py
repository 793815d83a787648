"""What every writer of the registry must do, and how writers are found by name."""

import inspect
from pathlib import Path
from typing import get_args

import orjson
import pytest

from citerec.errors import InputError, WriterError
from citerec.write.tasks import Source, TextTask
from citerec.write.writers import WRITERS, Kind, Writer, default_writer, open_writer
from tests.conftest import ROOT
from tests.tiny_seq2seq import write_tiny_bart
from tests.write.test_chat import Endpoint, endpoint  # noqa: F401  a fixture

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
    name: str,
    model: Path,
    endpoint: Endpoint,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CITEREC_CHAT_URL", endpoint.url)
    monkeypatch.setenv("CITEREC_CHAT_MODEL", "tiny")

    def opened() -> Writer:
        return open_writer(str(model) if name == "seq2seq" else name, "citation")

    writer = opened()
    orjson.dumps(dict(writer.settings))
    assert writer.is_oracle == ("oracle" in name)
    first, second = writer.write(TASK), opened().write(TASK)
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
    docs = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert f"`{name}`" in docs or f"--writer {name}" in docs or name == "seq2seq", f"{name} is not in the docs"


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_text_has_a_writer_by_default_that_needs_no_model(kind: Kind) -> None:
    assert open_writer(default_writer(kind), kind).write(TASK).text


def test_a_model_takes_the_place_of_seq2seq() -> None:
    with pytest.raises(InputError, match="there is no model 'seq2seq'"):
        open_writer("seq2seq", "citation")
