"""Write citation texts, TLDRs and related work from papers.

Every sentence names the papers that it is based on; a citation of anything else is flagged. The default writers need no
model and no network.

Example: citerec write citation "Attention suffices to translate <REF>."
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Group
from rich.text import Text

from citerec.cli import options
from citerec.cli.console import entries_in, give, note, say, titled, tldr_line
from citerec.contexts.read import context_of_sentence
from citerec.corpus.store import PaperStore
from citerec.drafts.bibliography import is_bibliography, read_cited
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.files.text import counted, names_in, printable
from citerec.index.manifest import find_index, manifest_and_store
from citerec.recommend import Recommender
from citerec.records import Paper, json_id
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.entries import papers_of_index
from citerec.serve.indexes import known_papers
from citerec.settings import assign
from citerec.systems import choose
from citerec.write import drafting
from citerec.write.anchors import marked_sentence, mentions, placed
from citerec.write.tasks import INPUTS, sees_target
from citerec.write.writers.base import Kind, Writer, open_writer

_FORM = "How the text is given: table shows it with its papers; the others give JSON, or the papers' entries only."
_Form = Annotated[Literal["table", "json", "bibtex", "csl", "ris"], Parameter(name="--format", help=_FORM)]


@options.option_group
class Writing(options.Assigned):
    """What writes.

    Attributes:
        assignments: Change one setting, such as writer.beams=4 or 'writer.prompt=This paper'; may be repeated. Keys:
            docs/writing.md.
        config: A TOML file of such settings; -c wins over it.
        writer: The writer (docs/writing.md); or a model, encoder-decoder or causal: its folder, or a name such as
            allenai/led-base-16384. Those with oracle in their name look at the target: upper bounds.  [default: the
            one that needs no model]
    """

    writer: options.Model = None

    def opened(self, kind: Kind) -> Writer:
        """The writer, or the default one of a kind of text."""
        values: dict[str, Any] = {}
        assign(values, self.changes("writer."), tuple)
        return open_writer(self.writer, kind, options=values)


def citation(
    sentence: str,
    /,
    *,
    k: Annotated[options.Count, Parameter(name="-k")] = 3,
    papers: Annotated[str | None, Parameter(metavar="IDS|FILE")] = None,
    title: options.Text = None,
    citing: options.Id = None,
    writing: Writing = Writing(),
    index: options.IndexPath = None,
    system: options.System = None,
    form: _Form = "table",
    out: options.OutFile = None,
) -> None:
    """Find papers for <REF> in SENTENCE, and write a text that cites them.

    The numbers in the text refer to the papers listed below it. Settings of the writer begin with writer, such as
    -c writer.beams=4 (docs/writing.md); others are of the system, such as -c words.bm25.k1=0.9.

    Example: citerec write citation "Attention suffices to translate <REF>." --index indexes/demo -k 3

    Args:
        sentence: The sentence, with <REF> for the citation.
        k: How many papers to cite.
        papers: Cite these instead of searching: comma-separated ids, a file of them, or a bibliography.
        title: Title of the paper that you write.
        citing: The paper of the index that you write: it is never cited.
        system: A system (citerec systems lists them); any of them followed by +RERANKER; or a TOML file of settings.
            [default: the best that the index supports]
    """
    place, context = find_index(index), context_of_sentence(sentence)
    _, name, recipe = choose(place, system, writing.changes())
    writer = writing.opened("citation")
    with Recommender.open(place, recipe) as recommender:
        cited_papers = _named_papers(papers, recommender.index) if papers is not None else []
        own = known_papers(recommender.store, [citing]) if citing else []
        if citing and own[0] in cited_papers:
            raise InputError(f"{citing} is both in --papers and --citing", "A paper does not cite itself.")
        if papers is None:
            named = replace(context, citing_id=citing, citing_title=title)
            cited_papers = [hit.paper for hit in recommender.search(named, k)]
        if not cited_papers:
            raise InputError("no paper shares a word with the sentence", "Write more of it, or name --papers.")
    text = drafting.draft(drafting.citation_task(context, cited_papers, own[0] if own else None), cited_papers, writer)
    facts = {"sentence": drafting.with_citations(context, cited_papers)} | ({"system": name} if papers is None else {})
    _give_draft(text, form, out, facts)
    if form == "table" and papers is None and system is None:
        note(f"System: {name}, the best that {place} supports.")


def tldr(
    paper_ids: tuple[str, ...],
    /,
    *,
    writing: Writing = Writing(),
    index: options.IndexPath = None,
    form: options.Format = "table",
    out: options.OutFile = None,
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
    writer = writing.opened("tldr")
    with contextlib.closing(manifest_and_store(find_index(index))[1]) as store:
        papers = known_papers(store, paper_ids)
    tldrs = list(drafting.tldrs(papers, writer, rewrite=anew))
    parts = (Group(titled(one.paper), tldr_line(one), "") for one in tldrs)
    as_json = [
        {"paper_id": json_id(one.paper.paper_id), "title": one.paper.title, "tldr": one.text, "origin": one.origin}
        for one in tldrs
    ]
    give(form, out, as_json, parts)


def related_work(
    *,
    papers: Annotated[str, Parameter(metavar="IDS|FILE")],
    target: Annotated[str | None, Parameter(metavar="ID|FILE")] = None,
    input_name: options.InputName = "abstracts",
    full_texts: options.FullTexts = (),
    writing: Writing = Writing(),
    index: options.IndexPath = None,
    form: _Form = "table",
    out: options.OutFile = None,
) -> None:
    """Write related work from papers that you name: those alike together, in order of year.

    Example: citerec write related-work --papers 900000032,900000158 --index indexes/demo

    Args:
        papers: Papers to cite: ids with commas, a file of them, or a bibliography (.bib, .ris, .json with CSL).
        target: The paper that you write: its id, or a file with its abstract.
    """
    place, input_name = find_index(index), input_name or "abstracts"
    writer = writing.opened("related-work")
    with contextlib.closing(OpenIndex.open(place)) as opened:
        cited_papers = drafting.by_topic(_named_papers(papers, opened))
        paper = _target_of(target, opened.store)
        task = drafting.related_work_task(cited_papers, paper)
    task = INPUTS[input_name].of_task(task, full_texts=full_texts, note=note)
    _give_draft(drafting.draft(task, cited_papers, writer), form, out)
    _tell_oracle(input_name)


def batch(
    tasks: Path,
    /,
    *,
    out: options.Out,
    kind: Kind = "citation",
    writing: Writing = Writing(),
    input_name: options.InputName = None,
    full_texts: options.FullTexts = (),
    limit: options.Count | None = None,
) -> None:
    """Write a prediction for every task of a file.

    TASKS has the format of CiteBench, SciTLDR or OARelatedWork: JSON Lines, one JSON list, or Parquet
    (docs/formats.md). Measure the predictions with citerec eval-text.

    Example: citerec write batch tasks.jsonl --writer lexrank --out lexrank.jsonl

    Args:
        tasks: The tasks.
        out: The file to write: each task with its prediction.
        kind: Kind of text; it sets the prompts and lengths of models.
        limit: Stop after this many tasks.
    """
    options.refuse_without("--input", input_name, full_texts=full_texts or None)
    writer = writing.opened(kind)
    with progress_bar() as on_progress:
        texts, empty, flagged = drafting.write_batch(
            tasks, writer, out, input_name, full_texts, limit=limit, note=note, on_progress=on_progress
        )
    blank = f" Empty: {empty:,}." if empty else ""
    unknown = f" Citing papers that they were not given: {flagged:,} (see `unknown`)." if flagged else ""
    say(f"{out}: {counted(texts, 'text')} by {writer.name}.{blank}{unknown}")
    if writer.is_oracle:
        note(f"{writer.name} looks at the targets: an upper bound, not a system.")
    _tell_oracle(input_name)


def _target_of(target: str | None, store: PaperStore) -> Paper | None:
    """The paper to write: one of the store, or the abstract in a file; an InputError if there is none."""
    if target is None:
        return None
    if paper := store.papers([target]).get(target):
        return paper
    if (text := _text_of(target)) == target:
        raise InputError(f"there is no paper and no file {target!r}", "Give an id, or a file with the abstract.")
    return Paper("", abstract=text)


def _named_papers(named: str, index: OpenIndex) -> list[Paper]:
    """The papers of an index in a list with commas, a file with an id per line, or a bibliography."""
    if is_bibliography(Path(named)):
        entries = read_cited(Path(named))
        ids = list(papers_of_index(entries, index).values())
        note(f"{index.path} has {len(ids):,} of the {len(entries):,} papers of {named}.")
    else:
        ids = names_in(",".join(_text_of(named).splitlines()))
    if not ids:
        remedy = "Give ids with commas between them, or a file."
        raise InputError(f"there is no paper of the index in {named!r}", remedy)
    return known_papers(index.store, ids)


def _text_of(name: str) -> str:
    """What a file holds; the name itself if there is no such file, or if no file could be named so."""
    try:
        return printable(Path(name).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"cannot read {name}", "Give a text file in UTF-8.") from None
    except (OSError, ValueError):
        return name


def _give_draft(text: drafting.CitationText, form: str, out: Path | None, facts: Mapping[str, str] = {}) -> None:
    """Gives a text with its papers; `facts` are its sentence, and the system that found its papers."""
    as_json = {**facts, **drafting.draft_json(text, form="bibtex")}
    give(form, out, as_json, _parts_of(text, facts.get("sentence", "")), papers=text.papers)
    prediction = text.prediction
    if unknown := sorted({mark for sentence in prediction.sentences for mark in sentence.unknown}):
        note(f"{prediction.writer} cited {', '.join(unknown)}, which is no paper that it was given.", "red")
    if not prediction.text:
        note(f"{prediction.writer} found nothing to write; another --writer may.")


def _tell_oracle(input_name: str | None) -> None:
    if input_name and sees_target(input_name):
        note(f"The input {input_name} is cut by looking at the targets: an upper bound, not a system.")


def _parts_of(draft: drafting.CitationText, sentence: str) -> Iterator[Any]:
    """A draft: its sentence, the text, the papers that the numbers refer to, and their entries."""
    if sentence:
        yield Group(Text(f"\n{sentence}", "italic"))
    yield Group(Text.assemble("\n", *_spans_of(draft), f"  — {draft.prediction.writer}\n"))
    for place, paper in enumerate(draft.papers):
        lacks = ("  no abstract", "yellow") if paper in draft.without_text else ""
        yield Group(Text.assemble((f"[{place}]  ", "bold yellow"), titled(paper), lacks))
    yield ""
    yield entries_in(draft.papers, "bibtex")


def _spans_of(draft: drafting.CitationText) -> Iterator[Any]:
    """The sentences, each with the papers that it is based on but does not cite itself."""
    sources = draft.prediction.task.sources
    for gap, sentence in placed(draft.prediction):
        yield gap  # keeps paragraphs
        if sentence is None:
            break
        yield marked_sentence(sentence, sources), "red" if sentence.unknown else ""
        cited = {number for mention in mentions(sentence.text, sources) for number in mention.sources}
        if silent := [str(number) for number in sentence.attributions if number not in cited]:
            yield f" ‹from {', '.join(silent)}›", "dim"
        if not sentence.attributions and not sentence.unknown:
            yield " ‹from none of the papers›", "yellow"
        if sentence.unsupported:
            yield f" ‹little of it is in {', '.join(map(str, sentence.unsupported))}›", "yellow"
