"""Metrics by name."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.errors import InputError
from citerec.texts.metrics.metric import References, over_references
from citerec.texts.metrics.registry import DISCOURSE, METRICS, open_metrics
from citerec.texts.tasks import Source, TextTask, Written

TASK = TextTask("t", (Source("A parser of trees.", "W0"),), targets=("A parser [0].", "Trees."))


def test_every_metric_opens_and_scores_each_of_its_columns() -> None:
    names = [name for name in METRICS if name not in DISCOURSE]
    metrics, corpus_metrics = open_metrics(names, bertscore_model="all-MiniLM-L6-v2", bertscore_layer=6)
    assert [metric.name for metric in metrics] == names and corpus_metrics == []
    texts = [Written(TASK, "A tree parser [0].", "w"), Written(TASK, "", "w"), Written(TextTask("u", ()), "", "w")]
    columns: list[str] = []
    for metric in metrics:
        assert metric.scores(texts, lambda *_: None).shape == (3, len(metric.columns))
        assert metric.scores([], lambda *_: None).shape == (0, len(metric.columns))
        assert metric.settings
        columns.extend(metric.columns)
    assert len(set(columns)) == len(columns)


def test_the_example_of_the_docs_prints_what_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "text-metrics.md").read_text()
    found = re.search(r"```python\n(.*?)```\n```\n(.*?)```", docs, re.DOTALL)
    assert found
    exec(found[1], {})
    assert capsys.readouterr().out == found[2]


def test_what_is_said_reaches_the_metrics() -> None:
    named = ["rouge", "blockmatch-rouge2", "citations", "rouge"]
    (rouge, blockmatch, citations), _ = open_metrics(named, stemming=True, rouge_l="summary", references="mean")
    assert rouge.columns[-1] == "rougeLsum"
    assert rouge.settings["stemming"] and blockmatch.settings["score"]["stemming"]
    assert (
        rouge.settings["references"] == blockmatch.settings["references"] == citations.settings["references"] == "mean"
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["rouge", "roge"], r"there is no metric of texts 'roge'. Did you mean rouge\? Choose: rouge, bertscore, "),
        ([], "no metric is named. Choose: rouge, "),
        (["corwa"], "the metric corwa needs a tagger. Give what citerec train tagger made: --tagger corwa=FOLDER"),
    ],
)
def test_what_cannot_be_opened_says_what_could(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_metrics(names, taggers={"intent": Path("x")})


def test_the_registry_loads_nothing_heavy() -> None:
    heavy = "torch", "transformers", "bert_score", "rouge_score", "nltk", "scipy", "sklearn", "pysbd"
    code = f"import sys, citerec.texts.metrics.registry; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=4))
def test_ways_over_references(values: list[list[float]]) -> None:
    array = np.array(values)
    ways: tuple[References, ...] = ("best", "best-each", "mean", "first")
    best, best_each, mean, first = (over_references(array, way) for way in ways)
    assert best.tolist() in values and best[0] == array[:, 0].max()
    assert best_each.tolist() == array.max(axis=0).tolist()
    assert mean == pytest.approx(sum(array) / len(array))
    assert first.tolist() == values[0]


def test_references() -> None:
    with pytest.raises(InputError, match=r"'worst'\. Choose: best, best-each, mean, first"):
        over_references(np.zeros((1, 1)), "worst")  # type: ignore[arg-type]
    assert np.isnan(over_references(np.empty((0, 3)), "best")).tolist() == [True] * 3
