"""Entries of bibliographies: what a paper is by its venue, the parts of its authors' names, and its citation key."""

import itertools
import re
import string
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from citerec.errors import InputError
from citerec.records import Paper

DEFAULT_PATTERN = "{auth}{year}{word}"
"""Surname of the first author, year, and first word of the title."""

_WORD = re.compile(r"[A-Za-z0-9]+")
_SKIPPED = {"a", "an", "the", "on", "of", "in", "for", "and", "to", "with", "from"}
_NOT_IN_KEYS = re.compile(r"[\s{}(),=#%\"'~\\@]")
_NO_KEY = "anonymous"
_NAMES = ("auth", "Auth", "year", "shortyear", "word", "Word", "venue")
_NAME = re.compile(rf"{{({'|'.join(_NAMES)})}}")
_SUFFIX = re.compile(r"(?:jr|sr)\.?|II|III|IV", re.IGNORECASE)
_OWN = re.compile(r"(?P<before>\s*@\s*\w+\s*[{(]\s*)(?P<key>[^\s,{}()=\"#%]+)(?=\s*,)")


def given_first(name: str) -> str:
    """A name "Family, Given, Suffix" with the given name first."""
    family, *others = (part.strip() for part in name.split(","))
    return " ".join(filter(None, [*others[:1], family, *others[1:]]))


def parts_of(name: str) -> tuple[str, str, str]:
    """Given name, family name and suffix of a name with the given name first.

    A particle in lower case, such as "de la", begins the family name. Joined by spaces, the parts are the name again.
    """
    words = name.split()
    suffix = words.pop() if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) else ""
    begins = next((place for place, word in enumerate(words[:-1]) if word[:1].islower()), max(len(words) - 1, 0))
    return " ".join(words[:begins]), " ".join(words[begins:]), suffix


def surname(name: str) -> str:
    """The family name in a name: "de la Cruz" of "Ana de la Cruz", "Wang" of "Wang, Li", "Roe" of "A. Roe Jr."."""
    return parts_of(given_first(name))[1]


def surnames(authors: Sequence[str], between: str = " and ") -> str:
    """Surnames in the form of a citation: "Salton and Buckley", "Salton et al."; empty without an author."""
    names = [surname(author) for author in authors if author.split()]
    return f"{names[0]} et al." if len(names) > 2 else between.join(names)


def cited_as(paper: Paper) -> str:
    """Authors and year as a text cites them: "Lavrenko & Croft 2001", "Vaswani et al. 2017"."""
    return f"{surnames(paper.authors, ' & ') or 'No author'} {paper.year or 'without year'}"


def _fields(paper: Paper) -> dict[str, str]:
    """What the names of a pattern stand for."""
    family = parts_of(paper.authors[0])[1].split()[-1:] if paper.authors else []
    author = "".join(_WORD.findall(_ascii("".join(family)))) or _NO_KEY
    word = next(iter(_words(paper.title)), "")
    venue = _words(paper.venue or "")
    return {
        "auth": author.lower(),
        "Auth": author[:1].upper() + author[1:],
        "year": str(paper.year or ""),
        "shortyear": str(paper.year or "")[-2:],
        "word": word.lower(),
        "Word": word[:1].upper() + word[1:],
        "venue": (venue[0] if len(venue) == 1 else "".join(each[0] for each in venue)).lower(),
    }


def citation_keys(papers: Iterable[Paper], pattern: str = DEFAULT_PATTERN, taken: Collection[str] = ()) -> list[str]:
    """A citation key for each paper, without repeats, which none of the keys that are taken is.

    Args:
        papers: The papers; without any, the pattern is checked.
        pattern: Text with `{auth}`, `{year}`, `{word}` and so on in it (docs/formats.md, "Citation keys").
        taken: Keys of other entries. Upper and lower case are one, as for BibTeX; a, b, c and so on make a key new.

    Raises:
        InputError: The pattern has a name that does not exist, no name at all, or a character that no key may have.
    """
    text = _NAME.sub("", pattern)
    if text == pattern or not _is_allowed(text):
        names = ", ".join(f"{{{name}}}" for name in _NAMES)
        remedy = f"Names are {names}; text beside them has no spaces, commas, braces or other signs of BibTeX. "
        remedy += f"The default is {DEFAULT_PATTERN}."
        raise InputError(f"the pattern of citation keys {pattern!r:.60} is wrong", remedy)
    used = {key.casefold() for key in taken}
    keys = []
    for paper in papers:
        base = pattern.format_map(_fields(paper)) or _NO_KEY
        suffixes = itertools.chain(("",), string.ascii_lowercase, map("-{}".format, itertools.count(27)))
        keys.append(next(key for suffix in suffixes if (key := base + suffix).casefold() not in used))
        used.add(keys[-1].casefold())
    return keys


