"""Indexes that are brought up to date by the updates of a corpus equal those built from what is there at the end."""

import contextlib
import gzip
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings, strategies as st

from citerec import Index
from citerec.errors import InputError
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.columns import COLUMNS
from citerec.index.describe import verify
from citerec.index.manifest import Layout, Manifest, generation_of, open_store
from citerec.index.vectors import DenseOptions
from citerec.recommend import Recommender
from citerec.records import Paper
from tests.conftest import Citerec, s2ag_paper, write_lines
from tests.tiny_models import write_tiny_scibert

pytestmark = pytest.mark.slow

WORDS = "graph ranking neural query citation corpus entity sparse".split()
KEYS = {"papers": "corpusid", "abstracts": "corpusid", "tldrs": "corpusid", "citations": "citationid"}
QUERIES = ("neural ranking of graphs <REF>", "sparse query <REF> of an entity", "citation corpus <REF>")
STAYS = 99  # an index needs a paper

Record = dict[str, Any]


Rows = list[tuple[str, Record]]


class Corpus:
    """The records of a release by dataset and primary key."""

    def __init__(self, rows: Rows) -> None:
        self.tables: dict[str, dict[int, Record]] = {name: {} for name in KEYS}
        self.apply(rows, [])

    def apply(self, upserts: Rows, deletes: list[tuple[str, int]]) -> None:
        for name, record in upserts:
            self.tables[name][record[KEYS[name]]] = record
        for name, key in deletes:
            self.tables[name].pop(key, None)

    def write(self, folder: Path) -> Path:
        for name, records in self.tables.items():
            write_lines(folder / name / "part-0.jsonl.gz", records.values(), compress=True)
        return folder


def write_update(folder: Path, upserts: Rows, deletes: list[tuple[str, int]], shards: int = 1) -> None:
    gone = [(name, {KEYS[name]: key, "more": 1}) for name, key in deletes]
    for kind, rows in (("upserts", upserts), ("deletes", gone)):
        for name in KEYS:
            mine = [record for table, record in rows if table == name]
            for shard in range(shards if mine else 0):
                begin, end = (len(mine) * place // shards for place in (shard, shard + 1))
                write_lines(folder / name / f"{kind}-{shard}.jsonl.gz", mine[begin:end], compress=True)


ids = st.integers(8, 14)
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
years = st.none() | st.integers(2000, 2003)
citations = {"citationid": st.integers(1, 9), "citingcorpusid": ids, "citedcorpusid": st.none() | ids}
citations["contexts"] = st.none() | st.lists(words, max_size=2)
records = st.one_of(
    st.tuples(st.just("papers"), st.builds(s2ag_paper, ids, words, year=years, citationcount=st.integers(0, 3))),
    st.tuples(st.just("abstracts"), st.fixed_dictionaries({"corpusid": ids, "abstract": st.none() | words})),
    st.tuples(st.just("tldrs"), st.fixed_dictionaries({"corpusid": ids, "model": st.just("m"), "text": words})),
    st.tuples(st.just("citations"), st.fixed_dictionaries(citations)),
)
keys = st.tuples(st.sampled_from(["papers", "abstracts", "tldrs"]), ids) | st.tuples(
    st.just("citations"), st.integers(1, 9)
)
updates = st.tuples(st.lists(records, max_size=12), st.lists(keys, max_size=5))


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
    with contextlib.closing(open_store(index)) as store:
        assert store.fingerprint() == manifest.fingerprint
        citances = list(store.searchable_citances())
    return {"fingerprint": manifest.fingerprint, "counts": counts, "files": files, "citances": citances}


def answers(index: Path, system: str) -> list[dict[str, Any]]:
    with Recommender.open(index, system) as recommender:
        k = recommender.manifest.counts.papers
        return [{hit.paper: hit.score for hit in recommender.search(query, k=k)} for query in QUERIES]


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
    start: Rows,
    sequence: list[tuple[tuple[Rows, list[tuple[str, int]]], int, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    corpus = Corpus([("papers", s2ag_paper(STAYS, "graph that stays")), *start])
    grown, index = corpus.write(folder / "grown"), folder / "index"
    options = BuildOptions(layout=Layout(engine=engine), dense=DenseOptions(model, max_tokens=16))
    build_index([grown], index, options)
    for number, (update, shards, applied) in enumerate(sequence):
        write_update(grown / "updates" / f"2024-01-0{number}_2024-01-0{number + 1}", *update, shards)
        corpus.apply(*update)
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
        assert one == pytest.approx(other, abs=1e-4)
    shutil.rmtree(folder)


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A corpus of three papers of whom one is cited, and an index of it."""
    papers = [("papers", s2ag_paper(n, f"{WORDS[n]} study", year=2000)) for n in (1, 2, 3)]
    said = {"citationid": 1, "citingcorpusid": 2, "citedcorpusid": 1, "contexts": ["Entity linking was shown in [3]."]}
    build_index([Corpus([*papers, ("citations", said)]).write(tmp_path / "grown")], tmp_path / "index")
    return tmp_path / "grown"


def test_an_update_reads_only_what_is_new(grown: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    upserts = [("papers", s2ag_paper(4, "Fourth"))]
    write_update(grown / "updates" / "a_b", upserts, [("papers", 3), ("papers", 77)])
    done = citerec_here("index", "add", "index")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"overwritten \(id came again\) +1\b", done.stdout)
    assert done.stdout.startswith("index brought up to date: 3 papers")
    names = [Path(source.path).name for source in Manifest.read(tmp_path / "index").sources[-2:]]
    assert names == ["upserts-0.jsonl.gz", "deletes-0.jsonl.gz"]
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
    build_index([write_lines(tmp_path / "mine.jsonl", [{"paper_id": 1, "title": "One"}])], tmp_path / "index")
    assert "was not built from folders of datasets" in refused()


def test_papers_are_removed_and_come_back(grown: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("2\n\n3\n")
    for arguments, message in (((), "give the ids of papers, or --ids FILE"), ("123", "the sources hold no paper")):
        done = citerec_here("index", "remove", "index", *arguments)
        assert done.returncode == 2 and message in " ".join(done.stderr.split())
    index = Index.open(tmp_path / "index")
    with pytest.raises(InputError, match="cannot take the text '1'"):
        index.remove("1")  # its letters would be the ids
    assert index.recommender().search("entity linking <REF>")[0].paper.paper_id == "1"
    done = citerec_here("index", "remove", "index", "1", "77")
    assert done.stdout.startswith("Removed: 1 paper.\nindex brought up to date: 2 papers")
    assert "The index has no paper with the other ids." in done.stderr
    assert citerec_here("index", "remove", "index", "1").stdout.startswith("Removed: 0 papers.\n")
    removed = Index.open(tmp_path / "index")
    assert not removed.papers(["1"]) and removed.manifest.counts.citances == 0
    assert not (generation_of(tmp_path / "index") / "words" / "citances").exists()
    assert verify(tmp_path / "index") == []
    removed.add([Paper("1", "Back again")])
    assert removed.recommender().search("entity linking <REF>")[0].citance
    removed.remove(tmp_path / "ids.txt")
    assert len(removed) == 1
