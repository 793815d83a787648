r"""Citation keys in a draft: LaTeX `\cite{key}`, pandoc `[@key]`, and `[key]`, with their places."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    keys = {mention.key for mention in mentions(text) if not (mention.in_brackets and mention.key.isdecimal())}
    named = {**{key: key for key in store.papers(keys, texts=False)}, **(cited or {})}

    def paper_of(mention: Mention) -> str | None:
        paper_id = named.get(mention.key)
        return paper_id if paper_id != citing_id else None

    before = cited_until(text, paper_of, (one for one in (cited or {}).values() if one != citing_id))
    known = cited is not None or any(map(paper_of, mentions(text)))
    return [
        replace(context, citing_id=citing_id, citing_title=citing_title, cited_before=ids if known else None)
        for context, ids in zip(contexts_of_text(text), before, strict=True)
    ]


def cited_until(
    text: str, paper_of: Callable[[Mention], str | None], listed: Iterable[str] = ()
) -> list[tuple[str, ...]]:
    """For each `<REF>` of a text, the papers that it cites before, in order; for a text without one, all it cites.

    Args:
        text: The draft.
        paper_of: The paper of a key; None if it is not known, or is no key.
        listed: Papers that the draft cites somewhere. They come first, unless the text cites them before the place, so
            that a paper stands there as often as it is cited.
    """
    listed = tuple(dict.fromkeys(listed))
    found = [(mention.start, paper_id) for mention in mentions(text) if (paper_id := paper_of(mention))]
    places: Sequence[int] = [match.start() for match in re.finditer(re.escape(MARKER), text)] or [len(text)]
    lists = []
    for place in places:
        before = [paper_id for start, paper_id in found if start < place]
        known = set(before)
        lists.append((*(paper_id for paper_id in listed if paper_id not in known), *before))
    return lists
