"""Prompts that ask a causal language model for a reference, as Galactica reads them (Taylor et al., 2022)."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.errors import ModelError, SettingsError
from citerec.index.generations import trained_of
from citerec.models.find import bare_name, model_or_own
from citerec.records import Paper
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.models.text_models import TextModel

FOLDER = "galactica"
"""The model that is used by default, in the folder of an index."""


class PromptSettings(PartSettings):
    """The model, and how it is asked for a reference."""

    model: str | None = Field(
        default=None,
        description="causal language model: a folder, or a name such as facebook/galactica-125m; "
        f"by default the folder `{FOLDER}` of the index",
    )
    start: str = Field(default="[START_REF]", description="what follows the context, before a reference")
    end: str = Field(default="[END_REF]", description="the token that ends a reference")
    author: bool = Field(default=True, description="whether the first author's surname follows the title")
    max_prompt_tokens: int = Field(
        default=512, ge=1, description="how many tokens of the context are read at most, the last ones"
    )


def check_named(index: Path, settings: PromptSettings, part: str) -> str:
    """The model of the settings, or that of the index. Raises SettingsError if there is neither."""
    if name := model_or_own(settings.model, trained_of(index, FOLDER)):
        return name
    key = f"{part.replace('-', '_')}.model"
    raise SettingsError(
        f"{part} needs a causal language model, and {index} has none",
        f"Name one: -c {key}=facebook/galactica-125m, or a folder; or put its folder at {trained_of(index, FOLDER)}",
    )


def learnt_by_model(index: Path, settings: PromptSettings) -> Learnt:
    """What the model learnt from, if it says so."""
    name = model_or_own(settings.model, trained_of(index, FOLDER))
    return learnt_by_part(bare_name(name)) if name else NOTHING


def open_model(name: str, max_new_tokens: int) -> "TextModel":
    """Opens the model. Raises ModelError if it cannot be opened, or has no room for a prompt beside what is written."""
    from citerec.models.text_models import TextModel

    model = TextModel.open(name, kinds=["causal model"])
    if model.max_input_tokens is not None and max_new_tokens >= model.max_input_tokens:
        raise ModelError(
            f"{name} has room for {model.max_input_tokens} tokens in all, and a reference may have {max_new_tokens}",
            "Give fewer max_new_tokens.",
        )
    return model


def prompt_of(model: "TextModel", topic: Topic, settings: PromptSettings, max_new_tokens: int) -> tuple[int, ...]:
    """The tokens of the context up to the marker, then the start of a reference without a space behind it.

    There is room left for `max_new_tokens`.
    """
    most = settings.max_prompt_tokens
    room = most if model.max_input_tokens is None else min(most, model.max_input_tokens - max_new_tokens)
    return model.last_tokens(f"{topic.lead} {settings.start}".strip(), room)


def reference_to(model: "TextModel", paper: Paper, settings: PromptSettings) -> tuple[int, ...]:
    """The tokens of the reference to a paper, with its end; none if the paper has no title."""
    title = " ".join(paper.title.split())
    if not title:
        return ()
    name = f", {surname(paper)}" if settings.author and surname(paper) else ""
    return model.continuation(f" {title}{name}{settings.end}", after=settings.start)


def surname(paper: Paper) -> str:
    """The last word of the first author's name; empty if it is unknown."""
    return paper.authors[0].split()[-1] if paper.authors and paper.authors[0].strip() else ""
