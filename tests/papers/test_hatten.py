"""HAtten: its network, its vectors in an index, and a rule that it learns."""

import random
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import topics_of
from citerec.errors import ModelError
from citerec.files.progress import no_progress
from citerec.index.build import build_index, open_store
from citerec.papers.diagnostic.hatten import METRIC, Hatten, HattenManifest, HattenOptions, Pool, train_hatten
from citerec.train.groups import Choice, Schedule
from tests.conftest import write_lines
from tests.tiny_hatten import tiny_hatten, write_tiny_glove
from tests.tiny_models import write_tiny_scibert

THEMES = 12
PAPERS = 8
LETTERS = "abcdefghijkl"


def words_of(theme: int, kind: str) -> list[str]:
    return [f"{kind}{LETTERS[theme]}{letter}" for letter in LETTERS[:6]]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`index`, `contexts.jsonl`, `glove.txt`: each way to say has its papers, which share no word with it."""
    folder, draws = tmp_path_factory.mktemp("planted"), random.Random(0)
    papers: list[dict[str, object]] = []
    for theme in range(THEMES):
        for number in range(PAPERS):
            title, abstract = (" ".join(draws.sample(words_of(theme, "title"), 4)) for _ in range(2))
            paper = {"paper_id": f"p{theme}-{number}", "title": title, "year": 2000 + number}
            papers.append({**paper, "abstract": abstract if number % 2 else None})
    contexts = [
        {
            "context_id": f"c{number}",
            "text": f"{' '.join(draws.sample(words_of(number % THEMES, 'said'), 4))} <REF>.",
            "citing_id": draws.choice([f"x{number // 2}", f"p{(number + 1) % THEMES}-7"]),
            "citing_year": 2006 + number % 4,
            "cited_ids": [f"p{number % THEMES}-{draws.randrange(PAPERS - 2)}"],
        }
        for number in range(360)
    ]
    write_lines(folder / "papers.jsonl", papers)
    write_lines(folder / "contexts.jsonl", contexts)
    texts = [" ".join(words_of(theme, kind)) for theme in range(THEMES) for kind in ("title", "said")]
    write_tiny_glove(folder / "glove.txt", texts, dimension=32)
    build_index([folder / "papers.jsonl"], folder / "index")
    return folder


TEXTS = ["dense retrieval of papers", "a kernel for graphs", "neural ranking"]
DOCUMENTS = [
    [(0, "dense retrieval of papers")],
    [(0, "retrieval dense of papers")],
    [(1, "dense retrieval of papers")],
    [(0, "dense retrieval of kernel")],
    [(0, "a kernel"), (1, "neural ranking " * 9), (2, "dense papers")],
    [],
]


def test_padding_and_saving_change_nothing(tmp_path: Path) -> None:
    model = tiny_hatten(tmp_path, TEXTS, dropout=0, max_words=3)
    together = model.encode(DOCUMENTS)
    alone = np.concatenate([model.encode([document]) for document in DOCUMENTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    # Order and kind of paragraphs are read, and no more than three words.
    first, turned, other_kind, longer, *_ = together
    assert not np.allclose(first, turned, atol=1e-3) and not np.allclose(first, other_kind, atol=1e-3)
    np.testing.assert_allclose(first, longer, atol=1e-6)
    saved = tmp_path / "saved"
    saved.mkdir()
    model.save(saved)
    HattenManifest(sizes=model.sizes, words="glove.txt").write(saved)
    np.testing.assert_array_equal(Hatten.open(str(saved), device="cpu").encode(DOCUMENTS), together)
    model.train()  # another code path: the one with gradients
    np.testing.assert_allclose(model(DOCUMENTS).detach().numpy(), together, atol=1e-5)
    for name in ("tokenizer.json", "model.safetensors", "manifest.json"):
        for content in (b"{}", b""):
            (saved / name).write_bytes(content)
            with pytest.raises(ModelError, match="Train it again: citerec train hatten"):
                Hatten.open(str(saved))
    with pytest.raises(ModelError, match="holds no HAtten"):
        Hatten.open(str(write_tiny_scibert(tmp_path / "scibert", TEXTS)))


@pytest.mark.slow
def test_a_planted_rule_is_learnt(planted: Path, tmp_path: Path) -> None:
    small = {"words": str(planted / "glove.txt"), "heads": 4, "feed_forward": 64, "batch": 8, "mine_every": 20}
    manifest = train_hatten(
        Choice(planted / "contexts.jsonl", dev_share=0.2, dev_limit=60),
        planted / "index",
        tmp_path / "model",
        HattenOptions(**small, graded=False),  # type: ignore[arg-type]
        Schedule(learning_rate=3e-3, epochs=10, evaluations=4, patience=4, checkpoint_every=2, first=True),
    )
    assert manifest.dev[f"{METRIC} before"] < 0.3
    assert manifest.dev[METRIC] > 0.5
    provenance = provenance_of_part(tmp_path / "model")
    assert len(provenance.trained_on) > manifest.training["groups"]
    assert provenance.unsaid == ()


@pytest.mark.slow
def test_what_leak_rules_forbid_is_no_negative(planted: Path, tmp_path: Path) -> None:
    store = open_store(planted / "index")
    contexts = list(read_contexts(planted / "contexts.jsonl", cited=True))[:40]
    topics = topics_of(contexts, store)
    pool = Pool(store, [], 1000, seed=0)
    assert len(pool.ids) == 96
    model = tiny_hatten(tmp_path, [context.text for context in contexts])
    pool.encode(model, no_progress)
    gold = [context.cited_ids for context in contexts]
    scores = pool.scores(model, topics, gold)
    years = store.years(pool.ids)
    nearest, easy = pool.nearest(scores, 100), pool.drawn(scores, 5, np.random.default_rng(0))
    for number, topic in enumerate(topics):
        fair = {
            paper_id
            for paper_id in pool.ids
            if paper_id not in (*gold[number], topic.citing_id)
            and (years[paper_id] or 0) <= (topic.citing_year or 9999)
        }
        rows = [place for place in nearest[number] if place >= 0]
        assert {pool.ids[place] for place in rows} == fair
        assert {pool.ids[place] for place in easy[number] if place >= 0} <= fair
        found = scores[number][rows].tolist()
        assert found == sorted(found, reverse=True)
    store.close()
