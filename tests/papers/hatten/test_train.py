"""Training HAtten: a planted rule is learnt, negatives are fair, and a stopped training ends as an unbroken one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from citerec.contexts.provenance import provenance_of_part
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import topics_of
from citerec.errors import InputError, SourceError
from citerec.files.progress import no_progress
from citerec.index.build import open_store
from citerec.papers.diagnostic.hatten import (
    METRIC,
    Hatten,
    HattenManifest,
    HattenOptions,
    Pool,
    read_words,
    relevances,
    train_hatten,
    triplet_loss,
)
from citerec.train.groups import Choice, Schedule
from tests.tiny_hatten import tiny_hatten
from tests.training import stopped_and_continued

pytestmark = pytest.mark.slow

Train = Callable[..., HattenManifest]


@pytest.fixture
def train(planted: Path) -> Train:
    """Trains with what the test changes."""

    def call(out: Path, *, limit: int | None = None, on_progress: object = None, **changes: object) -> HattenManifest:
        schedule = {"learning_rate": 3e-3, "epochs": 1, "evaluations": 2, "checkpoint_every": 2, "first": True}
        small = {"words": str(planted / "glove.txt"), "heads": 4, "feed_forward": 64, "batch": 32, "mine_every": 20}
        options = {name: changes.pop(name) for name in list(changes) if name in HattenOptions.__slots__}
        return train_hatten(
            Choice(planted / "contexts.jsonl", dev_share=0.2, dev_limit=60, limit=limit),
            planted / "index",
            out,
            HattenOptions(**{**small, **options}),  # type: ignore[arg-type]
            Schedule(**{**schedule, **changes}),  # type: ignore[arg-type]
            **({"on_progress": on_progress} if on_progress else {}),  # type: ignore[arg-type]
        )

    return call


def test_a_planted_rule_is_learnt(train: Train, planted: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "model", epochs=10, evaluations=4, patience=4, batch=8, graded=False)
    assert manifest.dev[f"{METRIC} before"] < 0.3
    assert manifest.dev[METRIC] > 0.5
    provenance = provenance_of_part(tmp_path / "model")
    assert len(provenance.trained_on) > manifest.training["groups"]
    assert provenance.unsaid == ()
    # Training has not moved the words.
    opened = Hatten.open(str(tmp_path / "model"), device="cpu")
    texts = [" ".join(line.split(" ", 1)[0] for line in (planted / "glove.txt").read_text().splitlines())]
    tokenizer, words = read_words(str(planted / "glove.txt"), texts, 10_000, no_progress)
    assert opened.tokenizer.get_vocab() == tokenizer.get_vocab()
    np.testing.assert_array_equal(opened.words.weight.numpy(), words)


def test_a_stopped_training_goes_on(train: Train, tmp_path: Path) -> None:
    options = {"epochs": 4, "mine_every": 3, "batch": 8, "graded": False}
    whole = train(tmp_path / "whole", **options)
    broken = stopped_and_continued(train, tmp_path / "broken", ("training", 3), ("training", 47), **options)
    assert broken.training["steps"] == whole.training["steps"]
    assert broken.dev[METRIC] == pytest.approx(whole.dev[METRIC], abs=0.15)


def test_what_leak_rules_forbid_is_no_negative(planted: Path, tmp_path: Path) -> None:
    store = open_store(planted / "index")
    contexts = list(read_contexts(planted / "contexts.jsonl", cited=True))[:40]
    topics = topics_of(contexts, store)
    pool = Pool(store, ["p0-0"], 50, seed=0)
    assert len(pool.ids) in (50, 51)
    assert "p0-0" in pool.ids
    pool = Pool(store, [], 1000, seed=0)
    assert len(pool.ids) == 96
    model = tiny_hatten(tmp_path, [context.text for context in contexts])
    pool.encode(model, no_progress)
    gold = [context.cited_ids for context in contexts]
    scores = pool.scores(model, topics, gold)
    years = store.years(pool.ids)
    nearest, drawn = pool.nearest(scores, 100), pool.drawn(scores, 5, np.random.default_rng(0))
    for topic, cited, rows, easy, row in zip(topics, gold, nearest.tolist(), drawn.tolist(), scores, strict=True):
        fair = [
            paper_id
            for paper_id in pool.ids
            if paper_id not in cited
            and paper_id != topic.citing_id
            and (years[paper_id] or 0) <= (topic.citing_year or 9999)
        ]
        assert {pool.ids[place] for place in rows if place >= 0} == set(fair)
        assert {pool.ids[place] for place in easy if place >= 0} <= set(fair)
        found = [row[place] for place in rows if place >= 0]
        assert found == sorted(found, reverse=True)
    store.close()


def test_what_is_as_alike_as_the_cited_paper_is_not_pushed_away() -> None:
    queries = [[(2, "dense retrieval of papers")]]
    papers = [[(0, text)] for text in ("dense graphs", "dense retrieval", "other words", "dense retrieval of papers")]
    places = np.array([[0, 1, 2, 3]])
    assert relevances(queries, papers, places, 1).tolist() == [[2, 2, 1, 0]]
    # A cited paper without a word in common does not make all others relevant.
    assert relevances(queries, papers, np.array([[2, 2, 1, 3]]), 1).tolist() == [[2, 1, 1, 0]]

    scores = torch.tensor([[0.5, 0.9, 0.5, 0.2]], requires_grad=True)
    (loss,) = triplet_loss(scores, np.array([[2, 2, 1, np.nan]], np.float32), 0.05)
    loss.backward()  # type: ignore[no-untyped-call]
    # Two pairs: the second paper is 0.4 above the third, the first is level with it.
    assert loss.item() == pytest.approx(0.05 / 2)
    assert scores.grad is not None
    assert scores.grad.tolist() == [[-0.5, 0, 0.5, 0]]


def test_what_is_wrong_is_said(train: Train, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="5 heads do not divide a width of 32"):
        train(tmp_path / "model", heads=5)
    (tmp_path / "words.txt").write_text("said 1 2\nnothing\n")
    with pytest.raises(SourceError, match="none of the words"):
        train(tmp_path / "model", words=str(tmp_path / "words.txt"))
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(InputError, match="letters"):
        train(tmp_path / "letters")
