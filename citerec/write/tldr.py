"""TLDRs of papers: from the corpus if it has one, else from a writer, and which of the two."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citerec.records import Paper
from citerec.write.tasks import Source, TextTask
from citerec.write.writers.base import Writer


@dataclass(frozen=True, slots=True)
class Tldr:
    """A paper in a sentence.

    Attributes:
        text: The sentence; None if there is neither a TLDR nor an abstract.
        origin: `corpus` if it came with the paper, else the name of the writer.
    """

    paper: Paper
    text: str | None
    origin: str


def tldrs(papers: Iterable[Paper], writer: Writer, *, anew: bool = False) -> Iterator[Tldr]:
    """A TLDR of each paper, in order: the corpus's own, else (or always, if `anew`) the writer's, from the abstract."""
    papers = list(papers)
    to_write = (paper for paper in papers if paper.abstract and (anew or not paper.tldr))
    tasks = (TextTask(paper.paper_id, (Source.of(paper),)) for paper in to_write)
    texts = {prediction.task.task_id: prediction.text for prediction in writer.write_many(tasks)}
    for paper in papers:
        if paper.paper_id in texts:
            yield Tldr(paper, texts[paper.paper_id] or None, writer.name)
        else:
            yield Tldr(paper, paper.tldr, "corpus")
