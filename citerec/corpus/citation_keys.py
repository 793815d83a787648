"""Citation keys, made from a paper by a pattern such as `{auth}{year}{word}`; and the parts of names of people."""

import itertools
import re
import string
import unicodedata
from collections.abc import Collection, Iterable
from typing import NamedTuple

from citerec.errors import InputError
from citerec.records import Paper

DEFAULT_PATTERN = "{auth}{year}{word}"
"""Surname of the first author, year, and first word of the title."""

_WORD = re.compile(r"[A-Za-z0-9]+")
_SKIPPED = {"a", "an", "the", "on", "of", "in", "for", "and", "to", "with", "from"}
_NOT_IN_KEYS = re.compile(r"[\s{}(),=#%\"'~\\@]")
_NO_KEY = "anonymous"
_NAMES = ("auth", "Auth", "year", "shortyear", "word", "Word", "venue")
_NAME = re.compile(rf"{{({'|'.join(_NAMES)})}}")
_SUFFIX = re.compile(r"(?:jr|sr)\.?|II|III|IV", re.IGNORECASE)
_OWN = re.compile(r"(?P<before>\s*@\s*\w+\s*[{(]\s*)(?P<key>[^\s,{}()=\"#%]+)(?=\s*,)")


class Name(NamedTuple):
    """The parts of a person's name."""

    given: str
    family: str
    suffix: str


def given_first(name: str) -> str:
    """A name "Family, Given, Suffix" with the given name first."""
    family, *others = (part.strip() for part in name.split(","))
    return " ".join(filter(None, [*others[:1], family, *others[1:]]))


def parts_of(name: str) -> Name:
    """The parts of a name with the given name first. A particle in lower case, such as "de la", begins the family name.

    Joined by spaces, the parts are the name again.
    """
    words = name.split()
    suffix = words.pop() if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) else ""
    begins = next((place for place, word in enumerate(words[:-1]) if word[:1].islower()), max(len(words) - 1, 0))
    return Name(" ".join(words[:begins]), " ".join(words[begins:]), suffix)


def _fields(paper: Paper) -> dict[str, str]:
    """What the names of a pattern stand for."""
    family = parts_of(paper.authors[0]).family.split()[-1:] if paper.authors else []
    author = "".join(_WORD.findall(_ascii("".join(family)))) or _NO_KEY
    word = next(iter(_words(paper.title)), "")
    venue = _words(paper.venue or "")
    return {
        "auth": author.lower(),
        "Auth": author[:1].upper() + author[1:],
        "year": str(paper.year or ""),
        "shortyear": str(paper.year or "")[-2:],
        "word": word.lower(),
        "Word": word[:1].upper() + word[1:],
        "venue": (venue[0] if len(venue) == 1 else "".join(each[0] for each in venue)).lower(),
    }


def citation_key(paper: Paper, pattern: str = DEFAULT_PATTERN, taken: Collection[str] = ()) -> str:
    """A citation key for a paper, which none of the keys that are taken is.

    Args:
        paper: The paper.
        pattern: Text with `{auth}`, `{year}`, `{word}` and so on in it (docs/formats.md, "Citation keys").
        taken: Keys of other entries. Upper and lower case are one, as for BibTeX; a, b, c and so on make a key new.

    Raises:
        InputError: The pattern has a name that does not exist, no name at all, or a character that no key may have.
    """
    return citation_keys([paper], pattern, taken)[0]


def citation_keys(papers: Iterable[Paper], pattern: str = DEFAULT_PATTERN, taken: Collection[str] = ()) -> list[str]:
    """A key for each paper, as `citation_key` makes it, without repeats; raises as that does."""
    text = _NAME.sub("", pattern)
    if text == pattern or not _is_allowed(text):
        names = ", ".join(f"{{{name}}}" for name in _NAMES)
        remedy = f"Names are {names}; text beside them has no spaces, commas, braces or other signs of BibTeX. "
        remedy += f"The default is {DEFAULT_PATTERN}."
        raise InputError(f"the pattern of citation keys {pattern!r:.60} is wrong", remedy)
    used = {key.casefold() for key in taken}
    keys = []
    for paper in papers:
        base = pattern.format_map(_fields(paper)) or _NO_KEY
        suffixes = itertools.chain(("",), string.ascii_lowercase, map("-{}".format, itertools.count(27)))
        keys.append(next(key for suffix in suffixes if (key := base + suffix).casefold() not in used))
        used.add(keys[-1].casefold())
    return keys


def own_entry(paper: Paper) -> "re.Match[str] | None":
    """How the author's own entry begins, with what is `before` its `key`; None if the paper came from elsewhere."""
    return _OWN.match(paper.bibtex or "")


def own_key(paper: Paper) -> str | None:
    """The key of the author's own entry; None if the paper came from elsewhere."""
    own = own_entry(paper)
    return own["key"] if own else None


def check_key(key: str) -> str:
    """The key itself.

    Raises:
        InputError: It is empty, or has a character that no key may have, such as a comma.
    """
    if not key or not _is_allowed(key):
        raise InputError(f"{key!r:.60} is no citation key", "Use letters, digits, and - _ : . / + without spaces.")
    return key


def _is_allowed(text: str) -> bool:
    return text.isprintable() and not _NOT_IN_KEYS.search(text)


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(_ascii(text)) if word.lower() not in _SKIPPED]


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
