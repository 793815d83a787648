"""The words of a sentence that web services are asked for: for whole sentences they find little or nothing."""

import re
from collections.abc import Iterator

from citerec.contexts.near import names_before
from citerec.contexts.topic import Topic

_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r".*[A-Z0-9].*[A-Z0-9]|.+[A-Z]")  # BERT, Word2Vec, mRNA; not Attention
_NAMED = 20  # letters that abbreviations and names of methods count longer
# A list of our own: those of scikit-learn and spaCy come with a second of imports.
_FUNCTION_WORDS = (
    "a about above across after again against al all alone along already also although always am among an and another"
    " any are around as at away be became because become becomes been before behind being below beside besides between"
    " beyond both but by can cannot could did do does doing done down due during each either else enough et etc even"
    " ever every few first for four from further had has have having he hence her here him his how however if in"
    " indeed instead into is it its itself just last least less made make makes making many may me might more moreover"
    " most mostly much must my namely near neither never nevertheless next no none nor not nothing now of off often on"
    " once one only onto or other others otherwise our out over own per perhaps quite rather same second see seem"
    " seems several shall she should since so some sometimes still such than that the their them themselves then there"
    " thereby therefore these they third this those though three through throughout thus to together too toward"
    " towards two under unless until up upon us very via was we well were what when where whereas whereby wherein"
    " whether which while who whole whom whose why will with within without would yet you your"
)
# Words of scholarly prose that say nothing of the topic.
_PROSE = (
    "according achieve achieved apply applied approach approaches article author authors based better called common"
    " commonly compared consider considered current describe described different example existing extensively find"
    " following found general generally give given important improve improved include including increasing introduce"
    " introduced investigate investigated known like literature main method methods new novel number obtain obtained"
    " paper papers popular present presented previous previously prior propose proposed provide provided recent"
    " recently refer related report reported require research researchers result results show showed shown shows"
    " significant significantly similar state stated studied studies study suffices suggest suggested system systems"
    " technique techniques typically use used useful user users uses using various way ways widely work works"
)
_STOP_WORDS = frozenset(f"{_FUNCTION_WORDS} {_PROSE}".split())


def queries_of(topic: Topic, most: int, fewest: int) -> Iterator[str]:
    """Queries for a topic: the first of many of its telling words, then of fewer, each in the order of the sentence.

    Args:
        topic: The topic.
        most: How many words the first query has at most.
        fewest: How many the last has, if the sentence has so many.
    """
    words = telling_words(topic)
    size = min(most, len(words))
    while size:
        yield " ".join(word for word in words_of(topic) if word in words[:size])
        size = max(fewest, size * 2 // 3) if size > fewest else 0


def telling_words(topic: Topic) -> list[str]:
    """The different words of a sentence that tell what it is about, the most telling first.

    Without an index nothing is known of how rare a word is. So abbreviations and names of methods come first, and long
    words before short ones. What may be the name of an author, right before the marker, comes last: titles and
    abstracts do not name authors.
    """
    names = names_before(topic)

    def weight(word: str) -> int:
        return 0 if word.casefold() in names else len(word) + _NAMED * bool(_NAME.fullmatch(word))

    return sorted(words_of(topic), key=weight, reverse=True)


def words_of(topic: Topic) -> list[str]:
    """The words of a sentence, or of those around it if it has none, without stop words and repeats.

    A hyphen parts words: Semantic Scholar finds nothing for hyphenated ones.
    """
    for text in (topic.text, topic.neighbours):
        words: dict[str, str] = {}
        for word in _WORD.findall(text):
            words.setdefault(word.casefold(), word)
        if kept := [
            word for key, word in words.items() if len(key) > 1 and not key.isdecimal() and key not in _STOP_WORDS
        ]:
            return kept
    return []
