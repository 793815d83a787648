"""Contexts as citances (`--citances`): every sentence kept, years known, nothing read unasked."""

import re
from pathlib import Path

import pytest

from citerec.corpus.reading import RecordError
from citerec.corpus.store import SqliteStore, changes_of
from citerec.corpus.tabular import parse_citances
from citerec.errors import SourceError
from citerec.index.build import BuildOptions, add_to_index, build_index, open_store
from citerec.recommend import Recommender
from citerec.records import Citation, Context, Paper
from tests.conftest import Citerec, write_lines

PAPERS = [
    {"paper_id": "a", "title": "alpha", "year": 1999},
    {"paper_id": "b", "title": "beta", "year": 2000},
    {"paper_id": "c", "title": "gamma", "year": 2005},
]


def context(text: str, *cited: str, **fields: object) -> dict[str, object]:
    return {"text": text, "cited_ids": list(cited), "citing_key": "some paper", **fields}


CONTEXTS = [
    context("The zebra tagger <REF> is fast.", "a", context_id="1", citing_year=2010, intent="method"),
    context("The zebra tagger of <REF> again.", "a", context_id="2", citing_year=2010),
    context("Okapi ranks well <REF>.", "a", "b", context_id="3", citing_id="c", citing_year=1),
    context("No one is cited <REF>.", context_id="4"),
    context("Elsewhere <REF>.", "unknown", context_id="5"),
]


# Fingerprint of one paper and one citation without a year: it must not change, or indexes have to be built again.
BEFORE = "ce83e041c1bcd8e8b06a3a8b8b36f42b"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_lines(tmp_path / "papers.jsonl", PAPERS), write_lines(tmp_path / "contexts.jsonl", CONTEXTS)


def test_sentences_find_the_papers_they_cite(files: tuple[Path, Path], tmp_path: Path) -> None:
    papers, contexts = files
    manifest = build_index([papers], tmp_path / "index", BuildOptions(citances=(contexts,)))
    assert (manifest.counts.citances, manifest.counts.with_citances, manifest.counts.unmatched) == (4, 2, 1)
    assert manifest.counts.duplicates == 0
    store = open_store(tmp_path / "index")
    assert len(store.citances("a", "some_paper")) == 2
    store.close()
    with Recommender.open(tmp_path / "index") as recommender:
        assert [hit.paper.paper_id for hit in recommender.search("a fast zebra tagger", 1)] == ["a"]
        # A sentence is searched for those who write no earlier than it was written. The citing paper's own record says
        # 2005, whatever the context says.
        for sentence, year, found in (
            ("zebra tagger", 2009, 0),
            ("zebra tagger", 2010, 1),
            ("okapi", 2004, 0),
            ("okapi", 2005, 2),
        ):
            assert len(recommender.search(Context(text=sentence, citing_year=year), 3)) == found


def test_adding_citances_is_as_building_with_them(files: tuple[Path, Path], tmp_path: Path) -> None:
    papers, contexts = files
    whole = build_index([papers], tmp_path / "whole", BuildOptions(citances=(contexts,)))
    build_index([papers], tmp_path / "index")
    assert add_to_index([], tmp_path / "index", BuildOptions(citances=(contexts,))).fingerprint == whole.fingerprint


def test_contexts_beside_papers_are_not_read_unasked(files: tuple[Path, Path], tmp_path: Path) -> None:
    manifest = build_index([tmp_path], tmp_path / "index")
    assert (manifest.counts.papers, manifest.counts.citances) == (3, 0)


def test_from_the_command_line(files: tuple[Path, Path], citerec_here: Citerec) -> None:
    papers, contexts = files
    built = citerec_here("index", "build", papers, "--out", "index", "--citances", contexts)
    assert built.returncode == 0, built.stderr
    assert re.search(r"with citing sentences +2 \(\d+%\), 4 sentences", built.stdout)
    missing = citerec_here("index", "add", "index", "--citances", "nowhere.jsonl")
    assert missing.returncode == 2
    assert "nowhere.jsonl does not exist" in missing.stderr


def test_a_folder_is_no_file_of_contexts(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is no file"):
        build_index([files[0]], tmp_path / "index", BuildOptions(citances=(tmp_path,)))


@pytest.mark.parametrize(
    "record",
    [
        {"text": "No marker.", "cited_ids": ["a"], "citing_key": "k"},
        {"text": "<REF> and <REF>.", "cited_ids": ["a"], "citing_key": "k"},
        {"text": "Who wrote <REF>?", "cited_ids": ["a"]},
        {"text": "A list <REF>.", "cited_ids": "a", "citing_key": "k"},
        {"text": "A year <REF>.", "cited_ids": ["a"], "citing_key": "k", "citing_year": "soon"},
        {"cited_ids": ["a"], "citing_key": "k"},
    ],
)
def test_what_is_no_context_is_set_aside(record: dict[str, object]) -> None:
    with pytest.raises(RecordError):
        parse_citances(record)


def test_sentences_without_an_id_are_told_apart() -> None:
    ids = {parse_citances(context(text, "a"))[0].citation_id for text in ("One <REF>.", "Two <REF>.", "One <REF>.")}
    assert len(ids) == 2


def store_with(path: Path, *records: Citation) -> SqliteStore:
    store = SqliteStore(path)
    numbered = [Paper("a", "alpha"), *records]
    store.write(changes_of(numbered))
    return store


def test_a_year_changes_the_fingerprint_and_none_does_not(tmp_path: Path) -> None:
    plain = store_with(tmp_path / "plain", Citation("x", "a", ("s",)))
    dated = store_with(tmp_path / "dated", Citation("x", "a", ("s",), citing_year=2001))
    assert plain.fingerprint() == BEFORE
    assert dated.fingerprint() != BEFORE
