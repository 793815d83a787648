import pytest

from citerec.corpus.kinds import kind_of
from citerec.records import Paper


@pytest.mark.parametrize(
    ("venue", "kind"),
    [
        ("Journal of Machine Learning Research", "article"),
        ("IEEE Transactions on Information Theory", "article"),
        ("J. Mach. Learn. Res.", "article"),
        ("ACM Trans. Inf. Syst.", "article"),
        ("Physical Review Letters", "article"),
        ("Psychological Review", "article"),
        ("Journal of Physics: Conference Series", "article"),
        ("Proceedings of the ACM on Human-Computer Interaction", "article"),
        ("Proceedings of the VLDB Endowment", "article"),
        ("Proc. Natl. Acad. Sci. U.S.A.", "article"),
        ("Communications of the ACM", "article"),
        ("TACL", "article"),
        ("SIGIR-FORUM", "article"),
        ("Proceedings of the 43rd International ACM SIGIR Conference on Research and Development", "conference"),
        ("Annual Meeting of the Association for Computational Linguistics", "conference"),
        ("Neural Information Processing Systems", "conference"),
        ("International Conference on Journal Mining", "conference"),
        ("Workshop on Code Review", "conference"),
        ("SIGIR '05", "conference"),
        ("ACL 2019", "conference"),
        ("CHI-EA", "conference"),
        ("arXiv", "preprint"),
        ("arXiv.org", "preprint"),
        ("CoRR abs/1706.03762", "preprint"),
        ("bioRxiv", "preprint"),
        ("Social Science Research Network (SSRN)", "preprint"),
        ("Lecture Notes in Computer Science", "other"),
        ("MIT Press", "other"),
        ("Peer Review: Practice and Policy", "other"),
        ("Neurocomputing", "other"),
        (None, "other"),
    ],
)
def test_what_a_paper_is_by_its_venue(venue: str | None, kind: str) -> None:
    assert kind_of(Paper("1", "T", venue=venue)).name == kind


def test_what_ids_say_where_the_venue_does_not() -> None:
    assert kind_of(Paper("1", "T", external_ids={"ArXiv": "1706.03762"})).name == "preprint"
    assert kind_of(Paper("1", "T", venue="SIGIR", external_ids={"ArXiv": "1706.03762"})).name == "conference"
    assert kind_of(Paper("1", "T", venue="P19", external_ids={"ACL": "P19-1001"})).name == "conference"
    assert kind_of(Paper("1", "T", venue="Q18", external_ids={"ACL": "Q18-1001"})).name == "article"
    assert kind_of(Paper("1", "T", venue="2021.cl", external_ids={"ACL": "2021.cl-1.2"})).name == "article"
