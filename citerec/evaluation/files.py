"""Results as a directory: results.json and what stands beside it (docs/formats.md)."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.corpus.json_lines import raw_lines
from citerec.diagnostics.sets import write_qrels
from citerec.errors import CiterecError, InputError
from citerec.evaluation.cost import Cost
from citerec.evaluation.figures import (
    ALL,
    DATASET,
    Comparison,
    FamilyInfo,
    Figures,
    Mean,
    Robustness,
    Scores,
    SystemResult,
)
from citerec.evaluation.items import Item, Items
from citerec.evaluation.page import write_page
from citerec.evaluation.predictions import ReadFile
from citerec.evaluation.rank import Ranking
from citerec.evaluation.tables import csv_rows, items_table
from citerec.groundwork.directories import Kind
from citerec.groundwork.tables import Table, left, to_csv
from citerec.retrieve.base import Candidate
from citerec.retrieve.index import open_store
from citerec.retrieve.run import write_run
from citerec.texts.metrics.base import Column
from citerec.version import __version__

FIGURES = "results.json"
TABLE = "results.csv"
CONTEXTS = "contexts.jsonl"
QRELS = "qrels.txt"
RUNS = "runs"
SCORES = "scores.csv"
PAGE = "report.html"
RESULTS = Kind(
    "folder of results", "citerec-results", FIGURES, frozenset({FIGURES, TABLE, CONTEXTS, QRELS, RUNS, PAGE})
)
TEXT_RESULTS = Kind(
    "folder of results of eval-text", "citerec-text-results", FIGURES, frozenset({FIGURES, SCORES, PAGE})
)
_VERSIONS = {RESULTS.kind: (1, 2), TEXT_RESULTS.kind: (1,)}
"""Which versions can be read, the last of which is written: it rises when older ones are misread by what is new."""

_SET = ("name", "source", "counted", "contexts", "outside", "alike", "citing_papers_known", "without_citing_year")
_FIRST = 3
_DECIMALS = 2


def write_figures(results: Figures, out: Path) -> None:
    """Writes results beside their place, and puts them there at the end; older results go.

    Args:
        results: The results.
        out: The directory.

    Raises:
        InputError: Something else stands there.
        BuildError: The disk is full, or may not be written to.
    """
    if not results.rankings and (out / RUNS).is_dir() and any((out / RUNS).iterdir()):
        raise InputError(
            f"{out} has runs, which would be lost: results that were read back hold none", "Write them elsewhere."
        )
    with (TEXT_RESULTS if results.of_texts else RESULTS).writing(out) as partial:
        (partial / FIGURES).write_bytes(orjson.dumps(figures_json(results), option=orjson.OPT_INDENT_2))
        if results.of_texts:
            (partial / SCORES).write_text(to_csv(items_table(results)), encoding="utf-8", newline="")
        else:
            _write_ranked(results, partial)
        write_report(results, partial / PAGE)


def _write_ranked(results: Figures, folder: Path) -> None:
    heading, *rows = csv_rows(results)
    (folder / TABLE).write_text(to_csv(Table(left(*heading), rows)), encoding="utf-8", newline="")
    with (folder / CONTEXTS).open("wb") as file:
        for item in results.items:
            file.write(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
    write_qrels(folder / QRELS, zip(results.items.ids, results.items.cited, strict=True))
    (folder / RUNS).mkdir()
    for name, ranking in results.rankings.items():
        write_run(folder / RUNS / f"{name}.trec", _answers(ranking, results.context_ids), name)


def write_report(results: Figures, path: Path) -> None:
    """Writes the page of results, with titles of papers as far as the index is still there."""
    numbers = {context_id: number for number, context_id in enumerate(results.context_ids)}

    def titles_of(paper_ids: set[str]) -> dict[str, str]:
        try:
            store = open_store(Path(results.index["path"]))
        except CiterecError:
            return {}
        try:
            return {paper_id: paper.title for paper_id, paper in store.papers(paper_ids).items()}
        finally:
            store.close()

    def top_of(name: str, context_id: str) -> list[str]:
        if name not in results.rankings:
            return []
        run = results.rankings[name].run
        begin = int(np.searchsorted(run.contexts, numbers[context_id]))
        end = int(np.searchsorted(run.contexts, numbers[context_id], side="right"))
        return [run.paper_ids[paper] for paper in run.papers[begin : min(begin + _FIRST, end)]]

    write_page(results, path, titles_of, top_of)


def figures_json(results: Figures) -> dict[str, Any]:
    """results.json: values as metrics give them, shares from 0 to 1."""
    kind = (TEXT_RESULTS if results.of_texts else RESULTS).kind
    head = {"kind": kind, "version": _VERSIONS[kind][-1]}
    tail = {"comparisons": [asdict(one) for one in results.comparisons], "notes": list(results.notes)}
    drawn = {"seed": results.seed, "resamples": results.resamples}
    if results.of_texts:
        return {
            **head,
            "citerec": __version__,
            "tasks": dict(results.set),
            "columns": [_column_json(column) for column in results.columns],
            "settings": {name: dict(settings) for name, settings in results.settings.items()},
            **drawn,
            "systems": {name: _writer_json(system) for name, system in results.systems.items()},
            "targets": results.targets.means_json() if results.targets else None,
            **tail,
        }
    return {
        **head,
        "set": dict(results.set),
        "index": dict(results.index),
        "rules": dict(results.rules),
        "metrics": list(results.metrics),
        "k": results.k,
        **drawn,
        "families": {name: asdict(info) for name, info in results.families.items()},
        "systems": {name: _ranker_json(system) for name, system in results.systems.items()},
        **tail,
    }


def _ranker_json(system: SystemResult) -> dict[str, Any]:
    return {
        "kind": system.kind,
        "overall": _scores_json(system.overall),
        "families": {
            family: {label: _scores_json(scores) for label, scores in classes.items()}
            for family, classes in system.families.items()
        },
        "robustness": [asdict(line) for line in system.robustness],
        "outcomes": dict(system.outcomes),
        "ranks": list(system.ranks),
        "without_hit": system.empty,
        "removed": dict(system.removed),
        "settings": system.settings,
        "cost": asdict(system.cost) if system.cost else None,
    }


def _scores_json(scores: Scores) -> dict[str, Any]:
    return {"n": scores.n, **scores.values, "ci": scores.ci, "few": scores.few}


def _writer_json(system: SystemResult) -> dict[str, Any]:
    return {
        "files": [asdict(file) for file in system.files],
        "settings": system.settings,
        "upper_bound": system.is_oracle,
        "missing": system.missing,
        "blank": system.empty,
        "means": system.means_json(),
        "summaries": {name: dict(groups) for name, groups in system.summaries.items()},
    }


def _column_json(column: Column) -> dict[str, Any]:
    """What results.json says of a column: `better` and `decimals` only where they are not "higher" and 2."""
    value: dict[str, Any] = {
        "name": column.name,
        "metric": column.metric,
        "share": column.share,
        "judges": column.judges,
    }
    if column.better == "lower":
        value["better"] = column.better
    if column.decimals != _DECIMALS:
        value["decimals"] = column.decimals
    return value


def _column(value: Mapping[str, Any]) -> Column:
    return Column(
        value["name"],
        share=value["share"],
        better=value.get("better", "higher") if value["judges"] else None,
        decimals=value.get("decimals", _DECIMALS),
        metric=value["metric"],
    )


def read_fields(folder: Path) -> dict[str, Any]:
    """Reads results back as the fields of `Figures`, but for runs and texts.

    Raises:
        InputError: There are none, or they are broken, or of another version.
    """
    again = f"Evaluate again: citerec eval … --out {folder}"
    try:
        value = orjson.loads((folder / FIGURES).read_bytes())
        kind, version = value.get("kind"), value.get("version")
    except OSError as error:
        raise InputError(f"{folder} holds no results: it has no {FIGURES}", again) from error
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise InputError(f"{folder / FIGURES} is broken ({error})", again) from error
    if kind not in _VERSIONS:
        raise InputError(f"{folder} is a {kind}, not {RESULTS.kind}", again)
    if version not in _VERSIONS[kind]:
        reads = _VERSIONS[kind][-1]
        raise InputError(f"{folder} holds results of version {version}; this citerec reads version {reads}", again)
    try:
        fields = _texts(value, folder) if kind == TEXT_RESULTS.kind else _ranked(value, folder)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InputError(f"the results in {folder} are broken ({error})", again) from error
    name, whole = (SCORES, "compared") if kind == TEXT_RESULTS.kind else (CONTEXTS, "counted")
    if len(fields["items"]) != fields["set"][whole]:
        raise InputError(
            f"{folder / name} has {len(fields['items']):,} contexts where {fields['set'][whole]:,} should be", again
        )
    return {
        **fields,
        "seed": value["seed"],
        "resamples": value["resamples"],
        "comparisons": tuple(Comparison(**comparison) for comparison in value["comparisons"]),
        "notes": tuple(value["notes"]),
    }


def _ranked(value: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    metrics = tuple(value["metrics"])
    for key in _SET:
        value["set"][key]
    for system in value["systems"].values():
        for family, info in value["families"].items():
            for label in info["classes"]:
                system["families"][family][label]
    systems = {name: _ranker(system, metrics) for name, system in value["systems"].items()}
    items = [Item(**orjson.loads(raw)) for _, raw, _ in raw_lines(folder / CONTEXTS)]
    return {
        "columns": ranked_columns(metrics),
        **{key: value[key] for key in ("set", "index", "rules", "k")},
        "families": {name: FamilyInfo(**family) for name, family in value["families"].items()},
        "systems": systems,
        "items": Items.of(items, list(systems), metrics),
    }


def ranked_columns(metrics: Iterable[str]) -> tuple[Column, ...]:
    """The columns of ranked lists: one for each metric, shown from 0 to 1."""
    return tuple(Column(name, share=False, decimals=3, metric=name) for name in metrics)


def _ranker(value: Mapping[str, Any], metrics: Sequence[str]) -> SystemResult:
    def scores(entry: Mapping[str, Any]) -> Scores:
        return Scores(entry["n"], {name: _mean(entry["n"], entry[name], entry["ci"][name]) for name in metrics})

    return SystemResult(
        kind=value["kind"],
        overall=scores(value["overall"]),
        families={
            family: {label: scores(entry) for label, entry in classes.items()}
            for family, classes in value["families"].items()
        },
        robustness=tuple(Robustness(**line) for line in value["robustness"]),
        outcomes=value["outcomes"] if "outcomes" in value else value["fates"],  # as version 1 called them
        ranks=value["ranks"],
        empty=value["without_hit"],
        removed=value["removed"],
        settings=value["settings"],
        cost=Cost(**value["cost"]) if value["cost"] else None,
    )


def _mean(n: int, value: float | None, ci: Sequence[float] | None) -> Mean:
    return Mean(n, value, (ci[0], ci[1]) if ci else None)


def _texts(value: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    sizes = value["tasks"]["groups"]
    datasets = [name for name in sizes if name != ALL[1]]

    def system(means: Mapping[str, Any], **fields: Any) -> SystemResult:
        scores = {
            group: Scores(sizes[group], {name: _mean(**mean) for name, mean in columns.items()})
            for group, columns in means.items()
        }
        families = {DATASET: {name: scores[name] for name in datasets}} if datasets else {}
        return SystemResult("texts", scores[ALL[1]], families, **fields)

    columns = tuple(map(_column, value["columns"]))
    systems = {
        name: system(
            one["means"],
            settings=one["settings"],
            is_oracle=one["upper_bound"],
            missing=one["missing"],
            empty=one["blank"],
            summaries=one["summaries"],
            files=tuple(ReadFile(**file) for file in one["files"]),
        )
        for name, one in value["systems"].items()
    }
    return {
        "columns": columns,
        "set": value["tasks"],
        "settings": value["settings"],
        "families": {DATASET: FamilyInfo("Data sets", (), tuple(datasets))} if datasets else {},
        "systems": systems,
        "targets": system(value["targets"]) if value["targets"] else None,
        "items": _task_items(folder / SCORES, list(systems), [column.name for column in columns]),
    }


def _task_items(path: Path, systems: Sequence[str], columns: Sequence[str]) -> Items:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_system = {name: [row for row in rows if row["system"] == name] for name in systems}
    tasks = by_system[systems[0]]
    return Items(
        ids=[row["id"] for row in tasks],
        labels=[{DATASET: row["dataset"]} for row in tasks],
        citing=np.array([row.get("citing", number) for number, row in enumerate(tasks)], np.int32),
        scores={
            name: np.array([[float(row[column] or "nan") for column in columns] for row in of_system], np.float64)
            for name, of_system in by_system.items()
        },
        columns=columns,
    )


def _answers(ranking: Ranking, context_ids: Sequence[str]) -> Iterator[tuple[str, list[Candidate]]]:
    """Context ids with their hits, best first; contexts without a hit too."""
    run = ranking.run
    begins = np.searchsorted(run.contexts, np.arange(len(context_ids) + 1)).tolist()
    for number, context_id in enumerate(context_ids):
        rows = slice(begins[number], begins[number + 1])
        found = zip(run.papers[rows].tolist(), run.scores[rows].tolist(), strict=True)
        yield context_id, [Candidate(run.paper_ids[paper], score) for paper, score in found]
