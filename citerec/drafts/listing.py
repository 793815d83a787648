"""The papers that are shown for a place of a draft: those of the author's own bibliography come first."""

from typing import NamedTuple

from citerec.contexts.split import splitter
from citerec.drafts.bibliography import Bibliography
from citerec.index.columns import words_in
from citerec.records import Answer, Context, Hit, Paper

FITTING = 5
"""Papers of the bibliography come first if they are among so many that the system ranks highest."""
_LONG = 4  # letters: shorter words are mostly "of" and "the"
_SHARED = 2  # words that a sentence must share with the context to support it


def telling_words(context: Context) -> set[str]:
    """The longer words of a sentence and of those before it."""
    return {word for word in words_in(f"{context.text} {context.before}") if len(word) >= _LONG}


class Listed(NamedTuple):
    """A paper that is shown for a context.

    Attributes:
        hit: What the search found; its rank and score stay those of the system.
        key: Its key in the bibliography; None if that lacks the paper and its other editions.
        paper: The edition to cite: the one that the bibliography has, or else that of the hit.
        comes_first: Whether it stands before others because the bibliography has it.
        context: The context.
    """

    hit: Hit
    key: str | None
    paper: Paper
    comes_first: bool
    context: Context

    @property
    def support(self) -> str | None:
        """The sentence of its abstract that supports citing it best, if one does, and no citing sentence is known."""
        if self.hit.citance:
            return None
        wanted, abstract = telling_words(self.context), self.hit.paper.abstract or ""
        sentences = [abstract[start:end] for start, end in splitter()(abstract)]
        shared = [len(wanted.intersection(words_in(sentence))) for sentence in sentences]
        most = max(shared, default=0)
        return sentences[shared.index(most)] if most >= _SHARED else None


def listed(answer: Answer, bibliography: Bibliography, *, own_first: bool = True) -> list[Listed]:
    """The hits of an answer in the order in which an author sees them.

    Those papers of the bibliography come first that are among the best `FITTING`, in the system's order; then all
    others, in that order. No hit is left out, none is added, and the order does not depend on how many are shown.

    Args:
        answer: The hits that are shown, best first.
        bibliography: The author's own.
        own_first: Whether its papers come first; otherwise they only have their keys.
    """

    def one(hit: Hit) -> Listed:
        keys = ((bibliography.key_of(paper), paper) for paper in (hit.paper, *hit.also))
        key, paper = next((each for each in keys if each[0]), (None, hit.paper))
        return Listed(hit, key, paper, bool(key) and own_first and hit.rank <= FITTING, answer.context)

    return sorted(map(one, answer), key=lambda each: not each.comes_first)