_PATTERNS = [
    f"{author}{between}{year}{after}"
    for author in ("{auth}", "{Auth}")
    for between in ("", "_", "-", ":")
    for year in ("{year}", "{shortyear}")
    for after in ("", "{word}", "{Word}", "_{word}", "-{word}", ":{word}")
] + ["{auth}_{word}_{year}", "{auth}{word}{year}", "{Auth}{Word}{year}", "{word}{year}"]
_COMPARED, _LEAST_ALIKE = 50, 0.5


def pattern_of(papers: Iterable[Paper]) -> str:
    """The pattern that makes most keys of entries, if it makes half of them; else the default one."""
    named = list(itertools.islice(((own, paper) for paper in papers if (own := own_key(paper))), _COMPARED))

    def made_by(pattern: str) -> int:
        return sum(citation_keys([paper], pattern) == [own] for own, paper in named)

    best = max((DEFAULT_PATTERN, *_PATTERNS), key=made_by)  # the first of several
    return best if named and made_by(best) >= _LEAST_ALIKE * len(named) else DEFAULT_PATTERN


def own_entry(paper: Paper) -> "re.Match[str] | None":
    """How the author's own entry begins, with what is `before` its `key`; None if the paper came from elsewhere."""
    return _OWN.match(paper.bibtex or "")


def own_key(paper: Paper) -> str | None:
    """The key of the author's own entry; None if the paper came from elsewhere."""
    own = own_entry(paper)
    return own["key"] if own else None


def check_key(key: str) -> str:
    """The key itself.

    Raises:
        InputError: It is empty, or has a character that no key may have, such as a comma.
    """
    if not key or not _is_allowed(key):
        raise InputError(f"{key!r:.60} is no citation key", "Use letters, digits, and - _ : . / + without spaces.")
    return key


def _is_allowed(text: str) -> bool:
    return text.isprintable() and not _NOT_IN_KEYS.search(text)


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(_ascii(text)) if word.lower() not in _SKIPPED]


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


class Kind(NamedTuple):
    """A kind of paper, and how it is written in each form: the type of an entry, and the field of its venue."""

    bibtex: tuple[str, str]
    csl: tuple[str, str]
    ris: tuple[str, str]


ARTICLE = Kind(("article", "journal"), ("article-journal", "container-title"), ("JOUR", "T2"))
CONFERENCE = Kind(("inproceedings", "booktitle"), ("paper-conference", "container-title"), ("CONF", "T2"))
# @misc claims neither a journal nor a conference.
PREPRINT = Kind(("misc", "howpublished"), ("article", "publisher"), ("UNPB", "PB"))
OTHER = Kind(("misc", "howpublished"), ("document", "container-title"), ("GEN", "T2"))

