"""What every paper store does, whatever database stands behind it."""

import itertools
import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citerec.corpus import ingest as ingest_module
from citerec.corpus.documents import Documents
from citerec.corpus.ingest import ingest, write_quarantine
from citerec.corpus.json_lines import BadRecord
from citerec.corpus.ledger import Quarantined, ShardCounts, ledger_of
from citerec.corpus.sources import Shard, find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import (
    CensusRow,
    Counts,
    NumberedRecord,
    PaperFacts,
    PaperStore,
    place_of,
)
from citerec.corpus.stores import open_store
from citerec.diagnostics.build.documents import COLLECTIONS
from citerec.errors import BuildError
from citerec.records import Abstract, Citation, Deletion, Paper, Record, Tldr
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.mongo.conftest import NewStore, kept_by

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


def fill(store: PaperStore, *records: Record | tuple[int, Record], start: int = 1) -> None:
    numbered = [
        NumberedRecord(*record) if isinstance(record, tuple) else NumberedRecord(place, record)
        for place, record in enumerate(records, start)
    ]
    store.write(store.encode(numbered))


def nothing(*_: object) -> None:
    pass


def run(store: PaperStore, shards: list[Shard], **options: Any) -> None:
    arguments = {"first": 1, "max_bad": 0.05, "workers": 1, "on_progress": nothing, **options}
    ingest(shards, store, **arguments)


def test_a_paper_comes_back_as_it_went_in(store: PaperStore) -> None:
    fill(store, FULL, BARE)
    assert store.papers(["p1", "nobody", "p2"]) == {"p1": FULL, "p2": BARE}
    assert store.years(["p1", "p2", "nobody"]) == {"p1": 1999, "p2": None}
    assert list(store.facts()) == [
        PaperFacts("p1", FULL.title, 1999, "SIGIR", ["Ada Lovelace", "Ünal Çelik"], 7),
        PaperFacts("p2", "Bare", None, None, [], None),
    ]
    assert store.papers([]) == {}
    assert store.years([]) == {}


def test_more_ids_than_one_query_takes(store: PaperStore) -> None:
    ids = [f"n{number}" for number in range(2500)]
    fill(store, *(Paper(paper_id, title="t", year=number) for number, paper_id in enumerate(ids)))
    assert list(store.years(reversed(ids)).values()).count(None) == 0
    assert set(store.papers(iter(ids))) == set(ids)
    assert [text.paper_id for text in store.searchable_texts()] == sorted(ids)


@pytest.mark.parametrize("apart", [True, False], ids=["two batches", "one batch"])
@pytest.mark.parametrize("order", [(1, 2), (2, 1), (1, 1)], ids=str)
def test_the_later_place_wins(store: PaperStore, order: tuple[int, int], apart: bool) -> None:
    first, second = order
    records: list[tuple[int, Record]] = []
    for place, name in ((first, "a"), (second, "b")):
        records += [
            (place, Paper("p", title=name, year=place)),
            (place, Abstract("p", f"abstract {name}")),
            (place, Tldr("p", f"tldr {name}")),
            (place, Citation("q", "p", (f"context {name}",), ((name,),), name == "b", "c")),
        ]
    for batch in (records[:4], records[4:]) if apart else (records,):
        fill(store, *batch)
    won = "b" if second >= first else "a"
    paper = store.papers(["p"])["p"]
    assert (paper.title, paper.abstract, paper.tldr) == (won, f"abstract {won}", f"tldr {won}")
    assert store.citances("p", "q") == (f"context {won}",)
    assert store.counts().papers == store.counts().citances == 1


def test_of_batches_written_together_the_later_place_wins(store: PaperStore) -> None:
    records = [(place, Paper("p", title=str(number))) for number, place in enumerate((3, 9, 9, 1))]
    store.write(*(store.encode([NumberedRecord(*record)]) for record in records))
    assert store.papers(["p"])["p"].title == "2"


def test_an_earlier_record_in_a_batch_of_others_does_no_harm(store: PaperStore) -> None:
    fill(store, (9, Paper("p", title="new")))
    fill(store, (1, Paper("a", title="a")), (2, Paper("p", title="old")), (3, Paper("z", title="z")))
    assert {key: paper.title for key, paper in store.papers("apz").items()} == {"a": "a", "p": "new", "z": "z"}


def test_a_later_paper_without_abstract_keeps_the_earlier_one(store: PaperStore) -> None:
    fill(store, Abstract("p", "kept"), Paper("p", title="t"))
    assert store.papers(["p"])["p"].abstract == "kept"
    fill(store, Abstract("p", None), start=3)
    assert store.papers(["p"])["p"].abstract is None


