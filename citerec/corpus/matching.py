"""Identifiers of papers, and whether two records are the same paper: by identifiers, titles, authors and years.

An entry of a bibliography is `alike` to a paper (Docekal et al., OARelatedWork, 2.1.1); two records of a corpus are the
`same_work`, such as a preprint and its published version. And whether a paper `passes` filters.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product, starmap

from citerec.corpus.citation_keys import PREPRINTS, citation_keys
from citerec.corpus.reading import LongLine, NumberedLine, line_bytes, read_id, unescaped
from citerec.files.text import one_line
from citerec.records import Filters, Paper

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
_KEPT = 1 << 15  # titles and names whose words are remembered: each is compared with many
_SMALL = re.compile("an?|and|as|at|by|for|from|in|of|on|or|the|to|towards?|using|via|with")
_NUMERAL = re.compile(r"\w*\d\w*|[ivx]+")


@lru_cache(_KEPT)
def normalised(text: str) -> frozenset[str]:
    """The words of a text in lower case, without accents, punctuation and repeated letters: "Straße" is "Strasse".

    Letters in a row that are the same become one, as in the authors' code (KNOT-FIT-BUT/OAPapers,
    oapapers/cython/normalization.pyx): it is a common error to write "Timmerman" for "Timmermann". Letters of other
    scripts stay; there they are transliterated.
    """
    plain = _without_accents(text.casefold().translate(_TO_ASCII))
    return frozenset(_REPEATED.sub(r"\1", word) for word in _WORD.findall(plain))


def _without_accents(text: str) -> str:
    if text.isascii():  # most texts are: then nothing would change
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


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
    doi, other = (doi_in(one.external_ids.get("DOI", "")).casefold() for one in (entry, paper))
    if doi and doi == other:
        return 2.0
    if entry.year is not None and paper.year is not None and abs(entry.year - paper.year) > MOST_YEARS:
        return 0.0
    score = similarity(entry.title, paper.title)
    if score < LEAST_ALIKE:  # titles first: names take longer to compare
        return 0.0
    if entry.authors and paper.authors and not any(starmap(same_author, product(entry.authors, paper.authors))):
        return 0.0
    return score


def most_alike(paper: Paper, others: Iterable[Paper]) -> Paper | None:
    """Which of some papers is a paper, by DOI, or by title, authors and year, the first of several; None if none is."""
    scored = ((alike(paper, one), one) for one in others)
    score, best = max(scored, key=lambda each: each[0], default=(0.0, paper))
    return best if score else None


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


@lru_cache(_KEPT)
def plain_title(title: str) -> str:
    """The words of a title without accents, case and punctuation, one space between them."""
    return " ".join(re.findall(r"\w+", _without_accents(unicodedata.normalize("NFKD", title).casefold())))


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
        has_title = words and len(_words(paper.title)) >= _FEWEST_WORDS  # others are no editions of anything
        ends = {words[0], words[-1], "".join(words)} if has_title else set()
        near = [group for word in sorted(ends) for group in by_word[word]]
        editions = next((group for group in near if any(same_work(papers[other], paper) for other in group)), None)
        if editions is None:
            groups.append(editions := [])
        editions.append(place)
        for word in ends:
            if not any(editions is group for group in by_word[word]):
                by_word[word].append(editions)
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
    names, theirs = _surnames(first.authors), _surnames(second.authors)
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
    of_arxiv = "arxiv" in (paper.venue or "arxiv").casefold() or "ArXiv" in paper.external_ids
    name = f"{'arXiv ' * of_arxiv}preprint" if is_preprint(paper) else paper.venue or ""
    return f"{name} {paper.year or ''}".strip() or "another record"


def _stage(paper: Paper) -> int:
    return 2 if is_preprint(paper) else 0 if paper.venue else 1


@lru_cache(_KEPT)
def _words(title: str) -> tuple[str, ...]:
    return tuple(plain_title(title).split())


@lru_cache(_KEPT)
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
    from rapidfuzz.distance import Levenshtein  # few titles are so much alike, and it takes a moment to load

    return Levenshtein.distance(*pairs[0]) <= 1


@lru_cache(_KEPT)
def _surnames(authors: Sequence[str]) -> list[str]:
    # "Wang, Li" and "Li Wang"
    names = (plain_title(author.partition(",")[0] if "," in author else author).split() for author in authors)
    return [name[-1] for name in names if name]


ARXIV_DOI = "10.48550/arxiv."
"""How the DOIs begin that arXiv gives to preprints, in small letters."""

_SCHEMES = ("doi:", "arxiv:", "acl:")
"""The identifiers that are the same in every source."""

_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_DOI_PREFIX = re.compile(r"^(?:(?:https?://)?(?:dx\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
# Zeros at the ends are missing where a program took the id for a number.
_ARXIV = re.compile(
    r"arxiv(?:\.org/(?:abs|pdf)/|:\s*)([a-z-]+(?:\.[A-Z]{2})?/\d{1,7}|\d{3,4}\.\d{1,5}(?!\d))", re.IGNORECASE
)

_ACL = re.compile(
    r"(?:aclanthology\.org|aclweb\.org/anthology)/(?:[\w.-]+/)*"
    r"([A-Z]\d\d-\d{4,5}|\d{4}\.[a-z0-9_]+-[a-z0-9]+\.\d+)(?:v\d+)?(?![\w-])"
)

_ANTHOLOGY = re.compile(r"(?:https?://(?:www\.)?aclanthology\.org/|acl:)(?P<id>[^\s/]+?)/?", re.IGNORECASE)
_OF_CORPUS = re.compile(
    r"corpusid:\s*(?P<s2>\d+)|https?://(?:api\.)?openalex\.org/(?:works/)?(?P<openalex>w\d+)", re.IGNORECASE
)
_VERSION = re.compile(r"v\d+$")


def entries(
    lines: Iterable[NumberedLine], begin: "re.Pattern[bytes]", end: "re.Pattern[bytes]"
) -> Iterator[NumberedLine]:
    """The entries of a file, as `raw_lines` gives lines: number of the first line, all lines, bytes read so far.

    Args:
        lines: The lines, blank ones too.
        begin: Matches a line that begins an entry, also if the one before has no end. Outside an entry, any line does.
        end: Matches the last line of an entry.

    Yields:
        The entries; those that are too long as a `LongLine`.
    """
    entry: list[bytes] = []
    begun = size = done = 0
    longest = line_bytes()

    def whole() -> bytes:
        text = b"".join(entry)
        entry.clear()
        return LongLine.of(text, longest) if size > longest else text

    for number, raw, done in lines:
        if entry and begin.match(raw):
            yield begun, whole(), done
        if not entry:
            if raw.isspace():
                continue
            begun, size = number, 0
        size += longest + 1 if isinstance(raw, LongLine) else len(raw)
        if size <= longest or not entry:
            entry.append(raw)
        if end.match(raw):
            yield begun, whole(), done
    if entry:
        yield begun, whole(), done


def first_of(read: Callable[[str], str], texts: Iterable[str]) -> str:
    """The first that a function finds in some texts; empty if it finds nothing."""
    return next(filter(None, map(read, texts)), "")


def year_in(text: str) -> int | None:
    """The first year in a text such as "2010/05/01/", from 1500 to 2099; None if there is none."""
    match = _YEAR.search(text)
    return int(match[0]) if match else None


def doi_in(text: str) -> str:
    """A DOI without the address of its resolver."""
    return _DOI_PREFIX.sub("", one_line(unescaped(text)))


def doi_of_address(address: str) -> str:
    """The DOI of an address of doi.org; empty if it is another address."""
    doi = doi_in(address)
    return doi if doi.startswith("10.") else ""


def arxiv_in(text: str) -> str:
    """The id in "arXiv:1706.03762" or in an address of arxiv.org, without its version; empty if there is none."""
    match = _ARXIV.search(text)
    return match[1] if match else ""


def acl_in(address: str) -> str:
    """The id in an address of the ACL Anthology, such as "2020.acl-main.1"; empty if it is another address."""
    match = _ACL.search(address)
    return match[1] if match else ""


def identifiers(external_ids: Mapping[str, str]) -> frozenset[str]:
    """The identifiers of a paper that are the same in every source, as `canonical_id` writes them: `doi:…`, `acl:…`."""
    values = {scheme.casefold(): value for scheme, value in external_ids.items() if value}
    texts = [values.get("doi", ""), *(f"{scheme}:{values[scheme]}" for scheme in ("arxiv", "acl") if scheme in values)]
    return frozenset(name for name in map(canonical_id, texts) if name.startswith(_SCHEMES))


def keys_of(paper: Paper) -> frozenset[str]:
    """The `identifiers` of a paper."""
    return identifiers(paper.external_ids)


def names_of(paper: Paper) -> frozenset[str]:
    """The ids by which one may ask for a paper: its own, and those elsewhere, as `canonical_id` writes them."""
    return keys_of(paper) | {paper.paper_id}


def canonical_id(line: str) -> str:
    """What an id that somebody wrote is called: an id of the corpus, or a DOI, arXiv id or Anthology id.

    Case, resolvers such as `https://doi.org/`, and the version of an arXiv id make no difference. The DOI that arXiv
    gives to a preprint is its arXiv id.
    """
    line = line.strip()
    if match := _OF_CORPUS.fullmatch(line):
        return (match["s2"] or match["openalex"]).upper()
    if match := _ANTHOLOGY.fullmatch(line):
        return f"acl:{match['id'].casefold()}"
    if arxiv := arxiv_in(line):
        return f"arxiv:{arxiv.casefold()}"
    doi = doi_in(line).casefold()
    if doi.startswith(ARXIV_DOI):
        return f"arxiv:{_VERSION.sub('', doi.removeprefix(ARXIV_DOI))}"
    return f"doi:{doi}" if doi.startswith("10.") and "/" in doi else line


def conflicting(keys: frozenset[str], others: frozenset[str]) -> bool:
    """Whether both have an identifier of one scheme, and not the same: two articles of one title, not two editions."""
    mine, theirs, same = ({key.partition(":")[0] for key in some} for some in (keys, others, keys & others))
    return not mine & theirs <= same


def identified(paper: Paper, entry_id: str) -> Paper:
    """A paper under the id that its entry gives, else its DOI, else one made from its key, title, authors and year.

    Raises:
        RecordError: The id is too long, or has control characters.
    """
    name = "_".join((entry_id or paper.external_ids.get("DOI", "")).split())
    if not name:
        whole = repr((paper.title, paper.authors, paper.year)).encode("utf-8", "surrogatepass")
        name = f"{citation_keys([paper])[0]}-{hashlib.blake2b(whole, digest_size=4).hexdigest()}"
    return replace(paper, paper_id=read_id({"id": name}, "id"))


def passes(paper: Paper, filters: Filters) -> bool:
    """Whether a paper passes all filters; what each means says `Filters`."""
    year, low, high, latest = paper.year, filters.year_from, filters.year_to, filters.as_of_year
    fields = {name.casefold() for name in filters.fields}
    venue = _venue_words(paper.venue or "") if filters.venues else ""
    citations = -1 if paper.citation_count is None else paper.citation_count
    return (
        paper.paper_id not in (*filters.exclude, *filters.citing_ids)
        and (latest is None or year is None or year <= latest)
        and (low is None or (year is not None and year >= low))
        and (high is None or (year is not None and year <= high))
        and (filters.min_citations is None or citations >= filters.min_citations)
        and (not fields or any(name.casefold() in fields for name in paper.fields_of_study))
        and (not filters.venues or any(_venue_words(name) in venue for name in filters.venues))
    )


def _venue_words(text: str) -> str:
    return " ".join(["", *re.findall(r"\w+", text.casefold()), ""])
