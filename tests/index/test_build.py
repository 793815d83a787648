"""Index directories: built, added to, described, verified, damaged."""

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from citerec.errors import BuildError, IndexUnusableError, SourceError
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.describe import describe, list_indexes, verify
from citerec.index.manifest import Layout, generation_of, is_index, open_store
from citerec.recommend import Recommender
from citerec.systems import Recipe
from tests.conftest import s2ag_paper, write_lines

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


def test_a_build_counts_what_it_read(release: Path, tmp_path: Path) -> None:
    manifest = build_index([release], tmp_path / "x")
    counts = manifest.counts
    assert (counts.papers, counts.with_abstract, counts.with_tldr, counts.with_year) == (2000, 1000, 1, 2000)
    assert (counts.citances, counts.with_citances, counts.unmatched, counts.bad) == (499, 499, 1, 0)
    assert sum(source.without_context for source in manifest.sources) == 2
    assert verify(tmp_path / "x") == []


def test_the_same_sources_give_the_same_index_whatever_the_workers(release: Path, tmp_path: Path) -> None:
    first = build_index([release], tmp_path / "one", BuildOptions(workers=1))
    second = build_index([release], tmp_path / "two", BuildOptions(workers=2))
    assert first.fingerprint == second.fingerprint
    assert answers(tmp_path / "one") == answers(tmp_path / "two")