ODD_IDS = [*"zéZ😀ﬀ中a9", "0123456789abcdef01234567", "10", 'a"b', "a'b", "a\\b", "a%b", "a!b", "$a", "a.b"]


def test_ids_order_by_their_bytes(store: PaperStore) -> None:
    expected = sorted(ODD_IDS, key=str.encode)
    fill(store, *(Paper(paper_id, title="t") for paper_id in ODD_IDS))
    fill(store, *(Citation("a", paper_id, ("s",)) for paper_id in ODD_IDS))
    assert [text.paper_id for text in store.searchable_texts()] == expected
    assert [citance.cited.paper_id for citance in store.searchable_citances()] == expected
    for position, after in enumerate(expected):
        rest = expected[position + 1 :]
        assert [text.paper_id for text in store.searchable_texts(after)] == rest
        assert [citance.cited.paper_id for citance in store.searchable_citances(after)] == rest
    assert set(store.papers(ODD_IDS)) == set(ODD_IDS)


def test_what_lucene_gets(store: PaperStore) -> None:
    fill(store, FULL, BARE, Abstract("unknown", "of nobody"))
    first, second = store.searchable_texts()
    assert first._asdict() == {
        "paper_id": "p1",
        "title": FULL.title,
        "abstract": "An abstract.",
        "year": 1999,
        "venue": "SIGIR",
        "fields_of_study": '["Computer Science","Art"]',
        "citation_count": 7,
    }
    assert second == ("p2", "Bare", "", None, None, "[]", None)


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
        start=100,
    )
    assert store.papers(["p1"]) == {"p1": FULL}  # nothing is applied before all is read
    store.apply_deletions()
    assert store.papers(["p1", "p2"]) == {"p2": Paper("p2", title="Again")}
    assert store.citances("p1", "x") == ()
    assert store.citances("p1", "y") == ("b",)
    assert store.counts() == Counts(1, 0, 0, 0, 0, 0, unmatched=2)
    fill(store, Paper("p1", title="back"), start=50)  # deletions are forgotten
    store.apply_deletions()
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
    assert {citance.cited for citance in found} == {("cited", "", "", 1990, "V", '["Art"]', 3)}
    assert store.citances("cited", "q1") == ("a", "b", "c", "d")
    assert store.citances("cited", "q") == store.citances("nobody", "q1") == ()
    assert store.citing_papers(["cited", "nobody"]) == {"cited": [("q1", 2001, 4), ("q2", None, 1)]}


def test_papers_are_found_by_surname_and_identifier(store: PaperStore) -> None:
    fill(store, FULL, BARE, Paper("p3", authors=("Lovelace",), citation_count=9, external_ids={"DOI": "10.1/A_b"}))
    assert store.called(["lovelace"], 10) == ["p3", "p1"]
    assert store.called(["lovelace"], 1) == ["p3"]
    assert store.called(["10.1/X", "nobody"], 10) == ["p1"]
    assert store.called(["10.1/a_B"], 10) == ["p3"]
    for nobody in ("ada", "ovelace", "10.1", "l%", "10.1/a.b", "10.1/aXb", "DOI", '"', ""):
        assert store.called([nobody], 10) == [], nobody
    assert store.called([], 10) == []


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
    """A finished store with changes: the first paper had another title, and the last one is new."""
    for name, base, part in (("base", None, [replace(papers[0], title="Other"), papers[1]]), ("more", "base", papers)):
        store = SqliteStore(folder / name, base=base and folder / base)
        fill(store, *((place, paper) for place, paper in enumerate(part, 10 * len(name))))
        store.finish()
    return SqliteStore(folder / "more", base=folder / "base", read_only=True)


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
    assert store.citing_papers(["cited"]) == {"cited": [("q", 2001, 1), ("r", 2005, 2)]}
    assert {(one.citing_id, one.citing_year) for one in store.searchable_citances()} == {("q", 2001), ("r", 2005)}


