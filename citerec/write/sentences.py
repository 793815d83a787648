"""Sentences and words of texts."""

import re

from citerec.contexts.split import PYSBD, splitter, splitter_identity
from citerec.write.tasks import Source

_WORD = re.compile(r"\w+(?:(?:[-'’]|(?<=\d)[.,](?=\d))\w+)*")
_TERM = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text, by rule (pysbd); the end of a line ends a sentence too."""
    split = splitter()
    return tuple(line[start:end] for line in text.splitlines() for start, end in split(line))


def sentences_by() -> str:
    """The package of `sentences_of` and its version, for settings."""
    return " ".join(splitter_identity(PYSBD))


def said_by(source: Source) -> str:
    """Title, authors and text of a source, each on separate lines."""
    return "\n".join([source.title, *source.authors, source.text])


def words_of(text: str) -> list[str]:
    """The words of a text as printed: letters and digits, with punctuation inside: don't, 2-gram, 0.50."""
    return _WORD.findall(text)


def terms_of(text: str) -> list[str]:
    """The words of a text for comparison: in lower case, split at hyphens, with straight apostrophes."""
    return [term.replace("’", "'") for term in _TERM.findall(text.lower())]


def content_terms(text: str) -> list[str]:
    """The words of a text for comparison that are neither in `STOP_WORDS` nor numbers."""
    return [term for term in terms_of(text) if term not in STOP_WORDS and not term.isdecimal()]


STOP_WORDS = frozenset(
    terms_of(
        """
        a an the this that these those each every either neither both all any some no none such same other another own
        i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones
        myself ourselves yourself himself herself itself oneself themselves
        who whom whose which what whatever whoever when whenever where wherever why how
        am is are was were be been being do does did doing done have has had having can cannot could may might must
        shall should will would can't don't doesn't didn't isn't aren't wasn't weren't won't not
        and or but nor so yet if then else than because although though while whereas unless until since as whether
        of in on at by for with without within about against among between through throughout during before after above
        below over under up down out off into onto from to toward towards upon via per across along around behind beside
        besides beyond despite except inside outside near
        also too very only just even still already again further here there thus hence therefore however moreover
        furthermore more most less least much many few several et al e.g. i.e. etc.
        """
    )
)
"""The closed word classes of English, which a sentence on any topic needs. The list is citerec's own."""
