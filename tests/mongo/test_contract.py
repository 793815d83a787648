"""What every paper store does, whatever database stands behind it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from citerec.corpus.base import Shard
from citerec.corpus.ingest import write_quarantine
from citerec.corpus.store import Counts, PaperStore, SqliteStore, changes_of, open_store
from citerec.diagnostics.families import census_of
from citerec.errors import BuildError
from citerec.index.describe import histogram
from citerec.records import Citation, Deletion, Paper, PaperText, Record
from tests.mongo.conftest import NewStore, facts_of, ingested, new_database

FULL = Paper(
    paper_id="p1",
    title="Größe and “quotes” \u2028 😀",
    abstract="An abstract.",
    tldr="In short.",
    year=1999,
    venue="SIGIR",
    authors=("Ada Lovelace", "Ünal Çelik"),
    fields_of_study=("Computer Science", "Art"),
    citation_count=7,
    external_ids={"DOI": "10.1/x", "odd.$name": "y", "": "z"},
    bibtex="@misc{p1,\n title={\\'E}}",
    origins={"title": "s2ag", "year": "openalex"},
)
BARE = Paper(paper_id="p2", title="Bare")


def fill(store: PaperStore, *records: Record) -> None:
    store.write(changes_of(records))


def test_a_finished_store_gives_papers_as_they_went_in(where: Callable[[], str | Path]) -> None:
    store = open_store(address := where())
    fill(store, FULL, BARE, PaperText("abstracts", "p2", None), PaperText("abstracts", "unknown", "of nobody"))
    store.finish()
    store = open_store(address)
    assert store.papers(["p1", "nobody", "p2"]) == {"p1": FULL, "p2": BARE}
    assert store.years(["p1", "p2", "nobody"]) == {"p1": 1999, "p2": None}
    assert list(store.all_papers()) == [FULL, BARE]
    assert store.papers([]) == store.years([]) == {}
    counts = {"with_abstract": 1, "with_tldr": 1, "with_year": 1, "citances": 0, "with_citances": 0, "unmatched": 1}
    assert store.counts() == Counts(2, **counts)
    assert store.integrity_faults() == []
    store.close()


@pytest.mark.parametrize("apart", [True, False], ids=["two batches", "one batch"])
def test_the_later_one_wins(store: PaperStore, apart: bool) -> None:
    records = [
        record
        for name in "ab"
        for record in (
            Paper("p", title=name, year=ord(name)),
            PaperText("abstracts", "p", f"abstract {name}"),
            PaperText("tldrs", "p", f"tldr {name}"),
            Citation("q", "p", (f"context {name}",), ((name,),), name == "b", "c"),
        )
    ]
    for batch in (records[:4], records[4:]) if apart else (records,):
        fill(store, *batch)
    last = Paper("p", title="b", year=ord("b"), abstract="abstract b", tldr="tldr b")
    assert store.papers(["p"]) == {"p": last}
    assert store.citances("p", "q") == ("context b",)
    assert store.counts().papers == store.counts().citances == 1
    fill(store, Paper("p", title="without texts"), PaperText("tldrs", "p", None))
    assert store.papers(["p"])["p"] == Paper("p", title="without texts", abstract="abstract b")


IDS = [*"zéZ😀ﬀ中a9", "0123456789abcdef01234567", "10", 'a"b', "a'b", "a\\b", "a%b", "a!b", "$a", "a.b"]
IDS += [f"n{number}" for number in range(2500)]  # more than one query takes


def test_ids_order_by_their_bytes(store: PaperStore) -> None:
    expected = sorted(IDS, key=str.encode)
    fill(store, *(Paper(paper_id, title="t", year=2000) for paper_id in IDS))
    fill(store, *(Citation("a", paper_id, ("s",)) for paper_id in IDS))
    assert [text.paper_id for text in store.all_papers()] == expected
    assert [citance.cited.paper_id for citance in store.searchable_citances()] == expected
    some = expected[::2]
    assert [text.paper_id for text in store.all_papers(some)] == some
    assert [citance.cited.paper_id for citance in store.searchable_citances(some)] == some
    assert set(store.papers(iter(IDS))) == set(IDS)
    assert store.years(reversed(IDS)) == dict.fromkeys(IDS, 2000)


def test_a_deletion_counts_for_what_was_there_before_it(store: PaperStore) -> None:
    fill(store, FULL, BARE, Citation("x", "p1", ("a",), citation_id="1"), Citation("y", "p1", ("b",), citation_id="2"))
    gone = [("citations", "1"), ("papers", "p1"), ("tldrs", "p1"), ("papers", "p2"), ("papers", "nobody")]
    fill(store, *(Deletion(what, key) for what, key in gone), Paper("p2", title="Again"))
    assert store.papers(["p1", "p2"]) == {"p2": Paper("p2", title="Again")}
    assert store.citances("p1", "x") == ()
    assert store.citances("p1", "y") == ("b",)
    assert store.counts() == Counts(1, 0, 0, 0, 0, 0, unmatched=2)
    fill(store, Paper("p1", title="back"))
    assert store.papers(["p1"])["p1"] == Paper("p1", title="back", abstract="An abstract.")


def test_citances_in_order_with_positions_and_the_years_of_citing_papers(store: PaperStore) -> None:
    cited = Paper("cited", title="t", year=1990, venue="V", citation_count=3, fields_of_study=("Art",))
    said: list[tuple[str, str | None, tuple[str, ...], str, int | None]] = [
        ("q2", "cited", ("two",), "1", 2003),
        ("q2", "cited", ("three",), "2", 2005),
        ("q1", "cited", ("c", "d"), "2", 2009),
        ("q1", "cited", ("a", "b"), "1", None),
        ("q1", "unknown", ("lost",), "", None),
        ("q1", None, ("lost",), "", None),
        ("q1", "cited", (), "3", None),
        ("q3", "cited", ("four",), "", None),
    ]
    citations = [
        Citation(one, other, texts, citation_id=key, citing_year=year) for one, other, texts, key, year in said
    ]
    fill(store, cited, Paper("q1", title="q", year=2001), *citations)
    found = list(store.searchable_citances())
    assert [(one.citing_id, one.citing_year, one.position) for one in found] == [
        *(("q1", 2001, position) for position in range(4)),
        *(("q2", 2005, position) for position in range(2)),
        ("q3", None, 0),
    ]
    assert [one.text for one in found] == ["a", "b", "c", "d", "two", "three", "four"]
    assert {citance.cited for citance in found} == {cited}
    assert store.citances("cited", "q1") == ("a", "b", "c", "d")
    assert store.citances("cited", "q") == store.citances("nobody", "q1") == ()


def test_papers_are_found_by_surname_and_identifier(store: PaperStore) -> None:
    fill(store, FULL, BARE, Paper("p3", authors=("Lovelace",), citation_count=9, external_ids={"DOI": "10.1/A_b"}))
    assert store.ids_called(["lovelace"], 10) == ["p3", "p1"]
    assert store.ids_called(["lovelace"], 1) == ["p3"]
    assert store.ids_called(["10.1/X", "nobody"], 10) == ["p1"]
    assert store.ids_called(["10.1/a_B"], 10) == ["p3"]
    for nobody in ("ada", "ovelace", "10.1", "l%", "10.1/a.b", "10.1/aXb", "DOI", '"', ""):
        assert store.ids_called([nobody], 10) == [], nobody
    assert store.ids_called([], 10) == []


def test_papers_are_looked_up_by_identifier_and_title(where: Callable[[], str | Path]) -> None:
    papers = [
        Paper("1", title="Ranking, Again", external_ids={"DOI": "https://doi.org/10.1/AB"}),
        Paper("2", title="ranking again", abstract="a", external_ids={"ArXiv": "1706.03762v5"}),
        Paper("3", external_ids={"DOI": "10.48550/arXiv.1801.00007", "ACL": "P05-1007", "PubMed": "10.1/ab"}),
    ]
    address = where()
    for some in ([replace(papers[0], title="Other"), papers[1]], papers):  # a name that changed, and a new paper
        store = open_store(address)
        fill(store, *some)
        store.finish()
    store = open_store(address)
    expected = {
        "doi:10.1/ab": ["1"],
        "title:rankingagain": ["1", "2"],
        "arxiv:1706.03762": ["2"],
        "arxiv:1801.00007": ["3"],
        "acl:p05-1007": ["3"],
    }
    found = store.named([*expected, "doi:10.1", "title:other", "title:"])
    assert {name: [paper.paper_id for paper in having] for name, having in found.items()} == expected
    assert found["arxiv:1706.03762"][0].abstract is None
    store.close()


ids = st.text(st.sampled_from("aAz0é中😀!~"), min_size=1, max_size=3)
# nx-27017 cuts a text at NUL where it groups by it.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
papers = st.builds(
    Paper,
    paper_id=ids,
    title=texts,
    abstract=st.none() | texts,
    year=st.none() | st.integers(0, 9999),
    venue=st.none() | texts,
    authors=st.lists(texts, max_size=2).map(tuple),
    fields_of_study=st.lists(st.sampled_from(["Art", "Law"]), unique=True).map(tuple),
    citation_count=st.none() | st.integers(0, 2**31 - 1),
    external_ids=st.dictionaries(texts, texts, max_size=2),
    bibtex=st.none() | texts,
    origins=st.dictionaries(texts, texts, max_size=2),
)
citations = st.builds(
    Citation,
    citing_id=ids,
    cited_id=st.none() | ids,
    contexts=st.lists(texts, max_size=2).map(tuple),
    intents=st.lists(st.lists(texts, max_size=2).map(tuple), max_size=2).map(tuple),
    influential=st.booleans(),
    citation_id=ids | st.just(""),
)
deletions = st.builds(Deletion, st.sampled_from(["papers", "abstracts", "tldrs", "citations"]), ids)
records = papers | citations | st.builds(PaperText, st.sampled_from(["abstracts", "tldrs"]), ids, st.none() | texts)
batches = st.lists(st.lists(records | deletions, max_size=8), max_size=4)


@settings(max_examples=30)
@given(batches=batches, some=st.sets(ids))
def test_mongodb_gives_what_sqlite_gives(nx_server: str, batches: Any, some: set[str]) -> None:
    with new_database(nx_server) as address:
        mongodb, sqlite = open_store(address), SqliteStore(Path(":memory:"))
        for store in (mongodb, sqlite):
            for batch in batches:
                fill(store, *batch)
        for read in (
            lambda store: (*facts_of(store), census_of(store)),
            lambda store: list(store.all_papers(sorted(some))),
            lambda store: list(store.searchable_citances(sorted(some))),
            lambda store: list(store.searchable_citances()),
            lambda store: [list(histogram(store, name).items()) for name in ("year", "venue", "fields_of_study")],
            lambda store: store.papers(paper.paper_id for paper in sqlite.all_papers()),
        ):
            assert read(mongodb) == read(sqlite)
        mongodb.close()
        sqlite.close()


def test_ingest_by_one_process_or_two(new_store: NewStore, release: list[Shard], tmp_path: Path) -> None:
    alone, together = ingested(new_store(), release), ingested(new_store(), release, workers=2)
    assert alone.counts() == Counts(700, 350, 0, 699, 600, 50, 0)
    assert alone.papers(["5"])["5"].title == "later"
    assert [counts.read for counts in alone.shards().values()] == [400, 401, 350, 600]
    assert write_quarantine(alone, tmp_path / "quarantine.jsonl") == 1
    assert '"line":351,"reason":"corpusid is missing"' in (tmp_path / "quarantine.jsonl").read_text()
    assert facts_of(together) == facts_of(alone)
    with pytest.raises(BuildError, match=r"1 of 1,152 records are bad.*line 351: corpusid is missing"):
        ingested(new_store(), release, max_bad=0)


def test_ingest_goes_on_after_the_last_finished_shard(new_store: NewStore, release: list[Shard]) -> None:
    def stop(_doing: str, done: float, whole: float) -> None:
        if done == whole:  # the last shard is written, and not yet noted as finished
            raise KeyboardInterrupt

    whole, store = ingested(new_store(), release), new_store()
    with pytest.raises(KeyboardInterrupt):
        ingested(store, release, on_progress=stop)
    assert len(store.shards()) == len(release) - 1
    for shard in release[:-1]:  # reading them again would fail
        shard.path.write_bytes(b"\0" * shard.path.stat().st_size)
    steps: list[float] = []
    ingested(store, release, on_progress=lambda _doing, done, whole: steps.append(done / whole))
    assert set(steps) == {1}  # the last shard has one batch
    assert facts_of(store) == facts_of(whole)
    with pytest.raises(BuildError, match="1 of 1,752 records are bad"):  # of shards that were read before too
        ingested(store, release, max_bad=0)
