"""What entries of bibliographies have in common: lines, years and identifiers; and the identifiers of papers."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from citerec.corpus.citation_keys import citation_key
from citerec.corpus.json_lines import LongLine
from citerec.corpus.plain import unescaped
from citerec.corpus.values import read_id
from citerec.files.rejected import line_bytes
from citerec.files.text import one_line
from citerec.records import Paper

ARXIV_DOI = "10.48550/arxiv."
"""How the DOIs begin that arXiv gives to preprints, in small letters."""

_SCHEMES = ("doi:", "arxiv:", "acl:")
"""The identifiers that are the same in every source."""

_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_DOI_PREFIX = re.compile(r"(?:https?://)?(?:dx\.)?doi\.org/|doi:\s*", re.IGNORECASE)
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
    lines: Iterable[tuple[int, bytes, int]], begin: "re.Pattern[bytes]", end: "re.Pattern[bytes]"
) -> Iterator[tuple[int, bytes, int]]:
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
    found = _YEAR.search(text)
    return int(found[0]) if found else None


def doi_in(text: str) -> str:
    """A DOI without the address of its resolver."""
    text = one_line(unescaped(text))
    prefix = _DOI_PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def doi_of_address(address: str) -> str:
    """The DOI of an address of doi.org; empty if it is another address."""
    found = doi_in(address)
    return found if found.startswith("10.") else ""


def arxiv_in(text: str) -> str:
    """The id in "arXiv:1706.03762" or in an address of arxiv.org, without its version; empty if there is none."""
    found = _ARXIV.search(text)
    return found[1] if found else ""


def acl_in(address: str) -> str:
    """The id in an address of the ACL Anthology, such as "2020.acl-main.1"; empty if it is another address."""
    found = _ACL.search(address)
    return found[1] if found else ""


def identifiers(external_ids: Mapping[str, str]) -> frozenset[str]:
    """The identifiers of a paper that are the same in every source, as `asked` writes them: `doi:…`, `acl:…`."""
    values = {scheme.casefold(): value for scheme, value in external_ids.items() if value}
    texts = [values.get("doi", ""), *(f"{scheme}:{values[scheme]}" for scheme in ("arxiv", "acl") if scheme in values)]
    return frozenset(name for name in map(asked, texts) if name.startswith(_SCHEMES))


def keys_of(paper: Paper) -> frozenset[str]:
    """The `identifiers` of a paper."""
    return identifiers(paper.external_ids)


def names_of(paper: Paper) -> frozenset[str]:
    """The ids by which one may ask for a paper: its own, and those elsewhere, as `asked` writes them."""
    return keys_of(paper) | {paper.paper_id}


def asked(line: str) -> str:
    """What an id that somebody wrote is called: an id of the corpus, or a DOI, arXiv id or Anthology id.

    Case, resolvers such as `https://doi.org/`, and the version of an arXiv id make no difference. The DOI that arXiv
    gives to a preprint is its arXiv id.
    """
    line = line.strip()
    if found := _OF_CORPUS.fullmatch(line):
        return (found["s2"] or found["openalex"]).upper()
    if found := _ANTHOLOGY.fullmatch(line):
        return f"acl:{found['id'].casefold()}"
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


def identified(paper: Paper, given: str) -> Paper:
    """A paper under the id that its entry gives, else its DOI, else one made from its key, title, authors and year.

    Raises:
        RecordError: The id is too long, or has control characters.
    """
    name = "_".join((given or paper.external_ids.get("DOI", "")).split())
    if not name:
        whole = repr((paper.title, paper.authors, paper.year)).encode("utf-8", "surrogatepass")
        name = f"{citation_key(paper)}-{hashlib.blake2b(whole, digest_size=4).hexdigest()}"
    return replace(paper, paper_id=read_id({"id": name}, "id"))
