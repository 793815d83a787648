"""What only Lucene does: its files are open to others, it updates itself, and Java's failures have a remedy."""

import shutil
from pathlib import Path

import pytest

from citerec.errors import IndexUnusableError
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.describe import verify
from citerec.index.manifest import Layout, generation_of
from citerec.recommend import Recommender
from citerec.systems import Recipe
from tests.conftest import DEMO, write_lines

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
