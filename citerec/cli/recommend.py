"""`citerec recommend` and `run`: papers to cite for a sentence or a draft, and for every context of a file."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
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
from citerec.files.text import names_in
from citerec.recommend import Recommender
from citerec.records import MARKER, Answer, Filters, Hit, Paper, to_json
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.opened import papers_of_index
from citerec.retrieve.run import SearchOptions, run_lines

if TYPE_CHECKING:
    from citerec.write.citation import Tldr

_FORM = "How the papers are given: BibTeX, CSL-JSON and RIS list each once; trec is a run."
_Form = Annotated[Literal["table", "json", "bibtex", "csl", "ris", "trec"], Parameter(name="--format", help=_FORM)]


@options.option_group
class Shown:
    """What is shown.

    Attributes:
        k: How many papers.  [default: 10]
        fold: Show editions of one paper, such as preprint and published version, as one hit: the published one, with
            the others beside it. On by default; off with --format trec, and in eval, where ids count.
        explain: Show which words matched, and what raised the score of each paper.
        min_confidence: List nothing where the system is less sure than this, from 0 to 1, that one of its first ten is
            right. Needs citerec train confidence.
        tldr: Show a sentence on each paper: its own TLDR, else one from its abstract.
    """

    k: Annotated[int | None, Parameter(name="-k")] = None
    fold: options.Switch | None = None
    explain: bool = False
    min_confidence: options.Share | None = None
    tldr: bool = False

    def checked(self, form: str) -> "Shown":
        """The same with the default of `fold`; a usage error if the form cannot show it."""
        for name in ("explain", "tldr"):
            if getattr(self, name) and form not in ("table", "json"):
                raise UsageError(f"--{name} goes with --format table and json only")
        if form == "trec" and self.fold:
            raise UsageError("--fold does not go with --format trec: a run ranks ids")
        return replace(self, fold=form != "trec" if self.fold is None else self.fold)

    def sure(self, answer: Answer) -> Answer:
        """The answer; without hits if the system is less sure of it than `--min-confidence`."""
        return answer if self.min_confidence is None else answer.if_sure(self.min_confidence)

    def json(self, answer: Answer) -> dict[str, Any]:
        """An answer as a JSON object."""
        return {**answer.to_json(), "hits": self.hits(answer)} if self.tldr else answer.to_json()

    def hits(self, answer: Answer) -> list[dict[str, Any]]:
        """The hits of an answer as JSON."""
        hits = [to_json(hit) for hit in answer.hits]
        for shown, made in zip(hits, _tldrs(answer.hits).values() if self.tldr else (), strict=self.tldr):
            shown |= {"tldr": made.text, "tldr_origin": made.origin if made.text is not None else None}
        return hits

    def forms(
        self, recommender: Recommender, named: Callable[[], Iterator[tuple[Answer, str | int | None, bool]]]
    ) -> dict[str, Any]:
        """Gives answers for people, and their papers; each with its name, and whether hits are withheld."""

        def table() -> None:
            for answer, name, withheld in named():
                made = _tldrs(answer.hits) if self.tldr else None
                show_answer(answer, recommender.titles(answer.hits), name, made, withheld=withheld)

        return {"table": table, "papers": lambda: (hit.paper for answer, *_ in named() for hit in answer.hits)}


@options.option_group
class OfDraft:
    """What the draft is, beside its text.

    Attributes:
        title: Title of the paper that you write: vectors search by it too.
        citing: The paper of the index that you write: it is never recommended.
        cited: What your draft cites already: a bibliography (.bib, .ris, or .json with CSL), or a file with one id a
            line.
        cited_ids: Papers of the index that your draft cites already.
    """

    title: options.Text = None
    citing: options.Id = None
    cited: options.File = None
    cited_ids: Annotated[str | None, Parameter(metavar="ID,ID")] = None

    def papers(self, recommender: Recommender) -> dict[str, str] | None:
        """Ids of the papers that the draft cites already, by citation key; None if neither option is given."""
        if self.cited is None and self.cited_ids is None:
            return None
        from citerec.drafts.bibliography import read_cited

        cited = read_cited(self.cited) if self.cited else {}
        cited |= {paper_id: Paper(paper_id) for paper_id in names_in(self.cited_ids or "")}
        found = papers_of_index(cited, recommender.index)
        remedy = "" if found else f" Add them: citerec index add {recommender.path}, or give ids of the index."
        note(f"{recommender.path} has {len(found):,} of the {len(cited):,} papers that the draft cites.{remedy}")
        return found


def recommend(
    sentence: str | None = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    encoding: options.Encoding = None,
    shown: Shown = Shown(),
    of_draft: OfDraft = OfDraft(),
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
        sort: Order of the papers that share a word with the sentence.  [default: relevance]
    """
    if sentence is not None and file is not None:
        raise UsageError("give one of SENTENCE and --file")
    refuse_without("--file", file, encoding=encoding)
    if sort not in (None, "relevance") and shown.min_confidence is not None:
        raise UsageError("--min-confidence does not go with --sort")
    shown, draft = shown.checked(form), _draft(sentence, file, encoding)
    of_index = {"citing": of_draft.citing, "cited": of_draft.cited, "cited_ids": of_draft.cited_ids, "sort": sort}
    with opened(chosen, shown.min_confidence, told=form != "json", **of_index) as (recommender, _):
        filters = limits.filters
        _check_ids(recommender, of_draft.citing, filters)
        cited = of_draft.papers(recommender)
        contexts = draft.contexts(recommender.store, cited, citing_id=of_draft.citing, citing_title=of_draft.title)
        how: dict[str, Any] = {"sort": sort or "relevance", "explain": shown.explain, "fold": bool(shown.fold)}
        found = [recommender.search(context, shown.k, filters, **how) for context in contexts]
        answers = [shown.sure(answer) for answer in found]
        _remark(recommender, draft, found, answers, filters, shown)

        def named() -> Iterator[tuple[Answer, str | int | None, bool]]:
            for number, (answer, whole) in enumerate(zip(answers, found, strict=True)):
                name = str(draft.places[number]) if draft.places else number + 1 if len(answers) > 1 else None
                yield answer, name, len(answer) < len(whole)

        def json() -> Any:
            if len(answers) == 1 and shown.min_confidence is None:
                return shown.hits(answers[0])
            objects = [{"text": answer.context.text, **shown.json(answer)} for answer in answers]
            for stated, place in zip(objects, draft.places, strict=False):  # a sentence has no place in a file
                stated |= {"file": str(place.path), "line": place.line}
            return objects if len(objects) > 1 else objects[0]

        pairs = [[(hit.paper.paper_id, hit.score) for hit in answer.hits] for answer in answers]
        run = ((str(number), some) for number, some in enumerate(pairs, 1))
        give(form, out, json=json, trec=lambda: _print_run(run), **shown.forms(recommender, named))


