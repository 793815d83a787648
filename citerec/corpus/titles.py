"""Titles and authors of two records compared (Docekal et al., OARelatedWork, 2.1.1)."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import product, starmap

from citerec.corpus.references import doi_in, names_of
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
    if entry.authors and paper.authors and not any(starmap(same_author, product(entry.authors, paper.authors))):
        return 0.0
    score = similarity(entry.title, paper.title)
    return score if score >= LEAST_ALIKE else 0.0


def plain_doi(paper: Paper) -> str:
    """The DOI of a record in small letters, without `https://doi.org/`; empty if it has none."""
    return doi_in(paper.external_ids.get("DOI", "")).casefold()


def look_up_names(title: str, external_ids: Mapping[str, str]) -> set[str]:
    """What a paper is looked up by where its id is not known: DOI, arXiv id, Anthology id, and title."""
    names = names_of(Paper("", external_ids=external_ids)) - {""}
    return names | {f"{_TITLE}{plain}"} if (plain := plain_title(title).replace(" ", "")) else names


def is_title(name: str) -> bool:
    """Whether a name of `look_up_names` is a title."""
    return name.startswith(_TITLE)


def name_digest(name: str) -> int:
    """The digest of such a name, as stores keep it: 64 bits, with a sign. What it finds must be compared."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def by_name(names: Iterable[str], papers: Mapping[str, Paper]) -> dict[str, list[Paper]]:
    """The papers that have each of some names, in order of id; names that none has are left out."""
    wanted = set(names)
    having: dict[str, list[Paper]] = {}
    for _, paper in sorted(papers.items()):
        for name in look_up_names(paper.title, paper.external_ids) & wanted:
            having.setdefault(name, []).append(paper)
    return having


def plain_title(title: str) -> str:
    """The words of a title without accents, case and punctuation, one space between them."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", title).casefold())
    return " ".join(re.findall(r"\w+", "".join(one for one in plain if not unicodedata.combining(one))))


def distance(first: str, second: str) -> float:
    """Edit distance (Levenshtein) of two texts as a share of the longer one, 0 to 1; 1 if one is empty."""
    return _edits(first, second) / max(len(first), len(second)) if first and second else 1.0


def _edits(first: str, second: str) -> int:
    """How many letters must be put in, left out or changed: bit-parallel (Myers, 1999; Hyyrö, 2003)."""
    last, everything = 1 << (len(first) - 1), (1 << len(first)) - 1
    places: dict[str, int] = {}
    for place, letter in enumerate(first):
        places[letter] = places.get(letter, 0) | 1 << place
    # Bit i of `up` and `down`: the cell of letter i of `first` is one more, or one less, than the cell above it.
    up, down, edits = everything, 0, len(first)
    for letter in second:
        equal = places.get(letter, 0)
        same = (((equal & up) + up) ^ up) | equal | down
        right, left = (down | ~(same | up)) & everything, up & same
        edits += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & everything, (left << 1) & everything
        up, down = (left | ~(same | right)) & everything, right & same
    return edits
