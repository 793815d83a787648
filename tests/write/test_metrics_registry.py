"""Metrics by name, and what each of them must do."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, strategies as st

from citerec.discourse.classifier import TaggerManifest
from citerec.discourse.linear import LinearTagger
from citerec.errors import InputError
from citerec.write.metrics import TEXT_METRICS, References, open_metrics, over_references
from citerec.write.tasks import Prediction, Source, TextTask
from tests.conftest import ROOT
from tests.discourse.toy import sentences
from tests.tiny_seq2seq import write_tiny_bart

TASK = TextTask("t", (Source("A parser of trees.", "W0"),), targets=("A parser [0].", "Trees."))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Models for the metrics that need one."""
    bart = write_tiny_bart(tmp_path_factory.mktemp("bart"), ["A tree parser . It parses 3 trees ."])
    return {"bertscore_model": "all-MiniLM-L6-v2", "bertscore_layer": 6, "bartscore_model": str(bart)}


def test_no_two_columns_of_metrics_have_one_name(models: dict[str, object]) -> None:
    names = [name for name, part in TEXT_METRICS.items() if not part.needs_tagger]
    metrics, corpus_metrics = open_metrics(names, **models)
    of_corpus = [metric.name for metric in corpus_metrics]
    assert of_corpus == ["labels"]
    assert [metric.name for metric in metrics] == [name for name in names if name not in of_corpus]
    columns = [column.name for metric in metrics for column in metric.columns]
    assert len(set(columns)) == len(columns)


@pytest.fixture(scope="module")
def taggers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tagger for each metric that needs one."""
    folder = tmp_path_factory.mktemp("tagger") / "toy"
    folder.mkdir()
    examples = sentences()
    labels = tuple(sorted({label for one in examples for label in one.labels}))
    LinearTagger.fit(examples, TaggerManifest(model="linear", scheme="toy", labels=labels), seed=1).save(folder)
    return {name: folder for name, part in TEXT_METRICS.items() if part.needs_tagger}


@pytest.mark.parametrize("name", list(TEXT_METRICS))
def test_every_metric_keeps_the_contract(name: str, taggers: dict[str, Path], models: dict[str, object]) -> None:
    texts = [Prediction(TASK, "A tree parser [0]. It parses 3 trees.", "w"), Prediction(TASK, "", "w")]
    options = {**models, "workers": 1, "taggers": taggers}
    found = []
    for _ in range(2):
        metrics, corpus_metrics = open_metrics([name], **options)
        (metric,) = (*metrics, *corpus_metrics)
        assert metric.name == name
        assert orjson.dumps(dict(metric.settings)) != b"{}"
        found += [orjson.dumps(one.summary(texts, lambda *_: None)) for one in corpus_metrics]
        found += [one.scores(texts, lambda *_: None).tobytes() for one in metrics]
        for one in metrics:
            assert one.scores(texts, lambda *_: None).shape == (2, len(one.columns))
            assert one.scores([], lambda *_: None).shape == (0, len(one.columns))
            assert np.isnan(one.scores([Prediction(TextTask("u", ()), "", "w")], lambda *_: None)).any() or not any(
                column.judges for column in one.columns
            )
        for one in corpus_metrics:
            nothing = one.summary([], lambda *_: None)
            assert nothing["kl_divergence"] is None if "kl_divergence" in nothing else nothing == {"values": {}}
    assert found[0] == found[1]
    docs = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert name in docs or name.rpartition("-")[0] in docs, f"{name} is not in the docs"
    with pytest.raises(InputError, match=f"there is no text metric '{name}x'. Did you mean "):
        open_metrics([f"{name}x"])


def test_the_example_of_the_docs_prints_what_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "texts.md").read_text()
    found = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", docs, re.DOTALL)
    assert found
    exec(found[1], {})
    assert capsys.readouterr().out == found[2]


def test_what_is_said_reaches_the_metrics() -> None:
    named = ["rouge", "blockmatch-rouge2", "citations", "rouge"]
    (rouge, blockmatch, citations), _ = open_metrics(named, stemming=True, rouge_l="summary", references="first")
    assert rouge.columns[-1].name == "rougeLsum"
    assert rouge.settings["stemming"] and blockmatch.settings["score"]["stemming"]
    assert (
        rouge.settings["references"] == blockmatch.settings["references"] == citations.settings["references"] == "first"
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["rouge", "roge"], r"there is no text metric 'roge'. Did you mean rouge\? Choose: rouge, bertscore, "),
        ([], "no metric is named. Choose: rouge, "),
        (["corwa"], "the metric corwa needs a tagger. Give what citerec train tagger made: --tagger corwa=FOLDER"),
    ],
)
def test_what_cannot_be_opened_says_what_could(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_metrics(names, taggers={"intent": Path("x")})


def test_a_word_that_no_option_has_is_refused() -> None:
    choices = {
        "rouge_l": "'sentence' or 'summary'",
        "references": "'best' or 'first'",
        "cited_works": "'sources' or 'named'",
        "discourse_mean": "'sentences' or 'datasets'",
    }
    for name, words in choices.items():
        with pytest.raises(InputError, match=f"{name}: Input should be {words}"):
            open_metrics(["length"], **{name: "all"})


def test_the_names_of_the_metrics_load_nothing_heavy() -> None:
    heavy = "torch", "transformers", "bert_score", "rouge_score", "nltk", "scipy", "sklearn", "pysbd"
    names = "import sys; from citerec.write.metrics import TEXT_METRICS; list(TEXT_METRICS)"
    code = f"{names}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=4))
def test_ways_over_references(values: list[list[float]]) -> None:
    array = np.array(values)
    ways: tuple[References, ...] = ("best", "first")
    best, first = (over_references(array, way) for way in ways)
    assert best.tolist() in values and best[0] == array[:, 0].max()
    assert first.tolist() == values[0]
    assert np.isnan(over_references(array[:0], "best")).all()