def test_counts(store: PaperStore) -> None:
    assert store.counts() == Counts(0, 0, 0, 0, 0, 0, 0)
    fill(
        store,
        FULL,
        BARE,
        Abstract("p2", None),
        Abstract("nobody", None),
        Abstract("someone", "text"),
        Tldr("nobody", "text"),
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
    assert list(store.census()) == [
        CensusRow(None, None, None, 1),
        CensusRow(None, None, 0, 1),
        CensusRow("Art", 2000, 1, 2),
        CensusRow("Art", 2000, 2, 1),
        CensusRow("Art", 2000, 10, 1),
        CensusRow("Art/History", 999, None, 1),
    ]
    assert list(store.histogram("year").items()) == [(999, 1), (2000, 4)]
    assert list(store.histogram("venue").items()) == [("é/1", 2), ("A", 1), ("B", 1)]
    assert list(store.histogram("fields_of_study").items()) == [("Art", 4), ("Law", 2), ("Art/History", 1)]
    with pytest.raises(ValueError, match="no histogram of title"):
        store.histogram("title")


def test_fingerprint_tells_contents_and_not_how_they_came(new_store: NewStore) -> None:
    records: list[Record] = [FULL, BARE, Citation("x", "p1", ("a", "é"), (("method",), ()), True, "7"), Tldr("x", None)]
    first, second, other = new_store(), new_store(), new_store()
    fill(first, *records)
    for place, record in reversed(list(enumerate(records))):
        fill(second, (place + 500, record))
    fill(other, *records[:-1], Tldr("x", "text"))
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
    | st.builds(Abstract, ids, st.none() | texts)
    | st.builds(Tldr, ids, st.none() | texts)
    | deletions
)
places = st.integers(0, 5) | st.integers(0, 2**62)
batches = st.lists(st.lists(st.tuples(places, records), max_size=8), max_size=4)


@settings(max_examples=30)
@given(batches=batches, after=ids)
def test_mongodb_gives_what_sqlite_gives(nx_server: str, batches: Any, after: str) -> None:
    from tests.mongo.conftest import _database, _name

    database = _database(f"{nx_server}/{_name()}")
    mongodb, sqlite = open_store(next(database)), SqliteStore(Path(":memory:"))
    try:
        for store in (mongodb, sqlite):
            for batch in batches:
                fill(store, *batch)
            store.apply_deletions()
        assert mongodb.fingerprint() == sqlite.fingerprint()
        assert mongodb.counts() == sqlite.counts()
        assert list(mongodb.searchable_texts(after)) == list(sqlite.searchable_texts(after))
        assert list(mongodb.searchable_citances(after)) == list(sqlite.searchable_citances(after))
        assert list(mongodb.searchable_citances()) == list(sqlite.searchable_citances())
        assert list(mongodb.census()) == list(sqlite.census())
        for attribute in ("year", "venue", "fields_of_study"):
            histograms = [list(store.histogram(attribute).items()) for store in (mongodb, sqlite)]
            assert histograms[0] == histograms[1]
        every = [text.paper_id for text in sqlite.searchable_texts()]
        assert mongodb.papers(every) == sqlite.papers(every)
    finally:
        mongodb.close()
        sqlite.close()
        next(database, None)


def test_ledger_of_shards(store: PaperStore) -> None:
    counts = ShardCounts("a.jsonl", "jsonl", 10, 3, 1, 0)
    assert ledger_of(store).next_shard() == 1
    assert ledger_of(store).finished_shards() == {}
    ledger_of(store).finish_shard(2, counts)
    ledger_of(store).finish_shard(1, replace(counts, path="b.jsonl"))
    assert ledger_of(store).next_shard() == 3
    assert list(ledger_of(store).finished_shards().items()) == [(1, replace(counts, path="b.jsonl")), (2, counts)]
    assert ledger_of(store).finished_shards(2) == {2: counts}


def test_quarantine_in_order(store: PaperStore) -> None:
    assert list(ledger_of(store).quarantine()) == []
    assert ledger_of(store).first_bad(1) is None
    ledger_of(store).set_aside(2, [(1, BadRecord("r", "{"))])
    ledger_of(store).set_aside(1, [(10, BadRecord("ten", "x\x00y")), (9, BadRecord("nine", "é"))])
    ledger_of(store).set_aside(1, [(10, BadRecord("again", "x"))])
    expected = [(1, 9, "nine", "é"), (1, 10, "again", "x"), (2, 1, "r", "{")]
    assert list(ledger_of(store).quarantine()) == [Quarantined(*row) for row in expected]
    assert ledger_of(store).first_bad(1) == expected[0]
    assert ledger_of(store).first_bad(3) is None


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
    assert [counts.read for counts in ledger_of(store).finished_shards().values()] == [400, 401, 350, 600]
    assert write_quarantine(ledger_of(store), tmp_path / "quarantine.jsonl") == 1
    assert '"line":351,"reason":"corpusid is missing"' in (tmp_path / "quarantine.jsonl").read_text()


