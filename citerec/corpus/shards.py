"""The shards below a path given by the user, and the format of each."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from citerec.corpus.base import DATASETS, FORMATS
from citerec.corpus.csl import is_csl
from citerec.corpus.json_lines import parsed, raw_lines
from citerec.errors import SourceError
from citerec.files.addresses import client_failures, expanded
from citerec.records import Paper

CORPUS = "corpus.json"
"""The manifest of a fetched corpus: it lists the files, in the order in which they are to be read."""

UPDATES = "updates"
"""Folder of a corpus with a folder for each update, which has `upserts-…` and `deletes-…` of each dataset."""

_ENDINGS = (".jsonl", ".json", ".gz")  # besides those of formats
_SNIFFED_LINES = 1000


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of one format."""

    path: Path
    format: str


@client_failures()
def find_shards(sources: Sequence[Path], format_name: str | None = None, citances: Sequence[Path] = ()) -> list[Shard]:
    """The shards of some sources, in the order given, each folder's sorted by name.

    Args:
        sources: Files, folders of files, or folders of S2AG datasets (`papers/`, `abstracts/`, …).
        format_name: One of FORMATS; recognised by default.
        citances: Files of contexts whose sentences become citances. They are read only if they are named here:
            contexts beside papers may be those with which a recommender is tested.

    Raises:
        SourceError: A path is missing, or has nothing that citerec reads.
        InputError: There is no format of this name.
    """
    if format_name:
        FORMATS[format_name]
    shards = [shard for source in expanded(sources) for shard in _shards_of(source, format_name)]
    for path in expanded(citances):
        _check(path, path.is_file(), "Give a file of contexts, one per line: docs/formats.md.")
        shards.append(Shard(path, "contexts"))
    seen: set[Path] = set()
    for shard in shards:
        if (resolved := shard.path.resolve()) in seen:
            raise SourceError(f"{shard.path} is given twice", "Name each file once.")
        seen.add(resolved)
    return shards


def _check(path: Path, is_usable: bool, remedy: str) -> None:
    if not is_usable:
        raise SourceError(f"{path} {'is no file' if path.exists() else 'does not exist'}", remedy)


def _shards_of(source: Path, format_name: str | None) -> list[Shard]:
    remedy = "Give a file or a folder to read papers from; save what comes from a pipe to a file first."
    _check(source, source.is_file() or source.is_dir(), remedy)
    if source.is_file():
        return [Shard(source, format_name or recognise(source))]
    if (manifest := source / CORPUS).is_file():
        return _of_corpus(source, manifest)
    if shards := _datasets_of(source):
        return shards
    endings = tuple(dict.fromkeys([*_ENDINGS, *(ending for _, form in FORMATS.items() for ending in form.endings)]))
    files = [path for path in _files(source) if path.name.lower().endswith(endings)]
    if source.name in DATASETS:
        format_name = format_name or f"s2ag-{source.name}"
        files = files or _files(source)
    unknown = SourceError(
        f"{source} holds nothing that citerec reads",
        f"It reads folders named {', '.join(DATASETS)}, and files ending in {', '.join(endings)}.",
    )
    for path in files:  # other files may be beside those that hold papers
        try:
            shards.append(Shard(path, format_name or recognise(path)))
        except SourceError as error:
            unknown = error
    if not shards:
        raise unknown
    return shards


def _datasets_of(source: Path) -> list[Shard]:
    """The shards of S2AG's datasets in a folder, then those of its updates, in order of name (docs/formats.md)."""
    shards = [Shard(path, f"s2ag-{name}") for name in DATASETS for path in _files(source / name)]
    for update in sorted(folder for folder in (source / UPDATES).glob("[!.]*") if folder.is_dir()):
        for kind, name in itertools.product(("upserts", "deletes"), DATASETS):
            files = [path for path in _files(update / name) if path.name.startswith(f"{kind}-")]
            changes = f"s2ag-{name}-{kind}"
            shards += [Shard(path, changes if changes in FORMATS else f"s2ag-{name}") for path in files]
    return shards


def corpus_of(shard: Path) -> Path | None:
    """The fetched corpus, or the folder of datasets, to which a shard belongs by its path; None for others."""
    if fetched := next((folder for folder in shard.parents if (folder / CORPUS).is_file()), None):
        return fetched
    if shard.parent.name not in DATASETS:
        return None
    folder = shard.parent.parent
    return folder.parent.parent if folder.parent.name == UPDATES else folder


def _of_corpus(folder: Path, manifest: Path) -> list[Shard]:
    """The shards of a fetched corpus, in the order that its manifest gives, without files that no reader reads."""
    try:
        listed = [(folder / entry["path"], entry["format"]) for entry in orjson.loads(manifest.read_bytes())["shards"]]
    except (KeyError, TypeError, ValueError):
        raise SourceError(f"{manifest} is damaged", "Fetch the corpus again: citerec corpus get") from None
    return [Shard(path, form) for path, form in listed if form in FORMATS]


def _files(folder: Path) -> list[Path]:
    """The files of a folder by name; none if there is no such folder."""
    return sorted(path for path in folder.glob("[!.]*") if path.is_file())


def recognise(path: Path) -> str:
    """The format of a file, by its ending or by its first records; SourceError if there is none."""
    formats, endings = dict(FORMATS.items()), {suffix.lower() for suffix in path.suffixes[-2:]}
    for name, form in formats.items():
        first_lines = (raw for _, raw, _ in raw_lines(path))
        if not endings.isdisjoint(form.endings) and (not form.header or form.header.match(next(first_lines, b""))):
            return name
    if is_csl(path):
        return "csl"
    for _, raw, _ in itertools.islice(raw_lines(path), _SNIFFED_LINES):
        record = parsed(raw, dict)
        for name, form in formats.items():
            if form.holds and isinstance(record, dict) and form.holds(record):
                return name
    raise SourceError(
        f"{path} is of no format that citerec recognises",
        f"Formats are: {', '.join(FORMATS)}. Name one with --format, where the command has it.",
    )


def papers_in(path: Path) -> list[Paper]:
    """The papers of a file of a format that is recognised, without those that cannot be read; as for `recognise`."""
    return [line.record for line in FORMATS[recognise(path)].read(path) if isinstance(line.record, Paper)]
