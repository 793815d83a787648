"""The shards below a path given by the user, and the format of each."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from citerec.corpus import s2ag, tabular
from citerec.corpus.bibtex import read_bibtex
from citerec.corpus.contexts_file import read_citances
from citerec.corpus.json_lines import Line, parsed, raw_lines, read_json_lines
from citerec.errors import SourceError

READERS: Mapping[str, Callable[[Path], Iterator[Line]]] = {
    **{f"s2ag-{name}": partial(read_json_lines, parse=parse) for name, parse in s2ag.PARSERS.items()},
    "bibtex": read_bibtex,
    "jsonl": partial(read_json_lines, parse=tabular.parse_paper),
    "csv": tabular.read_csv,
    "contexts": read_citances,
}
"""Reader of each format, by name. A new format is one file and one line here."""

_BY_SUFFIX = {".bib": "bibtex", ".bibtex": "bibtex", ".csv": "csv"}
_SUFFIXES = (".jsonl", ".json", ".gz", *_BY_SUFFIX)
_SNIFFED_LINES = 1000


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of one format."""

    path: Path
    format: str


def find_shards(sources: Sequence[Path], format_name: str | None = None, citances: Sequence[Path] = ()) -> list[Shard]:
    """The shards of some sources, in the order given, each folder's sorted by name.

    Args:
        sources: Files, folders of files, or folders of S2AG datasets (`papers/`, `abstracts/`, …).
        format_name: One of READERS; recognised by default.
        citances: Files of contexts whose sentences become citances. They are read only if they are named here:
            contexts beside papers may be those with which a recommender is tested.

    Raises:
        SourceError: A path is missing, or has nothing that citerec reads.
    """
    shards = [shard for source in sources for shard in _shards_of(source, format_name)]
    shards += [Shard(_contexts_file(path), "contexts") for path in citances]
    seen: set[Path] = set()
    for shard in shards:
        if (resolved := shard.path.resolve()) in seen:
            raise SourceError(f"{shard.path} is given twice", "Name each file once.")
        seen.add(resolved)
    return shards


def _contexts_file(path: Path) -> Path:
    if not path.is_file():
        what = "is no file" if path.exists() else "does not exist"
        raise SourceError(f"{path} {what}", "Give a file of contexts, one per line: docs/formats.md.")
    return path


def _shards_of(source: Path, format_name: str | None) -> list[Shard]:
    if not source.exists():
        raise SourceError(f"{source} does not exist", "Give a file or a folder to read papers from.")
    if not source.is_file() and not source.is_dir():
        raise SourceError(f"{source} is neither a file nor a folder", "Save what comes from a pipe to a file first.")
    if source.is_file():
        return [Shard(source, format_name or recognise(source))]
    datasets = [name for name in s2ag.PARSERS if (source / name).is_dir()]
    if datasets:
        return [Shard(path, f"s2ag-{name}") for name in datasets for path in _files(source / name)]
    files = [path for path in _files(source) if path.name.lower().endswith(_SUFFIXES)]
    if not files and (unnamed := _files(source)) and source.name in s2ag.PARSERS:
        files = unnamed
    if not files:
        raise SourceError(
            f"{source} holds nothing that citerec reads",
            f"It reads folders named {', '.join(s2ag.PARSERS)}, and files ending in {', '.join(_SUFFIXES)}.",
        )
    known = f"s2ag-{source.name}" if source.name in s2ag.PARSERS else None
    if shared := format_name or known:
        return [Shard(path, shared) for path in files]
    shards, unknown = [], None
    for path in files:  # other files may be beside those that hold papers
        try:
            shards.append(Shard(path, recognise(path)))
        except SourceError as error:
            unknown = error
    if unknown and not shards:
        raise unknown
    return shards


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def recognise(path: Path) -> str:
    """The format of a file, by its ending or by the keys of its first records; SourceError if there is none."""
    for suffix in path.suffixes[-2:]:
        if suffix.lower() in _BY_SUFFIX:
            return _BY_SUFFIX[suffix.lower()]
    for _, raw, _ in itertools.islice(raw_lines(path), _SNIFFED_LINES):
        record = parsed(raw, dict)
        if isinstance(record, dict):
            if dataset := s2ag.dataset_of(record):
                return f"s2ag-{dataset}"
            if "paper_id" in record:
                return "jsonl"
    raise SourceError(
        f"{path} is of no format that citerec recognises", f"Name its format with --format: {', '.join(READERS)}."
    )
