"""Profiles: they are what the formula says in each year, and nothing newer leaks."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from citerec import Context, Recipe, Recommender
from citerec.contexts.topic import LeakRules, Topic, clean, topics_of
from citerec.errors import IndexUnusableError, SettingsError
from citerec.files.progress import no_progress
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.describe import verify
from citerec.index.manifest import generation_of, open_store
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import Encoder
from citerec.retrieve.dense import ProfileRetriever
from citerec.systems import default_system
from tests.conftest import write_lines
from tests.tiny_models import write_tiny_scibert

WORDS = "graph ranking retrieval neural lexical query citation corpus entity passage sparse dense kernel".split()
PAPERS = 60
YEARS = range(1995, 2015)
QUERY = "dense kernel passage <REF>"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Papers that cite each other, and are cited by papers that the index lacks; some citing years are unknown."""
    folder, draws = tmp_path_factory.mktemp("profile"), random.Random(0)
    papers = [
        {"paper_id": f"p{n}", "title": " ".join(draws.choices(WORDS, k=4)), "year": draws.choice(YEARS)}
        for n in range(PAPERS)
    ]
    contexts = [
        {
            "context_id": f"c{n}",
            "text": f"{' '.join(draws.choices(WORDS, k=6))} <REF>.",
            "citing_id": draws.choice([f"p{draws.randrange(PAPERS)}", f"elsewhere{n % 5}"]),
            "citing_year": draws.choice([None, *YEARS]),
            "cited_ids": [f"p{draws.randrange(0, PAPERS, 2)}"],
        }
        for n in range(300)
    ]
    model = str(write_tiny_scibert(folder / "tiny", [" ".join(WORDS)]))
    citances = write_lines(folder / "contexts.jsonl", contexts)
    options = BuildOptions(citances=(citances,), dense=DenseOptions(model))
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index", options)
    ProfileRetriever.encode(folder / "index", None, no_progress)
    return folder / "index"


CONTEXTS = [
    Context(text="dense passage retrieval <REF>", context_id="a"),
    Context(text="dense passage retrieval <REF>", context_id="b", citing_year=2003),
    Context(text="a kernel for graph entity ranking <REF>", context_id="c", citing_id="p7", citing_year=2010),
    Context(text="sparse lexical query <REF>", context_id="d", citing_id="elsewhere1", citing_year=1994),
]


def encoded(index: Path, texts: Sequence[str]) -> NDArray[np.float64]:
    """Vectors as the index keeps them."""
    encoder = Encoder.open(str(index.parent / "tiny"), max_tokens=192)
    return encoder.encode(texts).astype(np.float16).astype(np.float64)


def by_formula(index: Path, topic: Topic, vector: NDArray[np.floating]) -> dict[str, float]:
    """Cosines of all profiles, paper by paper, from the store alone."""
    rules = LeakRules().restrict(topic)
    store = open_store(index)
    titles = {one.paper_id: one.title for one in store.all_papers()}
    said: dict[tuple[str, str, int | None], list[str]] = {}
    for one in store.searchable_citances():
        said.setdefault((one.cited.paper_id, one.citing_id, one.citing_year), []).append(clean(one.text))
    store.close()
    own = dict(zip(titles, encoded(index, list(titles.values())), strict=True))
    vectors = dict(zip(said, encoded(index, [" ".join(sentences) for sentences in said.values()]), strict=True))
    parts: dict[str, list[NDArray[np.float64]]] = {}
    for (cited, citing, year), sentence in vectors.items():
        known = rules.as_of_year is None or (year is not None and year <= rules.as_of_year)
        if known and citing not in rules.citing_ids:
            parts.setdefault(cited, []).append(4.0 * sentence + 2.0 * own.get(citing, np.zeros(32)))
    scores = {}
    for paper_id, mine in own.items():
        profile = mine + np.mean(parts[paper_id], axis=0) if paper_id in parts else mine
        scores[paper_id] = float(profile @ vector / np.linalg.norm(profile))
    return scores


@pytest.mark.parametrize("settings", [[], ["profile.depth=60"]], ids=["all", "some"])
def test_scores_are_those_of_the_formula_in_each_year(index: Path, settings: list[str]) -> None:
    with Recommender.open(index, Recipe.load("profile", settings)) as opened:
        for topic, found in opened.candidates(topics_of(CONTEXTS, opened.store), 60):
            (retriever,) = opened.retrievers
            vector = np.asarray(retriever.prepare([topic])[0], np.float64)
            expected = by_formula(index, topic, vector)
            rules = LeakRules().restrict(topic)
            years = opened.store.years(expected)
            allowed = {
                paper_id: score
                for paper_id, score in expected.items()
                if paper_id not in rules.citing_ids and (years[paper_id] or 0) <= (rules.as_of_year or 9999)
            }
            assert {one.paper_id for one in found} == set(allowed)
            for one in found:
                assert one.score == pytest.approx(allowed[one.paper_id], abs=1e-3)
            assert any(one.citance for one in found) == (topic.citing_year != 1994)


def test_what_is_missing_or_old_is_said_with_its_remedy(index: Path, tmp_path: Path) -> None:
    shutil.copytree(index.parent, tmp_path / "here")
    here = tmp_path / "here" / "index"
    write_lines(tmp_path / "new.jsonl", [{"paper_id": "new", "title": "graph entity"}])
    assert verify(here) == []
    with Recommender.open(here) as opened:
        assert opened.recipe.retrievers.keys() == {"words", "dense", "profile", "authors"}
        assert opened.search(QUERY, 5)
    add_to_index([tmp_path / "new.jsonl"], here)
    assert verify(here) == [f"{generation_of(here) / 'profile'} was made for other papers: make it again"]
    assert default_system(here) == "hybrid+ltr"
    with pytest.raises(IndexUnusableError, match="made for other papers") as raised:
        Recommender.open(here, "profile")
    assert "citerec index encode" in raised.value.remedy
    assert "--retriever profile" in raised.value.remedy
    ProfileRetriever.encode(here, DenseOptions("unused"), no_progress)
    assert default_system(here) == "hybrid+profile"
    with Recommender.open(here, "profile") as opened:
        assert opened.search("graph entity <REF>", 3)
    shutil.rmtree(generation_of(here) / "profile")
    with pytest.raises(SettingsError, match="has no vectors of citing sentences"):
        Recommender.open(here, "profile")
    build_index([tmp_path / "new.jsonl"], tmp_path / "bare")
    with pytest.raises(SettingsError, match="has no citing sentences"):
        ProfileRetriever.encode(tmp_path / "bare", None, no_progress)
