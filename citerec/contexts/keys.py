r"""Citation keys in a draft: LaTeX `\cite{key}`, pandoc `[@key]`, and `[key]`, with their places."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from citerec.contexts.read import contexts_of_text
from citerec.corpus.store import PaperStore
from citerec.files.text import printable
from citerec.records import MARKER, Context

# Every pattern is linear: repeats are bounded, and no part can match what the next one matches.
_KEY = r"[^\s,;\[\]{}@\\]{1,200}"
_CITATION = re.compile(
    r"\\(?:no)?[a-zA-Z]{0,10}[cC]ite[a-zA-Z]{0,20}\*?(?:\[[^\]]{0,100}\]){0,2}\{(?P<latex>[^{}]{1,2000})\}"
    r"|(?<![\w@])@(?P<pandoc>\w(?:[\w:.#$%&+?<>~/-]{0,200}\w)?)"
    rf"|\[(?P<bracket>{_KEY}(?:[,;]\s?{_KEY}){{0,50}})\]"
)


class Mention(NamedTuple):
    """A key in a text, its place, and whether it stands alone in brackets: `[12]` may be no key but a number."""

    start: int
    key: str
    in_brackets: bool = False


def mentions(text: str) -> Iterator[Mention]:
    """What may be citation keys in a LaTeX or Markdown text, in order; several in one command share its place."""
    for match in _CITATION.finditer(text):
        listed = match["latex"] or match["pandoc"] or match["bracket"]
        for key in re.split(r"[,;]", listed):
            if key.strip():
                yield Mention(match.start(), key.strip(), match["bracket"] is not None)


def contexts_of_draft(
    text: str,
    store: PaperStore,
    cited: Mapping[str, str] | None = None,
    *,
    citing_id: str | None = None,
    citing_title: str | None = None,
) -> list[Context]:
    r"""The contexts of a draft's `<REF>`, in order, with what it cites before each; unknown if no citation is known.

    What the text cites before a `<REF>` by a key (`\cite{key}`, `[@key]`, `[key]`) counts as cited before it, if
    `cited` has the key or the store has a paper of this id; `[12]` must be in `cited`.

    Args:
        text: The draft.
        store: The papers.
        cited: Ids of papers that it cites already, by citation key.
        citing_id: The paper that is written, if the store has it; it is never among what it cites.
        citing_title: Its title, if not.
    """
    text = printable(text)
    keys = list(mentions(text))
    asked = {mention.key for mention in keys if not (mention.in_brackets and mention.key.isdecimal())}
    named = {**{key: key for key in store.papers(asked, texts=False)}, **(cited or {})}
    cites = [(one.start, paper_id) for one in keys if (paper_id := named.get(one.key)) and paper_id != citing_id]
    listed = dict.fromkeys(paper_id for paper_id in (cited or {}).values() if paper_id != citing_id)
    places = [match.start() for match in re.finditer(re.escape(MARKER), text)] or [len(text)]
    contexts = []
    for context, place in zip(contexts_of_text(text), places, strict=True):
        before: tuple[str, ...] | None = None
        if cited is not None or cites:
            mentioned = [paper_id for start, paper_id in cites if start < place]
            known = set(mentioned)
            # Listed papers come first, but a paper stands there as often as the text cites it before the place.
            before = (*(one for one in listed if one not in known), *mentioned)
        contexts.append(replace(context, citing_id=citing_id, citing_title=citing_title, cited_before=before))
    return contexts
