"""Training taggers: how well they do on real data, that a training is repeatable and goes on, and what is refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.provenance import digest, folded, provenance_of_part
from citerec.discourse.classifier import Paragraph, Tagger, TaggerManifest, read_paragraphs
from citerec.discourse.linear import LinearTagger
from citerec.discourse.tagger import open_tagger
from citerec.errors import InputError, ModelError
from citerec.train.groups import Schedule
from citerec.train.tagger import TaggerOptions, measure_tagger, train_tagger
from tests.conftest import Citerec, write_lines
from tests.discourse.toy import paragraphs, sentences
from tests.tiny_models import write_tiny_scibert

pytestmark = pytest.mark.slow


def _as_scicite(examples: list[Paragraph]) -> list[dict[str, object]]:
    return [{"text": one.sentences[0], "label": one.labels[0], "metadata": {}} for one in examples]


def _as_corwa(examples: list[Paragraph]) -> list[dict[str, object]]:
    return [
        {
            "id": one.paragraph_id,
            "paragraph": "".join(f"[BOS] {text}\n" for text in one.sentences) + "\n",
            "discourse_tags": list(one.labels),
        }
        for one in examples
    ]


@pytest.fixture
def intents(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train.txt", _as_scicite(sentences()))


@pytest.fixture
def related_work(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train.jsonl", _as_corwa(paragraphs()))


@pytest.mark.parametrize(
    ("train", "dev", "least"),
    [
        ("scicite/train.txt", "scicite/dev.txt", 0.82),
        ("acl_arc/train.txt", "acl_arc/dev.txt", 0.73),
        ("corwa/train.jsonl", None, 0.65),
    ],
)
def test_the_linear_tagger_on_real_data(
    shared: Path, tmp_path: Path, train: str, dev: str | None, least: float
) -> None:
    text = shared / "text"
    manifest = train_tagger(text / train, tmp_path / "tagger", TaggerOptions(dev=text / dev if dev else None))
    assert manifest.dev["macro_f1"] >= least
    examples = list(read_paragraphs(text / (dev or train)))
    if not dev:
        assert manifest.training["dev_paragraphs"] == round(0.15 * len(examples))
        examples = examples[-manifest.training["dev_paragraphs"] :]
    # What is opened does as well as what was trained.
    opened = open_tagger(tmp_path / "tagger")
    assert measure_tagger(opened, examples).items() <= manifest.dev.items()
    assert sum(scores["n"] for scores in manifest.dev["labels"].values()) == sum(len(one.labels) for one in examples)


class _Given(Tagger):
    """Gives the labels that it is told."""

    def __init__(self, labels: str) -> None:
        self._given = tuple(labels)

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        assert [len(one) for one in paragraphs] == [len(self._given)]
        return [self._given]


def test_scores_by_hand() -> None:
    # a: 1 of 1 right, 1 of 2 found; b: 1 of 3 right, 1 of 1 found; c: never given.
    scores = measure_tagger(_Given("abbb"), [Paragraph("1", ("Yes.",) * 4, tuple("aabc"))])
    assert scores == {
        "macro_f1": round((2 / 3 + 1 / 2) / 3, 4),
        "accuracy": 0.5,
        "labels": {
            "a": {"precision": 1, "recall": 0.5, "f1": 0.6667, "n": 2},
            "b": {"precision": 0.3333, "recall": 1, "f1": 0.5, "n": 1},
            "c": {"precision": 0, "recall": 0, "f1": 0, "n": 1},
        },
    }


def test_the_last_paragraphs_of_the_file_are_held_out(related_work: Path, tmp_path: Path) -> None:
    examples = paragraphs()
    manifest = train_tagger(related_work, tmp_path / "tagger", TaggerOptions(dev_share=0.25))
    provenance = provenance_of_part(tmp_path / "tagger")
    assert provenance.tuned_on == {digest("text", folded(text)) for one in examples[-8:] for text in one.sentences}
    assert provenance.trained_on == {digest("text", folded(text)) for one in examples[:-8] for text in one.sentences}
    assert manifest.training["dev"] == "last 25% of the paragraphs"
    assert (manifest.training["paragraphs"], manifest.training["dev_paragraphs"]) == (24, 8)
    # The same weights as of the first 24 alone: nothing of what was held out was learnt.
    first = write_lines(tmp_path / "first.jsonl", _as_corwa(examples[:24]))
    train_tagger(first, tmp_path / "first", TaggerOptions(dev_share=0))
    for name in ("weights.safetensors", "vocabulary.json"):
        assert (tmp_path / "tagger" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


def test_dev_that_stands_in_train_is_counted(intents: Path, tmp_path: Path) -> None:
    new = Paragraph("new", ("On chess we use the toolkit of Roy (2007).",), ("result",))
    dev = write_lines(tmp_path / "dev.txt", _as_scicite([*sentences()[:3], new]))
    found = train_tagger(intents, tmp_path / "tagger", TaggerOptions(dev=dev)).dev
    assert found["repeated"] == 3


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    texts = [text for one in [*sentences(), *paragraphs()] for text in one.sentences]
    return write_tiny_scibert(tmp_path / "tiny", texts)


Train = Callable[..., TaggerManifest]


@pytest.fixture
def train_tiny(tiny: Path) -> Train:
    def call(file: Path, out: Path, dev_share: float = 0.15, *, epochs: int = 2, **more: object) -> TaggerManifest:
        schedule = Schedule(learning_rate=3e-3, epochs=epochs, evaluations=2, checkpoint_every=2)
        options = TaggerOptions(dev_share=dev_share, model=str(tiny), batch=8, max_tokens=64)
        return train_tagger(file, out, options, schedule, device="cpu", **more)  # type: ignore[arg-type]

    return call


def test_a_classifier_learns_from_neighbours_too(related_work: Path, train_tiny: Train, tmp_path: Path) -> None:
    said: list[str] = []
    manifest = train_tiny(related_work, tmp_path / "tagger", epochs=20, note=said.append)
    assert len(said) == 2
    assert (manifest.model, manifest.scheme) == ("classifier", "corwa")
    assert manifest.dev["accuracy"] > 0.7
    opened = open_tagger(tmp_path / "tagger", device="cpu")
    assert (opened.name, opened.scheme, opened.labels) == ("tagger", "corwa", manifest.labels)
    held_out = paragraphs()[-manifest.training["dev_paragraphs"] :]
    assert measure_tagger(opened, held_out).items() <= manifest.dev.items()
    rows = opened.probabilities([one.sentences for one in held_out] + [()])
    assert [len(row) for row in rows] == [len(one.sentences) for one in held_out] + [0]
    assert all(row.sum(axis=1) == pytest.approx(1) for row in rows)
    assert opened.tag([]) == []
    # "They do so." reads differently after another sentence.
    one, other = (opened.probabilities([texts])[0][1] for texts in (held_out[-1].sentences, held_out[-2].sentences))
    assert np.abs(one - other).max() > 0.01


def test_a_classifier_made_elsewhere_is_opened(intents: Path, train_tiny: Train, tmp_path: Path) -> None:
    train_tiny(intents, tmp_path / "tagger", 0.5)
    (tmp_path / "tagger" / "manifest.json").unlink()
    opened = open_tagger(tmp_path / "tagger")
    assert (opened.scheme, opened.labels) == ("scicite", ("background", "method", "result"))
    assert opened.tag([["So it is."]])[0][0] in opened.labels


def test_an_encoder_without_a_head_is_no_tagger(tiny: Path) -> None:
    with pytest.raises(ModelError, match="no trained tagger") as caught:
        open_tagger(tiny)
    assert "citerec train tagger" in caught.value.remedy


def test_a_classifier_needs_something_to_measure_on(intents: Path, train_tiny: Train, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="held out to measure on"):
        train_tiny(intents, tmp_path / "tagger", 0)


def test_from_outside(citerec: Citerec, intents: Path, tmp_path: Path) -> None:
    done = citerec("train", "tagger", intents, "-c", "dev_share=0.5", "--out", "taggers/toy")
    assert done.returncode == 0, done.stderr
    assert "macro-F1 1.000, accuracy 1.000 on 36 dev sentences (last 50% of the paragraphs)" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    assert lines == [
        ["label", "precision", "recall", "f1", "n"],
        ["background", "1.000", "1.000", "1.000", "12"],
        ["method", "1.000", "1.000", "1.000", "12"],
        ["result", "1.000", "1.000", "1.000", "12"],
    ]
    manifest = json.loads((tmp_path / "taggers" / "toy" / "manifest.json").read_bytes())
    assert manifest["dev"]["labels"]["method"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "n": 12}
    again = citerec("train", "tagger", intents, "-c", "dev_share=0", "--out", "taggers/toy")
    assert again.returncode == 0, again.stderr
    assert again.stdout == "taggers/toy trained on 72 sentences, scicite; nothing was held out.\n"
    assert isinstance(open_tagger(tmp_path / "taggers" / "toy"), LinearTagger)


def test_dev_that_stands_in_train_is_said(citerec_here: Citerec, intents: Path) -> None:
    done = citerec_here("train", "tagger", intents, "--dev", intents, "--out", "toy")
    assert done.returncode == 0
    assert done.stderr == "72 of 72 dev paragraphs are in train.txt too.\n"


def test_what_cannot_be_is_refused_in_one_line(citerec_here: Citerec, intents: Path, tmp_path: Path) -> None:
    examples = _as_scicite(sentences())
    others = [{**one, "label": f"{one['label']}!"} for one in examples]
    for name, records in {
        "broken": [*examples[:2], {"text": "So."}],
        "one": [one for one in examples if one["label"] == "method"],
        "others": others,
        "empty": [],
    }.items():
        write_lines(tmp_path / name, records)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    for arguments, said in (
        (["broken"], "broken, line 3: a label is missing"),
        (["one"], "have the label method"),
        (["others"], "-c scheme=NAME"),
        (["empty"], "empty is empty"),
        (["missing"], "cannot read missing"),
        ([intents, "-c", "dev_share=1"], "leaves nothing to learn from"),
        ([intents, "-c", "dev_share=2"], "dev_share = 2: Input should be less than or equal to 1"),
        ([intents, "-c", "epochs=0"], "epochs = 0: Input should be greater than or equal to 1"),
        ([intents, "-c", "batch=many"], "batch = many: "),
        ([intents, "--model", "no such model"], "no model folder"),
        ([intents, "--out", "full"], "is no tagger"),
    ):
        done = citerec_here("train", "tagger", *arguments, *(() if "--out" in arguments else ("--out", "out")))
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stdout == ""
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "full" / "note.txt").read_text() == "mine"
    named = citerec_here("train", "tagger", "others", "-c", "scheme=mine", "--out", "out")
    assert named.returncode == 0
    assert open_tagger(tmp_path / "out").scheme == "mine"
