"""Systems that write, measured: by real metrics, into files and a page."""

import base64
import csv
import hashlib
import html
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
import pytest
from rich.console import Console

from citerec.cli.console import say
from citerec.cli.evaluate import results_parts
from citerec.errors import InputError
from citerec.evaluation import statistics
from citerec.evaluation.predictions import Predictions, read_predictions
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import ALL, DATASET, Comparison
from citerec.evaluation.texts import evaluate_texts
from citerec.papers.citebench.metrics import Discourse
from citerec.write.metrics import DEFAULT_METRICS, open_metrics
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import TARGETS, WRITTEN, record

XING, LU = (DATASET, "xing"), (DATASET, "lu")


class WordTagger:
    """Tags a sentence by whether it is about graphs: labels that a reader can check."""

    name, scheme, labels = "[/tagger]", "[/]", ("[/g]", "[b]", "never")

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[list[dict[str, float]]]:
        return [[dict.fromkeys(self.labels, 1 / 3) for _ in paragraph] for paragraph in paragraphs]

    def tag(self, paragraphs: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        return [tuple(self.labels["raph" not in sentence] for sentence in one) for one in paragraphs]


def evaluated(predictions: Predictions, *names: str, **options: int) -> Results:
    text_metrics, _ = open_metrics(names or DEFAULT_METRICS, workers=1)
    return evaluate_texts(predictions, text_metrics, [Discourse("intent", WordTagger())], **options)


def of(predictions: Predictions, **systems: str) -> Predictions:
    """Systems by their new name, with the texts of old ones."""
    texts = {new: predictions.systems[old] for new, old in systems.items()}
    return replace(predictions, systems=texts, missing=dict.fromkeys(systems, 0))


def printed(results: Results, **options: object) -> str:
    console = Console(file=(out := io.StringIO()), highlight=False, no_color=True, **options)  # type: ignore[arg-type]
    say(*results_parts(results), console=console, whole=True)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


@pytest.fixture(scope="module")
def results(predictions: Predictions) -> Results:
    return evaluated(predictions)


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the results."""
    results.write(out := tmp_path_factory.mktemp("results") / "out")
    return out


def test_means_are_those_of_the_metrics_own_scores(predictions: Predictions, results: Results) -> None:
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
    assert repr(results) == "<Results of 6 tasks, 3 systems: copy, noise, oracle>"
    labels = results.systems["noise"].summaries["intent"]["overall"]
    assert labels["system"]["[/g]"] == 0
    assert (labels["kl_divergence"], labels["missing"]) == ("∞", ["[/g]"])
    assert results.systems["oracle"].summaries["intent"]["overall"]["kl_divergence"] == 0
    assert set(results.systems["copy"].summaries["intent"]) == {"overall", "xing", "lu"}


def test_what_cannot_be_measured(predictions: Predictions, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no metric"):
        evaluate_texts(predictions, [])
    with pytest.raises(InputError, match="at least 100"):
        evaluated(predictions, "length", resamples=99)
    path = write_lines(tmp_path / "a.jsonl", [record("copy", number, target=[]) for number in range(6)])
    results = evaluated(read_predictions([(None, path)]), "rouge", "length")
    results.write(tmp_path / "out")
    assert results.systems["copy"].overall.values["rouge1"] is None
    assert results.targets is None
    assert "6 tasks without a target: metrics that compare with it are undefined." in results.record.notes
    assert "Not defined for any of these texts." in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_oracles_are_never_the_best_and_never_tested(predictions: Predictions) -> None:
    results = evaluated(predictions, "rouge", "length")
    rouge, words = results.columns[0], results.columns[3]
    assert results.systems["oracle"].is_oracle and results.systems["oracle"].overall.values["rouge1"] == 1.0
    assert results.best(ALL, rouge) == {"copy"}
    assert results.best(ALL, words) == set()  # there is no best length
    assert {(c.first, c.second) for c in results.comparisons} == {("copy", "noise")}
    assert evaluated(of(predictions, copy="copy", oracle="oracle"), "rouge").best(ALL, rouge) == set()
    # Targets are measured where a value describes.
    assert results.targets is not None
    assert results.targets.overall.values["words"] == results.systems["oracle"].overall.values["words"]
    assert results.targets.overall.values["rouge1"] is None


def test_equals_are_best_together_and_where_all_are_equal_none_is(predictions: Predictions) -> None:
    results = evaluated(of(predictions, copy="copy", noise="noise", again="copy"), "rouge")
    rouge = results.columns[0]
    # As a sum over the same texts in another order may be.
    texts, higher = results.texts, results.texts["system"] == "again"
    near = replace(results, texts=texts.assign(value=texts["value"].where(~higher, texts["value"] * (1 + 1e-15))))
    assert results.best(ALL, rouge) == near.best(ALL, rouge) == {"copy", "again"}
    assert len(re.findall(r"^(?:overall)? +(?:copy|again) +6 +★", printed(results, width=300), re.MULTILINE)) == 2
    assert evaluated(of(predictions, copy="copy", again="copy"), "rouge").best(ALL, rouge) == set()


def test_files_hold_all_figures_and_are_read_back(
    predictions: Predictions, results: Results, written: Path, tmp_path: Path
) -> None:
    assert {path.name for path in written.iterdir()} == {
        "meta.json", "labels.parquet", "texts.parquet", "results.csv", "scores.csv", "report.html",
    }  # fmt: skip
    with (written / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(WRITTEN) * len(TARGETS)
    of_copy = [float(row["rouge1"]) for row in rows if (row["system"], row["dataset"]) == ("copy", "lu")]
    mean = results.systems["copy"].scores(LU).means["rouge1"]
    assert (len(of_copy), np.mean(of_copy)) == (mean.n, pytest.approx(mean.value))
    other = evaluated(of(predictions, copy="copy"), "rouge", seed=2).systems["copy"].overall.means["rouge1"]
    assert other.value == results.systems["copy"].overall.means["rouge1"].value
    assert other.ci != results.systems["copy"].overall.means["rouge1"].ci  # the seed decides
    back = Results.read(written)
    assert orjson.dumps(back.to_json()) == orjson.dumps(results.to_json())
    assert back.contexts_to_frame().equals(results.contexts_to_frame())
    results.write(tmp_path / "again")
    for path in written.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    whole = pd.read_parquet(written / "texts.parquet")
    for broken in (pd.concat([whole[1:], whole[-1:]]), whole.drop(columns="metric"), whole.assign(value="x")):
        broken.to_parquet(tmp_path / "again" / "texts.parquet", index=False)
        with pytest.raises(InputError, match="or they are broken"):
            Results.read(tmp_path / "again")


def words_of(page: str) -> str:
    """What a reader sees of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_the_page_needs_nothing_else_and_runs_nothing(written: Path) -> None:
    text = (written / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img|iframe|object)\b|url\((?!#)|@import", text)
    addresses = re.findall(r'\b(?:href|src)="([^"]*)"', text)
    assert addresses and all(address.startswith("#") for address in addresses)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert text.index(policy) < text.index("<title>")
    allowed = [f"style-src-elem 'sha256-{digest}'", "style-src-attr 'unsafe-inline'"]
    assert policy.split("; ") == ["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"]
    assert text.count("<style") == 1 < text.count("<svg")  # charts bring no style of their own
    shown = words_of(text)
    assert "<script>alert('x')</script> & more" in shown  # as it was written
    for words in (*(target.split(" [")[0] for target in TARGETS), "rouge-score", "stemming: off", "oracle †", "∞"):
        assert words in shown
    assert '<mark class="citation">[1]</mark>' in text
    assert re.search(r'<mark class="unknown" title="[^"]*">\[7\]</mark>', text)


def page_of(tmp_path: Path, **changes: object) -> str:
    path = write_lines(tmp_path / "a.jsonl", [record("copy", 0, **changes)])
    evaluated(read_predictions([(None, path)]), "rouge").write(tmp_path / "out")
    return (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_the_page_shows_what_was_measured_whatever_is_said_of_it(tmp_path: Path) -> None:
    other = [{"text": "BBB", "drawn_from": [99], "unknown": ["[99]"]}]
    text = page_of(tmp_path, prediction="AAA", sentences=other)
    assert '<div class="prediction">AAA</div>' in text
    assert "BBB" not in text and "99" not in re.findall(r'<div class="texts">.*?</details>', text, re.DOTALL)[0]
    assert "(12,000 more characters)" in page_of(tmp_path, prediction="A b. " * 4000)
    told = [{"text": "So say (Smith, 2017).", "drawn_from": [], "unknown": ["(Smith, 2017)"]}]
    text = page_of(tmp_path, prediction="Trees [1]. So say (Smith, 2017).", sentences=told)
    flag = '<mark class="unknown" title="this citation matches no source">'
    assert f'Trees <mark class="citation">[1]</mark>. So say {flag}(Smith, 2017)</mark>.' in text


def test_results_name_files_and_settings(files: Mapping[str, Path], tmp_path: Path) -> None:
    beams = [record("noise", number, settings={"beams": 4, "prompt": None}) for number in range(6)]
    mixed = [record("noise", number, writer="mixed", settings={"n": number}) for number in range(6)]
    path = write_lines(tmp_path / "b.jsonl", beams)
    given = [(None, files["copy"]), (None, path), (None, write_lines(tmp_path / "m.jsonl", mixed))]
    results = evaluated(read_predictions(given, files["copy"]), "rouge")
    systems = results.to_json()["systems"]
    assert [one["settings"] for one in systems.values()] == [{}, {"beams": 4, "prompt": None}, "varies"]
    digest, size = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    assert systems["noise"]["files"] == [{"name": "b.jsonl", "bytes": size, "sha256": digest}]
    assert str(tmp_path) not in json.dumps(results.to_json())
    results.write(tmp_path / "out")
    shown = words_of((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert f"b.jsonl ({size:,} bytes, sha256 {digest[:12]}…) beams: 4 · prompt: none" in shown
    assert "varies from text to text" in shown and "Tasks from copy.jsonl (" in shown


@pytest.mark.parametrize(("width", "terminal"), [(60, True), (60, False), (400, True)])
def test_tables_fit_terminals_and_are_whole_in_pipes(predictions: Predictions, width: int, terminal: bool) -> None:
    plain = printed(evaluated(predictions, "rouge"), width=width, force_terminal=terminal)
    narrow = terminal and width < 100
    assert bool(re.search(r"^overall +copy +6 +★ [\d.]+ \[[\d.]+ [\d.]+\]", plain, re.MULTILINE)) == (not narrow)
    assert re.search(r"^overall +copy +6 +★ [\d.]+", plain, re.MULTILINE)
    assert re.search(r"^overall +noise +[\d.]+ +[\d.]+ +[\d.]+ +∞ *$", plain, re.MULTILINE)


def test_names_that_look_like_markup_mathematics_or_html_are_shown_as_they_are(tmp_path: Path) -> None:
    datasets, systems = ("[/b]", "$a_{$"), (r"[red]one\d", r"<b>\1 $x^{$", "[/]")
    records = [
        record(kind, number, writer=name, dataset=datasets[number % 2])
        for kind, name in zip(WRITTEN, systems, strict=True)
        for number in range(6)
    ]
    results = evaluated(read_predictions([(None, write_lines(tmp_path / "all.jsonl", records))]), "rouge", "length")
    results.write(tmp_path / "out")
    table, page = printed(results, width=300), (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for name in (*datasets, *systems, "[/g]", "[b]"):
        assert table.count(name) > 1, name
        assert html.escape(name) in page, name
    assert systems[1] not in page  # no element of the page


NAN = np.nan


def grouped(datasets: list[str], papers: list[str] | None = None) -> statistics.Grouping:
    """Texts of some data sets, each of a paper of its own unless these are named."""
    return statistics.grouping_of(datasets, papers or [f"paper {number}" for number in range(len(datasets))])


def comparisons(scores: dict[str, statistics.Floats], grouping: statistics.Grouping) -> tuple[Comparison, ...]:
    columns = [f"column {number}" for number in range(scores["one"].shape[1])]
    return statistics.compare(scores, columns, grouping, 0, together="pairs")


def test_means_are_over_the_texts_that_have_a_value() -> None:
    assert grouped(["a", "a"]).groups == []
    groups = grouped(["a", "a", "b", ""])
    scores = np.array([[1.0, NAN], [0.0, 5.0], [4.0, NAN], [NAN, NAN]])
    found = statistics.group_scores(scores, ["x", "y"], groups, 0, 100)
    assert [label for _, label in groups.groups] == ["a", "b", statistics.UNNAMED]
    assert [[(mean.n, mean.value) for mean in one.means.values()] for one in found] == [
        [(3, pytest.approx(5 / 3)), (1, 5.0)],
        [(2, 0.5), (1, 5.0)],
        [(1, 4.0), (0, None)],
        [(0, None), (0, None)],
    ]


def test_p_values_of_known_cases() -> None:
    first = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    second = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    better, same = comparisons({"one": first, "two": second}, grouped(["a"] * 3))
    # All three must keep, or all change, their sign: 2 of 8 ways.
    assert (better.n, better.difference, better.p) == (3, 1.0, pytest.approx(0.25, abs=0.02))
    assert (same.difference, same.p, same.p_holm) == (0.0, 1.0, 1.0)
    # Of one paper they change together: it says nothing.
    assert comparisons({"one": first, "two": second}, grouped(["a"] * 3, ["p"] * 3))[0].p == 1.0
    # A pair is compared where both have a value.
    scores = {"one": np.array([[1.0], [NAN], [3.0], [4.0]]), "two": np.array([[0.0], [9.0], [NAN], [1.0]])}
    (found,) = comparisons(scores, grouped(["a"] * 4))
    assert (found.n, found.difference) == (2, 2.0)
    assert comparisons({"one": scores["one"], "two": np.full((4, 1), NAN)}, grouped(["a"] * 4)) == ()


def test_all_pairs_and_data_sets_of_a_column_are_corrected_together() -> None:
    random = np.random.default_rng(5)
    groups = grouped(["a", "b"] * 15)
    scores = {name: random.normal(mean, 1, (30, 1)) for name, mean in (("one", 0.0), ("two", 0.7), ("three", 1.4))}
    found = comparisons(scores, groups)
    assert len(found) == 3 * 3
    for overall in (True, False):
        asked = [c for c in found if (c.family != DATASET) == overall]
        assert [c.p_holm for c in asked] == statistics.holm(np.array([c.p for c in asked])).tolist()
        assert any(c.p_holm > c.p for c in asked)
