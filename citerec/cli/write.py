"""`citerec write`: citation texts, TLDRs and related work, written from the papers of an index."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import note, output, print_entries, print_json, say
from citerec.cli.options import (
    PATH,
    Option,
    PartsOption,
    full_texts_option,
    index_option,
    input_option,
    json_option,
    number,
    one_of,
    path_option,
    refuse_without,
    settings_options,
    with_options,
)
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.records import MARKER, Paper, json_id

if TYPE_CHECKING:
    from citerec.corpus.store import PaperStore
    from citerec.write.citation import CitationText
    from citerec.write.tldr import Tldr
    from citerec.write.writers import Kind, Writer

_entries = [
    click.option(
        "--bibtex/--no-bibtex", "as_bibtex", default=None, help="Print the papers as BibTeX too.  [default: bibtex]"
    ),
    click.option("--csl", "as_csl", is_flag=True, help="Print them as CSL-JSON instead."),
    click.option("--ris", "as_ris", is_flag=True, help="Print them as RIS instead."),
]
_COMMANDS: list["Kind"] = ["citation", "tldr", "related-work"]
_KINDS: list["Kind"] = [*_COMMANDS, "xsum", "gigaword"]


def _form(options: dict[str, Any]) -> str | None:
    """The form in which the papers are printed, taken out of the options; None if they are not."""
    bibtex, csl, ris = (options.pop(f"as_{form}") for form in ("bibtex", "csl", "ris"))
    if sum((bibtex is True, csl, ris)) > 1:
        raise click.UsageError("--bibtex, --csl and --ris exclude each other")
    return "csl" if csl else "ris" if ris else None if bibtex is False else "bibtex"


def _writers() -> dict[str, str]:
    from citerec.write.writers.base import SEQ2SEQ, WRITERS, default_writer

    return {
        "writers": ", ".join(name for name in WRITERS if "oracle" not in name and name != SEQ2SEQ),
        "seq2seq": SEQ2SEQ,
        "oracles": ", ".join(name for name in WRITERS if "oracle" in name),
        **{kind: default_writer(kind) for kind in _COMMANDS},
    }


def _writing(kind: "Kind | None" = None) -> list[Option]:
    """The options of a writer; those of any kind include the oracles."""
    text = "The writer: {writers}; or a model for {seq2seq}, encoder-decoder or causal: its folder, or a name such as "
    text += "allenai/led-base-16384."
    text += f"  [default: {{{kind}}}]" if kind else " Upper bounds that look at the target: {oracles}."
    return [
        click.option(
            "--writer", cls=PartsOption, parts=_writers, required=kind is None, metavar="NAME|FOLDER", help=text
        ),
        click.option("--device", metavar="NAME", help="Device of a model: cuda:0.  [default: a GPU if there is one]"),
        click.option("--chat-model", metavar="NAME", help="Model that chat uses.  [default: CITEREC_CHAT_MODEL]"),
        click.option(
            "--option",
            "assignments_of_writer",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of a model or of chat, such as beams=4 or 'prompt=This paper'; may be repeated. "
            "Keys: docs/writing.md.",
        ),
        *([index_option("The index"), json_option] if kind else []),
    ]


def _words(default: str) -> Option:
    return number("--words", None, f"Length in words, for writers that need one.  [default: {default}]")


@click.group(epilog='Example: citerec write citation "Attention suffices to translate <REF>."')
def write() -> None:
    """Write citation texts, TLDRs and related work from papers.

    Every sentence names the papers that it is based on; a citation of anything else is flagged. The
    default writers need no model and no network.
    """


@write.command(
    epilog='Example: citerec write citation "Attention suffices to translate <REF>." --index indexes/demo -k 3'
)
@click.argument("sentence")
@number("-k", 3, "How many papers to cite.")
@click.option(
    "--papers", metavar="IDS|FILE", help="Cite these instead of searching: comma-separated ids, or a file of them."
)
@click.option("--title", metavar="TEXT", help="Title of the paper that you write.")
@click.option("--citing", metavar="ID", help="The paper of the index that you write: it is never cited.")
@with_options(_writing("citation"))
@with_options(settings_options)
@with_options(_entries)
def citation(
    sentence: str,
    index: Path,
    k: int,
    papers: str | None,
    title: str | None,
    citing: str | None,
    system: str | None,
    assignments: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Find papers for <REF> in SENTENCE, and write a text that cites them.

    The numbers in the text refer to the papers listed below it.
    """
    from citerec.contexts.read import contexts_of_text
    from citerec.recommend import Recommender
    from citerec.systems import Recipe, default_system
    from citerec.write.citation import citation_task, draft, draft_json, with_citations
    from citerec.write.related_work import read_ids

    form = _form(options)
    if sentence.count(MARKER) != 1:
        raise InputError(
            f"the sentence holds {sentence.count(MARKER)} {MARKER}",
            f'Write one, for example: "… was shown by {MARKER} …"',
        )
    opened = _open_writer("citation", options)
    name = system or default_system(index)
    with Recommender.open(index, Recipe.load(name, assignments)) as recommender:
        (context,) = contexts_of_text(sentence)
        found = _known(recommender.store, read_ids(papers), index) if papers is not None else []
        own = _known(recommender.store, [citing], index) if citing else []
        if citing and own[0] in found:
            raise InputError(f"{citing} is both in --papers and --citing", "A paper does not cite itself.")
        if papers is None:
            named = replace(context, citing_id=citing, citing_title=title)
            found = [hit.paper for hit in recommender.search(named, k)]
        if not found:
            raise InputError("no paper shares a word with the sentence", "Write more of it, or name --papers.")
    made = draft(citation_task(context, found, own[0] if own else None), found, opened)
    resolved = with_citations(context, found)
    if as_json:
        searched = {} if papers is not None else {"system": name}
        print_json({"sentence": resolved, **searched, **draft_json(made, form=form)})
    else:
        _show_draft(made, sentence=resolved, form=form)
        _warn(made)
        if papers is None and system is None:
            note(f"System: {name}, the best that {index} supports.")
    _remark(opened)


