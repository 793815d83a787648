"""What every paper store does, whatever database stands behind it."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from citerec.corpus import ingest as ingest_module
from citerec.corpus.base import Shard, find_shards
from citerec.corpus.ingest import ingest, write_quarantine
from citerec.corpus.store import (
    Change,
    Counts,
    PaperStore,
    ShardCounts,
    SqliteStore,
    changes_of,
    open_store,
)
from citerec.diagnostics.families import census_of
from citerec.errors import BuildError
from citerec.index.describe import histogram
from citerec.records import Citation, Deletion, Paper, PaperText, Record
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.mongo.conftest import NewStore

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


def nothing(*_: object) -> None:
    pass


def run(store: PaperStore, shards: list[Shard], **options: Any) -> None:
    arguments = {"first": 1, "max_bad": 0.05, "workers": 1, "on_progress": nothing, **options}
    ingest(shards, store, **arguments)


def test_a_paper_comes_back_as_it_went_in(store: PaperStore) -> None:
    fill(store, FULL, BARE)
    assert store.papers(["p1", "nobody", "p2"]) == {"p1": FULL, "p2": BARE}
    assert store.years(["p1", "p2", "nobody"]) == {"p1": 1999, "p2": None}
    assert list(store.all_papers()) == [FULL, BARE]
    assert store.papers([]) == {}
    assert store.years([]) == {}


def test_more_ids_than_one_query_takes(store: PaperStore) -> None:
    ids = [f"n{number}" for number in range(2500)]
    fill(store, *(Paper(paper_id, title="t", year=number) for number, paper_id in enumerate(ids)))
    assert list(store.years(reversed(ids)).values()).count(None) == 0
    assert set(store.papers(iter(ids))) == set(ids)
    assert [text.paper_id for text in store.all_papers()] == sorted(ids)


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
    paper = store.papers(["p"])["p"]
    assert (paper.title, paper.year, paper.abstract, paper.tldr) == ("b", ord("b"), "abstract b", "tldr b")
    assert store.citances("p", "q") == ("context b",)
    assert store.counts().papers == store.counts().citances == 1


def test_a_later_paper_without_abstract_keeps_the_earlier_one(store: PaperStore) -> None:
    fill(store, PaperText("abstracts", "p", "kept"), Paper("p", title="t"))
    assert store.papers(["p"])["p"].abstract == "kept"
    fill(store, PaperText("abstracts", "p", None))
    assert store.papers(["p"])["p"].abstract is None


ODD_IDS = [*"zéZ😀ﬀ中a9", "0123456789abcdef01234567", "10", 'a"b', "a'b", "a\\b", "a%b", "a!b", "$a", "a.b"]


def test_ids_order_by_their_bytes(store: PaperStore) -> None:
    expected = sorted(ODD_IDS, key=str.encode)
    fill(store, *(Paper(paper_id, title="t") for paper_id in ODD_IDS))
    fill(store, *(Citation("a", paper_id, ("s",)) for paper_id in ODD_IDS))
    assert [text.paper_id for text in store.all_papers()] == expected
    assert [citance.cited.paper_id for citance in store.searchable_citances()] == expected
    some = expected[::2]
    assert [text.paper_id for text in store.all_papers(some)] == some
    assert [citance.cited.paper_id for citance in store.searchable_citances(some)] == some
    assert set(store.papers(ODD_IDS)) == set(ODD_IDS)


def test_what_lucene_gets(store: PaperStore) -> None:
    fill(store, FULL, BARE, PaperText("abstracts", "unknown", "of nobody"))
    first, second = store.all_papers()
    assert (first, second) == (FULL, BARE)


def test_a_deletion_counts_for_what_was_there_before_it(store: PaperStore) -> None:
    fill(store, FULL, BARE, Citation("x", "p1", ("a",), citation_id="1"), Citation("y", "p1", ("b",), citation_id="2"))
    fill(
        store,
        Deletion("citations", "1"),
        Deletion("papers", "p1"),
        Deletion("tldrs", "p1"),
        Deletion("papers", "p2"),
        Deletion("papers", "nobody"),
        Paper("p2", title="Again"),
    )
    assert store.papers(["p1", "p2"]) == {"p2": Paper("p2", title="Again")}
    assert store.citances("p1", "x") == ()
    assert store.citances("p1", "y") == ("b",)
    assert store.counts() == Counts(1, 0, 0, 0, 0, 0, unmatched=2)
    fill(store, Paper("p1", title="back"))
    assert store.papers(["p1"])["p1"] == Paper("p1", title="back", abstract="An abstract.")


def test_citances_in_order_with_positions(store: PaperStore) -> None:
    fill(
        store,
        Paper("cited", title="t", year=1990, venue="V", citation_count=3, fields_of_study=("Art",)),
        Paper("q1", title="q", year=2001),
        Citation("q2", "cited", ("two",), citation_id="1"),
        Citation("q1", "cited", ("c", "d"), citation_id="2"),
        Citation("q1", "cited", ("a", "b"), (("background",), ()), True, citation_id="1"),
        Citation("q1", "unknown", ("lost",)),
        Citation("q1", None, ("lost",)),
        Citation("q1", "cited", (), citation_id="3"),
    )
    found = list(store.searchable_citances())
    assert [(citance.citing_id, citance.citing_year, citance.position, citance.text) for citance in found] == [
        ("q1", 2001, 0, "a"),
        ("q1", 2001, 1, "b"),
        ("q1", 2001, 2, "c"),
        ("q1", 2001, 3, "d"),
        ("q2", None, 0, "two"),
    ]
    (cited,) = {citance.cited for citance in found}
    assert cited == Paper("cited", title="t", year=1990, venue="V", citation_count=3, fields_of_study=("Art",))
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


def test_papers_are_looked_up_by_identifier_and_title(new_store: NewStore, tmp_path: Path) -> None:
    papers = [
        Paper("1", title="Ranking, Again", external_ids={"DOI": "https://doi.org/10.1/AB"}),
        Paper("2", title="ranking again", abstract="a", external_ids={"ArXiv": "1706.03762v5"}),
        Paper("3", external_ids={"DOI": "10.48550/arXiv.1801.00007", "ACL": "P05-1007", "PubMed": "10.1/ab"}),
    ]
    asked = [
        "doi:10.1/ab",
        "title:rankingagain",
        "arxiv:1706.03762",
        "arxiv:1801.00007",
        "acl:p05-1007",
        "doi:10.1",
        "title:",
    ]
    store = new_store()
    fill(store, *papers)
    if isinstance(store, SqliteStore):
        store = finished(tmp_path, papers)
    found = store.named(asked)
    assert {name: [paper.paper_id for paper in having] for name, having in found.items()} == {
        "doi:10.1/ab": ["1"], "title:rankingagain": ["1", "2"], "arxiv:1706.03762": ["2"],
        "arxiv:1801.00007": ["3"], "acl:p05-1007": ["3"],
    }  # fmt: skip
    assert found["arxiv:1706.03762"][0].abstract is None


def finished(folder: Path, papers: Sequence[Paper]) -> SqliteStore:
    """A finished copy of a store: the first paper had another title there, and the last one is new."""
    store = SqliteStore(folder / "before")
    fill(store, replace(papers[0], title="Other"), papers[1])
    store.finish()
    shutil.copyfile(folder / "before", folder / "after")
    after = SqliteStore(folder / "after")
    after.write([*changes_of(papers), Change("quarantine", [(2, 1, "r", "{")])])
    after.finish()
    return SqliteStore(folder / "after", read_only=True)


def test_the_year_of_a_citing_paper_is_its_own_or_else_the_latest_given(store: PaperStore) -> None:
    fill(
        store,
        Paper("cited", title="t"),
        Paper("q", title="q", year=2001),
        Citation("q", "cited", ("a",), citation_id="1", citing_year=2009),
        Citation("r", "cited", ("b",), citation_id="2", citing_year=2003),
        Citation("r", "cited", ("c",), citation_id="3", citing_year=2005),
        Citation("s", "cited", (), citation_id="4"),
    )
    years = [(one.citing_id, one.citing_year) for one in store.searchable_citances()]
    assert years == [("q", 2001), ("r", 2005), ("r", 2005)]


def test_counts(store: PaperStore) -> None:
    assert store.counts() == Counts(0, 0, 0, 0, 0, 0, 0)
    fill(
        store,
        FULL,
        BARE,
        PaperText("abstracts", "p2", None),
        PaperText("abstracts", "nobody", None),
        PaperText("abstracts", "someone", "text"),
        PaperText("tldrs", "nobody", "text"),
        Citation("x", "p1", ("a", "b")),
        Citation("y", "p1", ("c",)),
        Citation("x", "p2", ("d",)),
        Citation("x", "nobody", ("e", "f")),
    )
    assert store.counts() == Counts(
        papers=2, with_abstract=1, with_tldr=1, with_year=1, citances=4, with_citances=2, unmatched=4
    )


def test_census_and_histograms_in_order(store: PaperStore) -> None:
    papers = [
        Paper("1", title="t", year=2000, citation_count=1, fields_of_study=("Art", "Law"), venue="B"),
        Paper("2", title="t", year=2000, citation_count=1, fields_of_study=("Art",), venue="é/1"),
        Paper("3", title="t", year=2000, citation_count=10, fields_of_study=("Art",), venue="A"),
        Paper("4", title="t", year=2000, citation_count=2, fields_of_study=("Art",), venue="é/1"),
        Paper("5", title="t", year=999, fields_of_study=("Art/History", "Law")),
        Paper("6", title="t"),
        Paper("7", title="t", citation_count=0),
    ]
    fill(store, *papers)
    assert census_of(store) == {
        (None, None, None): 1,
        (None, None, 0): 1,
        ("Art", 2000, 1): 2,
        ("Art", 2000, 2): 1,
        ("Art", 2000, 10): 1,
        ("Art/History", 999, None): 1,
    }
    assert list(histogram(store, "year").items()) == [(999, 1), (2000, 4)]
    assert list(histogram(store, "venue").items()) == [("é/1", 2), ("A", 1), ("B", 1)]
    assert list(histogram(store, "fields_of_study").items()) == [("Art", 4), ("Law", 2), ("Art/History", 1)]


def test_fingerprint_tells_contents_and_not_how_they_came(new_store: NewStore) -> None:
    records: list[Record] = [
        FULL,
        BARE,
        Citation("x", "p1", ("a", "é"), (("method",), ()), True, "7"),
        PaperText("tldrs", "x", None),
    ]
    first, second, other = new_store(), new_store(), new_store()
    fill(first, *records)
    for record in reversed(records):
        fill(second, record)
    fill(other, *records[:-1], PaperText("tldrs", "x", "text"))
    with_sqlite = SqliteStore(Path(":memory:"))
    fill(with_sqlite, *records)
    assert first.fingerprint() == second.fingerprint() == with_sqlite.fingerprint()
    assert other.fingerprint() != first.fingerprint()
    with_sqlite.close()


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
records = (
    papers
    | citations
    | st.builds(PaperText, st.just("abstracts"), ids, st.none() | texts)
    | st.builds(PaperText, st.just("tldrs"), ids, st.none() | texts)
    | deletions
)
batches = st.lists(st.lists(records, max_size=8), max_size=4)


@settings(max_examples=30)
@given(batches=batches, some=st.sets(ids))
def test_mongodb_gives_what_sqlite_gives(nx_server: str, batches: Any, some: set[str]) -> None:
    from tests.mongo.conftest import _database, _name

    database = _database(f"{nx_server}/{_name()}")
    mongodb, sqlite = open_store(next(database)), SqliteStore(Path(":memory:"))
    try:
        for store in (mongodb, sqlite):
            for batch in batches:
                fill(store, *batch)
        assert mongodb.fingerprint() == sqlite.fingerprint()
        assert mongodb.counts() == sqlite.counts()
        assert list(mongodb.all_papers(sorted(some))) == list(sqlite.all_papers(sorted(some)))
        assert list(mongodb.searchable_citances(sorted(some))) == list(sqlite.searchable_citances(sorted(some)))
        assert list(mongodb.searchable_citances()) == list(sqlite.searchable_citances())
        assert census_of(mongodb) == census_of(sqlite)
        for attribute in ("year", "venue", "fields_of_study"):
            histograms = [list(histogram(store, attribute).items()) for store in (mongodb, sqlite)]
            assert histograms[0] == histograms[1]
        every = [text.paper_id for text in sqlite.all_papers()]
        assert mongodb.papers(every) == sqlite.papers(every)
    finally:
        mongodb.close()
        sqlite.close()
        next(database, None)


def test_shards_in_order(store: PaperStore) -> None:
    counts = ShardCounts("a.jsonl", "jsonl", 10, 3, 1, 0)
    assert store.shards() == {}
    store.finish_shard(2, counts)
    store.finish_shard(1, replace(counts, path="b.jsonl"))
    assert list(store.shards().items()) == [(1, replace(counts, path="b.jsonl")), (2, counts)]


def test_quarantine_in_order(store: PaperStore) -> None:
    assert list(store.quarantine()) == []
    for number, path in ((1, "a"), (2, "b")):
        store.finish_shard(number, ShardCounts(path, "jsonl", 10))
    store.write([Change("quarantine", [(2, 1, "r", "{"), (3, 1, "half read", "{")])])
    store.write([Change("quarantine", [(1, 10, "ten", "x\x00y"), (1, 9, "nine", "é")])])
    store.write([Change("quarantine", [(1, 10, "again", "x")])])
    found = [tuple(line.values()) for line in store.quarantine()]
    assert found == [("a", 9, "nine", "é"), ("a", 10, "again", "x"), ("b", 1, "r", "{")]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    papers = [s2ag_paper(number, f"title {number}", year=2000 + number % 9) for number in range(700)]
    write_lines(folder / "papers" / "0.jsonl", papers[:400])
    write_lines(folder / "papers" / "1.gz", [*papers[300:], s2ag_paper(5, "later")], compress=True)
    abstracts = [{"corpusid": number, "abstract": f"abstract {number}"} for number in range(0, 700, 2)]
    write_lines(folder / "abstracts" / "0.jsonl", [*abstracts, {"corpusid": None}])
    cited = [
        {"citationid": n, "citingcorpusid": n, "citedcorpusid": n % 50, "contexts": [f"s {n}"], "intents": [["method"]]}
        for n in range(600)
    ]
    write_lines(folder / "citations" / "0.jsonl", cited)
    return folder


def test_ingest_of_a_release(store: PaperStore, release: Path, tmp_path: Path) -> None:
    run(store, find_shards([release]))
    assert store.counts() == Counts(700, 350, 0, 699, 600, 50, 0)
    assert store.papers(["5"])["5"].title == "later"
    assert [counts.read for counts in store.shards().values()] == [400, 401, 350, 600]
    assert write_quarantine(store, tmp_path / "quarantine.jsonl") == 1
    assert '"line":351,"reason":"corpusid is missing"' in (tmp_path / "quarantine.jsonl").read_text()


def test_two_processes_make_the_same_store(new_store: NewStore, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = new_store(), new_store()
    run(alone, find_shards([release]))
    monkeypatch.setattr(ingest_module, "_SMALL_BYTES", 0)
    run(together, find_shards([release]), workers=2)
    assert together.fingerprint() == alone.fingerprint()
    assert together.counts() == alone.counts()
    assert together.shards() == alone.shards()
    assert list(together.quarantine()) == list(alone.quarantine())


def test_ingest_goes_on_after_the_last_finished_shard(
    new_store: NewStore, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StoppedError(Exception):
        pass

    def stop(_doing: str, done: float, whole: float) -> None:
        if done > whole / 2:
            raise StoppedError

    whole, store, shards = new_store(), new_store(), find_shards([release])
    run(whole, shards)
    monkeypatch.setattr(ingest_module, "_BATCH", 100)
    with pytest.raises(StoppedError):
        run(store, shards, on_progress=stop)
    done = store.shards()
    assert 0 < len(done) < len(shards)
    read: list[Path] = []
    batches_of = ingest_module.batches_of
    monkeypatch.setattr(ingest_module, "batches_of", lambda task: (read.append(task[1].path), batches_of(task))[1])
    run(store, shards)
    assert read == [shard.path for shard in shards[len(done) :]]
    assert store.fingerprint() == whole.fingerprint()
    assert store.shards() == whole.shards()


def test_a_corpus_that_is_mostly_bad_is_refused(store: PaperStore, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.jsonl", [{"paper_id": "a", "title": "t"}, {"no": "id"}])
    with pytest.raises(BuildError, match=r"1 of 2 records are bad.*line 2: paper_id is missing"):
        run(store, [Shard(path, "jsonl")], max_bad=0)


def test_the_demo_is_the_same_everywhere(store: PaperStore) -> None:
    sqlite = SqliteStore(Path(":memory:"))
    for each in (store, sqlite):
        run(each, find_shards([DEMO]))
    assert store.fingerprint() == sqlite.fingerprint()
    assert census_of(store) == census_of(sqlite)
    assert store.integrity_faults() == []
    sqlite.close()


def test_a_finished_store_opens_again(where: Callable[[], str | Path]) -> None:
    address = where()
    store = open_store(address)
    fill(store, FULL)
    store.finish()
    again = open_store(address)
    assert again.papers(["p1"]) == {"p1": FULL}
    again.close()


def test_counts_of_a_shard_are_plain_numbers(store: PaperStore) -> None:
    store.finish_shard(1, ShardCounts("a", "jsonl", 2**40, 2, 3, 4, 5))
    assert asdict(store.shards()[1]) == {
        "path": "a",
        "format": "jsonl",
        "bytes": 2**40,
        "read": 2,
        "bad": 3,
        "without_context": 4,
        "papers": 5,
    }
