"""The leak rules: what an answer to a context must not use. They are implemented only here.

Searches are restricted by `LeakRules.restrict` before they run. Lists from elsewhere (functions, run files, runs in
memory) are checked by `LeakRules.breaches`. Both read the same topics, so the same rules apply to every system.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from citerec.contexts.read import contexts_of_text
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.files.text import printable
from citerec.records import MARKER, NO_FILTERS, Context, Filters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_NO_LIMIT = 9999  # nothing is newer


class Breaches(NamedTuple):
    """Which rows of a run break a rule, (rows,) each; each row breaks at most one."""

    citing_paper: "npt.NDArray[np.bool_]"
    newer: "npt.NDArray[np.bool_]"


@dataclass(frozen=True, slots=True)
class LeakRules:
    """Which rules apply.

    Attributes:
        exclude_citing: The citing paper is no answer to its own context, and its citing sentences are not searched. It
            is known by its id, DOI or title (`citerec.contexts.topic.topics_of`).
        as_of_year: No paper known to be newer than the citing paper is an answer, and no citing sentence newer than it,
            or of unknown year, is searched. If the year of the citing paper is unknown, nothing counts as newer.
    """

    exclude_citing: bool = True
    as_of_year: bool = True

    def restrict(self, topic: Topic, filters: Filters = NO_FILTERS) -> Filters:
        """Filters that also leave out what the answer to a topic must not use."""
        hidden = topic.citing_names if self.exclude_citing else ()
        years = [filters.as_of_year, topic.citing_year if self.as_of_year else None]
        return replace(
            filters,
            citing_ids=hidden or filters.citing_ids,
            as_of_year=min((year for year in years if year is not None), default=None),
        )

    def permits(self, topic: Topic, paper_id: str, year: int | None) -> bool:
        """Whether a paper of a year may be an answer to a topic."""
        allowed = self.restrict(topic)
        return paper_id not in allowed.citing_ids and (
            year is None or allowed.as_of_year is None or year <= allowed.as_of_year
        )

    def permits_sentence(self, topic: Topic, citing_id: str, year: int | None) -> bool:
        """Whether the citing sentences of a paper of a year may be searched for a topic."""
        allowed = self.restrict(topic)
        return citing_id not in allowed.citing_ids and (
            allowed.as_of_year is None or (year is not None and year <= allowed.as_of_year)
        )

    def breaches(
        self,
        topics: Sequence[Topic],
        rows: "npt.NDArray[np.int32]",
        papers: "npt.NDArray[np.int32]",
        paper_ids: Sequence[str],
        years: "npt.NDArray[np.int32]",
    ) -> Breaches:
        """Which rows of a run break a rule.

        Args:
            topics: The topics that were answered.
            rows: Number of the topic of each row, (rows,).
            papers: Number of the paper of each row, (rows,).
            paper_ids: The papers.
            years: Their years, (papers,); 0 where unknown.
        """
        import numpy as np

        limits = [self.restrict(topic) for topic in topics]
        numbers = {paper_id: number for number, paper_id in enumerate(paper_ids)}
        most = max((len(limit.citing_ids) for limit in limits), default=0)
        hidden = np.full((len(limits), most), -1, np.int32)
        for row, limit in enumerate(limits):
            hidden[row, : len(limit.citing_ids)] = [numbers.get(citing_id, -1) for citing_id in limit.citing_ids]
        citing = (hidden[rows] == papers[:, None]).any(axis=1)
        latest = np.array([_NO_LIMIT if limit.as_of_year is None else limit.as_of_year for limit in limits], np.int32)
        return Breaches(citing, ~citing & (years[papers] > latest[rows]))


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
