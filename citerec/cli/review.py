"""`citerec diagnostics review`: the manual check of a set, context by context."""

import io
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.console import output
from citerec.cli.options import Count
from citerec.errors import InputError
from citerec.evaluation.rendering import Cell, Column, Span, Table, left, marked, right, show
from citerec.files.text import counted
from citerec.records import MARKER, Context

if TYPE_CHECKING:
    from rich.console import Console

    from citerec.diagnostics.review import Applied, Item, Review, Tally, Verdict
    from citerec.diagnostics.sets import SetManifest

_KEYS = "a accept · r reject · n note · b back · s skip · q quit · ? help > "
_HELP = """
  a  accept: it is one whole sentence with exactly one citation, <REF> is exactly in the place of
     that citation, and its class is right
  r  reject: one of these is wrong; you are asked for a short reason, or press Enter for none
  n  note something without a verdict yet; the note is kept with the verdict
  b  back: undo the last verdict or skip, and show that context again
  s  skip: it is shown again in the next session
  q  quit: all verdicts are saved, and the next session continues from here
"""


def review(
    name: str,
    /,
    *,
    reviewer: Annotated[str | None, Parameter(metavar="NAME")] = None,
    sample: Annotated[Count | None, Parameter(metavar="N")] = None,
    of_class: Annotated[str | None, Parameter(name="--class", metavar="FAMILY/CLASS")] = None,
    status: bool = False,
    apply: bool = False,
) -> None:
    """Check the set NAME by hand: accept or reject its contexts, one by one.

    Each verdict is saved at once in the folder NAME.reviews beside the set's directory, one file per
    reviewer; the same command continues where it stopped. The order is random but the same for all
    reviewers, and gives each class its share from the start. If standard input is not a terminal, each
    of its lines is a key.

    --apply rewrites the set: a rejected context goes to rejected.jsonl, and the first reserve of its
    cell and class that cites no used paper replaces it, to be reviewed in turn.

    Example: citerec diagnostics review mine

    Args:
        name: The set.
        reviewer: Who judges.  [default: the login name]
        sample: Judge N contexts, spread over the classes.
        of_class: Judge one class only, such as length/long.
        status: Show what was judged, how much is sound, how well reviewers agree.
        apply: Replace the contexts that anyone rejected by reserves.
    """
    from citerec.diagnostics.review import apply_reviews, check_may_review, check_reviewer
    from citerec.diagnostics.sets import find_set

    if status and apply:
        raise UsageError("give --status or --apply, not both")
    if (status or apply) and (reviewer or sample or of_class):
        raise UsageError("--status and --apply cover all reviewers and contexts: give them alone")
    path = find_set(name)
    if status:
        _show_status(output(), path, name)
    elif apply:
        _show_applied(output(), apply_reviews(path), path, name)
    else:
        check_may_review(path)
        session = _Session(path, name, check_reviewer(reviewer or _login()), of_class, sample)
        session.run()
        session.show_end()


def _pressed() -> str:
    """The key that is pressed on the terminal, without waiting for the end of a line."""
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.getwch()
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal, termios.TCSANOW)
        key = os.read(terminal, 4).decode(errors="replace") or "q"
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    if key == "\x03":  # Ctrl-C
        raise KeyboardInterrupt
    return key


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise UsageError("your login name is unknown: give --reviewer NAME") from None


