"""Published classifiers with labels of other names."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification, set_seed

from citerec.discourse.tagger import RelabelledTagger, known_names, open_tagger
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


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["Result", "METHOD", "background"], ["result", "method", "background"]),
        (["Compare_Or_Contrast", "uses", "Extends"], ["CompareOrContrast", "Uses", "Extends"]),
        # The tags of CORWA's own code.
        (
            ["pad", "Intro", "B-Single_summ", "I-Single_summ", "Multi_summ", "Other"],
            ["", "Transition", "Single_summ", "Single_summ", "Multi_summ", "Other"],
        ),
        (["pad", "O", "B_span", "I_span"], None),
        (["LABEL_0", "LABEL_1"], None),
        (["pad", "O"], None),
    ],
)
def test_labels_are_recognised_however_they_are_written(labels: list[str], names: list[str] | None) -> None:
    found = known_names(labels)
    assert found == (None if names is None else dict(zip(labels, names, strict=True)))


def test_a_published_classifier_gets_the_names_of_its_scheme(encoder: Path, tmp_path: Path) -> None:
    labels = ["pad", "Intro", "B-Single_summ", "I-Single_summ", "Reflection"]
    plain = open_tagger(published(encoder, tmp_path / "plain", [f"LABEL_{number}" for number in range(5)]))
    assert (plain.scheme, plain.labels[0]) == ("", "LABEL_0")
    tagger = open_tagger(published(encoder, tmp_path / "corwa", labels))
    assert (tagger.scheme, tagger.labels) == ("corwa", ("Transition", "Single_summ", "Reflection"))
    for raw, rows in zip(plain.probabilities(TEXTS), tagger.probabilities(TEXTS), strict=True):
        expected = np.stack([raw[:, 1], raw[:, 2] + raw[:, 3], raw[:, 4]], axis=1) / (1 - raw[:, :1])
        assert rows == pytest.approx(expected)
        assert rows.sum(axis=1) == pytest.approx(1)
    assert {label for tags in tagger.tag(TEXTS) for label in tags} <= set(tagger.labels)


def test_labels_are_mapped_by_hand(encoder: Path, tmp_path: Path) -> None:
    folder = published(encoder, tmp_path / "scicite", ["LABEL_0", "LABEL_1", "LABEL_2"])
    names = {"LABEL_0": "background", "LABEL_1": "method", "LABEL_2": "result"}
    tagger = open_tagger(folder, labels=names)
    assert (tagger.scheme, tagger.labels) == ("scicite", ("background", "method", "result"))
    plain = open_tagger(folder)
    assert [[names[tag] for tag in tags] for tags in plain.tag(TEXTS)] == [list(tags) for tags in tagger.tag(TEXTS)]
    with pytest.raises(InputError, match=r"has no label LABEL_7, LABEL_8") as caught:
        RelabelledTagger(plain, {**names, "LABEL_7": "result", "LABEL_8": "result"})
    assert "LABEL_0, LABEL_1, LABEL_2" in caught.value.remedy
    with pytest.raises(InputError, match="scicite has no label result_, LABEL_2"):
        RelabelledTagger(plain, {"LABEL_0": "background", "LABEL_1": "result_"} | {"LABEL_2": "LABEL_2"})
    with pytest.raises(InputError, match="has a name left"):
        RelabelledTagger(plain, dict.fromkeys(names, ""))


def test_the_command_takes_a_published_tagger(citerec_here: Citerec, encoder: Path, tmp_path: Path) -> None:
    folder = published(encoder, tmp_path / "scicite", ["LABEL_0", "LABEL_1", "LABEL_2"])
    record = {
        "id": "1",
        "input": ["A text ."],
        "target": "We follow it .",
        "prediction": "It is known .",
        "writer": "w",
    }
    write_lines(tmp_path / "w.jsonl", [record])
    arguments = ("eval-text", "w.jsonl", "--metrics", "length", "--resamples", 100, "--tagger", f"intent={folder}")
    names = ("background", "method", "result")
    labels = [part for number, name in enumerate(names) for part in ("-c", f"labels.intent.LABEL_{number}={name}")]
    done = citerec_here(*arguments, *labels, "--format", "json")
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]["intent"]
    assert settings["labels"] == ["background", "method", "result"]
    assert settings["renamed"] == {"LABEL_0": "background", "LABEL_1": "method", "LABEL_2": "result"}
    for more, words in (
        (("-c", "labels.intent.LABEL_9=method"), "has no label LABEL_9"),
        (("-c", "labels=LABEL_0"), "labels"),
    ):
        wrong = citerec_here(*arguments, *more)
        assert wrong.returncode == 2
        assert words in wrong.stderr
        assert len(wrong.stderr.splitlines()) == 1
