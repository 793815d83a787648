"""Invented English for a synthetic release: made-up content words between real function words."""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

_POOL = 16_384
_LENGTHS = 4096
# A sentence ends with the phrase that reaches its length. Phrases have 12 words at most; with citations it is 60.
_LONGEST = 36
_PREPOSITIONS = ("of", "in", "by", "with", "for", "from", "under", "between", "on", "without", "over")
_PRONOUNS = ("we", "they", "it", "others", "both")
_DETERMINERS = ("the", "the", "the", "a", "this", "each", "some", "these", "our", "their")
_AUXILIARIES = ("was", "has been", "can be", "is", "were often", "will be", "may not be")
_LINKS = ("because", "while", "so that", "although", "when", "where")
_REAL_ADVERBS = ("very", "quickly", "often", "rarely", "clearly", "only", "mostly", "then")

Draw = Callable[[], float]


class Words:
    """A vocabulary and the sentences made of it: the same for the same seed.

    Sentences are put together from ready phrases, so that a release of millions of words takes seconds.
    """

    def __init__(self, seed: int) -> None:
        random = Random(f"{seed}/words")
        self._taken: set[str] = set()
        self.nouns = [self._word(random, "") for _ in range(4000)]
        self.adjectives = [self._word(random, random.choice(("ive", "al", "ous", "ic"))) for _ in range(900)]
        self.verbs = [self._word(random, random.choice(("at", "is", "iz"))) for _ in range(700)]
        self.adverbs = [f"{_with_ly(word)}" for word in self.adjectives[:200]]
        self.surnames = self._names(random, 2000)
        self.first_names = [self._word(random, "").capitalize() for _ in range(300)]
        self.venues = [self._venue(random) for _ in range(80)]
        self._openings = [self._opening(random) for _ in range(_POOL)]
        self._tails = [self._tail(random) for _ in range(_POOL)]
        lengths = np.random.default_rng([seed, 0]).lognormal(2.7, 0.5, _LENGTHS)
        self._lengths: list[int] = np.clip(lengths, 1, _LONGEST).astype(int).tolist()

    def body(self, draw: Draw) -> str:
        """A sentence of 4 to 48 words without capital and full stop; its last word is letters only."""
        text, words = self._openings[int(draw() * _POOL)]
        target = self._lengths[int(draw() * _LENGTHS)]
        while words < target:
            tail, more = self._tails[int(draw() * _POOL)]
            text += tail
            words += more
        return text

    def sentence(self, draw: Draw) -> str:
        """A whole sentence without a citation."""
        return capital(self.body(draw)) + stop(draw)

    def title(self, parts: Sequence[int], pattern: int) -> str:
        """A title of five words' numbers (reduced to what there is) in one of six patterns."""
        one, two, three = (self.nouns[part % len(self.nouns)] for part in parts[:3])
        first, second = (self.adjectives[part % len(self.adjectives)] for part in parts[3:5])
        return (
            f"{first.capitalize()} {one} for {second} {two}s",
            f"On the {one} of {two}s with {first} {three}s",
            f"{one.capitalize()}: a {first} {two} in {second} {three}s",
            f"{first.capitalize()} {one}s and the {two} {three}",
            f"Towards {first} {one}",
            f"A {first} study of {one}, {two} and {second} {three} without a {one}",
        )[pattern % 6]

    def _word(self, random: Random, ending: str) -> str:
        """A new word of five letters at least: shorter ones could be abbreviations, after which no sentence ends."""
        while True:
            word = ""
            for _ in range(random.choice((2, 2, 2, 3))):
                word += random.choice(("b", "br", "d", "dr", "f", "fl", "g", "gr", "k", "kl", "l", "m", "n", "p", "pl",
                                       "r", "s", "sk", "t", "tr", "v", "z")) + random.choice("aeiou")  # fmt: skip
            word += random.choice("kklmnnrt") + ending
            if len(word) > 4 and word not in self._taken:
                self._taken.add(word)
                return word

    def _names(self, random: Random, count: int) -> list[str]:
        names = []
        for number in range(count):
            name = self._word(random, "").capitalize()
            # Letters that are no ASCII, hyphens and apostrophes, as names have them.
            if number % 20 == 0:
                name = f"{name}-{self._word(random, '').capitalize()}"
            elif number % 20 == 1:
                name = name.replace("e", "é").replace("o", "ö").replace("u", "ü")
            elif number % 50 == 2:
                name = f"O'{name}"
            names.append(name)
        return names

    def _venue(self, random: Random) -> str:
        kind = random.choice(("Journal of", "Proceedings of the Conference on", "Annals of", "Transactions on"))
        return f"{kind} {random.choice(self.adjectives).capitalize()} {random.choice(self.nouns).capitalize()}s"

    def _noun(self, random: Random) -> str:
        # The square makes some words frequent and many rare.
        return self.nouns[int(len(self.nouns) * random.random() ** 2)]

    def _noun_phrase(self, random: Random) -> str:
        form, noun = random.random(), self._noun(random)
        if form < 0.15:
            return random.choice(_PRONOUNS)
        if form < 0.3:
            return f"{random.choice(self.adjectives)} {noun}s"
        if form < 0.4:
            return f"{noun}s"
        if form < 0.65:
            return f"{random.choice(_DETERMINERS)} {random.choice(self.adjectives)} {noun}"
        return f"{random.choice(_DETERMINERS)} {noun}"

    def _verb_phrase(self, random: Random) -> str:
        form, verb = random.random(), random.choice(self.verbs)
        adverb = random.choice(random.choice((self.adverbs, _REAL_ADVERBS)))
        if form < 0.35:
            return f"{verb}ed"
        if form < 0.5:
            return f"{adverb} {verb}ed"
        if form < 0.6:
            return f"{verb}es"
        if form < 0.85:
            return f"{random.choice(_AUXILIARIES)} {verb}ed by"
        return f"can {adverb} {verb}e"

    def _opening(self, random: Random) -> tuple[str, int]:
        words: list[str] = []
        while len(words) < 4:
            words = f"{self._noun_phrase(random)} {self._verb_phrase(random)} {self._noun_phrase(random)}".split()
        if random.random() < 0.08:
            words[:0] = [f"{random.choice(self.adverbs)},"]
        return " ".join(words), len(words)

    def _tail(self, random: Random) -> tuple[str, int]:
        form, phrase = random.random(), self._noun_phrase(random)
        if form < 0.55:
            text = f" {random.choice(_PREPOSITIONS)} {phrase}"
        elif form < 0.68:
            text = f", and {phrase} {self._verb_phrase(random)} {self._noun_phrase(random)}"
        elif form < 0.8:
            text = f" {random.choice(_LINKS)} {phrase} {self._verb_phrase(random)} {self._noun_phrase(random)}"
        elif form < 0.88:
            text = f", which {self._verb_phrase(random)} {phrase}"
        elif form < 0.92:
            text = f", e.g., {random.choice(self.adjectives)} {self._noun(random)}s"
        elif form < 0.95:
            text = f" at {random.randint(1, 99)}.{random.randint(1, 9)} {self._noun(random)}s"
        elif form < 0.97:
            text = f", i.e., the {self._noun(random)}"
        elif form < 0.98:
            # Beyond the Basic Multilingual Plane: offsets count characters, not the halves of UTF-16.
            text = f" of {random.choice('𝛼𝛽𝜆')}-{self._noun(random)} {self._noun(random)}s"
        else:
            text = f" as Figure {random.randint(1, 9)} shows"
        return text, len(text.split())


def stop(draw: Draw) -> str:
    """What ends a sentence."""
    chance = draw()
    return "." if chance < 0.95 else "?" if chance < 0.98 else "!"


def capital(body: str) -> str:
    """The text with a capital at its beginning."""
    return body[0].upper() + body[1:]


def _with_ly(adjective: str) -> str:
    return f"{adjective}ally" if adjective.endswith("ic") else f"{adjective}ly"