class _Session:
    """One reviewer's session on a set."""

    def __init__(self, path: Path, name: str, reviewer: str, of_class: str | None, sample: int | None) -> None:
        from citerec.diagnostics.review import items_of, read_reviews, review_order
        from citerec.diagnostics.sets import SetManifest

        self._path, self._name, self._reviewer = path, name, reviewer
        self._manifest = SetManifest.read(path)
        self._order = review_order(items_of(path))
        if of_class:
            self._order = _of_class(self._order, of_class, self._manifest)
        self._order = self._order[:sample]
        here = {item.context.context_id for item in self._order}
        self._said: dict[str, Review] = dict(read_reviews(path).get(reviewer, {}))
        self._steps = [one.context_id for one in self._said.values() if one.verdict and one.context_id in here]
        self._skipped: set[str] = set()
        self._console = output()
        self._input = sys.stdin or io.StringIO()  # None if it was closed
        if isinstance(self._input, io.TextIOWrapper):
            self._input.reconfigure(errors="replace")

    def run(self) -> None:
        """Shows one context after the other, until all are judged or the reviewer quits."""
        places = {item.context.context_id: place for place, item in enumerate(self._order)}
        at = self._next()
        if at is None:
            self._console.print(
                f"{self._reviewer} has judged all {counted(len(self._order), 'context')}.", markup=False
            )
        while at is not None:
            context_id = at.context.context_id
            _show_item(self._console, at, f"{places[context_id] + 1:,} of {len(self._order):,}", self._manifest)
            if note := self._note(context_id):
                self._console.print(f"noted: {note}", style="yellow", markup=False)
            key = self._judge(context_id)
            if key == "q":
                return
            at = self._order[places[self._take_back()]] if key == "b" else self._next()

    def _judge(self, context_id: str) -> str:
        """Acts on keys until there is a verdict or a step to another context; returns the last key."""
        while True:
            self._console.print(_KEYS, end="")
            key = self._key()
            if key == "a":
                self._say(context_id, "accept")
                self._console.print("accepted", style="green")
            elif key == "r":
                self._say(context_id, "reject")
                self._console.print("rejected", style="red")
                if why := self._line("why (Enter for no reason): "):
                    noted = self._note(context_id)
                    self._say(context_id, "reject", f"{noted}; {why}" if noted else why)
            elif key == "s":
                self._skipped.add(context_id)
                self._console.print("skipped")
            elif key == "n":
                self._console.print()
                if note := self._line("note: "):
                    self._say(context_id, None, note)
                continue
            elif key == "b" and not self._steps:
                self._console.print("there is nothing to go back to")
                continue
            elif key in ("b", "q"):
                self._console.print("back" if key == "b" else "quit")
                return key
            else:
                self._console.print(_HELP if key == "?" else "no such key: ? lists them", markup=False)
                continue
            self._steps.append(context_id)
            return key

    def _say(self, context_id: str, verdict: "Verdict | None", note: str | None = None) -> None:
        from citerec.diagnostics.review import record_verdict

        note = self._note(context_id) if note is None else note
        self._said[context_id] = record_verdict(self._path, self._reviewer, context_id, verdict, note)

    def _take_back(self) -> str:
        """Undoes the last verdict or skip, and returns the id of its context."""
        context_id = self._steps.pop()
        if context_id in self._skipped:
            self._skipped.remove(context_id)
        else:
            was_rejected = self._verdict(context_id) == "reject"
            self._say(context_id, None, "" if was_rejected else None)  # the reason of a rejection is dropped too
        return context_id

    def _key(self) -> str:
        """The key that was pressed, or a line if the input is not a terminal; the end of input quits."""
        if not self._input.isatty():
            line = self._input.readline()
            return line.strip().lower() if line else "q"
        return _pressed().lower()

    def _line(self, prompt: str) -> str:
        self._console.print(prompt, end="")
        line = " ".join(self._input.readline().split())
        if not self._input.isatty():
            self._console.print(line, markup=False)
        return line

    def show_end(self) -> None:
        """Shows what was judged so far, and what to do next."""
        from citerec.diagnostics.review import agreement, items_beside, items_of, read_reviews, tally
        from citerec.diagnostics.sets import REJECTED

        console, reviews, items = self._console, read_reviews(self._path), items_of(self._path)
        so_far = tally(items, items_beside(self._path, REJECTED), reviews.get(self._reviewer, {}))
        console.print(
            f"\n[bold]{self._reviewer}[/]  {so_far.accepted:,} accepted, {so_far.rejected:,} rejected, "
            f"{so_far.left:,} left; sound {_share(so_far)}"
        )
        if agreement(reviews):
            _show_agreement(console, reviews)
        command = f"citerec diagnostics review {self._name}"
        console.print()
        if so_far.left:
            console.print(f"Go on:                       {command}", markup=False, soft_wrap=True)
        console.print(f"All reviewers, by family:    {command} --status", markup=False, soft_wrap=True)
        ids = {item.context.context_id for item in items}
        if any(one.verdict == "reject" for by in reviews.values() for one in by.values() if one.context_id in ids):
            console.print(f"Take out what was rejected:  {command} --apply", markup=False, soft_wrap=True)

    def _next(self) -> "Item | None":
        """The first context that is neither judged nor skipped."""
        ids = ((item, item.context.context_id) for item in self._order)
        return next((item for item, one in ids if one not in self._skipped and not self._verdict(one)), None)

    def _verdict(self, context_id: str) -> str | None:
        return self._said[context_id].verdict if context_id in self._said else None

    def _note(self, context_id: str) -> str:
        return self._said[context_id].note if context_id in self._said else ""


