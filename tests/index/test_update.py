"""Indexes that are brought up to date by the updates of a corpus equal those built from what is there at the end."""

import gzip
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

from citerec import Index
from citerec.errors import InputError
from citerec.index.build import BuildOptions, add_to_index, build_index, encode_index
from citerec.index.columns import COLUMNS
from citerec.index.describe import verify
from citerec.index.manifest import Layout, Manifest, generation_of, open_store
from citerec.index.vectors import DenseOptions, Vectors
from citerec.recommend import Recommender
from citerec.records import Paper
from citerec.retrieve.base import OpenIndex
from citerec.systems import Recipe
from tests.conftest import Citerec, s2ag_paper, write_lines
from tests.dense.conftest import unit_vectors, write_arrays
from tests.tiny_models import write_tiny_scibert

pytestmark = pytest.mark.slow

WORDS = "graph ranking neural query citation corpus entity sparse".split()
KEYS = {"papers": "corpusid", "abstracts": "corpusid", "tldrs": "corpusid", "citations": "citationid"}
QUERIES = ("neural ranking of graphs <REF>", "sparse query <REF> of an entity", "citation corpus <REF>")
STAYS = 99  # an index needs a paper

Record = dict[str, Any]


@dataclass
class Corpus:
    """The records of a release by dataset and primary key."""

    tables: dict[str, dict[int, Record]] = field(default_factory=lambda: {name: {} for name in KEYS})

    def apply(self, update: "Update") -> None:
        for name, record in update.upserts:
            self.tables[name][record[KEYS[name]]] = record
        for name, key in update.deletes:
            self.tables[name].pop(key, None)

    def write(self, folder: Path) -> Path:
        for name, records in self.tables.items():
            write_lines(folder / name / "part-0.jsonl.gz", records.values(), compress=True)
        return folder


@dataclass(frozen=True)
class Update:
    upserts: list[tuple[str, Record]]
    deletes: list[tuple[str, int]]

    def write(self, folder: Path, shards: int) -> None:
        for kind, rows in (
            ("upserts", self.upserts),
            ("deletes", [(name, {KEYS[name]: key, "more": 1}) for name, key in self.deletes]),
        ):
            for name in KEYS:
                mine = [record for table, record in rows if table == name]
                for shard in range(shards if mine else 0):
                    begin, end = (len(mine) * place // shards for place in (shard, shard + 1))
                    write_lines(folder / name / f"{kind}-{shard}.jsonl.gz", mine[begin:end], compress=True)


ids = st.integers(8, 14)
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
years = st.none() | st.integers(2000, 2003)
records = st.one_of(
    st.tuples(st.just("papers"), st.builds(s2ag_paper, ids, words, year=years, citationcount=st.integers(0, 3))),
    st.tuples(st.just("abstracts"), st.fixed_dictionaries({"corpusid": ids, "abstract": st.none() | words})),
    st.tuples(st.just("tldrs"), st.fixed_dictionaries({"corpusid": ids, "model": st.just("m"), "text": words})),
    st.tuples(
        st.just("citations"),
        st.fixed_dictionaries(
            {
                "citationid": st.integers(1, 9),
                "citingcorpusid": ids,
                "citedcorpusid": st.none() | ids,
                "contexts": st.none() | st.lists(words, max_size=2),
            }
        ),
    ),
)
keys = st.tuples(st.sampled_from(["papers", "abstracts", "tldrs"]), ids) | st.tuples(
    st.just("citations"), st.integers(1, 9)
)
updates = st.builds(Update, st.lists(records, max_size=12), st.lists(keys, max_size=5))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_scibert(tmp_path_factory.mktemp("models") / "tiny", [" ".join(WORDS)]))


def contents(index: Path) -> dict[str, Any]:
    """All that two indexes of the same records have in common."""
    manifest = Manifest.read(index)
    counts = {name: count for name, count in asdict(manifest.counts).items() if name not in ("duplicates", "bad")}
    folder = generation_of(index)
    # The documents of Lucene may stand in another order.
    names = (COLUMNS, "words") if manifest.engine == "embedded" else (COLUMNS,)
    files = {path.relative_to(folder): path.read_bytes() for name in names for path in (folder / name).rglob("*.*")}
    store = open_store(index)
    texts = [store.papers([paper_id])[paper_id] for (paper_id,) in store.select("papers", "paper_id")]
    citances = list(store.searchable_citances())
    assert store.fingerprint() == manifest.fingerprint
    store.close()
    return {"fingerprint": manifest.fingerprint, "counts": counts, "files": files, "texts": texts, "citances": citances}