PREPRINTS = re.compile(r"r[xχ]iv\b|\b(?:(?-i:CoRR)|ssrn|research square|preprints?)\b", re.IGNORECASE)
"""What the venues of preprints have in their names."""
# Journals that are called proceedings, or by other words of conferences.
_JOURNALS = re.compile(
    r"proc(?:eedings|\.)?(?: of)?(?: the)? (?:acm on|acm (?:program|hum|interact|manag|meas|softw|netw)|ieee\W*$|"
    r"vldb endow|national academy|natl|royal society|london math|american math|american philos|aristotelian|"
    r"japan acad|institution of|physical society)|"
    r"computer graphics forum|(?:acm )?sigir forum",
    re.I,
)
_WORDS = re.compile(
    r"(?P<article>\b(?:journal|transactions|trans\.|letters|lett\.|magazine|annals|bulletin|quarterly|archives|acta|"
    r"communications of the acm|commun\. acm|computing surveys|foundations and trends|advances in physics|"
    r"reviews?(?= of\b|[^\w:]*$)|physical review|annual review|ieee access|scientific reports|plos)(?!\w)|"
    r"\bj\. (?=\w)|(?-i:^J (?=[A-Z][a-z]+ )))|"
    r"(?P<conference>\b(?:proceedings|proc\.|conference|conf\.|workshops?|symposium|symposia|symp\.|colloquium|"
    r"congress|annual meeting|extended abstracts|adjunct|companion|neural information processing systems|"
    r"international joint|shared task)(?!\w))",
    re.I,
)


def _listed(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Names by which a venue is known without a word that says what it is. They stand alone, or before a year.
_CONFERENCES = _listed("""
    AAAI AAMAS ACCV ACL AISTATS AIES ANLP ASONAM ASPLOS ASRU AVI BMVC CAV CCS CHI CHIIR CIDR CIKM CLEF COLING COLT CONLL
    CRYPTO CSCW CVPR DASFAA DL DOCENG EACL ECAI ECCV ECIR ECML EDBT EMNLP ESWC EUROCRYPT FACCT FOCS GECCO HICSS HLT HT
    ICALP ICASSP ICCV ICDAR ICDCS ICDE ICDM ICDT ICLR ICML ICPR ICRA ICSE ICTIR ICWSM IIIX IJCAI IJCNLP INFOCOM
    INTERSPEECH IROS ISMIR ISWC IUI IWSLT JCDL KDD LREC MICCAI MM MOBICOM MOBILEHCI NAACL NAACL-HLT NDSS NEURIPS NIPS
    NSDI NTCIR OOPSLA OSDI OZCHI PAKDD PKDD PLDI PODC PODS POPL RANLP RECSYS SEMEVAL SIGCOMM SIGCSE SIGDOC SIGGRAPH
    SIGIR SIGMETRICS SIGMOD SODA SOSP SPAA SPIRE STACS STOC TREC UAI UBICOMP UIST UMAP VLDB WACV WMT WSDM WWW
""")
_ARTICLES = _listed("""
    CACM CSUR IJCV INFRE JACM JAIR JAIST JAMA JAMIA JASIS JASIST JCSS JDIQ JMLR NATURE PACMHCI PLOS PNAS PVLDB SCIENCE
    SICOMP SIGIR-FORUM TACL TALLIP TASLP TIIS TIST TKDD TKDE TMIS TMLR TOCHI TODS TOG TOIS TOIT TOPLAS TOSEM TPAMI TWEB
""")
_ACRONYM = re.compile(r"\W*(?P<name>[A-Za-z0-9*/-]+?)(?:[-–][A-Z]{2})?(?:[\s,]*['’]?(?:\d{2}|(?:19|20)\d\d))?\W*")
_ANTHOLOGY_JOURNAL = re.compile(r"[JQ]\d|\d{4}\.(?:cl|tacl|tal)-")


def kind_of(paper: Paper) -> Kind:
    """What a paper is. It is `other` where its venue could be a journal as well as a conference."""
    venue = (paper.venue or "").strip()
    if not venue:
        return PREPRINT if paper.external_ids.get("ArXiv") else OTHER
    if PREPRINTS.search(venue):
        return PREPRINT
    if _JOURNALS.match(venue):
        return ARTICLE
    if words := _WORDS.search(venue):  # the first word that says it: "Journal of Physics: Conference Series"
        return ARTICLE if words["article"] else CONFERENCE
    if acronym := _ACRONYM.fullmatch(venue):
        name = acronym["name"].upper()
        if name in _CONFERENCES:
            return CONFERENCE
        if name in _ARTICLES or venue.upper() in _ARTICLES:
            return ARTICLE
    if anthology := paper.external_ids.get("ACL"):
        return ARTICLE if _ANTHOLOGY_JOURNAL.match(anthology) else CONFERENCE
    return OTHER
