"""Shorter forms of a sentence, by rule: the same words in the same order, with parts left out.

A part is left out only where what remains is a sentence and says no more than the whole: conditions such as "if" and
"under" stay, and so do a "but" and a "not only".
"""

import re
from collections.abc import Iterator

LEAST_WORDS = 6
"""Words that a shorter form has at least, and that an ending which is left out leaves in the sentence."""

_OPENING = re.compile(
    r"(?:in this (?:paper|work|article|study|report|thesis|survey)|here|hence|thus|therefore|finally|specifically|"
    r"(?:in )?particular(?:ly)?|moreover|furthermore|in addition|additionally|however|to this end|concretely|"
    r"more (?:specifically|precisely|concretely)|first(?:ly)?|second(?:ly)?|third(?:ly)?|then|also|instead|in contrast|"
    r"on the other hand|as a result|consequently|importantly|notably|overall|in (?:summary|short|other words|general)|"
    r"(?:motivated|inspired) by this|as such|indeed|nevertheless|for (?:example|instance))(?:\s*,\s*|\s+(?=we\b))",
    re.IGNORECASE,
)
# What comes before "we": a phrase, but neither a condition ("Ideally, we would …") nor what is reported ("We show that,
# …").
_BEFORE_WE = re.compile(
    r"(?!(?:if|when|whenever|unless|assuming|given|under|provided|only)\b)(?:(?!\bthat\b)[^;:])*?,\s+"
    r"(?=(?:we|I)\b(?! (?:would|could|should|might)\b))",
    re.IGNORECASE,
)
_DID = (
    r"(?:show|demonstrate|prove|propose|present|introduce|provide|evaluate|find|apply|develop|validate|use|study|"
    r"further|describe|discuss|analy[sz]e|report|compare|illustrate|achieve|argue|test|derive|establish)"
)
_ENDING = re.compile(
    rf"""
    (?:\s*,\s*|\s+[-–—]+\s+|\s*[—–]\s*)(?=(?:
        which|where|whereas|thereby|thus|hence|and\s+(?:thus|hence|therefore|then)|so\s+that|such\s+as|including|
        especially|particularly|even|instead|rather|because|since|as\s+well\s+as|with|by|based|inspired|motivated|both|
        called|named|termed|namely|\w+ing)\b)
    |\s*;\s*
    |\s*:\s+
    |\s*,?\s+(?=and\s+(?:we\s+|this\s+paper\s+)?(?:\w+ly\s+)?{_DID}s?\b)
    |\s+(?=(?:by\s+\w+ing|using|based\s+on|in\s+order\s+to|while|which|where|so\s+that|such\s+that|as\s+well\s+as|
        thereby|across|compared|via|through|because|and\s+(?:thus|hence))\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BRACKETS = re.compile(r"\s*\((?:[^()]|\([^()]*\))*\)")
_STOP = re.compile(r"[\s.?!,;:]*$")
_VERB = re.compile(
    r"\b(?:we|I)\s+\w+|\b(?:is|are|was|were|has|have|had|can|could|may|might|will|would|do|does|did|remains?|requires?|"
    r"presents?|proposes?|introduces?|shows?|provides?|achieves?|outperforms?|improves?|allows?|enables?|learns?|uses?|"
    r"leads?|makes?|describes?|studies|investigates?|explores?|addresses|demonstrates?|aims?|suggests?|consists?)\b",
    re.IGNORECASE,
)
# A sentence that begins so has its main clause after a comma, or from "we" on.
_SUBORDINATE = re.compile(
    r"(?:while|when|whenever|if|although|though|since|because|as|given|by|to|in|on|at|with|for|from|despite|unlike|"
    r"rather|instead|based|using|motivated|inspired|due|among|through|under|after|before|until|once|where|whereas|"
    r"\w+ing)\b",
    re.IGNORECASE,
)
_MAIN_CLAUSE = re.compile(r",\s+(?:\S+\s+){3}\S|\bwe\s+\w+")
_LEFT_HANGING = re.compile(
    r"\b(?:that|and|or|but|of|the|an?|to|for|with|by|in|on|is|are|was|were|be|as|from|not|only|between|both|which|how|"
    r"whether|what|can|may|has|have|than|if|when|its|their|our|this|these|such|more|most|less|either|at|into|about)$"
    # A clause whose verb may be in the part that is left out.
    r"|\b(?:how|why|whether|what|second,? we)(?:\s+\S+){1,5}$",
    re.IGNORECASE,
)

_LEANS = re.compile(
    r"(?:this(?! (?:paper|work|article|study)\b)|these|those|it|they|such|its|their|both|but|yet|and|so|or)\b",
    re.IGNORECASE,
)


def forms_of(sentence: str) -> list[str]:
    """A sentence as it is, then its shorter forms; each once."""
    wholes = _openings(sentence.strip())
    bodies = (body for whole in wholes for body in (whole, _BRACKETS.sub("", whole)) if body == whole or _is_long(body))
    return list(dict.fromkeys(form for body in bodies for form in _endings(body)))


def leans(sentence: str) -> bool:
    """Whether a sentence begins with what refers to the one before it: "this", "but", "moreover"."""
    return bool(_LEANS.match(sentence) or _OPENING.match(sentence))


def _openings(sentence: str) -> Iterator[str]:
    yield sentence
    for pattern in (_OPENING, _BEFORE_WE):
        if (match := pattern.match(sentence)) and _is_long(sentence[match.end() :]):
            sentence = sentence[match.end() :]
            yield sentence[:1].upper() + sentence[1:]


def _endings(sentence: str) -> Iterator[str]:
    yield sentence
    for place in _ENDING.finditer(sentence):
        head, rest = sentence[: place.start()], sentence[place.start() :]
        if _is_long(head) and len(rest.split()) > 1 and _is_sentence(head, rest):
            yield _STOP.sub("", head) + "."


def _is_long(text: str) -> bool:
    return len(text.split()) >= LEAST_WORDS


def _is_sentence(head: str, rest: str) -> bool:
    """Whether the beginning of a sentence is one by itself, as far as rules can tell."""
    return not (
        any(head.count(first) != head.count(last) for first, last in ("()", "[]", "{}", "“”"))
        or head.count('"') % 2
        or head.count("$") % 2
        or _LEFT_HANGING.search(head)
        or (re.search(r"\bnot only\b", head, re.IGNORECASE) and "but" in rest)
        or (_SUBORDINATE.match(head) and not _MAIN_CLAUSE.search(head))
        or not _VERB.search(head)
    )
