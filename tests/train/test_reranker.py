"""Training a cross-encoder: it learns, it goes on, it does not leak, and it says what is wrong."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import orjson
import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.contexts.read import read_contexts
from citerec.errors import BuildError, CiterecError, InputError, ModelError, SourceError
from citerec.recommend import Recommender
from citerec.rerank.cross_encoder import CrossEncoder, Manifest, TextOptions
from citerec.train.encoders import RerankerOptions, train_reranker
from citerec.train.groups import Choice, Schedule, citing_paper, mine_groups
from tests.conftest import write_lines
from tests.training import how_of, made_of, stop_at, stopped_and_continued

pytestmark = pytest.mark.slow

Train = Callable[..., Manifest]


@pytest.fixture
def train(toy_contexts: Path, demo_index: Path, tiny_scibert: Path) -> Train:
    """Trains with what the test changes."""
    own = {"base": str(tiny_scibert), "text": TextOptions(max_tokens=48), "negatives": 4, "candidates": 20, "depth": 10}

    def call(out: Path, *, contexts: Path = toy_contexts, **changes: object) -> Manifest:
        choice = made_of(Choice, changes, path=contexts, dev_share=0.3, dev_limit=10)
        options = made_of(RerankerOptions, changes, batch=4, **own)
        schedule = made_of(Schedule, changes, learning_rate=3e-3, evaluations=2, checkpoint_every=2)
        return train_reranker(choice, demo_index, out, options, schedule, **how_of(changes))

    return call


@pytest.mark.parametrize("loss", ["softmax", "triplet"])
def test_it_learns_which_papers_are_cited(train: Train, tmp_path: Path, loss: str) -> None:
    said: list[str] = []
    manifest = train(tmp_path / "model", loss=loss, epochs=20, evaluations=5, patience=5, note=said.append)
    assert len(said) == len(manifest.training["dev_values"]) == 5
    # With weight 0 nothing is lost in any case: these are the best values with other weights.
    assert max(manifest.training["dev_values"].values()) >= manifest.dev["mrr@10 before"]
    assert CrossEncoder.open(tmp_path / "model").manifest == manifest
    provenance = provenance_of_part(tmp_path / "model")
    assert provenance.unsaid == ()
    assert len(provenance.trained_on) > manifest.training["groups"]  # their citing papers too
    assert len(provenance.tuned_on) > manifest.training["dev_groups"]
    assert provenance.trained_on.isdisjoint(provenance.tuned_on)


def test_a_stopped_training_goes_on_unless_it_was_begun_otherwise(train: Train, tmp_path: Path) -> None:
    options = {"epochs": 8, "patience": 4, "evaluations": 4}
    whole = train(tmp_path / "whole", **options)
    # Between two checkpoints, and while measuring.
    stops = (("training", 5), ("training", 23), ("measuring", 0))
    broken = stopped_and_continued(train, tmp_path / "broken", *stops, **options)
    assert broken.training["steps"] == whole.training["steps"] == 32
    assert broken.dev["mrr@10"] == pytest.approx(whole.dev["mrr@10"], abs=0.2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".broken.lock", ".whole.lock", "broken", "whole"]
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", on_progress=stop_at("training", 4), seed=1)
    assert train(tmp_path / "model", seed=0) == train(tmp_path / "other", seed=0)


def test_training_stops_where_dev_gains_no_more_or_the_loss_is_not_finite(train: Train, tmp_path: Path) -> None:
    # A rate at which nothing is learnt: every dev value after the first is without gain.
    manifest = train(tmp_path / "model", epochs=6, evaluations=6, patience=2, learning_rate=1e-12)
    assert len(manifest.training["dev_values"]) == 3
    assert manifest.training["best_step"] == min(map(int, manifest.training["dev_values"]))
    with pytest.raises(BuildError, match=r"the loss of step \d+ is nan") as raised:
        train(tmp_path / "diverges", learning_rate=1e30, loss="triplet", epochs=2)
    assert "learning_rate" in raised.value.remedy


def test_neither_gold_nor_negatives_leak(toy_contexts: Path, demo_index: Path, tmp_path: Path) -> None:
    contexts = list(read_contexts(toy_contexts))
    # A context that cites its own paper, and one of a time before most others.
    changed = [
        replace(one, citing_year=2024 if number % 2 else 1980, cited_ids=(*one.cited_ids, str(one.citing_id)))
        for number, one in enumerate(contexts)
    ]
    path = write_lines(tmp_path / "changed.jsonl", map(asdict, changed))
    # One of two contexts of every second paper.
    given = write_lines(tmp_path / "given.jsonl", [asdict(one) for one in contexts[::4]])
    with Recommender.open(demo_index) as recommender:
        train, dev = mine_groups(Choice(path, dev_share=0.3), recommender, (50, 50), lambda *_: None)
        others, of_given = mine_groups(Choice(toy_contexts, given), recommender, (50, 50), lambda *_: None)
        groups = [*train, *dev]
        papers = recommender.store.papers(candidate.paper_id for group in groups for candidate in group.candidates)
    assert len(groups) > 20
    for group in groups:
        assert group.context.citing_id not in group.gold
        negatives = set(group.negatives())
        assert negatives.isdisjoint([*group.gold, group.context.citing_id])
        assert all((papers[paper_id].year or 0) <= (group.context.citing_year or 0) for paper_id in negatives)
    for learnt, measured in ((train, dev), (others, of_given)):
        trained_on, measured_on = ({citing_paper(group.context) for group in side} for side in (learnt, measured))
        assert trained_on and measured_on and trained_on.isdisjoint(measured_on)
    assert len(of_given) == len(contexts[::4])


def test_what_is_wrong_is_said_in_one_line(train: Train, toy_contexts: Path, tmp_path: Path) -> None:
    unknown = [{**orjson.loads(line), "cited_ids": ["nowhere"]} for line in toy_contexts.read_bytes().splitlines()]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    cases: list[tuple[type[CiterecError], str, dict[str, object]]] = [
        (InputError, "cites a paper of", {"contexts": write_lines(tmp_path / "unknown.jsonl", unknown)}),
        (SourceError, "is empty", {"contexts": write_lines(tmp_path / "empty.jsonl", [])}),
        (ModelError, "512 tokens at most", {"text": TextOptions(max_tokens=1000)}),
        (InputError, "left to measure on", {"dev_share": 0.0}),
        (InputError, "left to learn from", {"dev_share": 1.0}),
    ]
    for kind, words, changes in cases:
        with pytest.raises(kind, match=words):
            train(tmp_path / "model", **changes)
        assert not (tmp_path / "model").exists()
    with pytest.raises(InputError, match="is no cross-encoder"):
        train(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
