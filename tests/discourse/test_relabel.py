"""Published classifiers with labels of other names."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification, set_seed

from citerec.discourse.tagger import RelabelledTagger, open_tagger
from citerec.errors import InputError
from tests.conftest import Citerec, write_lines
from tests.tiny_models import write_tiny_scibert

TEXTS = [["We follow Lee (2005) .", "It is known ."], ["Others differ ."]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scibert(tmp_path_factory.mktemp("models") / "scibert", [text for one in TEXTS for text in one])


def published(encoder: Path, out: Path, labels: Sequence[str]) -> Path:
    """A classifier as the hub has it: a configuration with labels, no manifest of citerec."""
    set_seed(2)
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    model = AutoModelForSequenceClassification.from_pretrained(encoder, **named)
    assert isinstance(model, BertForSequenceClassification)
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(out)
    return out


def test_a_published_classifier_gets_the_names_of_its_scheme(encoder: Path, tmp_path: Path) -> None:
    labels = ["pad", "Intro", "B-Single_summ", "I-Single_summ", "Reflection"]
    plain = open_tagger(published(encoder, tmp_path / "plain", [f"LABEL_{number}" for number in range(5)]))
    tagger = open_tagger(published(encoder, tmp_path / "corwa", labels))
    assert (tagger.scheme, tagger.labels) == ("corwa", ("Transition", "Single_summ", "Reflection"))
    for raw, rows in zip(plain.probabilities(TEXTS), tagger.probabilities(TEXTS), strict=True):
        expected = np.stack([raw[:, 1], raw[:, 2] + raw[:, 3], raw[:, 4]], axis=1) / (1 - raw[:, :1])
        assert rows == pytest.approx(expected)


def test_labels_are_mapped_by_hand_and_by_the_command(citerec_here: Citerec, encoder: Path, tmp_path: Path) -> None:
    folder = published(encoder, tmp_path / "scicite", ["LABEL_0", "LABEL_1", "LABEL_2"])
    names = {"LABEL_0": "background", "LABEL_1": "method", "LABEL_2": "result"}
    tagger, plain = open_tagger(folder, labels=names), open_tagger(folder)
    assert (tagger.scheme, tagger.labels) == ("scicite", ("background", "method", "result"))
    assert [[names[tag] for tag in tags] for tags in plain.tag(TEXTS)] == [list(tags) for tags in tagger.tag(TEXTS)]
    for wrong, message in (
        ({**names, "LABEL_7": "result"}, r"has no label LABEL_7"),
        ({**names, "LABEL_1": "result_", "LABEL_2": "LABEL_2"}, "scicite has no label result_, LABEL_2"),
        (dict.fromkeys(names, ""), "has a name left"),
    ):
        with pytest.raises(InputError, match=message):
            RelabelledTagger(plain, wrong)
    record = {"id": "1", "input": ["A text ."], "target": "It is .", "prediction": "It is known .", "writer": "w"}
    write_lines(tmp_path / "w.jsonl", [record])
    arguments = ("eval-text", "w.jsonl", "--metrics", "length", "--resamples", 100, "--tagger", f"intent={folder}")
    labels = [part for label, name in names.items() for part in ("-c", f"labels.intent.{label}={name}")]
    done = citerec_here(*arguments, *labels, "--format", "json")
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]["intent"]
    assert (settings["labels"], settings["renamed"]) == ([*names.values()], names)
