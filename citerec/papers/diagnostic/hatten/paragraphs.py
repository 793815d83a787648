"""What HAtten reads of a topic and of a paper. Training and search both use these functions."""

from citerec.contexts.topic import Topic
from citerec.records import Paper

TYPES = ("title", "abstract", "context")
"""The types of paragraphs. A title is of one type, whether of the citing paper or of a candidate."""

Paragraph = tuple[int, str]
"""The number of its type, and its text."""

Document = list[Paragraph]
"""The paragraphs of a topic or of a paper."""


def topic_paragraphs(topic: Topic) -> Document:
    """The citing paper's title and abstract, as far as they are known, and the passage without its marker."""
    abstract = topic.citing.abstract if topic.citing else None
    return _present(topic.citing_title, abstract, topic.passage)


def paper_paragraphs(paper: Paper) -> Document:
    """The title and the abstract of a paper, as far as they are known."""
    return _present(paper.title, paper.abstract)


def _present(*texts: str | None) -> Document:
    return [(number, text) for number, text in enumerate(texts) if text]
