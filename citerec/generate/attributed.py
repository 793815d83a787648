"""What a paper says of itself, said of its authors: "We propose X" becomes "Salton and Buckley [0] propose X"."""

import re

from citerec.generate.extractive import Picked, cited
from citerec.texts.tasks import Source, TextTask

_KIND = r"(?:paper|work|article|study|letter|report|chapter|thesis|survey)"
_OPENING = re.compile(
    rf"(?:in (?:this|the present|our) {_KIND}|here|therefore|thus|hence|finally|to this end)(?:, ?| (?=(?:we|i) ))"
    # What "this" points at stays behind.
    r"|(?:based on|motivated by|inspired by|following|given|to \w+) (?:this|these|that|those)\b[^,.]*, (?=we )",
    re.IGNORECASE,
)
_WE = re.compile(r"(?:we|i) ((?:[a-z]+ly |also |then |further |first )?)([a-z]+)\b", re.IGNORECASE)
_THIS_PAPER = re.compile(rf"(?:this|the present|our) ({_KIND})(?= (?:[a-z]+ly )?[a-z]+(?:s|ed)\b)", re.IGNORECASE)
_PRONOUNS = {"we": "they", "our": "their", "ours": "theirs", "us": "them", "ourselves": "themselves"}
_PRONOUN = re.compile(rf"\b(?:{'|'.join(_PRONOUNS)})\b", re.IGNORECASE)
_NOT_INFLECTED = frozenset(
    """can may will must might could would should did had found gave built made took ran wrote saw drew chose began
    """.split()  # noqa: SIM905
)
_IRREGULAR = {"have": "has", "are": "is", "were": "was", "do": "does"}


def attributed(picked: Picked, task: TextTask) -> str:
    """A sentence of an abstract in the third person, with its citation; one of another make is cited as it stands."""
    (number,) = picked.drawn_from
    source = task.sources[number]
    sentence = picked.text
    if opening := _OPENING.match(sentence):
        sentence = sentence[opening.end() :]
        sentence = sentence[0].upper() + sentence[1:]
    if we := _WE.match(sentence):
        verb = _singular(we[2]) if len(source.authors) == 1 else we[2]
        return _finished(f"{_name(source)} [{number}] {we[1]}{verb}", sentence[we.end() :])
    if paper := _THIS_PAPER.match(sentence):
        owner = f"The {paper[1].lower()}" + (f" of {_name(source)}" if source.authors else "")
        return _finished(f"{owner} [{number}]", sentence[paper.end() :])
    return cited(Picked(_in_third_person(sentence), picked.drawn_from), task)


def _finished(beginning: str, rest: str) -> str:
    sentence = beginning.lstrip() + _in_third_person(rest)
    return sentence if sentence.endswith((".", "?", "!", ")", '"', "”")) else f"{sentence}."


def _in_third_person(text: str) -> str:
    def other(found: re.Match[str]) -> str:
        pronoun = _PRONOUNS[found[0].lower()]
        return pronoun.capitalize() if found[0][0].isupper() else pronoun

    # "US" is a country.
    return _PRONOUN.sub(lambda found: found[0] if found[0] == "US" else other(found), text)


def _name(source: Source) -> str:
    """Surnames as a citation has them; nothing where the authors are not known: the number then stands for them."""
    surnames = [author.split()[-1] for author in source.authors if author.split()]
    if len(surnames) > 2:
        return f"{surnames[0]} et al."
    return " and ".join(surnames)


def _singular(verb: str) -> str:
    if verb in _NOT_INFLECTED or verb.endswith("ed"):
        return verb
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"
