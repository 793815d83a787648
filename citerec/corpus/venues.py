"""Names of journals and conferences: whether two of them mean the same."""

import functools
import itertools
import re

from citerec.corpus.citation_keys import PREPRINTS
from citerec.corpus.matching import plain_title
from citerec.files.text import names_in

_SMALL = frozenset(names_in("a, an, and, as, at, d, de, der, des, die, et, for, in, la, le, of, on, the, und, zur"))
# What a name may have or lack: what kind of meeting it is, who holds it, when and where.
_GENERIC = frozenset(
    names_in(
        "acm, annual, conf, conference, conferences, congress, cvf, eighth, fifth, first, fourth, ieee, int,"
        "international, intl, main, meeting, ninth, online, part, proc, proceedings, second, seventh, sixth, springer,"
        "symp, symposium, tenth, third, track, vol, volume, workshop, workshops"
    )
)
_JOURNALS = frozenset(("journal", "transactions"))
# What cannot be made of the beginnings of words.
_ALIASES = {"nips": "neurips", "aistats": "artificial intelligence statistics", "www": "web", "world": "", "wide": ""}
# Series and archives, which say where a text lies, and not where it was published.
_SERIES = re.compile(
    r"lecture notes|\blncs\b|communications in computer and information science|ceur workshop|"
    r"conference proceedings? series|advances in intelligent systems|\bhal\b|zenodo|pubmed|openreview|"
    r"research papers in economics|institutional repository|\brepository\b|\beprints?\b|dspace|opus\b",
    re.IGNORECASE,
)
_YEARS = re.compile(r"'?\b\d+(?:st|nd|rd|th)?\b")
_BRACKETS = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
_ACRONYM = re.compile(r"[A-Z](?:[a-z]*[A-Z])+[a-z]*(?:[-/ ][A-Z]+)?\W*")
_LONGEST_ACRONYM, _MOST_WORDS = 12, 40
_LONG = 4  # words of a name of which an acronym may leave one out


def says_venue(name: str | None) -> bool:
    """Whether a name is that of a journal or conference, and not of a series or an archive of texts."""
    return bool(name) and not _SERIES.search(name or "") and not PREPRINTS.search(name or "")


@functools.lru_cache(1 << 12)
def same_venue(first: str, second: str) -> bool:
    """Whether two names may be of one journal or conference.

    They are if they have the same words but for small ones, years and words such as "proceedings"; if each word of one
    begins with that of the other ("Mach. Learn."); or if one is an acronym that the other names, or whose letters begin
    its words in order ("CVPR", "NeurIPS").
    """
    if ("workshop" in first.casefold()) != ("workshop" in second.casefold()):  # both say where a paper stands
        return False
    pairs = list(itertools.product(_names(first), _names(second)))
    return any(_same(*pair) or _is_acronym(*pair) or _is_acronym(*reversed(pair)) for pair in pairs)


def _names(name: str) -> list[str]:
    """A name without years, its parts, and what stands in its brackets."""
    name = _YEARS.sub(" ", name)
    inside = [one or other for one, other in _BRACKETS.findall(name)]
    return [_BRACKETS.sub(" ", name), *re.split(r"[,:–—-]\s", _BRACKETS.sub(" ", name)), *inside]


def _words(name: str) -> list[str]:
    return " ".join(_ALIASES.get(word, word) for word in plain_title(name).split()).split()


def _telling(name: str) -> list[str]:
    return [word for word in _words(name) if word not in _SMALL and word not in _GENERIC]


def _same(first: str, second: str) -> bool:
    one, other = _telling(first), _telling(second)
    if not one or not other:
        return not one and not other and _words(first) == _words(second)
    pairs = zip(one, other, strict=False)
    shortened = len(one) == len(other) and all(a.startswith(b) or b.startswith(a) for a, b in pairs)
    return shortened or set(one) == set(other)


def _is_acronym(short: str, long: str) -> bool:
    """Whether a name is an acronym that stands in another name, or is made of beginnings of its words in order."""
    acronym, words = "".join(_words(short)), _words(long)[:_MOST_WORDS]
    if not _ACRONYM.fullmatch(short.strip()) or len(acronym) > _LONGEST_ACRONYM or len(words) == 1:
        return False
    telling = sum(not word.startswith("sig") for word in _telling(long))  # the group that holds it
    stands_there = acronym in words and _JOURNALS.isdisjoint(words)
    return stands_there or _made_of(acronym, tuple(words), telling - (telling >= _LONG))


@functools.lru_cache(1 << 14)
def _made_of(acronym: str, words: tuple[str, ...], least: int) -> bool:
    """Whether an acronym can be cut into beginnings of words, in order; words may be left out, but `least` are used."""
    if not acronym:
        return least <= 0
    if not words or (words[0] in _JOURNALS and acronym[0] != words[0][0]):
        return False
    word, rest = words[0], words[1:]
    used = 0 if word in _GENERIC or word in _SMALL else 1
    lengths = range(1, min(len(word), len(acronym)) + 1)
    takes = any(acronym.startswith(word[:many]) and _made_of(acronym[many:], rest, least - used) for many in lengths)
    return takes or (word not in _JOURNALS and _made_of(acronym, rest, least))
