"""Ratings of texts by people who do not know who wrote them: sheets, means by system, agreement, metrics against them.

As in CiteBench (Funkquist et al., EMNLP 2023, section 5.3 and appendix A.5): readability, and consistency with what the
authors wrote, from 1 to 5; the texts of all systems mixed; some texts rated by several people, to see how well they
agree.
"""

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from citerec.diagnostics.review import cohens_kappa
from citerec.errors import InputError, first_fault
from citerec.evaluation.predictions import Predictions, citing_paper
from citerec.evaluation.rendering import Cell, Table, left, marked, right, to_csv
from citerec.evaluation.results import Results, plain
from citerec.evaluation.statistics import DATASET, LEVEL, OVERALL, Floats, drawn_times, group_scores, grouping_of
from citerec.files.text import counted
from citerec.files.writing import write_failures
from citerec.papers.common.reproduce.here import metrics_here, published
from citerec.papers.common.reproduce.run import Measured, Reproduction
from citerec.write.citation import PRESETS
from citerec.write.metrics.base import open_metrics
from citerec.write.task_files import read_prediction_file
from citerec.write.tasks import Prediction, sentences_of

SCALES: Mapping[str, tuple[str, ...]] = {
    "readability": (
        "cannot be read: no grammar holds it together",
        "can be read with effort: hardly any grammar holds it together",
        "can be read, with major faults of grammar or flow",
        "reads well, with one or two minor faults",
        "reads perfectly",
    ),
    "consistency": (
        "has nothing to do with what the authors wrote",
        "the same topic, but all main points about the cited papers, and the facts that go with them, are missing",
        "the same topic, but some main facts about the cited papers are missing or wrong",
        "all main points about the cited papers are there; some facts are missing",
        "says what the authors said, in the same detail",
    ),
}
"""What each rating means, from 1 to 5, after CiteBench's appendix A.5."""

COMPARING = "consistency"
"""The scale on which only texts can be rated whose task has a target."""
COEFFICIENTS = ("pearson", "spearman", "kendall")

_ITEM, _NOTE = "item", "note"
_KEY_ENDING = ".key.json"
_INSTRUCTIONS = f"""How to rate

Open your sheet in any spreadsheet program. Each row has a text to rate, what the authors of the paper wrote in its
place, and the abstracts that the text was written from; [0], [1], … are those abstracts.

Write a whole number from 1 to 5 into the columns {" and ".join(SCALES)}, and any remarks into the
column {_NOTE}. Leave empty what you cannot rate, such as {COMPARING} where it is not known what the authors wrote.
Change nothing else; the order of the rows does not matter.

%s

Judge each row by itself. Several rows may be for the same task: they were written by different systems, whose
names are hidden. Do not talk about rows with other raters before all are done. Save the sheet as CSV, under your name
(sheet-anna.csv).
"""
_RATING = re.compile(r"(0*[1-5]([.,]0)?)?")  # some spreadsheets save whole numbers as "4.0" or "4,0"
_LEAST = 3  # points: the correlation of two is always 1 or -1
_DECIMALS = 12  # what differs after them differs by rounding


@dataclass(frozen=True, slots=True)
class Item:
    """A text to rate, and the facts that raters must not know.

    Attributes:
        system: Who wrote it.
        dataset: The data set of its task.
        task_id: Its task.
        rater: Number of the rater that gets it, from 1; None if all do.
        compared: Whether its task has a target: only then can consistency be rated.
    """

    system: str
    dataset: str
    task_id: str
    rater: int | None
    compared: bool


class Key(BaseModel):
    """The key of some sheets, as its file holds it: the seed, systems that saw the targets, items by their names."""

    model_config = ConfigDict(strict=True)

    kind: Literal["citerec-rating-key"] = "citerec-rating-key"
    version: Literal[1] = 1
    seed: NonNegativeInt
    upper_bounds: tuple[str, ...]
    items: Mapping[str, Item]