def test_adding_gives_what_a_build_from_all_sources_gives(release: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    write_lines(
        more / "papers" / "p.jsonl", [s2ag_paper(7, "A new title on galaxies", year=2001), s2ag_paper(5000, "New")]
    )
    write_lines(more / "abstracts" / "a.jsonl", [{"corpusid": 8, "abstract": "Now with an abstract on ranking."}])
    write_lines(
        more / "citations" / "c.jsonl",
        [{"citationid": 7777, "citingcorpusid": 9, "citedcorpusid": 12, "contexts": ["neural citation graphs"]}],
    )
    build_index([release, more], tmp_path / "whole")
    build_index([release], tmp_path / "grown")
    manifest = add_to_index([more], tmp_path / "grown")
    assert asdict(manifest.counts) == json_manifest(tmp_path / "whole")["counts"]
    assert manifest.fingerprint == json_manifest(tmp_path / "whole")["fingerprint"]
    assert answers(tmp_path / "grown") == answers(tmp_path / "whole")
    assert verify(tmp_path / "grown") == []


def test_an_index_keeps_its_fields_when_papers_are_added(release: Path, tmp_path: Path) -> None:
    one = write_lines(tmp_path / "one.jsonl", [{"paper_id": "x", "title": "Neural", "abstract": "Ranking of graphs."}])
    weighted = Recipe.load(None, ["words.weights.abstract=1"])
    for asked in (True, False):
        index = tmp_path / f"index-{asked}"
        build_index([release], index, BuildOptions(layout=Layout(abstract_field=asked)))
        manifest = add_to_index([one], index, BuildOptions(layout=Layout(abstract_field=not asked)))
        assert manifest.abstract_field == json_manifest(index)["abstract_field"] == asked
    hits = Recommender.open(tmp_path / "index-True", weighted).search("ranking graphs <REF>", k=2001)
    assert "x" in {hit.paper.paper_id for hit in hits}


def json_manifest(index: Path) -> dict[str, object]:
    return json.loads((generation_of(index) / "manifest.json").read_bytes())  # type: ignore[no-any-return]


def test_adding_the_same_again_changes_nothing(release: Path, tmp_path: Path) -> None:
    before = build_index([release], tmp_path / "x")
    found = answers(tmp_path / "x")
    assert add_to_index([release], tmp_path / "x") == before
    after = add_to_index([*(release / "papers").iterdir()], tmp_path / "x")
    assert after.fingerprint == before.fingerprint
    assert after.counts.duplicates == 2000
    assert answers(tmp_path / "x") == found


def test_of_two_records_with_one_id_the_last_wins(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", [{"paper_id": "x", "title": "Old", "abstract": "Lost."}] * 2)
    second = write_lines(tmp_path / "b.jsonl", [{"paper_id": "x", "title": "New"}])
    assert build_index([first, second], tmp_path / "index").counts.duplicates == 2
    paper = open_store(tmp_path / "index").papers(["x"])["x"]
    assert (paper.title, paper.abstract) == ("New", None)  # a JSON Lines record is the whole paper


def test_bad_records_go_to_the_quarantine(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    good = "".join(json.dumps({"paper_id": n, "title": f"Paper {n}"}) + "\n" for n in range(30))
    source.write_text(good + '{"paper_id": 77, "title": [1]}\n{"paper_id": 78, "ti', encoding="utf-8")
    manifest = build_index([source], tmp_path / "index", BuildOptions(max_bad=0.1))
    assert (manifest.counts.papers, manifest.counts.bad) == (30, 2)
    lines = [
        json.loads(line) for line in (generation_of(tmp_path / "index") / "quarantine.jsonl").read_bytes().splitlines()
    ]
    assert [(line["line"], line["reason"].split(":")[0]) for line in lines] == [
        (31, "title is a list, not a str"),
        (32, "not JSON"),
    ]
    assert lines[0]["shard"] == str(source)
    assert lines[1]["beginning"] == '{"paper_id": 78, "ti'


def test_too_many_bad_records_stop_the_build_and_leave_the_old_index(release: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    before = build_index([release], index)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"paper_id": 1, "title": "x"}\n' * 3 + "broken\n", encoding="utf-8")
    with pytest.raises(BuildError, match=r"1 of 4 records are bad.*line 4"):
        build_index([bad], index, BuildOptions(max_bad=0))
    assert json_manifest(index)["fingerprint"] == before.fingerprint
    assert verify(index) == []


def test_an_empty_first_shard_is_read_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.bib").touch()
    good = write_lines(tmp_path / "b.jsonl", [{"paper_id": 1, "title": "One"}])
    assert build_index([tmp_path / "a.bib", good], tmp_path / "index").counts.papers == 1
    with pytest.raises(SourceError, match="hold no paper"):
        build_index([tmp_path / "a.bib"], tmp_path / "empty")


def test_one_bad_entry_does_not_stop_a_small_library(tmp_path: Path) -> None:
    library = tmp_path / "mine.bib"
    entries = [f"@book{{b{n}, title={{Book {n}}}}}" for n in range(4)]
    library.write_text("\n".join([*entries[:2], "@book{bad, title={x", *entries[2:]]), encoding="utf-8")
    counts = build_index([library], tmp_path / "index").counts
    assert (counts.papers, counts.bad) == (4, 1)
    (line,) = (generation_of(tmp_path / "index") / "quarantine.jsonl").read_bytes().splitlines()
    assert json.loads(line)["reason"].startswith("not BibTeX, line 3: Unexpected block start")


def test_sources_without_a_paper_are_an_error(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "abstracts" / "a.jsonl", [{"corpusid": 1, "abstract": "Of no paper."}])
    with pytest.raises(SourceError, match="hold no paper"):
        build_index([source], tmp_path / "index")
    assert not is_index(tmp_path / "index")


def test_a_folder_that_is_no_index_is_never_overwritten(release: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(SourceError, match="is not an index"):
        build_index([release], precious)
    assert (precious / "thesis.tex").exists()


def test_a_reader_keeps_its_index_while_another_takes_its_place(release: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    build_index([release], index)
    reader = Recommender.open(index)
    before = reader.search("neural ranking <REF>", k=5)
    build_index([write_lines(tmp_path / "o.jsonl", [{"paper_id": "only", "title": "Only neural"}])], index)
    assert reader.search("neural ranking <REF>", k=5) == before
    assert [hit.paper.paper_id for hit in Recommender.open(index).search("neural <REF>")] == ["only"]


def test_two_builders_of_one_index_do_not_meet(release: Path, tmp_path: Path) -> None:
    from filelock import FileLock

    (tmp_path / "index").mkdir()
    with FileLock(tmp_path / "index" / ".lock"), pytest.raises(BuildError, match="another process is building"):
        build_index([release], tmp_path / "index")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index: (generation_of(index) / "manifest.json").unlink(), "has no manifest.json"),
        (lambda index: (index / "CURRENT").unlink(), "has no manifest.json"),
        (lambda index: (index / "CURRENT").write_text("7"), "has no manifest.json"),
        (lambda index: (generation_of(index) / "manifest.json").write_text("{"), "is broken"),
        (lambda index: edit(index, version=99), r"of another version \(version: Input should be 6\)"),
        (lambda index: edit(index, kind="other"), r"\(kind: Input should be 'citerec-index'\)"),
        (lambda index: shutil.rmtree(index), "there is no index"),
        (lambda index: shutil.rmtree(generation_of(index) / "columns"), "cannot be read .* Build the index again"),
        (lambda index: shutil.rmtree(generation_of(index) / "words"), "cannot be read .* Build the index again"),
        (lambda index: shutil.rmtree(generation_of(index) / "words" / "title"), "cannot be read"),
        (lambda index: mix(generation_of(index) / "words"), "damaged: its files do not fit together"),
    ],
)
def test_what_is_no_index_is_told_apart(demo_index: Path, tmp_path: Path, change: object, message: str) -> None:
    index = tmp_path / "copy"
    shutil.copytree(demo_index, index)
    change(index)  # type: ignore[operator]
    with pytest.raises(IndexUnusableError, match=message):
        Recommender.open(index)


def edit(index: Path, **values: object) -> None:
    path = generation_of(index) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def mix(words: Path) -> None:
    shutil.copyfile(words / "title" / "data.csc.index.npy", words / "contents" / "data.csc.index.npy")


def test_verify_finds_damage(demo_index: Path, tmp_path: Path) -> None:
    def damaged(name: str) -> Path:
        shutil.copytree(demo_index, index := tmp_path / name)
        return generation_of(index)

    for number, name in enumerate(("words/contents/data.csc.index.npy", "columns/ids.npy", "columns/years.npy")):
        flipped = damaged(str(number))
        data = bytearray((flipped / name).read_bytes())
        data[-10] ^= 0xFF
        (flipped / name).write_bytes(data)
        (fault,) = verify(flipped.parent)
        assert f"{name} is damaged" in fault
        (flipped / name).unlink()
        assert f"{name} is missing" in verify(flipped.parent)[0]

    edited = damaged("store")
    with sqlite3.connect(edited / "papers.sqlite") as database:
        database.execute("UPDATE papers SET title = 'forged' WHERE paper_id = '900000001'")
    assert "fingerprint" in verify(edited.parent)[0]

    torn = damaged("torn")
    os.truncate(torn / "papers.sqlite", (torn / "papers.sqlite").stat().st_size // 2)
    assert "paper store" in verify(torn.parent)[0]


def test_verify_writes_nothing(demo_index: Path, tmp_path: Path) -> None:
    """An index that may only be read is whole too."""
    shutil.copytree(demo_index, index := tmp_path / "index")
    (index / ".lock").unlink(missing_ok=True)
    before = sorted(index.rglob("*"))
    assert verify(index) == []
    assert sorted(index.rglob("*")) == before


def test_an_index_describes_itself(demo_index: Path) -> None:
    description = describe(demo_index)
    assert description.manifest.counts.papers == 252
    assert sum(description.years.values()) == 252
    assert next(iter(description.fields.values())) >= 14
    (listed,) = list_indexes(demo_index.parent)
    assert listed["papers"] == description.manifest.counts.papers


def test_a_folder_with_some_other_manifest_is_never_overwritten(release: Path, tmp_path: Path) -> None:
    extension = tmp_path / "extension"
    extension.mkdir()
    (extension / "manifest.json").write_text('{"name": "my extension", "version": 3}', encoding="utf-8")
    with pytest.raises(SourceError, match="is not an index"):
        build_index([release], extension)
    assert (extension / "manifest.json").exists()


def test_what_was_refused_once_is_refused_again(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"paper_id": 1, "title": "x"}\nbroken\nbroken\n', encoding="utf-8")
    for _ in range(2):
        with pytest.raises(BuildError, match="2 of 3 records are bad"):
            build_index([bad], tmp_path / "index", BuildOptions(max_bad=0))


def test_a_bad_beginning_does_not_stop_a_good_corpus(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    good = "".join(json.dumps({"paper_id": n, "title": f"Paper {n}"}) + "\n" for n in range(20_000))
    source.write_text("broken\n" * 100 + good, encoding="utf-8")
    assert build_index([source], tmp_path / "index").counts.bad == 100


def test_a_link_is_followed_not_replaced(release: Path, tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "big" / "index")
    for _ in range(2):
        build_index([release], link)
    assert link.is_symlink()
    assert generation_of(tmp_path / "big" / "index").name == "2"


def test_a_damaged_store_is_told_apart(demo_index: Path, tmp_path: Path) -> None:
    index = tmp_path / "copy"
    shutil.copytree(demo_index, index)
    (generation_of(index) / "papers.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(IndexUnusableError, match="paper store"):
        Recommender.open(index)
    (generation_of(index) / "papers.sqlite").unlink()
    with pytest.raises(IndexUnusableError, match="paper store"):
        describe(index)


def _truncated(store: Path) -> None:
    os.truncate(store, store.stat().st_size // 2)


def _garbage(store: Path) -> None:
    """Every page but the first: opening does not notice it."""
    data = store.read_bytes()
    page = int.from_bytes(data[16:18], "big")
    store.write_bytes(data[:page] + b"\x5a" * (len(data) - page))


def _without_citations(store: Path) -> None:
    with contextlib.closing(sqlite3.connect(store)) as database:
        database.execute("DROP TABLE citations")


def _with_broken_json(store: Path) -> None:
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE papers SET fields_of_study = '[\"Bio', authors = '[\"A'")


DAMAGE = [
    _truncated,
    _garbage,
    _without_citations,
    _with_broken_json,
    lambda store: store.write_bytes(b""),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_of_the_store_is_said_in_one_line_whenever_it_shows(
    demo_index: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    index = tmp_path / "copy"
    shutil.copytree(demo_index, index)
    recommender = Recommender.open(index)  # and a search that began before
    damage(generation_of(index) / "papers.sqlite")
    for search in (
        lambda: Recommender.open(index).search("the role of proteins in cells <REF>", k=100, explain=True),
        lambda: recommender.search("the role of proteins in cells <REF>", k=100),
    ):
        with contextlib.suppress(IndexUnusableError):
            search()
    if damage is not _without_citations:
        with pytest.raises(IndexUnusableError, match="paper store"):
            describe(index)
    assert verify(index)


def test_a_sentence_that_the_store_has_lost_is_told(tmp_path: Path) -> None:
    papers = [{"paper_id": "a", "title": "Okapi"}, {"paper_id": "b", "title": "Citing"}]
    write_lines(tmp_path / "papers.jsonl", papers)
    cited = {"context_id": "1", "text": "Giraffes do so <REF>.", "citing_id": "b", "cited_ids": ["a"]}
    write_lines(tmp_path / "contexts.jsonl", [cited])
    index = tmp_path / "index"
    build_index([tmp_path / "papers.jsonl"], index, BuildOptions(citances=(tmp_path / "contexts.jsonl",)))
    assert Recommender.open(index).search("giraffes <REF>")[0].citance
    with contextlib.closing(sqlite3.connect(generation_of(index) / "papers.sqlite")) as database, database:
        database.execute("UPDATE citations SET contexts = '[]'")
    with pytest.raises(IndexUnusableError, match="lacks a sentence in which b cites a"):
        Recommender.open(index).search("giraffes <REF>")


# What is wrong within records that stay is found by `index verify` only: an update does not read them.
@pytest.mark.parametrize("damage", [damage for damage in DAMAGE if damage is not _with_broken_json])
def test_nothing_is_added_to_a_damaged_store(demo_index: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    index = tmp_path / "copy"
    shutil.copytree(demo_index, index)
    damage(generation_of(index) / "papers.sqlite")
    before = {path: path.read_bytes() for path in generation_of(index).rglob("*") if path.is_file()}
    more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "m", "title": "More"}])
    with pytest.raises(IndexUnusableError, match=r"cannot be read|damaged"):
        add_to_index([more], index)
    assert {path: path.read_bytes() for path in generation_of(index).rglob("*") if path.is_file()} == before


def test_other_files_beside_the_papers_are_passed_over(tmp_path: Path) -> None:
    write_lines(tmp_path / "s" / "mine.jsonl", [{"paper_id": "a", "title": "Okapi"}])
    (tmp_path / "s" / "package.json").write_text("{}", encoding="utf-8")
    assert build_index([tmp_path / "s"], tmp_path / "index").counts.papers == 1
