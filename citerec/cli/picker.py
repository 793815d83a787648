"""Choosing papers for a place in a terminal: the sentence stays in sight, a paper is a line, and opens."""

import re
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.styles import Style

from citerec.corpus.citation_keys import cited_as
from citerec.drafts.filling import DraftHit
from citerec.records import why

Action = Literal["cite", "write", "skip", "more", "words", "back", "undo", "stale", "quit"]
"""What a person wants at a place; `stale` if a file was saved meanwhile."""

_STYLES = Style.from_dict(
    {
        "place": "reverse",
        "rule": "ansibrightblack",
        "sure": "ansigreen bold",
        "likely": "ansiyellow",
        "weak": "ansibrightblack",
        "chosen": "reverse",
        "says": "bold underline",
        "dim": "ansibrightblack",
    }
)
_HELP = (
    "↑↓ move  → or Enter open  Enter again, or number: cite  Space mark  o DOI\n"
    "w write a text  s skip  / other words  m more  b back  u undo  q stop"
)
_ACTIONS: dict[str, Action] = {"s": "skip", "m": "more", "b": "back", "u": "undo", "q": "quit", "/": "words"}


class Choice(NamedTuple):
    """What was chosen: an action, and for `cite` and `write` the numbers of papers, from 0."""

    action: Action
    picked: tuple[int, ...] = ()


def _wrapped(parts: StyleAndTextTuples) -> StyleAndTextTuples:
    """A text that is broken between words, at the width of the terminal."""
    broken: StyleAndTextTuples = []
    width, column = get_app().output.get_size().columns - 1, 0
    for style, text, *_ in parts:
        for word in re.findall(r"\n|[^\S\n]+|\S+", text):
            if word == "\n" or (column + len(word) > width and not word.isspace()):
                broken.append(("", "\n"))
                column = 0
            if word != "\n":
                broken.append((style, word))
                column += len(word)
    return broken


@dataclass
class _Picker:
    where: str
    sentence: tuple[str, str]
    papers: Sequence[DraftHit]
    at: int = 0
    is_open: bool = False
    marked: list[int] = field(default_factory=list)
    typed: str = ""

    def head(self) -> StyleAndTextTuples:
        before, after = self.sentence
        return _wrapped([("class:rule", f"{self.where}\n"), ("", before), ("class:place", " ? "), ("", after)])

    def listed(self) -> StyleAndTextTuples:
        parts: StyleAndTextTuples = []
        for number, one in enumerate(self.papers):
            style, verdict = "class:chosen" if number == self.at else "", one.hit.verdict or ""
            label = f"{cited_as(one.hit.paper)}{f' [{one.key}]' if one.key else ''} · {one.hit.paper.title}"
            parts.append((style, f"{'●' if number in self.marked else ' '}{number + 1:2} "))
            parts += [(f"{style} class:{verdict}", f"{verdict:7}"), (style, label), ("", "\n")]
        return parts or [("class:dim", "No paper found. / searches other words.")]

    def opened(self) -> StyleAndTextTuples:
        """The paper that is open: what it is, why it is there, and its abstract with the sentence that supports it."""
        one = self.papers[self.at]
        paper, says = one.hit.paper, one.support or ""
        before, _, after = (paper.abstract or "").partition(says) if says else (paper.abstract or "", "", "")
        about = [paper.title, ", ".join(paper.authors), paper.venue, *why(one.hit), self.address()]
        head = "\n".join(filter(None, about))
        return _wrapped([("class:rule", f"{head}\n"), ("", before), ("class:says", says), ("", after)])

    def address(self) -> str:
        """Where the paper is that the cursor is at; empty if it has no DOI."""
        doi = self.papers[self.at].hit.paper.external_ids.get("DOI") if self.papers else None
        return f"https://doi.org/{doi}" if doi else ""

    def keys(self) -> KeyBindings:
        keys, last = KeyBindings(), len(self.papers) - 1

        def bind(act: Callable[[], Choice | None], *names: str) -> None:
            def handle(event: Any) -> None:
                if choice := act():
                    event.app.exit(result=choice)

            for name in names:
                keys.add(name)(handle)

        def move(by: int) -> None:
            self.typed = ""
            self.at = max(0, min(self.at + by, last))

        def toggle() -> None:
            if self.papers:
                (self.marked.remove if self.at in self.marked else self.marked.append)(self.at)
                move(1)

        def enter() -> Choice | None:
            if self.papers and (self.marked or self.is_open or self.typed):
                return cite(self.at) if self.typed or not self.marked else Choice("cite", tuple(self.marked))
            self.is_open = bool(self.papers)
            return None

        def cite(number: int) -> Choice:
            return Choice("cite", tuple(dict.fromkeys([*self.marked, number])))

        def type_digit(digit: str) -> Choice | None:
            """Of up to nine papers a digit cites one; of more it goes to one, which Enter cites."""
            self.typed = self.typed + digit if 0 < int(self.typed + digit) <= last + 1 else digit
            if not 0 < int(self.typed) <= last + 1:
                self.typed = ""
            elif last < 9:
                return cite(int(self.typed) - 1)
            else:
                self.at = int(self.typed) - 1
            return None

        def act(action: Action) -> Choice:
            return Choice(action, tuple(self.marked))

        def show(is_open: bool) -> None:
            self.is_open = is_open and bool(self.papers)

        def browse() -> None:
            if address := self.address():
                webbrowser.open(address)

        bind(lambda: move(1), "down", "j")
        bind(lambda: move(-1), "up", "k")
        bind(lambda: show(True), "right")
        bind(lambda: show(False), "left", "escape")
        bind(toggle, "space")
        bind(enter, "enter")
        bind(browse, "o")
        bind(lambda: Choice("write", tuple(self.marked) or (self.at,)) if self.papers else None, "w")
        bind(lambda: Choice("quit"), "c-c", "c-d")
        for key, action in _ACTIONS.items():
            bind(partial(act, action), key)
        for digit in "0123456789":
            bind(partial(type_digit, digit), digit)
        return keys


