"""Choosing papers for a place in a terminal: the sentence stays in sight, a paper is a line, and opens."""

import re
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.styles import Style

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


class Line(NamedTuple):
    """A paper to choose.

    Attributes:
        verdict: How sure the system is of it; empty if it cannot say.
        label: Authors, year, its key if the bibliography has it, and title.
        about: Title, venue, reasons and the like, when it is open.
        abstract: Its abstract, before, in and after the sentence that supports the claim.
        doi: Its DOI; empty if it has none.
    """

    verdict: str
    label: str
    about: str
    abstract: tuple[str, str, str]
    doi: str


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
    lines: Sequence[Line]
    told: str
    at: int = 0
    is_open: bool = False
    marked: list[int] = field(default_factory=list)
    typed: str = ""

    def head(self) -> StyleAndTextTuples:
        before, after = self.sentence
        return _wrapped([("class:rule", f"{self.where}\n"), ("", before), ("class:place", " ? "), ("", after)])

    def listed(self) -> StyleAndTextTuples:
        parts: StyleAndTextTuples = []
        for number, line in enumerate(self.lines):
            style = "class:chosen" if number == self.at else ""
            parts.append((style, f"{'●' if number in self.marked else ' '}{number + 1:2} "))
            parts += [(f"{style} class:{line.verdict}", f"{line.verdict:7}"), (style, line.label), ("", "\n")]
        return parts or [("class:dim", "No paper found. / searches other words.")]

    def opened(self) -> StyleAndTextTuples:
        line = self.lines[self.at]
        before, says, after = line.abstract
        doi = f"\nhttps://doi.org/{line.doi}" if line.doi else ""
        return _wrapped([("class:rule", f"{line.about}{doi}\n"), ("", before), ("class:says", says), ("", after)])

    def keys(self) -> KeyBindings:
        keys, last = KeyBindings(), len(self.lines) - 1

        def bind(*names: str) -> Callable[[Callable[[], Choice | None]], None]:
            def bound(act: Callable[[], Choice | None]) -> None:
                def handle(event: Any) -> None:
                    if choice := act():
                        event.app.exit(result=choice)

                for name in names:
                    keys.add(name)(handle)

            return bound

        def move(by: int) -> None:
            self.typed = ""
            self.at = max(0, min(self.at + by, last))

        def toggle() -> None:
            if self.lines:
                (self.marked.remove if self.at in self.marked else self.marked.append)(self.at)
                move(1)

        def enter() -> Choice | None:
            if self.lines and (self.marked or self.is_open or self.typed):
                return cite(self.at) if self.typed or not self.marked else Choice("cite", tuple(self.marked))
            self.is_open = bool(self.lines)
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
            self.is_open = is_open and bool(self.lines)

        def browse() -> None:
            if self.lines and self.lines[self.at].doi:
                webbrowser.open(f"https://doi.org/{self.lines[self.at].doi}")

        bind("down", "j")(lambda: move(1))
        bind("up", "k")(lambda: move(-1))
        bind("right")(lambda: show(True))
        bind("left", "escape")(lambda: show(False))
        bind("space")(toggle)
        bind("enter")(enter)
        bind("o")(browse)
        bind("w")(lambda: Choice("write", tuple(self.marked) or (self.at,)) if self.lines else None)
        bind("c-c", "c-d")(lambda: Choice("quit"))
        for key, action in _ACTIONS.items():
            bind(key)(partial(act, action))
        for digit in "0123456789":
            bind(digit)(partial(type_digit, digit))
        return keys


def choose(
    where: str,
    sentence: tuple[str, str],
    lines: Sequence[Line],
    told: str = "",
    marked: Sequence[int] = (),
    is_stale: Callable[[], bool] = lambda: False,
) -> Choice:
    """What a person chooses at a place.

    Args:
        where: Where the place is.
        sentence: The sentence before and after the place.
        lines: The papers, best first.
        told: What is said of them all, such as how sure the system is, or what happened last.
        marked: The numbers of those that are marked already.
        is_stale: Whether a file was saved, so that the papers may be others now; it is asked each second.
    """
    picker = _Picker(where, sentence, lines, told, marked=[*marked])

    def text(parts: Callable[[], StyleAndTextTuples], **options: Any) -> Window:
        control = FormattedTextControl(parts, **options)
        return Window(control, wrap_lines=not options, dont_extend_height=True)

    listed = FormattedTextControl(
        picker.listed, focusable=True, show_cursor=False, get_cursor_position=lambda: Point(0, picker.at)
    )
    many = Dimension(min=3, preferred=len(lines) + 1)
    root = HSplit(
        [
            text(picker.head),
            Window(height=1, char="─", style="class:rule"),
            Window(listed, height=many),
            ConditionalContainer(Window(height=1, char="─", style="class:rule"), filter=_condition(picker)),
            ConditionalContainer(text(picker.opened), filter=_condition(picker)),
            Window(),
            text(lambda: [("class:dim", picker.told)]),
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


def _condition(picker: _Picker) -> Any:
    from prompt_toolkit.filters import Condition

    return Condition(lambda: picker.is_open)
