"""Sentences of abstracts in the third person: "We propose X" becomes "Salton and Buckley [0] propose X"."""

import re
from dataclasses import replace

from citerec.write.anchors import surnames
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.extractive import ExtractiveWriter, cited, contribution_each, extractive, uncited

_KIND = r"(?:paper|work|article|study|letter|report|chapter|thesis|survey)"
_OPENING = re.compile(
    rf"(?:in (?:this|the present|our) {_KIND}|here|therefore|thus|hence|finally|to this end)(?:, ?| (?=(?:we|i) ))"
    # What "this" refers to is not quoted.
    r"|(?:based on|motivated by|inspired by|following|given|to \w+) (?:this|these|that|those)\b[^,.]*, (?=(?:we|i) )",
    re.IGNORECASE,
)
_THIS_PAPER = re.compile(rf"(?:this|the present|our) ({_KIND})(?= (?:[a-z]+ly )?[a-z]+(?:s|ed)\b)", re.IGNORECASE)
# "I" means the author only at the beginning: further on it may be a number. "US" is a country.
_SELF = re.compile(r"^I(?= [a-z])|\b(?:[wW]e|us|[oO]ur|[mM]y)\b")
_FIRST = "we our ours us ourselves my me myself"
_THIRD = "they their theirs them themselves their them themselves"
_PRONOUNS = dict(zip(_FIRST.split(), _THIRD.split(), strict=True))
_PRONOUN = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b", re.IGNORECASE)

# What authors do, in the plural. For one author only these get an ending: any other word may not be a verb.
_VERBS_LISTED = """
    address adopt aim analyse analyze apply argue ask assess assume build carry characterise characterize classify
    combine compare compute conclude conduct consider construct contribute define demonstrate derive describe design
    determine develop devise discuss employ establish estimate evaluate examine experiment explain explore extend find
    focus formalise formalize formulate generalise generalize generate give highlight identify illustrate implement
    improve incorporate introduce investigate learn leverage look make model motivate observe obtain offer optimise
    optimize outline perform point predict present propose prove provide put quantify release report review revisit
    seek select show solve study suggest summarise summarize survey take tackle test train treat try use validate verify
    want
"""
_VERBS = frozenset(_VERBS_LISTED.split())
_IRREGULAR = {"have": "has", "are": "is", "am": "is", "were": "was", "do": "does"}
_ADVERB = re.compile(r"not|only|also|then|further|first|here|now|thus|hence|therefore|[a-z]+ly")
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
# After "and" these are surely verbs: "and design" may be a noun.
_AND_VERB = re.compile(
    r"(?<= and )(?:analy[sz]e|apply|compare|demonstrate|derive|describe|discuss|evaluate|examine|identify|introduce|"
    r"investigate|propose|prove|provide|suggest|validate|verify)\b"
)


def attributed(sentence: Sentence, task: TextTask) -> str:
    """A sentence of an abstract in the third person, with its authors in place of "we", and with its citation.

    A sentence without "we" or the like is cited unchanged. Its own citations are left out: their numbers are of another
    list.
    """
    (number,) = sentence.attributions
    source = task.sources[number]
    text = uncited(sentence.text)
    if opening := _OPENING.match(text):
        text = text[opening.end() :]
        text = text[:1].upper() + text[1:]
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
        return cited(replace(sentence, text=_in_third_person(text)), task)
    return text if text.endswith((".", "?", "!", ")", '"', "”")) else f"{text}."


def _in_third_person(text: str) -> str:
    def other(pronoun: re.Match[str]) -> str:
        third = _PRONOUNS[pronoun[0].lower()]
        return pronoun[0] if pronoun[0] == "US" else third.capitalize() if pronoun[0][0].isupper() else third

    return _PRONOUN.sub(other, text)


def _of_one(rest: str) -> str:
    """Changes the text after "we" to follow the name of one author: verbs get their ending."""
    for word in _WORD.finditer(rest):
        verb = word[0].lower()
        if verb in _IRREGULAR or verb.removeprefix("re-") in _VERBS:
            after = _AND_VERB.sub(lambda verb: _singular(verb[0]), rest[word.end() :])
            return rest[: word.start()] + _singular(verb) + after
        if not _ADVERB.fullmatch(verb):
            break
    return rest


def _singular(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


ATTRIBUTED = extractive(ExtractiveWriter("attributed", contribution_each, attributed), "citation", "related-work")
