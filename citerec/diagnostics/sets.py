"""Diagnostic sets: directories `diagnostics/NAME/` with a manifest, contexts, qrels and a datasheet."""

import contextlib
import csv
import difflib
import functools
import hashlib
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import orjson
from filelock import FileLock
from pydantic import Field, ValidationError

from citerec.contexts.read import read_contexts
from citerec.corpus.json_lines import raw_lines
from citerec.diagnostics.bounds import Bounds, Census, Frozen, strata
from citerec.diagnostics.families import FAMILIES, Family, part_of_speech, parts_of_speech, sampled_families, title_of
from citerec.diagnostics.label import FEW, Labelled
from citerec.errors import InputError, first_fault
from citerec.files import writing
from citerec.files.resume import read_json
from citerec.files.writing import Kind
from citerec.index.manifest import Manifest as IndexManifest
from citerec.records import Context
from citerec.settings import DIAGNOSTICS, shipped
from citerec.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

KIND = "citerec-diagnostic-set"
VERSION = 1
"""Version of the format; it rises when older sets can no longer be read."""

MANIFEST, CONTEXTS, QRELS, DATASHEET = "manifest.json", "contexts.jsonl", "qrels.txt", "DATASHEET.md"
RESERVES, REJECTED = "reserves.jsonl", "rejected.jsonl"
CELLS, REJECTED_LINES, FIGURES = "cells.csv", "quarantine.jsonl", "figures"
"""The files that may be beside a datasheet."""

SET = Kind(
    "diagnostic set",
    KIND,
    MANIFEST,
    frozenset({MANIFEST, CONTEXTS, QRELS, DATASHEET, CELLS, RESERVES, REJECTED_LINES, FIGURES, REJECTED}),
)
DEFAULT_SET = "demo"
_USUAL_CHARACTERS = 120
_REVIEWS_ENDING = ".reviews"


class FamilyOfSet(Frozen):
    """A family within a set: what it holds constant, and how many contexts each class has, in order."""

    conditions: tuple[str, ...]
    classes: dict[str, int]


class Sampling(Frozen):
    """How a set was sampled: the options of a build (`BuildOptions`), and its counts.

    Attributes:
        funnel: How many were left after each step, from the papers of the corpus to the contexts chosen.
        outcomes: Outcomes of the citing sentences in paragraphs that cite a drawn paper, counted once per round.
        cells: Numbers of classes of cells: wanted, full, partly full, and empty.
    """

    seed: int
    quota: dict[str, int]
    oversample: float
    rounds: int
    single: bool
    split: str
    funnel: dict[str, int]
    outcomes: dict[str, int] = Field(validation_alias="fates", serialization_alias="fates")
    cells: dict[str, int]


class SetManifest(Frozen):
    """`manifest.json` of a diagnostic set (docs/diagnostics.md).

    Attributes:
        strata: Version of diagnostics/strata.toml.
        citerec: The version that wrote it.
        source: The files that the contexts come from.
        corpus_fingerprint: Fingerprint of the index of the corpus; None if the set was built from shards.
        spacy_model: The model that tagged parts of speech, if any.
        sampling: How it was sampled; None if all contexts were taken.
        fingerprint: Digest of contexts and qrels.
    """

    kind: str = KIND
    version: int = VERSION
    strata: int
    citerec: str
    name: str
    source: str
    contexts: int
    corpus_papers: int
    corpus_fingerprint: str | None
    spacy_model: str | None
    bounds: Bounds
    families: dict[str, FamilyOfSet]
    sampling: Sampling | None = None
    fingerprint: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """The manifest of a set's directory.

        Raises:
            InputError: There is none, or it is broken, or of another version.
        """
        file, value = path / MANIFEST, read_json(path / MANIFEST)
        again = f"Label the contexts again: citerec diagnostics label {path / CONTEXTS} --index … --out NAME"
        if value is None:
            raise InputError(f"{path} is no diagnostic set: its {MANIFEST} is missing or broken", again)
        for key, readable in (("kind", KIND), ("version", VERSION), ("strata", strata()["version"])):
            if value.get(key) != readable:
                raise InputError(f"{file} says {key} {value.get(key)}; this citerec reads {readable}", again)
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise InputError(f"{file} is broken ({first_fault(error)})", again) from None


