"""Results: figures of small cases worked by hand, files that come back, the page."""

import contextlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from citerec import evaluate
from citerec.diagnostics.sets import read_set
from citerec.errors import InputError
from citerec.evaluation import tables
from citerec.evaluation.page import to_html
from citerec.evaluation.results import Results, Robustness, merge, robustness
from citerec.evaluation.statistics import Mean, Scores
from citerec.index.build import BuildOptions, add_to_index
from citerec.recommend import Recommender
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
    def scores(papers: list[int]) -> dict[str, float]:
        return {str(900000000 + paper): -float(rank) for rank, paper in enumerate(papers)}

    return Run.from_dict({name: scores(papers) for name, papers in by_context.items()})


CONTEXTS = [context(1, 1), context(2, 2, 3), context(3, 4), context(4, 5)]
RUN = answers({"c1": [1, 2], "c2": [9, 2, 8, 3], "c3": [7]})


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


def test_figures_worked_by_hand(demo_index: Path) -> None:
    found = evaluate(RUN, CONTEXTS, index=demo_index, metrics=["recall@10", "mrr@10", "recall@3"]).systems["run"]
    assert found.overall.n == 4
    assert found.overall.values == pytest.approx({"recall@10": 0.5, "mrr@10": (1 + 0.5) / 4, "recall@3": 1.5 / 4})
    assert (found.empty, found.outcomes["found"], found.outcomes["not retrieved"]) == (1, 3, 2)
    assert (found.ranks[:5], found.kind, found.cost) == ([1, 1, 0, 1, 0], "run", None)
    # Contexts outside the index count as asked.
    asked = [CONTEXTS[0], replace(CONTEXTS[1], cited_ids=("123", "456"))]
    run = Run.from_dict({name: RUN[name] for name in ("c1", "c2")})
    for missing, figures in (("zero", (2, 0.5, 2)), ("skip", (1, 1.0, 0))):
        results = evaluate(run, asked, index=demo_index, missing=missing, metrics=["recall@10"])
        found = results.systems["run"]
        assert (found.overall.n, found.overall.values["recall@10"], found.outcomes["not in the index"]) == figures
        assert results.record.set.outside == 1


def test_classes_comparisons_and_cost(results: Results) -> None:
    bm25, first = results.systems["bm25"], results.systems["first"]
    classes = bm25.families["location"]
    assert {label: scores.n for label, scores in classes.items()} == {"first": 71, "middle": 208, "last": 171}
    for scores, metric in ((scores, metric) for scores in classes.values() for metric in METRICS):
        low, high = scores.means[metric].ci
        assert low <= scores.values[metric] <= high
    silly = [c for c in results.comparisons if (c.first, c.second, c.metric) == ("bm25", "first", "recall@10")]
    assert [c.label for c in silly] == ["overall", "first", "middle", "last"]
    assert all(c.difference > 0.8 and c.p_holm < 0.001 and c.p_holm >= c.p for c in silly)
    assert len(results.comparisons) == 3 * 3 * 4
    assert bm25.cost is not None and first.cost is not None and first.kind == "function"
    assert (bm25.cost.queries, bm25.cost.workers, first.cost.workers) == (630, 1, 1)
    assert 0 < bm25.cost.latency_median_ms <= bm25.cost.latency_p95_ms
    assert bm25.cost.peak_memory_bytes > 50e6 and bm25.cost.index_bytes > 1e5 and bm25.cost.cpu_seconds > 0


def test_robustness_leaves_small_classes_out() -> None:
    def line(n: int, value: float, **classes: tuple[int, float]) -> Robustness:
        by_class = [
            (("location", name), Scores(n, {"mrr": Mean(n, value, None)})) for name, (n, value) in classes.items()
        ]
        (found,) = robustness(["mrr"], Scores(n, {"mrr": Mean(n, value, None)}), by_class)
        return found

    found = line(145, 0.5, first=(100, 0.4), last=(40, 0.6), middle=(5, 0.0))
    assert (found.worst_class, found.best_class) == ("first", "last")
    assert (found.spread, found.drop) == pytest.approx((0.2, 0.1))
    assert line(5, 0.5, first=(5, 0.1), last=(4, 0.2)).worst_class == "first"
    assert robustness(["mrr"], Scores(5, {}), [(("location", "first"), Scores(5, {}))]) == ()  # one class says nothing


def test_frames_of_classes_and_of_contexts(results: Results) -> None:
    frame, bm25 = results.to_frame(), results.systems["bm25"]
    assert list(frame.columns[:6]) == ["system", "family", "class", "n", "few", "recall@10"] and len(frame) == 3 * 4
    row = frame[(frame["system"] == "bm25") & (frame["class"] == "first")].iloc[0]
    scores = bm25.families["location"]["first"]
    assert row["mrr@10"] == scores.values["mrr@10"]
    assert (row["mrr@10_low"], row["mrr@10_high"]) == scores.means["mrr@10"].ci
    frame = results.contexts_to_frame()
    assert list(frame.columns) == ["context_id", "system", "location", "citing", "rank", *METRICS]
    mine = frame[frame["system"] == "bm25"]
    assert len(frame) == 3 * 630 and mine["recall@10"].mean() == pytest.approx(bm25.overall.values["recall@10"])
    assert mine["location"].fillna("").tolist() == results.classes["location"].fillna("").tolist()
    hits = results.ranks[(results.ranks["system"] == "bm25") & (results.ranks["rank"] > 0)]
    best = hits.groupby("context")["rank"].min()
    assert [best.get(one) for one in mine["context_id"]] == [None if one is pd.NA else one for one in mine["rank"]]
    assert repr(results) == "<Results of demo, 630 contexts: bm25, one-field, first>"
    assert results._repr_html_().count("<tr>") == 1 + 3


