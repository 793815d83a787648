"""`citerec index` and `systems`: builds and maintains indexes, and shows what searches them."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from cyclopts import Parameter

from citerec.cli.commands import UsageError, group
from citerec.cli.console import give, note, output, say, size_in_words
from citerec.cli.options import (
    Address,
    Format,
    Index,
    IndexPath,
    MaxBad,
    On,
    Out,
    OutFile,
    Tuning,
    Workers,
    index_of,
    working,
)
from citerec.errors import CiterecError, IndexUnusableError
from citerec.evaluation.rendering import Table, left, marked, right, show
from citerec.files.addresses import path_of
from citerec.files.places import INDEXES
from citerec.files.progress import progress_bar
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.index.describe import Description
    from citerec.index.manifest import Manifest
    from citerec.index.vectors.build import DenseOptions

_SUSPICIOUS = 0.8  # some releases of Semantic Scholar lacked most of their rows
ToChange = Annotated[Path, Parameter(name="INDEX", help="The index.")]

index = group(
    "index",
    "Build an index of papers, add to it, inspect it.\n\nExample: citerec index build papers.bib --out indexes/mine",
)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, and how.

    Attributes:
        read_as: Format of the files, by default recognised: bibtex, ris, csl-json, s2ag-papers and others
            (docs/formats.md).
        citances: Contexts (docs/formats.md) whose sentences are searched as citances of the papers they cite; may be
            repeated. Contexts beside papers are read only if they are named here.
    """

    read_as: Annotated[str | None, Parameter(metavar="FORMAT")] = None
    citances: Annotated[tuple[Address, ...], Parameter(metavar="FILE")] = ()
    max_bad: MaxBad = 0.05
    workers: Workers = None
    on: On = None


@dataclass(frozen=True, slots=True)
class EncodingSettings:
    """How papers get vectors.

    Attributes:
        max_tokens: How many tokens of a paper's text are encoded; 192 by default.
        backend: Backend that encodes the papers, and later the queries: torch, onnx and others (docs/retrieval.md).
            ONNX
            Runtime is for CPUs: onnx gives the same vectors as torch, onnx-int8 has 8-bit weights.
    """

    max_tokens: int | None = None
    backend: str | None = None


@dataclass(frozen=True, slots=True)
class LayoutSettings:
    """How an engine keeps words and vectors.

    Attributes:
        abstract_field: Index abstracts as a field of their own too, so that words.weights.abstract can weight them.
        quantization: How a server keeps vectors in memory: none, int8 (a quarter of the memory) or binary (a 32nd);
            the vectors themselves stay on disk, and the best are compared by them.
        shards: In a cluster of servers: shards of each collection.
        replicas: In a cluster of servers: copies of each shard.
    """

    abstract_field: bool = False
    quantization: Literal["none", "int8", "binary"] = "none"
    shards: int | None = None
    replicas: int | None = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class VectorOptions:
    """How papers get vectors.

    Attributes:
        model: Encoder of papers and queries, a folder or a name: papers get vectors, so that they are found by meaning
            too.
        vectors: How vectors are searched: auto, exact (by numpy), or by a FAISS index: flat, ivfsq, ivfpq, hnsw; auto
            is exact below a million papers. Or vectors that --model made elsewhere, in place of encoding: a folder with
            vectors.npy and ids.npy, or S2AG's embeddings-specter_v2. May be repeated.
    """

    model: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None
    vectors: Annotated[tuple[str, ...], Parameter(metavar="KIND|PATH")] = ()

    def dense(
        self, settings: EncodingSettings, max_bad: float, *, wanted: bool = False, before: Path | None = None
    ) -> "DenseOptions | None":
        """The options of vectors; None if none was given, unless vectors are `wanted`.

        If vectors of the same model are there `before`, their options are the defaults.
        """
        from citerec.index.vectors.build import DenseOptions, renewal
        from citerec.index.vectors.vectors import Asked, has_vectors
        from citerec.models.find import DEFAULT_ENCODER

        if not wanted and self == VectorOptions() and settings == EncodingSettings():
            return None
        known = get_args(Asked)
        kinds: list[Any] = [value for value in self.vectors if value in known]
        given = tuple(path_of(value) for value in self.vectors if value not in known)
        old = renewal(before) if before and has_vectors(before) else None
        if given and not (self.model or old):
            raise UsageError("--vectors PATH needs --model: name what made them, for it has to encode the queries")
        dense = old if old and self.model in (None, old.model) else DenseOptions(self.model or DEFAULT_ENCODER)
        named = {name: value for name, value in asdict(settings).items() if value is not None}
        return replace(dense, **named, kind=kinds[-1] if kinds else dense.kind, vectors=given, max_bad=max_bad)


