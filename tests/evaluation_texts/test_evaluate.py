"""Systems that write, measured: by real metrics, into files and a page."""

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
import pytest
from rich.console import Console

from citerec.cli.console import say
from citerec.cli.evaluate import results_parts
from citerec.errors import InputError
from citerec.evaluation.page import pieces_of
from citerec.evaluation.predictions import Predictions, read_predictions
from citerec.evaluation.results import Results, merge
from citerec.evaluation.statistics import ALL, DATASET
from citerec.evaluation.tables import said
from citerec.evaluation.texts import evaluate_texts
from citerec.papers.citebench.metrics import Discourse
from citerec.write.metrics import DEFAULT_METRICS, open_metrics
from citerec.write.tasks import Source
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import TARGETS, WRITTEN, record

Files = Callable[..., list[Path]]
XING, LU = (DATASET, "xing"), (DATASET, "lu")


class WordTagger:
    """Tags a sentence as a question of "graphs", or as anything else: labels that a reader can check."""

    name, scheme, labels = "words", "intent", ("graphs", "other", "never")

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[list[dict[str, float]]]:
        return [[dict.fromkeys(self.labels, 1 / 3) for _ in paragraph] for paragraph in paragraphs]

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        return [tuple("graphs" if "raph" in sentence else "other" for sentence in one) for one in paragraphs]


@pytest.fixture
def predictions(files: Files) -> Predictions:
    return read_predictions([(None, path) for path in files()])


def evaluated(predictions: Predictions, names: Sequence[str] = DEFAULT_METRICS, **options: int) -> Results:
    text_metrics, _ = open_metrics(names, workers=1)
    return evaluate_texts(predictions, text_metrics, [Discourse("intent", WordTagger())], **options)


def test_means_are_those_of_the_metrics_own_scores(predictions: Predictions) -> None:
    results = evaluated(predictions)
    metrics, _ = open_metrics(DEFAULT_METRICS, workers=1)
    for name, texts in predictions.systems.items():
        for metric in metrics:
            scores = metric.scores(texts, lambda *_: None)
            for place, column in enumerate(metric.columns):
                for group, of_group in ((ALL, slice(0, 6)), (XING, slice(0, 3)), (LU, slice(3, 6))):
                    mean = results.systems[name].scores(group).means[column.name]
                    values = scores[of_group, place]
                    assert mean.n == np.count_nonzero(~np.isnan(values))
                    assert mean.value == (pytest.approx(np.nanmean(values)) if mean.n else None)
    assert results.record.settings["rouge"] == metrics[0].settings
    assert results.systems["noise"].empty == 1
    assert "noise wrote nothing for 1 task." in results.record.notes


def test_oracles_are_never_the_best_and_never_tested(predictions: Predictions) -> None:
    results = evaluated(predictions, ["rouge", "length"])
    assert results.systems["oracle"].is_oracle
    assert results.systems["oracle"].overall.values["rouge1"] == 1.0
    assert results.best(ALL, results.columns[0]) == {"copy"}
    assert results.best(ALL, results.columns[3]) == set()  # words: there is no best length
    assert {(c.first, c.second) for c in results.comparisons} == {("copy", "noise")}
    alone = read_predictions_of(predictions, "copy", "oracle")
    assert evaluated(alone, ["rouge"]).best(ALL, results.columns[0]) == set()