def run(
    contexts: Path,
    /,
    *,
    shown: Shown = Shown(),
    as_of_year: options.Switch = True,
    neighbours: options.Switch = True,
    limits: options.LimitsOfHits = options.LimitsOfHits(),
    form: _Form = "trec",
    out: options.OutFile = None,
    tag: str = "citerec",
    chosen: options.Searching = options.Searching(),
) -> None:
    """Search for every context of a file: a TREC run.

    The file has JSON Lines; its contexts say themselves which paper cites, and what it cites before (docs/formats.md).
    With --format json there is a line for each context.

    Example: citerec run diagnostics/demo/contexts.jsonl --index indexes/demo --system bm25 --out bm25.trec

    Args:
        contexts: The contexts.
        as_of_year: Nothing newer than the citing paper.
        neighbours: Search the sentences before and after too.
        tag: Name of the run in its last column.
    """
    shown = shown.checked(form)
    told, search_options = form != "json", SearchOptions(LeakRules(as_of_year=as_of_year), explain=shown.explain)
    with opened(chosen, shown.min_confidence, told=told) as (recommender, _), progress_bar() as on_progress:
        read = list(read_contexts(contexts))
        fold_to, depth = recommender.to_fold(shown.k) if shown.fold else (None, shown.k)
        topics = recommender.topics(read, neighbours=neighbours)

        def candidates() -> Iterator[tuple[Topic, Candidates]]:
            for done, one in enumerate(recommender.candidates(topics, depth, limits.filters, search_options), 1):
                on_progress("searching", done, len(read))
                yield one

        def named() -> Iterator[tuple[Answer, str | int | None, bool]]:
            for topic, hits in candidates():
                answer = shown.sure(recommender.answer(topic, hits, explain=shown.explain, fold_to=fold_to))
                yield answer, answer.context.context_id, len(answer) < len(hits)

        def lines() -> None:
            for answer, *_ in named():
                write(json_bytes({"context_id": answer.context.context_id, **shown.json(answer)}) + b"\n")

        def pairs() -> Iterator[tuple[str, list[tuple[str, float]]]]:
            """The ids and scores for each context; none where the system is not sure enough."""
            least = shown.min_confidence
            for topic, found in candidates():
                stated = found.confidence
                unsure = least is not None and stated is not None and stated.among_ten < least
                yield topic.context.context_id, [] if unsure else found.pairs()

        forms = {"lines": lines, "trec": lambda: _print_run(pairs(), tag), **shown.forms(recommender, named)}
        give("lines" if form == "json" else form, out, json=dict, **forms)


