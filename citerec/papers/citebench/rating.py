"""Ratings of texts by people who do not know who wrote them: sheets, means by system, agreement, metrics against them.

As in CiteBench (Funkquist et al., EMNLP 2023, section 5.3 and appendix A.5): readability, and consistency with what the
authors wrote, from 1 to 5; the texts of all systems mixed; some texts rated by several people, to see how well they
agree. Its table is CiteBench's table 8.
"""

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ValidationError

from citerec.corpus.reading import read_failures
from citerec.diagnostics.review import cohens_kappa
from citerec.errors import InputError, first_fault
from citerec.evaluation.results import Results, plain
from citerec.evaluation.statistics import DATASET, OVERALL, group_scores, grouping_of, times_of
from citerec.evaluation.tables import Cell, Table, left, right, to_csv
from citerec.evaluation.texts import Predictions
from citerec.files.text import counted
from citerec.files.writing import write_failures
from citerec.papers.common.reproduce import Measured, Reproduction, published
from citerec.papers.common.statistics import COEFFICIENTS, bootstrapped
from citerec.settings import read_toml
from citerec.write.tasks import Prediction

_TEXTS = read_toml(Path(__file__).with_suffix(".toml"))
SCALES: Mapping[str, Sequence[str]] = _TEXTS["scales"]
"""What each rating means, from 1 to 5, after CiteBench's appendix A.5."""

_ITEM, _NOTE = "item", "note"
_KEY_ENDING = ".key.json"
_INSTRUCTIONS = _TEXTS["instructions"].format(scales=" and ".join(SCALES), note=_NOTE)


class Item(BaseModel):
    """A text to rate, and the facts that raters must not know.

    Attributes:
        system: Who wrote it.
        upper_bound: Whether the system saw what the authors wrote.
        dataset: The data set of its task.
        task_id: Its task.
        rater: Number of the rater that gets it, from 1; 0 if all do.
    """

    system: str
    upper_bound: bool
    dataset: str
    task_id: str
    rater: int


class Key(BaseModel):
    """The key of some sheets, as its file holds it: the items by their names."""

    kind: Literal["citerec-rating-key"] = "citerec-rating-key"
    items: Mapping[str, Item]


