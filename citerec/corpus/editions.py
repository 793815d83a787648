"""Editions of one paper in a list, such as a preprint and its published version: they are folded into one entry."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from citerec.corpus.titles import distance, plain_title
from citerec.records import Paper

# Years between editions. A journal may print a paper years after its preprint; where the titles differ a little, two
# papers of one group on one subject are a greater danger than a late edition.
_SAME_TITLE_YEARS, _LIKE_TITLE_YEARS = 5, 2
_FEWEST_WORDS = 3  # "Introduction" and "Editorial notes" are titles of many papers
_PREPRINTS = re.compile(
    r"\b(?:arxiv|corr|(?:bio|med|chem|psy|soc|engr)rxiv|\w*archiv preprint|preprints?|ssrn|techrxiv|research square)\b"
)
_ARXIV_DOI = "10.48550/"
_SMALL = re.compile("an?|and|as|at|by|for|from|in|of|on|or|the|to|towards?|using|via|with")
_NUMERAL = re.compile(r"\w*\d\w*|[ivx]+")


def depth_to_fold(k: int) -> int:
    """How many papers to read, so that k different ones are left: as many for all small k, for the same answers."""
    return max(100, 2 * k)


def folded(papers: Sequence[Paper], k: int) -> list[list[int]]:
    """The places of the first k different papers of a list; each with the places of all its editions.

    Args:
        papers: The records, best first.
        k: How many different papers.

    Returns:
        A list of places for each, in order of their best edition. The first place is that of the edition to show: a
        published one before one without venue, and that before a preprint; else the one that is higher in the list.
    """
    groups: list[list[int]] = []
    # Editions share all long words but one at most, so any two of them share the first or the last one.
    by_word: dict[str, list[list[int]]] = defaultdict(list)
    for place, paper in enumerate(papers):
        words = _content(paper.title)
        ends = {words[0], words[-1], "".join(words)} if words else set()
        near = [group for word in sorted(ends) for group in by_word[word]]
        found = next((group for group in near if any(same_work(papers[other], paper) for other in group)), None)
        if found is None:
            groups.append(found := [])
        found.append(place)
        for word in ends:
            if not any(found is group for group in by_word[word]):
                by_word[word].append(found)
    return [sorted(group, key=lambda place: (_stage(papers[place]), place)) for group in groups[:k]]


def same_work(first: Paper, second: Paper) -> bool:
    """Whether two records are editions of one paper.

    They are if their titles are the same, they have an author in common, and their years are at most 5 apart (if one
    names no author: the years are not different); or if their titles nearly are, they have the same first author, and
    their years are at most 2 apart. Titles have three words at least and are compared without case, accents,
    punctuation and spaces; they are nearly the same if they are so without small words, or if one letter of one word
    differs. Words with digits and Roman numbers must be equal: volumes and years are different papers.
    """
    words, others = _words(first.title), _words(second.title)
    if min(len(words), len(others)) < _FEWEST_WORDS:
        return False
    apart = 0 if first.year is None or second.year is None else abs(first.year - second.year)
    names, theirs = _surnames(first), _surnames(second)
    if "".join(words) == "".join(others):
        if not names or not theirs:  # "Guidelines for Submissions" come every year
            return apart == 0
        return apart <= _SAME_TITLE_YEARS and not set(names).isdisjoint(theirs)
    return apart <= _LIKE_TITLE_YEARS and bool(names) and names[:1] == theirs[:1] and _alike(first.title, second.title)


def is_preprint(paper: Paper) -> bool:
    """Whether a record is that of a preprint: by its venue or DOI, or because it has nothing but an arXiv id."""
    if paper.venue:
        return bool(_PREPRINTS.search(paper.venue.casefold()))
    doi = paper.external_ids.get("DOI", "")
    return doi.casefold().startswith(_ARXIV_DOI) or (not doi and "ArXiv" in paper.external_ids)


def edition_name(paper: Paper) -> str:
    """What an edition is, in words: "preprint 2018", "NAACL 2019", "2019"."""
    name = "arXiv preprint" if _is_arxiv(paper) else "preprint" if is_preprint(paper) else paper.venue or ""
    return f"{name} {paper.year or ''}".strip() or "another record"


def _is_arxiv(paper: Paper) -> bool:
    of_arxiv = "arxiv" in (paper.venue or "arxiv").casefold() or "ArXiv" in paper.external_ids
    return is_preprint(paper) and of_arxiv


def _stage(paper: Paper) -> int:
    return 2 if is_preprint(paper) else 0 if paper.venue else 1


@lru_cache(1 << 14)
def _words(title: str) -> tuple[str, ...]:
    return tuple(plain_title(title).split())


@lru_cache(1 << 14)
def _content(title: str) -> tuple[str, ...]:
    words = _words(title)
    return tuple(word for word in words if not _SMALL.fullmatch(word)) or words


def _alike(first: str, second: str) -> bool:
    words, others = _content(first), _content(second)
    if "".join(words) == "".join(others):
        return True
    pairs = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    if len(words) != len(others) or len(pairs) != 1 or any(map(_NUMERAL.fullmatch, pairs[0])):
        return False
    (one, other), *_ = pairs
    return round(distance(one, other) * max(len(one), len(other))) <= 1


def _surnames(paper: Paper) -> list[str]:
    # "Wang, Li" and "Li Wang"
    names = (plain_title(author.partition(",")[0] if "," in author else author).split() for author in paper.authors)
    return [name[-1] for name in names if name]
