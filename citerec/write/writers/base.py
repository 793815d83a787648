"""The interface of writers, and their registry."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from citerec.contexts.provenance import NOTHING, Provenance
from citerec.errors import InputError, WriterError, first_fault
from citerec.files.registry import Registry
from citerec.write.tasks import Prediction, TextTask

Kind = Literal["citation", "tldr", "related-work", "xsum", "gigaword"]
Options = TypeVar("Options")
MODEL = "seq2seq"
"""The writer that opens models by folder, or by name on the hub."""


class Writer(Protocol):
    """Writes texts. A writer needs `write` or `write_many`: each calls the other by default.

    Attributes:
        name: Its name in tables and files: "lexrank", "allenai/led-base-16384".
        settings: Everything that its texts depend on, as JSON.
        is_oracle: Whether it looks at the targets: an upper bound, not a system.
        provenance: What it learned from; nothing if citerec did not train it.
    """

    name: str
    settings: Mapping[str, Any]
    is_oracle: bool = False
    provenance: Provenance = NOTHING

    def prepare(self, tasks: Iterable[TextTask]) -> None:  # noqa: ARG002
        """Sees all tasks of a file once before it writes for them; most writers do not look."""
        return

    def write(self, task: TextTask) -> Prediction:
        """A text, and for each sentence its attributions.

        Raises:
            WriterError: It cannot write: no model, no answer, or no target if it needs one.
        """
        return next(iter(self.write_many([task])))

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Prediction]:
        """Texts for many tasks, in their order; several at once if that is faster. Errors as for `write`."""
        return map(self.write, tasks)


class WriterPart(NamedTuple):
    """A writer in the registry.

    Attributes:
        open: Opens it: `open(name, kind)`, with `options` and `device` by keyword if it takes them. Heavy packages are
            imported there.
    """

    name: str
    open: Callable[..., Writer]


_DEFAULTS: Mapping[Kind, str] = {"citation": "attributed", "related-work": "attributed", "tldr": "trained"}
WRITERS: Registry[WriterPart] = Registry(
    "writer",
    {
        "attributed": "citerec.write.writers.extractive:ATTRIBUTED",
        "contribution": "citerec.write.writers.extractive:CONTRIBUTION",
        "trained": "citerec.write.writers.trained:TRAINED",
        "chat": "citerec.write.writers.models:CHAT",
        MODEL: "citerec.write.writers.models:SEQ2SEQ",
    },
    besides=", or the folder of a model, or its name on the hub such as facebook/bart-large",
)


def open_writer(
    name: str | None, kind: Kind, *, device: str | None = None, options: Mapping[str, Any] | None = None
) -> Writer:
    """A writer by name.

    Args:
        name: One of `WRITERS`, or a model for seq2seq, an encoder-decoder or a causal one: a folder, or a name on the
            hub such as `allenai/led-base-16384`; None for the default one of the kind.
        kind: The kind of text.
        device: The device that a model runs on; by default a GPU if there is one.
        options: The writer's own: the fields of `Generation` and `preset`, of `ChatOptions`, or `model` of `trained`;
            values may be strings.

    Raises:
        InputError: There is no such writer or option, or no chat endpoint.
        ModelError: The model cannot be opened.
    """
    name = name or _DEFAULTS.get(kind, "ext-lead")
    is_model = name not in WRITERS and ("/" in name or Path(name).is_dir())
    part = WRITERS[MODEL if is_model else name]
    wanted = {option: value for option, value in (("options", options), ("device", device)) if value}
    if refused := wanted.keys() - inspect.signature(part.open).parameters:
        raise InputError(f"{name} takes no {min(refused)}", "Leave it out, or take another --writer.")
    return part.open(name, kind, **wanted)


def targets_of(task: TextTask) -> tuple[str, ...]:
    """The targets of a task, for writers that see them; a WriterError if it has none."""
    if not task.targets:
        remedy = "It is an upper bound for tasks whose text is known: take another --writer."
        raise WriterError(f"the oracle needs a target, and {task.task_id or 'the task'} has none", remedy)
    return task.targets


def checked(kind: type[Options], values: Mapping[str, Any], whose: str) -> Options:
    """A dataclass of options from values by name; strings are converted. An InputError if one is unknown or wrong."""
    from pydantic import TypeAdapter, ValidationError

    parameters = inspect.signature(kind).parameters
    if unknown := set(values).difference(parameters):
        raise InputError(f"there is no option {min(unknown)!r} of {whose}", f"Give {', '.join(parameters)}.")
    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        raise InputError(f"an option of {whose} is wrong: {first_fault(error)}", "Give another value.") from None
