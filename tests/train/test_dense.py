"""Training an encoder: it learns, it goes on where it was stopped, and the index takes what it made."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.contexts.provenance import provenance_of_part
from citerec.errors import InputError, ModelError
from citerec.index.build import encode_index
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import Encoder
from citerec.recommend import Recommender
from citerec.systems import Recipe
from citerec.train.encoders import METRIC, EncoderManifest, EncoderOptions, train_encoder
from citerec.train.groups import Choice, Schedule

pytestmark = pytest.mark.slow

Train = Callable[..., EncoderManifest]


@pytest.fixture
def train(toy_contexts: Path, demo_index: Path, tiny_scibert: Path) -> Train:
    """Trains with what the test changes."""

    def call(
        out: Path, *, contexts: Path = toy_contexts, base: object = tiny_scibert, **changes: object
    ) -> EncoderManifest:
        schedule = {"learning_rate": 3e-3, "epochs": 1, "evaluations": 2, "checkpoint_every": 1}
        on_progress = changes.pop("on_progress", None)
        return train_encoder(
            Choice(contexts, dev_share=0.3, dev_limit=10),
            demo_index,
            out,
            EncoderOptions(base=str(base), max_tokens=48, candidates=20, batch=8),
            Schedule(**{**schedule, **changes}),  # type: ignore[arg-type]
            **({"on_progress": on_progress} if on_progress else {}),  # type: ignore[arg-type]
        )

    return call


def test_it_learns_and_an_index_takes_it(train: Train, demo_index: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "encoder", epochs=25, evaluations=8, patience=8, learning_rate=1e-3)
    assert manifest.dev[METRIC] > manifest.dev[f"{METRIC} before"]
    encoder = Encoder.open(str(tmp_path / "encoder"), device="cpu")
    assert (encoder.dimension, encoder.max_tokens) == (32, 48)
    index = tmp_path / "index"
    shutil.copytree(demo_index, index)
    encode_index(index, DenseOptions(str(tmp_path / "encoder")))
    with Recommender.open(index, Recipe.load("dense")) as recommender:
        assert len(recommender.search("We rank papers <REF>.", 5)) == 5
        assert recommender.provenance == provenance_of_part(tmp_path / "encoder")
        assert len(recommender.provenance.trained_on) > manifest.training["groups"]
        assert recommender.provenance.unsaid == ()


def test_what_helps_nobody_leaves_the_base(train: Train, tiny_scibert: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "encoder", learning_rate=1e-12)
    assert manifest.training["best_step"] == 0
    assert manifest.dev[METRIC] == manifest.dev[f"{METRIC} before"]
    ours, base = (Encoder.open(str(path), device="cpu", max_tokens=48) for path in (tmp_path / "encoder", tiny_scibert))
    assert ours.encode(["attention"]) == pytest.approx(base.encode(["attention"]), abs=1e-5)


def test_what_is_wrong_is_said(train: Train, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no-such-model"):
        train(tmp_path / "encoder", base="no-such-model")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(InputError, match="letters"):
        train(tmp_path / "letters")
