"""A corpus with a planted rule: what is said and what is cited share no word, but each way to say has its papers."""

import random
from pathlib import Path

import pytest

from citerec.index.build import build_index
from tests.conftest import write_lines
from tests.tiny_hatten import write_tiny_glove

THEMES = 12
PAPERS = 8
LETTERS = "abcdefghijkl"


def words_of(theme: int, kind: str) -> list[str]:
    return [f"{kind}{LETTERS[theme]}{letter}" for letter in LETTERS[:6]]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `index`, `contexts.jsonl` and `glove.txt`."""
    folder, draws = tmp_path_factory.mktemp("planted"), random.Random(0)
    papers = [
        {
            "paper_id": f"p{theme}-{number}",
            "title": " ".join(draws.sample(words_of(theme, "title"), 4)),
            "abstract": " ".join(draws.sample(words_of(theme, "title"), 4)) if number % 2 else None,
            "year": 2000 + number,
        }
        for theme in range(THEMES)
        for number in range(PAPERS)
    ]
    contexts = [
        {
            "context_id": f"c{number}",
            "text": f"{' '.join(draws.sample(words_of(theme, 'said'), 4))} <REF>.",
            "citing_id": draws.choice([f"x{number // 2}", f"p{(theme + 1) % THEMES}-7"]),
            "citing_year": 2006 + number % 4,
            "cited_ids": [f"p{theme}-{draws.randrange(PAPERS - 2)}"],
        }
        for number in range(360)
        for theme in [number % THEMES]
    ]
    write_lines(folder / "papers.jsonl", papers)
    write_lines(folder / "contexts.jsonl", contexts)
    texts = [" ".join(words_of(theme, kind)) for theme in range(THEMES) for kind in ("title", "said")]
    write_tiny_glove(folder / "glove.txt", texts, dimension=32)
    build_index([folder / "papers.jsonl"], folder / "index")
    return folder
