"""Whether two records are the same paper: by identifiers, titles, authors and years.

An entry of a bibliography is `alike` to a paper (Docekal et al., OARelatedWork, 2.1.1); two records of a corpus are the
`same_work`, such as a preprint and its published version.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product, starmap

from rapidfuzz.distance import Levenshtein

from citerec.corpus.kinds import PREPRINTS
from citerec.corpus.references import ARXIV_DOI, doi_in, identifiers
from citerec.records import Paper

LEAST_ALIKE = 0.75
"""Similarity of two titles, or of two names, from which they count as the same (Docekal et al.)."""
MOST_YEARS = 2
"""Years that may lie between a bib entry and its paper (Docekal et al.)."""
# Latin letters that Unicode does not take apart.
_TO_ASCII = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i"})
_REPEATED = re.compile(r"(.)\1+")
_WORD = re.compile(r"[^\W_]+")
_TITLE = "title:"
# Years between editions. A journal may print a paper years after its preprint; where the titles differ a little, two
# papers of one group on one subject are a greater danger than a late edition.
_SAME_TITLE_YEARS, _LIKE_TITLE_YEARS = 5, 2
_FEWEST_WORDS = 3  # "Introduction" and "Editorial notes" are titles of many papers
_SMALL = re.compile("an?|and|as|at|by|for|from|in|of|on|or|the|to|towards?|using|via|with")
_NUMERAL = re.compile(r"\w*\d\w*|[ivx]+")


def normalised(text: str) -> frozenset[str]:
    """The words of a text in lower case, without accents, punctuation and repeated letters: "Straße" is "Strasse".

    Letters in a row that are the same become one, as in the authors' code (KNOT-FIT-BUT/OAPapers,
    oapapers/cython/normalization.pyx): it is a common error to write "Timmerman" for "Timmermann". Letters of other
    scripts stay; there they are transliterated.
    """
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_TO_ASCII))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return frozenset(_REPEATED.sub(r"\1", word) for word in _WORD.findall(plain))


def containment(first: frozenset[str], second: frozenset[str]) -> float:
    """Share of the smaller set of words that the other has (equation 1 of Docekal et al.); 0 if one is empty."""
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def similarity(first: str, second: str) -> float:
    """Similarity of two titles, 0 to 1: the harmonic mean of Jaccard index and containment of their words."""
    one, other = normalised(first), normalised(second)
    if not one & other:
        return 0.0
    jaccard, contained = len(one & other) / len(one | other), containment(one, other)
    return 2 * jaccard * contained / (jaccard + contained)


def same_author(first: str, second: str) -> bool:
    """Whether two names may be one author's: with given names, initials, or neither."""
    pairs = [(normalised(first), normalised(second)), (_initialled(first), _initialled(second))]
    return any(
        containment(one, other) >= LEAST_ALIKE and any(len(word) > 1 for word in one & other) for one, other in pairs
    )


def _initialled(name: str) -> frozenset[str]:
    """A name with initials for all but the surname, the last word of more than a letter: "Ada Roe" and "Roe A."."""
    words = re.findall(r"\w+", name)
    surname = next((word for word in reversed(words) if len(word) > 1), "")
    return normalised(" ".join(word if word == surname else word[0] for word in words))


def alike(entry: Paper, paper: Paper) -> float:
    """Similarity of the titles of two records; 0 if they are not the same paper, 2 if they have the same DOI."""
    if (doi := plain_doi(entry)) and doi == plain_doi(paper):
        return 2.0
    if entry.year is not None and paper.year is not None and abs(entry.year - paper.year) > MOST_YEARS:
        return 0.0
    score = similarity(entry.title, paper.title)
    if score < LEAST_ALIKE:  # titles first: names take longer to compare
        return 0.0
    if entry.authors and paper.authors and not any(starmap(same_author, product(entry.authors, paper.authors))):
        return 0.0
    return score


def plain_doi(paper: Paper) -> str:
    """The DOI of a record in small letters, without `https://doi.org/`; empty if it has none."""
    return doi_in(paper.external_ids.get("DOI", "")).casefold()


def look_up_names(title: str, external_ids: Mapping[str, str]) -> set[str]:
    """What a paper is looked up by where its id is not known: DOI, arXiv id, Anthology id, and title."""
    return {*identifiers(external_ids), *filter(None, [title_name(title)])}


def title_name(title: str) -> str:
    """The name that a title is among those of `look_up_names`; empty if it has no letter."""
    plain = plain_title(title).replace(" ", "")
    return f"{_TITLE}{plain}" if plain else ""


def is_title(name: str) -> bool:
    """Whether a name of `look_up_names` is a title."""
    return name.startswith(_TITLE)


def name_digest(name: str) -> int:
    """The digest of such a name, as stores keep it: 64 bits, with a sign. What it finds must be compared."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def plain_title(title: str) -> str:
    """The words of a title without accents, case and punctuation, one space between them."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", title).casefold())
    return " ".join(re.findall(r"\w+", "".join(one for one in plain if not unicodedata.combining(one))))


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
        return bool(PREPRINTS.search(paper.venue))
    doi = paper.external_ids.get("DOI", "")
    return doi.casefold().startswith(ARXIV_DOI) or (not doi and "ArXiv" in paper.external_ids)


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
    return Levenshtein.distance(one, other) <= 1


def _surnames(paper: Paper) -> list[str]:
    # "Wang, Li" and "Li Wang"
    names = (plain_title(author.partition(",")[0] if "," in author else author).split() for author in paper.authors)
    return [name[-1] for name in names if name]