@contextlib.contextmanager
def opened(
    chosen: options.Searching, min_confidence: float | None, *, told: bool = False, **of_index: Any
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


def _check_ids(recommender: Recommender, citing: str | None, filters: Filters) -> None:
    """Raises an error if the index lacks the citing paper, and notes papers to exclude that it lacks."""
    if citing and not recommender.store.papers([citing]):
        raise InputError(f"{recommender.path} has no paper {citing!r}", "Give its title instead: --title TEXT")
    if filters.exclude and recommender.recipe.needs_index:
        known = recommender.store.years(filters.exclude)
        for unknown in (paper_id for paper_id in filters.exclude if paper_id not in known):
            note(f"--exclude {unknown}: {recommender.path} has no such paper.")


def _remark(
    recommender: Recommender,
    draft: Draft,
    found: Sequence[Answer],
    answers: Sequence[Answer],
    filters: Filters,
    shown: Shown,
) -> None:
    """Notes that the text has no place, or why nothing is listed."""
    if MARKER not in draft.text:
        note(f"There is no {MARKER} in it: the whole text is the query.")
        with contextlib.suppress(OSError, ValueError):  # too long a name, or with a zero byte
            if Path(draft.text).is_file():
                note(f"There is a file of this name. To answer its places: --file {draft.text}")
    if not any(answer.hits for answer in found):
        if recommender.index.matches_nothing(filters):
            note("No paper of the index passes the filters: loosen one.")
        else:
            note("No paper shares a word with the sentence and passes the filters.")
    elif not any(answer.hits for answer in answers):
        least = shown.min_confidence
        note(f"Nothing here fits well enough: no answer is as sure as --min-confidence {least:g}.")


def _tldrs(hits: Sequence[Hit]) -> "dict[str, Tldr]":
    """A TLDR of each hit, by paper id."""
    from citerec.write.citation import tldrs
    from citerec.write.writers.base import default_writer, open_writer

    made = tldrs((hit.paper for hit in hits), open_writer(default_writer("tldr"), "tldr"))
    return {tldr.paper.paper_id: tldr for tldr in made}


def _print_run(answers: Iterable[tuple[str, Sequence[tuple[str, float]]]], tag: str = "citerec") -> None:
    """Prints a run, and says how many contexts it has."""
    contexts = empty = 0
    for lines in run_lines(answers, tag):
        contexts, empty = contexts + 1, empty + (not lines)
        sys.stdout.write(lines)
    found_nothing = f"; {empty:,} of them found nothing" if empty else ""
    note(f"A run of {contexts:,} contexts{found_nothing}.")