def choose(
    where: str,
    sentence: tuple[str, str],
    papers: Sequence[DraftHit],
    told: str = "",
    marked: Sequence[int] = (),
    is_stale: Callable[[], bool] = lambda: False,
) -> Choice:
    """What a person chooses at a place.

    Args:
        where: Where the place is.
        sentence: The sentence before and after the place.
        papers: The papers, best first.
        told: What is said of them all, such as how sure the system is, or what happened last.
        marked: The numbers of those that are marked already.
        is_stale: Whether a file was saved, so that the papers may be others now; it is asked each second.
    """
    picker = _Picker(where, sentence, papers, marked=[*marked])
    is_open = Condition(lambda: picker.is_open)

    def text(parts: Callable[[], StyleAndTextTuples]) -> Window:
        return Window(FormattedTextControl(parts), wrap_lines=True, dont_extend_height=True)

    listed = FormattedTextControl(
        picker.listed, focusable=True, show_cursor=False, get_cursor_position=lambda: Point(0, picker.at)
    )
    many = Dimension(min=3, preferred=len(papers) + 1)
    root = HSplit(
        [
            text(picker.head),
            Window(height=1, char="─", style="class:rule"),
            Window(listed, height=many),
            ConditionalContainer(Window(height=1, char="─", style="class:rule"), filter=is_open),
            ConditionalContainer(text(picker.opened), filter=is_open),
            Window(),
            text(lambda: [("class:dim", told)]),
            text(lambda: _wrapped([("class:dim", _HELP)])),
        ]
    )
    application: Application[Choice] = Application(
        Layout(root, focused_element=listed),
        key_bindings=picker.keys(),
        style=_STYLES,
        full_screen=True,
        refresh_interval=1,
    )

    def look(_: Application[Choice]) -> None:
        if not picker.is_open and not application.is_done and is_stale():
            application.exit(result=Choice("stale"))

    application.after_render += look
    application.timeoutlen = application.ttimeoutlen = 0.05
    return application.run()
