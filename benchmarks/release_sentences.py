"""Sentences of a synthetic release that cite: sound ones, and every kind that must be refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from release_rates import Rates
from release_words import Words, capital, stop

STYLES = {
    "numbered-brackets": 0.3, "numbered-parentheses": 0.15, "superscript": 0.2, "author-year-parentheses": 0.2,
    "author-year-text": 0.15,
}  # fmt: skip
"""Styles of citations and their shares of the texts. Texts of the last one cite in parentheses too."""
_IN_TEXT = "author-year-text"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLACES = ("first", "middle", "middle", "last", "end")
_MARKS_A_SPACE_FOLLOWS = frozenset(")]}\"'”’.,;:!?")
MARKER = "<REF>"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a bibliography.

    Attributes:
        row: The cited paper.
        number: Its printed number, from 1.
        ref_id: Its id among the annotations.
        status: complete, incomplete, outside (of `papers`) or unmatched.
        names: How a text names its authors.
        year: How a text writes its year, with a letter if need be.
    """

    row: int
    number: int
    ref_id: str
    status: str
    names: str
    year: str

    @property
    def span(self) -> dict[str, Any]:
        """What a sound bib ref to it has beside its offsets."""
        return {"attributes": {"ref_id": self.ref_id}}


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation's surface.

    Attributes:
        text: As it stands in the text.
        span: What its annotation has beside offsets; None where it has no annotation.
        style: Name of the style.
        skipped: How many characters of its beginning the annotation leaves out.
    """

    text: str
    span: dict[str, Any] | None
    style: str
    skipped: int = 0


@dataclass(slots=True)
class Sentence:
    """A sentence, and what is annotated in it; offsets count from its beginning.

    Attributes:
        text: As it stands in the text, with a superscript after its final punctuation.
        kind: What was planted.
        spans: Bib refs: start, end, and what they have beside.
        strays: Bib refs whose offsets are wrong: in which way, start, end, and what they have beside.
        cited: Rows of the matched papers that it cites.
        usable: The entry, style, start, end and place of its citation, if it is a usable context.
    """

    text: str
    kind: str = "none"
    spans: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    strays: list[tuple[str, int, int, dict[str, Any]]] = field(default_factory=list)
    cited: tuple[int, ...] = ()
    usable: tuple[Entry, str, int, int, str] | None = None


def marked(text: str, start: int, end: int, style: str) -> str:
    """A sentence with <REF> in place of its citation: the rule of the truth.

    One space is put before the marker if a letter, a digit, a closing bracket or quote or one of .,;:!? stands there,
    and one after it if a letter or digit follows; white space is folded. A superscript behind the sentence's final
    punctuation goes before it.
    """
    before, after = text[:start], text[end:]
    if style == "superscript" and not after and before[-1:] in (".", "?", "!"):
        before, after = before[:-1], before[-1]
    if before and (before[-1].isalnum() or before[-1] in _MARKS_A_SPACE_FOLLOWS):
        before += " "
    if after and after[0].isalnum():
        after = " " + after
    return " ".join(f"{before}{MARKER}{after}".split())


class Citing:
    """Writes the citing sentences of one text, in its style."""

    def __init__(
        self,
        words: Words,
        rates: Rates,
        random: Random,
        style: str,
        entries: Sequence[Entry],
        topic: Callable[[int], str],
    ) -> None:
        self._words, self._rates, self._random, self._draw = words, rates, random, random.random
        self._style, self._entries, self._topic = style, entries, topic
        self._by_status: dict[str, list[Entry]] = {}
        for entry in entries:
            self._by_status.setdefault(entry.status, []).append(entry)
        self._raised = style == "superscript" and random.random() < 0.5
        brackets = {"numbered-brackets": ("[", "]"), "numbered-parentheses": ("(", ")")}
        self._open, self._close = brackets.get(style, ("", ""))
        self._between = " " if not self._is_raised and random.random() < 0.7 else ""
        self._writers: dict[str, Callable[[], Sentence]] = {
            "sound": lambda: self._one(self._entry("complete"), usable=True),
            "year_beside": lambda: self._one(self._entry("complete"), usable=True, beside=True),
            "unmatched": lambda: self._one(self._entry("unmatched")),
            "incomplete": lambda: self._one(self._entry("incomplete")),
            "outside": lambda: self._one(self._entry("outside")),
            "no_ref_id": lambda: self._one(self._entry("complete"), span=self._no_ref_id()),
            "unknown_ref_id": lambda: self._one(
                self._entry("complete"), span={"attributes": {"ref_id": random.choice(("b999", "b-1", "x3"))}}
            ),
            "group": self._group,
            "group_one_span": self._group_one_span,
            "range": self._range,
            "two": self._two,
            "mangled": self._mangled,
            "footnote": lambda: self._one(self._entry("complete"), lead=self._footnote_lead()),
            "no_stop": lambda: self._one(self._entry("complete"), ending="" if self._draw() < 0.8 else ":"),
            "bad_offsets": self._bad_offsets,
            "cut": self._cut,
        }

    def sentence(self, kind: str) -> Sentence:
        """A sentence of a kind of `Rates`."""
        if kind == "range" and self._names:
            kind = "group"
        written = self._writers[kind]()
        written.kind = kind
        return written

    @property
    def _names(self) -> bool:
        return self._style.startswith("author-year")

    @property
    def _is_raised(self) -> bool:
        return self._style == "superscript"

    def _entry(self, status: str) -> Entry:
        return self._random.choice(self._by_status[status])

    def _several(self, count: int) -> list[Entry]:
        return sorted(self._random.sample(self._entries, count), key=lambda entry: entry.number)

    def _number(self, entry: Entry) -> str:
        return str(entry.number).translate(_SUPERSCRIPTS) if self._raised else str(entry.number)

    def _no_ref_id(self) -> dict[str, Any]:
        return self._random.choice(({"attributes": {}}, {"attributes": {"ref_id": None}}, {"attributes": None}, {}))

    def _footnote_lead(self) -> str:
        number = str(self._random.randint(1, 30))
        return f"{number} This is because " if self._draw() < 0.5 else f"{number.translate(_SUPERSCRIPTS)}This is why "

    def _mark(self, entry: Entry, span: dict[str, Any] | None, *, in_text: bool = True) -> Mark:
        if not self._names:
            return Mark(f"{self._open}{self._number(entry)}{self._close}", span, self._style)
        if in_text and self._style == _IN_TEXT and self._draw() < 0.6:
            narrow = self._draw() < self._rates.narrow
            return Mark(f"{entry.names} ({entry.year})", span, _IN_TEXT, len(entry.names) + 1 if narrow else 0)
        return Mark(f"({entry.names}, {entry.year})", span, "author-year-parentheses")

    def _one(
        self,
        entry: Entry,
        *,
        usable: bool = False,
        beside: bool = False,
        span: dict[str, Any] | None = None,
        lead: str = "",
        ending: str | None = None,
    ) -> Sentence:
        """One citation, by default a sound one, at any place."""
        mark = self._mark(entry, entry.span if span is None else span)
        words = self._words.body(self._draw).split(" ")
        if self._draw() < 0.7:
            words += ["for", "the", *self._topic(entry.row).split(" ")]
        if beside:
            # Even numbers only: pysbd takes "2) … 3)", be it of years, for the items of a list.
            year = f"({self._random.randrange(1950, 2022, 2)})"
            year = year if self._draw() < 0.5 else f"(Figure {self._random.randrange(2, 10, 2)})"
            # Not after the first word: with its capital it would look like a name.
            words.insert(self._random.randint(2, len(words) - 1), year)
        final = stop(self._draw) if ending is None else ending
        place = self._random.choice(_PLACES)
        if lead and place == "first":
            place = "end"
        if self._is_raised and final in (".", "?", "!") and self._draw() < 0.35:
            place = "after_stop"
            written = _joined([capital(lead + " ".join(words)) + final, mark])
        elif place == "first" and not self._is_raised:
            verb = self._random.choice(self._words.verbs)
            written = _joined([mark, f" {verb}ed that {' '.join(words)}{final}"])
        else:
            at = self._gap(words, place)
            place = place if at < len(words) else "end"
            written = _joined(self._around(words, at, [mark], lead, final))
        written.cited = (entry.row,)
        if usable:
            start = next(start for start, _, _ in written.spans) - mark.skipped
            written.usable = (entry, mark.style, start, start + len(mark.text), place)
        return written

    def _gap(self, words: list[str], place: str) -> int:
        """Between which words a marker goes; only between letters, so that no number stands beside it."""
        last = len(words)
        if place == "first":
            tries: Sequence[int] = (2, 1)
        elif place == "last":
            tries = (last - 1, last - 2)
        elif place == "middle":
            tries = [self._random.randint(2, last - 2) for _ in range(6)]
        else:
            tries = ()
        return next((at for at in tries if _is_word(words[at - 1]) and _is_word(words[at])), last)

    def _around(
        self, words: list[str], at: int, unit: list[str | Mark], lead: str = "", final: str | None = None
    ) -> list[str | Mark]:
        """The pieces of a sentence with a unit of marks before the word of that number."""
        final = stop(self._draw) if final is None else final
        before, after = words[:at], words[at:]
        space, space_after = ("" if self._is_raised else " "), " "
        if self._open:
            chance = self._draw()
            if chance < self._rates.glued / 2:
                space = ""
            elif chance < self._rates.glued and self._open == "[":
                space_after = ""
            elif self._draw() < self._rates.quoted:
                quotes = '""' if self._draw() < 0.5 else "“”"
                before[-1], space = f"{quotes[0]}{before[-1].rstrip(',')}{quotes[1]}", ""
        tail = f"{space_after}{' '.join(after)}{final}" if after else final
        return [capital(lead + " ".join(before)) + space, *unit, tail]

    def _spread(self, unit: list[str | Mark]) -> Sentence:
        """A sentence with a unit of marks in it or at its end."""
        words = self._words.body(self._draw).split(" ")
        return _joined(self._around(words, self._gap(words, self._random.choice(("middle", "last", "end"))), unit))

    def _pieces(self, entries: Sequence[Entry]) -> list[str]:
        """The surface of a group, one piece a paper."""
        if self._names:
            texts, comma, opening, closing = [f"{one.names}, {one.year}" for one in entries], ";", "(", ")"
        else:
            texts, comma, opening, closing = [self._number(one) for one in entries], ",", self._open, self._close
        texts[0], texts[-1] = opening + texts[0], texts[-1] + closing
        return [f"{text}{comma}" for text in texts[:-1]] + texts[-1:]

    def _group(self) -> Sentence:
        entries = self._several(self._random.choice((2, 2, 3, 4)))
        unit: list[str | Mark] = []
        for entry, piece in zip(entries, self._pieces(entries), strict=True):
            span = entry.span if self._draw() < 0.9 else self._no_ref_id()
            unit += [Mark(piece, span, self._style), " " if self._names else self._between]
        written = self._spread(unit[:-1])
        written.cited = _matched(entries)
        return written

    def _group_one_span(self) -> Sentence:
        entries = self._several(2)
        text = (" " if self._names else self._between).join(self._pieces(entries))
        written = self._spread([Mark(text, self._entry("complete").span, self._style)])
        written.cited = _matched(entries)
        return written

    def _range(self) -> Sentence:
        first, *_, last = self._several(6)
        dash = self._random.choice("–-")
        unit: list[str | Mark] = [
            Mark(f"{self._open}{self._number(first)}{dash}", first.span, self._style),
            Mark(f"{self._number(last)}{self._close}", last.span, self._style),
        ]
        written = self._spread(unit)
        written.cited = _matched([first, last])
        return written

    def _two(self) -> Sentence:
        first = self._entry("complete")
        second = first if self._draw() < 0.2 else self._random.choice(self._entries)
        span = second.span if self._draw() < 0.8 else self._no_ref_id()
        while True:
            words = self._words.body(self._draw).split(" ")
            if (at := self._gap(words, "middle")) < len(words):
                break
        pieces = self._around(words, at, [self._mark(first, first.span)], final="")
        pieces += ["" if self._is_raised else " ", self._mark(second, span), stop(self._draw)]
        written = _joined(pieces)
        written.cited = _matched([first, second])
        return written

    def _mangled(self) -> Sentence:
        one, two, three = self._several(3)
        complete = self._entry("complete")
        if self._names:
            first, second = f"({one.names}, {one.year}", f"({one.names}, {two.year})"
            if self._draw() < 0.5:
                unit: list[str | Mark] = [Mark(first, one.span, self._style), Mark(second, complete.span, self._style)]
            else:
                unit = [Mark(first + second, complete.span, self._style)]
        else:
            # A raised number cannot be mangled this way: there, brackets stand among the superscripts.
            opening, closing = self._open or "[", self._close or "]"
            text = f"{opening}{one.number}, {two.number}{opening}{three.number}{closing}"
            text = f" {text}" if self._is_raised else text
            unit = [Mark(text, complete.span, self._style)]
        written = self._spread(unit)
        written.cited = _matched([one])
        return written

    def _loose(self) -> tuple[Sentence, Entry, int, int]:
        """A sentence whose marker has no annotation, the entry that it means, and where the marker stands."""
        complete = self._by_status["complete"]
        entry = self._random.choice([one for one in complete if one.number % 2 == 0] or complete)
        while True:
            words = self._words.body(self._draw).split(" ")
            if (at := self._gap(words, "middle")) < len(words):
                break
        # It stays unmasked: "et al." would end a sentence for some splitters, odd numbers make lists (see above).
        named = replace(entry, names=entry.names.removesuffix(" et al."), year=f"{entry.year[:3]}4")
        mark = self._mark(named, None, in_text=False)
        pieces = self._around(words, at, [mark])
        start = len(str(pieces[0]))
        return _joined(pieces), entry, start, start + len(mark.text)

    def _bad_offsets(self) -> Sentence:
        written, entry, start, end = self._loose()
        way = self._random.choice(("outside", "reversed", "negative"))
        written.strays = [(way, start, end, entry.span)]
        written.cited = (entry.row,)
        return written

    def _cut(self) -> Sentence:
        while True:
            written, entry, start, _ = self._loose()
            # Two neighbours before the marker, long enough to be cut, so that the span runs from word into word.
            ends = [at for at in range(3, start - 4) if written.text[at] == " "]
            ends = [
                at for at in ends if written.text[at - 3 : at].isalpha() and written.text[at + 1 : at + 4].isalpha()
            ]
            if ends:
                break
        at = self._random.choice(ends)
        written.spans = [(at - 2, at + 2, entry.span)]
        written.cited = (entry.row,)
        return written


def _joined(pieces: Sequence[str | Mark]) -> Sentence:
    """The sentence of its pieces, with the spans of its marks."""
    text = ""
    spans = []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if piece.span is not None:
            spans.append((len(text) + piece.skipped, len(text) + len(piece.text), piece.span))
        text += piece.text
    return Sentence(text, spans=spans)


def _is_word(token: str) -> bool:
    return token.rstrip(",").isalpha()


def _matched(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Rows of the matched papers, each once."""
    return tuple(dict.fromkeys(entry.row for entry in entries if entry.status != "unmatched"))
