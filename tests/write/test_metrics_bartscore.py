"""BARTScore on a tiny BART, against a plain loop over the model's forward pass."""

import math
from pathlib import Path

import numpy as np
import pytest

from citerec.errors import ModelError
from citerec.papers.oarelatedwork.metrics import BartScore
from citerec.write.tasks import Prediction, Source, TextTask
from tests.tiny_models import write_tiny_scibert
from tests.tiny_seq2seq import write_tiny_bart

WORDS = "a parser of trees reads every sentence while rivers flow past the hills of summer"
SOURCES = (Source("a parser of trees"), Source("reads every sentence"))
TARGETS = ("trees reads a parser", "rivers flow past the hills")
TEXTS = ("a parser reads trees", "rivers flow", "the summer hills flow past every river of summer", "trees")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_bart(tmp_path_factory.mktemp("bart"), [WORDS]))


def quietly(*_: object) -> None:
    pass


def by_hand(folder: str, given: str, wanted: str) -> float:
    """The mean log-probability of the tokens of a text, one text at a time, one token at a time."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, bart = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    read = tokenizer(given, return_tensors="pt")["input_ids"]
    written = [bart.config.decoder_start_token_id]
    scores = []
    for token in tokenizer(wanted)["input_ids"]:
        with torch.no_grad():
            logits = bart(input_ids=read, decoder_input_ids=torch.tensor([written])).logits
        scores.append(float(logits[0, -1].log_softmax(-1)[token]))
        written.append(token)
    return sum(scores) / len(scores)


def test_it_is_the_mean_log_probability_of_the_tokens(model: str) -> None:
    task = TextTask("t", SOURCES, targets=TARGETS)
    texts = [Prediction(task, text, "w") for text in TEXTS]
    given = " ".join(source.text for source in SOURCES)
    told: list[tuple[str, int, int]] = []
    found = BartScore(model, device="cpu").scores(texts, lambda *now: told.append(now))
    assert found.shape == (4, 1) and told[-1] == ("BARTScore", 4, 4)
    assert found[:, 0] == pytest.approx([by_hand(model, given, text) for text in TEXTS], abs=1e-5)
    assert (found < 0).all() and len(set(found[:, 0].tolist())) == 4


def test_what_has_no_value_and_what_is_cut(model: str) -> None:
    task = TextTask("t", SOURCES, targets=TARGETS)
    faithfulness = BartScore(model, device="cpu")
    assert faithfulness.settings["max_tokens"] == [64, 64]
    assert faithfulness.scores([], quietly).shape == (0, 1)
    nothing = [Prediction(task, " ", "w"), Prediction(TextTask("u", ()), "a parser", "w")]
    assert np.isnan(faithfulness.scores(nothing, quietly)).all()
    long, longer = ("trees " * number for number in (62, 100))  # 62 and two special tokens
    cut, whole = faithfulness.scores([Prediction(task, text, "w") for text in (longer, long)], quietly)[:, 0]
    assert cut == pytest.approx(whole, abs=1e-6) and math.isfinite(cut)


def test_what_cannot_be_opened_says_what_could(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no encoder-decoder"):
        BartScore(str(write_tiny_scibert(tmp_path / "bert", [WORDS])), device="cpu")
