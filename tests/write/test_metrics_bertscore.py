"""BERTScore with the model that an installed wheel carries, against bert-score called directly."""

import json
import math
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from citerec.errors import ModelError
from citerec.models.find import find_model, quiet_libraries
from citerec.papers.oarelatedwork.metrics import block_match
from citerec.write.metrics import MetricOptions, PairMetric, open_bertscore
from citerec.write.tasks import Prediction, TextTask
from tests.tiny_models import write_tiny_scibert

MINILM = "all-MiniLM-L6-v2"
PAIRS = [
    ("A parser reads a sentence.", "A sentence is read by a parser."),
    ("A parser reads a sentence.", "Rain fell on the hills."),
    ("The same text.", "The same text."),
    ("", "Not empty."),
    ("Not empty.", "\u200b "),
]


def quietly(doing: str, done: int, whole: int) -> None:
    pass


def opened(model: str, layer: int | None = None, rescaled: bool = False) -> PairMetric:
    return open_bertscore(
        MetricOptions(bertscore_model=model, bertscore_layer=layer, bertscore_rescaled=rescaled, device="cpu")
    )


@pytest.fixture(scope="module")
def minilm() -> Iterator[PairMetric]:
    yield opened(MINILM, 6)


def test_scores_are_those_of_bert_score(minilm: PairMetric, capfd: pytest.CaptureFixture[str]) -> None:
    from bert_score import BERTScorer

    ours = minilm.pairs(PAIRS, quietly)[:, 0]
    assert capfd.readouterr() == ("", "")
    with quiet_libraries():
        scorer = BERTScorer(model_type=find_model(MINILM), num_layers=6, device="cpu")
    full = PAIRS[:3]
    _, _, f1 = scorer.score([prediction for prediction, _ in full], [reference for _, reference in full])
    assert np.allclose(ours[:3], f1.numpy(), rtol=0, atol=1e-6)
    assert ours[2] == pytest.approx(1) and ours[1] < ours[0] < 1
    assert ours[3:].tolist() == [0, 0]


def test_a_long_text_is_cut_without_a_word(minilm: PairMetric, capfd: pytest.CaptureFixture[str]) -> None:
    long = "trees fall " * 400
    cut, whole = minilm.pairs([(long, "trees fall " * 200), (long + "and more", long)], quietly)[:, 0]
    assert 0 < cut <= 1
    assert whole == pytest.approx(1)  # what differs is beyond the limit
    assert capfd.readouterr() == ("", "")


def test_best_of_several_targets(minilm: PairMetric) -> None:
    targets = tuple(reference for _, reference in PAIRS[:2])
    tasks = [TextTask("a", (), targets=targets), TextTask("b", ()), TextTask("c", (), targets=targets[1:])]
    told: list[tuple[str, int, int]] = []
    scores = minilm.scores([Prediction(task, PAIRS[0][0], "w") for task in tasks], lambda *now: told.append(now))
    each = minilm.pairs(PAIRS[:2], quietly)[:, 0]
    assert scores.shape == (3, 1) and math.isnan(scores[1, 0])
    assert scores[[0, 2], 0] == pytest.approx([each[0], each[1]], abs=1e-6)
    assert told[-1] == ("BERTScore", 3, 3)
    assert minilm.scores([], quietly).shape == (0, 1)


def test_blocks_are_matched_by_it(minilm: PairMetric) -> None:
    metric = block_match(minilm)
    text, target = f"{PAIRS[0][0]}\n{PAIRS[1][1]}", f"{PAIRS[1][1]}\n{PAIRS[0][1]}"
    f1, precision, recall = metric.scores([Prediction(TextTask("t", (), targets=(target,)), text, "w")], quietly)[0]
    parser = minilm.pairs(PAIRS[:1], quietly)[0, 0]
    assert f1 == precision == recall == pytest.approx((1 + parser) / 2, abs=1e-6)
    assert metric.settings["score"] == {"name": "bertscore", **minilm.settings}


def test_settings_name_the_model(minilm: PairMetric) -> None:
    assert minilm.settings["package"] == f"bert-score {version('bert-score')}"
    assert {name: minilm.settings[name] for name in ("model", "layer", "max_tokens", "rescaled", "references")} == {
        "model": MINILM,
        "layer": 6,
        "max_tokens": 512,
        "rescaled": False,
        "references": "best",
    }
    assert minilm.settings["identity"].startswith("sha256:")


def test_long_texts_are_cut_where_the_tokenizer_knows_no_limit(tmp_path: Path) -> None:
    folder = write_tiny_scibert(tmp_path / "model", [one for pair in PAIRS for one in pair])
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_max_length": int(1e30)}))
    metric = opened(str(folder), 1)
    assert metric.settings["max_tokens"] == 512
    assert metric.pairs([("parser " * 2000, "parser " * 600)], quietly) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MINILM,), "bert-score knows no best layer of the model 'all-MiniLM-L6-v2'"),
        (("no such folder", 1), "there is no model folder 'no such folder'"),
    ],
)
def test_what_cannot_be_opened_says_what_could(arguments: tuple[str, int], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        opened(*arguments)


def test_rescaling_needs_a_baseline() -> None:
    with pytest.raises(ModelError, match="bert-score has no baseline of the model 'all-MiniLM-L6-v2'"):
        opened(MINILM, 6, True)


def test_models_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="there is no model 'nobody/no-such-model' on this machine"):
        opened("nobody/no-such-model", 1)
