"""What a paper is, by the words of its venue: an article, a conference paper, a preprint, or none of these for sure."""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from citerec.records import Paper

Kind = Literal["article", "conference", "preprint", "other"]
"""A journal article, a conference paper, a preprint, or a paper of which the venue says none of these."""


class EntryType(NamedTuple):
    """The type of an entry, and the field of its venue, in each form."""

    bibtex: tuple[str, str]
    csl: tuple[str, str]
    ris: tuple[str, str]


ENTRY_TYPES: Mapping[Kind, EntryType] = {  # @misc claims neither a journal nor a conference
    "article": EntryType(("article", "journal"), ("article-journal", "container-title"), ("JOUR", "T2")),
    "conference": EntryType(("inproceedings", "booktitle"), ("paper-conference", "container-title"), ("CONF", "T2")),
    "preprint": EntryType(("misc", "howpublished"), ("article", "publisher"), ("UNPB", "PB")),
    "other": EntryType(("misc", "howpublished"), ("document", "container-title"), ("GEN", "T2")),
}
"""How papers of a kind are written."""

_PREPRINT = re.compile(r"r[xχ]iv\b|\b(?:(?-i:CoRR)|ssrn|research square|preprints?)\b", re.IGNORECASE)
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
        return "preprint" if paper.external_ids.get("ArXiv") else "other"
    if _PREPRINT.search(venue):
        return "preprint"
    if _JOURNALS.match(venue):
        return "article"
    if words := _WORDS.search(venue):  # the first word that says it: "Journal of Physics: Conference Series"
        return "article" if words["article"] else "conference"
    if acronym := _ACRONYM.fullmatch(venue):
        name = acronym["name"].upper()
        if name in _CONFERENCES:
            return "conference"
        if name in _ARTICLES or venue.upper() in _ARTICLES:
            return "article"
    if anthology := paper.external_ids.get("ACL"):
        return "article" if _ANTHOLOGY_JOURNAL.match(anthology) else "conference"
    return "other"
