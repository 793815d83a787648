"""Sentences of abstracts in the third person: "We propose X" becomes "Salton and Buckley [0] propose X"."""

import re

from citerec.write.anchors import surnames
from citerec.write.tasks import TextTask
from citerec.write.writers.extractive import Picked, cited, contribution_each, extractive, without_own_citations

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
# After "and" these are surely verbs: "and design" may be a noun.
_SURE_LISTED = """
    analyse analyze apply compare demonstrate derive describe discuss evaluate examine identify introduce investigate
    propose prove provide suggest validate verify
"""
_SURE = frozenset(_SURE_LISTED.split())
_IRREGULAR = {"have": "has", "are": "is", "am": "is", "were": "was", "do": "does"}
_ADVERB = re.compile(r"not|only|also|then|further|first|here|now|thus|hence|therefore|[a-z]+ly")
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_AND_VERB = re.compile(r"(?<= and )[a-z]+\b")


def attributed(picked: Picked, task: TextTask) -> str:
    """A sentence of an abstract in the third person, with its authors in place of "we", and with its citation.

    A sentence without "we" or the like is cited unchanged. Its own citations are left out: their numbers are of another
    list.
    """
    (number,) = picked.attributions
    source = task.sources[number]
    sentence = without_own_citations(picked.text)
    if opening := _OPENING.match(sentence):
        sentence = sentence[opening.end() :]
        sentence = sentence[:1].upper() + sentence[1:]
    named = f"{surnames(source.authors)} [{number}]".lstrip()
    if paper := _THIS_PAPER.match(sentence):
        owner = f"The {paper[1].lower()}" + (f" of {named}" if source.authors else f" [{number}]")
        return _finished(owner + _in_third_person(sentence[paper.end() :]))
    if (said := _SELF.search(sentence)) and (said[0].lower() not in ("our", "my") or source.authors):
        owns = said[0].lower() in ("our", "my")
        rest = sentence[said.end() :]
        if said[0].lower() in ("we", "i"):
            rest = _of_one(rest) if len(source.authors) == 1 else re.sub("^ am ", " are ", rest)
        named = f"{surnames(source.authors)}'s [{number}]" if owns else named
        return _finished(sentence[: said.start()] + named + _in_third_person(rest))
    return cited(Picked(_in_third_person(sentence), picked.attributions), task)


def _finished(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!", ")", '"', "”")) else f"{sentence}."


def _in_third_person(text: str) -> str:
    def other(found: re.Match[str]) -> str:
        if found[0] == "US":
            return found[0]
        pronoun = _PRONOUNS[found[0].lower()]
        return pronoun.capitalize() if found[0][0].isupper() else pronoun

    return _PRONOUN.sub(other, text)


def _of_one(rest: str) -> str:
    """Changes the text after "we" to follow the name of one author: verbs get their ending."""
    for found in _WORD.finditer(rest):
        verb = found[0].lower()
        if verb in _IRREGULAR or verb.removeprefix("re-") in _VERBS:
            after = _AND_VERB.sub(_sure_singular, rest[found.end() :])
            return rest[: found.start()] + _singular(verb) + after
        if not _ADVERB.fullmatch(verb):
            break
    return rest


def _sure_singular(found: re.Match[str]) -> str:
    return _singular(found[0]) if found[0] in _SURE else found[0]


def _singular(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


ATTRIBUTED = extractive("attributed", contribution_each, phrase=attributed, default_for=("citation", "related-work"))
