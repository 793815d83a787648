"""`citerec recommend` and `run`: papers to cite for a sentence or a draft, and for every context of a file."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from citerec.cli import options
from citerec.cli.console import give, json_bytes, note, write
from citerec.cli.main import UsageError
from citerec.cli.options import refuse_without
from citerec.cli.tables import show_answer
from citerec.confidence import not_calibrated
from citerec.contexts.leaks import LeakRules
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic
from citerec.drafts import Draft, Files, check_places, place_marker, read_draft
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.recommend import Recommender
from citerec.records import MARKER, Answer, Paper
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.opened import papers_of_index
from citerec.retrieve.run import SearchOptions, run_lines

if TYPE_CHECKING:
    from citerec.write.citation import Tldr

_FORM = "How the papers are given: BibTeX, CSL-JSON and RIS list each once; trec is a run."
_Form = Annotated[Literal["table", "json", "bibtex", "csl", "ris", "trec"], Parameter(name="--format", help=_FORM)]
_K = Annotated[int | None, Parameter(name="-k")]


@options.option_group
class Shown:
    """What is shown.

    Attributes:
        k: How many papers.  [default: 10]
        fold: Show editions of one paper, such as preprint and published version, as one hit: the published one, with
            the others beside it. Off with --format trec: a run ranks ids.
        explain: Show which words matched, and what raised the score of each paper.
        min_confidence: List nothing where the system is less sure than this, from 0 to 1, that one of its first ten is
            right. Needs citerec train confidence.
        tldr: Show a sentence on each paper: its own TLDR, else one from its abstract.
    """

    k: _K = None
    fold: options.Switch = True
    explain: bool = False
    min_confidence: options.Share | None = None
    tldr: bool = False


def recommend(
    sentence: str | None = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    encoding: options.Encoding = None,
    shown: Shown = Shown(),
    title: options.Text = None,
    citing: options.Id = None,
    cited: options.File = None,
    sort: Literal["relevance", "newest", "oldest", "most-cited", "venue", "field"] | None = None,
    limits: options.LimitsOfHits = options.LimitsOfHits(),
    form: _Form = "table",
    out: options.OutFile = None,
    chosen: options.Searching = options.Searching(),
) -> None:
    r"""Recommend papers to cite at <REF> in SENTENCE.

    A text may contain several <REF>: each is answered. Without one, the whole text is the query. The text
    comes from the argument, from --file, or from standard input. In a LaTeX or Markdown --file,
    \cite{?}, \cite{TODO}, \todo{cite …} and [@?] are places too; comments, formulas and figures are left out.

    Example: citerec recommend "Term weighting <REF> is a strong baseline" --index indexes/demo -k 5

    Without an index, from a web service: citerec recommend "Term weighting <REF>" --system s2-api

    As BibTeX: citerec recommend "Term weighting <REF>" --index indexes/demo --format bibtex

    In a draft: citerec recommend --file draft.tex --cited refs.bib --index indexes/demo

    Args:
        sentence: The text, with <REF> where a citation is missing.
        file: Read the text from a file; - for standard input.
        title: Title of the paper that you write: vectors search by it too.
        citing: The paper of the index that you write: it is never recommended.
        cited: What your draft cites already: a bibliography (.bib, .ris, or .json with CSL), or a file with one id a
            line.
        sort: Order of the papers that share a word with the sentence.  [default: relevance]
    """
    if sentence is not None and file is not None:
        raise UsageError("give one of SENTENCE and --file")
    refuse_without("--file", file, encoding=encoding)
    if sort not in (None, "relevance") and shown.min_confidence is not None:
        raise UsageError("--min-confidence does not go with --sort")
    draft = _draft(sentence, file, encoding)
    of_index = {"citing": citing, "cited": cited, "sort": sort}
    with opened(chosen, shown.min_confidence, told=form != "json", **of_index) as (recommender, _):
        if citing and not recommender.store.papers([citing]):
            raise InputError(f"{recommender.path} has no paper {citing!r}", "Give its title instead: --title TEXT")
        before = None
        if cited:
            from citerec.drafts.bibliography import read_cited

            entries = read_cited(cited)
            before = papers_of_index(entries, recommender.index)
            note(f"{recommender.path} has {len(before):,} of the {len(entries):,} papers that the draft cites.")
        contexts = draft.contexts(recommender.store, before, citing_id=citing, citing_title=title)
        how: dict[str, Any] = {"sort": sort or "relevance", "explain": shown.explain}
        how["fold"] = shown.fold and form != "trec"
        answers = [recommender.search(context, shown.k, limits.filters, **how) for context in contexts]
        if (least := shown.min_confidence) is not None:
            answers = [answer.if_sure(least) for answer in answers]
        tldrs = _tldrs(answers) if shown.tldr else {}

        def table() -> None:
            for number, answer in enumerate(answers):
                name = str(draft.places[number]) if draft.places else number + 1 if len(answers) > 1 else None
                show_answer(answer, recommender.titles(answer.hits), name, tldrs)

        def json() -> Any:
            objects = [{"text": answer.context.text, **answer.to_json()} for answer in answers]
            for hit in (hit for one in objects for hit in one["hits"] if shown.tldr):
                made = tldrs[str(hit["paper_id"])]
                hit |= {"tldr": made.text, "tldr_origin": made.origin if made.text is not None else None}
            for stated, place in zip(objects, draft.places, strict=False):  # a sentence has no place in a file
                stated |= {"file": str(place.path), "line": place.line}
            if len(objects) > 1:
                return objects
            return objects[0] if least is not None else objects[0]["hits"]

        def trec() -> None:
            _print_run(
                (str(number), [(hit.paper.paper_id, hit.score) for hit in answer.hits])
                for number, answer in enumerate(answers, 1)
            )

        give(form, out, json=json, table=table, trec=trec, papers=lambda: _papers(answers))
        if MARKER not in draft.text:
            note(f"There is no {MARKER} in it: the whole text is the query.")
        if not any(answer.hits for answer in answers):
            sure = "" if least is None else f", or none is as sure as --min-confidence {least:g}"
            note(f"No paper shares a word with the sentence and passes the filters{sure}.")


def run(
    contexts: Path,
    /,
    *,
    k: _K = None,
    as_of_year: options.Switch = True,
    neighbours: options.Switch = True,
    form: Annotated[Literal["trec", "json"], Parameter(name="--format")] = "trec",
    out: options.OutFile = None,
    chosen: options.Searching = options.Searching(),
) -> None:
    """Search for every context of a file: a TREC run.

    The file has JSON Lines; its contexts say themselves which paper cites, and what it cites before (docs/formats.md).

    Example: citerec run diagnostics/demo/contexts.jsonl --index indexes/demo --system bm25 --out bm25.trec

    Args:
        contexts: The contexts.
        k: How many papers.  [default: 10]
        as_of_year: Nothing newer than the citing paper.
        neighbours: Search the sentences before and after too.
        form: A run, or a line of JSON for each context.
    """
    rules = SearchOptions(LeakRules(as_of_year=as_of_year))
    with opened(chosen, told=form != "json") as (recommender, _), progress_bar() as on_progress:
        read = list(read_contexts(contexts))

        def found() -> Iterator[tuple[Topic, Candidates]]:
            topics = recommender.topics(read, neighbours=neighbours)
            for done, one in enumerate(recommender.candidates(topics, k, options=rules), 1):
                on_progress("searching", done, len(read))
                yield one

        def lines() -> None:
            for topic, hits in found():
                answer = recommender.answer(topic, hits).to_json()
                write(json_bytes({"context_id": topic.context.context_id, **answer}) + b"\n")

        def trec() -> None:
            _print_run((topic.context.context_id, hits.pairs()) for topic, hits in found())

        give("lines" if form == "json" else form, out, json=dict, table=dict, lines=lines, trec=trec)


@contextlib.contextmanager
def opened(
    chosen: options.Searching, min_confidence: float | None = None, *, told: bool = False, **of_index: Any
) -> Iterator[tuple[Recommender, Path | None]]:
    """Opens a system, calibrated if confidence is asked for, with its index, None if it needs none.

    At the end it says what was remarkable; and, if that is to be `told`, which system was chosen.

    Raises:
        UsageError: One of the options `of_index` is given, and the system needs no index.
        SettingsError: The system is not calibrated for the index.
    """
    place, name, recipe = chosen.choose()
    refuse_without("--index", place, **of_index, min_confidence=min_confidence)
    with Recommender.open(place, recipe) as recommender:
        if place and min_confidence is not None and recommender.calibration is None:
            raise not_calibrated(place, recommender.recipe, name)
        yield recommender, place
        for remark in recommender.remarks():
            note(remark)
    if chosen.system is None and told:  # printed last, so that an error stays one line
        note(f"System: {name}, the best that {place} supports.")


def _draft(sentence: str | None, file: Path | None, encoding: str | None) -> Draft:
    if sentence is not None:
        return Draft(sentence)
    if file is not None and str(file) != "-":
        draft = read_draft(file, Files(encoding))
        if place_marker(file) != MARKER:  # plain text without a place is the query
            check_places(draft, file)
        return draft
    if file is None and sys.stdin.isatty():
        raise UsageError(f'give a SENTENCE, for example "… was shown by {MARKER} …"')
    try:
        return Draft(sys.stdin.buffer.read().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error


def _papers(answers: Sequence[Answer]) -> Iterator[Paper]:
    return (hit.paper for answer in answers for hit in answer.hits)


def _tldrs(answers: Sequence[Answer]) -> "dict[str, Tldr]":
    """A TLDR of each hit, by paper id."""
    from citerec.write.citation import tldrs
    from citerec.write.writers.base import default_writer, open_writer

    made = tldrs(_papers(answers), open_writer(default_writer("tldr"), "tldr"))
    return {tldr.paper.paper_id: tldr for tldr in made}


def _print_run(answers: Iterable[tuple[str, Sequence[tuple[str, float]]]]) -> None:
    """Prints a run, and says how many contexts it has."""
    contexts = empty = 0
    for lines in run_lines(answers, "citerec"):
        contexts, empty = contexts + 1, empty + (not lines)
        sys.stdout.write(lines)
    found_nothing = f"; {empty:,} of them found nothing" if empty else ""
    note(f"A run of {contexts:,} contexts{found_nothing}.")