def write_sheets(
    predictions: Predictions, out: Path, *, tasks: int = 25, raters: int = 3, shared: int = 10, seed: int = 0
) -> list[Path]:
    """Writes a sheet for each rater, instructions, and the key, which raters must not see.

    All systems' texts for a task go to the same rater, so that a strict one is strict with all systems; in the sheet
    they are mixed with those for other tasks.

    Args:
        predictions: The predictions of systems.
        out: Name of the sheets, such as sheet.csv: raters get sheet-1.csv, sheet-2.csv, …
        tasks: How many tasks of each data set are drawn, at most.
        raters: How many people rate.
        shared: How many of those tasks go to every rater, at most.
        seed: Seed of the random choices.

    Returns:
        The sheets, then the instructions, then the key.

    Raises:
        InputError: A file exists already.
        BuildError: The disk is full, or may not be written to.
    """
    stem = out.with_suffix("")
    sheets = [Path(f"{stem}-{number}.csv") for number in range(1, raters + 1)]
    files = [*sheets, Path(f"{stem}.instructions.txt"), Path(f"{stem}{_KEY_ENDING}")]
    if existing := next((file for file in files if file.exists()), None):
        raise InputError(f"{existing} exists, perhaps with ratings in it", "Give another --out, or remove it first.")
    random = np.random.default_rng(seed)
    drawn = list(_drawn(predictions, tasks, raters, shared, random))
    # Numbered at random, so that neither a text's number nor its place in a sheet reveals its system.
    names = [f"T{number + 1:0{len(str(len(drawn)))}}" for number in random.permutation(len(drawn))]
    texts = dict(zip(names, drawn, strict=True))
    meanings = (f"{scale} {rating}: {text}" for scale in SCALES for rating, text in enumerate(SCALES[scale], 1))
    key = Key(items={name: item for name, (item, _) in texts.items()})
    with write_failures(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(key.model_dump_json(indent=2), encoding="utf-8")
        files[-2].write_text("\n".join([_INSTRUCTIONS, *meanings, ""]), encoding="utf-8")
        for number, sheet in enumerate(sheets, 1):
            of_rater = [name for name, item in key.items.items() if item.rater in (0, number)]
            rows = {of_rater[place]: texts[of_rater[place]][1] for place in random.permutation(len(of_rater))}
            sheet.write_text(_sheet(rows), encoding="utf-8-sig", newline="")
    return files


def _drawn(
    predictions: Predictions, tasks: int, raters: int, shared: int, random: np.random.Generator
) -> Iterator[tuple[Item, Prediction]]:
    """Draws tasks, and gives the texts of all systems for them with their raters."""
    datasets = pd.Series([task.dataset for task in predictions.tasks], dtype=object)
    dealt = itertools.count()
    for dataset, places in datasets.groupby(datasets, sort=False).indices.items():
        for number, chosen in enumerate(random.permutation(len(places))[:tasks].tolist()):
            rater = 0 if number < shared else next(dealt) % raters + 1
            for system, texts in predictions.systems.items():
                text, is_oracle = texts[places[chosen]], system in predictions.oracles
                facts = {"dataset": str(dataset), "task_id": text.task.task_id, "rater": rater}
                yield Item(system=system, upper_bound=is_oracle, **facts), text


def _sheet(texts: Mapping[str, Prediction]) -> str:
    """A sheet as CSV: what raters see of each text, and empty cells for their ratings."""
    table = Table(left(_ITEM, "sources", "written by the authors", "text to rate", *SCALES, _NOTE))
    for name, text in texts.items():
        papers = (". ".join(filter(None, [source.title, source.text])) for source in text.task.sources)
        sources = "\n\n".join(f"[{number}] {paper}" for number, paper in enumerate(papers))
        target = "\n\n".join(text.task.targets) or "(not known: leave consistency empty)"
        table.rows.append([name, sources, target, text.text, *("" for _ in SCALES), ""])
    return to_csv(table, spreadsheet=True)


def read_sheets(sheets: Sequence[Path], key_path: Path) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Reads sheets that people filled in.

    A rater's name is the last part of the name of the sheet: sheet-anna.csv is anna's.

    Returns:
        The items of the key, a row each, with the mean of their ratings on each scale; and by rater the ratings from 1
        to 5, items of the sheet × scales. NaN where there is none.

    Raises:
        InputError: The key or a sheet cannot be read, or a sheet has a text twice, a text that is not in the key, an
            invalid rating, or no rating at all. The message names row and column, and what is allowed.
    """
    try:
        key = Key.model_validate_json(_text(key_path))
    except ValidationError as error:
        remedy = f"Give the file whose name ends in {_KEY_ENDING}, as `citerec rate sheet` wrote it."
        raise InputError(f"{key_path} is no key of sheets ({first_fault(error)})", remedy) from None
    stem = key_path.name.removesuffix(_KEY_ENDING)
    by_rater = {path.stem.removeprefix(f"{stem}-"): _ratings(path, key) for path in sheets}
    if len(by_rater) < len(sheets):
        raise InputError("two sheets are of one rater", "Give each rater's sheet once.")
    means = pd.concat(by_rater.values()).groupby(level=0).mean()
    return pd.DataFrame(map(dict, key.items.values()), list(key.items)).join(means), by_rater


def _text(path: Path) -> str:
    with read_failures(path):
        return path.read_text(encoding="utf-8-sig", errors="replace")


def _ratings(path: Path, key: Key) -> pd.DataFrame:
    """The ratings of one sheet, items × scales; NaN for empty cells."""
    text = _text(path)
    # Spreadsheets save with commas or, in some countries, semicolons or tabs.
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        table = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, index_col=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"cannot read {path}: {error}", "Correct the row, and save the sheet as CSV.") from error
    if lacking := [name for name in (_ITEM, *SCALES) if name not in table]:
        raise InputError(f"{path} has no column {lacking[0]}", "Save the sheet as CSV, with its first row as it was.")

    def refuse(wrong: "pd.Series[bool]", column: str, fault: str, remedy: str) -> None:
        if wrong.any():
            cell = table[column][wrong.idxmax()]
            raise InputError(f"{path}, row {wrong.idxmax() + 2}, column {column}: {cell!r:.60} {fault}", remedy)

    items = table[_ITEM]
    refuse(~items.isin(key.items), _ITEM, "is not in the key", "Give the sheet with its key.")
    refuse(items.duplicated(), _ITEM, "appears twice", "Remove one of the rows.")
    ratings = pd.DataFrame(index=table.index)
    for scale in SCALES:
        cells = table[scale].str.strip().str.replace(",", ".")  # some spreadsheets save whole numbers as "4,0"
        ratings[scale] = pd.to_numeric(cells, errors="coerce")
        wrong = ~ratings[scale].isin(range(1, 6)) & (cells != "")
        refuse(wrong, scale, "is no rating", "Write 1, 2, 3, 4 or 5, or leave the cell empty.")
    if ratings.isna().all(axis=None):
        raise InputError(f"{path} has no rating in it", f"Fill in the columns {' and '.join(SCALES)}.")
    return ratings.set_index(items)


def read_ratings(sheets: Sequence[Path], key_path: Path) -> dict[str, Any]:
    """Reads sheets that people filled in, and sums them up by system; errors as for `read_sheets`.

    A text that several people rated counts once, by the mean of its ratings.

    Returns:
        As JSON. `texts`: how many have a rating (`rated`), of how many (`of_key`). `raters`: the same by rater, of how
        many `texts` of the sheet. `systems`: by name whether it saw the targets (`upper_bound`), and its `means` by
        group, "overall" and each of several data sets, and scale: `n`, `value`, and the 95 % interval `ci`.
        `agreement`: as `agreement` gives it.
    """
    items, by_rater = read_sheets(sheets, key_path)
    systems, scales = {}, list(SCALES)
    for system, of_system in items.groupby("system", sort=False):
        grouping = grouping_of(list(of_system["dataset"]), list(of_system["dataset"] + "\t" + of_system["task_id"]))
        scores = group_scores(of_system[scales].to_numpy(), scales, grouping, 0)
        names = [OVERALL, *(name for _, name in grouping.groups)]
        means = {name: one.means for name, one in zip(names, scores, strict=True)}
        systems[system] = {"upper_bound": bool(of_system["upper_bound"].all()), "means": means}
    raters = {rater: {"rated": _rated(sheet), "texts": len(sheet)} for rater, sheet in by_rater.items()}
    texts = {"rated": _rated(items), "of_key": len(items)}
    facts = {"texts": texts, "raters": raters, "systems": systems, "agreement": list(agreement(by_rater))}
    return plain({"kind": "citerec-ratings", "version": 1, **facts})


def _rated(table: pd.DataFrame) -> int:
    """How many rows have a rating."""
    return len(table.dropna(how="all", subset=list(SCALES)))


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


def correlate(sheets: Sequence[Path], key_path: Path, results: Results) -> dict[str, Any]:
    """Correlates the metrics of results with ratings of the same texts.

    A text counts once, by the mean of its ratings. Upper bounds are left out. Intervals are percentiles of the
    bootstrap; citing papers are drawn, as for means (`citerec.evaluation.statistics`).

    Args:
        sheets: Sheets that people filled in.
        key_path: Their key.
        results: Results of `evaluate_texts` for the texts of the sheets; systems have the same names there.

    Returns:
        As JSON. `texts`: how many were both rated and measured (`measured`), of how many rated (`of_rated`). `systems`:
        their names. `correlations`: for each metric (its column) and scale two, of `level` "texts", whose points are
        the texts of all systems, and "systems", whose points are the means of systems over the rated texts; each with
        `n` points, `values` and `ci` as `bootstrapped` gives them.

    Raises:
        InputError: A sheet or the key cannot be read, or the results have none of the texts.
    """
    tasks = zip(results.classes.get(DATASET, ()), results.items["context"], strict=False)
    places = {task: place for place, task in enumerate(tasks)}
    items, _ = read_sheets(sheets, key_path)
    rated = items[~items["upper_bound"]].dropna(how="all", subset=list(SCALES))
    rated["place"] = [places.get(task) for task in zip(rated["dataset"], rated["task_id"], strict=True)]
    texts = rated[rated["system"].isin(results.scores.keys()) & rated["place"].notna()].astype({"place": int})
    if texts.empty:
        remedy = "Evaluate the files from which the sheets were made: citerec eval-text … --out FOLDER"
        raise InputError("the results have none of the texts that were rated", remedy)
    systems = texts["system"].unique().tolist()
    of_system = pd.get_dummies(texts["system"], dtype=float)[systems].to_numpy()
    scores = np.array([results.scores[name][at] for name, at in texts[["system", "place"]].itertuples(index=False)])
    times = times_of(results.items["citing"].to_numpy()[texts["place"]])
    correlations = []
    for (column, measured), scale in itertools.product(zip(results.columns, scores.T, strict=True), SCALES):
        has_both = ~np.isnan(measured) & texts[scale].notna().to_numpy()
        pair, samples = np.stack([measured, texts[scale]])[:, has_both], times[:, has_both]
        counts = samples @ of_system[has_both]  # a sample may have no text of a system
        sums = [(sample * pair) @ of_system[has_both] for sample in samples]
        of_systems = [one[:, n > 0] / n[n > 0] for one, n in zip(sums, counts, strict=True)]
        of_texts = [pair.repeat(sample, axis=1) for sample in samples]
        for level, points in (("texts", of_texts), ("systems", of_systems)):
            about = {"level": level, "metric": column.name, "scale": scale}
            correlations.append({**about, **bootstrapped(points)})
    number = {"measured": len(texts), "of_rated": len(rated)}
    facts = {"texts": number, "systems": systems, "correlations": correlations}
    return {"kind": "citerec-rating-correlations", "version": 1, **facts}


def _cell(value: float | None, ci: Sequence[float] | None = None) -> Cell:
    """A value with its interval; a dash for a value that is not defined."""
    shown, *bounds = ("–" if one is None else f"{round(one, 2) + 0.0:.2f}" for one in (value, *(ci or ())))
    return Cell(value, ((shown, ""), (f" [{' '.join(bounds)}]" * bool(bounds), "faint")))


def ratings_tables(rated: Mapping[str, Any]) -> list[Table]:
    """Means by system and data set, with a column for each scale; and how well raters agree, if texts have several."""
    texts = rated["texts"]
    footnotes = [
        "Means from 1 to 5; [low high]: 95 % of bootstrap samples over tasks. A text that several people rated counts "
        "once.",
        "† saw what the authors wrote: an upper bound, not a system.",
        f"{texts['rated']:,} of {texts['of_key']:,} texts of the key were rated",
        *(f"{rater} rated {n['rated']:,} of {n['texts']:,} texts" for rater, n in rated["raters"].items()),
    ]
    columns = itertools.chain.from_iterable((scale, "n") for scale in SCALES)
    means = Table([*left("data set", "system"), *right(*columns)], footnotes=footnotes)
    for name, system in rated["systems"].items():
        for group, of_scales in system["means"].items():
            cells = ((_cell(one["value"], one["ci"]), one["n"]) for one in of_scales.values())
            means.rows.append([group, f"{name} †" * system["upper_bound"] or name, *itertools.chain(*cells)])
    agreed = Table([*left("raters", "scale"), *right("texts", "kappa")], title="Agreement: quadratic-weighted kappa")
    for one in rated["agreement"]:
        agreed.rows.append([" and ".join(one["raters"]), one["scale"], one["n"], _cell(one["kappa"])])
    return [means, agreed] if agreed.rows else [means]


def correlation_table(correlated: Mapping[str, Any]) -> Table:
    """How metrics correlate with human ratings, over texts and over systems."""
    texts, systems = correlated["texts"], counted(len(correlated["systems"]), "system")
    footnotes = [
        f"{texts['measured']:,} of {texts['of_rated']:,} rated texts are in the results, by {systems}; upper bounds "
        "are left out. Over systems: their means over these texts.",
        "[low high]: 95 % of bootstrap samples over citing papers.",
    ]
    columns = [*left("over", "scale", "metric"), *right("n", format=","), *right(*map(str.title, COEFFICIENTS))]
    table = Table(columns, footnotes=footnotes)
    for one in sorted(correlated["correlations"], key=lambda one: (one["level"] != "texts", one["scale"])):
        cells = [_cell(one["values"][name], one["ci"][name]) for name in COEFFICIENTS]
        table.rows.append([one["level"], one["scale"], one["metric"], one["n"], *cells])
    return table


ALL_SETS, ALL_SYSTEMS = "all data sets", "all systems"


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
        if n := sum(mean["n"] for mean in means):
            value = sum(mean["value"] * mean["n"] for mean in means if mean["n"]) / n
            table.cells[row.title, "", measure.name] = Measured(value, n, means[0]["ci"] if len(means) == 1 else None)
    table.settings = {"scales": SCALES}
    people = counted(len(rated["raters"]), "person")
    table.measured_on[""] = f"{counted(rated['texts']['rated'], 'text')} that {people} rated"
