"""`citerec write`: citation texts, TLDRs and related work, written from the papers of an index."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from citerec.cli.commands import group
from citerec.cli.console import give, note, output, print_entries, say
from citerec.cli.options import (
    Assignments,
    Config,
    Count,
    Device,
    Format,
    FullTexts,
    GivenInput,
    IndexPath,
    Out,
    OutFile,
    SystemOptions,
    index_of,
    known_input,
    refuse_without,
)
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.records import MARKER, Paper, json_id

if TYPE_CHECKING:
    from citerec.corpus.store import PaperStore
    from citerec.write.citation import CitationText
    from citerec.write.tldr import Tldr
    from citerec.write.writers import Kind, Writer

write = group(
    "write",
    "Write citation texts, TLDRs and related work from papers.\n\n"
    "Every sentence names the papers that it is based on; a citation of anything else is flagged. The "
    "default writers need no model and no network.\n\n"
    'Example: citerec write citation "Attention suffices to translate <REF>."',
)
_Form = Annotated[
    Literal["table", "json", "bibtex", "csl", "ris"],
    Parameter(
        name="--format",
        help="How the text is given: table shows it with its papers; the others give JSON, or "
        "the papers' entries only.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Writing:
    """What writes.

    Attributes:
        writer: The writer (docs/writing.md); or a model, encoder-decoder or causal: its folder, or a name such as
            allenai/led-base-16384. Those with oracle in their name look at the target: upper bounds.  [default: the
            one that needs no model]
    """

    writer: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None
    device: Device = None

    def open(self, kind: "Kind", changes: Iterable[str], words: int | None = None) -> "Writer":
        """The writer, or the default one of a kind of text; `changes` are its settings as KEY=VALUE."""
        from citerec.write.writers.base import assignments, default_writer, open_writer

        options = assignments(changes)
        return open_writer(
            self.writer or default_writer(kind),
            kind,
            words=words,
            device=self.device,
            chat_model=options.pop("chat_model", None),
            options=options,
        )


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class WriterSettings(SystemOptions):
    """The settings of the writer.

    Attributes:
        assignments: Change one setting of the writer, such as writer.beams=4 or 'writer.prompt=This paper'; may be
            repeated. Keys: docs/writing.md.
        config: A TOML file of such settings; -c wins over it.
    """

    system: Annotated[str | None, Parameter(parse=False)] = None
    assignments: Assignments = ()
    config: Config = None


@write.command
def citation(
    sentence: str,
    /,
    *,
    k: Annotated[Count, Parameter(name="-k")] = 3,
    papers: Annotated[str | None, Parameter(metavar="IDS|FILE")] = None,
    title: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    citing: Annotated[str | None, Parameter(metavar="ID")] = None,
    writing: Writing = Writing(),
    index: IndexPath = None,
    chosen: SystemOptions = SystemOptions(),
    form: _Form = "table",
    out: OutFile = None,
) -> None:
    """Find papers for <REF> in SENTENCE, and write a text that cites them.

    The numbers in the text refer to the papers listed below it. Settings of the writer begin with writer, such as
    -c writer.beams=4 (docs/writing.md).

    Example: citerec write citation "Attention suffices to translate <REF>." --index indexes/demo -k 3

    Args:
        sentence: The sentence, with <REF> for the citation.
        k: How many papers to cite.
        papers: Cite these instead of searching: comma-separated ids, or a file of them.
        title: Title of the paper that you write.
        citing: The paper of the index that you write: it is never cited.
    """
    from citerec.contexts.read import contexts_of_text
    from citerec.recommend import Recommender
    from citerec.systems import Recipe, default_system
    from citerec.write.citation import citation_task, draft, with_citations
    from citerec.write.related_work import read_ids

    place = index_of(index)
    if sentence.count(MARKER) != 1:
        raise InputError(
            f"the sentence holds {sentence.count(MARKER)} {MARKER}",
            f'Write one, for example: "… was shown by {MARKER} …"',
        )
    opened = writing.open("citation", chosen.changes("writer."))
    name = chosen.system or default_system(place)
    with Recommender.open(place, Recipe.load(name, chosen.changes())) as recommender:
        (context,) = contexts_of_text(sentence)
        found = _known(recommender.store, read_ids(papers), place) if papers is not None else []
        own = _known(recommender.store, [citing], place) if citing else []
        if citing and own[0] in found:
            raise InputError(f"{citing} is both in --papers and --citing", "A paper does not cite itself.")
        if papers is None:
            named = replace(context, citing_id=citing, citing_title=title)
            found = [hit.paper for hit in recommender.search(named, k)]
        if not found:
            raise InputError("no paper shares a word with the sentence", "Write more of it, or name --papers.")
    made = draft(citation_task(context, found, own[0] if own else None), found, opened)
    resolved = with_citations(context, found)
    facts = {"sentence": resolved} | ({"system": name} if papers is None else {})
    _give_draft(made, form, out, facts)
    if form == "table" and papers is None and chosen.system is None:
        note(f"System: {name}, the best that {place} supports.")
    _remark(opened)


@write.command
def tldr(
    paper_ids: tuple[str, ...],
    /,
    *,
    writing: Writing = Writing(),
    settings: WriterSettings = WriterSettings(),
    index: IndexPath = None,
    form: Format = "table",
    out: OutFile = None,
    anew: bool = False,
) -> None:
    """Sum up papers in one sentence each.

    If the corpus has a TLDR, such as Semantic Scholar's, that is shown. Otherwise the writer makes one
    from the abstract. The output says which of the two it is.

    Example: citerec write tldr 900000032 900000158 --index indexes/demo

    Args:
        paper_ids: Ids of papers.
        anew: Write a TLDR even if the corpus has one.
    """
    from citerec.index.manifest import manifest_and_store
    from citerec.write.tldr import tldrs

    opened, place = writing.open("tldr", settings.changes("writer.")), index_of(index)
    with contextlib.closing(manifest_and_store(place)[1]) as store:
        papers = _known(store, paper_ids, place)
    made = list(tldrs(papers, opened, anew=anew))
    give(form, out, json=lambda: [_tldr_json(one) for one in made], table=lambda: _show_tldrs(made))
    _remark(opened)


@write.command
def related_work(
    *,
    papers: Annotated[str, Parameter(metavar="IDS|FILE")],
    target: Annotated[str | None, Parameter(metavar="ID|FILE|TEXT")] = None,
    given: GivenInput = "abstracts",
    full_texts: FullTexts = (),
    words: Count | None = None,
    writing: Writing = Writing(),
    settings: WriterSettings = WriterSettings(),
    index: IndexPath = None,
    form: _Form = "table",
    out: OutFile = None,
) -> None:
    """Write related work from papers that you name.

    Example: citerec write related-work --papers 900000032,900000158 --index indexes/demo

    Args:
        papers: Papers to cite: ids with commas, or a file of them.
        target: The paper that you write: its id, or its abstract.
        words: Length in words, for writers that need one.  [default: 150]
    """
    from citerec.index.manifest import manifest_and_store
    from citerec.write.citation import draft
    from citerec.write.related_work import read_ids, related_work_task, target_of

    place, given = index_of(index), known_input(given) or "abstracts"
    opened = writing.open("related-work", settings.changes("writer."), words)
    with contextlib.closing(manifest_and_store(place)[1]) as store:
        found = _known(store, read_ids(papers), place)
        task = related_work_task(found, target_of(target, store), given, full_texts, lambda line: note(line, "yellow"))
    _give_draft(draft(task, found, opened), form, out)
    _remark(opened)
    _tell_oracle(given)


@write.command
def batch(
    tasks: Path,
    /,
    *,
    out: Out,
    kind: Literal["citation", "tldr", "related-work", "xsum", "gigaword"] = "citation",
    writing: Writing = Writing(),
    settings: WriterSettings = WriterSettings(),
    words: Count | None = None,
    given: GivenInput = None,
    full_texts: FullTexts = (),
    limit: Count | None = None,
) -> None:
    """Write a prediction for every task of a file.

    TASKS has the format of CiteBench, SciTLDR or OARelatedWork: JSON Lines, one JSON list, or Parquet
    (docs/formats.md). Measure the predictions with citerec eval-text.

    Example: citerec write batch tasks.jsonl --writer lexrank --out lexrank.jsonl

    Args:
        tasks: The tasks.
        out: The file to write: each task with its prediction.
        kind: Kind of text; it sets the prompts and lengths of models.
        words: Length in words, for writers that need one.  [default: the target's]
        limit: Stop after this many tasks.
    """
    from citerec.write.batch import write_batch

    given = known_input(given)
    refuse_without("--input", given, full_texts=full_texts or None)
    opened = writing.open(kind, settings.changes("writer."), words)
    with progress_bar() as on_progress:
        done = write_batch(
            tasks,
            opened,
            out,
            input_name=given,
            full_texts=full_texts,
            limit=limit,
            note=lambda line: note(line, "yellow"),
            on_progress=on_progress,
        )
    empty = f" Empty: {done.empty:,}." if done.empty else ""
    flagged = f" Citing papers that they were not given: {done.flagged:,} (see `unknown`)." if done.flagged else ""
    texts = f"{done.texts:,} text{'' if done.texts == 1 else 's'}"
    say(f"{out}: {texts} by {opened.name}.{empty}{flagged}")
    _remark(opened)
    if opened.is_oracle:
        note(f"{opened.name} looks at the targets: an upper bound, not a system.")
    _tell_oracle(given)


def _give_draft(made: "CitationText", form: str, out: Path | None, facts: dict[str, str] | None = None) -> None:
    """Gives a text with its papers; `facts` are its sentence, and the system that found its papers."""
    from citerec.write.citation import draft_json

    facts = facts or {}
    give(
        form,
        out,
        json=lambda: {**facts, **draft_json(made, form="bibtex")},
        table=lambda: _show_draft(made, facts.get("sentence", "")),
        papers=lambda: made.papers,
    )
    if form == "table":
        _warn(made)


def _known(store: "PaperStore", paper_ids: Iterable[str], index: Path) -> list[Paper]:
    """Papers by id, in order."""
    wanted = list(dict.fromkeys(paper_id.strip() for paper_id in paper_ids if paper_id.strip()))
    found = store.papers(wanted)
    if missing := [paper_id for paper_id in wanted if paper_id not in found]:
        raise InputError(
            f"{index} has no paper {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}",
            "citerec recommend shows the id after each paper.",
        )
    return [found[paper_id] for paper_id in wanted]


def _remark(writer: "Writer") -> None:
    if writer.remark:
        note(writer.remark)


def _tell_oracle(given: str | None) -> None:
    from citerec.write.tasks import sees_target

    if given and sees_target(given):
        note(f"The input {given} is cut by looking at the targets: an upper bound, not a system.")


def _warn(made: "CitationText") -> None:
    unknown = sorted({mark for sentence in made.prediction.sentences for mark in sentence.unknown})
    if unknown:
        note(f"{made.prediction.writer} cited {', '.join(unknown)}, which is no paper that it was given.", "red")
    if made.without_text and len(made.without_text) < len(made.papers):
        named = ", ".join(paper.paper_id for paper in made.without_text)
        note(f"Without text, so nothing is based on them: {named}.")
    if not made.prediction.text:
        note(f"{made.prediction.writer} found nothing to write; another --writer may.")


def _show_draft(draft: "CitationText", sentence: str) -> None:
    """Shows a draft: its sentence, the text, the papers that the numbers refer to, and their entries."""
    from rich.table import Table
    from rich.text import Text

    from citerec.cli.tables import about

    console = output()
    if sentence:
        console.print(Text(f"\n{sentence}", "italic"))
    console.print(Text.assemble("\n", *_parts(draft), f"  — {draft.prediction.writer}\n"), soft_wrap=False)
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="bold yellow", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for place, paper in enumerate(draft.papers):
        lines = Text.assemble((paper.title or "(untitled)", "bold"), "\n", about(paper))
        table.add_row(f"[{place}]", lines.append("  no abstract", "yellow") if paper in draft.without_text else lines)
    console.print(table)
    print()
    print_entries(draft.papers, "bibtex")


def _parts(draft: "CitationText") -> list[Any]:
    """The sentences, each with the papers that it is based on but does not cite itself."""
    from citerec.write.anchors import marked_sentence, mentions, placed

    sources = draft.prediction.task.sources
    parts: list[Any] = []
    for gap, sentence in placed(draft.prediction):
        parts.append(gap)  # keeps paragraphs
        if sentence is None:
            break
        parts.append((marked_sentence(sentence, sources), "red" if sentence.unknown else ""))
        cited = {number for mention in mentions(sentence.text, sources) for number in mention.sources}
        silent = [number for number in sentence.attributions if number not in cited]
        if silent:
            parts.append((f" ‹from {', '.join(map(str, silent))}›", "dim"))
        if not sentence.attributions and not sentence.unknown:
            parts.append((" ‹from none of the papers›", "yellow"))
        if sentence.unsupported:
            parts.append((f" ‹little of it is in {', '.join(map(str, sentence.unsupported))}›", "yellow"))
    return parts


def _show_tldrs(tldrs: "list[Tldr]") -> None:
    """Shows TLDRs, each under the title of its paper."""
    from rich.text import Text

    from citerec.cli.tables import about, tldr_line

    console = output()
    for tldr in tldrs:
        console.print(Text.assemble((tldr.paper.title or "(untitled)", "bold"), "\n", about(tldr.paper)))
        console.print(tldr_line(tldr))
        console.print()


def _tldr_json(tldr: "Tldr") -> dict[str, Any]:
    """A TLDR as a JSON object; `origin` is `corpus`, or the name of the writer."""
    return {
        "paper_id": json_id(tldr.paper.paper_id),
        "title": tldr.paper.title,
        "tldr": tldr.text,
        "origin": tldr.origin if tldr.text is not None else None,
    }
