"""What only Lucene does: its files are open to others, it updates itself, and Java's failures have a remedy."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from citerec.errors import IndexUnusableError
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.describe import verify
from citerec.index.manifest import Layout, generation_of
from citerec.recommend import Recommender
from citerec.systems import Recipe
from tests.conftest import DEMO, ROOT, write_lines

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build_index([DEMO], out := tmp_path_factory.mktemp("lucene") / "demo", BuildOptions(layout=Layout(engine="lucene")))
    return out


def test_anserini_reads_the_index_too(demo: Path) -> None:
    from citerec.index.words.lucene import java_class, start

    start()
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(generation_of(demo) / "words" / "papers"))
    searcher.set_bm25(0.9, 0.4)
    theirs = [(hit.docid, hit.score) for hit in searcher.search("species genes and evolution in bacteria", 20)]
    searcher.close()
    settings = Recipe.load(None, ["words.bm25.k1=0.9", "words.bm25.b=0.4", "words.weights.title=0"])
    hits = Recommender.open(demo, settings).search("species genes and evolution in bacteria <REF>", k=20)
    assert [hit.paper.paper_id for hit in hits] == [paper_id for paper_id, _ in theirs]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in theirs], abs=1e-4)


def test_papers_that_are_replaced_leave_no_trace_in_the_statistics(tmp_path: Path) -> None:
    from citerec.index.words.lucene import open_reader

    papers = [{"paper_id": str(n), "title": f"Okapi {n % 9}"} for n in range(150)]
    build_index(
        [write_lines(tmp_path / "p.jsonl", papers)],
        index := tmp_path / "index",
        BuildOptions(layout=Layout(engine="lucene")),
    )
    for run in range(8):
        changed = [{**paper, "title": f"Okapi {run}"} for paper in papers[run * 10 :]]
        add_to_index([write_lines(tmp_path / "more.jsonl", changed)], index)
        reader = open_reader(generation_of(index) / "words" / "papers")
        assert (reader.numDocs(), reader.numDeletedDocs()) == (150, 0)
        reader.close()
    assert verify(index) == []


@pytest.mark.parametrize(("part", "message"), [("papers", "Lucene failed opening"), ("rows", "cannot be read")])
def test_damage_is_told_and_an_index_that_lacks_documents_is_not_added_to(
    demo: Path, tmp_path: Path, part: str, message: str
) -> None:
    shutil.copytree(demo, index := tmp_path / "index")
    shutil.rmtree(generation_of(index) / "words" / part)
    with pytest.raises(IndexUnusableError, match=message):
        Recommender.open(index).search("okapi <REF>")
    assert any("is missing" in fault for fault in verify(index))
    if part == "papers":
        more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "m", "title": "More"}])
        with pytest.raises(IndexUnusableError, match="Lucene has 1 papers where the store has 253"):
            add_to_index([more], index)
        assert generation_of(index).name == "1"


def test_verify_writes_nothing_and_finds_a_flipped_bit(demo: Path, tmp_path: Path) -> None:
    shutil.copytree(demo, index := tmp_path / "index")
    for lock in index.rglob("write.lock"):
        lock.unlink()
    before = sorted(index.rglob("*"))
    assert not [fault for fault in verify(index) if "write.lock" not in fault]
    assert sorted(index.rglob("*")) == before
    papers = generation_of(index) / "words" / "papers"
    largest = max(papers.iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    largest.write_bytes(data)
    assert any("damaged" in fault for fault in verify(index))


FULL_DISK = """
import resource, sys
from pathlib import Path
from citerec.index.words.lucene import write_documents
from citerec.index.words.lucene import java_failures, start
from citerec.records import Paper
start()
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
papers = (Paper(str(n), f"t {n} {n * 7}", f"a {n * 3}", year=2000) for n in range(60_000))
try:
    with java_failures("writing"):
        write_documents(Path(sys.argv[1]), ["text", "title"], papers, ())
except Exception as error:
    print(type(error).__name__, error)
"""


def test_lucene_says_when_the_disk_is_full(tmp_path: Path) -> None:
    """The kernel lets no file grow past 300 kB; the store, which would fail first, is left out."""
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path / "lucene"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("BuildError no space left writing. Make room")
