"""A corpus of twelve papers, and a model that learnt to name them: the word of a sentence says which is cited."""

from pathlib import Path

import pytest

from citerec.index.build import build_index
from tests.conftest import s2ag_paper, write_lines
from tests.tiny_causal import END, START, write_tiny_opt

WORDS = ("parsing", "tagging", "ranking", "vision", "speech", "graphs", "search", "poetry")
PAPERS = [
    *(
        s2ag_paper(
            number,
            f"A Study of {word.title()}: Methods, Data",
            year=2000 + number,
            authors=[{"name": f"A. {word[:3].title()}ley"}],
        )
        for number, word in enumerate(WORDS, 1)
    ),
    s2ag_paper(11, "Introduction", year=1990, authors=[{"name": "Ada Roe"}]),
    s2ag_paper(12, "Introduction", year=1991, authors=[{"name": "Bo Poe"}, {"name": "Ada Roe"}]),
    s2ag_paper(13, "The Poincaré-style embedding", year=1992, authors=[]),
    s2ag_paper(14, "To be, or not to be", year=1993, authors=[{"name": "Will S."}]),
]
LOST = "Mist"
BEGINNINGS = ("we rely on", "others improve", "much is known of", "there is new work on", "as usual we begin with")


def sentence(word: str, beginning: str = "recent work extends") -> str:
    return f"{beginning} {word}"


def reference(word: str) -> str:
    return f" A Study of {word.title()}: Methods, Data, {word[:3].title()}ley"


@pytest.fixture(scope="session")
def small_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("galactica")
    write_lines(folder / "corpus" / "papers.jsonl", PAPERS)
    build_index([folder / "corpus"], folder / "index")
    return folder / "index"


@pytest.fixture(scope="session")
def namer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that names the papers, and after "mist" one that the index does not have."""
    lines = [f"{sentence(word, start)} {START}{reference(word)}{END}" for start in BEGINNINGS for word in WORDS]
    lines += [f"{sentence('mist', start)} {START} Unknown Titles in the {LOST}, Low{END}" for start in BEGINNINGS]
    others = [sentence("recent"), *(f" {paper['title']}, Roe Poe S." for paper in PAPERS)]
    return write_tiny_opt(tmp_path_factory.mktemp("models") / "namer", [*lines, *others], lines, steps=150)