def write_sheets(
    predictions: Predictions, out: Path, *, tasks: int = 25, raters: int = 3, shared: int = 10, seed: int = 0
) -> list[Path]:
    """Writes a sheet for each rater, instructions, and the key, which raters must not see.

    All systems' texts for a task go to the same rater, so that a strict one is strict with all systems; in the sheet
    they are mixed with those for other tasks.

    Args:
        predictions: The predictions of systems.
        out: Name of the sheet, such as sheet.csv: several raters get sheet-1.csv, sheet-2.csv, …
        tasks: How many tasks of each data set are drawn, at most.
        raters: How many people rate.
        shared: How many of those tasks go to every rater, at most.
        seed: Seed of the random choices.

    Returns:
        The sheets, then the instructions, then the key.

    Raises:
        InputError: A rater would get no text, or a file exists already.
        BuildError: The disk is full, or may not be written to.
    """
    if out.suffix != ".csv":
        raise InputError(f"{out} is not a valid name of a sheet", "Give one such as sheet.csv.")
    stem = out.with_suffix("")
    sheets = [out] if raters == 1 else [Path(f"{stem}-{number}.csv") for number in range(1, raters + 1)]
    files = [*sheets, Path(f"{stem}.instructions.txt"), Path(f"{stem}{_KEY_ENDING}")]
    if existing := next((file for file in files if file.exists()), None):
        raise InputError(f"{existing} exists, perhaps with ratings in it", "Give another --out, or remove it first.")
    random = np.random.default_rng(seed)
    drawn = list(_drawn(predictions, tasks, raters, shared, random))
    # Numbered at random, so that neither a text's number nor its place in a sheet reveals its system.
    names = [f"T{number + 1:0{len(str(len(drawn)))}}" for number in random.permutation(len(drawn))]
    texts = dict(zip(names, drawn, strict=True))
    items = {name: item for name, (item, _) in texts.items()}
    key = Key(seed=seed, upper_bounds=tuple(sorted(predictions.oracles)), items=items)
    scales = [
        "\n".join([scale, *(f"  {rating}  {text}" for rating, text in enumerate(texts_of, 1))])
        for scale, texts_of in SCALES.items()
    ]
    # The key first: a sheet without a key could be filled in, and never be read.
    content = {files[-1]: key.model_dump_json(indent=2), files[-2]: _INSTRUCTIONS % "\n\n".join(scales)}
    for number, sheet in enumerate(sheets, 1):
        of_rater = [name for name, item in items.items() if item.rater in (None, number)]
        if not of_rater:
            fault = f"rater {number} of {raters} would get no text: there are too few tasks"
            raise InputError(fault, "Use fewer --raters, more --shared, or more --texts.")
        order = [of_rater[place] for place in random.permutation(len(of_rater))]
        content[sheet] = "\ufeff" + _sheet({name: texts[name][1] for name in order})
    with contextlib.ExitStack() as undo:
        for path, text in content.items():
            with write_failures(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:  # never in place of a sheet that somebody has filled in
                    undo.callback(path.unlink)
                    file.write(text.encode())
        undo.pop_all()
    return files


def _drawn(
    predictions: Predictions, tasks: int, raters: int, shared: int, random: np.random.Generator
) -> Iterator[tuple[Item, Prediction]]:
    """Draws tasks, and gives the texts of all systems for them with their raters."""
    datasets = pd.Series([task.dataset for task in predictions.tasks], dtype=object)
    dealt = 0
    for dataset, places in datasets.groupby(datasets, sort=False).indices.items():
        for number, chosen in enumerate(random.permutation(len(places))[:tasks].tolist()):
            rater = None if number < shared or raters == 1 else dealt % raters + 1
            dealt += rater is not None
            for system, texts in predictions.systems.items():
                text = texts[places[chosen]]
                yield Item(system, str(dataset), text.task.task_id, rater, bool(text.task.targets)), text


def _sheet(texts: Mapping[str, Prediction]) -> str:
    """A sheet as CSV: what raters see of each text, and empty cells for their ratings."""
    table = Table(left(_ITEM, "sources", "written by the authors", "text to rate", *SCALES, _NOTE))
    for name, text in texts.items():
        papers = (". ".join(filter(None, [source.title, source.text])) for source in text.task.sources)
        sources = "\n\n".join(f"[{number}] {paper}" for number, paper in enumerate(papers))
        target = "\n\n".join(text.task.targets) or f"(not known: leave {COMPARING} empty)"
        table.rows.append([name, sources, target, text.text, *("" for _ in SCALES), ""])
    return to_csv(table, spreadsheet=True)


def read_sheets(sheets: Sequence[Path], key_path: Path) -> tuple[Key, dict[str, pd.DataFrame]]:
    """Reads sheets that people filled in.

    A rater's name is the last part of the name of the sheet: sheet-anna.csv is anna's.

    Returns:
        The key, and by rater the ratings from 1 to 5, items of the sheet × scales; NaN where there is none.

    Raises:
        InputError: The key or a sheet cannot be read, or a sheet has a text twice, a text that is not in the key, an
            invalid rating, or no rating at all. The message names row and column, and what is allowed.
    """
    try:
        key = Key.model_validate_json(_text(key_path))
    except ValidationError as error:
        remedy = f"Give the file whose name ends in {_KEY_ENDING}, as `citerec rate sheet` wrote it."
        raise InputError(f"{key_path} is no key of sheets ({first_fault(error)})", remedy) from None
    by_rater: dict[str, pd.DataFrame] = {}
    for path in sheets:
        rater = path.stem.removeprefix(f"{key_path.name.removesuffix(_KEY_ENDING)}-")
        if rater in by_rater:
            raise InputError(f"there are two sheets of {rater}: {path} is the second", "Give each rater's sheet once.")
        by_rater[rater] = pd.DataFrame.from_dict(_ratings(path, key), orient="index", columns=list(SCALES))
        if by_rater[rater].isna().all(axis=None):
            raise InputError(f"{path} has no rating in it", f"Fill in the columns {' and '.join(SCALES)}.")
    return key, by_rater


def _table(key: Key, by_rater: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The items of a key, a row each, with the mean of their ratings on each scale; NaN where nobody gave one."""
    means = pd.concat(by_rater.values()).groupby(level=0).mean()
    return pd.DataFrame(list(key.items.values()), list(key.items)).join(means)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Check path and permissions.") from error


def _ratings(path: Path, key: Key) -> dict[str, list[float]]:
    """The ratings of one sheet by item, scale by scale; NaN for empty cells.

    Spreadsheets save with commas or, in some countries, semicolons or tabs: the first row shows which.
    """
    text = _text(path)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    # Strict: otherwise an open quote would take all rows after it into its cell.
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    ratings: dict[str, list[float]] = {}
    number = 1
    try:
        columns = [name.strip().lower() for name in next(rows, [])]
        if lacking := [name for name in (_ITEM, *SCALES) if name not in columns]:
            remedy = "Save the sheet as CSV, with its first row as it was."
            raise InputError(f"{path} has no column {lacking[0]}", remedy)
        for number, row in enumerate(rows, 2):
            cells = dict.fromkeys(columns, "") | dict(zip(columns, map(str.strip, row), strict=False))
            if not any(cells.values()):
                continue
            place, item = f"{path}, row {number}, column", cells[_ITEM]
            if item not in key.items or item in ratings:
                fault = "appears twice" if item in ratings else "is not in the key"
                raise InputError(f"{place} {_ITEM}: {item!r} {fault}", "Give the sheet with its key.")
            if wrong := [scale for scale in SCALES if not _RATING.fullmatch(cells[scale])]:
                fault = f"{place} {wrong[0]}: {cells[wrong[0]]!r:.60} is no rating"
                raise InputError(fault, "Write 1, 2, 3, 4 or 5, or leave the cell empty.")
            ratings[item] = [float(cells[scale].replace(",", ".") or "nan") for scale in SCALES]
    except csv.Error as error:
        remedy = "A quote in the row is not closed, or is alone: correct the row."
        raise InputError(f"{path}, row {number + 1}: {error}", remedy) from error
    return ratings


def read_ratings(sheets: Sequence[Path], key_path: Path, *, seed: int = 0, resamples: int = 1000) -> dict[str, Any]:
    """Reads sheets that people filled in, and sums them up by system; errors as for `read_sheets`.

    A text that several people rated counts once, by the mean of its ratings.

    Returns:
        As JSON. `texts`: how many have all their ratings from at least one rater (`rated`), of how many (`of_key`).
        `raters`: the same by rater, of how many `texts` of the sheet. `systems`: by name whether it saw the targets
        (`upper_bound`), and its `means` by group, "overall" and each of several data sets, and scale: `n`, `value`, and
        the 95 % interval `ci`. `agreement`: as `agreement` gives it. `seed` and `resamples` of the bootstrap.
    """
    key, by_rater = read_sheets(sheets, key_path)
    items, scales = _table(key, by_rater), list(SCALES)
    not_ratable = pd.DataFrame({scale: ~items["compared"] & (scale == COMPARING) for scale in SCALES})
    complete = {rater: (sheet.notna() | not_ratable.loc[sheet.index]).all(axis=1) for rater, sheet in by_rater.items()}
    systems = {}
    for system, of_system in items.groupby("system", sort=False):
        grouping = grouping_of(list(of_system["dataset"]), list(of_system["dataset"] + "\t" + of_system["task_id"]))
        scores = group_scores(of_system[scales].to_numpy(), scales, grouping, seed, resamples)
        of_groups = zip([OVERALL, *(name for _, name in grouping.groups)], scores, strict=True)
        upper_bound = system in key.upper_bounds
        systems[system] = {"upper_bound": upper_bound, "means": {name: one.means for name, one in of_groups}}
    rated = int(pd.concat(complete).groupby(level=1).any().sum())
    summary = {
        "kind": "citerec-ratings",
        "version": 1,
        "texts": {"rated": rated, "of_key": len(items)},
        "raters": {
            rater: {"rated": int(of_rater.sum()), "texts": len(of_rater)} for rater, of_rater in complete.items()
        },
        "systems": systems,
        "agreement": list(agreement(by_rater)),
        "seed": seed,
        "resamples": resamples,
    }
    return plain(summary)


def agreement(sheets: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, Any]]:
    """How well each two raters agree, on texts that both rated: Cohen's kappa with quadratic weights.

    J. Cohen, Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit,
    Psychological Bulletin 70 (1968), 213-220; as scikit-learn computes it over the ratings from 1 to 5.

    Args:
        sheets: By rater the ratings from 1 to 5, items × scales; NaN where there is none.

    Returns:
        For each pair and scale: `raters`, `scale`, `n` texts, and `kappa`, None if both gave all texts one rating.
    """
    for pair, scale in itertools.product(itertools.combinations(sheets, 2), SCALES):
        both = pd.concat([sheets[rater][scale] for rater in pair], axis=1, join="inner").dropna().astype(int)
        if len(both):
            kappa = cohens_kappa(both.to_numpy().tolist(), labels=range(1, 6), weights="quadratic")
            yield {"raters": list(pair), "scale": scale, "n": len(both), "kappa": kappa}


def correlate(
    sheets: Sequence[Path], key_path: Path, results: Results, *, seed: int = 0, resamples: int = 1000
) -> dict[str, Any]:
    """Correlates the metrics of results with ratings of the same texts.

    A text counts once, by the mean of its ratings. Upper bounds are left out. Intervals are percentiles of the
    bootstrap; citing papers are drawn, as for means (`citerec.evaluation.statistics`).

    Args:
        sheets: Sheets that people filled in.
        key_path: Their key.
        results: Results of `evaluate_texts` for the texts of the sheets; systems have the same names there.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.

    Returns:
        As JSON. `texts`: how many were both rated and measured (`measured`), of how many rated (`of_rated`). `systems`:
        their names. `correlations`: for each metric (its column) and scale two, of `level` "texts", whose points are
        the texts of all systems, and "systems", whose points are the means of systems over the rated texts; each with
        `n` points, `values` and `ci` as `bootstrapped` gives them. `seed` and `resamples` of the bootstrap.

    Raises:
        InputError: A sheet or the key cannot be read, the results are of ranked lists, or have none of the texts.
    """
    if not results.of_texts:
        raise InputError("these results are of ranked lists", "Give those of eval-text.")
    key, by_rater = read_sheets(sheets, key_path)
    tasks = zip(results.classes[DATASET], results.items["context"], strict=True)
    places = {task: place for place, task in enumerate(tasks)}
    rated = _table(key, by_rater).dropna(how="all", subset=list(SCALES))
    rated = rated[~rated["system"].isin(key.upper_bounds)]
    rated["place"] = [places.get(task) for task in zip(rated["dataset"], rated["task_id"], strict=True)]
    texts = rated[rated["system"].isin(results.scores.keys()) & rated["place"].notna()].astype({"place": int})
    if texts.empty:
        remedy = "Evaluate the files from which the sheets were made: citerec eval-text … --out FOLDER"
        raise InputError("the results have none of the texts that were rated", remedy)
    systems = texts["system"].unique().tolist()
    of_system = pd.get_dummies(texts["system"], dtype=float)[systems].to_numpy()
    scores = np.array([results.scores[name][at] for name, at in texts[["system", "place"]].itertuples(index=False)])
    times = times_of(results.items["citing"].to_numpy()[texts["place"]], seed, resamples)
    correlations = []
    for (column, measured), scale in itertools.product(zip(results.columns, scores.T, strict=True), SCALES):
        known = ~np.isnan(measured) & texts[scale].notna().to_numpy()
        pair = np.stack([measured, texts[scale]])[:, known]
        sums = [(sample * pair) @ of_system[known] for sample in times[:, known]]
        counts = times[:, known] @ of_system[known]  # a sample may have no text of a system
        of_systems = [one[:, n > 0] / n[n > 0] for one, n in zip(sums, counts, strict=True)]
        of_texts = [pair.repeat(sample, axis=1) for sample in times[:, known]]
        for level, samples in (("texts", of_texts), ("systems", of_systems)):
            about = {"level": level, "metric": column.name, "scale": scale}
            correlations.append({**about, **bootstrapped(samples)})
    return {
        "kind": "citerec-rating-correlations",
        "version": 1,
        "texts": {"measured": len(texts), "of_rated": len(rated)},
        "systems": systems,
        "correlations": correlations,
        "seed": seed,
        "resamples": resamples,
    }


def times_of(citing: Sequence[Any], seed: int = 0, resamples: int = 1000) -> npt.NDArray[np.int64]:
    """How often texts count, by their citing papers: each once, then in bootstrap samples; (1 + samples) × texts."""
    _, clusters = np.unique(citing, return_inverse=True)
    return np.concatenate([np.ones((1, len(clusters))), drawn_times(clusters, seed, resamples)]).astype(np.int64)


def bootstrapped(samples: Sequence[Floats]) -> dict[str, Any]:
    """Correlations of some points, with the 95 % intervals of their bootstrap samples.

    Args:
        samples: The points, then each bootstrap sample of them: 2 × points.

    Returns:
        `n` points; by coefficient `values`, None for fewer than three points or where `coefficients` has none; `ci`.
    """
    n = samples[0].shape[1]
    table = pd.DataFrame([coefficients(*sample) for sample in (samples if n >= _LEAST else ())], columns=COEFFICIENTS)
    if table[:1].dropna().empty:
        return {"n": n, "values": dict.fromkeys(COEFFICIENTS), "ci": dict.fromkeys(COEFFICIENTS)}
    bounds = table[1:].dropna().quantile([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    ci = {name: bounds[name].tolist() if len(bounds.dropna()) else None for name in COEFFICIENTS}
    return {"n": n, "values": table.iloc[0].to_dict(), "ci": ci}


def coefficients(first: Floats, second: Floats) -> list[float]:
    """Pearson's r, Spearman's rho and Kendall's tau-b (by scipy) of some points; NaN if one of both is constant."""
    from scipy import stats

    pair = np.round([first, second], _DECIMALS)
    if min(map(len, map(np.unique, pair))) < 2:
        return [np.nan] * len(COEFFICIENTS)
    # Spearman's rho is Pearson's r of the ranks; scipy's functions for both are slow, since they test it, too.
    pearson, spearman = (np.corrcoef(values)[0, 1] for values in (pair, stats.rankdata(pair, axis=1)))
    return [float(pearson), float(spearman), float(stats.kendalltau(*pair).statistic)]


def interval_cell(value: float | None, ci: Sequence[float] | None, more: str = "") -> Cell:
    """A value with its interval, as tables show them, and what follows; a dash for a value that is not defined."""
    shown, *bounds = ("–" if one is None else f"{round(one, 2) + 0.0:.2f}" for one in (value, *(ci or ())))
    return Cell(value, ((shown, ""), (f" [{' '.join(bounds)}]" * bool(bounds) + more, "faint")))


def ratings_tables(rated: Mapping[str, Any]) -> list[Table]:
    """Means by system and data set, with a column for each scale; and how well raters agree, if texts have several."""
    systems: dict[str, Any] = rated["systems"]
    groups = list(dict.fromkeys(name for system in systems.values() for name in system["means"]))
    several, texts = len(groups) > 1, rated["texts"]
    footnotes = [
        f"Means from 1 to 5; [low high]: 95 % of {rated['resamples']:,} bootstrap samples over tasks. n: texts; one "
        "that several people rated counts once.",
        "† saw what the authors wrote: an upper bound, not a system.",
        f"{texts['rated']:,} of {texts['of_key']:,} texts of the key were rated",
        *(f"{rater} rated {n['rated']:,} of {n['texts']:,} texts" for rater, n in rated["raters"].items()),
    ]
    if not any(system["upper_bound"] for system in systems.values()):
        del footnotes[1]
    columns = [*left(*["data set"] * several, "system"), *right(*(f"{scale} (n)" for scale in SCALES))]
    means = Table(columns, footnotes=footnotes)
    for group, (place, (name, system)) in itertools.product(groups, enumerate(systems.items())):
        of_scales = system["means"][group].values()
        cells = [interval_cell(one["value"], one["ci"], f"  {one['n']:>3,}") for one in of_scales]
        named = marked(f"{name} †", "oracle") if system["upper_bound"] else name
        means.rows.append([*["" if place else group] * several, named, *cells])
    agreed = Table([*left("raters", "scale"), *right("texts", "kappa")], title="Agreement: quadratic-weighted kappa")
    for one in rated["agreement"]:
        kappa = interval_cell(one["kappa"], None)
        agreed.rows.append([" and ".join(one["raters"]), one["scale"], one["n"], kappa])
    return [means, agreed] if agreed.rows else [means]


def correlation_tables(correlated: Mapping[str, Any]) -> list[Table]:
    """How metrics correlate with human ratings, over texts and over systems."""
    texts, systems = correlated["texts"], counted(len(correlated["systems"]), "system")
    abouts = {
        "texts": f"{texts['measured']:,} of {texts['of_rated']:,} rated texts are in the results, by {systems}",
        "systems": f"means of {systems} over the rated texts",
    }
    bounds = f"95 % of {correlated['resamples']:,} bootstrap samples over citing papers"
    columns = [*left("scale", "metric"), *right("n", format=","), *right(*map(str.title, COEFFICIENTS))]
    tables = []
    for level, about in abouts.items():
        tables.append(
            Table(columns, [], f"Over {level}  {about}", [f"[low high]: {bounds}. Upper bounds are left out."])
        )
        for scale, one in itertools.product(SCALES, correlated["correlations"]):
            if (one["level"], one["scale"]) == (level, scale):
                cells = [interval_cell(one["values"][name], one["ci"][name]) for name in COEFFICIENTS]
                tables[-1].rows.append([scale, one["metric"], one["n"], *cells])
    return tables


ALL_SETS, ALL_SYSTEMS = "all data sets", "all systems"
RATINGS = "ratings"
"""The field of a prediction that holds its ratings: {"coarse": 0.8, "fine": 0.65}."""
_BLOCK = 5  # sentences: Docekal et al. 2024, section 4.1.1


def show_means(table: Reproduction) -> None:
    """Reads the key and the sheets in the data folder. Rows are data set and system."""
    if not (paths := published(table.data, table.recipe.data[0], table.missing)):
        return
    key, *sheets = paths
    rated = read_ratings(sheets, key)
    for row, measure in itertools.product(table.recipe.rows, table.recipe.measures):
        group = OVERALL if row.section == ALL_SETS else row.section
        systems = [one["means"] for name, one in rated["systems"].items() if row.name in (ALL_SYSTEMS, name)]
        means = [of_groups[group][measure.column] for of_groups in systems if group in of_groups]
        means = [mean for mean in means if mean["n"]]
        if n := sum(mean["n"] for mean in means):
            value = sum(mean["value"] * mean["n"] for mean in means) / n
            ci = means[0]["ci"] if len(means) == 1 else None
            table.cells[row.title, "", measure.name] = Measured(value, n, ci)
    table.settings = {"scales": SCALES}
    people = counted(len(rated["raters"]), "person")
    table.measured_on[""] = f"{counted(rated['texts']['rated'], 'text')} that {people} rated"


def correlate_metrics(table: Reproduction) -> None:
    """Correlates metrics, a row each, with the ratings of predictions, a column each: Pearson's r over texts."""
    recipe, (data,) = table.recipe, table.recipe.data
    if not (paths := published(table.data, data, table.missing)):
        return
    read = (one for path in paths for one in read_prediction_file(path))
    rated = [_in_blocks(one) for one in read if isinstance(one.task.extra.get(RATINGS), dict)]
    if len(rated) < 3:
        raise InputError(f"{data.files[0]} has {counted(len(rated), 'prediction')} with {RATINGS}", "Give three.")
    metrics, _ = open_metrics(**PRESETS[recipe.preset].arguments(names=metrics_here(recipe, table.missing)))
    scores = {
        (metric.name, column.name): values
        for metric in metrics
        for column, values in zip(metric.columns, metric.scores(rated, table.on_progress).T, strict=True)
    }
    times = times_of([citing_paper(one.task) or one.task.task_id for one in rated])
    for row, measure in itertools.product(recipe.rows, recipe.measures):
        if (measured := scores.get((row.metric, row.column))) is not None:
            people = [one.task.extra[RATINGS].get(measure.column, np.nan) for one in rated]
            pair = np.stack([measured, np.array(people, np.float64)])
            known = ~np.isnan(pair).any(axis=0)
            one = bootstrapped([pair[:, known].repeat(sample, axis=1) for sample in times[:, known]])
            if (value := one["values"]["pearson"]) is not None:
                table.cells[row.title, "", measure.name] = Measured(value, one["n"], one["ci"]["pearson"])
    table.settings = {metric.name: metric.settings for metric in metrics}
    table.measured_on[""] = counted(len(rated), "text")


def _in_blocks(prediction: Prediction) -> Prediction:
    """A prediction and its targets with a line for five sentences each, as blocks for BlockMatch."""
    targets = tuple(map(_lines, prediction.task.targets))
    return replace(prediction, task=replace(prediction.task, targets=targets), text=_lines(prediction.text))


def _lines(text: str) -> str:
    sentences = sentences_of(text)
    return "\n".join(" ".join(sentences[place : place + _BLOCK]) for place in range(0, len(sentences), _BLOCK))
