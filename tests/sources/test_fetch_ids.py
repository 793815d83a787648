"""Sets of ids, and the ids that people write."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.matching import acl_in, canonical_id, names_of
from citerec.records import Paper
from citerec.sources.fetch import Ids, loaded

IDS = st.one_of(
    st.integers(0, 10**17).map(str),
    st.integers(0, 10**10).map("W{}".format),
    st.text("0123456789aW:/.", min_size=1, max_size=8),
)


@given(st.sets(IDS), st.sets(IDS))
def test_ids_are_a_set_of_texts(tmp_path_factory: pytest.TempPathFactory, one: set[str], other: set[str]) -> None:
    first, second = Ids(one), Ids(other)
    assert len(first) == len(one) and set(first) == one
    assert list(first) == list(Ids(sorted(one, reverse=True)))
    assert set(first | second) == one | other
    assert set(first - second) == one - other
    assert all((name in first) == (name in one) for name in one | other)
    path: Path = tmp_path_factory.mktemp("ids") / "set"
    first.save(path)
    assert set(Ids.load(path)) == set(loaded(path) or ()) == one


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12", "12"),
        ("CorpusID: 12", "12"),
        ("https://openalex.org/w123", "W123"),
        ("DOI:10.1145/ABC", "doi:10.1145/abc"),
        (" https://doi.org/10.1145/abc ", "doi:10.1145/abc"),
        ("10.1145/abc", "doi:10.1145/abc"),
        ("arXiv:1706.03762v5", "arxiv:1706.03762"),
        ("https://arxiv.org/abs/hep-th/9901001", "arxiv:hep-th/9901001"),
        ("10.48550/arXiv.1706.03762", "arxiv:1706.03762"),
        ("ACL:P19-1001", "acl:p19-1001"),
        ("https://aclanthology.org/2020.acl-main.1/", "acl:2020.acl-main.1"),
    ],
)
def test_ids_as_people_write_them(written: str, meant: str) -> None:
    assert canonical_id(written) == meant


def test_ids_in_addresses_and_of_a_paper() -> None:
    assert acl_in("https://www.aclweb.org/anthology/P/P19/P19-1001") == "P19-1001"
    assert acl_in("http://aclweb.org/anthology/2021.naacl-main.5v2.pdf") == "2021.naacl-main.5"
    assert acl_in("https://example.org/N19-1423") == acl_in("https://aclanthology.org/venues/acl/") == ""
    paper = Paper("7", external_ids={"DOI": "10.1/X", "ArXiv": "1706.03762", "ACL": "P19-1001", "MAG": "3"})
    assert names_of(paper) == {"7", "doi:10.1/x", "arxiv:1706.03762", "acl:p19-1001"}