def test_two_processes_make_the_same_store(new_store: NewStore, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = new_store(), new_store()
    others = set(multiprocessing.active_children())  # tests before this one may keep some
    run(alone, find_shards([release]))
    monkeypatch.setattr(ingest_module, "_SMALL_BYTES", 0)
    run(together, find_shards([release]), workers=2)
    assert together.fingerprint() == alone.fingerprint()
    assert together.counts() == alone.counts()
    assert ledger_of(together).finished_shards() == ledger_of(alone).finished_shards()
    assert list(ledger_of(together).quarantine()) == list(ledger_of(alone).quarantine())
    assert set(multiprocessing.active_children()) <= others


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
    done = ledger_of(store).finished_shards()
    assert 0 < len(done) < len(shards)
    read: list[Path] = []
    for name, reader in ingest_module.READERS.items():
        monkeypatch.setitem(
            ingest_module.READERS,  # type: ignore[arg-type]
            name,
            lambda path, reader=reader: (read.append(path), reader(path))[1],
        )
    run(store, shards)
    assert read == [shard.path for shard in shards[len(done) :]]
    assert store.fingerprint() == whole.fingerprint()
    assert ledger_of(store).finished_shards() == ledger_of(whole).finished_shards()


def test_a_corpus_that_is_mostly_bad_is_refused(store: PaperStore, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.jsonl", [{"paper_id": "a", "title": "t"}, {"no": "id"}])
    with pytest.raises(BuildError, match=r"1 of 2 records are bad.*line 2: paper_id is missing"):
        run(store, [Shard(path, "jsonl")], max_bad=0)


def test_the_demo_is_the_same_everywhere(store: PaperStore) -> None:
    sqlite = SqliteStore(Path(":memory:"))
    for each in (store, sqlite):
        run(each, find_shards([DEMO]))
    assert store.fingerprint() == sqlite.fingerprint()
    assert list(store.census()) == list(sqlite.census())
    assert store.integrity_faults() == []
    sqlite.close()


def test_a_finished_store_opens_again(where: Callable[[], str | Path]) -> None:
    address = where()
    store = open_store(address)
    fill(store, FULL)
    kept_by(store).put("texts", [{"id": "1"}])
    store.finish()
    again = open_store(address)
    assert again.papers(["p1"]) == {"p1": FULL}
    assert kept_by(again).count("texts") == 1
    again.close()


def test_encoded_records_travel_between_processes(store: PaperStore) -> None:
    encode = pickle.loads(pickle.dumps(store.encode))
    store.write(pickle.loads(pickle.dumps(encode([NumberedRecord(place_of(3, 1), FULL)]))))
    assert store.papers(["p1"]) == {"p1": FULL}


def test_documents_come_back_in_order(store: PaperStore) -> None:
    document = {
        "id": "é",
        "cited_id": "7",
        "nested": {"a": [1, 2.5, None, True, {"b": "😀\u2028"}], "big": 2**53 + 1, "dots.in.it": 1},
        "empty": {},
    }
    assert (
        kept_by(store).put(
            "contexts", [{"id": "z"}, document, {"id": "a", "cited_id": "7"}, {"id": "b", "cited_id": None}]
        )
        == 4
    )
    assert list(kept_by(store).documents("contexts")) == [
        {"id": "a", "cited_id": "7"},
        {"id": "b", "cited_id": None},
        {"id": "z"},
        document,
    ]
    assert [found["id"] for found in kept_by(store).documents("contexts", cited_id="7")] == [
        "a",
        "é",
    ]
    assert list(kept_by(store).documents("contexts", cited_id="8")) == []
    assert kept_by(store).documents_of("contexts", ["é", "nobody"]) == {"é": document}
    assert kept_by(store).documents_of("texts", ["é"]) == {}
    assert list(next(kept_by(store).documents("contexts", cited_id="7"))) == ["id", "cited_id"]


def test_a_document_replaces_the_whole_of_another(store: PaperStore) -> None:
    kept_by(store).put("texts", [{"id": "1", "a": 1, "cited_id": "x"}, {"id": "2", "a": 1}, {"id": "2", "b": 2}])
    kept_by(store).put("texts", [{"id": "1", "b": 2}])
    assert list(kept_by(store).documents("texts")) == [{"id": "1", "b": 2}, {"id": "2", "b": 2}]
    assert list(kept_by(store).documents("texts", cited_id="x")) == []
    assert kept_by(store).count("texts") == 2


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_every_collection_is_its_own(store: PaperStore, collection: str) -> None:
    kept_by(store).put(collection, [{"id": "1"}])
    assert {name: kept_by(store).count(name) for name in COLLECTIONS} == {
        **dict.fromkeys(COLLECTIONS, 0),
        collection: 1,
    }
    kept_by(store).clear(collection)
    assert kept_by(store).count(collection) == 0
    assert kept_by(store).put(collection, []) == 0
    kept_by(store).put(collection, [{"id": "2"}])
    assert list(kept_by(store).documents(collection)) == [{"id": "2"}]


@pytest.mark.parametrize(
    "call",
    [
        lambda documents, name: documents.put(name, []),
        lambda documents, name: documents.documents(name),
        lambda documents, name: documents.documents_of(name, []),
        lambda documents, name: documents.count(name),
        lambda documents, name: documents.clear(name),
    ],
)
def test_unknown_collections_are_refused(store: PaperStore, call: Callable[[Documents, str], object]) -> None:
    for name in ("papers", "texts; DROP TABLE papers", ""):
        with pytest.raises(ValueError, match="no collection"):
            call(kept_by(store), name)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"cited_id": "1"}, "needs an id"),
        ({"id": ""}, "needs an id"),
        ({"id": 7}, "needs an id"),
        ({"id": "1", "cited_id": ["2"]}, "cited_id of document '1'"),
        ({"id": "1", "_id": "2"}, "_id"),
        ({"id": "1", "set": {1}}, "not JSON"),
        ({"id": "1", "x": "\ud800"}, "not JSON"),
        ({"id": "1", "x": 2**70}, "not JSON"),
    ],
)
def test_documents_that_are_none_are_refused(store: PaperStore, document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kept_by(store).put("texts", [document])
    assert kept_by(store).count("texts") == 0


def test_thousands_of_documents_stream(store: PaperStore) -> None:
    """What is put may come from what is read, of the same store, without either in memory as a whole."""
    ahead: list[int] = []

    def source() -> Iterator[dict[str, Any]]:
        for number in range(3000):
            ahead.append(number)
            yield {"id": f"{number:05}", "cited_id": str(number % 3), "text": "word " * 20}

    kept_by(store).put("texts", source())
    assert kept_by(store).count("texts") == len(ahead) == 3000
    found = kept_by(store).documents("texts")
    kept_by(store).put("contexts", ({**document, "id": "c" + document["id"]} for document in found))
    assert [document["id"] for document in kept_by(store).documents("contexts")] == [
        f"c{number:05}" for number in range(3000)
    ]
    assert sum(1 for _ in kept_by(store).documents("contexts", cited_id="1")) == 1000
    wanted = [f"{number:05}" for number in range(1500)]
    assert list(kept_by(store).documents_of("texts", iter(wanted))["00007"]) == [
        "id",
        "cited_id",
        "text",
    ]
    assert len(kept_by(store).documents_of("texts", wanted)) == 1500
    assert next(itertools.islice(kept_by(store).documents("texts"), 5, 6))["id"] == "00005"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)