@write.command(epilog="Example: citerec write tldr 900000032 900000158 --index indexes/demo")
@click.argument("paper_ids", metavar="PAPER_ID…", nargs=-1, required=True)
@with_options(_writing("tldr"))
@click.option("--anew", is_flag=True, help="Write a TLDR even if the corpus has one.")
def tldr(paper_ids: tuple[str, ...], index: Path, anew: bool, as_json: bool, **options: Any) -> None:
    """Sum up papers in one sentence each.

    If the corpus has a TLDR, such as Semantic Scholar's, that is shown. Otherwise the writer makes one
    from the abstract. The output says which of the two it is.
    """
    from citerec.index.manifest import manifest_and_store
    from citerec.write.tldr import tldrs

    opened = _open_writer("tldr", options)
    with contextlib.closing(manifest_and_store(index)[1]) as store:
        papers = _known(store, paper_ids, index)
    made = list(tldrs(papers, opened, anew=anew))
    if as_json:
        print_json([_tldr_json(one) for one in made])
    else:
        _show_tldrs(made)
    _remark(opened)


@write.command(
    "related-work", epilog="Example: citerec write related-work --papers 900000032,900000158 --index indexes/demo"
)
@click.option("--papers", required=True, metavar="IDS|FILE", help="Papers to cite: ids with commas, or a file of them.")
@click.option("--target", metavar="ID|FILE|TEXT", help="The paper that you write: its id, or its abstract.")
@input_option("abstracts")
@full_texts_option
@_words("150")
@with_options(_writing("related-work"))
@with_options(_entries)
def related_work(
    papers: str,
    target: str | None,
    given: str,
    full_texts: tuple[Path, ...],
    index: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Write related work from papers that you name."""
    from citerec.index.manifest import manifest_and_store
    from citerec.write.citation import draft, draft_json
    from citerec.write.related_work import read_ids, related_work_task, target_of

    form = _form(options)
    opened = _open_writer("related-work", options)
    with contextlib.closing(manifest_and_store(index)[1]) as store:
        found = _known(store, read_ids(papers), index)
        task = related_work_task(found, target_of(target, store), given, full_texts, lambda line: note(line, "yellow"))
    made = draft(task, found, opened)
    if as_json:
        print_json(draft_json(made, form=form))
    else:
        _show_draft(made, form=form)
        _warn(made)
    _remark(opened)
    _tell_oracle(given)


@write.command(epilog="Example: citerec write batch tasks.jsonl --writer lexrank --out lexrank.jsonl")
@click.argument("tasks", type=PATH)
@path_option("--out", required=True, metavar="FILE", help="The file to write: each task with its prediction.")
@one_of("--kind", _KINDS, "Kind of text; it sets the prompts and lengths of models.")
@with_options(_writing())
@_words("the target's")
@input_option(None)
@full_texts_option
@number("--limit", None, "Stop after this many tasks.")
def batch(
    tasks: Path,
    out: Path,
    kind: "Kind",
    given: str | None,
    full_texts: tuple[Path, ...],
    limit: int | None,
    **options: Any,
) -> None:
    """Write a prediction for every task of a file.

    TASKS has the format of CiteBench, SciTLDR or OARelatedWork: JSON Lines, one JSON list, or Parquet
    (docs/formats.md). Measure the predictions with citerec eval-text.
    """
    from citerec.write.batch import write_batch

    refuse_without("--input", given, "full_texts")
    opened = _open_writer(kind, options)
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


def _open_writer(kind: "Kind", options: dict[str, Any]) -> "Writer":
    """Opens a writer by its options, which are taken out of the options."""
    from citerec.write.writers.base import assignments, default_writer, open_writer

    name, of_writer = options.pop("writer"), assignments(options.pop("assignments_of_writer"))
    return open_writer(name or default_writer(kind), kind, options=of_writer, **options)


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


def _show_draft(draft: "CitationText", *, sentence: str = "", form: str | None = "bibtex") -> None:
    """Shows a draft: its sentence, the text, the papers that the numbers refer to, and their entries in a form."""
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
    if form:
        click.echo()
        print_entries(draft.papers, form)


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
