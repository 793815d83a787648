"""Anserini's default English analyzer without Java: words as `citerec.retrieve.lucene` indexes them.

Lucene's StandardTokenizer (words as in Unicode's UAX #29), possessives, lower case, Lucene's English stop words, Porter
stems. `terms` gives what `citerec.retrieve.lucene.tokens.analyzed` gives: docs/retrieval.md says how often.
"""

import functools
import re
from typing import Any

from citerec.contexts.topic import Topic
from citerec.retrieve.topic_texts import TopicTexts

_LONGEST = 255
"""Lucene cuts longer words into pieces of this length."""

_STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
})  # fmt: skip
_POSSESSIVE = ("'s", "’s", "＇s", "'S", "’S", "＇S")


def terms(text: str) -> list[str]:
    """The terms of a text, in order; a term occurs as often as its word does."""
    return [term for term in places(text) if term is not None]


def places(text: str) -> list[str | None]:
    """The terms of a text at their places, as Lucene's phrases see them; None in place of a stop word."""
    return [
        _term(word[begin : begin + _LONGEST])
        for word in (_ascii_words() if text.isascii() else _words()).findall(text)
        for begin in range(0, len(word), _LONGEST)
    ]


def term_weights(texts: TopicTexts, topic: Topic) -> dict[str, float]:
    """The terms of a topic, each with its weight: that of each text as often as it has the term."""
    weights: dict[str, float] = {}
    for text, weight in texts.weighted(topic):
        for term in terms(text) if weight else ():
            weights[term] = weights.get(term, 0.0) + weight
    return weights


@functools.lru_cache(1 << 16)
def _term(word: str) -> str | None:
    """The term of a word; None if it is a stop word."""
    if word.endswith(_POSSESSIVE):
        word = word[:-2]
    # Java lowers letter by letter: a final sigma is as any other, and İ is one letter.
    word = word.lower() if word.isascii() else "".join(letter.lower()[0] for letter in word)
    return None if word in _STOP_WORDS else stem(word)


@functools.cache
def _ascii_words() -> re.Pattern[str]:
    """The pattern of `_words`, for texts of ASCII alone, which is most of them: twice as fast."""
    unit = r"(?:[A-Za-z]++(?:[:.'][A-Za-z]++)*+|[0-9]++(?:[.,;'][0-9]++)*+)++"
    return re.compile(rf"_*+{unit}(?:_++{unit})*+_*+")


@functools.cache
def _words() -> Any:
    """Words by rules WB4 to WB13b of UAX #29, of which Lucene keeps those with a letter or a digit, and emoji."""
    import regex

    marks = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"
    hebrew = rf"\p{{WB=Hebrew_Letter}}{marks}"
    letter = rf"(?:{hebrew}(?:\"(?={hebrew})|'(?!{hebrew}))?+|\p{{WB=ALetter}}{marks})"
    digit = rf"(?:[\p{{WB=Numeric}}\uFF10-\uFF19]{marks})"
    katakana = rf"(?:\p{{WB=Katakana}}{marks})"
    joiner = rf"(?:\p{{WB=ExtendNumLet}}{marks})"
    in_letters = rf"(?:[\p{{WB=MidLetter}}\p{{WB=MidNumLet}}\p{{WB=Single_Quote}}]{marks})"
    in_digits = rf"(?:[\p{{WB=MidNum}}\p{{WB=MidNumLet}}\p{{WB=Single_Quote}}]{marks})"
    unit = rf"(?:{letter}++(?:{in_letters}{letter}++)*+|{digit}++(?:{in_digits}{digit}++)*+)++"
    unit = rf"(?:{unit}|{katakana}++)"
    word = rf"{joiner}*+{unit}(?:{joiner}++{unit})*+{joiner}*+"
    alone = rf"[\p{{Script=Han}}\p{{Script=Hiragana}}]{marks}"
    complex_context = rf"(?:\p{{Line_Break=Complex_Context}}{marks})++"
    picture = r"[\p{Extended_Pictographic}\p{Emoji_Modifier}]"
    pictures = rf"{picture}{marks}(?:(?<=\u200D){picture}{marks})*+"
    keycap, flag = r"[0-9#*]\uFE0F?\u20E3", rf"\p{{Regional_Indicator}}{{2}}{marks}"
    return regex.compile(rf"{keycap}|{alone}|{complex_context}|{word}|{pictures}|{flag}", regex.V1)


_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism", "ate",
    "iti", "ous", "ive", "ize",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a word in lower case.

    Porter, An algorithm for suffix stripping, Program 14(3), 1980, with the two changes of the author's own programs
    (`bli` for `abli`, and `logi`), as in Lucene.
    """
    if len(word) < 3 and len(word.encode("utf-16-le")) < 6:  # Java counts a letter beyond 16 bits as two
        return word
    if word.endswith("s"):
        if word.endswith(("sses", "ies")):
            word = word[:-2]
        elif not word.endswith("ss"):
            word = word[:-1]
    word = _past(word)
    if word.endswith("y") and "v" in _form(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_STEP_2, _STEP_3):
        ending = _ending(word, endings)
        if ending and _measure(word[: -len(ending)]) > 0:
            word = word[: -len(ending)] + endings[ending]
    ending = _ending(word, _STEP_4)
    if ending:
        rest = word[:-3] if ending in ("sion", "tion") else word[: -len(ending)]  # s and t stay
        if _measure(rest) > 1:
            word = rest
    if word.endswith("e") and ((measure := _measure(word)) > 1 or (measure == 1 and not _short(word[:-1]))):
        word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _past(word: str) -> str:
    """Step 1b: without -ed and -ing."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = _ending(word, ("ed", "ing"))
    if not ending or "v" not in _form(word[: -len(ending)]):
        return word
    word = word[: -len(ending)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and _form(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _short(word) else word


def _ending(word: str, endings: Any) -> str:
    """The longest of some endings that a word has."""
    return max((ending for ending in endings if word.endswith(ending)), key=len, default="")


def _form(word: str) -> str:
    """A letter for each of the word's: c for a consonant, v for a vowel; y is a vowel after a consonant."""
    form = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and form[-1:] == "c")
        form += "v" if is_vowel else "c"
    return form


def _measure(word: str) -> int:
    """How often a consonant follows a vowel: m in Porter's paper."""
    return _form(word).count("vc")


def _short(word: str) -> bool:
    """Whether a word ends in consonant, vowel, consonant, the last one not w, x or y: *o in Porter's paper."""
    return _form(word)[-3:] == "cvc" and word[-1] not in "wxy"
