"""Results: figures of small cases worked by hand, files that come back, the page."""

import contextlib
import inspect
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from citerec import evaluate
from citerec.corpus.store import PaperStore
from citerec.diagnostics.sets import FamilyOfSet, read_set
from citerec.errors import InputError
from citerec.evaluation.charts import label_places
from citerec.evaluation.cost import Cost, Measured, metered
from citerec.evaluation.figures import Mean, Scores, robustness
from citerec.evaluation.files import ranked_columns, write_figures
from citerec.evaluation.merge import merge
from citerec.evaluation.rendering import to_html
from citerec.evaluation.results import Results
from citerec.index.build import BuildOptions, add_to_index, open_store
from citerec.records import Context
from tests.conftest import DEMO, write_lines
from tests.damage import damaged

METRICS = ("recall@10", "mrr@10", "ndcg@10")


def context(number: int, *cited: int, **fields: object) -> Context:
    return Context(
        text=f"Sentence {'of some words ' * number}with one place <REF>.",
        context_id=f"c{number}",
        cited_ids=tuple(str(900000000 + paper) for paper in cited),
        **fields,  # type: ignore[arg-type]
    )


def answers(by_context: dict[str, list[int]]) -> dict[str, dict[str, float]]:
    return {
        name: {str(900000000 + paper): -float(rank) for rank, paper in enumerate(papers)}
        for name, papers in by_context.items()
    }


CONTEXTS = [context(1, 1), context(2, 2, 3), context(3, 4), context(4, 5)]
RUN = answers({"c1": [1, 2], "c2": [9, 2, 8, 3], "c3": [7]})


def test_figures_worked_by_hand(demo_index: Path) -> None:
    found = evaluate(RUN, CONTEXTS, index=demo_index, metrics=["recall@10", "mrr@10", "recall@3"]).systems["run"]
    assert found.overall.n == 4
    assert found.overall.values == pytest.approx({"recall@10": 0.5, "mrr@10": (1 + 0.5) / 4, "recall@3": 1.5 / 4})
    assert found.empty == 1
    assert found.outcomes["found"] == 3
    assert found.outcomes["not retrieved"] == 2
    assert found.ranks[:5] == [1, 1, 0, 1, 0]
    assert found.kind == "run"
    assert found.cost is None


@pytest.mark.parametrize(("missing", "n", "recall"), [("zero", 2, 0.5), ("skip", 1, 1.0)])
def test_contexts_outside_the_index_count_as_asked(demo_index: Path, missing: str, n: int, recall: float) -> None:
    outside = replace(CONTEXTS[1], cited_ids=("123", "456"))
    run = {name: RUN[name] for name in ("c1", "c2")}
    results = evaluate(run, [CONTEXTS[0], outside], index=demo_index, missing=missing, metrics=["recall@10"])
    assert results.set["outside"] == 1
    assert (results.systems["run"].overall.n, results.systems["run"].overall.values["recall@10"]) == (n, recall)
    assert results.systems["run"].outcomes["not in the index"] == (2 if missing == "zero" else 0)


def test_the_citing_paper_and_newer_papers_are_removed(demo_index: Path) -> None:
    store: PaperStore = open_store(demo_index)
    years = store.years(["900000001", "900000002", "900000041"])
    assert years["900000041"] == 2017
    asked = [context(1, 1, citing_id="900000002", citing_year=2016)]
    run = answers({"c1": [2, 41, 1]})
    fair = evaluate(run, asked, index=demo_index, metrics=["mrr"])
    assert fair.systems["run"].overall.values["mrr"] == 1
    assert fair.systems["run"].removed == {"citing_paper": 1, "newer": 1}
    assert fair.rules["as_of_year"] is True
    all_of_it = evaluate(run, asked, index=demo_index, metrics=["mrr"], exclude_citing=False, as_of_year=False)
    assert all_of_it.systems["run"].overall.values["mrr"] == pytest.approx(1 / 3)
    assert (all_of_it.rules["as_of_year"], all_of_it.rules["exclude_citing"]) == (False, False)
    assert all_of_it.systems["run"].removed == {"citing_paper": 0, "newer": 0}


