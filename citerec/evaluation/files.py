"""Results as a directory: results.json and the files beside it (docs/formats.md)."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError

from citerec.corpus.json_lines import raw_lines
from citerec.diagnostics.sets import write_qrels
from citerec.errors import InputError, first_fault
from citerec.evaluation.figures import DATASET, OVERALL, Comparison, FamilyInfo, Figures, Scores, SystemResult
from citerec.evaluation.items import Item, Items
from citerec.evaluation.page import write_page
from citerec.evaluation.rank import OUTCOMES, Removed
from citerec.evaluation.rendering import Table, from_csv_cell, left, to_csv
from citerec.evaluation.seeds import over_seeds
from citerec.evaluation.tables import csv_rows, items_table
from citerec.files.writing import Kind
from citerec.retrieve.run import write_run
from citerec.version import __version__
from citerec.write.metrics.base import Column

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
_VERSIONS = {RESULTS.kind: 2, TEXT_RESULTS.kind: 1}
"""It rises when new code would misread older files."""

_ITEM = TypeAdapter(Item)
_DECIMALS = 2


def write_figures(results: Figures, out: Path) -> None:
    """Writes results to a temporary folder, which replaces older results at the end."""
    if not results.rankings and (out / RUNS).is_dir() and any((out / RUNS).iterdir()):
        raise InputError(
            f"{out} has runs, which would be lost: results that were read back have none", "Write to another folder."
        )
    with (TEXT_RESULTS if results.of_texts else RESULTS).writing(out) as partial:
        (partial / FIGURES).write_bytes(orjson.dumps(figures_json(results), option=orjson.OPT_INDENT_2))
        if results.of_texts:
            (partial / SCORES).write_text(to_csv(items_table(results)), encoding="utf-8", newline="")
        else:
            _write_ranked(results, partial)
        write_page(results, partial / PAGE)


def _write_ranked(results: Figures, folder: Path) -> None:
    heading, *rows = csv_rows(results)
    (folder / TABLE).write_text(to_csv(Table(left(*heading), rows)), encoding="utf-8", newline="")
    with (folder / CONTEXTS).open("wb") as file:
        file.writelines(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE) for item in results.items)
    write_qrels(folder / QRELS, zip(results.items.ids, results.items.cited, strict=True))
    (folder / RUNS).mkdir()
    for name, ranking in results.rankings.items():
        answers = enumerate(results.context_ids)
        hits = ((context_id, ranking.hits(number)) for number, context_id in answers)
        write_run(folder / RUNS / f"{name}.trec", hits, name)


def figures_json(results: Figures) -> dict[str, Any]:
    """results.json: values as metrics give them, shares from 0 to 1."""
    kind = (TEXT_RESULTS if results.of_texts else RESULTS).kind
    drawn = {"seed": results.seed, "resamples": results.resamples}
    if results.of_texts:
        of_kind = {
            "citerec": __version__,
            "tasks": results.set,
            "columns": [_column_json(column) for column in results.columns],
            "preset": results.preset,
            "settings": results.settings,
            **drawn,
            "systems": {name: _writer_json(system) for name, system in results.systems.items()},
            "targets": results.targets.means() if results.targets else None,
            "over_seeds": over_seeds(results),
        }
    else:
        of_kind = {
            **{name: getattr(results, name) for name in ("set", "index", "rules", "metrics", "k")},
            **drawn,
            "families": results.families,
            "systems": {name: _ranker_json(system) for name, system in results.systems.items()},
        }
    head, tail = {"kind": kind, "version": _VERSIONS[kind]}, ("comparisons", "notes")
    return plain({**head, **of_kind, **{name: getattr(results, name) for name in tail}})


def plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Data classes, mappings and sequences as dictionaries and lists."""
    made: dict[str, Any] = orjson.loads(orjson.dumps(value, default=dict))
    return made


def _ranker_json(system: SystemResult) -> dict[str, Any]:
    return {
        "kind": system.kind,
        "overall": _scores_json(system.overall),
        "families": {
            family: {label: _scores_json(scores) for label, scores in classes.items()}
            for family, classes in system.families.items()
        },
        **{name: getattr(system, name) for name in ("robustness", "outcomes", "ranks")},
        "without_hit": system.empty,
        **{name: getattr(system, name) for name in ("removed", "settings", "cost", "reliability")},
    }


