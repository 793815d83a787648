"""Author–year citations: names and years, inside a bracket and in running text.

Tokens are read from left to right, or in a window of fixed width: the time is linear in the length of the text.
"""

import functools
import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import NamedTuple

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
_ACRONYM = 3  # letters from which capitals alone are a meeting's name rather than an author's

# Names as patterns over codes, one letter for each token (`_code`): "St. Clair", "van der Roy", "Souza e Silva, Jr.".
_NAME = r"(?:S\.|(?:[PSpi]|[NPSJ]b)*)[NPSJ](?:,*J\.)?"
_NAMES = re.compile(
    rf"(?P<others>(?:{_NAME}[&,]+)*{_NAME},*e,*)$|(?P<joined>(?:{_NAME}[&,]+)*{_NAME},*&[&,]*{_NAME},*)$|{_NAME},*$"
)
_CODES = {"initial": "i", "particle": "p", "etal": "e", "amp": "&", "comma": ",", "dot": "."}
_CODES_OF_WORDS = {"St": "S", "Jr": "J", "Sr": "J", "e": "b", "y": "b"}


@dataclass(slots=True)
class Entry:
    """Names with years: the span in the text, and the number of years."""

    start: int
    end: int
    works: int


@dataclass(slots=True)
class Reading:
    """The citations in a text between brackets.

    Attributes:
        years_first: Years before any name: they belong to names before the bracket.
        prose: Whether there is other text.
        markers: How many `<REF>` there are.
        broken: Whether an author has no year, or a year no author.
        ends_open: Whether it ends in names without a year.
    """

    entries: list[Entry] = field(default_factory=list)
    years_first: int = 0
    prose: bool = False
    markers: int = 0
    broken: bool = False
    ends_open: bool = False

    @property
    def whole(self) -> bool:
        """Whether everything between the brackets belongs to citations."""
        return not self.prose and not self.ends_open

    @property
    def works(self) -> int:
        """How many works are cited."""
        return self.years_first + sum(entry.works for entry in self.entries)


class Names(NamedTuple):
    """The start of the names before a year or a bracket; sure if `and`, `&` or `et al.` says that they are authors."""

    start: int
    sure: bool


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def vocabulary(name: str) -> frozenset[str]:
    """A set of words by its name in vocabulary.toml, in lower case: they tell citations from similar text."""
    return _vocabularies()[name]


@functools.cache
def _vocabularies() -> dict[str, frozenset[str]]:
    text = resources.files("citerec.contexts").joinpath("vocabulary.toml").read_text(encoding="utf-8")
    return {name: frozenset(words.split()) for name, words in tomllib.loads(text).items()}


def _tokens(text: str, start: int, end: int) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text, start, end):
        kind, word = str(match.lastgroup), match.group()
        if kind != "space":
            yield _Token(_kind_of_word(word) if kind == "word" else kind, word, *match.span())


def _kind_of_word(word: str) -> str:
    lower = word.lower()
    if lower in ("and", "und"):
        return "amp"
    if len(word) == 1 and word.isalpha():
        return "letter" if word.islower() else "initial"
    if lower in vocabulary("particles") and not word[0].isupper():
        return "particle"
    if lower in vocabulary("leads") and (
        not word[0].isupper() or lower in vocabulary("no_names") or lower in ("see", "for")
    ):
        return "lead"
    return "name" if _is_name(word) else "other"


def _is_name(word: str) -> bool:
    """Whether a word looks like a surname: it has a capital, and is not a month, heading or function word."""
    head = word.removesuffix("'s").removesuffix("’s")
    if head.lower() in vocabulary("no_names") or any(character.isdigit() for character in head):
        return False
    # d'Alembert, al-Rahman, deHaan
    return len(head) > 1 if head[0].isupper() else bool(re.match(r"[a-z]{1,3}['’-]?[A-Z]", head))


