"""`citerec recommend`, `run` and `fill`: papers to cite."""

import contextlib
import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.rule import Rule
from rich.text import Text

from citerec.cli import options
from citerec.cli.console import ask, confirm, give, headed, is_terminal, json_bytes, note, parts_of, say
from citerec.confidence import not_calibrated
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import LeakRules, Topic
from citerec.drafts import Draft, Files, Place, check_places, draft_of_text, place_marker, read_draft
from citerec.drafts.bibliography import read_cited
from citerec.errors import CiterecError, InputError, SettingsError, UsageError
from citerec.files.progress import progress_bar, told
from citerec.files.writing import apart
from citerec.recommend import Recommender
from citerec.records import MARKER, Answer, Context, Filters, Paper
from citerec.retrieve.base import Candidates
from citerec.retrieve.entries import papers_of_index
from citerec.retrieve.run import SearchOptions, run_lines

if TYPE_CHECKING:  # what one of the commands needs, it imports itself: none waits for the others
    from citerec.cli.picker import Action
    from citerec.drafts.files import State
    from citerec.drafts.filling import DraftHit, Filling
    from citerec.index.build import Follower
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

            found = suggestions(draft, recommender, Files(encoding), before, k=1, filters=limits.filters, **named)
            contexts, places = [one.answer.context for one in found], [one.place for one in found]
        else:
            contexts = draft.contexts(recommender.store, before, are_in_text=False, **named)
        answers = [recommender.search(context, k, limits.filters, **searched) for context in contexts]
        if min_confidence is not None:
            answers = [answer.if_sure(min_confidence) for answer in answers]
        tldrs = {}
        if tldr:
            from citerec.write import drafting
            from citerec.write.writers.base import open_writer

            summaries = drafting.tldrs(_papers(answers), open_writer(None, "tldr"))
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
            note(f"No paper shares a word with the sentence and passes the filters{sure}.")


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


def _draft(sentence: str | None, file: Path | None, encoding: str | None, *, needs_place: bool) -> Draft:
    if sentence is not None:
        return draft_of_text(sentence)
    if file is not None and str(file) != "-":
        draft = read_draft(file, Files(encoding))
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
    from citerec.index.build import Follower

    asked = opened(chosen, near=draft, citing=fill_options.citing)
    with asked as (recommender, place), contextlib.ExitStack() as stack:
        if fill_options.yes in _TAKEN and recommender.calibration is None:
            fault = "this system cannot say of a paper whether it is sure or likely"
            remedy = (
                "Fill all places, --yes=any; or calibrate it: citerec train confidence --contexts FILE --index INDEX"
            )
            raise SettingsError(fault, remedy)
        session: _Session  # it opens the index anew where that grows
        match = (lambda entries: papers_of_index(entries, session.recommender.index)) if place else None
        filling = Filling(draft, bib, Files(encoding), match, keys or project_of(draft).keys)
        follower = Follower(place) if place else None
        session = _Session(recommender, limits.filters, fill_options, filling, follower, stack)
        if not fill_options.suggest:
            check_places(filling.draft, draft)
        for unreadable in filling.bibliography.unreadable:
            note(f"{unreadable} (this entry is not used)", style="yellow")
        session.run()


_Done = Literal["cited", "skipped", "back", "undo", "stale", "stopped"]
_Taken = tuple[_Done, list[Paper], str]
"""What was done at a place: the papers that it shall cite, if any, and a text that cites them."""


