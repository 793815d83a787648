"""Citation texts for the place of `<REF>`, from the papers that were found for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from citerec.corpus.bibliographies import entries_of
from citerec.drafts.filling import Filling, as_source
from citerec.errors import WriterError
from citerec.files.text import one_line, replaced
from citerec.records import MARKER, Context, Paper, json_id
from citerec.write.anchors import anchors_of, marked
from citerec.write.task_files import sentence_records, settings_record
from citerec.write.tasks import Prediction, Source, TextTask
from citerec.write.writers.base import Writer


@dataclass(frozen=True, slots=True)
class CitationText:
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


def draft(task: TextTask, papers: Sequence[Paper], writer: Writer) -> CitationText:
    """The writer's text for a task; a WriterError if no paper has a text, or the writer cannot write."""
    if not any(source.text for source in task.sources) and not task.citing:
        raise WriterError(
            "there is nothing to write from: no paper among those found has an abstract",
            "Build the index with abstracts: citerec index build PAPERS ABSTRACTS --out INDEX",
        )
    return CitationText(replace(writer.write(task), settings=writer.settings), tuple(papers))


def with_citations(context: Context, papers: Sequence[Paper]) -> str:
    """The sentence with the numbers of the papers in place of `<REF>`: "… [0, 1] …"."""
    return context.text.replace(MARKER, f"[{', '.join(map(str, range(len(papers))))}]") if papers else context.text


def in_draft(citation_text: CitationText, filling: Filling) -> str:
    r"""The text as it is written in a draft: "… \citep{salton} …" for "… [0] …".

    Papers have the keys of the bibliography, or those that they would get. What cites no source stays as it is.
    """
    keys: list[str] = []
    for paper in citation_text.papers:
        keys.append(filling.bibliography.key_for(paper, keys))
    text = as_source(filling.path, one_line(marked(citation_text.prediction)))
    numbered = [anchor for anchor in anchors_of(text) if anchor.numbers and max(anchor.numbers) < len(keys)]
    forms = [filling.draft.form(dict.fromkeys(keys[number] for number in anchor.numbers)) for anchor in numbered]
    return replaced(text, [(one.start, one.end, form) for one, form in zip(numbered, forms, strict=True)])


def draft_json(citation_text: CitationText, *, form: str | None) -> dict[str, Any]:
    """A draft as a JSON object (docs/formats.md), with its papers in a form of `entries_of`, or without."""
    value: dict[str, Any] = {
        "text": marked(citation_text.prediction),
        "writer": citation_text.prediction.writer,
        "settings": settings_record(citation_text.prediction),
        "sentences": sentence_records(citation_text.prediction),
        "papers": [
            {"number": number, "paper_id": json_id(paper.paper_id)}
            | {name: getattr(paper, name) for name in ("title", "authors", "year", "venue")}
            | {"has_text": paper not in citation_text.without_text}
            for number, paper in enumerate(citation_text.papers)
        ],
    }
    unique = {paper.paper_id: paper for paper in citation_text.papers}
    return {**value, form: entries_of(unique.values(), form)} if form else value
