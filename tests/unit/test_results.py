"""Results: figures of small cases worked by hand, files that come back, the page."""

import contextlib
import inspect
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from citerec import evaluate
from citerec.corpus.store import PaperStore
from citerec.diagnostics.sets import FamilyOfSet, read_set
from citerec.errors import InputError
from citerec.evaluation.figures import robustness
from citerec.evaluation.page import to_html
from citerec.evaluation.record import Cost, Usage
from citerec.evaluation.results import Results, merge
from citerec.evaluation.statistics import Mean, Scores
from citerec.index.build import BuildOptions, add_to_index, open_store
from citerec.records import Context
from citerec.retrieve.run import Run
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


def answers(by_context: dict[str, list[int]]) -> Run:
    return Run.from_dict(
        {
            name: {str(900000000 + paper): -float(rank) for rank, paper in enumerate(papers)}
            for name, papers in by_context.items()
        }
    )


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
    run = Run.from_dict({name: RUN[name] for name in ("c1", "c2")})
    results = evaluate(run, [CONTEXTS[0], outside], index=demo_index, missing=missing, metrics=["recall@10"])
    assert results.record.set.outside == 1
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
    assert fair.record.rules["as_of_year"] is True
    all_of_it = evaluate(run, asked, index=demo_index, metrics=["mrr"], exclude_citing=False, as_of_year=False)
    assert all_of_it.systems["run"].overall.values["mrr"] == pytest.approx(1 / 3)
    assert (all_of_it.record.rules["as_of_year"], all_of_it.record.rules["exclude_citing"]) == (False, False)
    assert all_of_it.systems["run"].removed == {"citing_paper": 0, "newer": 0}


def test_a_system_keeps_the_rules_by_itself(demo_index: Path) -> None:
    asked = [replace(context(1, 1), text="Attention alone suffices to translate <REF>.", citing_id="900000041")]
    for exclude in (True, False):
        results = evaluate("bm25", asked, index=demo_index, exclude_citing=exclude)
        assert ("900000041" in set(results.runs["bm25"]["paper"])) is not exclude
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
    results.write(out := tmp_path_factory.mktemp("results") / "out")
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
            interval, value = scores.means[metric].ci, scores.values[metric]
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


def test_the_costs_of_several_processes_are_added_up() -> None:
    parts = [
        Usage(("here", 1), 10.0, 11.0, 0.9, [0.001], 100, 5),
        Usage(("here", 2), 10.5, 12.0, 1.1, [0.003], 200, 7),
        Usage(("here", 1), 11.0, 12.0, 0.5, [0.002, 0.002], 150, 6),
    ]
    cost = Cost.of(parts, 3)
    assert (cost.queries, cost.workers, cost.wall_seconds, cost.cpu_seconds) == (4, 2, 2.0, 2.5)
    assert (cost.queries_per_second, cost.latency_median_ms, cost.peak_memory_bytes) == (2.0, 2.0, 350)
    assert cost.gpu_memory_bytes == 13


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
    assert (row["mrr@10_low"], row["mrr@10_high"]) == scores.means["mrr@10"].ci


def test_results_come_back_from_their_folder(results: Results, tmp_path: Path) -> None:
    results.write(out := tmp_path / "out")
    back = Results.read(out)
    assert list(back.comparisons_to_frame()["p"]) == [comparison.p for comparison in results.comparisons]
    assert json.dumps(back.to_json()) == json.dumps(results.to_json())
    assert back.items.equals(results.items)
    assert back.classes.equals(results.classes)
    assert back.contexts_to_frame().equals(results.contexts_to_frame())
    assert back.to_frame().equals(results.to_frame())
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert names == {
        "meta.json", "labels.parquet", "ranks.parquet", "results.csv", "scores.csv", "qrels.txt", "report.html",
        "runs/bm25.trec", "runs/one-field.trec", "runs/first.trec",
    }  # fmt: skip
    results.write(out)  # older results may be replaced
    (out / "notes.txt").write_text("precious")
    with pytest.raises(InputError, match=r"holds other things too, such as notes\.txt"):
        results.write(out)
    (out / "notes.txt").unlink()
    (out / "meta.json").unlink()
    with pytest.raises(InputError, match="exists and is no folder of results"):
        results.write(out)
    assert not list(tmp_path.glob(".*"))


