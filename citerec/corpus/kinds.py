"""What a paper is, by the words of its venue: an article, a conference paper, a preprint, or none of these for sure."""

import re
from typing import NamedTuple

from citerec.records import Paper


class Kind(NamedTuple):
    """A kind of paper, and how it is written in each form: the type of an entry, and the field of its venue."""

    name: str
    bibtex: tuple[str, str]
    csl: tuple[str, str]
    ris: tuple[str, str]


ARTICLE = Kind("article", ("article", "journal"), ("article-journal", "container-title"), ("JOUR", "T2"))
CONFERENCE = Kind("conference", ("inproceedings", "booktitle"), ("paper-conference", "container-title"), ("CONF", "T2"))
# @misc claims neither a journal nor a conference.
PREPRINT = Kind("preprint", ("misc", "howpublished"), ("article", "publisher"), ("UNPB", "PB"))
OTHER = Kind("other", ("misc", "howpublished"), ("document", "container-title"), ("GEN", "T2"))

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