@index.command
def build(
    sources: tuple[Address, ...],
    /,
    *,
    out: Out,
    reading: Reading = Reading(),
    store: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    engine: Literal["embedded", "lucene", "qdrant"] = "embedded",
    url: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    vectors: VectorOptions = VectorOptions(),
    tuning: Tuning = Tuning(),
) -> None:
    """Read SOURCES and build an index of their papers.

    A source is a folder of Semantic Scholar shards (papers/, abstracts/, tldrs/, citations/; plain or
    gzip), a bibliography (BibTeX, RIS, or CSL-JSON as Zotero and pandoc write it), JSON Lines or CSV;
    also at an address such as s3://bucket/papers; or one other index, whose papers and vectors the new
    one has, with another engine.
    An index that is already at --out is kept until the new one is ready. Repeat the command to resume
    an interrupted build. Settings (-c): max_tokens and backend of the encoder; abstract_field; for a
    server quantization, shards and replicas.

    Example: citerec index build ../shared/data/acm --out indexes/acm

    Args:
        sources: What is read.
        out: The index directory to make, or to replace.
        store: Keep the records in a MongoDB database, mongodb://HOST/DATABASE, not in a file of the index. One
            build at a time writes to it.
        engine: What searches: embedded needs nothing else and serves some millions of papers; lucene (the extra
            citerec[lucene], with Java) serves many millions, and Anserini and pyserini open its index too; qdrant (the
            extra citerec[scale]) keeps words and vectors on the server at --url.
        url: With --engine qdrant: where to, such as http://HOST:6333/NAME.
    """
    from citerec.index.build import BuildOptions, build_index
    from citerec.index.manifest import Layout

    if (engine == "qdrant") != bool(url):
        raise UsageError("--url needs --engine qdrant" if url else "--engine qdrant needs --url ADDRESS")
    settings = tuning.settings(EncodingSettings, LayoutSettings)
    layout = Layout(engine=engine, url=url, **asdict(settings.of(LayoutSettings)))
    dense = vectors.dense(settings.of(EncodingSettings), reading.max_bad)
    before = _papers_before(out)
    with working(reading.on, reading.workers) as (parallelism, on_progress):
        options = BuildOptions(
            reading.read_as, reading.max_bad, parallelism, reading.citances, layout=layout, store=store, dense=dense
        )
        manifest = build_index(sources, out, options, on_progress)
    _tell(out, manifest, "built")
    if manifest.counts.papers < _SUSPICIOUS * before:
        note(f"The previous index had {before:,} papers: are the sources complete?")


@index.command
def add(
    index: ToChange,
    sources: tuple[Address, ...] = (),
    /,
    *,
    reading: Reading = Reading(),
    vectors: VectorOptions = VectorOptions(),
    tuning: Tuning = Tuning(),
) -> None:
    """Add the papers of SOURCES to INDEX, or update them.

    Papers are matched by id; of two records the later one counts. The result is that of a build from all sources
    together. Of the folder of a corpus that the index was built from, only what is new is read, such as the
    corpus's later releases: what changed is replaced, and what was deleted is removed. Without SOURCES, all these
    folders are looked through.

    If the index has vectors, new and changed papers are encoded as the rest was; if its vectors were given, by the
    model that made them, unless --vectors has more of that model. --model with another model makes all vectors anew.

    Example: citerec index add indexes/mine new.bib

    What is new in its corpus: citerec index add indexes/s2

    Args:
        sources: What is read.
    """
    from citerec.index.build import BuildOptions, add_to_index, is_corpus_of, update_index
    from citerec.index.manifest import Manifest

    before = Manifest.read(index)
    old = not reading.citances and all(is_corpus_of(before, source) for source in sources)
    dense = vectors.dense(
        tuning.settings(EncodingSettings).of(EncodingSettings), reading.max_bad, before=_vectors_of(index)
    )
    with working(reading.on, reading.workers) as (parallelism, on_progress):
        options = BuildOptions(reading.read_as, reading.max_bad, parallelism, reading.citances, dense=dense)
        after = (update_index if old else add_to_index)(sources, index, options, on_progress)
    if old and len(after.sources) == len(before.sources):
        say(f"{index} is up to date: there is nothing new to read.")
    else:
        _tell(index, after, "brought up to date", added=True)


