"""Citation texts for the place of `<REF>`, from the papers that were found for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from citerec.errors import WriterError
from citerec.generate.writers.base import Writer
from citerec.records import MARKER, Context, Paper
from citerec.texts.tasks import Prediction, Source, TextTask


@dataclass(frozen=True, slots=True)
class Draft:
    """A text, and the papers that `[0]`, `[1]`, … in it mean."""

    prediction: Prediction
    papers: tuple[Paper, ...]

    @property
    def without_text(self) -> tuple[Paper, ...]:
        """The papers that have no abstract or other text."""
        sources = self.prediction.task.sources
        return tuple(paper for paper, source in zip(self.papers, sources, strict=True) if not source.text)


def citation_task(context: Context, papers: Sequence[Paper], citing: Paper | None = None) -> TextTask:
    """The task of writing a citation text for a context, from the papers to cite, and the citing paper if known."""
    return TextTask(
        task_id=context.context_id,
        sources=tuple(map(Source.of, papers)),
        citing=(citing.abstract if citing else None) or "",
        before=" ".join(part for part in (context.before, context.text) if part),
        after=context.after,
    )


def draft(task: TextTask, papers: Sequence[Paper], writer: Writer) -> Draft:
    """The writer's text for a task; a WriterError if no paper has a text, or the writer cannot write."""
    if not any(source.text for source in task.sources) and not task.citing:
        raise WriterError(
            "there is nothing to write from: no paper among those found has an abstract",
            "Build the index with abstracts: citerec index build PAPERS ABSTRACTS --out INDEX",
        )
    return Draft(replace(writer.write(task), settings=writer.settings), tuple(papers))


def with_citations(context: Context, papers: Sequence[Paper]) -> str:
    """The sentence with the numbers of the papers in place of `<REF>`: "… [0, 1] …"."""
    return context.text.replace(MARKER, f"[{', '.join(map(str, range(len(papers))))}]") if papers else context.text
