"""Extractive writers: sentences of the sources, unchanged."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from citerec.contexts.callouts import trimmed_end
from citerec.files.text import replaced
from citerec.write.mentions import mentions
from citerec.write.sentences import sentences_of
from citerec.write.tasks import Prediction, Sentence, Source, TextTask
from citerec.write.writers.base import Kind, Writer, WriterPart

LEAD_SENTENCES = 3
"""How many sentences LEAD and LexRank take (CiteBench, Funkquist et al. 2023, section 3.3)."""

_HEURISTIC = [re.compile(r"propose|introduce|in this paper", re.IGNORECASE)]
# Phrases for what authors have done, the surest first.
_WE = r"\b(?:we|i|this (?:paper|work|article|study))\b"
_MADE = r"(?:propose|introduce|present|develop)"
_DID = r"(?:show|demonstrate|describe|study|investigate|explore|provide|design|prove|derive|address|analy[sz]e)"
_CONTRIBUTIONS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WE} (?:\w+ )?{_MADE}s?\b",
        r"\b(?:in this (?:paper|work|article|study)|here,? we|paper,? we)\b|propose|introduce",
        rf"{_WE}.*\b(?:{_MADE}|{_DID})",
        r"\bwe\b",
    )
]
# Closing quotes and brackets may follow the end of a sentence.
_END = re.compile(r"([.?!]?)([\"'”’)\]]*)\Z")


@dataclass(frozen=True, slots=True)
class Picked:
    """A sentence that a writer takes, and the numbers of its sources: several if it runs over the end of one."""

    text: str
    attributions: tuple[int, ...]


Pick = Callable[[TextTask], Sequence[Picked]]
Phrase = Callable[[Picked, TextTask], str]


class ExtractiveWriter(Writer):
    """Writes sentences that it picks from the sources.

    Args:
        pick: Picks the sentences, in the order of the text.
        phrase: Rewrites a sentence; by default it is unchanged.
        is_oracle: Whether it looks at the targets.
        settings: The settings that `pick` depends on.
    """

    def __init__(
        self,
        name: str,
        pick: Pick,
        *,
        phrase: Phrase | None = None,
        is_oracle: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.is_oracle = is_oracle
        self.settings = {"writer": name, **(settings or {})}
        self._pick = pick
        self._phrase = phrase or as_it_is

    def write(self, task: TextTask) -> Prediction:
        """The picked sentences; empty if it finds none to pick."""
        picked = self._pick(task)
        sentences = tuple(self._sentence(one, task) for one in picked)
        text = " ".join(sentence.text for sentence in sentences)
        return Prediction(task, text, self.name, sentences, self.is_oracle)

    def _sentence(self, picked: Picked, task: TextTask) -> Sentence:
        text = self._phrase(picked, task)
        ours = () if self._phrase is as_it_is else picked.attributions
        # A sentence's own citations match none of our sources, whatever their numbers.
        others = [
            text[mention.start : mention.end]
            for mention in mentions(text, task.sources)
            if not mention.sources or mention.unknown or not set(mention.sources) <= set(ours)
        ]
        return Sentence(text, picked.attributions, tuple(dict.fromkeys(others)))


def source_sentences(source: Source) -> tuple[str, ...]:
    """The sentences of a source: from its data set if given, else split by rule."""
    return source.sentences or sentences_of(source.text)


def documents(task: TextTask) -> list[tuple[tuple[int, ...], Source]]:
    """What sentences are taken from, each with its attributions: the citing paper if it is given, then the sources.

    The citing paper has no number: it cites, and is not cited.
    """
    own = [((), task.citing_source)] if task.citing_source else []
    return [*own, *(((number,), source) for number, source in enumerate(task.sources))]


def all_sentences(task: TextTask) -> list[Picked]:
    """The sentences of all documents, in order."""
    return lead_each(task, sentences=None)


def lead(task: TextTask, sentences: int = LEAD_SENTENCES) -> list[Picked]:
    """LEAD: the first sentences of the sources, one after another (CiteBench)."""
    return all_sentences(task)[:sentences]


def lead_each(task: TextTask, sentences: int | None = 1) -> list[Picked]:
    """The first sentences of each source (None: all): LEAD of OARelatedWork, EXT-LEAD of CiteSum for one source."""
    return [
        Picked(sentence, attributions)
        for attributions, source in documents(task)
        for sentence in source_sentences(source)[:sentences]
    ]


def contribution_each(task: TextTask, cues: Sequence[re.Pattern[str]] = _CONTRIBUTIONS) -> list[Picked]:
    """The sentence of each source that states its contribution most clearly, else its first.

    With the cue `_HEURISTIC` alone, it is EXT-HEURISTIC (CiteSum, Mao et al. 2022, section 3.1). By default there are
    more phrases, the surest first. They were chosen on SciTLDR's training part; docs/results.md shows the gain.
    """
    return [
        Picked(sentences[contribution_of(sentences, cues)], (number,))
        for number, source in enumerate(task.sources)
        if (sentences := source_sentences(source))
    ]


def contribution_of(sentences: Sequence[str], cues: Sequence[re.Pattern[str]] = _CONTRIBUTIONS) -> int:
    """The number of the sentence that states the contribution most clearly; 0, the first, if none does."""
    found = (number for cue in cues for number, sentence in enumerate(sentences) if cue.search(sentence))
    return next(found, 0)


def as_it_is(picked: Picked, _task: TextTask) -> str:
    """A sentence as it is in its source."""
    return picked.text


def cited(picked: Picked, _task: TextTask) -> str:
    """A sentence with its citation before the full stop: "… [0]."; its own citations are left out."""
    sentence = without_own_citations(picked.text)
    ended = _END.search(sentence)
    assert ended is not None  # it matches the empty end
    citations = "".join(f" [{number}]" for number in picked.attributions)
    return f"{sentence[: ended.start()]}{ended[2]}{citations}{ended[1] or '.'}"


def without_own_citations(sentence: str) -> str:
    """A sentence without its own citations in brackets: their numbers are of another list."""
    in_brackets = (mention for mention in mentions(sentence, ()) if sentence[mention.start] in "([\\【")
    return replaced(sentence, ((trimmed_end(sentence, mention.start, " "), mention.end, "") for mention in in_brackets))


def extractive(
    name: str,
    pick: Pick,
    *,
    phrase: Phrase | None = None,
    is_oracle: bool = False,
    default_for: tuple[Kind, ...] = (),
    **settings: Any,
) -> WriterPart:
    """An extractive writer for the registry; more of its settings by keyword."""

    def opened(name: str, _kind: Kind) -> ExtractiveWriter:
        return ExtractiveWriter(name, pick, phrase=phrase, is_oracle=is_oracle, settings=settings)

    return WriterPart(name, opened, is_oracle, default_for)


CONTRIBUTION = extractive("contribution", contribution_each)
LEAD = extractive("lead", lead, sentences=LEAD_SENTENCES)
LEAD_EACH = extractive("lead-each", lead_each, phrase=cited)
EXT_LEAD = extractive("ext-lead", lead_each, default_for=("xsum", "gigaword"))
EXT_HEURISTIC = extractive("ext-heuristic", functools.partial(contribution_each, cues=_HEURISTIC))
