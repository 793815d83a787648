"""Extractive writers: sentences of the sources. The baselines of the papers stand in their folders."""

import functools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from citerec.contexts.markers import trimmed_end
from citerec.corpus.citation_keys import surnames
from citerec.files.text import replaced
from citerec.write.anchors import mentions
from citerec.write.tasks import Prediction, Sentence, Source, TextTask, sentences_of
from citerec.write.writers.base import Writer, WriterPart

_LISTS: Mapping[str, str] = tomllib.loads(Path(__file__).parent.with_name("words.toml").read_text(encoding="utf-8"))


def any_of(name: str) -> str:
    """A pattern of the words and phrases in a list of words.toml."""
    return "|".join(map(str.strip, _LISTS[name].split(",")))


# Phrases for what authors have done, the surest first.
_WE = r"\b(?:we|i|this (?:paper|work|article|study))\b"
_MADE = r"(?:propose|introduce|present|develop)"
_DID = r"(?:show|demonstrate|describe|study|investigate|explore|provide|design|prove|derive|address|analy[sz]e)"
_CONTRIBUTIONS = [
    re.compile(rf"(?i){_WE} (?:\w+ )?{_MADE}s?\b"),
    re.compile(r"(?i)\b(?:in this (?:paper|work|article|study)|here,? we|paper,? we)\b|propose|introduce"),
    re.compile(rf"(?i){_WE}.*\b(?:{_MADE}|{_DID})"),
    re.compile(r"(?i)\bwe\b"),
]
# Sentences of abstracts in the third person: "We propose X" becomes "Salton and Buckley [0] propose X".
_WORK = r"(?:paper|work|article|study|letter|report|chapter|thesis|survey)"
_OPENS = re.compile(
    rf"(?i)(?:in (?:this|the present|our) {_WORK}|here|therefore|thus|hence|finally|to this end)(?:, ?| (?=(?:we|i) ))"
    # What "this" refers to is not quoted.
    r"|(?:based on|motivated by|inspired by|following|given|to \w+) (?:this|these|that|those)\b[^,.]*, (?=(?:we|i) )"
)
_THIS_PAPER = re.compile(rf"(?:this|the present|our) ({_WORK})(?= (?:[a-z]+ly )?[a-z]+(?:s|ed)\b)", re.IGNORECASE)
_NAMED_WORK = re.compile(rf"\b(?:this|the present) (?={_WORK}\b)", re.IGNORECASE)
# What refers to a sentence before it, which is not written with it.
_LEANS = re.compile(
    rf"(?i)(?:while )?(?:this(?! {_WORK}\b)|these|those|it|they|such|its|their|both|the (?:latter|former))\b"
)
# "I" means the author only at the beginning: further on it may be a number. "US" is a country.
_SELF = re.compile(r"^I(?= [a-z])|\b(?:[wW]e|us|[oO]ur|[mM]y)\b")
_FIRST = "we our ours us ourselves my me myself"
_THIRD = "they their theirs them themselves their them themselves"
_PRONOUNS = dict(zip(_FIRST.split(), _THIRD.split(), strict=True))
# Before a verb that can stand without its subject: "We propose", "This paper also shows".
_SUBJECT = re.compile(
    rf"(?:(?P<we>[Ww]e|I)|(?i:this|the present|our) {_WORK}) "
    rf"(?!(?:\w+ly )?(?:are|am|is|was|were|have|has|had|{any_of('no_verbs')})\b)"
)
_PRONOUN = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b", re.IGNORECASE)

_NO_VERB = re.compile(rf"(?:{any_of('no_verbs')})|[a-z]+ed")
_IRREGULAR = {"have": "has", "are": "is", "am": "is", "were": "was", "do": "does"}
_ADVERB = re.compile(r"not|only|also|then|further|first|here|now|thus|hence|therefore|[a-z]+ly")
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_AND_VERB = re.compile(rf"(?<= and )(?:{any_of('sure_verbs')})\b")
END = re.compile(r"([.?!]?)([\"'”’)\]]*)\Z")
"""The end of a sentence: its stop, and the quotes and brackets that close after it."""


@dataclass(eq=False)
class ExtractiveWriter(Writer):
    """Writes sentences that it picks from the sources.

    Attributes:
        pick: Picks the sentences, with their attributions, in the order of the text.
        phrase: Rewrites a sentence; by default it is unchanged.
        is_oracle: Whether it looks at the targets.
        settings: The settings that `pick` depends on.
    """

    name: str
    pick: Callable[[TextTask], Sequence[Sentence]]
    phrase: Callable[[Sentence, TextTask], str] | None = None
    is_oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = {"writer": self.name, **self.settings}

    def write(self, task: TextTask) -> Prediction:
        """The picked sentences; empty if it finds none to pick."""
        sentences = tuple(self._written(sentence, task) for sentence in self.pick(task))
        text = " ".join(sentence.text for sentence in sentences)
        return Prediction(task, text, self.name, sentences, self.is_oracle)

    def _written(self, sentence: Sentence, task: TextTask) -> Sentence:
        text = self.phrase(sentence, task) if self.phrase else sentence.text
        # A sentence's own citations match none of our sources, whatever their numbers.
        ours = sentence.attributions if self.phrase else ()
        cites = mentions(text, task.sources)
        others = (one for one in cites if one.unknown or not one.sources or not set(one.sources) <= set(ours))
        return Sentence(text, sentence.attributions, tuple(dict.fromkeys(text[one.start : one.end] for one in others)))