def _scores_json(scores: Scores) -> dict[str, Any]:
    return {"n": scores.n, **scores.values, "ci": scores.ci, "few": scores.few}


def _writer_json(system: SystemResult) -> dict[str, Any]:
    return {
        "files": system.files,
        "settings": system.settings,
        "upper_bound": system.is_oracle,
        "missing": system.missing,
        "blank": system.empty,
        "means": system.means(),
        "summaries": system.summaries,
    }


def _column_json(column: Column) -> dict[str, Any]:
    """A column in results.json: `better` and `decimals` only if they are not "higher" and 2."""
    value = {name: getattr(column, name) for name in ("name", "metric", "share", "judges")}
    better = {"better": column.better} if column.better == "lower" else {}
    return {**value, **better, **({"decimals": column.decimals} if column.decimals != _DECIMALS else {})}


_Some = Field(min_length=1)


class _Part(BaseModel):
    """A part of results.json, whose scores are put into the shape of `citerec.evaluation.figures` before."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Overlap(_Part):
    contexts: NonNegativeInt
    left_out: bool


class _Set(_Part):
    name: str
    source: str
    counted: NonNegativeInt
    contexts: NonNegativeInt
    outside: NonNegativeInt
    alike: bool
    citing_papers_known: bool
    without_citing_paper: NonNegativeInt
    without_citing_year: NonNegativeInt
    training_overlap: _Overlap


class _Index(_Part):
    path: str
    papers: NonNegativeInt


class _Rules(_Part):
    exclude_citing: bool
    as_of_year: bool
    missing: str


class _Results(_Part):
    seed: NonNegativeInt
    resamples: NonNegativeInt
    systems: Annotated[Mapping[str, SystemResult], _Some]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


class _RankedResults(_Results):
    """results.json of ranked lists."""

    set: _Set
    index: _Index
    rules: _Rules
    metrics: Annotated[tuple[str, ...], _Some]
    k: PositiveInt
    families: Mapping[str, FamilyInfo]


class _Tasks(_Part):
    asked: NonNegativeInt
    compared: NonNegativeInt
    left_out: NonNegativeInt
    citing_paper_known: NonNegativeInt
    groups: Mapping[str, NonNegativeInt]


class _Column(_Part):
    name: str
    metric: str
    share: bool
    judges: bool
    better: Literal["higher", "lower"] = "higher"
    decimals: Annotated[int, Field(ge=0, le=20)] = 2


class _Preset(_Part):
    name: str
    source: str
    settings: Mapping[str, Any]
    differs: Mapping[str, Any]


class _TextResults(_Results):
    """results.json of texts."""

    tasks: _Tasks
    preset: _Preset | None
    columns: Annotated[list[_Column], _Some]
    settings: Mapping[str, Mapping[str, Any]]
    targets: SystemResult | None


def read_fields(folder: Path) -> dict[str, Any]:
    """Reads results back as the fields of `Figures`, except runs and texts."""
    again = f"Evaluate again: citerec eval … --out {folder}"
    try:
        raw = (folder / FIGURES).read_bytes()
        value = orjson.loads(raw)
        kind, version = value.get("kind"), value.get("version")
    except OSError as error:
        raise InputError(f"{folder} holds no results: it has no {FIGURES}", again) from error
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise InputError(f"{folder / FIGURES} is broken ({error})", again) from error
    if not isinstance(kind, str) or kind not in _VERSIONS:
        raise InputError(f"{folder} is a {kind}, not {RESULTS.kind}", again)
    if version != (reads := _VERSIONS[kind]):
        raise InputError(f"{folder} holds results of version {version}; this citerec reads version {reads}", again)
    of_texts = kind == TEXT_RESULTS.kind
    try:
        fields = _texts(value, folder) if of_texts else _ranked(value, folder)
    except ValidationError as error:
        raise InputError(f"the results in {folder} are broken ({first_fault(error)})", again) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, OSError, csv.Error) as error:
        raise InputError(f"the results in {folder} are broken ({error})", again) from error
    name, whole = (SCORES, "compared") if of_texts else (CONTEXTS, "counted")
    if len(fields["items"]) != fields["set"][whole]:
        raise InputError(
            f"{folder / name} has {len(fields['items']):,} contexts where {fields['set'][whole]:,} should be", again
        )
    return fields


def _ranked(value: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    metrics, families = value["metrics"], value["families"]

    def scores(entry: Mapping[str, Any]) -> dict[str, Any]:
        means = {name: {"n": entry["n"], "value": entry[name], "ci": entry["ci"][name]} for name in metrics}
        return {"n": entry["n"], "means": means}

    systems = {
        name: {
            **one,
            "overall": scores(one["overall"]),
            "families": {
                family: {label: scores(one["families"][family][label]) for label in info["classes"]}
                for family, info in families.items()
            },
            "outcomes": {outcome: one["outcomes"][outcome] for outcome in OUTCOMES},
            "removed": {rule: one["removed"][rule] for rule in Removed._fields},
            "empty": one["without_hit"],
        }
        for name, one in value["systems"].items()
    }
    stated = _RankedResults.model_validate_json(orjson.dumps({**value, "systems": systems}))
    items = [_ITEM.validate_json(raw, strict=True) for _, raw, _ in raw_lines(folder / CONTEXTS)]
    fields = dict(stated)
    del fields["metrics"]
    return {
        **fields,
        **{name: value[name] for name in ("set", "index", "rules")},
        "columns": ranked_columns(stated.metrics),
        "items": Items.of(items, list(stated.systems), stated.metrics),
    }


def ranked_columns(metrics: Iterable[str]) -> tuple[Column, ...]:
    """The columns of ranked lists: one for each metric, shown from 0 to 1."""
    return tuple(Column(name, share=False, decimals=3, metric=name) for name in metrics)


def _texts(value: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    sizes = value["tasks"]["groups"]
    datasets = [name for name in sizes if name != OVERALL]

    def system(means: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        scores = {group: {"n": sizes[group], "means": columns} for group, columns in means.items()}
        families = {DATASET: {name: scores[name] for name in datasets}} if datasets else {}
        return {"kind": "texts", "overall": scores[OVERALL], "families": families, **fields}

    systems = {
        name: system(**{**one, "is_oracle": one["upper_bound"], "empty": one["blank"]})
        for name, one in value["systems"].items()
    }
    targets = system(value["targets"]) if value["targets"] else None
    stated = _TextResults.model_validate_json(orjson.dumps({**value, "systems": systems, "targets": targets}))
    columns = tuple(
        Column(one.name, one.share, one.better if one.judges else None, one.decimals, one.metric)
        for one in stated.columns
    )
    fields = dict(stated)
    del fields["tasks"]
    return {
        **fields,
        "set": value["tasks"],
        "preset": value["preset"],
        "columns": columns,
        "families": dataset_family(datasets),
        "items": _task_items(folder / SCORES, list(systems), [column.name for column in columns]),
    }


def dataset_family(names: Sequence[str]) -> dict[str, FamilyInfo]:
    """The family of the data sets, where there are several."""
    return {DATASET: FamilyInfo("Data sets", (), tuple(names))} if names else {}


def _task_items(path: Path, systems: Sequence[str], columns: Sequence[str]) -> Items:
    with path.open(encoding="utf-8", newline="") as file:
        heading, *cells = ([from_csv_cell(cell) for cell in row] for row in csv.reader(file) if row)
    rows = [dict(zip(heading, row, strict=True)) for row in cells]
    by_system = {name: [row for row in rows if row["system"] == name] for name in systems}
    tasks = by_system[systems[0]]
    return Items(
        ids=[row["id"] for row in tasks],
        labels=[{DATASET: row["dataset"]} for row in tasks],
        citing=np.array([row["citing"] for row in tasks], np.int32),
        scores={
            name: np.array([[float(row[column] or "nan") for column in columns] for row in of_system], np.float64)
            for name, of_system in by_system.items()
        },
        columns=columns,
    )