def test_a_system_keeps_the_rules_by_itself(demo_index: Path) -> None:
    asked = [replace(context(1, 1), text="Attention alone suffices to translate <REF>.", citing_id="900000041")]
    for exclude in (True, False):
        results = evaluate("bm25", asked, index=demo_index, exclude_citing=exclude)
        run = results.rankings["bm25"].run
        assert ("900000041" in run.paper_ids) is not exclude
        assert results.systems["bm25"].removed == {"citing_paper": 0, "newer": 0}


@pytest.fixture(scope="module")
def results(demo_index: Path) -> Results:
    def first_papers(_: Context, k: int) -> Sequence[tuple[str, float]]:
        return [(str(900000001 + number), -float(number)) for number in range(min(k, 12))]

    systems = {"bm25": "bm25", "one-field": "bm25-one-field", "first": first_papers}
    return evaluate(systems, "demo/location", index=demo_index, k=50)


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results in a folder; a page takes a second to draw."""
    write_figures(results, out := tmp_path_factory.mktemp("results") / "out")
    return out


@pytest.fixture
def out(written: Path, tmp_path: Path) -> Path:
    """A folder of results that a test may change."""
    shutil.copytree(written, out := tmp_path / "out")
    return out


def test_classes_and_comparisons(results: Results) -> None:
    assert list(results.families) == ["location"]
    bm25 = results.systems["bm25"]
    assert {label: scores.n for label, scores in bm25.families["location"].items()} == {
        "first": 71, "middle": 208, "last": 171,
    }  # fmt: skip
    for scores in bm25.families["location"].values():
        for metric in METRICS:
            interval, value = scores.ci[metric], scores.values[metric]
            assert interval is not None
            assert value is not None
            assert interval[0] <= value <= interval[1]
    silly = [c for c in results.comparisons if c.second == "first" and c.metric == "recall@10"]
    assert [(c.first, c.label) for c in silly if c.first == "bm25"] == [
        ("bm25", "overall"), ("bm25", "first"), ("bm25", "middle"), ("bm25", "last"),
    ]  # fmt: skip
    assert all(c.difference > 0.8 and c.p_holm < 0.001 and c.p_holm >= c.p for c in silly)
    assert len(results.comparisons) == 3 * 3 * 4


def test_cost_is_measured(results: Results) -> None:
    cost = results.systems["bm25"].cost
    assert cost is not None
    assert (cost.queries, cost.workers) == (630, 1)
    assert cost.latency_median_ms is not None
    assert cost.latency_p95_ms is not None
    assert 0 < cost.latency_median_ms <= cost.latency_p95_ms
    assert cost.peak_memory_bytes is not None
    assert cost.peak_memory_bytes > 50e6
    assert cost.index_bytes > 1e5
    assert cost.cpu_seconds > 0
    first = results.systems["first"]
    assert first.kind == "function"
    assert first.cost is not None
    assert first.cost.workers == 1


def test_a_meter_without_a_gpu_says_so() -> None:
    pynvml = pytest.importorskip("pynvml")
    try:
        pynvml.nvmlInit()
        pytest.skip("there is a GPU here")
    except pynvml.NVMLError:
        pass
    with metered() as measured:
        measured.latencies += [0.001, 0.003]
    cost = Cost.of([measured], 7)
    assert (cost.gpu_memory_bytes, cost.gpu_use_percent, cost.index_bytes) == (None, None, 7)
    assert cost.latency_median_ms == 2


def test_a_gpu_that_does_not_tell_its_use_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        import pynvml

        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    @contextlib.contextmanager
    def part_of_a_gpu() -> Iterator[list[int]]:
        yield [1]

    monkeypatch.setattr("citerec.evaluation.cost._gpus", part_of_a_gpu)
    monkeypatch.setattr("pynvml.nvmlDeviceGetMemoryInfo", lambda _: SimpleNamespace(used=7))
    monkeypatch.setattr("pynvml.nvmlDeviceGetUtilizationRates", refuse)
    with metered() as measured:
        pass
    cost = Cost.of([measured], 0)
    assert (cost.gpu_memory_bytes, cost.gpu_use_percent) == (7, None)


def test_gpus_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # No GPU here to ask: NVIDIA's library is stood in for, so only what is made of its answers is tested.
    @contextlib.contextmanager
    def two_gpus() -> Iterator[list[int]]:
        yield [1, 2]

    monkeypatch.setattr("citerec.evaluation.cost._gpus", two_gpus)
    monkeypatch.setattr("pynvml.nvmlDeviceGetMemoryInfo", lambda gpu: SimpleNamespace(used=gpu * 10**9))
    monkeypatch.setattr("pynvml.nvmlDeviceGetUtilizationRates", lambda gpu: SimpleNamespace(gpu=gpu * 20))
    with metered() as measured:
        pass
    cost = Cost.of([measured], 0)
    assert (cost.gpu_memory_bytes, cost.gpu_use_percent) == (3 * 10**9, 30)


def test_the_costs_of_several_processes_are_added_up() -> None:
    parts = [
        Measured(("here", 1), 10.0, 11.0, 0.9, [0.001], 100, 5, [10.0]),
        Measured(("here", 2), 10.5, 12.0, 1.1, [0.003], 200, 7, [20.0]),
        Measured(("here", 1), 11.0, 12.0, 0.5, [0.002, 0.002], 150, 6, []),
    ]
    cost = Cost.of(parts, 3)
    assert (cost.queries, cost.workers, cost.wall_seconds, cost.cpu_seconds) == (4, 2, 2.0, 2.5)
    assert (cost.queries_per_second, cost.latency_median_ms, cost.peak_memory_bytes) == (2.0, 2.0, 350)
    assert (cost.gpu_memory_bytes, cost.gpu_use_percent) == (7, 15.0)


def test_robustness_leaves_small_classes_out() -> None:
    def scores(n: int, value: float) -> Scores:
        return Scores(n, {"mrr": Mean(n, value, None)})

    classes = {"location": {"first": scores(100, 0.4), "last": scores(40, 0.6), "middle": scores(5, 0.0)}}
    (line,) = robustness(["mrr"], scores(145, 0.5), classes)
    assert (line.worst_class, line.best_class) == ("first", "last")
    assert (line.spread, line.drop) == pytest.approx((0.2, 0.1))
    (only_small,) = robustness(["mrr"], scores(5, 0.5), {"location": {"first": scores(5, 0.1), "last": scores(0, 0)}})
    assert only_small.worst_class == "first"


def test_a_frame_has_a_row_a_system_and_class(results: Results) -> None:
    frame = results.to_frame()
    assert list(frame.columns[:6]) == ["system", "family", "class", "n", "few", "recall@10"]
    assert len(frame) == 3 * 4
    row = frame[(frame["system"] == "bm25") & (frame["class"] == "first")].iloc[0]
    scores = results.systems["bm25"].families["location"]["first"]
    assert row["mrr@10"] == scores.values["mrr@10"]
    assert (row["mrr@10_low"], row["mrr@10_high"]) == scores.ci["mrr@10"]


def test_results_come_back_from_their_folder(results: Results, tmp_path: Path) -> None:
    results.write(out := tmp_path / "out")
    back = Results.read(out)
    assert list(back.comparisons_to_frame()["p"]) == [comparison.p for comparison in results.comparisons]
    assert json.dumps(back.to_json()) == json.dumps(results.to_json())
    assert list(back.items) == list(results.items)
    assert results.items[-2:] == back.items[-2:]
    assert back.contexts_to_frame().equals(results.contexts_to_frame())
    assert back.to_frame().equals(results.to_frame())
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert names == {
        "results.json", "results.csv", "contexts.jsonl", "qrels.txt", "report.html",
        "runs/bm25.trec", "runs/one-field.trec", "runs/first.trec",
    }  # fmt: skip
    write_figures(results, out)  # older results may be replaced
    (out / "notes.txt").write_text("precious")
    with pytest.raises(InputError, match=r"holds other things too, such as notes\.txt"):
        write_figures(results, out)
    (out / "notes.txt").unlink()
    (out / "results.json").unlink()
    with pytest.raises(InputError, match="exists and is no folder of results"):
        write_figures(results, out)
    assert not list(tmp_path.glob(".*"))


def test_results_json_has_the_documented_shape(results: Results) -> None:
    value = json.loads(json.dumps(results.to_json()))
    assert (value["kind"], value["version"]) == ("citerec-results", 2)
    overall = value["systems"]["bm25"]["overall"]
    assert set(overall) == {"n", *METRICS, "ci", "few"}
    first = value["systems"]["bm25"]["families"]["location"]["first"]
    assert set(first) == set(overall)
    assert len(first["ci"]["recall@10"]) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 7}, "holds results of version 7; this citerec reads version 2"),
        ({"kind": "x"}, "is a x, not citerec-results"),
        ({"systems": {"bm25": {}}}, "are broken"),
        ({"set": {"counted": 9}}, r"are broken \(set\.name: Field required"),
        ({"families": {"x": {"title": "", "conditions": [], "classes": ["y"]}}}, r"are broken \('x'\)"),
    ],
)
def test_broken_results_are_refused(out: Path, change: dict[str, object], message: str) -> None:
    path = out / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=message):
        Results.read(out)


def test_damaged_results_are_refused_or_shown(out: Path) -> None:
    read = 0
    for name, times in (("results.json", 250), ("contexts.jsonl", 60)):
        whole = (out / name).read_bytes()
        for raw in damaged(whole if name == "results.json" else whole.partition(b"\n")[0], times):
            (out / name).write_bytes(raw if name == "results.json" else raw + b"\n" + whole.partition(b"\n")[2])
            with contextlib.suppress(InputError):
                back = Results.read(out)
                back.to_frame()
                text_of(back)
                read += 1
        (out / name).write_bytes(whole)
    assert read > 20  # what is in no figure may change


def text_of(results: Results) -> str:
    """All that the terminal and the page show, without charts."""
    from citerec.evaluation import tables

    shown = [tables.overall_table(results, "long"), tables.robustness_table(results), tables.cost_table(results)]
    shown += [tables.block_table(results, one, "long") for one in tables.blocks(results)]
    shown += [tables.outcomes_table(results)]
    return "".join(map(to_html, shown)) + "".join(line for line, _ in tables.rules_text(results))


def test_an_interval_of_one_number_is_told_with_its_place(out: Path) -> None:
    path = out / "results.json"
    value = json.loads(path.read_text())
    value["systems"]["bm25"]["overall"]["ci"]["mrr@10"] = [0.5]
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match=r"are broken \(systems\.bm25\.overall\.means\.mrr@10\.ci"):
        Results.read(out)


def test_a_system_scored_from_its_run_has_the_same_figures(results: Results, written: Path, demo_index: Path) -> None:
    run = written / "runs" / "bm25.trec"
    again = evaluate({"bm25": run}, "demo/location", index=demo_index, k=50)
    assert again.systems["bm25"].overall == results.systems["bm25"].overall
    assert again.systems["bm25"].families == results.systems["bm25"].families
    assert again.systems["bm25"].outcomes == results.systems["bm25"].outcomes


def test_merged_results_are_those_of_one_evaluation(results: Results, written: Path, demo_index: Path) -> None:
    parts = {}
    for name in ("bm25", "first"):
        run = written / "runs" / f"{name}.trec"
        parts[name] = evaluate({name: run}, "demo/location", index=demo_index, k=50)
    merged = merge(parts)
    expected = [c for c in results.comparisons if (c.first, c.second) == ("bm25", "first")]
    assert list(merged.comparisons) == expected
    assert merged.systems["bm25"].families == results.systems["bm25"].families
    assert merged.notes == ()
    twice = merge({"one": parts["bm25"], "two": parts["bm25"]})
    assert set(twice.systems) == {"bm25@one", "bm25@two"}
    assert {c.p for c in twice.comparisons} == {1.0}


def test_merged_results_do_not_pass_the_training_overlap_of_one_on_to_all(results: Results) -> None:
    trained = replace(results, set={**results.set, "training_overlap": {"contexts": 3, "left_out": True}})
    assert "training_overlap" not in merge({"a": results, "b": trained}).set
    assert merge({"a": trained, "b": trained}).set["training_overlap"]["contexts"] == 3


def test_results_of_other_contexts_are_laid_side_by_side_but_not_tested(results: Results, demo_index: Path) -> None:
    few = read_set(DEMO).contexts[:100]
    mine = {few[0].context_id: {"900000001": 1.0}}
    other = evaluate({"mine": mine}, few, families="length", index=demo_index, as_of_year=False)
    merged = merge({"a": results, "b": other})
    assert merged.comparisons == ()
    assert merged.families == {}
    assert "b and a used different contexts: no pair of systems is tested." in merged.notes
    assert "b had as_of_year off, a on." in merged.notes
    assert all(system.robustness == () for system in merged.systems.values())
    with pytest.raises(InputError, match="no metric in common"):
        merge({"a": results, "b": replace(other, columns=ranked_columns(["map@10"]))})


def test_outcomes_must_all_be_there(out: Path) -> None:
    (out / "contexts.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match=r"contexts\.jsonl has 0 contexts where 630 should be"):
        Results.read(out)


def test_runs_are_not_lost_when_results_are_read_and_written_again(out: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has runs, which would be lost"):
        Results.read(out).write(out)
    Results.read(out).write(tmp_path / "elsewhere")
    assert len(list((out / "runs").iterdir())) == 3


def test_results_of_other_tools_and_the_current_folder_are_safe(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "results.json").write_text('{"accuracy": 1}')
    with pytest.raises(InputError, match="is no folder of results"):
        results.write(tmp_path / "theirs")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    for out in (".", "..", "new/.."):
        with pytest.raises(InputError, match="is the current folder, or holds it"):
            results.write(out)
    with pytest.raises(InputError, match="cannot write"):
        results.write(tmp_path / "theirs" / "results.json" / "below")


def test_merged_results_of_other_classes_or_depth(results: Results, demo_index: Path) -> None:
    contexts = DEMO / "contexts.jsonl"
    parts = {
        "held": evaluate("bm25", contexts, families=["location", "length"], index=demo_index, conditions=False),
        "free": evaluate(
            "bm25-one-field", contexts, families=["location", "length"], index=demo_index, conditions=False
        ),
    }
    items = parts["free"].items
    relabelled = replace(items, labels=[{**labels, "location": "first"} for labels in items.labels])
    merged = merge({**parts, "free": replace(parts["free"], items=relabelled)})
    assert list(merged.families) == ["length"]
    assert "Left out, because the results assign contexts to classes differently: location." in merged.notes
    assert {c.family for c in merged.comparisons} == {"overall", "length"}
    shallow = evaluate("bm25-one-field", "demo/location", index=demo_index, k=10)
    beside = merge({"deep": results, "shallow": shallow})
    deep = beside.systems["bm25"]
    assert (beside.k, len(deep.ranks), deep.outcomes["ranked badly"]) == (10, 10, 0)
    assert sum(deep.outcomes.values()) == 630
    assert deep.outcomes["found"] == sum(deep.ranks)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "xlink:href") and value:
                self.links.append(value)
            if name == "id" and value:
                self.ids.add(value)


def page_of(out: Path) -> tuple[str, Page]:
    text = (out / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    return text, page


def test_the_page_needs_nothing_but_itself(written: Path) -> None:
    text, page = page_of(written)
    assert page.tags.count("svg") == 1 + 3 + 2  # a family, three pairs, ranks and outcomes
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links if not link.startswith("#m")} <= page.ids
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"#0a0[bcd]", text)  # every colour of the charts is the page's
    for section in ("Overall", "Class by class", "System against system", "Ranks of", "Outcomes", "Cost", "hardest"):
        assert section in text
    assert "first  n=71" in text


def test_the_page_is_the_same_twice(results: Results, written: Path, tmp_path: Path) -> None:
    write_figures(results, tmp_path / "again")
    assert page_of(tmp_path / "again")[0] == page_of(written)[0]


def test_what_authors_wrote_does_no_harm(demo_index: Path, tmp_path: Path) -> None:
    evil = replace(context(1, 1), text="<script>alert(1)</script> & <REF>.")
    results = evaluate({"a": answers({"c1": [2]})}, [evil, *CONTEXTS[1:]], index=demo_index)
    write_figures(results, tmp_path / "out")
    text, page = page_of(tmp_path / "out")
    assert "script" not in page.tags
    assert "&lt;script&gt;" in text


def test_python_takes_sets_names_and_lists(demo_index: Path) -> None:
    by_set = evaluate("bm25", read_set(DEMO), families=["intent"], index=demo_index)
    by_name = evaluate(["bm25"], "demo/intent", index=demo_index)
    assert by_set.systems["bm25"].overall == by_name.systems["bm25"].overall
    by_file = evaluate("bm25", DEMO / "contexts.jsonl", families=["location"], index=demo_index)
    assert by_file.systems["bm25"].families == evaluate("bm25", "location", index=demo_index).systems["bm25"].families
    unconditional = evaluate("bm25", DEMO / "contexts.jsonl", families=["location"], index=demo_index, conditions=False)
    assert sum(scores.n for scores in unconditional.systems["bm25"].families["location"].values()) == 630


@pytest.mark.parametrize(
    ("systems", "options", "message"),
    [
        ("bm52", {}, "there is no system 'bm52'"),
        ({}, {}, "there is no system"),
        (["bm25", "bm25"], {}, "two systems are called 'bm25'"),
        ({"my system": "bm25"}, {}, "cannot name a system"),
        ({"x": 7}, {}, "x is a int, no system"),
        (Path("none.trec"), {}, "none.trec does not exist"),
        ({"nobody": {"1": 1.0}}, {}, "answers 'nobody', which is no context"),
        ({"x": lambda _, __: ["12"]}, {}, "x answers '12'"),
        ("bm25", {"missing": "perhaps"}, "missing contexts cannot count as 'perhaps'"),
        ("bm25", {"k": 0}, "-k 0 is not between 1 and the 252 papers"),
        ("bm25", {"k": 253}, "-k 253 is not between"),
        ("bm25", {"resamples": 0}, "resamples is 0"),
        ("bm25", {"metrics": "mrr@10,xyz"}, "there is no metric 'xyz'"),
        ({"x": lambda _, __: None}, {}, "x answers None"),
        ("none.trec", {}, "none.trec does not exist"),
        ("bm25", {"families": ["pos_before"]}, "the spaCy model en_core_web_sm cannot be loaded"),
        ("bm25", {"families": ["low_resource"]}, "no context of contexts has a class of low_resource"),
        ("bm25", {"seed": -1}, "seed is -1"),
        ({"[red]x": "bm25"}, {}, r"'\[red\]x' cannot name a system"),
    ],
)
def test_what_cannot_be_measured(systems: object, options: dict[str, object], message: str, demo_index: Path) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(systems, CONTEXTS, index=demo_index, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cited_ids": ()}, "context c1 names no cited paper"),
        ({"context_id": "c2"}, "two contexts are called c2"),
        ({"text": "no marker"}, "context c1 holds 0 <REF>"),
    ],
)
def test_contexts_made_by_hand_are_checked(change: dict[str, object], message: str, demo_index: Path) -> None:
    with pytest.raises(InputError, match=message):
        evaluate("bm25", [replace(CONTEXTS[0], **change), CONTEXTS[1]], index=demo_index)  # type: ignore[arg-type]


def test_what_people_write_is_understood(demo_index: Path) -> None:
    numbers = [replace(CONTEXTS[0], context_id="", cited_ids=(900000001,)), replace(CONTEXTS[1], context_id="")]  # type: ignore[arg-type]
    run = {"context-1": {900000001: np.float32(1.5), 900000002: np.int64(1)}}
    results = evaluate(run, numbers, index=demo_index, metrics="mrr@10, recall@5", families="location")  # type: ignore[arg-type]
    assert results.metrics == ("mrr@10", "recall@5")
    assert results.items[0].ranks["run"] == [1]


def test_what_a_set_has_decided_cannot_be_decided_again(demo_index: Path) -> None:
    for options in ({"conditions": False}, {"spacy_model": "x"}):
        with pytest.raises(InputError, match="The set demo is labelled already"):
            evaluate("bm25", "demo/location", index=demo_index, **options)  # type: ignore[arg-type]


def test_a_family_that_citerec_has_not_is_measured_all_the_same(demo_index: Path, tmp_path: Path) -> None:
    demo = read_set(DEMO)
    odd = FamilyOfSet(conditions=(), classes={"even": 315, "odd": 315})
    contexts = tuple(
        replace(context, labels={"parity": "odd" if number % 2 else "even"})
        for number, context in enumerate(demo.contexts)
    )
    manifest = demo.manifest.model_copy(update={"families": {"parity": odd}})
    results = evaluate("bm25", replace(demo, manifest=manifest, contexts=contexts), index=demo_index, families="parity")
    assert results.families["parity"].title == "parity"
    assert results.systems["bm25"].families["parity"]["odd"].n == 315


def test_what_the_index_says_of_cited_papers_is_found_on_the_spot(demo_index: Path, tmp_path: Path) -> None:
    """Sentences of the citing paper itself, and newer ones, are not known to a context."""
    demo = read_set(DEMO)
    shutil.copytree(demo_index, index := tmp_path / "index")
    (warm,) = demo.contexts[0].cited_ids
    citing = [{"text": f"Said in {year} <REF>.", "citing_key": key, "citing_year": year, "cited_ids": [warm]}
              for key, year in (("own", 1990), ("old", 1991), ("new", 2990))]  # fmt: skip
    add_to_index([], index, BuildOptions(citances=(write_lines(tmp_path / "said.jsonl", citing),)))
    contexts = [
        context(1, int(warm) - 900000000, citing_key="own", citing_year=2020),
        context(2, int(warm) - 900000000, citing_key="own", citing_year=1990, cited_before=(warm,)),
        context(3, int(warm) - 900000000, cited_before=()),
        context(4, 2 if warm != "900000002" else 3),
    ]
    results = evaluate(RUN, contexts, index=index, resamples=100)
    assert [results.items.labels[row].get("cold_start") for row in range(4)] == ["1–4", "0", "1–4", "0"]
    assert [results.items.labels[row].get("cited_before") for row in range(4)] == [None, "again", "first", None]
    of_set = evaluate("bm25", "demo/cold_start", index=index, resamples=100)
    assert list(of_set.families) == ["cold_start"]
    found = of_set.systems["bm25"].families["cold_start"]
    assert found["0"].n > found["1–4"].n > 0 == found["5+"].n
    with pytest.raises(InputError, match="no context of demo has a class of cold_start"):
        evaluate("bm25", "demo/cold_start", index=demo_index)


def test_an_index_of_the_name_of_a_set_does_not_hide_it(
    demo_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demo_index, tmp_path / "demo")
    results = evaluate("bm25", "demo/intent", index=demo_index)
    assert results.set["source"] == "demo"  # as it was given: no path of this machine


def test_no_cited_paper_in_the_index(demo_index: Path) -> None:
    outside = [replace(CONTEXTS[0], cited_ids=("1",))]
    with pytest.raises(InputError, match="no cited paper of any context is in "):
        evaluate("bm25", outside, index=demo_index)


def test_options_have_the_documented_defaults() -> None:
    options = {name: one.default for name, one in inspect.signature(evaluate).parameters.items()}
    assert [options[name] for name in ("metrics", "missing", "as_of_year", "exclude_citing")] == [
        METRICS,
        "zero",
        True,
        True,
    ]


def test_results_can_be_looked_at(results: Results) -> None:
    value = results.systems["bm25"].overall.values["recall@10"]
    assert repr(results).startswith(f"<Results of demo, 630 contexts: recall@10 of bm25 {value:.3f}, one-field 0.")
    page = results._repr_html_()
    assert page.count("<tr>") == 1 + 3
    assert f"{value:.3f}" in page


def test_a_frame_has_a_row_a_context_and_system(results: Results) -> None:
    frame = results.contexts_to_frame()
    assert list(frame.columns) == ["context_id", "system", "location", "citing", "rank", *METRICS]
    assert len(frame) == 3 * 630
    bm25 = frame[frame["system"] == "bm25"]
    assert bm25["recall@10"].mean() == pytest.approx(results.systems["bm25"].overall.values["recall@10"])
    for row, item in zip(bm25.head(20).itertuples(), results.items, strict=False):
        found = [rank for rank in item.ranks["bm25"] if rank]
        label = None if pd.isna(row.location) else row.location
        assert (row.context_id, label) == (item.context_id, item.labels.get("location"))
        assert (min(found) if found else None) == (None if row.rank is pd.NA else row.rank)


def test_names_of_close_points_do_not_overlap() -> None:
    points = [("middle", 0.864, 0.924), ("last", 0.848, 0.909), ("first", 0.756, 0.861), ("edge", 0.945, 0.8)]
    places = label_places(points, 0.73, 0.95)
    assert places[0] == (1, -3)  # to the left it would cover the name of the next point
    assert places[1][1] == -3
    assert places[3][0] == -1  # to the right it would leave the chart
    assert len(set(label_places([("same", 0.8, 0.8)] * 4, 0.7, 0.9))) == 4
