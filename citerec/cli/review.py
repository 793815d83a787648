"""`citerec diagnostics review`: the manual check of a set, context by context."""

import io
import math
import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.console import output, say
from citerec.cli.options import Count
from citerec.diagnostics import review as reviewing
from citerec.diagnostics.families import FAMILIES
from citerec.diagnostics.sentences import read_sentences
from citerec.diagnostics.sets import REJECTED, SetManifest, find_set
from citerec.errors import InputError
from citerec.evaluation.rendering import Column, Table, left, marked, right, show
from citerec.files.text import counted
from citerec.records import MARKER, Context

_KEYS = "a accept · r reject · n note · b back · s skip · q quit · ? help > "
_VERDICTS: dict[str, reviewing.Verdict] = {"a": "accept", "r": "reject"}
_HELP = """
  a  accept: one whole sentence with exactly one citation, <REF> is in its place, the class is right
  r  reject: one of these is wrong; you may say why        n  note something, without a verdict yet
  b  back: undo the last verdict or skip                   s  skip until the next session
  q  quit: all verdicts are saved, and the next session continues from here
"""
_NEXT = """
Go on, if any are left:      {command}
All reviewers:               {command} --status
Take out what was rejected:  {command} --apply"""


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
    if status and apply:
        raise UsageError("give --status or --apply, not both")
    if (status or apply) and (reviewer or sample or of_class):
        raise UsageError("--status and --apply cover all reviewers and contexts: give them alone")
    path = find_set(name)
    if status:
        _show_status(path, name)
    elif apply:
        _show_applied(reviewing.apply_reviews(path), path, name)
    else:
        reviewing.check_may_review(path)
        reviewer = reviewing.check_reviewer(reviewer or _login())
        _Session(path, reviewer, of_class, sample).run()
        say("")
        _show_status(path, name, reviewer)
        say(_NEXT.format(command=f"citerec diagnostics review {name}"))


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

    def __init__(self, path: Path, reviewer: str, of_class: str | None, sample: int | None) -> None:
        self._path, self._reviewer, self._manifest = path, reviewer, SetManifest.read(path)
        items = reviewing.review_order(reviewing.items_of(path))
        items = (_of_class(items, of_class) if of_class else items)[:sample]
        self._items = {item.context_id: item for item in items}
        self._reviews = reviewing.read_reviews(path).get(reviewer, {})
        judged = (key for key, review in self._reviews.items() if review.verdict and key in self._items)
        self._steps = dict.fromkeys(judged)  # contexts that are judged or skipped, in this order
        self._input = sys.stdin or io.StringIO()  # None if it was closed
        if isinstance(self._input, io.TextIOWrapper):
            self._input.reconfigure(errors="replace")

    def run(self) -> None:
        """Shows one context after the other, until all are judged or the reviewer quits."""
        if not (here := self._next()):
            say(f"{self._reviewer} has judged all {counted(len(self._items), 'context')}.")
        while here:
            place = f"{list(self._items).index(here) + 1:,} of {len(self._items):,}"
            _show_item(self._items[here], place, self._manifest, self._note(here))
            here = self._after(here)

    def _next(self) -> str | None:
        """The first context that is neither judged nor skipped."""
        return next((key for key in self._items if key not in self._steps), None)

    def _after(self, here: str) -> str | None:
        """Does what the keys say, until one leads to another context; None if there is none, or to quit."""
        while True:
            match self._key():
                case "q":
                    return None
                case "b" if self._steps:
                    back, _ = self._steps.popitem()
                    if (review := self._reviews.get(back)) and review.verdict:  # the reason of a rejection goes too
                        self._save(back, None, "" if review.verdict == "reject" else review.note)
                    return back
                case "b":
                    say("there is nothing to go back to")
                case "n":
                    if note := self._line("\nnote: "):
                        self._save(here, None, note)
                case "a" | "r" | "s" as key:
                    self._decide(here, key)
                    return self._next()
                case key:
                    say(_HELP if key == "?" else "no such key: ? lists them")

    def _decide(self, here: str, key: str) -> None:
        """Accepts, rejects or skips a context."""
        self._steps[here] = None
        verdict = _VERDICTS.get(key)
        say(f"{verdict}ed" if verdict else "skipped")
        if verdict:
            note = self._note(here)
            self._save(here, verdict, note)
            if key == "r" and (why := self._line("why (Enter for no reason): ")):
                self._save(here, verdict, "; ".join(filter(None, [note, why])))

    def _note(self, context_id: str) -> str:
        return self._reviews[context_id].note if context_id in self._reviews else ""

    def _save(self, context_id: str, verdict: reviewing.Verdict | None, note: str) -> None:
        self._reviews[context_id] = reviewing.record_verdict(self._path, self._reviewer, context_id, verdict, note)

    def _key(self) -> str:
        """The key that was pressed, or a line if the input is not a terminal; the end of input quits."""
        output().print(_KEYS, end="")
        if not self._input.isatty():
            line = self._input.readline()
            return line.strip().lower() if line else "q"
        return _pressed().lower()

    def _line(self, prompt: str) -> str:
        output().print(prompt, end="")
        return " ".join(self._input.readline().split())


