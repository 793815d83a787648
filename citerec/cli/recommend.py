"""`citerec recommend`, `run` and `fill`: papers to cite."""

import contextlib
import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.rule import Rule
from rich.text import Text

from citerec.cli import options
from citerec.cli.console import ask, confirm, give, headed, is_terminal, json_bytes, note, note_missing, parts_of, say
from citerec.confidence import not_calibrated
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import LeakRules, Topic
from citerec.drafts import Draft, Files, Place, check_places, draft_of_text, place_marker, read_draft
from citerec.drafts.bibliography import read_cited
from citerec.errors import InputError, SettingsError, UsageError
from citerec.files.progress import progress_bar, told
from citerec.files.writing import apart
from citerec.recommend import Recommender
from citerec.records import MARKER, Answer, Context, Paper
from citerec.retrieve.base import Candidates
from citerec.retrieve.entries import papers_of_index
from citerec.retrieve.run import SearchOptions, run_lines

if TYPE_CHECKING:  # what one of the commands needs, it imports itself: none waits for the others
    from citerec.cli.picker import Action
    from citerec.drafts.filling import DraftHit
    from citerec.drafts.session import Choice, FillSession
    from citerec.write.drafting import Tldr

_FORM = "How the papers are given: BibTeX, CSL-JSON and RIS list each once; trec is a run."
_Form = Annotated[Literal["table", "json", "bibtex", "csl", "ris", "trec"], Parameter(name="--format", help=_FORM)]
_K = Annotated[int | None, Parameter(name="-k")]


