"""Systems that write, measured: by real metrics, into files and a page."""

import base64
import contextlib
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

from citerec.cli.console import say
from citerec.errors import InputError
from citerec.evaluation import statistics
from citerec.evaluation.results import Results
from citerec.evaluation.statistics import ALL, DATASET, Comparison
from citerec.evaluation.tables import results_parts
from citerec.evaluation.texts import Predictions, evaluate_texts, read_predictions
from citerec.papers.citebench.metrics import Discourse
from citerec.write.metrics import DEFAULT_METRICS, open_metrics
from tests.conftest import write_lines
from tests.evaluation_texts.conftest import SOURCES, TARGETS, WRITTEN, record

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


def printed(results: Results) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say(*results_parts(results), whole=True)
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


def test_tasks_without_a_target(tmp_path: Path) -> None:
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
    assert len(re.findall(r"^(?:overall)? +(?:copy|again) +6 +★", printed(results), re.MULTILINE)) == 2
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
    path = write_lines(tmp_path / "b.jsonl", beams)
    results = evaluated(read_predictions([(None, files["copy"]), (None, path)], files["copy"]), "rouge")
    systems = results.to_json()["systems"]
    assert [one["settings"] for one in systems.values()] == [{}, {"beams": 4, "prompt": None}]
    digest, size = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    assert systems["noise"]["files"] == [{"name": "b.jsonl", "bytes": size, "sha256": digest}]
    assert str(tmp_path) not in json.dumps(results.to_json())
    results.write(tmp_path / "out")
    shown = words_of((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert f"b.jsonl ({size:,} bytes, sha256 {digest[:12]}…) beams: 4 · prompt: none" in shown
    assert "Tasks from copy.jsonl (" in shown


def test_names_that_look_like_markup_mathematics_or_html_are_shown_as_they_are(tmp_path: Path) -> None:
    datasets, systems = ("[/b]", "$a_{$"), (r"[red]one\d", r"<b>\1 $x^{$", "[/]")
    records = [
        record(kind, number, writer=name, dataset=datasets[number % 2])
        for kind, name in zip(WRITTEN, systems, strict=True)
        for number in range(6)
    ]
    results = evaluated(read_predictions([(None, write_lines(tmp_path / "all.jsonl", records))]), "rouge", "length")
    results.write(tmp_path / "out")
    table, page = printed(results), (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for name in (*datasets, *systems, "[/g]", "[b]"):
        assert table.count(name) > 1, name
        assert html.escape(name) in page, name
    assert systems[1] not in page  # no element of the page


def test_texts_of_one_paper_change_their_sign_together_and_pairs_are_compared_where_both_have_a_value() -> None:
    def compared(one: list[float], two: list[float], papers: str) -> Comparison:
        scores = {name: np.array([values]).T for name, values in (("one", one), ("two", two))}
        grouping = statistics.grouping_of(["a"] * len(one), list(papers))
        (found,) = statistics.compare(scores, ["x"], grouping, 0)
        return found

    # All three must keep, or all change, their sign: 2 of 8 ways.
    assert compared([1, 1, 1], [0, 0, 0], "pqr").p == pytest.approx(0.25, abs=0.02)
    assert compared([1, 1, 1], [0, 0, 0], "ppp").p == 1.0
    found = compared([1, np.nan, 3, 4], [0, 9, np.nan, 1], "pqrs")
    assert (found.n, found.difference) == (2, 2.0)


def read(*paths: Path, references: Path | None = None) -> Predictions:
    return read_predictions([(None, path) for path in paths], references)


def test_only_tasks_that_all_answered_are_compared(tmp_path: Path, files: Mapping[str, Path]) -> None:
    found = read(files["copy"], write_lines(tmp_path / "few.jsonl", [record("noise", number) for number in (4, 1)]))
    assert [task.task_id for task in found.tasks] == ["task-1", "task-4"]
    assert [text.text for text in found.systems["noise"]] == [WRITTEN["noise"][1], WRITTEN["noise"][4]]
    assert (found.total, found.left_out, found.missing) == (6, 4, {"copy": 0, "noise": 4})


def test_targets_that_differ_are_told(tmp_path: Path, files: Mapping[str, Path]) -> None:
    other = write_lines(tmp_path / "other.jsonl", [record("noise", 0, target="Another.")])
    with pytest.raises(InputError, match="the target of task task-0 of xing differs from an earlier one"):
        read(files["copy"], other)


def test_predictions_made_elsewhere_find_their_tasks(tmp_path: Path, files: Mapping[str, Path]) -> None:
    tasks = files["copy"]
    bare = [{"id": f"task-{n}", "prediction": f"{n}"} for n in (5, 0)]
    found = read(write_lines(tmp_path / "bare.jsonl", bare), references=tasks)
    assert [(text.task.task_id, text.text) for text in found.systems["bare"]] == [("task-0", "0"), ("task-5", "5")]
    assert [task.targets for task in found.tasks] == [(TARGETS[0],), (TARGETS[5],)]
    assert [source.text for source in found.tasks[0].sources] == list(SOURCES)
    assert ([task.dataset for task in found.tasks], found.left_out) == (["xing", "lu"], 4)
    with pytest.raises(InputError, match=r"no tasks in .*copy\.jsonl have the id line-1"):
        read(write_lines(tmp_path / "without.jsonl", [{"prediction": "text"}]), references=tasks)


def test_one_id_in_two_data_sets_is_two_tasks(tmp_path: Path) -> None:
    copy = write_lines(tmp_path / "copy.jsonl", [record("copy", number, id="1") for number in (0, 5)])
    bare = write_lines(
        tmp_path / "b.jsonl", [{"id": "1", "dataset": name, "prediction": name} for name in ("lu", "xing")]
    )
    for found in (read(copy), read(bare, references=copy)):
        tasks = [(task.dataset, task.task_id, task.targets) for task in found.tasks]
        assert tasks == [("xing", "1", (TARGETS[0],)), ("lu", "1", (TARGETS[5],))]
    assert [text.text for text in found.systems["b"]] == ["xing", "lu"]
    with pytest.raises(InputError, match=r"2 tasks in .*copy\.jsonl have the id 1"):
        read(write_lines(tmp_path / "which.jsonl", [{"id": "1", "prediction": "text"}]), references=copy)
    other = write_lines(tmp_path / "other.jsonl", [{"id": "1", "dataset": "x", "prediction": "text"}])
    with pytest.raises(InputError, match=r"no tasks in .*copy\.jsonl have the id 1 of x"):
        read(other, references=copy)
    # Where the references name no data set, the id will do.
    nameless = write_lines(tmp_path / "nameless.jsonl", [record("copy", 0, id="1", dataset="")])
    assert [text.task.targets for text in read(other, references=nameless).systems["other"]] == [(TARGETS[0],)]
