"""What every writer takes and gives, and the registry of writers."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from citerec.errors import InputError, first_fault
from citerec.groundwork.registry import Registry
from citerec.texts.tasks import Prediction, TextTask

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = Literal["citation", "tldr", "related-work"]
Options = TypeVar("Options", bound="DataclassInstance")
SEQ2SEQ = "seq2seq"
"""The writer that opens models: by a folder, or a name on the hub."""


class Writer(Protocol):
    """Writes texts.

    Attributes:
        name: What tables and files call it: "lexrank", "allenai/led-base-16384".
        settings: All that its texts depend on, as JSON takes it.
        is_oracle: Whether it looks at what the author wrote: an upper bound, not a system.
        remark: What is to be told of the texts written so far.
    """

    @property
    def name(self) -> str:
        """What tables and files call it."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that its texts depend on."""

    @property
    def is_oracle(self) -> bool:
        """Whether it looks at the targets."""

    @property
    def remark(self) -> str:
        """What is to be told of the texts written so far, such as inputs that were cut; mostly nothing."""

    def write(self, task: TextTask) -> Prediction:
        """A text, and for each sentence the sources that it was drawn from.

        Raises:
            WriterError: It cannot write: no model, no answer, no target where it needs one.
        """

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order; several at once where that is faster. Errors as for `write`."""


@dataclass(frozen=True, slots=True)
class WriterPart:
    """A writer as the registry knows it. It is one file of this package, or an entry point of `citerec.writers`.

    Attributes:
        name: What it is asked for by.
        open: Opens it: `open(name, kind)`, with those of the options of `open_writer` by keyword that it takes. Heavy
            packages are imported there.
        is_oracle: Whether it looks at the targets: an upper bound, not a system.
        default_for: The kinds of text that it writes where no writer is named.
        order: Its place among the writers: the lowest number comes first.
    """

    name: str
    open: Callable[..., Writer]
    is_oracle: bool = False
    default_for: tuple[Kind, ...] = ()
    order: int = 1000


WRITERS: Registry[WriterPart] = Registry(
    "writer",
    "citerec.generate.writers",
    order=lambda part: part.order,
    besides=", or the folder of a model, or its name on the hub such as facebook/bart-large",
)


def default_writer(kind: Kind) -> str:
    """The name of the writer of a kind of text where none is named: it needs no model."""
    return next(name for name, part in WRITERS.items() if kind in part.default_for)


def open_writer(
    name: str,
    kind: Kind,
    *,
    words: int | None = None,
    device: str | None = None,
    chat_model: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Writer:
    """A writer by name.

    Args:
        name: One of `WRITERS`, or a model for seq2seq: a folder, or a name on the hub such as
            `allenai/led-base-16384`.
        kind: What it is to write.
        words: How long, for writers that must be told; as long as the target, else `graphs.WORDS`, by default.
        device: Where a model runs; a GPU where there is one by default.
        chat_model: What `chat` asks for; what the environment says by default.
        options: The writer's own, such as those of `Seq2seqWriter.open` and `ChatWriter.from_environment`; texts will
            do.

    Raises:
        InputError: There is no such writer or option, or the chat endpoint is not told.
        ModelError: The model cannot be opened.
    """
    is_model = name not in WRITERS and ("/" in name or Path(name).is_dir())
    part = WRITERS[SEQ2SEQ if is_model else name]
    given = {"options": options, "device": device, "chat_model": chat_model, "words": words}
    taken = inspect.signature(part.open).parameters
    for option, value in given.items():
        if value and option not in taken:
            flag = option.removesuffix("s" if option == "options" else "").replace("_", "-")
            raise InputError(f"{name} takes no --{flag}", "Leave it out, or take another --writer.")
    return part.open(name, kind, **{option: value for option, value in given.items() if option in taken})


def checked(kind: type[Options], values: Mapping[str, Any], whose: str) -> Options:
    """A dataclass of options, each value made of its type.

    Args:
        kind: The dataclass.
        values: Its values by name; texts will do for numbers.
        whose: Whose options they are, for errors.

    Raises:
        InputError: There is no such option, or a value is out of its range.
    """
    from pydantic import TypeAdapter, ValidationError

    check_names(values, [option.name for option in fields(kind)], whose)
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        raise InputError(f"an option of {whose} is wrong: {first_fault(error)}", "Give another value.") from None


def check_names(given: Iterable[str], known: Sequence[str], whose: str) -> None:
    """Whether all options that are given are known.

    Raises:
        InputError: There is no such option.
    """
    if unknown := sorted(set(given) - set(known)):
        raise InputError(f"there is no option {unknown[0]!r} of {whose}", f"Give {', '.join(known)}.")


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """Options from KEY=VALUE, as a command line has them.

    Raises:
        InputError: One has no `=`.
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [key for key, sign, _ in pairs if not sign]:
        raise InputError(f"{wrong[0]!r} sets no option", "Give KEY=VALUE, for example beams=4.")
    return {key.strip(): value.strip() for key, _, value in pairs}