def extractive(writer: ExtractiveWriter) -> WriterPart:
    """An extractive writer for the registry; it has no options."""
    return WriterPart(writer.name, lambda _name, _kind: replace(writer))


def source_sentences(source: Source) -> tuple[str, ...]:
    """The sentences of a source: from its data set if given, else split by rule."""
    return source.sentences or sentences_of(source.text)


def stands_alone(sentence: str) -> bool:
    """Whether a sentence asks nothing, and does not begin with what refers to the one before it, such as "this"."""
    return not (_LEANS.match(sentence) or sentence.rstrip().endswith("?"))


def contribution_each(
    task: TextTask, cues: Sequence[re.Pattern[str]] = _CONTRIBUTIONS, *, alone: bool = False
) -> list[Sentence]:
    """The sentence of each source that states its contribution most clearly, else its first.

    By default cues are phrases, the surest first. They were chosen on SciTLDR's training part; docs/results.md shows
    the gain. With `alone`, a sentence that does not stand alone is taken only where there is no other.
    """
    return [
        Sentence(sentences[contribution_of(sentences, cues)], (number,))
        for number, source in enumerate(task.sources)
        if (whole := source_sentences(source))
        if (sentences := (alone and tuple(filter(stands_alone, whole))) or whole)
    ]


def contribution_of(sentences: Sequence[str], cues: Sequence[re.Pattern[str]] = _CONTRIBUTIONS) -> int:
    """The number of the sentence that states the contribution most clearly; 0, the first, if none does."""
    numbers = (number for cue in cues for number, sentence in enumerate(sentences) if cue.search(sentence))
    return next(numbers, 0)


def attributed(sentence: Sentence, task: TextTask) -> str:
    """A sentence of an abstract in the third person, with its authors in place of "we", and with its citation.

    A sentence without "we" or the like is quoted. Its own citations are left out: their numbers are of another
    list.
    """
    (number,) = sentence.attributions
    source = task.sources[number]
    text = _unopened(uncited(sentence.text))
    names = surnames(source.authors)
    if paper := _THIS_PAPER.match(text):
        of_authors = f" of {names}" if names else ""
        text = f"The {paper[1].lower()}{of_authors} [{number}]{_in_third_person(text[paper.end() :])}"
    elif (pronoun := _SELF.search(text)) and (names or pronoun[0].lower() not in ("our", "my")):
        rest = text[pronoun.end() :]
        if pronoun[0].lower() in ("our", "my"):
            names += "'s"
        elif pronoun[0].lower() in ("we", "i"):
            rest = _of_one(rest) if len(source.authors) == 1 else re.sub("^ am ", " are ", rest)
        text = text[: pronoun.start()] + f"{names} [{number}]".lstrip() + _in_third_person(rest)
    else:
        text, stop, closing, _ = END.split(text, maxsplit=1)
        return f"“{text.replace('“', '‘').replace('”', '’')}{closing}” [{number}]{stop or '.'}"
    return text if text.endswith((".", "?", "!", ")", '"', "”")) else f"{text}."


def impersonal(sentence: Sentence, _task: TextTask) -> str:
    """A sentence of an abstract that names no author: "We propose X" becomes "Proposes X"."""
    text = _unopened(sentence.text)
    if subject := _SUBJECT.match(text):
        rest = text[subject.end() - 1 :]
        text = _capital((_of_one(rest) if subject["we"] else rest).strip())
    return _capital(_in_third_person(_NAMED_WORK.sub("the ", text)))


def _unopened(text: str) -> str:
    """A sentence without an opening that only leads to what the authors did: "In this paper, we …"."""
    opening = _OPENS.match(text)
    return _capital(text[opening.end() :]) if opening else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _in_third_person(text: str) -> str:
    def other(pronoun: re.Match[str]) -> str:
        third = _PRONOUNS[pronoun[0].lower()]
        return pronoun[0] if pronoun[0] == "US" else third.capitalize() if pronoun[0][0].isupper() else third

    return _PRONOUN.sub(other, text)


def _of_one(rest: str) -> str:
    """Changes the text after "we" to follow the name of one author: verbs get their ending."""
    for word in _WORD.finditer(rest):
        verb = word[0].lower()
        if not _ADVERB.fullmatch(verb):
            after = _AND_VERB.sub(lambda verb: _singular(verb[0]), rest[word.end() :])
            return rest if _NO_VERB.fullmatch(verb) else rest[: word.start()] + _singular(verb) + after
    return rest


def _singular(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


def uncited(sentence: str) -> str:
    """A sentence without its own citations in brackets: their numbers are of another list."""
    starts = [(one.start, one.end) for one in mentions(sentence, ()) if sentence[one.start] in "([\\【"]
    return replaced(sentence, ((trimmed_end(sentence, start, " "), end, "") for start, end in starts))


ATTRIBUTED = extractive(ExtractiveWriter("attributed", functools.partial(contribution_each, alone=True), attributed))
CONTRIBUTION = extractive(ExtractiveWriter("contribution", contribution_each))
