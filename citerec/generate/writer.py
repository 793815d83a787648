"""What every writer takes and gives."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from citerec.texts.tasks import TextTask, Written


class Writer(Protocol):
    """Writes texts.

    Attributes:
        name: What tables and files call it: "lexrank", "allenai/led-base-16384".
        settings: All that its texts depend on, as JSON takes it.
        knows_target: Whether it looks at what the author wrote: an upper bound, not a system.
        remark: What is to be told of the texts written so far.
    """

    @property
    def name(self) -> str:
        """What tables and files call it."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that its texts depend on."""

    @property
    def knows_target(self) -> bool:
        """Whether it looks at the targets."""

    @property
    def remark(self) -> str:
        """What is to be told of the texts written so far, such as inputs that were cut; mostly nothing."""

    def write(self, task: TextTask) -> Written:
        """A text, and for each sentence the sources that it was drawn from.

        Raises:
            WriterError: It cannot write: no model, no answer, no target where it needs one.
        """

    def write_many(self, tasks: Iterable[TextTask]) -> Iterator[Written]:
        """Texts for many tasks, in their order; several at once where that is faster. Errors as for `write`."""
