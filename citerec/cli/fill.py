"""`citerec fill`: cites papers at the places of a draft that want a citation."""

import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.console import ask, confirm, note, output, say
from citerec.cli.options import (
    Encoding,
    Exclude,
    IndexPath,
    KeyPattern,
    Limits,
    Share,
    Switch,
    SystemOptions,
    at_least,
    refuse_without,
)
from citerec.corpus.citation_keys import DEFAULT_PATTERN
from citerec.errors import WriterError
from citerec.records import Answer, Context, Filters, Hit, Paper

if TYPE_CHECKING:
    from rich.text import Text

    from citerec.cli.tables import Remarks
    from citerec.drafts.filling import Filling
    from citerec.drafts.listing import Listed
    from citerec.recommend import Recommender

_SHOWN = 5
_COUNTS = 0.1  # of a score: smaller reasons are not shown
_HELP = """\
1        cite paper 1; several: 1,3
s        skip this place
m        show more papers
w 1,3    write a text that cites papers 1 and 3
/WORDS   search again, for these words
q        stop: what is filled stays, and the rest can be filled later
"""
_NUMBERS = re.compile(r"\d+(?:[\s,]+\d+)*")
_WRITE = re.compile(rf"w\s+({_NUMBERS.pattern})")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Asked:
    """How places are filled.

    Attributes:
        k: How many papers are shown at a place.
        own_first: List papers of your bibliography first that fit well. --yes always takes the system's first paper.
        yes: Ask nothing: cite the first paper of each place.
        min_confidence: With --yes: only where it is at least so sure, from 0 to 1, that the first paper is right. Needs
            citerec train confidence.
        diff: Show the changes as a unified diff, and write nothing.
        keep_old: Keep each file as it was, as NAME.orig.
        title: Title of the paper that you write.  [default: the draft's]
        citing: The paper of the index that you write: it is never cited.
    """

    k: Annotated[int, Parameter(name="-k", validator=at_least(1, 100))] = _SHOWN
    own_first: Switch = True
    yes: bool = False
    min_confidence: Share | None = None
    diff: bool = False
    keep_old: bool = False
    title: Annotated[str | None, Parameter(metavar="TEXT")] = None
    citing: Annotated[str | None, Parameter(metavar="ID")] = None


def fill(
    draft: Path,
    /,
    *,
    bib: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    index: IndexPath = None,
    asked: Asked = Asked(),
    keys: KeyPattern = DEFAULT_PATTERN,
    encoding: Encoding = None,
    limits: Limits = Limits(),
    exclude: Exclude = (),
    chosen: SystemOptions = SystemOptions(),
) -> None:
    r"""Fill the places of DRAFT that want a citation.

    DRAFT is LaTeX, Markdown or plain text, with \cite{?}, \cite{TODO}, \todo{cite …}, [@?] or <REF> where a
    citation is missing. At each place you see the best papers, why they fit, and a sentence that supports
    them; you pick one or several. The draft cites them, and the bibliography gets their entries. Both files
    are written after each pick. What you skip stays, and can be filled later.

    Example: citerec fill paper.tex --bib refs.bib --index indexes/demo

    Without questions, only where it is sure: citerec fill paper.tex --yes --min-confidence 0.8

    To see the changes first: citerec fill paper.tex --yes --diff

    Args:
        draft: The draft.
        bib: The bibliography, which is made if it is missing.  [default: the draft's own]
    """
    if asked.min_confidence is not None and not asked.yes:
        raise UsageError("--min-confidence goes with --yes only")
    from citerec.confidence import not_calibrated
    from citerec.drafts import Files, check_places
    from citerec.drafts.filling import Filling
    from citerec.index.titles import papers_of_index
    from citerec.recommend import Recommender

    place, name, recipe = chosen.choose(index)
    refuse_without("--index", place, citing=asked.citing, min_confidence=asked.min_confidence)
    with Recommender.open(place, recipe) as recommender:
        if place and asked.min_confidence is not None and recommender.calibration is None:
            raise not_calibrated(place, recommender.recipe, name)

        match = functools.partial(papers_of_index, index=recommender.index) if place else None
        filling = Filling(draft, bib, Files(encoding), match, keys)
        check_places(filling.draft, draft)
        for unreadable in filling.bibliography.unreadable:
            note(f"{unreadable} (this entry is not used)", style="yellow")
        _Session(filling, recommender, limits.filters(exclude), asked).run()


class _Picked(NamedTuple):
    """What a place gets: papers to cite, none if it stays open; and a text to put behind its sentence."""

    papers: Sequence[Paper] = ()
    said: str = ""


