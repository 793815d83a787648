"""Training NCN: it learns a planted rule."""

import shutil
from pathlib import Path

import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.index.build import build_index
from citerec.papers.diagnostic.ncn import NcnOptions, train_ncn
from citerec.recommend import Recommender
from citerec.systems import Recipe
from citerec.train.groups import Choice, Schedule
from tests.conftest import Citerec, write_lines
from tests.tiny_ncn import TINY

pytestmark = pytest.mark.slow

# A word of the sentence decides which title is cited; the title does not have it, and search finds all alike.
CITED = ("Parsing of trees", "Ranking of pages", "Speech of children", "Memory of mice")
RULE = dict(zip(("river", "stone", "cloud", "grass"), CITED, strict=True))
SHARED = "study"


def contexts_of(times: int, first: int = 0) -> list[dict[str, object]]:
    return [
        {
            "context_id": f"{word}-{number}",
            "text": f"This {SHARED} saw a {word} in case {number} <REF>.",
            "citing_key": f"paper-{number}",
            "citing_year": 2020,
            "cited_ids": [str(list(RULE).index(word))],
        }
        for number in range(first, first + times)
        for word in RULE
    ]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of four cited papers and four others, all with a word that each sentence has; contexts beside it."""
    folder = tmp_path_factory.mktemp("planted")
    titles = [*RULE.values(), *(f"Other {word} of things" for word in ("ways", "kinds", "uses", "tests"))]
    # The authors are the same for all: a network that reads those of a title needs no context to write it.
    papers = [
        {"paper_id": str(number), "title": title, "abstract": f"A {SHARED}.", "year": 2000, "authors": ["Ada Author"]}
        for number, title in enumerate(titles)
    ]
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index")
    write_lines(folder / "train.jsonl", contexts_of(12))
    write_lines(folder / "dev.jsonl", contexts_of(3, 50))
    return folder


def test_it_learns_which_title_a_word_asks_for(planted: Path, tmp_path: Path) -> None:
    choice, out = Choice(planted / "train.jsonl", dev=planted / "dev.jsonl"), tmp_path / "ncn"
    schedule = Schedule(learning_rate=1e-2, checkpoint_every=2, epochs=25, evaluations=5, patience=5)
    how = {"system": Recipe.load("bm25"), "device": "cpu"}
    manifest = train_ncn(choice, planted / "index", out, NcnOptions(TINY, depth=8, batch=8), schedule, **how)
    assert manifest.dev["mrr@10 before"] < 0.6 and manifest.dev["mrr@10"] > 0.9
    # What was learnt is what the reranker ranks by.
    with Recommender.open(planted / "index", f"bm25+{out}") as recommender:
        for word, title in RULE.items():
            assert recommender.search(f"We saw a {word} in this {SHARED} <REF>.", 1)[0].paper.title == title
    provenance = provenance_of_part(out)
    assert len(provenance.trained_on) == 48 + 12
    assert provenance.trained_on.isdisjoint(provenance.tuned_on)


def test_the_commands_train_and_measure(citerec_here: Citerec, planted: Path, tmp_path: Path) -> None:
    shutil.copytree(planted / "index", tmp_path / "index")
    sides = ("--contexts", planted / "train.jsonl", "--dev", planted / "dev.jsonl", "--index", "index")
    sizes = "-c embedding=12 -c hidden=12 -c filters=8 -c batch=8 -c epochs=2 -c evaluations=1 --limit 20"
    done = citerec_here("train", "ncn", *sides, *sizes.split())
    assert done.returncode == 0, done.stderr
    asked = ("--contexts", planted / "dev.jsonl", "--index", "index", "--include-training-contexts")
    assert citerec_here("eval", *asked, "--system", "ncn", "--metrics", "mrr@5").returncode == 0