def test_json_is_the_record_and_the_summary(results: Results) -> None:
    value = json.loads(json.dumps(results.to_json()))
    assert (value["kind"], value["version"], value["measures"]) == ("citerec-results", 3, "ranks")
    assert (value["k"], value["seed"], value["resamples"]) == (50, 0, 1000)
    (first,) = [
        one for one in value["means"] if (one["system"], one["class"], one["metric"]) == ("bm25", "first", "recall@10")
    ]
    mean = results.systems["bm25"].families["location"]["first"].means["recall@10"]
    assert (first["n"], first["value"], tuple(first["ci"])) == mean
    assert len(value["comparisons"]) == len(results.comparisons)
    assert value["systems"]["bm25"]["outcomes"] == results.systems["bm25"].outcomes


def test_the_record_says_what_answers_depend_on(results: Results) -> None:
    record = results.record
    assert record.index is not None and record.index.papers == 252
    assert record.set.fingerprint and record.index.fingerprint
    assert {"python", "numpy"} <= record.versions.keys()
    assert record.systems["bm25"].settings is not None
    assert record.rules == {"exclude_citing": True, "as_of_year": True, "missing": "zero", "conditions": True}
    assert record.set.training_overlap is not None and record.set.training_overlap.contexts == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 7}, "of this version, or they are broken"),
        ({"kind": "x"}, "of this version, or they are broken"),
        ({"systems": {"bm25": {}}}, r"systems\.bm25\.kind: Field required"),
        ({"k": 3}, "or they are broken"),
    ],
)
def test_broken_results_are_refused(out: Path, change: dict[str, object], message: str) -> None:
    path = out / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=message):
        Results.read(out)