def _of_class(items: list[reviewing.Item], of_class: str) -> list[reviewing.Item]:
    """The contexts of a class, `FAMILY/CLASS`; InputError if there are none."""
    found = [item for item in items if of_class in map("/".join, item.context.labels.items())]
    if not found:
        known = ", ".join(sorted({"/".join(label) for item in items for label in item.context.labels.items()}))
        raise InputError(f"no context is in the class {of_class!r}", f"Those with contexts are: {known}.")
    return found


def _show_item(item: reviewing.Item, position: str, manifest: "SetManifest", note: str) -> None:
    """Shows a context, what is known of it, and what to check."""
    from rich.table import Table as Grid
    from rich.text import Text

    context, cell, console = item.context, item.slot, output()
    families = [manifest.families[family] for family in item.classes if family in manifest.families]
    held = "; ".join(dict.fromkeys(condition for family in families for condition in family.conditions))
    classes = " · ".join(f"{family}: {label}" for family, label in item.classes.items()) or "none"
    before, _, after = context.text.partition(MARKER)
    year = f" ({context.citing_year})" if context.citing_year else ""
    is_single = manifest.sampling is None or manifest.sampling.single
    citing = context.citing_id or context.citing_key or "a paper without a name"
    rows = {
        "class": Text(classes, "cyan").append(f"   held constant: {held}" if held else "", "not bold dim"),
        "cell": Text(f"{cell[0]} · {cell[1]} · citations: group {cell[2]} (0 least, 9 most)" if cell else ""),
        "section": Text(context.section or ""),
        "before": Text(context.before, "dim"),
        "sentence": Text(before).append(MARKER, "bold yellow").append(after),
        "after": Text(context.after, "dim"),
        MARKER: Text(_marker(context, manifest)),
        "papers": Text(f"{citing}{year} cites {', '.join(context.cited_ids)}"),
        "check": Text(f"one whole sentence? {'just one citation? ' * is_single}{MARKER} just in its place? the class?"),
        "noted:": Text(note, "yellow"),
    }
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="green", no_wrap=True)
    for heading, text in rows.items():
        if text:
            grid.add_row(heading, text)
    console.print()
    console.rule(Text(position, style="bold"), align="left", style="dim")
    console.print(grid)


def _marker(context: Context, manifest: "SetManifest") -> str:
    """What the marker replaces, and, if it matters for classes, which word of its sentence it is."""
    facts = [f"stands for “{context.marker}”"] if context.marker else []
    if length := manifest.bounds.length:
        (sentence,) = read_sentences([context])
        medium = f"medium: {math.ceil(length.low)} to {math.floor(length.high)}"
        facts.append(f"is word {sentence.position} of {sentence.length} ({medium})")
    return ", ".join(facts)


def _show_status(path: Path, name: str, only: str = "") -> None:
    """Shows the verdicts on each family, of each reviewer or of one, and how well reviewers agree."""
    items, gone, reviews = reviewing.items_of(path), reviewing.items_of(path, REJECTED), reviewing.read_reviews(path)
    interval = Column("sound [95 % interval]", "right")
    table = Table([*left("reviewer, family"), *right("accepted", "rejected", "left", format=","), interval])
    checked = {family for item in (*items, *gone) for family in item.classes}
    for reviewer in [only] if only else reviews:
        for family in ("", *(one for one in FAMILIES if one in checked)):
            here, out = ([one for one in some if family in ("", *one.classes)] for some in (items, gone))
            counts = accepted, rejected, _ = reviewing.tally(here, out, reviews.get(reviewer, {}))
            share = "–"
            if judged := accepted + rejected:
                low, high = reviewing.wilson(accepted, judged)
                share = f"{accepted / judged:.1%} [{100 * low:.1f} {100 * high:.1f}]"
            heading = f"  {family}" if family else marked(reviewer, "strong")
            table.rows.append([heading, *counts, share])
    say(f"{name}  {counted(len(items), 'context')}, {len(gone):,} taken out, {counted(len(reviews), 'reviewer')}\n")
    show(output(), table)
    for names, both, alike, kappa in reviewing.agreement(reviews):
        told = "not defined: both gave only one verdict" if kappa is None else f"{kappa:.2f}"
        shared = f"{' and '.join(names)}: both judged {counted(both, 'context')}, {alike / both:.0%} alike"
        say(f"\n{shared}; Cohen's kappa {told}")


def _show_applied(applied: reviewing.Applied, path: Path, name: str) -> None:
    """Shows the changes to a set whose reviews were applied."""
    rejected, replaced = len(applied.rejected), len(applied.replacements)
    say(f"{path}  {counted(applied.contexts, 'context')}" if rejected else f"{name}: no rejection, nothing to do.")
    if rejected:
        say(f"{rejected:,} rejected: see rejected.jsonl; {replaced:,} replaced; {rejected - replaced:,} left open.")
    if replaced:
        say(f"\nReview the {counted(replaced, 'new context')}:  citerec diagnostics review {name}")
