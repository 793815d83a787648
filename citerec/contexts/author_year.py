"""Author–year citations: names and years, inside a bracket and in running text.

Tokens are read from left to right, or in a window of fixed width: the time is linear in the length of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from citerec.contexts.vocabulary import vocabulary

_WINDOW = 160  # characters before a year in which its names must be
_YEAR = r"(?:1[6-9]|20)\d\d"
_UNDATED = (
    r"in\s+press|under\s+review|in\s+revision|in\s+prep(?:aration|\.)?|forthcoming|to\s+appear|submitted|accepted"
    r"|unpublished|n\.\s?d\."
)

# Possessive repeats (`++`) give nothing back: no input makes them try twice.
_TOKEN = re.compile(
    rf"""
    (?P<year>{_YEAR}(?!\d)(?:\s?[–-]\s?{_YEAR}(?!\d)|/\s?{_YEAR}(?!\d))?(?:[a-z](?:[–-][a-z])?(?!\w))?|(?i:{_UNDATED})(?!\w))
  | (?P<marker><REF>)
  | (?P<etal>[Ee]t\.?\s*al(?!\w)\.?(?:['’]s?(?!\w))?|and\s+(?:others|colleagues|co-?workers|associates)(?!\w))
  | (?P<lead>(?:e\.\s?g\.|i\.\s?e\.|cf\.?(?!\w)|viz\.))
  | (?P<place>
      (?:pp?|bk|book|study|experiment|exp|lines?|ll|n|ch|chaps?|chapters?|sec|sect|sections?|figs?|figures?|tables?|tab|eqs?|equations?|theorem|thm|lemma
        |vols?|nos?|appendix|part|pages?|examples?|prop|proposition|note|footnote|fn|para|§)
      \.?\s?(?:\d[\w.]*+(?:\s?[–—-]\s?\d++)?|[ivxl]++(?:[–-][ivxl]++)?)(?!\w)
      | :\s?\d++(?:\s?[–—-]\s?\d++)?(?!\w)
      | (?:[Aa]ppendix|[Aa]pp\.)\s[A-Z](?!\w)
    )
  | (?P<number>\d++(?:\s?[–—-]\s?\d++)?(?!\w))
  | (?P<initial>[A-Z]\.(?:[\s-]?[A-Z]\.)*+(?!\w))
  | (?P<word>[^\W\d_](?:[\w'’‐¨´-]|\.(?=\w)|(?<=-)\s(?=[a-zà-ÿ]{{2}}))*+)
  | (?P<amp>&(?:amp;)?)
  | (?P<comma>,|:(?=\s))
  | (?P<semicolon>;)
  | (?P<dot>\.)
  | (?P<space>\s++)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_BARE_YEAR = re.compile(rf"(?<![\w(\[–-]){_YEAR}(?!\d)(?:[a-z](?!\w))?(?![–-]\d)")

_WITHIN_NAMES = ("of", "for", "the", "on")  # Bureau of Statistics
_BETWEEN = ("e", "y")  # between two surnames: Souza e Silva
_ACRONYM = 3  # letters from which capitals alone are a meeting's name rather than an author's


@dataclass(frozen=True, slots=True)
class Entry:
    """Names with years: the span in the text, and the number of years."""

    start: int
    end: int
    works: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The citations in a text between brackets.

    Attributes:
        years_first: Years before any name: they belong to names before the bracket.
        prose: Whether there is other text.
        markers: How many `<REF>` there are.
        broken: Whether an author has no year, or a year no author.
        ends_open: Whether it ends in names without a year.
    """

    entries: tuple[Entry, ...]
    years_first: int
    prose: bool
    markers: int
    broken: bool
    ends_open: bool

    @property
    def whole(self) -> bool:
        """Whether everything between the brackets belongs to citations."""
        return not self.prose and not self.ends_open

    @property
    def works(self) -> int:
        """How many works are cited."""
        return self.years_first + sum(entry.works for entry in self.entries)


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str, start: int, end: int) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text, start, end):
        kind, word = str(match.lastgroup), match.group()
        if kind == "space":
            continue
        if kind == "word":
            kind = _kind_of_word(word)
        yield _Token(kind, word, match.start(), match.end())


def _kind_of_word(word: str) -> str:
    lower = word.lower()
    if lower in ("and", "und"):
        return "amp"
    if len(word) == 1 and word.isalpha():
        return "letter" if word.islower() else "initial"
    if lower in vocabulary("particles") and not word[0].isupper():
        return "particle"
    if lower in vocabulary("leads") and not (
        word[0].isupper() and lower not in vocabulary("no_names") and lower not in ("see", "for")
    ):
        return "lead"
    if is_name(word):
        return "name"
    return "lead" if lower in ("see", "for") else "other"


def is_name(word: str) -> bool:
    """Whether a word looks like a surname: it has a capital, and is not a month, heading or function word."""
    head = word.removesuffix("'s").removesuffix("’s")
    if head.lower() in vocabulary("no_names") or any(character.isdigit() for character in head):
        return False
    if head[0].isupper():
        return len(head) > 1
    # d'Alembert, al-Rahman, deHaan
    return bool(re.match(r"[a-z]{1,3}['’-]?[A-Z]", head))


def read_bracket(text: str, start: int, end: int) -> Reading:
    """Reads the text between an opening bracket, just before `start`, and the closing one at `end`."""
    entries: list[Entry] = []
    whole, broken, markers, years_first = True, False, 0, 0
    names: list[_Token] = []
    last = ""  # what the last token was: name, year, or something between
    for token in _tokens(text, start, end):
        match token.kind:
            case "name" | "particle" | "initial" | "etal" | "amp":
                names.append(token)
                last = "name"
            case "comma" if names:
                names.append(token)
            case "semicolon":
                whole = whole and not _has_name(names)
                broken = broken or _are_authors(names)
                names = []
            case "comma" | "dot":
                pass
            case "year":
                broken = broken or (bool(names) and names[-1].kind == "amp" and _has_name(names))
                if _has_name(names) and not _is_meeting(names):
                    first = _first_of(names, whole)
                    entries.append(Entry(first.start, token.end, _works(token)))
                elif entries and last in ("year", "place"):
                    entries[-1] = Entry(entries[-1].start, token.end, entries[-1].works + _works(token))
                elif not entries and not names and last in ("", "year"):
                    years_first += 1
                else:
                    whole = False
                names, last = [], "year"
            case "letter" if last == "year" and entries:
                entries[-1] = Entry(entries[-1].start, token.end, entries[-1].works + 1)
            case "letter" if last == "year" and years_first:
                years_first += 1
            case "place" | "number" if (entries or years_first) and (
                token.kind == "place" or last in ("year", "place")
            ):
                names, last = [], "place"
                if entries:
                    entries[-1] = replace(entries[-1], end=token.end)
            case "marker":
                markers += 1
                names, last = [], "marker"
            case "lead" | "letter" if token.kind == "lead" or token.text == "a":
                if _has_name(names) and token.text in _WITHIN_NAMES:
                    continue
                # "see", or "in": names before it are prose
                whole = whole and not _has_name(names)
                names = []
            case _:
                whole = False
                names, last = [], "other"
    broken = broken or _are_authors(names)
    return Reading(tuple(entries), years_first, not whole, markers, broken, _has_name(names))


def _has_name(names: list[_Token]) -> bool:
    return any(token.kind == "name" for token in names)


def _are_authors(names: list[_Token]) -> bool:
    return _has_name(names) and any(token.kind == "etal" and token.text[0] in "eE" for token in names)


def _works(year: _Token) -> int:
    """The works of a year, `1998a–c`: three."""
    first, last = year.text[-3:-2], year.text[-1:]
    is_range = year.text[-2:-1] in ("–", "-") and first.isalpha() and last.isalpha()
    return max(ord(last) - ord(first) + 1, 1) if is_range else 1


def _is_meeting(names: list[_Token]) -> bool:
    """Whether it is a meeting with its year, `SIGIR 2010`, rather than an author."""
    only = [token for token in names if token.kind != "initial"]
    return len(only) == 1 and only[0].text.isupper() and len(only[0].text) >= _ACRONYM


def _first_of(names: list[_Token], whole: bool) -> _Token:
    """Where the names begin: in a bracket with prose, those that a comma separates from it."""
    if whole or any(token.kind in ("etal", "amp") for token in names):
        return next(token for token in names if token.kind not in ("comma", "amp"))
    parts = [position for position, token in enumerate(names) if token.kind == "comma" and position + 1 < len(names)]
    return names[parts[-1] + 1] if parts else names[0]


@dataclass(frozen=True, slots=True)
class Names:
    """The start of the names before a year or a bracket; sure if `and`, `&` or `et al.` says that they are authors."""

    start: int
    sure: bool


def names_before(text: str, end: int) -> Names | None:
    """The names that end at a place, as in `Lee, Kim and Roy (2003)`; None if there are none."""
    start = max(0, end - _WINDOW)
    if start:  # do not begin within a word
        gap = text.find(" ", start, end)
        start = gap if gap >= 0 else end
    tokens = list(_tokens(text, start, end))
    at = len(tokens) - 1
    sure = False
    while at >= 0 and tokens[at].kind == "comma":
        at -= 1
    if at >= 0 and tokens[at].kind == "etal":
        sure = True
        at -= 1
        while at >= 0 and tokens[at].kind == "comma":
            at -= 1
    if (first := _name_ending_at(tokens, at)) is None:
        return None
    while True:
        before = first - 1
        joined = False
        while before >= 0 and tokens[before].kind in ("amp", "comma"):
            joined = joined or tokens[before].kind == "amp" or sure
            before -= 1
        if before == first - 1 or not joined:
            break
        earlier = _name_ending_at(tokens, before)
        if earlier is None:
            break
        sure, first = True, earlier
    return Names(tokens[first].start, sure)


def _name_ending_at(tokens: list[_Token], at: int) -> int | None:
    """The token at which the name that ends at a token begins, particles and initials with it."""
    if at >= 0 and tokens[at].kind == "dot" and at and tokens[at - 1].text in ("Jr", "Sr"):
        at -= 2
        while at >= 0 and tokens[at].kind == "comma":
            at -= 1
    if at < 0 or tokens[at].kind != "name":
        return None
    if at > 1 and tokens[at - 1].kind == "dot" and tokens[at - 2].text == "St":
        return at - 2
    while at > 0 and (
        tokens[at - 1].kind in ("particle", "initial")
        or (tokens[at - 1].text in _BETWEEN and at > 1 and tokens[at - 2].kind == "name")
        or (tokens[at - 1].kind == "name" and tokens[at].text in _BETWEEN)
        or (tokens[at - 1].kind == "name" and tokens[at - 1].text.lower() in vocabulary("particles"))
    ):
        at -= 1
    return at


def years_in_text(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of years in running text, as in `Lee et al., 1997`."""
    for match in _BARE_YEAR.finditer(text):
        yield match.start(), match.end()
