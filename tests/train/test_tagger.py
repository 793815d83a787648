"""Training taggers: how well they do on real data, what is held out, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from citerec.contexts.provenance import digest, folded, provenance_of_part
from citerec.discourse.classifier import Paragraph, read_paragraphs
from citerec.discourse.linear import LinearTagger
from citerec.discourse.tagger import open_tagger
from citerec.errors import ModelError
from citerec.train.groups import Schedule
from citerec.train.tagger import TaggerOptions, measure_tagger, train_tagger
from tests.conftest import Citerec, write_lines
from tests.discourse.toy import paragraphs, sentences
from tests.e2e.test_cli import one_line
from tests.tiny_models import write_tiny_scibert

pytestmark = pytest.mark.slow


def _as_scicite(examples: list[Paragraph]) -> list[dict[str, object]]:
    return [{"text": one.sentences[0], "label": one.labels[0], "metadata": {}} for one in examples]


def _as_corwa(examples: list[Paragraph]) -> list[dict[str, object]]:
    texts = ["".join(f"[BOS] {text}\n" for text in one.sentences) + "\n" for one in examples]
    return [{"paragraph": text, "discourse_tags": list(one.labels)} for one, text in zip(examples, texts, strict=True)]


@pytest.fixture
def intents(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train.txt", _as_scicite(sentences()))


@pytest.fixture
def related_work(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train.jsonl", _as_corwa(paragraphs()))


def test_the_linear_tagger_on_real_data(shared: Path, tmp_path: Path) -> None:
    for name, train, dev, least in (
        ("scicite", "train.txt", "dev.txt", 0.82),
        ("acl_arc", "train.txt", "dev.txt", 0.73),
        ("corwa", "train.jsonl", None, 0.65),
    ):
        folder = shared / "text" / name
        manifest = train_tagger(folder / train, tmp_path / name, TaggerOptions(dev=folder / dev if dev else None))
        assert manifest.dev["macro_f1"] >= least
        examples = list(read_paragraphs(folder / (dev or train)))[-manifest.training["dev_paragraphs"] :]
        # What is opened does as well as what was trained, and as scikit-learn says.
        tagger = open_tagger(tmp_path / name)
        assert measure_tagger(tagger, examples).items() <= manifest.dev.items()
        right = [label for one in examples for label in one.labels]
        tagged = [label for labels in tagger.tag([one.sentences for one in examples]) for label in labels]
        assert manifest.dev["macro_f1"] == pytest.approx(f1_score(right, tagged, average="macro"), abs=1e-4)


def test_the_last_paragraphs_of_the_file_are_held_out(related_work: Path, tmp_path: Path) -> None:
    examples = paragraphs()
    manifest = train_tagger(related_work, tmp_path / "tagger", TaggerOptions(dev_share=0.25))
    provenance = provenance_of_part(tmp_path / "tagger")
    assert provenance.tuned_on == {digest("text", folded(text)) for one in examples[-8:] for text in one.sentences}
    assert provenance.trained_on == {digest("text", folded(text)) for one in examples[:-8] for text in one.sentences}
    assert (manifest.training["paragraphs"], manifest.training["dev_paragraphs"]) == (24, 8)
    # The same weights as of the first 24 alone: nothing of what was held out was learnt.
    first = write_lines(tmp_path / "first.jsonl", _as_corwa(examples[:24]))
    train_tagger(first, tmp_path / "first", TaggerOptions(dev_share=0))
    for name in ("weights.safetensors", "vocabulary.json"):
        assert (tmp_path / "tagger" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


def test_a_classifier_learns_from_neighbours_too(related_work: Path, tmp_path: Path) -> None:
    texts = [text for one in [*sentences(), *paragraphs()] for text in one.sentences]
    tiny = write_tiny_scibert(tmp_path / "tiny", texts)
    with pytest.raises(ModelError, match="no trained tagger"):
        open_tagger(tiny)
    schedule = Schedule(learning_rate=3e-3, epochs=20, evaluations=2, checkpoint_every=2)
    options = TaggerOptions(dev_share=0.15, model=str(tiny), batch=8, max_tokens=64)
    manifest = train_tagger(related_work, tmp_path / "tagger", options, schedule, device="cpu")
    assert manifest.dev["accuracy"] > 0.7
    tagger = open_tagger(tmp_path / "tagger", device="cpu")
    assert (tagger.name, tagger.scheme, tagger.labels) == ("tagger", "corwa", manifest.labels)
    held_out = paragraphs()[-manifest.training["dev_paragraphs"] :]
    assert measure_tagger(tagger, held_out).items() <= manifest.dev.items()
    # "They do so." reads differently after another sentence.
    one, other = (tagger.probabilities([texts])[0][1] for texts in (held_out[-1].sentences, held_out[-2].sentences))
    assert np.abs(one - other).max() > 0.01
    (tmp_path / "tagger" / "manifest.json").unlink()  # a classifier made elsewhere
    assert open_tagger(tmp_path / "tagger").labels == manifest.labels


def test_from_outside_and_what_cannot_be_is_refused_in_one_line(
    citerec_here: Citerec, intents: Path, tmp_path: Path
) -> None:
    done = citerec_here("train", "tagger", intents, "-c", "dev_share=0.5", "--out", "toy")
    assert done.returncode == 0, done.stderr
    assert "macro-F1 1.000, accuracy 1.000 on 36 dev sentences (last 50% of the paragraphs)" in done.stdout
    repeated = citerec_here("train", "tagger", intents, "--dev", intents, "--out", "toy")
    assert repeated.stderr == "72 of 72 dev paragraphs are in train.txt too.\n"
    assert isinstance(open_tagger(tmp_path / "toy"), LinearTagger)
    examples = _as_scicite(sentences())
    write_lines(tmp_path / "broken", [*examples[:2], {"text": "So."}])
    write_lines(tmp_path / "one", [one for one in examples if one["label"] == "method"])
    write_lines(tmp_path / "others", [{**one, "label": f"{one['label']}!"} for one in examples])
    write_lines(tmp_path / "empty", [])
    write_lines(tmp_path / "full" / "note.txt", ["mine"])
    for arguments, said in (
        (["broken"], "broken, line 3: a label is missing"),
        (["one"], "have the label method"),
        (["others"], "-c scheme=NAME"),
        (["empty"], "empty is empty"),
        ([intents, "-c", "dev_share=1"], "leaves nothing to learn from"),
        ([intents, "--out", "full"], "is no tagger"),
    ):
        out = () if "--out" in arguments else ("--out", "out")
        one_line(citerec_here("train", "tagger", *arguments, *out), 2, said)
        assert not (tmp_path / "out").exists()
    assert citerec_here("train", "tagger", "others", "-c", "scheme=mine", "--out", "out").returncode == 0
    assert open_tagger(tmp_path / "out").scheme == "mine"
