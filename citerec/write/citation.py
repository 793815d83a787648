"""Citation texts for the place of `<REF>`, from the papers that were found for it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from citerec.corpus.base import entries_of
from citerec.drafts.filling import Filling, as_source
from citerec.errors import WriterError
from citerec.files.registry import Registry
from citerec.files.text import one_line
from citerec.records import MARKER, Context, Paper, json_id
from citerec.write.anchors import marked
from citerec.write.metrics.base import TEXT_METRICS
from citerec.write.task_files import sentence_records, settings_record
from citerec.write.tasks import Prediction, Source, TextTask
from citerec.write.writers.base import Writer

_NUMBERED = re.compile(r"\[(\d{1,4}(?:, \d{1,4})*)\]")


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
    text, parts, done = one_line(marked(citation_text.prediction)), list[str](), 0
    for match in _NUMBERED.finditer(text):
        numbers = [int(number) for number in match[1].split(", ")]
        if max(numbers) < len(keys):
            citation = filling.draft.form(dict.fromkeys(keys[number] for number in numbers))
            parts += [as_source(filling.path, text[done : match.start()]), citation]
            done = match.end()
    return "".join([*parts, as_source(filling.path, text[done:])])


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


class Tldr(NamedTuple):
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


METRICS = "metrics"
"""The setting of a preset that is no option of a metric: which metrics are computed."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Metrics and options in the registry, as the code of a paper's authors has them.

    `open_metrics(**PRESETS["citebench"].arguments())` opens the metrics, and `used` says for results what was used.

    Attributes:
        name: Its name.
        source: The paper and the files of its authors' code that the settings come from.
        options: Every one of `MetricOptions` that a metric of the preset depends on.
        metrics: The metrics. Those that need a tagger are computed only if one is given.
    """

    name: str
    source: str
    options: Mapping[str, Any]
    metrics: tuple[str, ...]

    def arguments(self, **by_hand: Any) -> dict[str, Any]:
        """The arguments of `open_metrics`.

        Args:
            by_hand: Arguments of `open_metrics` that win over the preset's: `names` or `MetricOptions`.
        """
        taggers = by_hand.get("taggers", {})
        names = [name for name in self.metrics if not TEXT_METRICS[name].needs_tagger or name in taggers]
        return {"names": names, **self.options, **by_hand}

    def used(self, **by_hand: Any) -> dict[str, Any]:
        """The preset as results name it, with what was used in its place.

        Args:
            by_hand: As for `arguments`.

        Returns:
            As JSON: `name`; `source`; `settings`, the metrics and options that were used; and `differs`, the preset's
            own values of those that are others.
        """
        options = self.arguments(**by_hand)
        own = {METRICS: list(self.metrics), **self.options}
        settings = {METRICS: list(dict.fromkeys(options["names"])), **{name: options[name] for name in self.options}}
        differs = {name: value for name, value in own.items() if settings[name] != value}
        return {"name": self.name, "source": self.source, "settings": settings, "differs": differs}


PRESETS: Registry[Preset] = Registry("preset", {})
"""The settings of papers: each stands in the folder of its paper."""
