"""Diagnostic sets: directories `diagnostics/NAME/` with a manifest, contexts, qrels and a datasheet."""

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
from filelock import FileLock
from pydantic import ValidationError

from citerec.contexts.read import read_contexts, write_records
from citerec.corpus.reading import raw_lines
from citerec.diagnostics.families import FAMILIES, FEW, Bounds, FamilyOfSet, Frozen, Labelled, strata, tally, title_of
from citerec.errors import InputError, first_fault
from citerec.files import writing
from citerec.files.resume import file_digest, read_json
from citerec.files.writing import Kind
from citerec.index.manifest import Manifest as IndexManifest
from citerec.records import Context
from citerec.settings import DIAGNOSTICS, shipped
from citerec.version import __version__

KIND = "citerec-diagnostic-set"
VERSION = 1
"""Version of the format; it rises when older sets can no longer be read."""

MANIFEST, CONTEXTS, QRELS, DATASHEET = "manifest.json", "contexts.jsonl", "qrels.txt", "DATASHEET.md"
RESERVES, REJECTED = "reserves.jsonl", "rejected.jsonl"
CELLS, REJECTED_LINES = "cells.csv", "quarantine.jsonl"
"""The files that may be beside a datasheet."""

SET = Kind(
    "diagnostic set",
    KIND,
    MANIFEST,
    frozenset({MANIFEST, CONTEXTS, QRELS, DATASHEET, CELLS, RESERVES, REJECTED_LINES, REJECTED}),
)
DEFAULT_SET = "demo"
_USUAL_CHARACTERS = 120


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
    outcomes: dict[str, int]
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
        writing.recover(path)
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

    def __getitem__(self, place: int) -> Context:
        return self.contexts[place]


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
        again = f"Fetch the set again, or label it: citerec diagnostics label {path / CONTEXTS} --index … --out NAME"
        raise InputError(f"the contexts or qrels of {path} are not those of its manifest", again)
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
        "families": labelled.families,
    }
    pairs = zip(raw_lines(source), labelled.contexts, strict=True)
    records = (
        {**orjson.loads(raw), "context_id": context.context_id, "labels": dict(context.labels)}
        for (_, raw, _), context in pairs
    )
    return write_set(out, records, facts)


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
        facts: The fields of the manifest that the contexts do not tell; its families are counted anew.
        beside: Writes the other files of the directory.

    Raises:
        InputError: Something else is there.
        BuildError: The disk is full, or may not be written to.
    """
    with SET.writing(out) as partial:
        write_records(partial / CONTEXTS, records)
        contexts = list(read_contexts(partial / CONTEXTS))
        write_qrels(partial / QRELS, ((context.context_id, context.cited_ids) for context in contexts))
        families = tally(contexts, facts["families"])
        data = {"name": out.name, "contexts": len(contexts), "families": families, "fingerprint": fingerprint(partial)}
        manifest = SetManifest(**{**facts, **data, "strata": strata()["version"], "citerec": __version__})
        beside(partial)
        write_datasheet(partial / DATASHEET, manifest.model_dump())
        (partial / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def reviews_of(path: Path) -> Path:
    """The folder of the reviews of a set: `NAME.reviews` beside it, because the set's own directory is replaced."""
    place = path.resolve()
    return place.with_name(f"{place.name}.reviews")


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
            digest.update(bytes.fromhex(file_digest(path / name, "blake2b")))
        except OSError as error:
            raise InputError(f"the set {path} has no {name}", "Fetch it again, or label its contexts again.") from error
    return digest.hexdigest()


def find_set(name: str) -> Path:
    """The directory of a set: a path, or the name of one below `diagnostics/` or of a shipped one.

    Raises:
        InputError: There is none.
    """
    if SET.is_at(Path(name)):
        return Path(name)
    if name in (sets := list_sets()):
        return sets[name]
    remedy = f"Sets are: {', '.join(sorted(sets)) or 'none'}. Families are: {', '.join(FAMILIES)}."
    raise InputError(f"there is no diagnostic set {name!r}", remedy)


def list_sets() -> dict[str, Path]:
    """Sets by name: those below `diagnostics/`, and those that are shipped."""
    folders: dict[str, Path] = {}
    for folder in (DIAGNOSTICS, shipped("diagnostics")):
        for manifest in sorted(folder.glob(f"[!.]*/{MANIFEST}")):
            if SET.is_at(manifest.parent):
                folders.setdefault(manifest.parent.name, manifest.parent)
    return folders


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
        InputError: A family has such a name.
    """
    if name in FAMILIES:
        raise InputError(f"{name} is a family of strata", f"Give the set another name: --out my-{name}")
    return DIAGNOSTICS / name if Path(name).name == name else Path(name)


def examples(contexts: Iterable[Context], family: str) -> Mapping[str, Context]:
    """A context of each class of a family: the one whose text is nearest to a usual length."""
    by_label: dict[str, Context] = {}
    for context in sorted(contexts, key=lambda context: abs(len(context.text) - _USUAL_CHARACTERS)):
        if label := context.labels.get(family):
            by_label.setdefault(label, context)
    return by_label


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


def write_datasheet(path: Path, manifest: Mapping[str, Any]) -> None:
    """Writes the datasheet from a set's manifest."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader, strict = PackageLoader("citerec.diagnostics"), StrictUndefined
    templates = Environment(loader=loader, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    facts = {"set": manifest, "title_of": title_of, "funnel": FUNNEL, "few": FEW, "rules": strata()}
    path.write_text(templates.get_template("datasheet.md.j2").render(facts), encoding="utf-8")


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of cells.csv; none if a set has no cells."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").split("\n"))) if path.exists() else []


def write_cells(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes cells.csv, of which there is at least one row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def states_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many classes of cells are wanted, and how many of them are full, partly full and empty."""
    full = sum(int(row["chosen"]) >= int(row["wanted"]) for row in rows)
    empty = sum(not int(row["chosen"]) for row in rows if int(row["wanted"]))
    return {"wanted": len(rows), "full": full, "partly": len(rows) - full - empty, "empty": empty}