@index.command
def remove(
    index: ToChange,
    ids: tuple[str, ...] = (),
    /,
    *,
    ids_file: Annotated[Path | None, Parameter(name="--ids", metavar="FILE")] = None,
) -> None:
    """Remove the papers with some ids from INDEX.

    Their abstracts and TLDRs are removed too, and sentences about them are no longer found. What they
    say of other papers stays. If a later `index add` has a record of such a paper, it comes back.

    Example: citerec index remove indexes/s2 12 34

    Args:
        ids: Ids of papers.
        ids_file: A file with the id of a paper in each line.
    """
    from citerec.library import Index as Opened

    if bool(ids) == bool(ids_file):
        raise UsageError("give the ids of papers, or --ids FILE")
    opened = Opened.open(index)
    before = len(opened)
    with progress_bar() as on_progress:
        opened.remove(ids_file or ids, on_progress=on_progress)
    if len(opened) == before:
        say(f"{opened.path} has none of these papers.")
        return
    say(f"Removed: {counted(before - len(opened), 'paper')}.")
    _tell(opened.path, opened.manifest, "brought up to date", added=True)


@index.command
def encode(
    index: Index = None,
    /,
    *,
    retriever: Annotated[str, Parameter(metavar="NAME")] = "dense",
    vectors: VectorOptions = VectorOptions(),
    max_bad: MaxBad = 0.05,
    workers: Workers = None,
    on: On = None,
    tuning: Tuning = Tuning(),
) -> None:
    """Make the vectors of an existing index, for dense retrieval, or what another retriever searches.

    What is there is kept until the new folder is complete. Texts that the same model has encoded
    before are not encoded again. Repeat the command to resume an interrupted run, with any --on. One process works
    here, unless --workers gives each of several its share of the processors. Settings (-c): max_tokens and backend.

    Example: citerec index encode indexes/acm --vectors ../shared/data/acm/minilm-l6 --model M

    Args:
        retriever: The retriever whose folder is made: dense (titles and abstracts), or profile (citing sentences).
    """
    from citerec.retrieve.base import RETRIEVERS

    path, part = index_of(index), RETRIEVERS[retriever]
    dense = vectors.dense(tuning.settings(EncodingSettings).of(EncodingSettings), max_bad, wanted=True)
    assert dense is not None
    if on and dense.vectors:
        raise UsageError("--on is about encoding: leave it out with --vectors PATH")
    with working(on, workers, here=1) as (parallelism, on_progress):
        told = part.encode(path, dense, on_progress, parallelism)
    if told:
        say(told)
    else:
        _tell_vectors(_vectors_of(path, part.name))


@index.command
def info(index: Index = None, /, *, form: Format = "table", out: OutFile = None) -> None:
    """Show what INDEX holds: counts, years, fields, venues, settings, size; without INDEX, which indexes there are.

    Example: citerec index info indexes/acm
    """
    from citerec.cli.tables import show_description
    from citerec.index.describe import describe, list_indexes

    if index is None or (not index.joinpath("CURRENT").exists() and index == INDEXES):
        found = list_indexes(INDEXES)
        give(
            form,
            out,
            json=lambda: [{"path": str(one.path), "bytes": one.bytes, "fault": one.fault} for one in found],
            table=lambda: _show_list(found),
        )
        return
    description = describe(index)
    give(form, out, json=lambda: _described(description), table=lambda: show_description(description))


@index.command
def verify(index: Index = None, /) -> None:
    """Check that store, words, vectors and manifest agree, and that no file has been damaged.

    Example: citerec index verify indexes/acm
    """
    from citerec.index.describe import verify as faults_of

    path = index_of(index)
    with progress_bar() as on_progress:
        faults = faults_of(path, on_progress)
    if not faults:
        say(f"{path}: whole. Store, words, vectors and manifest agree.")
        return
    for fault in faults:
        note(f"- {fault}")
    raise CiterecError(
        f"{path} is damaged: {len(faults)} fault(s)", f"Build it again: citerec index build … --out {path}"
    )


def systems(*, index: IndexPath = None, settings: bool = False, form: Format = "table", out: OutFile = None) -> None:
    """List the systems, and what each needs that the index lacks.

    Name one with --system, followed by +RERANKER for others than its own.

    Example: citerec systems --index indexes/demo

    Args:
        settings: List the settings of systems instead, for -c KEY=VALUE, with their defaults and meanings.
    """
    from citerec.index.manifest import find_index
    from citerec.systems import all_settings, default_system, system_needs

    if settings:
        keys = [[key, str(default), meaning] for key, (default, meaning) in all_settings().items()]
        names = ("key", "default", "meaning")
        give(
            form,
            out,
            json=lambda: [dict(zip(names, row, strict=True)) for row in keys],
            table=lambda: show(output(), Table(left(*names), keys)),
        )
        return
    try:
        place = find_index(index)
    except IndexUnusableError:
        if index is not None:
            raise
        place = None
    rows = [{"system": name, **needs} for name, needs in system_needs(place).items()]
    default = default_system(place) if place else ""

    def table() -> None:
        shown = [
            [
                marked(row["system"], "strong") if row["system"] == default else row["system"],
                "yes" if not row["lacks"] else marked("no", "worse"),
                row["lacks"] or row["about"],
            ]
            for row in rows
        ]
        show(output(), Table(left("system", "here", "what it is, or what it lacks"), shown))
        say(f"\nThe default here is {default}." if default else "\nThere is no index: citerec index build")

    give(form, out, json=lambda: rows, table=table)


