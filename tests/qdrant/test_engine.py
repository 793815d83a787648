"""An index on Qdrant finds what the embedded engine finds, with the same scores, under the same filters."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import models

from citerec import Context, Filters, Recipe, Recommender
from citerec.errors import FilterError, IndexUnusableError, InputError, QueryError, ServiceError
from citerec.index.build import add_to_index, encode_index, remove_papers
from citerec.index.describe import verify
from citerec.index.vectors import DenseOptions
from citerec.index.words.qdrant import KEY, Address
from citerec.records import NO_FILTERS
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.qdrant.conftest import on_qdrant
from tests.qdrant.server import Server

pytestmark = pytest.mark.slow

SENTENCE = "Two antiparallel strands wind around a common axis <REF>."
GONE = "900000001"
FILTERS = [
    NO_FILTERS,
    Filters(year_from=1990, year_to=2012),
    Filters(fields=("computer science", "Biology"), min_citations=2000),
    Filters(venues=("Nature", "Communications of the ACM", "information processing")),
    Filters(exclude=("900000041", "900000042"), as_of_year=2001),
    Filters(citing_ids=("later-3",)),
]


def contexts(count: int) -> list[Context]:
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()[::9][:count]
    years = [None, 1985, 2003, 2024]
    texts = [json.loads(line)["text"] for line in lines]
    return [
        Context(text=text, context_id=f"c{at}", citing_year=years[at % 4], cited_before=("900000007",))
        for at, text in enumerate(texts)
    ]


def found(index: Path, system: str = "hybrid") -> list[tuple[str, float]]:
    with Recommender.open(index, system) as opened:
        return [(hit.paper.paper_id, round(hit.score, 4)) for hit in opened.search(SENTENCE, 10)]


@pytest.mark.parametrize("system", ["bm25", "bm25+citances", "dense", "hybrid"])
def test_the_same_papers_are_found_with_the_same_scores(said_index: Path, elsewhere: Path, system: str) -> None:
    asked = contexts(8)
    with Recommender.open(said_index, system) as ours, Recommender.open(elsewhere, system) as theirs:
        for number, filters in enumerate(FILTERS):
            part = asked if number == 0 else asked[number : number + 2]
            expected, got = ours.search_many(part, 20, filters), theirs.search_many(part, 20, filters)
            assert sum(map(len, expected.values())) > 0
            for key, scores in expected.items():
                np.testing.assert_allclose(list(got[key].values()), list(scores.values()), rtol=1e-4, atol=1e-5)
                assert len(got[key].keys() & scores.keys()) >= len(scores) - 1  # two with nearly equal scores


def test_reasons_sentences_and_what_cannot_be_searched_are_the_same(said_index: Path, elsewhere: Path) -> None:
    context = Context(text=SENTENCE, citing_year=2020)
    with Recommender.open(said_index, "bm25+citances") as ours, Recommender.open(elsewhere, "bm25+citances") as theirs:
        expected, got = ours.search(context, 5, explain=True), theirs.search(context, 5, explain=True)
        with pytest.raises(QueryError, match="no word"):
            theirs.search("the of <REF>")
        with pytest.raises(FilterError, match="has no word"):
            theirs.search("strands <REF>", filters=Filters(venues=("of the",)))
    assert expected.hits
    assert [hit.citance and hit.citance.text for hit in got] == [hit.citance and hit.citance.text for hit in expected]
    for one, other in zip(expected, got, strict=True):
        matches = list(zip(one.matches, other.matches, strict=True))
        assert all((ours.word, ours.fields) == (theirs.word, theirs.fields) for ours, theirs in matches)
        assert all(theirs.score == pytest.approx(ours.score, rel=1e-4) for ours, theirs in matches)


@pytest.mark.parametrize("how", ["add", "remove"])
def test_what_changed_is_written_there_and_nothing_else(
    said_index: Path, server: Server, tmp_path: Path, how: str
) -> None:
    def writes() -> int:
        return sum(method == "PUT" and path.endswith("points") for method, path in server.requests)

    index = on_qdrant(said_index, f"{server.url}/demo", tmp_path / "index")
    before = writes()
    if how == "remove":
        (tmp_path / "gone.txt").write_text(f"{GONE}\n")
        remove_papers(tmp_path / "gone.txt", index)
    else:
        new = s2ag_paper(7, "Strands that wind around an axis", year=1999, venue="Nature")
        changed = s2ag_paper(900000002, "A changed title about antiparallel strands", year=2001)
        add_to_index([write_lines(tmp_path / "papers" / "new.jsonl", [new, changed])], index)
    assert writes() - before <= 2  # a batch of papers and one of sentences
    assert not verify(index)
    listed = found(index)
    assert (GONE in dict(listed)) == (how == "add")
    assert ("7" in dict(listed)) == (how == "add")
    whole = on_qdrant(index, f"{server.url}/other", tmp_path / "whole")
    # The mean length of texts is that of the first build: scores differ by little.
    assert len(dict(listed).keys() & dict(found(whole)).keys()) >= 9


def test_vectors_made_later_are_searched_there_and_new_collections_replace_the_old_ones_under_a_reader(
    demo_index: Path, hybrid_index: Path, server: Server, tmp_path: Path
) -> None:
    index = on_qdrant(demo_index, f"{server.url}/demo", tmp_path / "index")
    with Recommender.open(index, "bm25") as reader:
        before = [hit.paper.paper_id for hit in reader.search(SENTENCE, 5)]
        encode_index(index, DenseOptions("all-MiniLM-L6-v2"))
        assert [hit.paper.paper_id for hit in reader.search(SENTENCE, 5)] == before
    assert found(index, "dense") == found(hybrid_index, "dense")
    assert len(Address.parse(f"{server.url}/demo").client.get_collections().collections) == 1


def test_a_server_with_a_key_and_one_that_fails(
    hybrid_index: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key = "s3cret-key"
    monkeypatch.setenv(KEY, "wrong-key")
    with pytest.raises(ServiceError, match="refuses the key") as raised:
        on_qdrant(hybrid_index, f"{server.url}/demo", tmp_path / "index")
    assert KEY in raised.value.remedy
    assert "wrong-key" not in str(raised.value)
    monkeypatch.setenv(KEY, "s3cret-key")
    index = on_qdrant(hybrid_index, f"{server.url}/demo", tmp_path / "index")
    with Recommender.open(index, "bm25") as opened:
        assert opened.search(SENTENCE, 3).hits
        server.busy = 1
        with pytest.raises(ServiceError, match="refuses the request \\(503"):
            opened.search(SENTENCE, 3)
    assert all(b"s3cret-key" not in path.read_bytes() for path in index.rglob("*.json"))


def test_collections_of_others_and_other_papers_are_noticed(hybrid_index: Path, server: Server, tmp_path: Path) -> None:
    index = on_qdrant(hybrid_index, f"{server.url}/demo", tmp_path / "index")
    shutil.copytree(index, other := tmp_path / "other")
    remove = tmp_path / "gone.txt"
    remove.write_text(f"{GONE}\n")
    remove_papers(remove, other)
    with pytest.raises(IndexUnusableError, match="holds other papers than") as raised:
        Recommender.open(index, Recipe.load("bm25"))
    assert "--engine qdrant --url" in raised.value.remedy
    client, words = Address.parse(f"{server.url}/mine").client, {"words": models.SparseVectorParams()}
    client.create_collection("mine", vectors_config={}, sparse_vectors_config=words, metadata={})
    with pytest.raises(InputError, match="has a collection mine, which is not citerec's"):
        on_qdrant(hybrid_index, f"{server.url}/mine", tmp_path / "mine")


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost:6333/x", "http://localhost:6333", "http://user:secret@host/x", "path:x", "edge:/x/y"),
        *("ftp://h/x", "http://h/a b", "http://h:6333/x?key=secret", "path:/tmp/\0/x"),
        *("http://h:65536/x", "http://a..b:6333/x", "http://[zz]:6333/x"),
    ],
)
def test_what_is_no_address_is_said_without_it(text: str) -> None:
    with pytest.raises(InputError, match="not an address of Qdrant") as raised:
        Address.parse(text)
    assert "secret" not in str(raised.value)
