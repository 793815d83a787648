import pytest

from citerec.corpus.base import entries_of
from citerec.corpus.bibtex import bibtex_entry
from citerec.corpus.citation_keys import ARTICLE, CONFERENCE, OTHER, PREPRINT, citation_keys, kind_of
from citerec.errors import InputError
from citerec.records import Paper

PAPER = Paper("1", "On the Origin of Words", year=2005, venue="Journal of Word Studies", authors=("Ana de la Peña Jr",))


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("{auth}{year}{word}", "pena2005origin"),
        ("{Auth}{shortyear}", "Pena05"),
        ("{Auth}:{Word}-{venue}", "Pena:Origin-jws"),
        ("lib/{word}", "lib/origin"),
    ],
)
def test_keys_by_pattern(pattern: str, key: str) -> None:
    assert citation_keys([PAPER], pattern) == [key]


def test_keys_that_are_taken_are_avoided_without_regard_to_case() -> None:
    assert citation_keys([PAPER], taken=["Pena2005Origin", "pena2005origina"]) == ["pena2005originb"]
    assert citation_keys([Paper("1")], "{venue}{word}") == ["anonymous"]
    own = Paper("pena2005origin", "Own", bibtex="@book{pena2005origin, title={Own}}")
    first, second = entries_of([PAPER, own])  # also those of entries that come later
    assert first.startswith("@article{pena2005origina,") and second == own.bibtex


@pytest.mark.parametrize("pattern", ["", "plain", "{author}", "{auth", "{auth:>9}", "{auth}, {year}", "{auth}\n"])
def test_a_wrong_pattern_is_an_error_with_the_names_there_are(pattern: str) -> None:
    with pytest.raises(InputError, match=r"pattern of citation keys .*\{auth\}, \{Auth\}, \{year\}"):
        citation_keys([PAPER], pattern)


def test_an_entry_of_the_author_keeps_all_but_its_key() -> None:
    entry = "@Article{ lee:97 ,\r\n  title = {Lee:97, lee:97}\r\n}"
    paper = Paper("lee:97", "Lee", bibtex=entry)
    assert bibtex_entry("lee:97", paper) == entry
    assert bibtex_entry("lee97a", paper) == entry.replace("{ lee:97", "{ lee97a", 1)
    assert bibtex_entry("k", PAPER).startswith("@article{k,\n  author = {de la Pe{\\~n}a, Jr, Ana},\n")
    with pytest.raises(InputError, match="is no citation key"):
        bibtex_entry("two words", paper)


VENUES = {
    ARTICLE: """Journal of Machine Learning Research|IEEE Transactions on Information Theory|J. Mach. Learn. Res.|
ACM Trans. Inf. Syst.|Physical Review Letters|Psychological Review|Journal of Physics: Conference Series|
Proceedings of the ACM on Human-Computer Interaction|Proceedings of the VLDB Endowment|TACL|SIGIR-FORUM|
Proc. Natl. Acad. Sci. U.S.A.|Communications of the ACM""",
    CONFERENCE: """Proceedings of the 43rd International ACM SIGIR Conference on Research and Development|
Annual Meeting of the Association for Computational Linguistics|Neural Information Processing Systems|
International Conference on Journal Mining|Workshop on Code Review|SIGIR '05|ACL 2019|CHI-EA""",
    PREPRINT: "arXiv|arXiv.org|CoRR abs/1706.03762|bioRxiv|Social Science Research Network (SSRN)",
    OTHER: "Lecture Notes in Computer Science|MIT Press|Peer Review: Practice and Policy|Neurocomputing|",
}


def test_what_a_paper_is_by_its_venue() -> None:
    for kind, venues in VENUES.items():
        for venue in venues.replace("\n", "").split("|"):
            assert kind_of(Paper("1", "T", venue=venue or None)) == kind, venue
    for paper_id, kind in (("P19-1001", CONFERENCE), ("Q18-1001", ARTICLE)):  # the id says what the venue does not
        assert kind_of(Paper("1", "T", venue="X19", external_ids={"ACL": paper_id})) == kind
