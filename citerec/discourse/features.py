"""The features of the linear tagger: words and characters of a sentence, how it cites, and how its neighbours do.

Tokens are in five blocks, each weighted separately. The citation parser finds citations. In the features of the wording
around them, citations are replaced by their form; the blocks of words and characters keep them, names included.
"""

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from citerec.contexts.callouts import Callout, Style, find_callouts

BLOCKS = ("words", "characters", "surroundings", "cues", "place")
"""Words and pairs of words; pieces of 2 to 5 characters within a word; the text around the citations; classes of cue
words in their order (cues.toml); the form of this sentence and of its neighbours."""

Tokens = Mapping[str, Sequence[str]]
"""The tokens of one sentence, by block."""

_WORD = re.compile(r"\w+|[^\w\s]")
# Penn Treebank's spaces, which ACL-ARC has, hide citations from the parser.
_SPACE_BEFORE = re.compile(r"\s+([,;:.)\]])")
_SPACE_AFTER = re.compile(r"([(\[])\s+")
_PIECES = range(2, 6)
_BEGINNING = 3  # words
_WINDOW = 3  # words on either side of a citation
_SKIPS = (2, 3)  # cue words apart
_NEIGHBOURS = (-2, -1, 0, 1, 2)
_MOST = 5  # larger counts are treated as this
_CITATION = "cite"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A sentence as the blocks read it."""

    text: str  # in lower case, without spaces around punctuation
    words: list[str]  # of the text; digits are zeros
    masked: list[str]  # the same with each citation as one word for its form
    form: list[str]  # tokens about how it cites
    cites: bool


def describe(paragraph: Sequence[str]) -> Iterator[Tokens]:
    """Yields the tokens of each sentence of a paragraph, by block; they depend on neighbours."""
    seen = [_see(sentence) for sentence in paragraph]
    for place, sentence in enumerate(seen):
        yield {
            "words": _grams(sentence.words, 2),
            "characters": _pieces(sentence.text),
            "surroundings": _surroundings(sentence.masked),
            "cues": _cues(sentence.masked),
            "place": _place(seen, place),
        }


def _see(sentence: str) -> _Seen:
    text = _SPACE_AFTER.sub(r"\1", _SPACE_BEFORE.sub(r"\1", sentence))
    callouts: list[Callout] = []
    masked, done = [], 0
    for callout in sorted(find_callouts(text), key=lambda callout: callout.start):
        if callout.start >= done:
            masked += [*_words(text[done : callout.start]), _form_of(callout)]
            done = callout.end
            callouts.append(callout)
    masked += _words(text[done:])
    return _Seen(text.lower(), _words(text), masked, _form(text, callouts), bool(callouts))


def _words(text: str) -> list[str]:
    return ["0" * len(word) if word.isdigit() else word for word in _WORD.findall(text.lower())]


def _kind(callout: Callout) -> str:
    if callout.style == Style.MANGLED:
        return "mangled"
    return "text" if callout.style == Style.AUTHOR_YEAR_TEXT else "paren"


def _form_of(callout: Callout) -> str:
    return f"{_CITATION}:{_kind(callout)}{'+' if callout.works > 1 else ''}"


def _form(text: str, callouts: Sequence[Callout]) -> list[str]:
    """How often, how and where a sentence cites, and how long it is."""
    kinds = [_kind(callout) for callout in callouts]
    form = [f"citations{min(len(callouts), _MOST)}", f"works{min(sum(c.works for c in callouts), _MOST)}"]
    form += [f"{kind}{min(kinds.count(kind), _MOST)}" for kind in ("text", "paren", "mangled")]
    if callouts:
        quarters = [4 * callout.start // len(text) for callout in callouts]
        form += [f"first-{kinds[0]}{quarters[0]}", f"last-{kinds[-1]}{quarters[-1]}"]
        form.append(f"group{min(max(callout.works for callout in callouts), _MOST)}")
    return [*form, f"length{min(len(text.split()) // 6, 8)}"]


def _grams(words: Sequence[str], longest: int) -> list[str]:
    return [" ".join(words[at : at + n]) for n in range(1, longest + 1) for at in range(len(words) - n + 1)]


def _pieces(text: str) -> list[str]:
    pieces = []
    for word in text.split():
        padded = f" {word} "
        for n in _PIECES:
            pieces += [padded[at : at + n] for at in range(len(padded) - n + 1)] or [padded]
    return pieces


def _surroundings(words: Sequence[str]) -> list[str]:
    """Words near citations by their distance, function and cue words by their side, and how the sentence begins."""
    citations = [at for at, word in enumerate(words) if word.startswith(f"{_CITATION}:")]
    near = [
        f"{away}{words[at + away]}"
        for at in citations
        for away in range(-_WINDOW, _WINDOW + 1)
        if away and 0 <= at + away < len(words)
    ]
    first = citations[0] if citations else len(words)
    _, sided = _lexicon()
    sides = [f"{'<' if at < first else '>'}{word}" for at, word in enumerate(words) if word in sided]
    return [*near, *sides, *(f"^{' '.join(words[:n])}" for n in range(1, _BEGINNING + 1))]


def _cues(words: Sequence[str]) -> list[str]:
    """Citations and classes of cue words, without other words: alone, in a row, and with others between them."""
    classes, _ = _lexicon()
    found = [name for word in words for name in ([word] if word.startswith(f"{_CITATION}:") else classes.get(word, ()))]
    row = [name for at, name in enumerate(found) if at == 0 or name != found[at - 1]]
    return _grams(row, 3) + [f"{one}..{other}" for skip in _SKIPS for one, other in zip(row, row[skip:], strict=False)]


def _place(seen: Sequence[_Seen], at: int) -> list[str]:
    """The place of a sentence in its paragraph, and how it, its neighbours and the last citing sentence cite."""
    whole = len(seen)
    place = [f"first{at == 0}", f"last{at == whole - 1}", f"whole{min(whole, 8)}"]
    place += [f"from-begin{min(at, _MOST)}", f"from-end{min(whole - 1 - at, _MOST)}"]
    place.append(f"citing{min(sum(sentence.cites for sentence in seen), _MOST)}/{min(whole, 6)}")
    for away in _NEIGHBOURS:
        form = seen[at + away].form if 0 <= at + away < whole else ["none"]
        place += [f"{away}{token}" for token in form]
    last = next((before for before in range(at - 1, -1, -1) if seen[before].cites), None)
    if last is None:
        return [*place, "since-none"]
    since = f"since{min(at - last, 4)}"
    form = seen[last].form
    also = "cites" if seen[at].cites else ""
    return [*place, since, *(f"since {token}" for token in form), *(f"{since} {token} {also}" for token in form)]


@functools.cache
def _lexicon() -> tuple[Mapping[str, Sequence[str]], frozenset[str]]:
    """The words of cues.toml: the classes of each, and those whose side counts."""
    read = tomllib.loads(resources.files("citerec.discourse").joinpath("cues.toml").read_text(encoding="utf-8"))
    classes: dict[str, list[str]] = {}
    for name, words in read["classes"].items():
        for word in words.split():
            classes.setdefault(word, []).append(name)
    return classes, frozenset(read["sides"]["words"].split())