def recommend(
    sentence: str | None = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    suggest: bool = False,
    encoding: options.Encoding = None,
    k: _K = None,
    fold: options.Switch = True,
    explain: bool = False,
    scores: bool = False,
    min_confidence: options.Share | None = None,
    tldr: bool = False,
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
    comes from the argument, from --file, or from standard input. In a LaTeX, Markdown, Typst, Org or Word --file,
    \cite{?}, \cite{TODO}, \todo{cite …} and [@?] are places too; comments, formulas and figures are left out.

    Example: citerec recommend "Term weighting <REF> is a strong baseline" --index indexes/demo -k 5

    Without an index, from a web service: citerec recommend "Term weighting <REF>" --system s2-api

    As BibTeX: citerec recommend "Term weighting <REF>" --index indexes/demo --format bibtex

    In a draft: citerec recommend --file draft.tex --cited refs.bib --index indexes/demo

    Args:
        sentence: The text, with <REF> where a citation is missing.
        file: Read the text from a file; - for standard input.
        suggest: Recommend papers for sentences of the draft in --file that may want a citation, and for which the index
            has a likely paper: the ten most likely, best first.
        k: How many papers.  [default: 10]
        fold: Show editions of one paper, such as preprint and published version, as one hit: the published one, with
            the others beside it. Off with --format trec: a run ranks ids.
        explain: Show why each paper is there.
        scores: Show the score of each paper too, and with --explain what it is made of.
        min_confidence: List nothing where the system is less sure than this, from 0 to 1, that one of its first ten is
            right.
        tldr: Show a sentence on each paper: its own TLDR, else one from its abstract.
        title: Title of the paper that you write: vectors search by it too.
        citing: The paper of the index that you write: it is never recommended.
        cited: What your draft cites already: a bibliography (.bib, .ris, or .json with CSL), or a file with one id a
            line.
        sort: Order of the papers that share a word with the sentence.  [default: relevance]
    """
    if sentence is not None and file is not None:
        raise UsageError("give one of SENTENCE and --file")
    options.refuse_without("--file", file, encoding=encoding, suggest=suggest or None)
    if sort not in (None, "relevance") and min_confidence is not None:
        raise UsageError("--min-confidence does not go with --sort")
    draft = _draft(sentence, file, encoding, needs_place=not suggest)
    if out:
        apart(out, file, cited)
    of_index = {"citing": citing, "cited": cited, "sort": sort}
    with opened(chosen, min_confidence, file, with_note=form != "json", **of_index) as (recommender, _):
        if citing and not recommender.store.papers([citing]):
            raise InputError(f"{recommender.path} has no paper {citing!r}", "Give its title instead: --title TEXT")
        _note_unknown(limits, recommender)
        before = None
        if cited:
            entries = read_cited(cited)
            before = papers_of_index(entries, recommender.index)
            note(f"{recommender.path} has {len(before):,} of the {len(entries):,} papers that the draft cites.")
        named: dict[str, Any] = {"citing_id": citing, "citing_title": title}
        searched: dict[str, Any] = {"sort": sort or "relevance", "explain": explain, "fold": fold and form != "trec"}
        places: Sequence[Place] = draft.places
        if suggest:
            from citerec.drafts.suggest import suggestions

            found = suggestions(draft, recommender, Files(encoding), before, filters=limits.filters, **named)
            contexts, places = [one.answer.context for one in found], [one.place for one in found]
        else:
            contexts = draft.contexts(recommender.store, before, are_in_text=False, **named)
        answers = [recommender.search(context, k, limits.filters, **searched) for context in contexts]
        if min_confidence is not None:
            answers = [answer.if_sure(min_confidence) for answer in answers]
        tldrs = {}
        if tldr:
            from citerec.write import drafting

            summaries = drafting.tldrs(_papers(answers), drafting.usual_writer("tldr"))
            tldrs = {one.paper.paper_id: one for one in summaries}
        objects = [_json_of(answer, tldrs) for answer in answers]
        for record, place in zip(objects, places, strict=False):  # a sentence has no place in a file
            record |= {"file": str(place.path), "line": place.line}
        single = objects if not objects else objects[0] if min_confidence is not None else objects[0]["hits"]
        names: Sequence[Any] = places or (range(1, len(answers) + 1) if len(answers) > 1 else [None])
        listed = zip(answers, names if answers else (), strict=True)
        show = functools.partial(parts_of, tldrs=tldrs, scores=scores)
        says = _says if explain and form == "table" else lambda _: None
        ranked = ([(hit.paper.paper_id, hit.score) for hit in answer.hits] for answer in answers)
        give(
            form,
            out,
            objects if len(objects) > 1 else single,
            (part for one, name in listed for part in show(one, recommender.titles(one.hits), name, remarks=says(one))),
            papers=_papers(answers),
            lines=_run_of((str(number), pairs) for number, pairs in enumerate(ranked, 1)),
        )
        if suggest and not answers:
            note("No sentence seems to want a citation that this index has.")
        elif MARKER not in draft.text and not suggest:
            note(f"There is no {MARKER} in it: the whole text is the query.")
        if answers and not any(answer.hits for answer in answers):
            sure = "" if min_confidence is None else f", or none is as sure as --min-confidence {min_confidence:g}"
            note(f"No paper that passes the filters matches the sentence{sure}.")


def _says(answer: Answer) -> dict[str, list[Text]]:
    """What to say below each paper of an answer without a bibliography."""
    from citerec.drafts.filling import DraftHit

    return _remarks(DraftHit(hit, None, hit.paper, False, answer.context) for hit in answer.hits)


def _remarks(shown: "Iterable[DraftHit]") -> dict[str, list[Text]]:
    """What to say below each paper, by its id: the sentence of the abstract that says it, and its key."""
    remarks: dict[str, list[Text]] = {}
    for one in shown:
        lines = remarks[one.hit.paper.paper_id] = []
        if one.support:
            lines.append(headed("it says", f"“{one.support}”", "italic"))
        if one.key:
            lines.append(headed("in your bibliography", one.key, "cyan"))
    return remarks


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
    if out:
        apart(out, contexts)
    with opened(chosen, with_note=form != "json") as (recommender, _), progress_bar() as on_progress:
        read = list(read_contexts(contexts))

        def results() -> Iterator[tuple[str, Topic, Candidates]]:
            topics = recommender.topics(read, neighbours=neighbours)
            found = recommender.candidates(topics, k, options=rules)
            for topic, hits in told(found, "searching", on_progress, len(read)):
                yield topic.context.context_id, topic, hits

        lines: Iterator[bytes] = _run_of((name, hits.pairs()) for name, _, hits in results())
        if form == "json":
            answers = ((name, recommender.answer(topic, hits)) for name, topic, hits in results())
            lines = (json_bytes({"context_id": name, **answer.to_json()}) for name, answer in answers)
        give("lines", out, None, (), lines=lines)


@contextlib.contextmanager
def opened(
    chosen: options.Searching,
    min_confidence: float | None = None,
    near: Path | None = None,
    *,
    with_note: bool = False,
    **of_index: Any,
) -> Iterator[tuple[Recommender, Path | None]]:
    """Opens a system, calibrated if confidence is asked for, with its index, None if it needs none.

    At the end it says what was remarkable; and, if `with_note`, which system was chosen.

    Raises:
        UsageError: One of the options `of_index` is given, and the system needs no index.
        SettingsError: The system is not calibrated for the index.
    """
    place, name, recipe = chosen.choose(near or Path())
    options.refuse_without("--index", place, **of_index, min_confidence=min_confidence)
    with Recommender.open(place, recipe) as recommender:
        if place and min_confidence is not None and recommender.calibration is None:
            raise not_calibrated(place, recommender.recipe, name)
        yield recommender, place
        for remark in recommender.remarks():
            note(remark)
    if chosen.system is None and with_note:  # printed last, so that an error stays one line
        note(f"System: {name}, the best that {place} supports.")


def _note_unknown(limits: options.LimitsOfHits, recommender: Recommender) -> None:
    """Prints which excluded papers an index lacks; what a service lists is not known before it is asked."""
    for paper_id in limits.exclude if recommender.manifest.engine else ():
        if not recommender.store.papers([paper_id]):
            note(f"{recommender.path} has no paper {paper_id!r}: --exclude leaves nothing out by it.", style="yellow")


def _draft(sentence: str | None, file: Path | None, encoding: str | None, *, needs_place: bool) -> Draft:
    if sentence is not None:
        return draft_of_text(sentence)
    if file is not None and str(file) != "-":
        draft = read_draft(file, Files(encoding))
        note_missing(draft)
        if needs_place and place_marker(file) != MARKER:  # plain text without a place is the query
            check_places(draft, file)
        return draft
    if file is None and sys.stdin.isatty():
        raise UsageError(f'give a SENTENCE, for example "… was shown by {MARKER} …"')
    try:
        return draft_of_text(sys.stdin.buffer.read().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error


def _papers(answers: Sequence[Answer]) -> Iterator[Paper]:
    return (hit.paper for answer in answers for hit in answer.hits)


def _json_of(answer: Answer, tldrs: "Mapping[str, Tldr]") -> dict[str, Any]:
    """An answer as JSON, with the TLDRs of its papers."""
    record = {"text": answer.context.text, **answer.to_json()}
    for hit in record["hits"]:
        if tldr := tldrs.get(str(hit["paper_id"])):
            hit |= {"tldr": tldr.text, "tldr_origin": tldr.origin}
    return record


def _run_of(answers: Iterable[tuple[str, Sequence[tuple[str, float]]]]) -> Iterator[bytes]:
    """The lines of a run; at its end it is said how many contexts it has."""
    contexts = empty = 0
    for lines in run_lines(answers, "citerec"):
        contexts, empty = contexts + 1, empty + (not lines)
        yield lines.encode()
    found_nothing = f"; {empty:,} of them found nothing" if empty else ""
    note(f"A run of {contexts:,} contexts{found_nothing}.")


_SHOWN, _TITLE = 5, 60
_HELP = """\
1        cite paper 1; several: 1,3
s        skip this place
m        show more papers
w 1,3    write a text that cites papers 1 and 3
/WORDS   search again, for these words
q        stop: what is filled stays, and the rest can be filled later
"""
_ACTIONS: "dict[str, Action]" = {"s": "skip", "m": "more", "q": "quit"}
_PICK = re.compile(r"(?P<write>w\s+)?(?P<numbers>\d+(?:[\s,]+\d+)*)")


_Yes = Literal["sure", "likely", "any"]
_TAKEN: dict[_Yes, tuple[str, ...]] = {"sure": ("sure",), "likely": ("sure", "likely")}


@options.option_group
class FillOptions:
    """How places are filled.

    Attributes:
        k: How many papers are shown at a place.
        own_first: List papers of your bibliography first that fit well. --yes always takes the system's first paper.
        yes: Ask nothing: cite the first paper of each place where it is sure; with --yes=likely also where it is
            likely, with --yes=any everywhere. The other places stay open.
        diff: Show the changes as a unified diff, and write nothing.
        title: Title of the paper that you write.  [default: the draft's]
        citing: The paper of the index that you write: it is never cited.
        suggest: Then go through sentences that may want a citation, and for which the index has a likely paper: the ten
            most likely, best first.
    """

    k: Annotated[int, Parameter(name="-k", validator=Number(gte=1, lte=100))] = _SHOWN
    own_first: options.Switch = True
    yes: Annotated[_Yes | None, Parameter(metavar="[sure|likely|any]", show_choices=False)] = None
    diff: bool = False
    title: options.Text = None
    citing: options.Id = None
    suggest: bool = False


def fill(
    draft: Path,
    /,
    *,
    bib: options.File = None,
    fill_options: FillOptions = FillOptions(),
    keys: options.KeyPattern = "",
    encoding: options.Encoding = None,
    limits: options.LimitsOfHits = options.LimitsOfHits(),
    chosen: options.Searching = options.Searching(),
) -> None:
    r"""Fill the places of DRAFT that want a citation.

    DRAFT is LaTeX, Markdown, Typst, Org, Word (.docx), OpenDocument (.odt), a Jupyter notebook or plain text, with
    \cite{?}, \todo{cite …}, [@?], [citation needed] or <REF> where a citation is missing. At each place
    you see the best papers, why they fit, and a sentence that supports them; you pick one or several. The draft cites
    them, and the bibliography gets their entries. Both files are written after each pick. What you skip stays, and can
    be filled later.

    Example: citerec fill paper.tex --bib refs.bib --index indexes/demo

    Without questions, where it is sure: citerec fill paper.tex --yes

    To see the changes first: citerec fill paper.tex --yes --diff

    Where nothing is marked: citerec fill paper.tex --suggest

    Args:
        draft: The draft.
        bib: The bibliography, which is made if it is missing.  [default: the draft's own]
    """
    from citerec.drafts.filling import Filling
    from citerec.drafts.project import project_of
    from citerec.drafts.session import FillSession
    from citerec.index.build import Follower

    with opened(chosen, near=draft, citing=fill_options.citing) as (recommender, place):
        if fill_options.yes in _TAKEN and recommender.calibration is None:
            fault = "this system cannot say of a paper whether it is sure or likely"
            calibrate = "calibrate it: citerec train confidence --contexts FILE --index INDEX"
            raise SettingsError(fault, f"Fill all places, --yes=any; or {calibrate}")
        session: FillSession  # it opens the index anew where that grows
        match = (lambda entries: papers_of_index(entries, session.recommender.index)) if place else None
        filling = Filling(draft, bib, Files(encoding), match, keys or project_of(draft).keys)
        session = FillSession(
            recommender,
            filling,
            functools.partial(_surely if fill_options.yes else _asked, fill_options),
            note if fill_options.diff else say,
            note,
            follower=Follower(place) if place else None,
            filters=limits.filters,
            citing={"citing_id": fill_options.citing, "citing_title": fill_options.title},
            writes=not fill_options.diff,
        )
        if not fill_options.suggest:
            check_places(filling.draft, draft)
        note_missing(filling.draft)
        _note_unknown(limits, recommender)
        for unreadable in filling.bibliography.unreadable:
            note(f"{unreadable} (this entry is not used)", style="yellow")
        with contextlib.closing(session):
            _run(session, fill_options)


def _run(session: "FillSession", options: FillOptions) -> None:
    """Fills a draft, and says at the end what was done."""
    filling, cited = session.filling, 0
    whole, entries = len(filling.draft.places), len(filling.bibliography.entries)
    is_through = session.fill()
    left = len(filling.draft.places)
    if options.suggest and is_through:
        cited = session.suggest()
    new = len(filling.bibliography.entries) - entries
    if options.diff:
        print(filling.files.diff(), end="")
    filled = "would be filled" if options.diff else "filled"
    added = f"{new} new {'entry' if new == 1 else 'entries'}"
    done_so = [f"{whole - left} of {whole} places {filled}, {left} left"] if whole or not options.suggest else []
    if options.suggest:
        done_so.append(f"{cited} suggested {'sentence cites' if cited == 1 else 'sentences cite'}")
    note(f"{'; '.join([*done_so, added])} in {filling.bibliography.path}.")


def _surely(options: FillOptions, session: "FillSession", context: Context, place: Place) -> "Choice":
    """The first paper, if the system is sure enough of it."""
    answer, shown = session.search(context, 1, place, explain=False, own_first=options.own_first)
    verdict = answer.hits[0].verdict if answer.hits else None
    if answer.hits and (options.yes == "any" or verdict in _TAKEN[options.yes or "sure"]):
        return "cited", [one.paper for one in shown], ""
    if not answer.hits:
        said = "no paper found"
    elif answer.nothing_fits:
        said = "nothing in the index seems to fit"
    else:
        title = shown[0].paper.title
        said = f"{verdict}: {title if len(title) <= _TITLE else f'{title[:_TITLE]}…'}"
    note(f"{place}: left open, {said}.")
    return "skip", [], ""


def _asked(options: FillOptions, session: "FillSession", context: Context, place: Place) -> "Choice":
    """What a person does at a place, in a terminal or by lines; EOFError to stop."""
    k, own, marked, is_new = options.k, context, list[Paper](), True
    where = f"{place} · {place.section}" if place.section else str(place)
    while True:
        if is_new:
            answer, shown = session.search(context, k, place, explain=True, own_first=options.own_first)
        action: Action
        if is_terminal():
            from citerec.cli.picker import choose

            (before, _, after), words = context.text.partition(MARKER), ""
            remark = "Nothing in the index seems to fit; the nearest papers:" if answer.nothing_fits else ""
            still = [number for number, one in enumerate(shown) if one.paper in marked]
            action, picked = choose(where, (before, after), shown, remark, still, lambda: session.is_stale)
        else:
            if is_new:
                _show(session, where, answer, shown)
            action, picked, words = _typed(len(shown))
        marked = papers = [shown[number].paper for number in picked]
        if action == "quit":
            raise EOFError
        if action in ("skip", "back", "undo", "stale"):
            return action, [], ""
        said = _said(session, context, papers) if action == "write" else ""
        if action == "cite" or said:
            return "cited", papers, said
        if action == "more":
            k += options.k
        elif action == "words":
            with contextlib.suppress(EOFError, KeyboardInterrupt):
                words = words or ask("Search for (nothing: the sentence again): ")
                context = replace(own, text=words, before="", after="") if words else own
        is_new = action != "write"


def _said(session: "FillSession", context: Context, papers: list[Paper]) -> str:
    """A text that cites papers, as the draft will have it; empty if it is not wanted."""
    from citerec.write import drafting

    writer = drafting.usual_writer("citation")
    written = drafting.draft(drafting.citation_task(context, papers), papers, writer)
    text = drafting.in_draft(written, session.filling)
    say(text)
    note("It is generated from their abstracts: check it.")
    return text if confirm("Cite them, and insert this text behind the sentence?", default=False) else ""


def _show(session: "FillSession", where: str, answer: Answer, shown: "Sequence[DraftHit]") -> None:
    """Shows the papers for a place, with what supports the claim, and the keys that they have already."""
    say(Rule(where, style="dim", align="left"))
    hits = tuple(one.hit for one in shown)
    say(*parts_of(replace(answer, hits=hits), session.recommender.titles(answer.hits), remarks=_remarks(shown)))


def _typed(papers: int) -> "tuple[Action, tuple[int, ...], str]":
    """What a person types: an action, the numbers of papers, from 0, and words to search for."""
    while True:
        answer = ask("Pick, s to skip, ? for help: ")
        if answer in _ACTIONS:
            return _ACTIONS[answer], (), ""
        if answer[:1] == "/" and (words := answer[1:].strip()):
            return "words", (), words
        if pick := _PICK.fullmatch(answer):
            picked = tuple(dict.fromkeys(int(one) - 1 for one in re.findall(r"\d+", pick["numbers"])))
            if all(0 <= one < papers for one in picked):
                return "write" if pick["write"] else "cite", picked, ""
            note(f"There are papers 1 to {papers}.")
        else:
            print(_HELP, end="", file=sys.stderr)