@dataclass(slots=True)
class _Session:
    recommender: Recommender
    filters: Filters
    options: FillOptions
    filling: "Filling"
    follower: "Follower | None"
    opened: contextlib.ExitStack
    past: list[tuple[int, "State"]] = field(default_factory=list)
    marked: Path | None = None  # the file with a place for a suggestion, which is never written

    def _reload(self) -> bool:
        """Reads what others have saved, and adds to the index what is new in its bibliographies; whether they have."""
        if is_saved := self.filling.reload():
            self.past.clear()  # what others have saved is never taken back
        saved = self._saved()
        if self.follower and saved:
            index, names = self.follower.index, ", ".join(map(str, saved))
            try:
                self.follower.follow(saved)
                self.recommender = self.opened.enter_context(Recommender.open(index, self.recommender.recipe))
                note(f"{index} is up to date with {names}.")
            except CiterecError as error:
                note(f"{index} is not up to date with {names}: {error}", style="yellow")
        return is_saved or bool(saved)

    def _saved(self) -> list[Path]:
        """The bibliographies of the index that others have saved; that of the draft is written here too."""
        saved = self.follower.saved() if self.follower else []
        own = [self.filling.bibliography.path.resolve()] if self.past else []
        return [one for one in saved if one.resolve() not in own]

    def _is_stale(self) -> bool:
        return self.filling.files.is_stale(self.marked) or bool(self._saved())

    def run(self) -> None:
        """Goes from place to place, and says at the end what was done."""
        filling, options, skipped = self.filling, self.options, 0
        whole, entries = len(filling.draft.places), len(filling.bibliography.entries)
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            while skipped < len(filling.draft.places):
                if self._reload():
                    continue
                place = filling.draft.places[skipped]
                context = filling.draft.contexts(self.recommender.store, filling.cited, **self._citing)[skipped]
                done = self._fill(skipped, context, place)
                if done == "undo" and self.past:
                    skipped, texts = self.past.pop()
                    filling.restore(texts)
                    self._write(f"{filling.draft.places[skipped]}: taken back")
                else:
                    skipped = max(0, skipped + {"skipped": 1, "back": -1}.get(done, 0))
        left, cited = len(filling.draft.places), 0
        if options.suggest and skipped == left:  # nobody has stopped
            with contextlib.suppress(EOFError, KeyboardInterrupt):
                cited = self._suggest()
        new = len(filling.bibliography.entries) - entries
        if options.diff:
            print(filling.files.diff(), end="")
        filled = "would be filled" if options.diff else "filled"
        added = f"{new} new {'entry' if new == 1 else 'entries'}"
        done_so = [f"{whole - left} of {whole} places {filled}, {left} left"] if whole or not options.suggest else []
        if options.suggest:
            done_so.append(f"{cited} suggested {'sentence cites' if cited == 1 else 'sentences cite'}")
        note(f"{'; '.join([*done_so, added])} in {filling.bibliography.path}.")

    @property
    def _citing(self) -> dict[str, Any]:
        return {"citing_id": self.options.citing, "citing_title": self.options.title}

    def _fill(self, number: int, context: Context, place: Place) -> _Done:
        """Cites what is picked at a place."""
        take = self._surely if self.options.yes else self._asked
        done, papers, said = take(context, place)
        if papers:
            self.past.append((number, self.filling.files.state()))
            self._write(f"{place}: {', '.join(self.filling.cite(number, papers, said))}")
        return done

    def _write(self, done: str) -> None:
        """Writes the files, and says what was done."""
        if not self.options.diff:
            self.filling.files.write()
        (note if self.options.diff else say)(done)

    def _suggest(self) -> int:
        """Goes through sentences that may want a citation; how many cite something then."""
        cited, seen = 0, set[str]()
        while True:
            done, taken = self._suggest_some(seen)
            cited += taken
            if done != "stale":
                return cited
            self._reload()

    def _suggest_some(self, seen: set[str]) -> tuple[str, int]:
        """Goes through those that were not `seen`, until a file is saved; what was done last, and how many cite."""
        from citerec.drafts.suggest import suggestions

        filling, number, done = self.filling, 0, ""
        options: dict[str, Any] = {"k": 1, "filters": self.filters, **self._citing}
        every = suggestions(filling.draft, self.recommender, filling.files, filling.cited, **options)
        found = [one for one in every if one.sentence not in seen]
        # By the number of a suggestion that was taken: the texts before, and how much longer its file is since.
        taken: dict[int, tuple[State, int]] = {}
        while number < len(found):
            one, texts = found[number], filling.files.state()
            path, size = one.place.path, len(filling.files.text(one.place.path))
            before = (by for at, (_, by) in taken.items() if found[at].place.path == path and found[at].end <= one.end)
            end = one.end + sum(before)
            place, self.marked = filling.mark(path, end, one.marker), path
            try:
                done = self._fill(place, one.answer.context, one.place)
            except (EOFError, KeyboardInterrupt):
                done = "stopped"
            self.marked = None
            if done == "cited":
                taken[number] = texts, len(filling.files.text(path)) - size
            else:
                filling.unmark(path, end, one.marker)
            if done in ("stopped", "stale"):
                break
            if done in ("cited", "skipped"):
                seen.add(one.sentence)
            if done == "undo" and taken:
                number, (texts, _) = taken.popitem()
                filling.restore(texts)
                self._write(f"{found[number].place}: taken back")
                continue
            number += -1 if done == "back" and number and number - 1 not in taken else done in ("cited", "skipped")
        return done, len(taken)

    def _search(self, context: Context, k: int, place: Place) -> "tuple[Answer, list[DraftHit]]":
        """An answer, and its papers in the order in which they are shown."""
        from citerec.drafts.filling import draft_hits

        most = min(k, self.recommender.index.most_hits)
        filters = replace(self.filters, exclude=(*self.filters.exclude, *self.filling.beside(place)))
        answer = self.recommender.search(context, most, filters, explain=not self.options.yes, fold=True)
        return answer, draft_hits(answer, self.filling.bibliography, own_first=self.options.own_first)

    def _surely(self, context: Context, place: Place) -> _Taken:
        """The first paper, if the system is sure enough of it."""
        answer, shown = self._search(context, 1, place)
        verdict = answer.hits[0].verdict if answer.hits else None
        if answer.hits and (self.options.yes == "any" or verdict in _TAKEN[self.options.yes or "sure"]):
            return "cited", [one.paper for one in shown], ""
        if not answer.hits:
            said = "no paper found"
        elif answer.nothing_fits:
            said = "nothing in the index seems to fit"
        else:
            title = shown[0].paper.title
            said = f"{verdict}: {title if len(title) <= _TITLE else f'{title[:_TITLE]}…'}"
        note(f"{place}: left open, {said}.")
        return "skipped", [], ""

    def _asked(self, context: Context, place: Place) -> _Taken:
        """What a person does at a place, in a terminal or by lines; EOFError to stop."""
        k, own, marked, is_new = self.options.k, context, list[Paper](), True
        where = f"{place} · {place.section}" if place.section else str(place)
        while True:
            if is_new:
                answer, shown = self._search(context, k, place)
            action: Action
            if is_terminal():
                from citerec.cli.picker import choose

                (before, _, after), words = context.text.partition(MARKER), ""
                told = "Nothing in the index seems to fit; the nearest papers:" if answer.nothing_fits else ""
                still = [number for number, one in enumerate(shown) if one.paper in marked]
                action, picked = choose(where, (before, after), shown, told, still, self._is_stale)
            else:
                if is_new:
                    self._show(where, answer, shown)
                action, picked, words = _typed(len(shown))
            marked = papers = [shown[number].paper for number in picked]
            if action == "quit":
                raise EOFError
            if action in ("back", "undo", "stale"):
                return action, [], ""
            if action == "skip":
                return "skipped", [], ""
            said = self._said(context, papers) if action == "write" else ""
            if action == "cite" or said:
                return "cited", papers, said
            if action == "more":
                k += self.options.k
            elif action == "words":
                with contextlib.suppress(EOFError, KeyboardInterrupt):
                    words = words or ask("Search for (nothing: the sentence again): ")
                    context = replace(own, text=words, before="", after="") if words else own
            is_new = action != "write"

    def _said(self, context: Context, papers: list[Paper]) -> str:
        """A text that cites papers, as the draft will have it; empty if it is not wanted."""
        from citerec.write import drafting
        from citerec.write.writers.base import open_writer

        writer = open_writer(None, "citation")
        written = drafting.draft(drafting.citation_task(context, papers), papers, writer)
        text = drafting.in_draft(written, self.filling)
        say(text)
        note("It is generated from their abstracts: check it.")
        return text if confirm("Cite them, and insert this text behind the sentence?", default=False) else ""

    def _show(self, where: str, answer: Answer, shown: "Sequence[DraftHit]") -> None:
        """Shows the papers for a place, with what supports the claim, and the keys that they have already."""
        say(Rule(where, style="dim", align="left"))
        hits = tuple(one.hit for one in shown)
        say(*parts_of(replace(answer, hits=hits), self.recommender.titles(answer.hits), remarks=_remarks(shown)))


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