@dataclass(frozen=True, slots=True)
class DiagnosticSet:
    """A set that was read: its directory, its manifest, and its contexts with their labels."""

    path: Path
    manifest: SetManifest
    contexts: tuple[Context, ...]

    def __iter__(self) -> Iterator[Context]:
        return iter(self.contexts)

    def __len__(self) -> int:
        return len(self.contexts)


def load_set(name: str) -> DiagnosticSet:
    """A diagnostic set by name or folder: an iterable of contexts with their classes.

    Raises:
        InputError: There is none, or it is broken.
    """
    return read_set(find_set(name))


def read_set(path: Path) -> DiagnosticSet:
    """Reads a set and checks that it is whole.

    Raises:
        InputError: It is no set, of another version, or its contexts are not those of its manifest.
    """
    manifest = SetManifest.read(path)
    if fingerprint(path) != manifest.fingerprint:
        raise InputError(
            f"the contexts or qrels of {path} are not those of its manifest",
            f"Fetch the set again, or label it: citerec diagnostics label {path / CONTEXTS} --index … --out NAME",
        )
    return DiagnosticSet(path, manifest, tuple(read_contexts(path / CONTEXTS)))


def write_labelled(out: Path, source: Path, labelled: Labelled, index: IndexManifest) -> SetManifest:
    """Writes the set of all contexts of a file.

    Args:
        out: Its directory; if there is one, it must be a set.
        source: The file that the contexts came from; all fields of its records are kept.
        labelled: The contexts, with their labels.
        index: Manifest of the index of the papers that they cite.

    Raises:
        InputError: Something else is there.
        BuildError: The disk is full, or may not be written to.
    """
    facts = {
        "source": source.name,
        "corpus_papers": index.counts.papers,
        "corpus_fingerprint": index.fingerprint,
        "spacy_model": Path(labelled.model).name if labelled.model else None,
        "bounds": labelled.bounds,
        "families": {
            name: FamilyOfSet(conditions=labelled.conditions[name], classes=classes)
            for name, classes in labelled.counts().items()
        },
    }
    pairs = zip(raw_lines(source), labelled.contexts, strict=True)
    records = (
        {**orjson.loads(raw), "context_id": context.context_id, "labels": dict(context.labels)}
        for (_, raw, _), context in pairs
    )
    return write_set(out, records, facts)


def families_of_set(families: Iterable[Family], bounds: Bounds, *, conditions: bool) -> dict[str, FamilyOfSet]:
    """The families of a set that is to be written, with their classes; `write_set` counts these."""
    return {
        family.name: FamilyOfSet(
            conditions=family.condition_names if conditions else (), classes=dict.fromkeys(family.classes(bounds), 0)
        )
        for family in families
    }


def write_set(
    out: Path,
    records: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any],
    beside: Callable[[Path], None] = lambda _: None,
) -> SetManifest:
    """Writes a set to a temporary folder and moves it into place at the end.

    Args:
        out: Its directory; if there is one, it must be a set.
        records: The contexts in order, as JSON objects with ids and labels.
        facts: The fields of the manifest that the contexts do not tell; the counts of the classes are set here.
        beside: Writes the other files of the directory.

    Raises:
        InputError: Something else is there.
        BuildError: The disk is full, or may not be written to.
    """
    with SET.writing(out) as partial:
        write_records(partial / CONTEXTS, records)
        contexts = list(read_contexts(partial / CONTEXTS))
        counts = Counter(label for context in contexts for label in context.labels.items())
        write_qrels(partial / QRELS, ((context.context_id, context.cited_ids) for context in contexts))
        families = {
            name: FamilyOfSet(conditions=one.conditions, classes={label: counts[name, label] for label in one.classes})
            for name, one in facts["families"].items()
        }
        found = {"name": out.name, "contexts": len(contexts), "families": families, "fingerprint": fingerprint(partial)}
        manifest = SetManifest(**{**facts, **found, "strata": strata()["version"], "citerec": __version__})
        beside(partial)
        write_datasheet(partial / DATASHEET, manifest.model_dump(), has_reviews=reviews_of(out).is_dir())
        (partial / MANIFEST).write_text(manifest.model_dump_json(indent=2, by_alias=True) + "\n", encoding="utf-8")
    return manifest


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSON Lines after those that the file has."""
    with path.open("ab") as file:
        file.writelines(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)


def reviews_of(path: Path) -> Path:
    """The folder of the reviews of a set: `NAME.reviews` beside it, because the set's own directory is replaced."""
    place = path.resolve()
    return place.with_name(f"{place.name}{_REVIEWS_ENDING}")


