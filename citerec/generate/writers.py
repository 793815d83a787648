"""Writers by name."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from citerec.errors import InputError
from citerec.generate import extractive, graphs, oracles
from citerec.generate.attributed import attributed
from citerec.generate.extractive import ExtractiveWriter, Phrase, Pick
from citerec.generate.writer import Writer

Kind = Literal["citation", "tldr", "related-work"]

DEFAULTS: Mapping[Kind, str] = {"citation": "attributed", "tldr": "contribution", "related-work": "attributed"}
"""The writer of each kind of text if none is named: they need no model."""
_PICKS: Mapping[str, tuple[Pick, Phrase | None, bool]] = {
    "attributed": (extractive.contribution_each, attributed, False),
    "contribution": (extractive.contribution_each, None, False),
    "lead": (extractive.lead, None, False),
    "lead-each": (extractive.lead_each, extractive.cited, False),
    "ext-lead": (extractive.lead_each, None, False),
    "ext-heuristic": (extractive.heuristic_each, None, False),
    "textrank": (graphs.textrank, None, False),
    "lexrank": (graphs.lexrank, None, False),
    "ext-oracle": (oracles.ext_oracle, None, True),
    "ext-oracle-rouge1": (functools.partial(oracles.ext_oracle, by="rouge1", stemming=True), None, True),
    "greedy-oracle": (oracles.greedy_oracle, None, True),
}
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "lead": {"sentences": extractive.LEAD_SENTENCES},
    "textrank": {"share": graphs.TEXTRANK_SHARE},
    "ext-oracle": {"by": "rouge2", "stemming": False},
    "ext-oracle-rouge1": {"by": "rouge1", "stemming": True},
    "greedy-oracle": {"by": "rouge2", "stemming": False},
    "lexrank": {"sentences": extractive.LEAD_SENTENCES, "threshold": graphs.LEXRANK_THRESHOLD},
}
_TEXTRANK_EACH = "textrank-each"
CHAT = "chat"
"""The writer that asks a chat endpoint."""
EXTRACTIVE = (*_PICKS, _TEXTRANK_EACH)
"""Names of the writers that need no model."""


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
        name: One of `EXTRACTIVE`; `chat`; or a model for seq2seq: a folder, or a name on the hub such as
            `allenai/led-base-16384`.
        kind: What it is to write.
        words: How long, for writers that must be told; as long as the target, else `graphs.WORDS`, by default.
        device: Where a model runs; a GPU where there is one by default.
        chat_model: What `chat` asks for; what the environment says by default.
        options: Of `Seq2seqWriter.open` and `ChatWriter.from_environment`; texts will do.

    Raises:
        InputError: There is no such writer or option, or the chat endpoint is not told.
        ModelError: The model cannot be opened.
    """
    given = {"--option": options, "--device": device, "--chat-model": chat_model, "--words": words}
    if ignored := [option for option, value in given.items() if value and option not in _taken(name)]:
        raise InputError(f"{name} takes no {ignored[0]}", "Leave it out, or take another --writer.")
    if name in _PICKS:
        pick, phrase, knows_target = _PICKS[name]
        return ExtractiveWriter(name, pick, phrase=phrase, knows_target=knows_target, settings=_SETTINGS.get(name))
    if name == _TEXTRANK_EACH:
        pick = functools.partial(graphs.textrank_each, words=words)
        return ExtractiveWriter(name, pick, phrase=extractive.cited, settings={"words": words})
    if name == CHAT:
        from citerec.generate.chat import ChatWriter

        return ChatWriter.from_environment(task=kind, model=chat_model, options=options)
    if "/" not in name and not Path(name).is_dir():
        raise InputError(
            f"there is no writer {name!r}",
            f"Writers are {', '.join(EXTRACTIVE)}, {CHAT}, and models: a folder, or a name such as "
            "facebook/bart-large.",
        )
    from citerec.generate.seq2seq import Seq2seqWriter

    return Seq2seqWriter.open(name, task=kind, device=device, options=options)


def _taken(name: str) -> tuple[str, ...]:
    """The options that a writer takes."""
    if name in EXTRACTIVE:
        return ("--words",) if name == _TEXTRANK_EACH else ()
    return ("--option", "--chat-model") if name == CHAT else ("--option", "--device")