def _of_class(items: "list[Item]", of_class: str, manifest: "SetManifest") -> "list[Item]":
    """The contexts of one class.

    Raises:
        InputError: The set has no such class, or no context of it.
    """
    family, _, label = of_class.partition("/")
    if family not in manifest.families:
        raise InputError(
            f"the set has no family {family!r}", f"Write FAMILY/CLASS; families are {', '.join(manifest.families)}."
        )
    classes = manifest.families[family].classes
    found = [item for item in items if item.context.labels.get(family) == label]
    if not found:
        known = ", ".join(name for name, n in classes.items() if n) or "none"
        raise InputError(f"no context is in the class {of_class!r}", f"Classes of {family} with contexts are: {known}.")
    return found


def _show_item(console: "Console", item: "Item", position: str, manifest: "SetManifest") -> None:
    """Shows a context, what is known of it, and what to check."""
    from rich.text import Text

    context, cell = item.context, item.slot
    held = dict.fromkeys(
        condition
        for family in item.classes
        if family in manifest.families
        for condition in manifest.families[family].conditions
    )
    classes: tuple[Span, ...] = (
        (" · ".join(f"{family}: {label}" for family, label in item.classes.items()) or "none", "name"),
        (f"   held constant: {'; '.join(held)}" if held else "", "faint"),
    )
    before, _, after = context.text.partition(MARKER)
    citing = context.citing_id or context.citing_key or "a paper without a name"
    year = f" ({context.citing_year})" if context.citing_year else ""
    several = manifest.sampling is not None and not manifest.sampling.single
    citation = f"{MARKER} just in a citation's place" if several else f"just one citation, and {MARKER} in its place"
    rows: list[tuple[str, tuple[Span, ...]]] = [
        ("class", classes),
        ("cell", _plain(f"{cell[0]} · {cell[1]} · citations: group {cell[2]} (0 least, 9 most)" if cell else "")),
        ("section", _plain(context.section or "")),
        ("", _plain(" ")),  # an empty line around the sentences
        ("before", ((context.before, "faint"),)),
        ("sentence", ((before, ""), (MARKER, "warning"), (after, ""))),
        ("after", ((context.after, "faint"),)),
        ("", _plain(" ")),
        (MARKER, _plain(_marker(context, manifest))),
        ("papers", _plain(f"{citing}{year} cites {', '.join(context.cited_ids)}")),
        ("check", _plain(f"one whole sentence? {citation}? the class?")),
    ]
    cells = [[heading, Cell(None, spans)] for heading, spans in rows if any(text for text, _ in spans)]
    console.print()
    console.rule(Text(position, style="bold"), align="left", style="dim")
    show(console, Table([Column("", style="better", wrap=False), Column("")], cells, headed=False))


def _plain(text: str) -> "tuple[Span, ...]":
    return ((text, ""),)


