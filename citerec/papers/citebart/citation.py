"""What CiteBART reads and writes (EMNLP 2025): a passage with a mask for the citation, and author and year for it."""

import re
import unicodedata
from typing import TYPE_CHECKING

from citerec.contexts.topic import Topic, clean
from citerec.records import MARKER, Paper

if TYPE_CHECKING:
    from citerec.models.text_models import Encoded, TextModel


def citation_of(paper: Paper) -> str:
    """`Surname, year`, `Surname and Surname, year` or `Surname et al., year`; empty if author or year is unknown."""
    names = [name.split()[-1] for name in paper.authors if name.strip()]
    if not names or paper.year is None:
        return ""
    who = {1: names[0], 2: " and ".join(names)}.get(len(names), f"{names[0]} et al.")
    return f"{who}, {paper.year}"


def normalised(citation: str) -> str:
    """The words of a citation without accents, case and punctuation: what citations are compared by."""
    plain = unicodedata.normalize("NFKD", citation).casefold()
    return " ".join(re.findall(r"\w+", "".join(one for one in plain if not unicodedata.combining(one))))


def input_of(model: "TextModel", topic: Topic, max_tokens: int) -> "Encoded":
    """The passage with the mask in place of the marker, then title and abstract of the citing paper, if known.

    What is too long is cut at its end.
    """
    context = topic.context
    around = (context.before, context.after) if topic.neighbours else ("", "")
    sentence = f" {model.mask} ".join(clean(part) for part in context.text.split(MARKER))
    if MARKER not in context.text:
        sentence = f"{sentence} {model.mask}"
    citing = topic.citing
    texts = [clean(around[0]), sentence, clean(around[1]), topic.citing_title, (citing and citing.abstract) or ""]
    return model.encode_text(" ".join(" ".join(texts).split()), max_tokens)