def reviews_locked(path: Path) -> FileLock:
    """A lock for writing the reviews of a set; the same thread may take it several times."""
    return FileLock(writing.beside(path.resolve(), "lock"), is_singleton=True)


def write_qrels(path: Path, cited: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Writes TREC qrels, `context 0 paper 1`, from context ids and the ids of the papers cited there."""
    with path.open("w", encoding="utf-8") as file:
        for context_id, paper_ids in cited:
            file.writelines(f"{context_id} 0 {paper_id} 1\n" for paper_id in paper_ids)


def fingerprint(path: Path) -> str:
    """The digest of a set's contexts and qrels."""
    digest = hashlib.blake2b(digest_size=16)
    for name in (CONTEXTS, QRELS):
        try:
            with (path / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as error:
            raise InputError(f"the set {path} has no {name}", "Fetch it again, or label its contexts again.") from error
    return digest.hexdigest()


def find_set(name: str) -> Path:
    """The directory of a set: a path, or the name of one below `diagnostics/` or of a shipped one.

    Raises:
        InputError: There is none.
    """
    sets = list_sets()
    if SET.is_at(Path(name)) or name in sets:
        return Path(name) if SET.is_at(Path(name)) else sets[name]
    near = difflib.get_close_matches(name, [*sets, *FAMILIES], n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Sets are: {', '.join(sorted(sets)) or 'none'}."
    raise InputError(f"there is no diagnostic set {name!r}", hint)


def list_sets() -> dict[str, Path]:
    """Sets by name: those below `diagnostics/`, and those that are shipped."""
    found: dict[str, Path] = {}
    for folder in (DIAGNOSTICS, shipped("diagnostics")):
        for manifest in sorted(folder.glob(f"[!.]*/{MANIFEST}")):
            if SET.is_at(manifest.parent):
                found.setdefault(manifest.parent.name, manifest.parent)
    return found


def parse_id(identifier: str) -> tuple[str | None, str | None]:
    """Set and family of an id: `demo/location` has both, `location` the family only, `demo` the set only."""
    if identifier in FAMILIES:
        return None, identifier
    name, separator, family = identifier.rpartition("/")
    if separator and not SET.is_at(Path(identifier)) and (family in FAMILIES or name in list_sets()):
        return name, family
    return identifier, None


def place_for(name: str) -> Path:
    """Where a new set of this name goes: a path as it is, a bare name below `diagnostics/`.

    Raises:
        InputError: A family, or a folder of reviews, has such a name.
    """
    if name in FAMILIES:
        raise InputError(f"{name} is a family of strata", f"Give the set another name: --out my-{name}")
    if name.endswith(_REVIEWS_ENDING):
        raise InputError(f"{name} is where reviews of another set would be kept", "Give the set another name.")
    return DIAGNOSTICS / name if Path(name).name == name else Path(name)


def examples(contexts: Iterable[Context], family: str) -> Mapping[str, Context]:
    """A context of each class of a family: the one whose text is nearest to a usual length."""
    found: dict[str, Context] = {}
    for context in sorted(contexts, key=lambda context: abs(len(context.text) - _USUAL_CHARACTERS)):
        if label := context.labels.get(family):
            found.setdefault(label, context)
    return found


CELL = ("field", "years", "citation_count", "family", "class")
"""The columns of cells.csv that tell one class of a cell from another."""

COLUMNS = (*CELL, "wanted", "chosen", "fitting_papers", "drawn_papers", "papers", "why")
"""All of its columns."""

FUNNEL = {
    "papers": "papers of the corpus",
    "in_strata": "with a field, a year and a citation count of the strata",
    "texts": "full texts at hand",
    "cited": "papers that these texts cite",
    "eligible": "of them in the corpus and the strata, with title, authors and venue",
    "drawn": "papers drawn",
    "citing": "citing papers found",
    "citing_texts": "texts of them found",
    "sentences": "sentences that cite, in their paragraphs",
    "usable": "usable sentences that cite a drawn paper",
    "chosen": "contexts chosen",
}
"""The steps of a build, in order, in words."""


def write_datasheet(path: Path, manifest: Mapping[str, Any], *, has_reviews: bool = False) -> None:
    """Writes the datasheet from a set's manifest; the other files must be there."""
    folder = path.parent
    families, reasons = _summary(read_cells(folder / CELLS))
    text = _template().render(
        set=manifest,
        cells=families,
        reasons=reasons,
        figures=sorted(figure.relative_to(folder).as_posix() for figure in folder.glob(f"{FIGURES}/*.svg")),
        has_reviews=has_reviews,
        has_rejected=(folder / REJECTED_LINES).is_file(),
    )
    path.write_text(text, encoding="utf-8")


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of cells.csv; none if a set has no cells.

    Raises:
        InputError: The file is broken.
    """
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").split("\n"))) if path.exists() else []
        _ = [({name: row[name] for name in CELL}, row["why"].split("; "), state_of(row)) for row in rows]
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error) as error:
        raise InputError(f"{path} is broken ({error})", "Fetch it again, or remove it from the set.") from error
    return rows


def write_cells(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes cells.csv, of which there is at least one row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def state_of(row: Mapping[str, Any]) -> str:
    """How full a class of a cell is."""
    wanted, chosen = int(row["wanted"]), int(row["chosen"])
    return "full" if chosen >= wanted else "partly" if chosen else "empty"


def states_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many classes of cells are wanted, and how many of them are full, partly full and empty."""
    states = Counter(map(state_of, rows))
    return {"wanted": len(rows), **{state: states[state] for state in ("full", "partly", "empty")}}


def _summary(rows: Iterable[Mapping[str, str]]) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """For each family how many classes of cells there are and how full they are; and why some are not full."""
    families, reasons = defaultdict[str, Counter[str]](Counter), Counter[str]()
    for row in rows:
        numbers = {name: int(row[name]) for name in ("wanted", "chosen")}
        families[row["family"]].update({"all": 1, state_of(row): 1, **numbers})
        reasons.update(filter(None, row["why"].split("; ")))
    return families, reasons


@functools.cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("citerec.diagnostics")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update(title_of=title_of, funnel=FUNNEL, few=FEW, rules=strata())
    return environment.get_template("datasheet.md.j2")


if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.container import BarContainer

# Colours of Okabe and Ito, which colour-blind readers can tell apart; the third is for what is empty.
_COLOURS = ["#0072B2", "#E69F00", "#cccccc"]
_MOST_FIELDS = 8  # lines that can still be told apart
_STYLE: Any = {
    "text.parse_math": False,
    "svg.hashsalt": "citerec",
    "svg.fonttype": "none",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_POSITIONS = "SELECT ((20 * position + length - 1) / length - 0.5) / 20 AS x, COUNT(*) FROM sentences GROUP BY 1"
_LENGTHS = "SELECT length AS x, COUNT(*) FROM sentences GROUP BY 1"
_TAGS = """
SELECT part_of_speech(tag_before) AS tag, COUNT(*) AS before, 0 AS after FROM sentences GROUP BY 1
UNION ALL SELECT part_of_speech(tag_after), 0, COUNT(*) FROM sentences GROUP BY 1
"""


def write_figures(
    folder: Path,
    tables: sqlite3.Connection,
    funnel: Mapping[str, int],
    cells: Sequence[Mapping[str, Any]],
    census: Census,
    bounds: Bounds,
) -> None:
    """Writes the figures as SVG, the same bytes for the same tables.

    Args:
        folder: Where to write them.
        tables: The tables of a build: its `sentences`.
        funnel: How many were left after each step.
        cells: The rows of cells.csv.
        census: How many papers there are of each field, year and citation count.
        bounds: The bounds of the classes.
    """
    import pandas as pd

    tables.create_function("part_of_speech", 1, part_of_speech)
    papers = pd.DataFrame([(*key, number) for key, number in census.items()], columns=["field", "year", "count", "n"])
    by_field = papers.groupby("field").n.sum().sort_values(ascending=False)
    shares = 100 * by_field / by_field.sum()
    # Citations of all papers of a field ÷ papers of it whose count is known: equation 1 of the benchmark.
    known = papers.dropna(subset=["field", "count"])
    means = (known["count"] * known.n).groupby(known.field).sum() / known.groupby("field").n.sum()
    first, last = strata()["year"]["groups"][0][0], strata()["year"]["groups"][-1][1]
    recent = papers[papers.field.isin(by_field.index[:_MOST_FIELDS]) & papers.year.between(first, last + 5)]
    by_year = recent.pivot_table("n", "year", "field", "sum", fill_value=0)
    tags = pd.read_sql(_TAGS, tables).groupby("tag").sum().reindex(parts_of_speech(), fill_value=0)
    steps = pd.Series({FUNNEL[step]: count for step, count in funnel.items()})
    length, middle = bounds.length, strata()["location"].values()
    positions, lengths = (pd.read_sql(query, tables, "x") for query in (_POSITIONS, _LENGTHS))
    places = {name: place for place, name in enumerate(sampled_families())}
    ordered = sorted(cells, key=lambda row: places[row["family"]])
    names = pd.Series([f"{row['family']}: {row['class']}" for row in ordered], dtype=object)
    states = pd.crosstab(names, pd.Series([state_of(row) for row in ordered], dtype=object))
    states = states.reindex(names.unique()).reindex(columns=["full", "partly", "empty"], fill_value=0)
    with drawing_style(_STYLE):
        _draw(folder / "funnel.svg", steps, "barh", "From papers to contexts", form="{:,.0f}", logx=True)
        _draw(folder / "cells.svg", states, "barh", "How full the cells of each class are", stacked=True)
        _draw(folder / "positions.svg", positions, "area", "Place of the marker ÷ words of the sentence", middle)
        if tags.to_numpy().any():
            _draw(folder / "parts-of-speech.svg", tags, "bar", "Parts of speech around the citation")
        medium = (length.low, length.high) if length else ()
        _draw(folder / "lengths.svg", lengths, "area", "Words of the sentence", medium)
        least = 100 * strata()["field"]["least_share"]
        _draw(folder / "fields.svg", shares, "barh", "Papers by field, %", [least], form="{:.2f}")
        _draw(folder / "years.svg", by_year, "line", "Papers by year, the largest fields")
        means = means.sort_values(ascending=False)
        _draw(folder / "citation-counts.svg", means, "barh", "Citations a paper, by field", form="{:,.1f}")


def _draw(
    path: Path,
    data: "pd.DataFrame | pd.Series[float]",
    kind: str,
    title: str,
    marks: Iterable[float] = (),
    *,
    form: str = "",
    **options: Any,
) -> None:
    """Draws a figure of a kind that pandas knows, with dashed lines at the bounds of classes, or values at the bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1 + 0.27 * len(data) if kind == "barh" else 3.2))
    axes = figure.subplots()
    columns = 1 if data.ndim == 1 else data.shape[1]
    colours = _COLOURS[:columns] if columns <= len(_COLOURS) else None
    data.rename_axis(None).plot(kind=kind, ax=axes, title=title, color=colours, legend=False, **options)
    for mark in marks:
        axes.axvline(mark, color="black", linestyle="--", linewidth=1)
    if columns > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    if form:
        axes.bar_label(cast("BarContainer", axes.containers[0]), fmt=form, padding=3)
        axes.xaxis.set_visible(False)
    if kind == "barh":
        axes.invert_yaxis()
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})


_DRAWING = threading.RLock()


@contextlib.contextmanager
def drawing_style(style: Any) -> Iterator[None]:
    """Draws with some settings of matplotlib, by their names."""
    import matplotlib as mpl

    with _DRAWING, mpl.rc_context(style):
        yield