def _described(description: "Description") -> dict[str, Any]:
    """A description of an index as JSON, with its default system."""
    from citerec.systems import Recipe, default_system

    system = default_system(description.path)
    settings = Recipe.load(system).whole().to_json()
    return {**description.to_json(), "default_system": system, "default_settings": settings}


def _show_list(found: "list[Any]") -> None:
    """Shows the indexes of a folder."""
    if not found:
        say(f"No index in {INDEXES}/. Make one: citerec index build SOURCE --out {INDEXES}/NAME")
        return
    table = Table([*left("index"), *right("papers", "with abstract", "citing sentences", format=","), *right("size")])
    for item in found:
        counts = item.manifest and item.manifest.counts
        numbers = (counts.papers, counts.with_abstract, counts.citances) if counts else None
        table.rows.append(
            [str(item.path), *(numbers or (marked(item.fault or "", "worse"), "", "")), size_in_words(item.bytes)]
        )
    show(output(), table)


def _vectors_of(index: Path, name: str = "dense") -> Path:
    """The folder of the vectors of an index."""
    from citerec.index.generations import generation_of

    return generation_of(index) / name


def _papers_before(path: Path) -> int:
    from citerec.index.manifest import Manifest

    try:
        return Manifest.read(path).counts.papers
    except IndexUnusableError:
        return 0


def _tell_vectors(folder: Path, *, added: bool = False) -> None:
    """Says how many papers have a vector, and how well they are found; `added` after papers were added."""
    from citerec.index.vectors.vectors import DenseManifest, encode_command

    manifest = DenseManifest.read(folder)
    kind = manifest.kind_of_search
    say(
        f"{manifest.count:,} papers have a vector of {manifest.dimension} numbers ({manifest.model}); "
        f"{'searched exactly' if kind in ('exact', 'flat') else f'searched by FAISS {kind}'}."
    )
    if manifest.without_vector and manifest.given:
        why = f"none was given{f', and {manifest.model} did not encode them' * added}"
        note(
            f"{counted(manifest.without_vector, 'paper')} cannot be found by vector: {why}. Give more: "
            f"{encode_command(folder, manifest.model)} --vectors PATH"
        )
    elif manifest.without_vector:
        note(f"Papers without a vector, no text: {manifest.without_vector:,}.")
    for reason, count in manifest.faults.items():
        note(f"Given vectors left out, {reason}: {count:,}.")


def _tell(path: Path, manifest: "Manifest", done: str, *, added: bool = False) -> None:
    """Says what an index holds, and what of its sources was left out; `added` after papers were added."""
    from citerec.index.describe import vectors_beside
    from citerec.index.generations import generation_of
    from citerec.index.manifest import DENSE
    from citerec.index.vectors.vectors import has_vectors

    folder, counts = generation_of(path), manifest.counts
    parts = [f"{counts.papers:,} papers", f"{counts.with_abstract:,} with an abstract"]
    if counts.with_tldr:
        parts.append(f"{counts.with_tldr:,} with a TLDR")
    if counts.citances:
        parts.append(f"{counts.citances:,} citing sentences of {counts.with_citances:,} papers")
    say(f"{path} {done}: {', '.join(parts)}.")
    for count, what in (
        (counts.duplicates, "Records of papers that later records replaced or deleted"),
        (counts.unmatched, "Abstracts, TLDRs or citations of papers not in the index"),
    ):
        if count:
            note(f"{what}: {count:,}.")
    if counts.bad:
        note(f"Records that could not be read: {counts.bad:,}. See {folder / 'quarantine.jsonl'}")
    if has_vectors(folder / DENSE):
        _tell_vectors(folder / DENSE, added=added)
    for other, made in vectors_beside(path):
        if made["store"] != manifest.fingerprint:
            note(
                f"The vectors of {other.name} were made for the papers before. Bring them up to date: "
                f"citerec index encode {path} --retriever {other.name}"
            )
