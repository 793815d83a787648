"""Labels of a system's texts against those of the targets."""

import json
import math
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
import pytest

from citerec.discourse.classifier import Probabilities, Tagger
from citerec.papers.citebench.metrics import Discourse
from citerec.write.tasks import Prediction, TextTask


class FirstWord(Tagger):
    """Labels a sentence by its first word: what a tagger gives can be read off the text."""

    name = "first-word"
    scheme = "words"
    labels = ("uses", "extends", "compares")

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        return [tuple(sentence.split()[0].lower() for sentence in paragraph) for paragraph in paragraphs]

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        return [
            np.array([[float(label == tag) for label in self.labels] for tag in tags]) for tags in self.tag(paragraphs)
        ]


def summary(*texts: tuple[str, tuple[str, ...]]) -> dict[str, object]:
    predictions = [
        Prediction(TextTask(str(number), (), targets=targets), text, "w")
        for number, (text, targets) in enumerate(texts)
    ]
    return dict(Discourse("intent", FirstWord()).summary(predictions, lambda *_: None))


def test_by_hand() -> None:
    # Targets: uses 1/2, extends 1/2; system: uses 3/4, extends 1/4.
    found = summary(
        ("Uses of trees grow. Uses of words too.", ("Uses a tree.", "Extends a tree.")),
        ("Extends it. Uses it.", ("Uses it. Extends it.",)),
    )
    assert found["targets"] == {"uses": 0.5, "extends": 0.5, "compares": 0}
    assert found["system"] == {"uses": 0.75, "extends": 0.25, "compares": 0}
    assert found["kl_divergence"] == pytest.approx(0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25))
    assert found["missing"] == []


def test_a_missing_label_makes_it_infinite_and_is_named() -> None:
    found = summary(("Uses it.", ("Uses it. Compares it.",)))
    assert found["kl_divergence"] == "∞"
    assert found["missing"] == ["compares"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_labels_that_only_the_system_has_do_not() -> None:
    found = summary(("Uses it. Extends it.", ("Uses it.",)))
    assert found["kl_divergence"] == pytest.approx(math.log(2))
    assert found["missing"] == []


def test_without_sentences() -> None:
    assert summary(("Uses it.", ()))["kl_divergence"] is None
    silent = summary((" ", ("Uses it.",)))
    assert (silent["system"], silent["kl_divergence"], silent["missing"]) == ({}, "∞", ["uses"])


def test_settings_name_the_tagger() -> None:
    settings = Discourse("intent", FirstWord()).settings
    assert (settings["tagger"], settings["scheme"], settings["labels"]) == ("first-word", "words", [*FirstWord.labels])
    assert settings["sentences"] == f"pysbd {version('pysbd')}"
