"""A task that a tiny model can learn: some papers of the demo corpus are cited over and over, the others never."""

import json
from pathlib import Path

import pytest

from tests.conftest import DEMO, write_lines
from tests.tiny_models import write_tiny_scibert

CITED = 10


@pytest.fixture(scope="session")
def toy_contexts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contexts of the demo set that cite one of ten papers; two contexts a citing paper, which is in the corpus."""
    papers, contexts = (
        [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]
        for name in ("papers/papers-00000.jsonl", "contexts.jsonl")
    )
    cited = sorted({context["cited_ids"][0] for context in contexts})[:CITED]
    chosen = [context for context in contexts if context["cited_ids"][0] in cited]
    citing = [paper["corpusid"] for paper in papers if paper["corpusid"] not in cited]
    for number, context in enumerate(chosen):
        context.update(citing_id=citing[number // 2], citing_year=2024)
    return write_lines(tmp_path_factory.mktemp("contexts") / "toy.jsonl", chosen)


@pytest.fixture(scope="session")
def tiny_scibert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    abstracts = (DEMO / "abstracts" / "abstracts-00000.jsonl").read_text(encoding="utf-8").splitlines()
    return write_tiny_scibert(
        tmp_path_factory.mktemp("models") / "scibert", (json.loads(line)["abstract"] for line in abstracts)
    )