documents = st.lists(
    st.builds(
        lambda document_id, cited_id, fields: {**fields, "id": document_id, "cited_id": cited_id},
        ids,
        st.none() | st.sampled_from(["1", "2"]),
        st.dictionaries(st.text("xyz", min_size=1), json_values, max_size=3),
    ),
    max_size=6,
)


@settings(max_examples=25)
@given(documents=documents)
def test_any_documents(store: PaperStore, documents: list[dict[str, Any]]) -> None:
    kept_by(store).clear("texts")
    kept_by(store).put("texts", documents)
    expected = {document["id"]: document for document in documents}
    assert list(kept_by(store).documents("texts")) == [expected[key] for key in sorted(expected, key=str.encode)]
    assert list(kept_by(store).documents("texts", cited_id="1")) == [
        expected[key] for key in sorted(expected, key=str.encode) if expected[key]["cited_id"] == "1"
    ]
    assert kept_by(store).documents_of("texts", expected) == expected


def test_counts_of_a_shard_are_plain_numbers(store: PaperStore) -> None:
    ledger_of(store).finish_shard(1, ShardCounts("a", "jsonl", 2**40, 2, 3, 4, 5))
    assert asdict(ledger_of(store).finished_shards()[1]) == {
        "path": "a",
        "format": "jsonl",
        "bytes": 2**40,
        "read": 2,
        "bad": 3,
        "without_context": 4,
        "papers": 5,
    }
