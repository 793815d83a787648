"""Citation anchors of a text, numbered as CiteBench numbers them (Funkquist et al., appendix A.1)."""

import re
from collections.abc import Mapping, Sequence

OTHER = "#OTHEREFR"
"""Stands in a citation text for a paper that is not in the input (CiteBench, after Xing et al.)."""


def unified(text: str, anchors: re.Pattern[str], papers: Mapping[str, int]) -> tuple[str, list[int]]:
    """A citation text with `[0]`, `[1]`, … for its anchors, and the papers in that order.

    Papers are numbered in order of first mention; those never mentioned come last. An anchor without a paper becomes
    `#OTHEREFR`.

    Args:
        text: The citation text.
        anchors: Pattern of an anchor; its name is the first group of the match, or the whole match.
        papers: Positions of the papers, by the name of their anchors; several names may mean one paper.

    Returns:
        The text, and for each number the position of its paper.
    """
    numbers: dict[int, int] = {}

    def number_of(match: re.Match[str]) -> str:
        position = papers.get(match[1] if anchors.groups else match[0])
        if position is None:
            return OTHER
        return f"[{numbers.setdefault(position, len(numbers))}]"

    numbered = anchors.sub(number_of, text)
    return numbered, list(dict.fromkeys([*numbers, *sorted(papers.values())]))


def positions(names: Sequence[str]) -> dict[str, int]:
    """Positions of papers by name; if a name occurs twice, the first counts."""
    return {name: position for position, name in reversed(list(enumerate(names)))}