def test_equals_are_best_together_and_where_all_are_equal_none_is(predictions: Predictions) -> None:
    again = read_predictions_of(predictions, "copy", "noise", "oracle")
    again = replace(
        again, systems={**again.systems, "again": again.systems["copy"]}, missing={**again.missing, "again": 0}
    )
    results = evaluated(again, ["rouge"])
    assert results.best(ALL, results.columns[0]) == {"copy", "again"}
    # As a sum over the same texts in another order may be.
    texts, higher = results.texts, results.texts["system"] == "again"
    near = replace(results, texts=texts.assign(value=texts["value"].where(~higher, texts["value"] * (1 + 1e-15))))
    assert near.best(ALL, results.columns[0]) == {"copy", "again"}
    out = io.StringIO()
    say(*results_parts(results), console=Console(file=out, width=300), whole=True)
    assert len(re.findall(r"^(?:overall)? +(?:copy|again) +6 +★", out.getvalue(), re.MULTILINE)) == 2
    same = evaluated(replace(again, systems=dict.fromkeys(("copy", "again"), again.systems["copy"])), ["rouge"])
    assert same.best(ALL, results.columns[0]) == set()


def read_predictions_of(predictions: Predictions, *names: str) -> Predictions:
    systems = {name: predictions.systems[name] for name in names}
    missing = dict.fromkeys(names, 0)
    return Predictions(predictions.tasks, systems, predictions.oracles, predictions.total, missing)


def test_targets_are_measured_where_a_value_describes(predictions: Predictions) -> None:
    results = evaluated(predictions, ["rouge", "length"])
    assert results.targets is not None
    assert results.targets.overall.values["words"] == results.systems["oracle"].overall.values["words"]
    assert results.targets.overall.values["rouge1"] is None


def test_the_same_seed_gives_the_same_results(predictions: Predictions) -> None:
    first, again, other = (evaluated(predictions, ["rouge"], seed=seed) for seed in (1, 1, 2))
    assert first.to_frame().equals(again.to_frame())
    assert first.comparisons == again.comparisons
    assert first.systems["copy"].overall.means["rouge1"].ci != other.systems["copy"].overall.means["rouge1"].ci


def test_shares_of_labels_and_their_divergence(predictions: Predictions) -> None:
    results = evaluated(predictions, ["length"])
    of_labels = evaluate_texts(predictions, [], [Discourse("intent", WordTagger())])
    assert repr(of_labels) == "<Results of 6 tasks, 3 systems: copy, noise, oracle>"
    found = results.systems["noise"].summaries["intent"]["overall"]
    assert found["system"]["graphs"] == 0
    assert (found["kl_divergence"], found["missing"]) == ("∞", ["graphs"])
    assert results.systems["oracle"].summaries["intent"]["overall"]["kl_divergence"] == 0
    assert set(results.systems["copy"].summaries["intent"]) == {"overall", "xing", "lu"}