def answers(index: Path, system: str) -> list[Any]:
    found = []
    with Recommender.open(index, Recipe.load(system)) as recommender:
        k = recommender.manifest.counts.papers
        for query in QUERIES:
            hits = recommender.search(query, k=k)
            found.append([(hit.paper.paper_id, hit.score, hit.citance) for hit in hits])
    return found


# Without shrinking: it builds thousands of indexes.
@pytest.mark.parametrize("engine", ["embedded", "lucene"])
@settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    start=st.lists(records, max_size=25),
    sequence=st.lists(st.tuples(updates, st.integers(1, 3), st.booleans()), min_size=1, max_size=4),
)
def test_updates_give_what_a_build_gives(
    tmp_path_factory: pytest.TempPathFactory,
    model: str,
    engine: str,
    start: list[tuple[str, Record]],
    sequence: list[tuple[Update, int, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    corpus = Corpus()
    corpus.apply(Update([("papers", s2ag_paper(STAYS, "graph that stays")), *start], []))
    grown, index = corpus.write(folder / "grown"), folder / "index"
    options = BuildOptions(layout=Layout(engine=engine), dense=DenseOptions(model, max_tokens=16))
    build_index([grown], index, options)
    for number, (update, shards, applied) in enumerate(sequence):
        update.write(grown / "updates" / f"2024-01-0{number}_2024-01-0{number + 1}", shards)
        corpus.apply(update)
        if applied:
            add_to_index([grown], index)
    add_to_index([], index)
    assert verify(index) == []
    found = contents(index)
    for name, source in (("again", grown), ("fresh", corpus.write(folder / "final"))):
        build_index([source], folder / name, options)
        assert contents(folder / name) == found
    assert answers(folder / "fresh", "bm25") == answers(index, "bm25")
    for one, other in zip(answers(folder / "fresh", "dense"), answers(index, "dense"), strict=True):
        # A text may be encoded beside others than before: its vector is the same up to rounding.
        assert {hit[0]: hit[1] for hit in one} == pytest.approx({hit[0]: hit[1] for hit in other}, abs=1e-4)
    shutil.rmtree(folder)


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A corpus of three papers of whom one is cited, and an index of it."""
    corpus = Corpus()
    papers = [s2ag_paper(n, f"{WORDS[n]} study", year=2000) for n in (1, 2, 3)]
    said = {"citationid": 1, "citingcorpusid": 2, "citedcorpusid": 1, "contexts": ["Entity linking was shown in [3]."]}
    corpus.apply(Update([*(("papers", paper) for paper in papers), ("citations", said)], []))
    build_index([corpus.write(tmp_path / "grown")], tmp_path / "index")
    return tmp_path / "grown"


def update(grown: Path, name: str, *upserts: tuple[str, Record], deletes: Sequence[tuple[str, int]] = ()) -> None:
    Update(list(upserts), list(deletes)).write(grown / "updates" / name, 1)


def test_an_update_reads_only_what_is_new(grown: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    update(grown, "a_b", ("papers", s2ag_paper(4, "Fourth")), deletes=[("papers", 3), ("papers", 77)])
    done = citerec_here("index", "add", "index")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"overwritten \(id came again\) +1\b", done.stdout)
    assert done.stdout.startswith("index brought up to date: 3 papers")
    assert [Path(source.path).name for source in Manifest.read(tmp_path / "index").sources[-2:]] == [
        "upserts-0.jsonl.gz",
        "deletes-0.jsonl.gz",
    ]
    again = citerec_here("index", "add", "index", grown)
    assert again.stdout == "index is up to date: there is nothing new to read.\n"
    assert verify(tmp_path / "index") == []


def test_what_is_not_the_same_corpus_is_refused(grown: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        done = citerec_here("index", "add", "index", *arguments)
        assert done.returncode == 2, done.stdout
        return " ".join(done.stderr.split())

    papers = grown / "papers" / "part-0.jsonl.gz"
    kept = papers.read_bytes()
    papers.write_bytes(gzip.compress(gzip.decompress(kept) + b"\n" * 9))
    assert "has changed, is gone, or came before others, since index read" in refused(grown)
    papers.rename(papers.with_name("part-1.jsonl.gz"))
    assert "part-0.jsonl.gz has changed, is gone" in refused()
    papers.write_bytes(kept)
    assert "part-1.jsonl.gz has changed, is gone, or came before others" in refused(grown)
    build_index([write_lines(tmp_path / "mine.jsonl", [{"paper_id": 1, "title": "One"}])], tmp_path / "index")
    assert "was not built from folders of datasets" in refused()


def test_papers_are_removed_and_come_back(grown: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index")
    assert index.recommender().search("entity linking <REF>")[0].paper.paper_id == "1"
    done = citerec_here("index", "remove", "index", "1", "77")
    assert done.stdout.startswith("Removed: 1 paper.\nindex brought up to date: 2 papers")
    again = citerec_here("index", "remove", "index", "1")
    assert again.returncode == 0 and again.stdout.startswith("Removed: 0 papers.\n")
    removed = Index.open(tmp_path / "index")
    assert not removed.papers(["1"])
    assert removed.manifest.counts.citances == 0
    assert not (generation_of(tmp_path / "index") / "words" / "citances").exists()
    assert verify(tmp_path / "index") == []
    removed.add([Paper("1", "Back again")])
    assert removed.recommender().search("entity linking <REF>")[0].citance
    assert verify(tmp_path / "index") == []
    ids = tmp_path / "ids.txt"
    ids.write_text("2\n\n3\n")
    removed.remove(ids)
    assert len(removed) == 1


def test_what_cannot_be_removed_is_said(grown: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("1\n")
    for arguments, message in (
        ((), "give the ids of papers, or --ids FILE"),
        (("1", "--ids", "ids.txt"), "give the ids of papers, or --ids FILE"),
        (("--ids", "nowhere.txt"), "cannot read"),
        (("1", "2", "3"), "the sources hold no paper"),
    ):
        done = citerec_here("index", "remove", "index", *arguments)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
    assert len(Index.open(tmp_path / "index")) == 3


def test_a_citation_that_changes_replaces_that_of_its_id(grown: Path, tmp_path: Path) -> None:
    moved = {"citationid": 1, "citingcorpusid": 3, "citedcorpusid": 2, "contexts": ["Entity linking again."]}
    update(grown, "a_b", ("citations", moved))
    add_to_index([], tmp_path / "index")
    store = open_store(tmp_path / "index")
    assert [(one.cited.paper_id, one.citing_id) for one in store.searchable_citances()] == [("2", "3")]
    store.close()
    update(grown, "b_c", ("citations", {**moved, "contexts": None}))
    assert add_to_index([], tmp_path / "index").counts.citances == 0


def test_given_vectors_are_added_to_and_removed(tmp_path: Path) -> None:
    vectors = unit_vectors(43, 16)
    papers = [{"paper_id": f"p{n}", "title": f"{WORDS[n % 8]} {n}"} for n in range(43)]
    given = write_arrays(tmp_path / "given", np.array([f"p{n}" for n in range(40)]), vectors[:40])
    index = tmp_path / "index"
    build_index([write_lines(tmp_path / "papers.jsonl", papers[:40])], index)
    encode_index(index, DenseOptions("m", vectors=(given,)))
    more = write_arrays(tmp_path / "more", np.array(["p39", "p40", "p41"]), vectors[40:])
    new = write_lines(tmp_path / "new.jsonl", papers[39:])
    add_to_index([new], index, BuildOptions(dense=DenseOptions("m", vectors=(more,))))
    with pytest.raises(InputError, match="cannot take the text 'p7'"):
        Index.open(index).remove("p7")  # its letters would be the ids
    Index.open(index).remove(["p7", "p30"])
    assert verify(index) == []
    made, rows = Vectors(generation_of(index) / "dense"), OpenIndex.open(index).rows
    expected = {f"p{n}": vectors[n] for n in range(39) if n not in (7, 30)}
    expected |= {"p39": vectors[40], "p40": vectors[41], "p41": vectors[42]}
    assert set(rows.paper_ids(np.flatnonzero(made.has_vector))) == expected.keys()
    assert made.manifest.without_vector == 1  # no model "m" is there to encode p42
    for paper_id, vector in expected.items():
        assert made.values[rows.rows([paper_id])[0]] == pytest.approx(vector, abs=1e-3)
