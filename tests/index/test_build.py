"""Index directories: built, added to, verified, damaged, replaced while they are read."""

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from citerec import Context, Recommender, evaluate
from citerec.errors import BuildError, IndexUnusableError, SourceError
from citerec.index.build import BuildOptions, add_to_index, build_index, encode_index
from citerec.index.describe import describe, verify
from citerec.index.manifest import Manifest, generation_of, open_store
from citerec.index.vectors import DenseOptions
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.dense.conftest import full_disk, unit_vectors, write_arrays

WORDS = "retrieval ranking citation neural graph index query corpus model language entropy protein galaxy".split()


def title(number: int) -> str:
    return f"{WORDS[number % 13]} {WORDS[number * 7 % 13]} study {WORDS[number * 5 % 11]}"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Two thousand papers as S2AG has them, over several shards, with every kind of citation record."""
    folder = tmp_path / "release"
    numbers = range(1, 2001)
    papers = [s2ag_paper(n, title(n), year=1990 + n % 30, citationcount=n, venue=f"Venue {n % 9}") for n in numbers]
    for shard in range(4):
        write_lines(folder / "papers" / f"p{shard}.jsonl.gz", papers[shard::4], compress=True)
    abstracts = [{"corpusid": n, "abstract": f"We study {title(n + 3)} at length."} for n in numbers if n % 2]
    write_lines(folder / "abstracts" / "a.jsonl", [*abstracts, {"corpusid": 9999, "abstract": "Of no paper."}])
    write_lines(folder / "tldrs" / "t.jsonl", [{"corpusid": 3, "model": "m", "text": "In short."}])
    citations = [
        {"citationid": n, "citingcorpusid": n + 1, "citedcorpusid": n, "contexts": [f"{title(n)} was shown in [3]."]}
        for n in range(1, 500)
    ]
    unmatched = {"citationid": 900, "citingcorpusid": 1, "citedcorpusid": None, "contexts": ["lost"]}
    without = {"citationid": 901, "citingcorpusid": 1, "citedcorpusid": 2, "contexts": None}
    write_lines(folder / "citations" / "c.jsonl", [*citations, unmatched, without])
    return folder


def answers(index: Path) -> list[tuple[str, float]]:
    hits = Recommender.open(index).search("neural ranking of citation graphs <REF>", k=200)
    return [(hit.paper.paper_id, hit.score) for hit in hits]


def manifest_of(index: Path) -> dict[str, Any]:
    return json.loads((generation_of(index) / "manifest.json").read_bytes())  # type: ignore[no-any-return]


def test_a_build_counts_what_it_read_and_is_the_same_whatever_the_workers(release: Path, tmp_path: Path) -> None:
    manifest = build_index([release], tmp_path / "one", BuildOptions(workers=1))
    counts = manifest.counts
    assert (counts.papers, counts.with_abstract, counts.with_tldr, counts.with_year) == (2000, 1000, 1, 2000)
    assert (counts.citances, counts.with_citances, counts.unmatched, counts.bad) == (499, 499, 1, 0)
    assert sum(source.without_context for source in manifest.sources) == 2
    assert verify(tmp_path / "one") == []
    second = build_index([release], tmp_path / "two", BuildOptions(workers=2))
    assert second.fingerprint == manifest.fingerprint
    found = answers(tmp_path / "one")
    assert answers(tmp_path / "two") == found
    # Adding the same again changes nothing.
    assert add_to_index([release], tmp_path / "one") == manifest
    after = add_to_index([*(release / "papers").iterdir()], tmp_path / "one")
    assert (after.fingerprint, after.counts.duplicates) == (manifest.fingerprint, 2000)
    assert answers(tmp_path / "one") == found


def test_of_two_records_with_one_id_the_last_wins_and_other_files_are_passed_over(tmp_path: Path) -> None:
    write_lines(tmp_path / "s" / "a.jsonl", [{"paper_id": "x", "title": "Old", "abstract": "Lost."}] * 2)
    write_lines(tmp_path / "s" / "b.jsonl", [{"paper_id": "x", "title": "New"}])
    (tmp_path / "s" / "package.json").write_text("{}", encoding="utf-8")
    assert build_index([tmp_path / "s"], tmp_path / "index").counts.duplicates == 2
    paper = open_store(tmp_path / "index").papers(["x"])["x"]
    assert (paper.title, paper.abstract) == ("New", None)  # a JSON Lines record is the whole paper


def test_bad_records_go_to_the_quarantine(tmp_path: Path) -> None:
    source, library = tmp_path / "x.jsonl", tmp_path / "mine.bib"
    good = "".join(json.dumps({"paper_id": n, "title": f"Paper {n}"}) + "\n" for n in range(2000))
    # A bad beginning does not stop a good corpus.
    source.write_text("broken\n" * 50 + good + '{"paper_id": 77, "title": [1]}\n{"paper_id": 78, "ti', encoding="utf-8")
    entries = [f"@book{{b{n}, title={{Book {n}}}}}" for n in range(4)]
    library.write_text("\n".join([*entries[:2], "@book{bad, title={x", *entries[2:]]), encoding="utf-8")
    (tmp_path / "empty.bib").touch()
    manifest = build_index([tmp_path / "empty.bib", library, source], tmp_path / "index")
    assert (manifest.counts.papers, manifest.counts.bad) == (2004, 53)
    lines = (generation_of(tmp_path / "index") / "quarantine.jsonl").read_bytes().splitlines()
    first, *_, last_but_one, last = map(json.loads, lines)
    assert first["reason"].startswith("not BibTeX, line 3: Unexpected block start")
    assert (last_but_one["line"], last_but_one["reason"]) == (2051, "title is a list, not a str: [1]")
    assert (last["shard"], last["reason"].split(":")[0]) == (str(source), "not JSON")
    assert last["beginning"] == '{"paper_id": 78, "ti'


def test_what_cannot_be_built_leaves_the_old_index(demo_index: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_index, index := tmp_path / "index")
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"paper_id": 1, "title": "x"}\n' * 3 + "broken\n", encoding="utf-8")
    lost = write_lines(tmp_path / "abstracts" / "a.jsonl", [{"corpusid": 1, "abstract": "Of no paper."}])
    for source, message in (
        (bad, r"1 of 4 records are bad.*line 4"),
        (bad, r"1 of 4 records are bad.*line 4: not JSON"),  # what was refused once is refused again
        (lost, "hold no paper"),
    ):
        with pytest.raises((BuildError, SourceError), match=message):
            build_index([source], index, BuildOptions(max_bad=0))
    with FileLock(index / ".lock"), pytest.raises(BuildError, match="another process is building"):
        build_index([DEMO], index)
    assert manifest_of(index)["fingerprint"] == manifest_of(demo_index)["fingerprint"]
    assert verify(index) == []


def test_a_folder_that_is_no_index_is_never_overwritten_and_a_link_is_followed(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "one.jsonl", [{"paper_id": "1", "title": "One"}])
    for name, text in (("thesis.tex", "years of work"), ("manifest.json", '{"name": "my extension", "version": 3}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(text, encoding="utf-8")
        with pytest.raises(SourceError, match="is not an index"):
            build_index([source], tmp_path / name)
        assert (tmp_path / name / name).read_text() == text
    (tmp_path / "big").mkdir()
    (link := tmp_path / "link").symlink_to(tmp_path / "big" / "index")
    for _ in range(2):
        build_index([source], link)
    assert link.is_symlink()
    assert generation_of(tmp_path / "big" / "index").name == "2"


def edit(index: Path, **values: object) -> None:
    (generation_of(index) / "manifest.json").write_text(json.dumps({**manifest_of(index), **values}))


def mix(words: Path) -> None:
    shutil.copyfile(words / "title" / "data.csc.index.npy", words / "contents" / "data.csc.index.npy")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index: (generation_of(index) / "manifest.json").unlink(), "has no manifest.json"),
        (lambda index: (index / "CURRENT").write_text("7"), "has no manifest.json"),
        (lambda index: (generation_of(index) / "manifest.json").write_text("{"), "is broken"),
        (lambda index: edit(index, version=99), r"of another version \(version: Input should be 6\)"),
        (lambda index: edit(index, kind="other"), r"\(kind: Input should be 'citerec-index'\)"),
        (lambda index: shutil.rmtree(index), "there is no index"),
        (lambda index: shutil.rmtree(generation_of(index) / "columns"), "cannot be read .* Build the index again"),
        (lambda index: shutil.rmtree(generation_of(index) / "words" / "title"), "cannot be read"),
        (lambda index: mix(generation_of(index) / "words"), "damaged: its files do not fit together"),
    ],
)
def test_what_is_no_index_is_told_apart(
    demo_index: Path, tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    shutil.copytree(demo_index, index := tmp_path / "copy")
    change(index)
    with pytest.raises(IndexUnusableError, match=message):
        Recommender.open(index)


def test_verify_finds_damage_and_writes_nothing(demo_index: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_index, index := tmp_path / "index")
    (index / ".lock").unlink(missing_ok=True)
    before = sorted(index.rglob("*"))
    assert verify(index) == []
    assert sorted(index.rglob("*")) == before
    for name in ("words/contents/data.csc.index.npy", "columns/ids.npy", "columns/years.npy"):
        path = generation_of(index) / name
        data = path.read_bytes()
        path.write_bytes(data[:-10] + bytes([data[-10] ^ 0xFF]) + data[-9:])
        (fault,) = verify(index)
        assert f"{name} is damaged" in fault
        path.unlink()
        assert f"{name} is missing" in verify(index)[0]
        path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(generation_of(index) / "papers.sqlite")) as database, database:
        database.execute("UPDATE papers SET title = 'forged' WHERE paper_id = '900000001'")
    assert "fingerprint" in verify(index)[0]


def garbage(store: Path) -> None:
    """Every page but the first: opening does not notice it."""
    data = store.read_bytes()
    page = int.from_bytes(data[16:18], "big")
    store.write_bytes(data[:page] + b"\x5a" * (len(data) - page))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda store: os.truncate(store, store.stat().st_size // 2),
    "garbage": garbage,
    "empty": lambda store: store.write_bytes(b""),
    "missing": lambda store: store.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_of_the_store_is_said_in_one_line_whenever_it_shows_and_nothing_is_added(
    demo_index: Path, tmp_path: Path, damage: str
) -> None:
    shutil.copytree(demo_index, index := tmp_path / "copy")
    recommender = Recommender.open(index)  # and a search that began before
    DAMAGE[damage](generation_of(index) / "papers.sqlite")
    for search in (
        lambda: Recommender.open(index).search("the role of proteins in cells <REF>", k=100, explain=True),
        lambda: recommender.search("the role of proteins in cells <REF>", k=100),
    ):
        with contextlib.suppress(IndexUnusableError):
            search()
    with pytest.raises(IndexUnusableError, match="paper store"):
        describe(index)
    assert verify(index)
    before = {path: path.read_bytes() for path in generation_of(index).rglob("*") if path.is_file()}
    more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "m", "title": "More"}])
    with pytest.raises(IndexUnusableError, match=r"cannot be read|damaged|paper store"):
        add_to_index([more], index)
    assert {path: path.read_bytes() for path in generation_of(index).rglob("*") if path.is_file()} == before


@pytest.fixture
def index(tmp_path: Path) -> Path:
    papers = [{"paper_id": f"a{number}", "title": f"Okapi {number}"} for number in range(8)]
    build_index([write_lines(tmp_path / "a.jsonl", papers)], tmp_path / "index")
    return tmp_path / "index"


def test_systems_of_an_evaluation_search_one_generation(index: Path, tmp_path: Path) -> None:
    contexts = [Context(context_id=str(number), text="Okapi <REF>", cited_ids=("a1",)) for number in range(3)]
    more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "m", "title": "More okapis"}])

    def replacing(context: Context, _k: int) -> list[tuple[str, float]]:
        if context.context_id == "0":
            add_to_index([more], index)
        return [("a1", 1.0)]

    with pytest.raises(IndexUnusableError, match="was replaced while it was searched"):
        evaluate({"first": replacing, "bm25": "bm25"}, contexts, index=index, metrics="mrr@5")


def test_two_generations_are_kept_and_share_what_did_not_change(index: Path, tmp_path: Path) -> None:
    vectors = write_arrays(tmp_path / "v", np.array([f"a{number}" for number in range(8)]), unit_vectors(8, 16))
    before = generation_of(index)
    with Recommender.open(index) as reader:
        encode_index(index, DenseOptions("any/model", vectors=(vectors,)))
        now = generation_of(index)
        for name in ("papers.sqlite", "columns/ids.npy", "words/contents/vocab.index.json"):
            assert (before / name).samefile(now / name)
        add_to_index([write_lines(tmp_path / "m.jsonl", [{"paper_id": "m", "title": "More okapis"}])], index)
        assert sorted(path.name for path in index.iterdir() if path.name.isdecimal()) == ["2", "3"]
        assert len(reader.search("okapi <REF>", 8, explain=True)) == 8  # its files are gone, and it keeps them
    assert verify(index) == []


def test_a_full_disk_is_said_and_the_next_run_goes_on(index: Path, tmp_path: Path) -> None:
    papers = write_lines(tmp_path / "p.jsonl", [{"paper_id": str(n), "title": f"Okapi {n}"} for n in range(4000)])
    for size in (2_000, 200_000):
        with full_disk(size), pytest.raises(BuildError, match=f"^cannot write {index}"):
            add_to_index([papers], index)
        assert Manifest.read(index).counts.papers == 8
    assert add_to_index([papers], index).counts.papers == 4008
    assert verify(index) == []
