"""Formats of files that hold records: how they are read and written, one file of this folder each; shards of them."""

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.corpus.citation_keys import DEFAULT_PATTERN, citation_keys, own_key
from citerec.corpus.reading import Line, RecordError, json_object, parsed, raw_lines, read_id, tried
from citerec.errors import SettingsError, SourceError
from citerec.files.addresses import client_failures, expanded
from citerec.files.registry import Registry
from citerec.records import Deletion, Paper

REMOVED = "removed"
"""The format of files of ids whose papers are removed."""

DOCUMENTS, QUERIES = "corpus.jsonl", "queries.jsonl"
"""The files of a folder of BEIR (Thakur et al., NeurIPS 2021); relevant papers are in `qrels/*.tsv`."""

DATASETS = ("papers", "abstracts", "tldrs", "citations")
"""The datasets of S2AG that citerec reads, by their names in a release."""


Holds = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    Attributes:
        name: Its name.
        read: Yields the lines of a file, each with its record, several, or what is wrong with it. Raises a SourceError
            if the file cannot be read.
        endings: How the names of such files end, in lower case: ".bib". They may be compressed: ".bib.gz".
        header: Matches the first line of such files, if not all files with these endings are of this format.
        holds: Whether an object of JSON Lines is of this format, by its keys.
        is_of: Whether a file is of this format, which shows neither in its ending nor in a line.
        entry: Makes the entry of a paper under a citation key, a text or a JSON object, if citerec writes this format.
        renamed: Makes the same format with other names of columns, by attribute of a paper; None without columns.
    """

    name: str
    read: Callable[[Path], Iterator[Line]]
    endings: tuple[str, ...] = ()
    header: "re.Pattern[bytes] | None" = None
    holds: Holds | None = None
    is_of: Callable[[Path], bool] | None = None
    entry: Callable[[str, Paper], Any] | None = None
    renamed: "Callable[[Mapping[str, str]], Format] | None" = None


def json_lines(
    name: str, parse: Callable[[dict[str, Any]], Any], holds: Holds | None = None, **attributes: Any
) -> Format:
    """A format of JSON Lines, plain or gzip: `parse` makes an object a record, or several, or raises a RecordError."""
    read = partial(read_lines, parse=lambda raw: parse(json_object(orjson.loads(raw))))
    return Format(name, read, holds=holds, **attributes)


def read_lines(path: Path, parse: Callable[[bytes], Any], header: "re.Pattern[bytes] | None" = None) -> Iterator[Line]:
    """Yields what `parse` makes of each line but headers, a record or several; SourceError as for `raw_lines`."""
    for number, raw, bytes_read in raw_lines(path):
        if not (header and header.match(raw)):
            result = tried(partial(parse, raw), raw)
            for record in result if isinstance(result, Sequence) else [result]:
                yield Line(number, record, bytes_read)


IDS = Format(REMOVED, partial(read_lines, parse=lambda raw: Deletion("papers", read_id({"id": raw.decode()}, "id"))))

FORMATS: Registry[Format] = Registry(
    "format",
    {
        **{f"s2ag-{dataset}": f"citerec.corpus.s2ag:{dataset.upper()}" for dataset in DATASETS},
        "s2ag-citations-upserts": "citerec.corpus.s2ag:CHANGED_CITATIONS",
        **{f"s2ag-{dataset}-deletes": f"citerec.corpus.s2ag:DELETED_{dataset.upper()}" for dataset in DATASETS},
        "openalex": "citerec.corpus.openalex:WORKS",
        "openalex-deleted": "citerec.corpus.openalex:DELETED",
        "arxiv": "citerec.corpus.arxiv:PAPERS",
        "arxiv-deleted": "citerec.corpus.arxiv:DELETED",
        "acl-anthology": "citerec.corpus.bibtex:ANTHOLOGY",
        "bibtex": "citerec.corpus.bibtex:BIBTEX",
        "csl": "citerec.corpus.csl:CSL",
        "ris": "citerec.corpus.ris:RIS",
        "zotero": "citerec.corpus.zotero:ZOTERO",
        "jsonl": "citerec.corpus.tabular:JSONL",
        "csv": "citerec.corpus.tabular:CSV",
        "beir": "citerec.corpus.tabular:BEIR",
        "contexts": "citerec.corpus.tabular:CONTEXTS",
        REMOVED: "citerec.corpus.base:IDS",
    },
)
"""The formats, by name."""


def format_named(name: str) -> Format:
    """The format of a name. After a colon stand other names of columns, by attribute: `csv:{"title": "name"}`.

    Raises:
        SettingsError: There is no such format, or it has no columns, or papers have no such attribute.
    """
    kind, _, columns = name.partition(":")
    form = FORMATS[kind]
    if not columns:
        return form
    names: dict[str, str] = orjson.loads(columns)
    attributes = [one.name for one in fields(Paper)]
    if unknown := names.keys() - set(attributes):
        raise SettingsError(f"papers have no {min(unknown)!r}", f"They have: {', '.join(attributes)}.")
    if form.renamed is None:
        raise SettingsError(f"the names of {kind} are fixed", "Those of jsonl and csv can be mapped.")
    return form.renamed(names)


def paper_of(paper_id: str | None, ids: Mapping[str, str | None], *, untitled: bool = False, **fields: Any) -> Paper:
    """The paper of an entry, with those of its identifiers that are not empty.

    Args:
        paper_id: Its id; None for a paper that is `identified` later.
        ids: Its identifiers elsewhere, by scheme.
        untitled: Whether it may have no text to search.
        fields: Its other attributes.

    Raises:
        RecordError: The id is no id, or it has no text to search.
    """
    if not (untitled or fields["title"] or fields.get("abstract")):
        raise RecordError("neither title nor abstract: nothing to search")
    own_id = "" if paper_id is None else read_id({"id": paper_id}, "id")
    return Paper(own_id, external_ids={scheme: value for scheme, value in ids.items() if value}, **fields)


def entries_of(papers: Iterable[Paper], form: str = "bibtex", pattern: str = DEFAULT_PATTERN) -> list[Any]:
    """One entry per paper, in order, with keys that do not repeat; an author's own BibTeX entries byte for byte.

    Args:
        papers: The papers.
        form: The format: `bibtex`, `csl` or `ris`.
        pattern: Of the keys of entries that are made (docs/formats.md, "Citation keys").

    Raises:
        InputError: The pattern is wrong.
    """
    papers, entry = list(papers), FORMATS[form].entry
    return [entry(key, paper) for key, paper in zip(entry_keys(papers, pattern), papers, strict=True)] if entry else []


def entry_keys(papers: Sequence[Paper], pattern: str = DEFAULT_PATTERN, taken: Collection[str] = ()) -> list[str]:
    """The key of each paper: that of the author's own entry, else one made by the pattern; none comes again.

    Args:
        papers: The papers.
        pattern: Of new keys.
        taken: Keys of other entries.

    Raises:
        InputError: The pattern is wrong.
    """
    used, own = {key.casefold() for key in taken}, list[str]()
    for paper in papers:
        key = own_key(paper) or ""
        own.append("" if key.casefold() in used else key)
        used.add(own[-1].casefold())
    made = iter(citation_keys((paper for paper, key in zip(papers, own, strict=True) if not key), pattern, used))
    return [key or next(made) for key in own]


CORPUS = "corpus.json"
"""The manifest of a fetched corpus: it lists the files, in the order in which they are to be read."""

UPDATES = "updates"
"""Folder of a corpus with a folder for each update, which has `upserts-…` and `deletes-…` of each dataset."""

_ENDINGS = (".jsonl", ".json", ".gz")  # besides those of formats
_SNIFFED_LINES = 1000


class Shard(NamedTuple):
    """A file of one format."""

    path: Path
    format: str


@client_failures()
def find_shards(sources: Sequence[Path], format_name: str | None = None, citances: Sequence[Path] = ()) -> list[Shard]:
    """The shards of some sources, in the order given, each folder's sorted by name.

    Args:
        sources: Files, folders of files, or folders of S2AG datasets (`papers/`, `abstracts/`, …).
        format_name: One of FORMATS, as for `format_named`; recognised by default.
        citances: Files of contexts whose sentences become citances. They are read only if they are named here:
            contexts beside papers may be those with which a recommender is tested.

    Raises:
        SourceError: A path is missing, or has nothing that citerec reads.
        InputError: There is no format of this name.
    """
    if format_name:
        format_named(format_name)
    shards = [shard for source in expanded(sources) for shard in _shards_of(source, format_name)]
    for path in expanded(citances):
        _check(path, path.is_file(), "Give a file of contexts, one per line: docs/formats.md.")
        shards.append(Shard(path, "contexts"))
    times = Counter(shard.path.resolve() for shard in shards)
    if shards and times.most_common(1)[0][1] > 1:
        raise SourceError(f"{times.most_common(1)[0][0]} is given twice", "Name each file once.")
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
    if (documents := source / DOCUMENTS).is_file() and source.joinpath(QUERIES).is_file():
        return [Shard(documents, "beir")]  # queries look the same
    endings = tuple(dict.fromkeys([*_ENDINGS, *(ending for _, form in FORMATS.items() for ending in form.endings)]))
    files = [path for path in _files(source) if path.name.lower().endswith(endings)]
    if source.name in DATASETS:
        format_name = format_name or f"s2ag-{source.name}"
        files = files or _files(source)
    for path in files:  # other files may be beside those that hold papers
        with contextlib.suppress(SourceError):
            shards.append(Shard(path, format_name or recognise(path)))
    if not shards:
        remedy = f"It reads folders named {', '.join(DATASETS)}, and files ending in {', '.join(endings)}."
        raise SourceError(f"{source} holds nothing that citerec reads", remedy)
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
    first_line = next((raw for _, raw, _ in raw_lines(path)), b"")
    for name, form in formats.items():
        if not endings.isdisjoint(form.endings) and (not form.header or form.header.match(first_line)):
            return name
    for name, form in formats.items():
        if form.is_of and form.is_of(path):
            return name
    for _, raw, _ in itertools.islice(raw_lines(path), _SNIFFED_LINES):
        record = parsed(raw, dict)
        for name, form in formats.items():
            if form.holds and isinstance(record, dict) and form.holds(record):
                return name
    remedy = f"Formats are: {', '.join(FORMATS)}. Name one with --read-as, where the command has it."
    raise SourceError(f"{path} is of no format that citerec recognises", remedy)


def papers_in(path: Path) -> list[Paper]:
    """The papers of a file of a format that is recognised, without those that cannot be read; as for `recognise`."""
    return [line.record for line in FORMATS[recognise(path)].read(path) if isinstance(line.record, Paper)]