def test_results_come_back_from_their_folder(results: Results, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back, value = Results.read(out), results.to_json()
    assert json.dumps(back.to_json()) == json.dumps(value)
    assert (value["kind"], value["version"], value["measures"]) == ("citerec-results", 3, "ranks")
    assert value["rules"] == {"exclude_citing": True, "as_of_year": True, "missing": "zero", "conditions": True}
    assert back.items.equals(results.items) and back.classes.equals(results.classes)
    assert back.contexts_to_frame().equals(results.contexts_to_frame()) and back.to_frame().equals(results.to_frame())
    assert list(back.comparisons_to_frame()["p"]) == [comparison.p for comparison in results.comparisons]
    page = (out / "report.html").read_bytes()
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    files = ("meta.json", "labels.parquet", "ranks.parquet", "results.csv", "scores.csv", "qrels.txt", "report.html")
    assert names == {*files, "runs/bm25.trec", "runs/one-field.trec", "runs/first.trec"}
    results.write(out)  # older results may be replaced
    assert (out / "report.html").read_bytes() == page
    (out / "notes.txt").write_text("precious")
    (out / "a").mkdir()
    monkeypatch.chdir(out / "a")
    for place, message in (
        (out, r"holds other things too, such as|is the current folder"),
        (".", "is the current folder, or holds it"),
        ("new/..", "is the current folder, or holds it"),
        (out / "meta.json" / "below", "cannot write"),
    ):
        with pytest.raises(InputError, match=message):
            results.write(place)
    latex = results.to_latex("location")
    assert re.search(r"^first & bm25 & 71 & .*\\textbf\{0\.\d{3}\}", latex, re.MULTILINE)
    assert re.search(r"^ & first & .*\{\\small \[[.\d]+ [.\d]+\]\}\$\^\{\\dagger\}\$", latex, re.MULTILINE)


def test_damaged_results_are_refused_or_shown(out: Path) -> None:
    read, meta = 0, (out / "meta.json").read_bytes()
    for change in ({"version": 7}, {"kind": "x"}, {"systems": {"bm25": {}}}, {"k": 3}):
        (out / "meta.json").write_text(json.dumps({**json.loads(meta), **change}))
        with pytest.raises(InputError, match=r"or they are broken|systems\.bm25\.kind: Field required"):
            Results.read(out)
    for raw in damaged(json.dumps({**json.loads(meta), "resamples": 100}).encode(), 50):
        (out / "meta.json").write_bytes(raw)
        with contextlib.suppress(InputError):
            back = Results.read(out)
            back.to_frame()
            shown = [tables.overall_table(back), tables.robustness_table(back), tables.cost_table(back)]
            shown += [tables.block_table(back, one) for one in tables.blocks(back)]
            assert "".join(map(to_html, [*shown, tables.outcomes_table(back)])) + "".join(tables.rules_text(back))
            read += 1
    assert read > 5  # what is in no figure may change
    (out / "meta.json").write_bytes(meta)
    for name in ("labels.parquet", "ranks.parquet"):
        whole = (out / name).read_bytes()
        for raw in (b"", whole[:100], whole[:-20], whole.replace(b"PAR1", b"PARX")):
            (out / name).write_bytes(raw)
            with pytest.raises(InputError, match=r"or they are broken"):
                Results.read(out)
        (out / name).write_bytes(whole)


def test_runs_have_the_same_figures_alone_and_merged(results: Results, written: Path, demo_index: Path) -> None:
    parts = {}
    for name in ("bm25", "first"):
        run = Run.from_trec(written / "runs" / f"{name}.trec")
        parts[name] = evaluate({name: run}, "demo/location", index=demo_index, k=50)
    again, before = parts["bm25"].systems["bm25"], results.systems["bm25"]
    assert (again.overall, again.families, again.outcomes) == (before.overall, before.families, before.outcomes)
    merged = merge(parts)
    pairs = [one for one in results.comparisons if (one.first, one.second) == ("bm25", "first")]
    assert [one._replace(p_holm=0) for one in merged.comparisons] == [one._replace(p_holm=0) for one in pairs]
    # Of fewer pairs fewer tests are corrected.
    assert all(one.p_holm <= more.p_holm for one, more in zip(merged.comparisons, pairs, strict=True))
    assert merged.systems["bm25"].families == before.families and merged.record.notes == ()
    assert set(merge({"one": parts["bm25"], "two": parts["bm25"]}).systems) == {"bm25@one", "bm25@two"}


def recorded(results: Results, **changes: object) -> Results:
    return replace(results, record=results.record.model_copy(update=changes))


def test_what_is_not_merged(results: Results, demo_index: Path) -> None:
    few = read_set(DEMO).contexts[:100]
    mine = Run.from_dict({few[0].context_id: {"900000001": 1.0}}, "mine")
    other = results.record.systems["bm25"].model_copy(update={"settings": {"words": {"bm25": {"k1": 9}}}})
    for message, one in {
        "different contexts": evaluate(mine, few, families="length", index=demo_index, resamples=100),
        "different rules": evaluate("bm25-one-field", "demo/location", index=demo_index, k=10, resamples=100),
        "different classes": evaluate("bm25-one-field", "demo/length", index=demo_index, k=50, resamples=100),
        "different metrics": recorded(results, columns=results.columns[1:]),
        "bm25 is not the same system": recorded(results, systems={**results.record.systems, "bm25": other}),
    }.items():
        with pytest.raises(InputError, match=message):
            merge({"a": results, "b": one})


def test_the_page_has_all_sections(written: Path) -> None:
    page = (written / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 + 1  # a family, and ranks
    links = re.findall(r"(?:href|src)=\"([^\"]*)\"", page)
    assert links and all(link.startswith("#") for link in links)
    assert all(f'id="{link[1:]}"' in page for link in links)
    for section in ("Overall", "Class by class", "System against system", "Ranks of", "Outcomes", "Cost", "hardest"):
        assert section in page


def test_python_takes_sets_names_lists_and_what_people_write(demo_index: Path) -> None:
    unconditional = evaluate("bm25", DEMO / "contexts.jsonl", families=["location"], index=demo_index, conditions=False)
    assert sum(scores.n for scores in unconditional.systems["bm25"].families["location"].values()) == 630
    numbers = [replace(CONTEXTS[0], context_id="", cited_ids=(900000001,)), replace(CONTEXTS[1], context_id="")]  # type: ignore[arg-type]
    run = Run.from_dict({"context-1": {900000001: np.float32(1.5), 900000002: np.int64(1)}})  # type: ignore[dict-item]
    results = evaluate(run, numbers, index=demo_index, metrics="mrr@10, recall@5", families="location")  # type: ignore[arg-type]
    assert results.metrics == ("mrr@10", "recall@5") and results.ranks["rank"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("systems", "options", "message"),
    [
        (Run.from_dict({"c1": {"1": 1.0}}), {}, "run: the paper '1' is not in the index"),
        ("bm25", {"seed": -1}, "seed is -1"),
        ({"x": lambda _, __: None}, {}, "x answers None"),
        ("bm25", {"families": ["pos_before"]}, "the spaCy model en_core_web_sm cannot be loaded"),
        ("bm25", {"contexts": "demo/location", "conditions": False}, "The set demo is labelled already"),
        ("bm25", {"contexts": [replace(CONTEXTS[0], cited_ids=("1",))]}, "no cited paper of any context is in "),
        ("bm25", {"contexts": [replace(CONTEXTS[0], cited_ids=())]}, "context 1: cited_ids is missing or empty"),
        ("bm25", {"contexts": [CONTEXTS[0], CONTEXTS[0]]}, "context 2: context_id c1 occurs twice"),
    ],
)
def test_what_cannot_be_measured(systems: object, options: dict[str, object], message: str, demo_index: Path) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(systems, **{"contexts": CONTEXTS, "index": demo_index, **options})  # type: ignore[arg-type]


def test_what_the_index_says_of_cited_papers_is_found_on_the_spot(demo_index: Path, tmp_path: Path) -> None:
    """Sentences of the citing paper itself, and newer ones, are not known to a context."""
    (warm,) = read_set(DEMO).contexts[0].cited_ids
    shutil.copytree(demo_index, index := tmp_path / "index")
    citing = [
        {"text": f"Said in {year} <REF>.", "citing_key": key, "citing_year": year, "cited_ids": [warm]}
        for key, year in (("own", 1990), ("old", 1991), ("new", 2990))
    ]
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
    found = of_set.systems["bm25"].families["cold_start"]
    assert list(of_set.families) == ["cold_start"] and found["0"].n > found["1–4"].n > 0 == found["5+"].n


def test_what_a_function_holds_is_known_and_what_it_does_not_say(demo_index: Path) -> None:
    with Recommender.open(demo_index, "bm25") as recommender:

        def mine(context: Context, k: int) -> dict[str, float]:
            return {hit.paper.paper_id: hit.score for hit in recommender.search(context, k)}

        systems = {"mine": mine, "other": lambda _context, _k: {"900000001": 1.0}}
        one = evaluate(systems, "demo/location", index=demo_index, k=10, resamples=100)
        own = one.record.systems["mine"]
        assert own.settings == recommender.recipe.to_json() and __name__ in own.digests
    assert [note for note in one.record.notes if "do not say" in note and note.startswith("other: ")]
    assert not any(note.startswith("mine: ") for note in one.record.notes)
