import pytest

from citerec.corpus.matching import edition_name, folded, is_preprint, same_work
from citerec.records import Paper

BERT = "BERT: Pre-training of Deep Bidirectional Transformers"
DEVLIN = ("Jacob Devlin", "Ming-Wei Chang")


def paper(title: str = BERT, year: int | None = 2019, venue: str | None = "NAACL", **more: object) -> Paper:
    return Paper(**{"paper_id": "p", "title": title, "year": year, "venue": venue, "authors": DEVLIN, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (paper(BERT.upper().replace(":", ""), 2018, "arXiv.org"), True),
        (paper(BERT.replace("Pre-training", "Pretraining"), 2018, "CoRR"), True),
        (paper(BERT, 2024), True),
        (paper(BERT, 2025), False),  # more than 5 years
        (paper(authors=("M. Chang", "J. Smith")), True),  # an author in common
        (paper(authors=("Jane Smith",)), False),
        (paper(year=2018, authors=()), False),
        (paper("BERT: Pre-trainings of Deep Bidirectional Transformer", 2018), False),  # two differences
        (paper("BERT: Pre-training the Deep Bidirectional Transformers", 2018), True),
        (paper("BERT: Pre-training of Deep Bidirectional Transformer", 2022), False),  # more than 2 years
        (paper("BERT: Pre-training of Deep Bidirectional Transformer", authors=DEVLIN[::-1]), False),
    ],
)
def test_editions_share_title_authors_and_about_the_year(other: Paper, expected: bool) -> None:
    assert same_work(paper(), other) is expected
    assert same_work(other, paper()) is expected


def test_the_published_one_comes_first_at_the_place_of_the_best() -> None:
    papers = [
        paper("Something else of interest"),
        paper(year=2018, venue="arXiv preprint arXiv:1810.04805"),
        paper("A third paper here"),
        paper(venue=None),
        paper(),
        paper("A fourth paper here"),
    ]
    assert folded(papers, 3) == [[0], [4, 3, 1], [2]]
    assert folded(papers, 10) == [[0], [4, 3, 1], [2], [5]]
    assert folded([], 3) == []


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (paper(venue="arXiv.org", year=2018), "arXiv preprint 2018"),
        (paper(venue="bioRxiv", year=None), "preprint"),
        (paper(venue=None, external_ids={"DOI": "10.48550/arXiv.1810.04805"}), "arXiv preprint 2019"),
        (paper(venue=None, external_ids={"ArXiv": "1810.04805", "DOI": "10.18653/v1/N19-1423"}), "2019"),
        (paper(), "NAACL 2019"),
    ],
)
def test_editions_are_named(record: Paper, name: str) -> None:
    assert edition_name(record) == name
    assert is_preprint(record) is ("preprint" in name)
