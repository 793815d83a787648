"""The one function that turns a context into what is searched for, and the cleaning that citances share with it."""

import html
import re
from dataclasses import dataclass

from citerec.records import MARKER, Context

# Every pattern is linear: no part can match what the next one matches, and repeats are bounded.
_MARKUP = re.compile(r"</?[A-Za-z][A-Za-z0-9:]{0,30}(?:\s[^<>]{0,300})?/?>")
# As pandoc reads it: no space inside the dollars, no digit after them: "$5 … $10" is money.
_MATH = re.compile(r"\$\$[^$]{1,500}\$\$|\$(?!\s)[^$]{1,500}(?<!\s)\$(?!\d)|\\\([^$]{1,300}?\\\)|\\\[[^$]{1,300}?\\\]")
_LATEX_CITATION = re.compile(r"~?\\(?:no)?[cC]ite[a-zA-Z]*\*?(?:\[[^\]]{0,100}\]){0,2}\{[^{}]{0,500}\}")
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+\*?")
_NUMBERED = re.compile(r"\[\s?\d{1,4}(?:\s?[,;–—-]\s?\d{1,4}){0,50}\s?\]")
# Names, "and", "et al." and nothing else before the first year.
_NAME = r"(?:[A-Z][^\s(),;]{0,40}|and|&|et|al\.?|de|la|van|von|der|den)"
_AUTHOR_YEAR = re.compile(
    rf"\((?:(?:see|e\.g\.|cf\.|i\.e\.),?\s)?(?:{_NAME}(?:,\s?|\s)){{1,12}}(?:1[89]|20)\d\d[^()]{{0,300}}\)"
)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S{1,300}")


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for.

    Attributes:
        text: The words of the sentence.
        neighbours: The words of the sentences around it; they weigh less.
        citing_title: The words of the citing paper's title, where it is known.
        citing_id: The citing paper, where it is in the index.
    """

    text: str
    neighbours: str = ""
    citing_title: str = ""
    citing_id: str | None = None

    @property
    def passage(self) -> str:
        """The sentence, then those around it, as one text: what models read. The sentence is cut last."""
        return f"{self.text} {self.neighbours}".strip()


def query_of(context: Context, *, neighbours: bool = True, citing_title: str = "") -> Query:
    """What is searched for a context. Training, serving and evaluation all ask this function.

    Args:
        context: A sentence, with or without `<REF>`.
        neighbours: Whether the sentences before and after take part.
        citing_title: The title of the citing paper, where it is known.
    """
    around = f"{context.before} {context.after}" if neighbours else ""
    return Query(clean(context.text), clean(around), clean(citing_title), context.citing_id)


def clean(text: str) -> str:
    """A text without markers, citations, mathematics, markup and addresses, white space folded."""
    text = text.replace(MARKER, " ")
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _MARKUP.sub(" ", text)
    if "\\" in text or "$" in text:
        text = _LATEX_CITATION.sub(" ", text)
        text = _MATH.sub(" ", text)
        text = _LATEX_COMMAND.sub(" ", text)
    if "[" in text:
        text = _NUMBERED.sub(" ", text)
    if "(" in text:
        text = _AUTHOR_YEAR.sub(" ", text)
    if "://" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    return " ".join(text.split())