class _Session:
    def __init__(self, filling: "Filling", recommender: "Recommender", filters: Filters, asked: Asked) -> None:
        self._filling, self._recommender, self._filters, self._asked_for = filling, recommender, filters, asked
        self._entries = len(filling.bibliography.entries)

    def run(self) -> None:
        """Goes from place to place, and says at the end what was done."""
        filling, skipped, whole = self._filling, 0, len(self._filling.draft.places)
        take: Callable[[int, str], _Picked | None] = self._surely if self._asked_for.yes else self._asked
        while skipped < len(filling.draft.places):
            number = whole - len(filling.draft.places) + skipped + 1
            try:
                picked = take(skipped, f"{number} of {whole}")
            except (EOFError, KeyboardInterrupt):
                break
            if picked is None:
                break
            if not picked.papers:
                skipped += 1
                continue
            place = filling.draft.places[skipped]
            keys = filling.cite(skipped, *picked)
            if self._asked_for.diff:
                note(f"{place}: {', '.join(keys)}")
            else:
                filling.files.write(keep_old=self._asked_for.keep_old)
                say(f"{place}: {', '.join(keys)}")
        left = len(filling.draft.places)
        if self._asked_for.diff:
            print(filling.files.diff(), end="")
        added, bibliography = len(filling.bibliography.entries) - self._entries, filling.bibliography.path
        done = "would be filled" if self._asked_for.diff else "filled"
        entries = "1 new entry" if added == 1 else f"{added} new entries"
        note(f"{whole - left} of {whole} places {done}, {left} left; {entries} in {bibliography}.")

    def _context(self, place: int) -> Context:
        stated = {"citing_id": self._asked_for.citing, "citing_title": self._asked_for.title}
        return self._filling.draft.contexts(self._recommender.store, self._filling.cited, **stated)[place]

    def _search(self, context: Context, k: int, *, explain: bool) -> Answer:
        most = min(k, self._recommender.index.most_hits)
        return self._recommender.search(context, most, self._filters, explain=explain, fold=True)

    def _surely(self, place: int, _number: str) -> _Picked:
        """The first paper, if the system is sure enough of it."""
        answer, least = self._search(self._context(place), 1, explain=False), self._asked_for.min_confidence
        unsure = least is not None and (answer.confidence is None or answer.confidence.first < least)
        if not answer.hits or unsure:
            at = self._filling.draft.places[place]
            sure = f" (the first is right with {answer.confidence.first:.0%})" if answer.confidence else ""
            note(f"{at}: left open, {'no paper found' if not answer.hits else f'not sure enough{sure}'}.")
            return _Picked()
        return _Picked([one.paper for one in self._listed(answer)])

    def _asked(self, place: int, number: str) -> _Picked | None:
        """The papers that the person picks; none to skip the place, None to stop."""
        context, k = self._context(place), self._asked_for.k
        shown = self._show(context, place, number, k)
        while True:
            given = ask("Pick, s to skip, ? for help: ")
            if given in ("s", "q"):
                return None if given == "q" else _Picked()
            if given == "m":
                k += self._asked_for.k
                shown = self._show(context, place, number, k)
            elif written := _WRITE.fullmatch(given):
                papers = _papers(written[1], shown)
                if papers and (said := self._said(context, papers)):
                    return _Picked(papers, said)
            elif given.startswith("/") and given[1:].strip():
                context = replace(context, text=given[1:].strip(), before="", after="")
                shown = self._show(context, place, number, k)
            elif _NUMBERS.fullmatch(given):
                if papers := _papers(given, shown):
                    return _Picked(papers)
            else:
                print(_HELP, end="", file=sys.stderr)

    def _said(self, context: Context, papers: list[Paper]) -> str:
        """A text that cites papers, as the draft will have it; empty if it is not wanted."""
        from citerec.write.citation import citation_task, draft, in_draft
        from citerec.write.writers import default_writer, open_writer

        try:
            made = draft(citation_task(context, papers), papers, open_writer(default_writer("citation"), "citation"))
        except WriterError as error:
            note(str(error))
            return ""
        text = in_draft(made, self._filling)
        say(text)
        note("It is generated from their abstracts: check it.")
        wanted = confirm("Cite them, and insert this text behind the sentence?", default=False)
        return text if wanted else ""

    def _show(self, context: Context, place: int, number: str, k: int) -> "list[Listed]":
        from citerec.cli.tables import show_answer

        answer = self._search(context, k, explain=True)
        at = self._filling.draft.places[place]
        section = f" · {at.section}" if at.section else ""
        output().rule(f"{at} · {number}{section}", style="dim", align="left")
        shown = self._listed(answer)
        brief = replace(answer, hits=tuple(_brief(one.hit) for one in shown))
        show_answer(brief, self._recommender.titles(answer.hits), remarks=self._remarks(shown))
        return shown

    def _listed(self, answer: Answer) -> "list[Listed]":
        from citerec.drafts.listing import listed

        return listed(answer, self._filling.bibliography, own_first=self._asked_for.own_first)

    def _remarks(self, shown: "Sequence[Listed]") -> "dict[str, Remarks]":
        """What else is shown with each paper; headings where the author's own come before others."""
        from citerec.cli.tables import Remarks

        own = sum(one.comes_first for one in shown)
        headings = {0: "from your bibliography", own: "all others"} if own else {}
        return {
            one.hit.paper.paper_id: Remarks(list(_notes(one)), headings.get(place, ""))
            for place, one in enumerate(shown)
        }


def _notes(one: "Listed") -> "Iterator[Text]":
    """What supports the claim in its abstract, unless a citing sentence does; and the key that it has already."""
    from rich.text import Text

    if sentence := one.support:
        yield Text("it says: ", style="green").append(f"“{sentence}”", "italic")
    if one.key:
        yield Text("in your bibliography: ", style="green").append(one.key, "cyan")


def _papers(numbers: str, shown: "Sequence[Listed]") -> list[Paper]:
    """The papers with some numbers; none, and a note, if there is no such number."""
    picked = [int(one) for one in re.findall(r"\d+", numbers)]
    if all(1 <= one <= len(shown) for one in picked):
        return [shown[one - 1].paper for one in dict.fromkeys(picked)]
    note(f"There are papers 1 to {len(shown)}.")
    return []


def _brief(hit: Hit) -> Hit:
    """A hit with the reasons for it that count, and without words."""
    return replace(hit, matches=(), reasons=tuple(reason for reason in hit.reasons if reason.score >= _COUNTS))
