"""CiteBART: it learns a planted rule, and what it writes is found in the index."""

from pathlib import Path

import pytest

from citerec import Recipe, Recommender
from citerec.contexts.provenance import provenance_of_part
from citerec.errors import QueryError
from citerec.index.build import build_index
from citerec.papers.citebart.model import CiteBartOptions, citation_of, train_citebart
from citerec.records import Paper
from citerec.train.groups import Choice, Schedule
from tests.conftest import Citerec, write_lines
from tests.tiny_seq2seq import write_tiny_bart

pytestmark = pytest.mark.slow


# A word of the sentence decides who is cited. Two papers have the same author and year.
CITED = {"river": "0", "stone": "1", "cloud": "2", "grass": "3"}
PAPERS = [
    Paper("0", title="Parsing", year=2001, authors=("Ada Lovelace",)),
    Paper("1", title="Ranking", year=2002, authors=("Alan Turing", "Grace Hopper")),
    Paper("2", title="Speech", year=2003, authors=("Édouard Lucas", "Emmy Noether", "Emil Post")),
    Paper("3", title="Memory", year=2004, authors=("Kurt Gödel",)),
    Paper("4", title="Grass and memory of mice", year=2004, authors=("Karl Gödel",)),
    Paper("5", title="Nobody", year=2005),
    Paper("6", title="No year", authors=("Alonzo Church",)),
]
BEGINNINGS = ("this saw", "we know of", "others like", "much on", "there is")


def contexts_of(first: int, times: int) -> list[dict[str, object]]:
    return [
        {"context_id": f"{word}-{number}", "text": f"{BEGINNINGS[number % len(BEGINNINGS)]} {word} <REF> .",
         "citing_key": f"paper-{number}", "citing_year": 2020, "cited_ids": [paper_id]}
        for number in range(first, first + times)
        for word, paper_id in CITED.items()
    ]  # fmt: skip


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("citebart")
    records = [
        {"paper_id": one.paper_id, "title": one.title, "year": one.year, "authors": list(one.authors)} for one in PAPERS
    ]
    build_index([write_lines(folder / "papers.jsonl", records)], folder / "index")
    write_lines(folder / "train.jsonl", contexts_of(0, 12))
    write_lines(folder / "dev.jsonl", contexts_of(50, 3))
    words = [*map(citation_of, PAPERS), *BEGINNINGS, *CITED, "<REF> ."]
    write_tiny_bart(folder / "base", words)
    return folder


def test_it_learns_who_is_cited(planted: Path, tmp_path: Path) -> None:
    """In sentences that begin as none did in training; of one author and year, words decide."""
    trained = tmp_path / "citebart"
    manifest = train_citebart(
        Choice(planted / "train.jsonl", planted / "dev.jsonl"),
        planted / "index",
        trained,
        CiteBartOptions(str(planted / "base"), 32, 8),
        Schedule(learning_rate=1e-2, epochs=30, evaluations=4, first=True, patience=4),
        device="cpu",
    )
    assert manifest.dev["accuracy before"] < 0.5 < 0.9 < manifest.dev["accuracy"]
    settings = [f"citebart.model={trained}", "citebart.beams=8", "citebart.max_input_tokens=32"]
    with Recommender.open(planted / "index", Recipe.load("citebart", settings)) as recommender:
        for word, paper_id in CITED.items():
            hits = recommender.search(f"there is {word} <REF> .", 3)
            assert hits[0].paper.paper_id == ("4" if word == "grass" else paper_id)
        assert [hit.paper.paper_id for hit in recommender.search("memory grass <REF>", 2)] == ["4", "3"]
        (remark,) = recommender.remarks()
        assert "citations that were written" in remark
        assert recommender.remarks() == ()
        with pytest.raises(QueryError):
            recommender.search("<REF>")
    settings += ["citebart.beams=4", "citebart.constrained=true"]
    with Recommender.open(planted / "index", Recipe.load("citebart", settings)) as recommender:
        hits = recommender.search("there is river <REF> .", 7)
        assert {hit.paper.paper_id for hit in hits} == {"0", "1", "2", "3", "4"}
        assert hits[0].paper.paper_id == "0"
        assert recommender.remarks() == ()
    provenance = provenance_of_part(trained)  # sentences and citing papers
    assert (provenance.unsaid, len(provenance.trained_on), len(provenance.tuned_on)) == ((), 20 + 12, 12 + 3)


def test_the_command_trains(citerec_here: Citerec, planted: Path, tmp_path: Path) -> None:
    given = ("--contexts", planted / "train.jsonl", "--dev", planted / "dev.jsonl", "--index", planted / "index")
    small = "-c epochs=1 -c evaluations=1 -c max_input_tokens=32 --limit 8 --out model".split()
    done = citerec_here("train", "citebart", *given, "--base", planted / "base", *small)
    assert done.returncode == 0, done.stderr
    assert "model trained: accuracy" in done.stdout
    assert (tmp_path / "model" / "manifest.json").is_file()