def test_damaged_results_are_refused_or_shown(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citerec.evaluation.statistics.FLIPS", 100)
    read, meta = 0, (out / "meta.json").read_bytes()
    small = {**json.loads(meta), "resamples": 100}
    for raw in damaged(json.dumps(small).encode(), 100):
        (out / "meta.json").write_bytes(raw)
        with contextlib.suppress(InputError):
            back = Results.read(out)
            back.to_frame()
            text_of(back)
            read += 1
    assert read > 5  # what is in no figure may change
    (out / "meta.json").write_bytes(meta)
    for name in ("labels", "ranks"):
        whole = (out / f"{name}.parquet").read_bytes()
        for raw in (b"", whole[:100], whole[:-20], whole.replace(b"PAR1", b"PARX"), b"x" * 500):
            (out / f"{name}.parquet").write_bytes(raw)
            with pytest.raises(InputError, match=r"or they are broken"):
                Results.read(out)
        (out / f"{name}.parquet").unlink()
        with pytest.raises(InputError, match=r"or they are broken"):
            Results.read(out)
        (out / f"{name}.parquet").write_bytes(whole)


def text_of(results: Results) -> str:
    """All that the terminal and the page show, without charts."""
    from citerec.evaluation import tables

    shown = [tables.overall_table(results), tables.robustness_table(results), tables.cost_table(results)]
    shown += [tables.block_table(results, one) for one in tables.blocks(results)]
    shown += [tables.outcomes_table(results)]
    return "".join(map(to_html, shown)) + "".join(tables.rules_text(results))


def test_a_system_scored_from_its_run_has_the_same_figures(results: Results, written: Path, demo_index: Path) -> None:
    run = Run.from_trec(written / "runs" / "bm25.trec")
    again = evaluate({"bm25": run}, "demo/location", index=demo_index, k=50)
    assert again.systems["bm25"].overall == results.systems["bm25"].overall
    assert again.systems["bm25"].families == results.systems["bm25"].families
    assert again.systems["bm25"].outcomes == results.systems["bm25"].outcomes


def test_merged_results_are_those_of_one_evaluation(results: Results, written: Path, demo_index: Path) -> None:
    parts = {}
    for name in ("bm25", "first"):
        run = Run.from_trec(written / "runs" / f"{name}.trec")
        parts[name] = evaluate({name: run}, "demo/location", index=demo_index, k=50)
    merged = merge(parts)
    expected = [c for c in results.comparisons if (c.first, c.second) == ("bm25", "first")]
    assert list(merged.comparisons) == expected
    assert merged.systems["bm25"].families == results.systems["bm25"].families
    assert merged.record.notes == ()
    twice = merge({"one": parts["bm25"], "two": parts["bm25"]})
    assert set(twice.systems) == {"bm25@one", "bm25@two"}
    assert {c.p for c in twice.comparisons} == {1.0}


def recorded(results: Results, **changes: object) -> Results:
    return replace(results, record=results.record.model_copy(update=changes))


def test_systems_of_one_name_that_differ_are_not_merged(results: Results) -> None:
    other = results.record.systems["bm25"].model_copy(update={"settings": {"words": {"bm25": {"k1": 9}}}})
    changed = recorded(results, systems={**results.record.systems, "bm25": other})
    with pytest.raises(InputError, match="bm25 is not the same system in all results"):
        merge({"a": results, "b": changed})


def test_a_table_for_latex_has_intervals_daggers_and_bold_best(results: Results) -> None:
    latex = results.to_latex("location")
    head = "class & system & n & recall@10 & mrr@10 & ndcg@10 \\\\"
    assert latex.startswith(f"\\begin{{tabular}}{{llrrrr}}\n\\toprule\n{head}")
    assert re.search(r"^first & bm25 & 71 & .*\\textbf\{0\.\d{3}\}", latex, re.MULTILINE)
    assert re.search(r"^ & first & .*\{\\small \[[.\d]+ [.\d]+\]\}\$\^\{\\dagger\}\$", latex, re.MULTILINE)
    assert results.to_latex().count("\\\\") == 4


def test_merged_results_do_not_pass_the_training_overlap_of_one_on_to_all(results: Results) -> None:
    overlap = results.record.set.training_overlap
    assert overlap is not None
    seen = results.record.set.model_copy(update={"training_overlap": overlap.model_copy(update={"contexts": 3})})
    trained = recorded(results, set=seen)
    assert merge({"a": results, "b": trained}).record.set.training_overlap is None


def test_results_of_other_contexts_are_not_merged(results: Results, demo_index: Path) -> None:
    few = read_set(DEMO).contexts[:100]
    mine = Run.from_dict({few[0].context_id: {"900000001": 1.0}}, "mine")
    other = evaluate(mine, few, families="length", index=demo_index, resamples=100)
    with pytest.raises(InputError, match="b and a used different contexts") as raised:
        merge({"a": results, "b": other})
    assert "on the same set" in raised.value.remedy
    with pytest.raises(InputError, match="used different metrics"):
        merge(
            {"a": recorded(results, columns=results.columns[:1]), "b": recorded(results, columns=results.columns[1:])}
        )


def test_results_of_other_tools_and_the_current_folder_are_safe(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "meta.json").write_text('{"accuracy": 1}')
    with pytest.raises(InputError, match="is no folder of results"):
        results.write(tmp_path / "theirs")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    for out in (".", "..", "new/.."):
        with pytest.raises(InputError, match="is the current folder, or holds it"):
            results.write(out)
    with pytest.raises(InputError, match="cannot write"):
        results.write(tmp_path / "theirs" / "meta.json" / "below")


def test_results_that_were_measured_otherwise_are_not_merged(results: Results, demo_index: Path) -> None:
    shallow = evaluate("bm25-one-field", "demo/location", index=demo_index, k=10)
    with pytest.raises(InputError, match="shallow and deep used different rules"):
        merge({"deep": results, "shallow": shallow})
    other = evaluate("bm25-one-field", "demo/length", index=demo_index, k=50)
    with pytest.raises(InputError, match="length and location used different classes"):
        merge({"location": results, "length": other})


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
    assert page.tags.count("svg") == 1 + 1  # a family, and ranks
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links if not link.startswith("#m")} <= page.ids
    assert "prefers-color-scheme: dark" in text
    assert "#010203" not in text and "currentColor" in text  # what is black is of the page's colour
    for section in ("Overall", "Class by class", "System against system", "Ranks of", "Outcomes", "Cost", "hardest"):
        assert section in text
    assert "first" in text


