"""Records as OpenAlex, arXiv and the ACL Anthology write them, made up for tests, with the traps of each."""

import copy
from typing import Any

_WORK: dict[str, Any] = {
    "id": "https://openalex.org/W2741809807",
    "doi": "https://doi.org/10.7717/peerj.4375",
    "title": "The state of <i>OA</i> &amp; its prevalence",
    "display_name": "The state of OA",
    "publication_year": 2018,
    "updated_date": "2026-01-03T04:05:06.123456",
    "type": "article",
    "language": "en",
    "cited_by_count": 1300,
    "is_retracted": False,
    "is_paratext": False,
    "ids": {
        "openalex": "https://openalex.org/W2741809807",
        "doi": "https://doi.org/10.7717/peerj.4375",
        "mag": "2741809807",
        "pmid": "https://pubmed.ncbi.nlm.nih.gov/29456894",
        "pmcid": "https://www.ncbi.nlm.nih.gov/pmc/articles/5815332",
    },
    "authorships": [
        {"author": {"id": "https://openalex.org/A5048491430", "display_name": "Heather Piwowar"}},
        {"author": {"id": None, "display_name": None}, "raw_author_name": "Jason Priem"},
        {"author": None},
    ],
    "primary_location": {"source": {"display_name": "PeerJ"}, "landing_page_url": "https://doi.org/10.7717/peerj.4375"},
    "locations": [None, {"source": None, "landing_page_url": "http://arxiv.org/abs/1802.01234v2", "pdf_url": None}],
    "primary_topic": {"field": {"display_name": "Computer Science"}, "domain": {"display_name": "Physical Sciences"}},
    "topics": [
        {"field": {"display_name": "Computer Science"}},
        {"field": {"display_name": "Medicine"}},
        {"field": None},
    ],
    "concepts": [{"display_name": "Library science", "level": 1}],
    "abstract_inverted_index": {"Open": [0, 7], "access": [1], "is": [2], "growing.": [5]},
    "referenced_works": ["https://openalex.org/W1", "W22", None, "https://openalex.org/W1", "https://openalex.org/A5"],
}

_PREPRINT: dict[str, Any] = {
    "id": "0704.0001",
    "submitter": "Pavel Nadolsky",
    "authors": "C. Bal\\'azs, E. L. Berger, P. M. Nadolsky",
    "title": 'Calculation of prompt diphoton production\n  cross sections by Schr\\"odinger',
    "comments": "37 pages, 15 figures; published version",
    "journal-ref": "Phys.Rev.D76:013009,2007",
    "doi": "10.1103/PhysRevD.76.013009",
    "report-no": "ANL-HEP-PR-07-12",
    "categories": "hep-ph cs.CL math.MP",
    "license": None,
    "abstract": "  A differential calculation in {\\it perturbative} chromodynamics is at $m_{\\gamma}$ of 5\\%.\n",
    "versions": [
        {"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"},
        {"version": "v2", "created": "Tue, 24 Jul 2008 20:10:27 GMT"},
    ],
    "update_date": "2008-11-26",
    "authors_parsed": [["Bal\\'azs", "C.", ""], ["Berger", "E. L.", "Jr."], ["Nadolsky", "P. M.", "", "MSU"]],
}

ENTRY = r"""@inproceedings{garcia-etal-2020-probing,
    title = "{P}robing {BERT} for na{\"\i}ve {\&} {\textquotedblleft}other{\textquotedblright} parsers",
    author = "Garc{\'\i}a, Mar{\'\i}a  and
      {\v{S}}imon, Bo",
    editor = "Jurafsky, Dan",
    booktitle = "Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics",
    month = jul,
    year = "2020",
    address = "Online",
    publisher = "Association for Computational Linguistics",
    url = "https://aclanthology.org/2020.acl-main.1/",
    doi = "10.18653/v1/2020.acl-main.1",
    pages = "1--10",
    abstract = "We probe 30{\%} of the parsers, and find that $x^2$ helps{---}sometimes."
}
"""
VOLUME = """@proceedings{acl-2020-association,
    title = "Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics",
    editor = "Jurafsky, Dan",
    year = "2020",
    url = "https://aclanthology.org/2020.acl-main.0/"
}
"""
HEADER = "% https://aclanthology.org/anthology+abstracts.bib.gz generated on 2026-11-23\n\n"


def work(**changes: Any) -> dict[str, Any]:
    """A work of OpenAlex with some values changed."""
    return {**copy.deepcopy(_WORK), **changes}


def preprint(**changes: Any) -> dict[str, Any]:
    """A line of arXiv's metadata file with some values changed; those that are `...` are left out."""
    made = {**copy.deepcopy(_PREPRINT), **changes}
    return {name: value for name, value in made.items() if value is not ...}
