"""Names that look like something else: rich's markup, mathematics, HTML, patterns. They are shown as they are."""

import html
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from citerec.cli.console import say
from citerec.cli.evaluate import results_parts
from citerec.discourse.classifier import Probabilities
from citerec.evaluation.page import means_chart
from citerec.evaluation.predictions import Predictions, read_predictions
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import OVERALL
from citerec.evaluation.tables import blocks, show
from citerec.evaluation.texts import evaluate_texts
from citerec.papers.citebench.metrics import Discourse
from citerec.papers.citebench.rating import SCALES, ratings_tables
from citerec.write.metrics import open_metrics
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import record

DATASETS = ("[/b]", "$a_{$")
SYSTEMS = (r"[red]one\d", r"<b>\1 $x^{$", "[/]")
LABELS = ("[/label]", "[bold]")


class Halves:
    """Tags every sentence alike."""

    name, scheme, labels = "[/tagger]", "[/]", LABELS

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        return [np.full((len(paragraph), 2), 0.5) for paragraph in paragraphs]

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        return [(LABELS[0],) * len(paragraph) for paragraph in paragraphs]


@pytest.fixture
def predictions(tmp_path: Path) -> Predictions:
    records = [
        record(kind, number, writer=name, dataset=DATASETS[number % 2])
        for kind, name in zip(("copy", "noise", "oracle"), SYSTEMS, strict=True)
        for number in range(6)
    ]
    return read_predictions([(None, write_lines(tmp_path / "all.jsonl", records))])


@pytest.fixture
def results(predictions: Predictions) -> Results:
    text_metrics, _ = open_metrics(["rouge", "length"], workers=1)
    return evaluate_texts(predictions, text_metrics, [Discourse("intent", Halves())], resamples=100)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_tables_show_them(results: Results) -> None:
    console = Console(file=io.StringIO(), width=300)
    say(*results_parts(results), console=console, whole=True)
    for name in (*DATASETS, *SYSTEMS, *LABELS):
        assert printed(console).count(name) > 1, name


def test_tables_of_ratings_show_them() -> None:
    mean = {"n": 2, "value": 0.5, "ci": None}
    means = {name: dict.fromkeys(SCALES, mean) for name in (OVERALL, *DATASETS)}
    rated = {
        "texts": {"rated": 2, "of_key": 4},
        "raters": {"[/anna]": {"rated": 1, "texts": 2}},
        "systems": {name: {"upper_bound": name == SYSTEMS[0], "means": means} for name in SYSTEMS},
        "agreement": [],
    }
    console = Console(file=io.StringIO(), width=300)
    for table in ratings_tables(rated):
        show(console, table)
    for name in (*DATASETS, *SYSTEMS, "[/anna]", "2 of 4 texts of the key were rated"):
        assert name in printed(console)


def test_charts_and_the_page_show_them(results: Results, tmp_path: Path) -> None:
    chart = html.unescape(means_chart(results, blocks(results)[0]))
    for name in DATASETS:
        assert re.search(rf"<text [^>]*>{re.escape(name)}</text>", chart), name
    assert f'aria-label="rouge: means of {", ".join(SYSTEMS)}"' in chart
    results.write(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for name in (*DATASETS, *SYSTEMS, *LABELS):
        assert html.escape(name) in page, name
    assert SYSTEMS[1] not in page  # no element of the page