def test_the_page_is_the_same_twice(results: Results, written: Path, tmp_path: Path) -> None:
    results.write(tmp_path / "again")
    assert page_of(tmp_path / "again")[0] == page_of(written)[0]


def test_what_authors_wrote_does_no_harm(demo_index: Path, tmp_path: Path) -> None:
    evil = replace(context(1, 1), text="<script>alert(1)</script> & <REF>.")
    results = evaluate({"a": answers({"c1": [2]})}, [evil, *CONTEXTS[1:]], index=demo_index)
    results.write(tmp_path / "out")
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
        ({"x": Path("none.trec")}, {}, "x is a PosixPath, no system"),
        ({"x": {"c1": {"1": 1.0}}}, {}, "x is a dict, no system"),
        (Run.from_dict({"nobody": {"1": 1.0}}), {}, "run: there is no context 'nobody'"),
        (Run.from_dict({"c1": {"1": 1.0}}), {}, "run: the paper '1' is not in the index"),
        ("bm25", {"missing": "perhaps"}, "missing contexts cannot count as 'perhaps'"),
        ("bm25", {"k": 0}, "-k 0 is not between 1 and the 252 papers"),
        ("bm25", {"k": 253}, "-k 253 is not between"),
        ("bm25", {"resamples": 0}, "resamples is 0"),
        ("bm25", {"metrics": "mrr@10,xyz"}, "there is no metric 'xyz'"),
        ({"x": lambda _, __: None}, {}, "x answers None"),
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
        ({"cited_ids": ()}, "context 1: cited_ids is missing or empty"),
        ({"context_id": "c2"}, "context 2: context_id c2 occurs twice"),
        ({"text": "no marker"}, "context 1: the text holds 0 <REF>"),
    ],
)
def test_contexts_made_by_hand_are_checked(change: dict[str, object], message: str, demo_index: Path) -> None:
    with pytest.raises(InputError, match=message):
        evaluate("bm25", [replace(CONTEXTS[0], **change), CONTEXTS[1]], index=demo_index)  # type: ignore[arg-type]


def test_what_people_write_is_understood(demo_index: Path) -> None:
    numbers = [replace(CONTEXTS[0], context_id="", cited_ids=(900000001,)), replace(CONTEXTS[1], context_id="")]  # type: ignore[arg-type]
    run = Run.from_dict({"context-1": {900000001: np.float32(1.5), 900000002: np.int64(1)}})  # type: ignore[dict-item]
    results = evaluate(run, numbers, index=demo_index, metrics="mrr@10, recall@5", families="location")  # type: ignore[arg-type]
    assert results.metrics == ("mrr@10", "recall@5")
    assert results.ranks["rank"].tolist() == [1, 0, 0]


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
    assert results.classes["cold_start"].tolist() == ["1–4", "0", "1–4", "0"]
    assert results.classes["cited_before"].fillna("").tolist() == ["", "again", "first", ""]
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
    assert results.record.set.source == "demo"  # as it was given: no path of this machine


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
    assert repr(results) == "<Results of demo, 630 contexts: bm25, one-field, first>"
    page = results._repr_html_()
    assert page.count("<tr>") == 1 + 3
    assert f"{value:.3f}" in page


def test_a_frame_has_a_row_a_context_and_system(results: Results) -> None:
    frame = results.contexts_to_frame()
    assert list(frame.columns) == ["context_id", "system", "location", "citing", "rank", *METRICS]
    assert len(frame) == 3 * 630
    bm25 = frame[frame["system"] == "bm25"]
    assert bm25["recall@10"].mean() == pytest.approx(results.systems["bm25"].overall.values["recall@10"])
    ranks = results.ranks[results.ranks["system"] == "bm25"].set_index("context")["rank"]
    for row in bm25.head(20).itertuples():
        found = ranks[[row.context_id]][ranks[[row.context_id]] > 0]
        assert (found.min() if len(found) else None) == (None if row.rank is pd.NA else row.rank)
    assert bm25["location"].fillna("").tolist() == results.classes["location"].fillna("").tolist()
