import pytest

from citerec.corpus.citation_keys import kind_of
from citerec.records import Paper

VENUES = {
    "article": """Journal of Machine Learning Research|IEEE Transactions on Information Theory|J. Mach. Learn. Res.|
ACM Trans. Inf. Syst.|Physical Review Letters|Psychological Review|Journal of Physics: Conference Series|
Proceedings of the ACM on Human-Computer Interaction|Proceedings of the VLDB Endowment|TACL|SIGIR-FORUM|
Proc. Natl. Acad. Sci. U.S.A.|Communications of the ACM""",
    "conference": """Proceedings of the 43rd International ACM SIGIR Conference on Research and Development|
Annual Meeting of the Association for Computational Linguistics|Neural Information Processing Systems|
International Conference on Journal Mining|Workshop on Code Review|SIGIR '05|ACL 2019|CHI-EA""",
    "preprint": "arXiv|arXiv.org|CoRR abs/1706.03762|bioRxiv|Social Science Research Network (SSRN)",
    "other": "Lecture Notes in Computer Science|MIT Press|Peer Review: Practice and Policy|Neurocomputing|",
}


@pytest.mark.parametrize("kind", VENUES)
def test_what_a_paper_is_by_its_venue(kind: str) -> None:
    for venue in VENUES[kind].replace("\n", "").split("|"):
        assert kind_of(Paper("1", "T", venue=venue or None)).name == kind, venue


@pytest.mark.parametrize(
    ("venue", "ids", "kind"),
    [
        (None, {"ArXiv": "1706.03762"}, "preprint"),
        ("SIGIR", {"ArXiv": "1706.03762"}, "conference"),
        ("P19", {"ACL": "P19-1001"}, "conference"),
        ("Q18", {"ACL": "Q18-1001"}, "article"),
        ("2021.cl", {"ACL": "2021.cl-1.2"}, "article"),
    ],
)
def test_what_ids_say_where_the_venue_does_not(venue: str | None, ids: dict[str, str], kind: str) -> None:
    assert kind_of(Paper("1", "T", venue=venue, external_ids=ids)).name == kind