def _marker(context: Context, manifest: "SetManifest") -> str:
    """What the marker replaces, and, if it matters for classes, which word of its sentence it is."""
    facts = [f"stands for “{context.marker}”"] if context.marker else []
    if length := manifest.bounds.length:
        from citerec.diagnostics.sentences import read_sentences

        (sentence,) = read_sentences([context])
        medium = f"medium: {math.ceil(length.low)} to {math.floor(length.high)}"
        facts.append(f"is word {sentence.position} of {sentence.length} ({medium})")
    return ", ".join(facts)


def _show_status(console: "Console", path: Path, name: str) -> None:
    """Shows the verdicts of each reviewer on each family, and how well they agree."""
    from rich.markup import escape

    from citerec.diagnostics.families import FAMILIES
    from citerec.diagnostics.review import items_beside, items_of, read_reviews, tally
    from citerec.diagnostics.sets import REJECTED

    items, gone, reviews = items_of(path), items_beside(path, REJECTED), read_reviews(path)
    if not reviews:
        console.print(f"Nobody has reviewed {name} yet. Begin: citerec diagnostics review {name}", markup=False)
        return
    interval = Column("sound [95 % interval]", "right")
    table = Table([*left("reviewer, family"), *right("accepted", "rejected", "left", format=","), interval])
    checked = {family for item in (*items, *gone) for family in item.classes}
    families = [family for family in FAMILIES if family in checked]
    for reviewer, verdicts in reviews.items():
        for family in (None, *families):
            some = [[item for item in all_of if family in (None, *item.classes)] for all_of in (items, gone)]
            found = tally(some[0], some[1], verdicts)
            name_of_row = f"  {family}" if family else marked(reviewer, "strong")
            table.rows.append([name_of_row, found.accepted, found.rejected, found.left, _share(found)])
    console.print(f"[bold]{escape(name)}[/]  {counted(len(items), 'context')}, {len(gone):,} taken out\n")
    show(console, table)
    console.print()
    _show_agreement(console, reviews)


def _show_agreement(console: "Console", reviews: "Mapping[str, Mapping[str, Review]]") -> None:
    """Shows how well each pair of reviewers agrees."""
    from citerec.diagnostics.review import agreement

    found = agreement(reviews)
    if not found:
        console.print("No context was judged by two reviewers: how well they would agree is not known.")
    for one in found:
        kappa = "not defined: both gave only one verdict" if one.kappa is None else f"{one.kappa:.2f}"
        console.print(
            f"{' and '.join(one.reviewers)}: both judged {counted(one.both, 'context')}, "
            f"{one.alike / one.both:.0%} alike; Cohen's kappa {kappa}",
            markup=False,
        )


def _share(found: "Tally") -> str:
    """The share of sound contexts among those judged."""
    from citerec.diagnostics.review import wilson

    judged = found.accepted + found.rejected
    if not judged:
        return "–"
    low, high = wilson(found.accepted, judged)
    return f"{found.accepted / judged:.1%} [{100 * low:.1f} {100 * high:.1f}]"


def _show_applied(console: "Console", applied: "Applied", path: Path, name: str) -> None:
    """Shows the changes to a set whose reviews were applied."""
    from rich.markup import escape

    if not applied.rejected:
        console.print(f"No context of {name} is rejected: nothing to do.", markup=False)
        return
    rejected, replaced = len(applied.rejected), len(applied.replacements)
    console.print(f"[bold]{escape(str(path))}[/]  {counted(applied.contexts, 'context')}", soft_wrap=True)
    console.print(
        f"{rejected:,} rejected: see rejected.jsonl; {replaced:,} replaced; {rejected - replaced:,} left open."
    )
    if replaced:
        waiting = f"{counted(replaced, 'context')} that stand{'s' * (replaced == 1)} in"
        console.print(f"\nReview the {waiting}:  citerec diagnostics review {name}", markup=False, soft_wrap=True)