def read_bracket(text: str, start: int, end: int) -> Reading:
    """Reads the text between an opening bracket, just before `start`, and the closing one at `end`."""
    reading, names = Reading(), list[_Token]()
    last = ""  # what the last token was: name, year, or something between
    for token in _tokens(text, start, end):
        entry = reading.entries[-1] if reading.entries else None
        match token.kind:
            case "name" | "particle" | "initial" | "etal" | "amp":
                names.append(token)
                last = "name"
            case "comma" if names:
                names.append(token)
            case "comma" | "dot":
                pass
            case "semicolon":
                reading.prose |= _has_name(names)
                reading.broken |= _are_authors(names)
                names = []
            case "year":
                reading.broken |= _has_name(names) and names[-1].kind == "amp"
                if _has_name(names) and not _is_meeting(names):
                    first = _first_of(names, reading.prose)
                    reading.entries.append(Entry(first.start, token.end, _works(token)))
                elif entry and last in ("year", "place"):
                    entry.end, entry.works = token.end, entry.works + _works(token)
                elif not entry and not names and last in ("", "year"):
                    reading.years_first += 1
                else:
                    reading.prose = True
                names, last = [], "year"
            case "letter" if last == "year" and entry:
                entry.end, entry.works = token.end, entry.works + 1
            case "letter" if last == "year" and reading.years_first:
                reading.years_first += 1
            case "place" | "number" if (entry or reading.years_first) and (
                token.kind == "place" or last in ("year", "place")
            ):
                names, last = [], "place"
                if entry:
                    entry.end = token.end
            case "marker":
                reading.markers += 1
                names, last = [], "marker"
            case "lead" | "letter" if token.kind == "lead" or token.text == "a":
                if not (_has_name(names) and token.text in _WITHIN_NAMES):
                    reading.prose |= _has_name(names)  # "see", or "in": names before it are prose
                    names = []
            case _:
                reading.prose = True
                names, last = [], "other"
    reading.broken |= _are_authors(names)
    reading.ends_open = _has_name(names)
    return reading


def _has_name(names: Sequence[_Token]) -> bool:
    return any(token.kind == "name" for token in names)


def _are_authors(names: Sequence[_Token]) -> bool:
    return _has_name(names) and any(token.kind == "etal" and token.text[0] in "eE" for token in names)


def _works(year: _Token) -> int:
    """The works of a year, `1998a–c`: three."""
    letters = re.search(r"([a-z])[–-]([a-z])$", year.text)
    return max(ord(letters[2]) - ord(letters[1]) + 1, 1) if letters else 1


def _is_meeting(names: Sequence[_Token]) -> bool:
    """Whether it is a meeting with its year, `SIGIR 2010`, rather than an author."""
    only = [token.text for token in names if token.kind != "initial"]
    return len(only) == 1 and only[0].isupper() and len(only[0]) >= _ACRONYM


def _first_of(names: Sequence[_Token], prose: bool) -> _Token:
    """Where the names begin: in a bracket with prose, those that a comma separates from it."""
    if not prose or any(token.kind in ("etal", "amp") for token in names):
        return next(token for token in names if token.kind not in ("comma", "amp"))
    after_comma = (after for before, after in itertools.pairwise(names) if before.kind == "comma")
    return [names[0], *after_comma][-1]


def names_before(text: str, end: int) -> Names | None:
    """The names that end at a place, as in `Lee, Kim and Roy (2003)`; None if there are none."""
    start = max(0, end - _WINDOW)
    if start and (start := text.find(" ", start, end)) < 0:  # do not begin within a word
        return None
    tokens = list(_tokens(text, start, end))
    match = _NAMES.search("".join(map(_code, tokens)))
    return Names(tokens[match.start()].start, match.lastgroup is not None) if match else None


def _code(token: _Token) -> str:
    if token.kind == "name" and token.text not in _CODES_OF_WORDS:
        return "P" if token.text.lower() in vocabulary("particles") else "N"
    return _CODES_OF_WORDS.get(token.text) or _CODES.get(token.kind, "-")


def years_in_text(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of years in running text, as in `Lee et al., 1997`."""
    return (match.span() for match in _BARE_YEAR.finditer(text))
