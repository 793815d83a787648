"""The features of the linear tagger: words and characters of a sentence, how it cites, and how its neighbours do.

Tokens are in five blocks, each weighted separately. The citation parser finds citations. In the features of the wording
around them, citations are replaced by their form; the blocks of words and characters keep them, names included.
"""

import functools
import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from operator import attrgetter
from typing import Any, NamedTuple

from citerec.contexts.callouts import Callout, Style, find_callouts

WORD = re.compile(r"\w+|[^\w\s]")
# Penn Treebank's spaces, which ACL-ARC has, hide citations from the parser.
_SPACE_BEFORE = re.compile(r"\s+([,;:.)\]])")
_SPACE_AFTER = re.compile(r"([(\[])\s+")
_PIECES = range(2, 6)
_BEGINNING = 3  # words
_WINDOW = 3  # words on either side of a citation
_SKIPS = (2, 3)  # cue words apart
_NEIGHBOURS = (-2, -1, 0, 1, 2)
_MOST = 5  # larger counts are treated as this
_CITATION = "cite:"  # how the word for a citation begins
_KINDS = {Style.MANGLED: "mangled", Style.AUTHOR_YEAR_TEXT: "text"}


class Features(NamedTuple):
    """A sentence as the blocks read it.

    Attributes:
        text: In lower case, without spaces around punctuation.
        masked: Its words, with each citation as one word for its form.
        place: Tokens for its place in its paragraph, and for how it and its neighbours cite.
    """

    text: str
    masked: list[str]
    place: list[str]


def describe(paragraph: Sequence[str]) -> list[Features]:
    """The features of each sentence of a paragraph; they depend on neighbours."""
    texts = [_SPACE_AFTER.sub(r"\1", _SPACE_BEFORE.sub(r"\1", sentence)) for sentence in paragraph]
    citations = [find_callouts(text) for text in texts]
    forms, cites = list(map(_form, texts, citations)), list(map(bool, citations))
    places = [_place(forms, cites, at) for at in range(len(texts))]
    return list(map(Features, map(str.lower, texts), map(_masked, texts, citations), places))


def _words(text: str) -> list[str]:
    """Words and signs in lower case; digits are zeros."""
    return ["0" * len(word) if word.isdigit() else word for word in WORD.findall(text.lower())]


def _kind(callout: Callout) -> str:
    return _KINDS.get(callout.style, "paren")


def _masked(text: str, callouts: Sequence[Callout]) -> list[str]:
    words, end = [], 0
    for callout in callouts:
        form = f"{_CITATION}{_kind(callout)}{'+' if callout.works > 1 else ''}"
        words += [*_words(text[end : callout.start]), form]
        end = callout.end
    return words + _words(text[end:])


def _form(text: str, callouts: Sequence[Callout]) -> list[str]:
    """How often, how and where a sentence cites, and how long it is."""
    kinds = list(map(_kind, callouts))
    form = [f"citations{min(len(callouts), _MOST)}", f"works{min(sum(c.works for c in callouts), _MOST)}"]
    form += [f"{kind}{min(kinds.count(kind), _MOST)}" for kind in ("text", "paren", "mangled")]
    if callouts:
        quarters = [4 * callout.start // len(text) for callout in callouts]
        form += [f"first-{kinds[0]}{quarters[0]}", f"last-{kinds[-1]}{quarters[-1]}"]
        form.append(f"group{min(max(callout.works for callout in callouts), _MOST)}")
    return [*form, f"length{min(len(text.split()) // 6, 8)}"]


def _place(forms: Sequence[list[str]], cites: Sequence[bool], at: int) -> list[str]:
    """The place of a sentence in its paragraph, and how it, its neighbours and the last citing sentence cite."""
    whole = len(forms)
    place = [f"first{at == 0}", f"last{at == whole - 1}", f"whole{min(whole, 8)}"]
    place += [f"from-begin{min(at, _MOST)}", f"from-end{min(whole - 1 - at, _MOST)}"]
    place += [f"citing{min(sum(cites), _MOST)}/{min(whole, 6)}"]
    for away in _NEIGHBOURS:
        place += [f"{away}{token}" for token in (forms[at + away] if 0 <= at + away < whole else ["none"])]
    last = next((before for before in range(at - 1, -1, -1) if cites[before]), None)
    if last is None:
        return [*place, "since-none"]
    since, also = f"since{min(at - last, 4)}", "cites" if cites[at] else ""
    place += [since, *(f"since {token}" for token in forms[last])]
    return place + [f"{since} {token} {also}" for token in forms[last]]


def ngrams(words: Sequence[str], longest: int) -> list[str]:
    """The words, the pairs of words in a row and so on, up to so many in a row."""
    return [" ".join(words[at : at + n]) for n in range(1, longest + 1) for at in range(len(words) - n + 1)]


def _pieces(sentence: Features) -> list[str]:
    words = [f" {word} " for word in sentence.text.split()]
    pieces = ([word[at : at + n] for at in range(len(word) - n + 1)] or [word] for word in words for n in _PIECES)
    return list(itertools.chain.from_iterable(pieces))


def _surroundings(sentence: Features) -> list[str]:
    """Words near citations by their distance, function and cue words by their side, and how the sentence begins."""
    words = sentence.masked
    citations = [at for at, word in enumerate(words) if word.startswith(_CITATION)]
    near = [f"{to - at}{words[to]}" for at in citations for to in range(len(words)) if 0 < abs(to - at) <= _WINDOW]
    first = citations[0] if citations else len(words)
    _, sided = _lexicon()
    sides = [f"{'<' if at < first else '>'}{word}" for at, word in enumerate(words) if word in sided]
    return [*near, *sides, *(f"^{' '.join(words[:n])}" for n in range(1, _BEGINNING + 1))]


def _cues(sentence: Features) -> list[str]:
    """Citations and classes of cue words, without other words: alone, in a row, and with others between them."""
    classes, _ = _lexicon()
    named = ([word] if word.startswith(_CITATION) else classes.get(word, ()) for word in sentence.masked)
    row = [name for name, _ in itertools.groupby(itertools.chain.from_iterable(named))]
    return ngrams(row, 3) + [f"{one}..{other}" for skip in _SKIPS for one, other in zip(row, row[skip:], strict=False)]


@functools.cache
def _lexicon() -> tuple[Mapping[str, Sequence[str]], frozenset[str]]:
    """The words of cues.toml: the classes of each, and those whose side counts."""
    lexicon = tomllib.loads(resources.files("citerec.discourse").joinpath("cues.toml").read_text(encoding="utf-8"))
    classes: dict[str, list[str]] = {}
    for name, words in lexicon["classes"].items():
        for word in words.split():
            classes.setdefault(word, []).append(name)
    return classes, frozenset(lexicon["sides"]["words"].split())


BLOCKS: dict[str, tuple[Any, float]] = {
    "words": (lambda sentence: ngrams(_words(sentence.text), 2), 1.0),
    "characters": (_pieces, 1.0),
    "surroundings": (_surroundings, 0.5),
    "cues": (_cues, 0.5),
    "place": (attrgetter("place"), 1.0),
}
"""Words and pairs of words; pieces of 2 to 5 characters within a word; the text around the citations; classes of cue
words in their order (cues.toml); the form of this sentence and of its neighbours. For each block the function from a
sentence to its tokens, and the weight (ours: by cross-validation on the train files, docs/results.md)."""
