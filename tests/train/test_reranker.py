"""Training a cross-encoder: it learns, it goes on, it does not leak, and it says what is wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.contexts.read import read_contexts
from citerec.errors import BuildError, CiterecError, InputError, ModelError, SourceError
from citerec.recommend import Recommender
from citerec.rerank.cross_encoder import CrossEncoder, Manifest, TextOptions
from citerec.train.encoders import RerankerOptions, train_reranker
from citerec.train.groups import Choice, Group, Schedule, citing_paper, mine_groups
from tests.conftest import Citerec, write_lines
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
    # With weight 0 nothing is lost in any case: these are the best values with other weights, so with the model.
    assert max(manifest.training["dev_values"].values()) >= manifest.dev["mrr@10 before"]
    model = CrossEncoder.open(tmp_path / "model")
    assert model.manifest == manifest
    assert manifest.kind == "citerec-cross-encoder"
    assert manifest.text == TextOptions(max_tokens=48)
    provenance = provenance_of_part(tmp_path / "model")
    assert provenance.unsaid == ()
    assert len(provenance.trained_on) > manifest.training["groups"]  # their citing papers too
    assert len(provenance.tuned_on) > manifest.training["dev_groups"]
    assert provenance.trained_on.isdisjoint(provenance.tuned_on)


def test_a_stopped_training_goes_on(train: Train, tmp_path: Path) -> None:
    options = {"epochs": 8, "patience": 4, "evaluations": 4}
    whole = train(tmp_path / "whole", **options)
    assert whole.training["steps"] == 32
    # Between two checkpoints, and while measuring.
    stops = (("training", 5), ("training", 23), ("measuring", 0))
    broken = stopped_and_continued(train, tmp_path / "broken", *stops, **options)
    assert broken.training["steps"] == 32
    assert broken.dev["mrr@10"] == pytest.approx(whole.dev["mrr@10"], abs=0.2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".broken.lock", ".whole.lock", "broken", "whole"]


def test_what_was_begun_otherwise_is_not_gone_on_with(train: Train, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", on_progress=stop_at("training", 4), seed=1)
    begun_anew = train(tmp_path / "model", seed=0)
    assert begun_anew == train(tmp_path / "other", seed=0)


def test_a_loss_that_is_not_finite_is_one_line(train: Train, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"the loss of step \d+ is nan") as raised:
        train(tmp_path / "model", learning_rate=1e30, loss="triplet", epochs=2)
    assert raised.value.remedy == "Give a lower learning rate: -c learning_rate=NUMBER"


def test_training_stops_where_dev_gains_no_more(train: Train, tmp_path: Path) -> None:
    # A rate at which nothing is learnt: every dev value after the first is without gain.
    manifest = train(tmp_path / "model", epochs=6, evaluations=6, patience=2, learning_rate=1e-12)
    assert len(manifest.training["dev_values"]) == 3
    assert manifest.training["best_step"] == min(map(int, manifest.training["dev_values"]))


def test_neither_gold_nor_negatives_leak(toy_contexts: Path, demo_index: Path, tmp_path: Path) -> None:
    contexts = list(read_contexts(toy_contexts))
    years = {context.context_id: 1980 for context in contexts[::2]}
    # A context that cites its own paper, and one of a time before most others.
    changed = [
        replace(
            context,
            citing_year=years.get(context.context_id, 2024),
            cited_ids=(*context.cited_ids, str(context.citing_id)),
        )
        for context in contexts
    ]
    path = write_lines(tmp_path / "changed.jsonl", [_as_json(context) for context in changed])
    with Recommender.open(demo_index) as recommender:
        sides = mine_groups(Choice(path, dev_share=0.3), recommender, (50, 50), lambda *_: None)
        groups: list[Group] = [group for side in sides for group in side]
        papers = recommender.store.papers(candidate.paper_id for group in groups for candidate in group.candidates)
    assert len(groups) > 20
    for group in groups:
        assert group.context.citing_id not in group.gold
        negatives = {candidate.paper_id for candidate in group.negatives()}
        assert negatives.isdisjoint(group.gold)
        assert group.context.citing_id not in negatives
        assert all((papers[paper_id].year or 0) <= (group.context.citing_year or 0) for paper_id in negatives)
    trained_on, measured_on = ({citing_paper(group.context) for group in side} for side in sides)
    assert trained_on and measured_on and trained_on.isdisjoint(measured_on)


def test_citing_papers_of_given_dev_contexts_are_not_learnt_from(
    toy_contexts: Path, demo_index: Path, tmp_path: Path
) -> None:
    lines = toy_contexts.read_bytes().splitlines()
    (tmp_path / "given.jsonl").write_bytes(b"\n".join(lines[::4]) + b"\n")  # one of two contexts of every second paper
    with Recommender.open(demo_index) as recommender:
        train, dev = mine_groups(Choice(toy_contexts, tmp_path / "given.jsonl"), recommender, (50, 50), lambda *_: None)
    assert {citing_paper(group.context) for group in dev}.isdisjoint(citing_paper(group.context) for group in train)
    assert len(dev) == len(lines[::4])


def test_a_paper_that_was_not_retrieved_is_learnt_from_all_the_same(
    toy_contexts: Path, demo_index: Path, tmp_path: Path
) -> None:
    contexts = [
        replace(context, text="Nothing that helps is said here <REF>.") for context in read_contexts(toy_contexts)
    ]
    path = write_lines(tmp_path / "contexts.jsonl", [_as_json(context) for context in contexts])
    with Recommender.open(demo_index) as recommender:
        train, _ = mine_groups(Choice(path, dev_share=0.3), recommender, (5, 5), lambda *_: None)
    missed = [group for group in train if group.gold[0] not in {candidate.paper_id for candidate in group.candidates}]
    assert missed
    assert missed[0].positive(missed[0].gold[0]).citance is None


def test_what_is_wrong_is_said_in_one_line(train: Train, toy_contexts: Path, tmp_path: Path) -> None:
    unknown = [{**orjson.loads(line), "cited_ids": ["nowhere"]} for line in toy_contexts.read_bytes().splitlines()]
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    out = tmp_path / "model"
    cases: list[tuple[type[CiterecError], str, dict[str, object]]] = [
        (InputError, "cites a paper of", {"contexts": write_lines(tmp_path / "unknown.jsonl", unknown)}),
        (SourceError, "is empty", {"contexts": tmp_path / "empty.jsonl"}),
        (SourceError, "none.jsonl", {"contexts": tmp_path / "none.jsonl"}),
        (ModelError, "no model folder", {"base": "./nowhere"}),
        (ModelError, "512 tokens at most", {"text": TextOptions(max_tokens=1000)}),
        (InputError, "left to measure on", {"dev_share": 0.0}),
        (InputError, "left to learn from", {"dev_share": 1.0}),
    ]
    for kind, words, changes in cases:
        with pytest.raises(kind, match=words):
            train(out, **changes)
        assert not out.exists()
    with pytest.raises(InputError, match="is no cross-encoder"):
        train(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_the_command_trains(citerec_here: Citerec, toy_contexts: Path, demo_index: Path, tiny_scibert: Path) -> None:
    done = citerec_here(
        *("train", "reranker", "--contexts", toy_contexts, "--index", demo_index, "--out", "model"),
        *("--base", tiny_scibert, "-c", "max_tokens=48", "--limit", 8, "-c", "dev_share=0.3", "-c", "dev_limit=5"),
        *("-c", "negatives=3", "-c", "evaluations=1", "--system", "bm25"),
    )
    assert done.returncode == 0, done.stderr
    assert "model trained: mrr@10" in done.stdout
    assert "dev" in done.stderr
    wrong = citerec_here(
        "train", "reranker", "--contexts", toy_contexts, "--index", demo_index, "--out", "m", "--system", "x"
    )
    assert wrong.returncode == 2
    assert "there is no system 'x'" in wrong.stderr


def _as_json(context: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(context)  # type: ignore[call-overload, no-any-return]