def test_files_hold_all_figures(predictions: Predictions, tmp_path: Path) -> None:
    results, out = evaluated(predictions), tmp_path / "out"
    results.write(out)
    assert {path.name for path in out.iterdir()} == {
        "meta.json", "labels.parquet", "texts.parquet", "results.csv", "scores.csv", "report.html",
    }  # fmt: skip
    with (out / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(WRITTEN) * len(TARGETS)
    for one in results.to_json()["means"]:
        if one["system"] != "target":
            group = {one["class"]} if one["family"] == DATASET else {"xing", "lu"}
            cells = [row[one["metric"]] for row in rows if row["system"] == one["system"] and row["dataset"] in group]
            values = [float(cell) for cell in cells if cell]
            assert len(values) == one["n"]
            assert one["value"] == (pytest.approx(np.mean(values)) if values else None)


def test_results_come_back_and_lie_side_by_side(predictions: Predictions, tmp_path: Path) -> None:
    results = evaluated(predictions)
    results.write(tmp_path / "out")
    back = Results.read(tmp_path / "out")
    assert orjson.dumps(back.to_json()) == orjson.dumps(results.to_json())
    assert back.contexts_to_frame().equals(results.contexts_to_frame())
    back.write(tmp_path / "again")
    assert (tmp_path / "again" / "scores.csv").read_bytes() == (tmp_path / "out" / "scores.csv").read_bytes()
    parts = {name: evaluated(read_predictions_of(predictions, name)) for name in ("copy", "noise", "oracle")}
    merged = merge(parts)
    assert merged.systems["copy"].overall == results.systems["copy"].overall
    assert merged.comparisons == results.comparisons
    settings = {**parts["noise"].record.settings, "rouge": {"stemming": True}}
    other = replace(parts["noise"], record=parts["noise"].record.model_copy(update={"settings": settings}))
    with pytest.raises(InputError, match="b and a used different metrics"):
        merge({"a": parts["copy"], "b": other})


def test_broken_texts_are_refused(predictions: Predictions, tmp_path: Path) -> None:
    evaluated(predictions, ["rouge"]).write(out := tmp_path / "out")
    whole = pd.read_parquet(out / "texts.parquet")
    for texts in (pd.concat([whole[1:], whole[-1:]]), whole.drop(columns="metric"), whole.assign(value="x")):
        texts.to_parquet(out / "texts.parquet", index=False)
        with pytest.raises(InputError, match="or they are broken"):
            Results.read(out)


def test_the_same_results_make_the_same_files(predictions: Predictions, tmp_path: Path) -> None:
    results, out = evaluated(predictions, ["rouge"]), tmp_path / "out"
    written = []
    for _ in range(2):
        results.write(out)
        written.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert written[0] == written[1]


class Page(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_needs_nothing_else_and_runs_nothing(predictions: Predictions, tmp_path: Path) -> None:
    evaluated(predictions).write(tmp_path / "out")
    page = Page(tmp_path / "out" / "report.html")
    assert not [tag for tag, _ in page.elements if tag in ("script", "link", "img", "iframe", "object")]
    addresses = [attributes[name] for _, attributes in page.elements for name in ("href", "src") if name in attributes]
    assert addresses
    assert all(address and address.startswith("#") for address in addresses)
    assert not re.search(r"url\((?!#)|@import", (tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    text = " ".join(" ".join(page.words).split())
    assert "<script>alert('x')</script> & more" in text  # as it was written, and not run
    for said_once in (*(target.split(" [")[0] for target in TARGETS), "rouge-score", "stemming: off", "oracle †", "∞"):
        assert said_once in text


def test_the_policy_of_the_page_allows_its_own_style_and_nothing_else(predictions: Predictions, tmp_path: Path) -> None:
    evaluated(predictions).write(tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert text.index(policy) < text.index("<title>")
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src-elem 'sha256-{digest}'",
        "style-src-attr 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert text.count("<style") == 1  # charts bring none of their own
    assert text.count("<svg") > 1
    assert "<script>" not in text


def test_the_page_flags_citations_that_stand_for_nothing(predictions: Predictions, tmp_path: Path) -> None:
    evaluated(predictions, ["rouge"]).write(tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert re.search(r'<mark class="unknown" title="[^"]*">\[7\]</mark>', text)
    assert '<mark class="citation">[1]</mark>' in text


def page_of(tmp_path: Path, **changes: object) -> str:
    path = write_lines(tmp_path / "a.jsonl", [record("copy", 0, **changes)])
    evaluated(read_predictions([(None, path)]), ["rouge"]).write(tmp_path / "out")
    return (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_the_page_shows_what_was_measured_whatever_is_said_of_it(tmp_path: Path) -> None:
    other = [{"text": "BBB", "drawn_from": [99], "unknown": ["[99]"]}]
    text = page_of(tmp_path, prediction="AAA", sentences=other)
    assert '<div class="prediction">AAA</div>' in text
    assert "BBB" not in text and "99" not in re.findall(r'<div class="texts">.*?</details>', text, re.DOTALL)[0]
    assert "(12,000 more characters)" in page_of(tmp_path, prediction="A b. " * 4000)


def test_the_page_flags_what_its_record_says_stands_for_nothing(tmp_path: Path) -> None:
    told = [{"text": "So say (Smith, 2017).", "drawn_from": [], "unknown": ["(Smith, 2017)"]}]
    text = page_of(tmp_path, prediction="Trees [1]. So say (Smith, 2017).", sentences=told)
    flag = '<mark class="unknown" title="this citation matches no source">'
    assert f'Trees <mark class="citation">[1]</mark>. So say {flag}(Smith, 2017)</mark>.' in text


def test_results_name_files_and_settings(files: Files, tmp_path: Path) -> None:
    (copy,) = files("copy")
    beams = write_lines(
        tmp_path / "b.jsonl", [record("noise", n, settings={"beams": 4, "prompt": None}) for n in range(6)]
    )
    mixed = write_lines(tmp_path / "m.jsonl", [record("noise", n, writer="mixed", settings={"n": n}) for n in range(6)])
    results = evaluated(read_predictions([(None, copy), (None, beams), (None, mixed)], copy), ["rouge"])
    value = results.to_json()
    assert {name: system["settings"] for name, system in value["systems"].items()} == {
        "copy": {},
        "noise": {"beams": 4, "prompt": None},
        "mixed": "varies",
    }
    digest = hashlib.sha256(beams.read_bytes()).hexdigest()
    assert value["systems"]["noise"]["files"] == [{"name": "b.jsonl", "bytes": beams.stat().st_size, "sha256": digest}]
    assert value["set"]["references"]["name"] == "copy.jsonl"
    assert str(tmp_path) not in json.dumps(value)
    results.write(tmp_path / "out")
    text = " ".join(" ".join(Page(tmp_path / "out" / "report.html").words).split())
    size = f"b.jsonl ({beams.stat().st_size:,} bytes, sha256 {digest[:12]}…)"
    assert f"{size} beams: 4 · prompt: none" in text
    assert "varies from text to text" in text
    assert "Tasks from copy.jsonl (" in text


def test_texts_without_targets_say_so(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [record("copy", number, target=[]) for number in range(6)])
    results = evaluated(read_predictions([(None, path)]), ["rouge", "length"])
    results.write(tmp_path / "out")
    assert results.systems["copy"].overall.values["rouge1"] is None
    assert results.targets is None
    assert "6 tasks without a target: metrics that compare with it are undefined." in results.record.notes
    assert "Not defined for any of these texts." in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_pieces_make_up_the_text() -> None:
    text = "Kernels [0, 1] and [0] and [2]; <cite>X <sep> A title </cite>."
    pieces = pieces_of(text, [Source("one"), Source("two")])
    assert "".join(text for text, _ in pieces) == text
    assert [piece for piece in pieces if piece[1]] == [
        ("[0, 1]", "citation"),
        ("[0]", "citation"),
        ("[2]", "unknown"),
        ("<cite>X <sep> A title </cite>", "unknown"),
    ]
    assert (said(True), said(False), said([1, "a"]), said(2)) == ("on", "off", "1, a", "2")
    assert said({"name": "rouge2", "stemming": False}) == "name rouge2, stemming off"


def test_no_metric_and_few_samples_are_refused(predictions: Predictions) -> None:
    with pytest.raises(InputError, match="there is no metric"):
        evaluate_texts(predictions, [])
    with pytest.raises(InputError, match="at least 100"):
        evaluated(predictions, ["length"], resamples=99)


@pytest.mark.parametrize(("width", "terminal"), [(60, True), (60, False), (400, True)])
def test_tables_fit_terminals_and_are_whole_in_pipes(predictions: Predictions, width: int, terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, highlight=False, no_color=True)
    say(*results_parts(evaluated(predictions, ["rouge"])), console=console, whole=True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    narrow = terminal and width < 100
    assert bool(re.search(r"^overall +copy +6 +★ [\d.]+ \[[\d.]+ [\d.]+\]", plain, re.MULTILINE)) == (not narrow)
    assert re.search(r"^overall +copy +6 +★ [\d.]+", plain, re.MULTILINE)
    assert re.search(r"^overall +noise +[\d.]+ +[\d.]+ +[\d.]+ +∞ *$", plain, re.MULTILINE)
