"""What stands near the marker: the part of the sentence that is about its citation, and the authors named before it."""

import re

from citerec.contexts.topic import Topic, clean
from citerec.records import MARKER

_LONGEST, _FEWEST = 12, 3
# Another citation of the sentence: "[3]", "[…]", "(Smith, 2010)", "Smith (2010)", and the space before a comma or full
# stop from where a citation was taken out.
_OTHER = r"\[\s?(?:\d{1,4}[^\[\]]{0,100}|…)\]|\([^()]{0,200}(?:1[89]|20)\d\d[a-z]?\)|(?<=\w)\s[,;.](?=\s|$)"
_CITATION = re.compile(_OTHER)
_ENDS = re.compile(rf"{_OTHER}|[,;:](?=\s)")  # or the end of a clause
_ITEM_ENDS = re.compile(r"\s*(?:[,;:.)\]]|(?:and|or)\s|$)")
_WORD = re.compile(r"\w")
_PARTICLES = r"(?:[Dd]e|[Dd]el|[Dd]i|[Dd]u|[Ll]a|[Ll]e|[Vv]an|[Vv]on|[Dd]er|[Dd]en|[Tt]en|[Ee]l|[Aa]l|[Bb]in)\s"
_NAME = (
    rf"(?:[A-Z]\.[\s-]?){{0,3}}(?:{_PARTICLES}){{0,2}}(?:[A-Z]['’])?[A-Z][a-zà-ÿ]{{1,30}}(?:-?[A-Z][a-zà-ÿ]{{1,30}})?"
)
_BETWEEN = r"(?:\s?,\s?(?:and|&)\s|\s?,\s|\s(?:and|&)\s)"
_OTHERS = r"(?:\s?,?\s(?:et\.?\s?al\.?,?|and\s(?:colleagues|others|co-?workers)))?"
_NAMED = re.compile(rf"(?:^|(?<=[\s(]))({_NAME}(?:{_BETWEEN}{_NAME}){{0,5}}){_OTHERS}(?:['’]s?)?\s?[(\[]?$")
_SEEN = 200  # characters before the marker in which its names must be
_OPENERS = re.compile(
    "a|also|and|as|both|by|following|for|from|however|in|like|of|see|similarly|since|the|these|this|those|to|unlike|when"
    "|where|while|with"
)


def cites_others(topic: Topic) -> bool:
    """Whether the sentence seems to have other citations than the one at its marker."""
    return _CITATION.search(topic.context.text) is not None


def words_near(topic: Topic) -> str:
    """The words of the sentence that are most about its citation, at most 12; empty without a marker.

    They are the last ones before the marker, back to another citation or the beginning of the clause. If fewer than
    three stand there, as where a sentence begins with the marker, those that follow it in its clause are added. If
    there are none either, they are those of the clause before.
    """
    before, marker, after = topic.context.text.partition(MARKER)
    if not marker:
        return ""
    parts = [_words(part) for part in _ENDS.split(before)]
    near = parts[-1][-_LONGEST:]
    if not near or (len(near) < _FEWEST and not _ITEM_ENDS.match(after)):
        near += _words(_ENDS.split(after)[0])[: _LONGEST - len(near)]
    return " ".join(near or next((part[-_LONGEST:] for part in reversed(parts) if part), []))


def _words(text: str) -> list[str]:
    return [word for word in clean(text).split() if _WORD.search(word)]


def names_before(topic: Topic) -> frozenset[str]:
    """The last names that stand right before the marker, in lower case: "amento" of "Amento et al. <REF> found".

    Of a name of several words it is the last one: "berg" of "van den Berg". A name of a method that looks like that of
    a person ("Rocchio <REF>", but not "LambdaMART <REF>") is among them. Empty without a marker.
    """
    before, marker, _ = topic.context.text.partition(MARKER)
    found = _NAMED.search(before[-_SEEN:].rstrip()) if marker else None
    if found is None:
        return frozenset()
    names = (name.split()[-1].split(".")[-1].casefold() for name in re.split(_BETWEEN, found[1]) if name.strip())
    return frozenset(name for name in names if not _OPENERS.fullmatch(name))
