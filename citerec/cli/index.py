"""`citerec index`: builds and maintains indexes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from cyclopts import Parameter

from citerec.cli.commands import UsageError, group
from citerec.cli.console import note, output, print_json, say, size_in_words
from citerec.cli.options import Address, Count, IndexPath, Json, MaxBad, On, Workers, at_least, index_of, working
from citerec.errors import CiterecError, IndexUnusableError
from citerec.evaluation.rendering import Table, left, marked, right, show
from citerec.files.addresses import path_of
from citerec.files.places import INDEXES
from citerec.files.progress import progress_bar
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.index.describe import Listed
    from citerec.index.manifest import Manifest
    from citerec.index.vectors.build import DenseOptions

_SUSPICIOUS = 0.8  # some releases of Semantic Scholar lacked most of their rows

index = group(
    "index",
    "Build an index of papers, add to it, inspect it.\n\nExample: citerec index build papers.bib --out indexes/mine",
)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, and how.

    Attributes:
        format_name: Format of the files, by default recognised: bibtex, ris, csl-json, s2ag-papers and others
            (docs/parts.md).
        citances: Contexts (docs/formats.md) whose sentences are searched as citances of the papers they cite; may be
            repeated. Contexts beside papers are read only if they are named here.
    """

    format_name: Annotated[str | None, Parameter(name="--format", metavar="NAME")] = None
    max_bad: MaxBad = 0.05
    citances: Annotated[tuple[Address, ...], Parameter(metavar="FILE")] = ()


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
        max_tokens: How many tokens of a paper's text are encoded.  [default: 192]
        backend: Backend that encodes the papers, and later the queries: torch, onnx and others (docs/parts.md). ONNX
            Runtime is for CPUs: onnx gives the same vectors as torch, onnx-int8 has 8-bit weights.  [default: torch]
    """

    model: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None
    vectors: Annotated[tuple[str, ...], Parameter(metavar="KIND|PATH")] = ()
    max_tokens: Annotated[int | None, Parameter(validator=at_least(8))] = None
    backend: Annotated[str | None, Parameter(metavar="NAME")] = None

    def dense(self, max_bad: float, *, wanted: bool = False, before: Path | None = None) -> "DenseOptions | None":
        """The options of vectors; None if none was given, unless vectors are `wanted`.

        If vectors of the same model are there `before`, their options are the defaults.
        """
        from citerec.index.vectors.build import DenseOptions, renewal
        from citerec.index.vectors.manifest import Asked, has_vectors
        from citerec.models.find import DEFAULT_ENCODER

        if not wanted and self == VectorOptions():
            return None
        known = get_args(Asked)
        kinds: list[Any] = [value for value in self.vectors if value in known]
        given = tuple(path_of(value) for value in self.vectors if value not in known)
        old = renewal(before) if before and has_vectors(before) else None
        if given and not (self.model or old):
            raise UsageError("--vectors PATH needs --model: name what made them, for it has to encode the queries")
        dense = old if old and self.model in (None, old.model) else DenseOptions(self.model or DEFAULT_ENCODER)
        named = {name: value for name in ("max_tokens", "backend") if (value := getattr(self, name)) is not None}
        kind = kinds[-1] if kinds else dense.kind
        return replace(dense, **named, kind=kind, vectors=given, max_bad=max_bad)


@index.command
def build(
    sources: tuple[Address, ...],
    /,
    *,
    out: Path,
    reading: Reading = Reading(),
    workers: Workers = None,
    on: On = None,
    abstract_field: bool = False,
    store: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    engine: Literal["embedded", "lucene", "qdrant"] = "embedded",
    url: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    quantize: Literal["none", "int8", "binary"] = "none",
    shards: Count | None = None,
    replicas: Count | None = None,
    vectors: VectorOptions = VectorOptions(),
) -> None:
    """Read SOURCES and build an index of their papers.

    A source is a folder of Semantic Scholar shards (papers/, abstracts/, tldrs/, citations/; plain or
    gzip), a bibliography (BibTeX, RIS, or CSL-JSON as Zotero and pandoc write it), JSON Lines or CSV;
    also at an address such as s3://bucket/papers; or one other index, whose papers and vectors the new
    one has, with another engine.
    An index that is already at --out is kept until the new one is ready. Repeat the command to resume
    an interrupted build.

    Example: citerec index build ../shared/data/acm --out indexes/acm

    Args:
        sources: What is read.
        out: The index directory to make, or to replace.
        abstract_field: Index abstracts as a field of their own too, so that words.weights.abstract can weight them.
        store: Keep the records in a MongoDB database, mongodb://HOST/DATABASE, not in a file of the index. One
            build at a time writes to it.
        engine: What searches: embedded needs nothing else and serves some millions of papers; lucene (the extra
            citerec[lucene], with Java) serves many millions, and Anserini and pyserini open its index too; qdrant (the
            extra citerec[scale]) keeps words and vectors on the server at --url.
        url: With --engine qdrant: where to, such as http://HOST:6333/NAME.
        quantize: How the server keeps vectors in memory. With int8 they take a quarter of the memory, with binary a
            32nd; the vectors themselves stay on disk, and the best are compared by them.
        shards: In a cluster of servers: shards of each collection.
        replicas: In a cluster of servers: copies of each shard.
    """
    from citerec.index.base import Layout
    from citerec.index.build import BuildOptions, build_index

    layout = Layout(engine, abstract_field, url, quantize, shards, replicas)
    if (layout.engine == "qdrant") != bool(layout.url):
        raise UsageError("--url needs --engine qdrant" if layout.url else "--engine qdrant needs --url ADDRESS")
    dense = vectors.dense(reading.max_bad)
    before = _papers_before(out)
    with working(on, workers) as (parallelism, on_progress):
        options = BuildOptions(
            reading.format_name, reading.max_bad, parallelism, reading.citances, layout=layout, store=store, dense=dense
        )
        manifest = build_index(sources, out, options, on_progress)
    _tell(out, manifest, "built")
    if manifest.counts.papers < _SUSPICIOUS * before:
        note(f"The previous index had {before:,} papers: are the sources complete?")


@index.command
def add(
    sources: tuple[Address, ...] = (),
    /,
    *,
    index: IndexPath = None,
    reading: Reading = Reading(),
    workers: Workers = None,
    on: On = None,
    vectors: VectorOptions = VectorOptions(),
) -> None:
    """Add the papers of SOURCES to an index, or update them.

    Papers are matched by id; of two records the later one counts. The result is that of a build
    from all sources together. If the index has vectors, new and changed papers are encoded as the
    rest was; if its vectors were given, by the model that made them, unless --vectors has more of
    that model. --model with another model makes all vectors anew.

    Example: citerec index add new.bib --index indexes/mine

    Args:
        sources: What is read.
    """
    if not sources and not reading.citances:
        raise UsageError("nothing to add: give SOURCES, or --citances FILE")
    from citerec.index.build import BuildOptions, add_to_index

    path = index_of(index)
    dense = vectors.dense(reading.max_bad, before=_vectors_of(path))
    with working(on, workers) as (parallelism, on_progress):
        options = BuildOptions(reading.format_name, reading.max_bad, parallelism, reading.citances, dense=dense)
        manifest = add_to_index(sources, path, options, on_progress)
    _tell(path, manifest, "brought up to date", added=True)


@index.command
def update(
    folders: tuple[Path, ...] = (),
    /,
    *,
    index: IndexPath = None,
    max_bad: MaxBad = 0.05,
    workers: Workers = None,
    on: On = None,
) -> None:
    """Bring an index up to date with the updates of the corpus that it was built from.

    FOLDER is that corpus; it may be left out. Files that the index has read already are not read
    again. What changed is replaced, and what was deleted is removed. New and changed papers are
    encoded as by `index add`.

    Example: citerec index update corpora/s2 --index indexes/s2

    Args:
        folders: Folders of that corpus.
    """
    from citerec.index.build import BuildOptions, update_index
    from citerec.index.manifest import Manifest

    path = index_of(index)
    before = Manifest.read(path)
    with working(on, workers) as (parallelism, on_progress):
        after = update_index(folders, path, BuildOptions(max_bad=max_bad, workers=parallelism), on_progress)
    if len(after.sources) == len(before.sources):
        say(f"{path} is up to date: there is nothing new to read.")
        return
    _tell(path, after, "brought up to date", added=True)


@index.command
def remove(
    ids: tuple[str, ...] = (),
    /,
    *,
    ids_file: Annotated[Path | None, Parameter(name="--ids", metavar="FILE")] = None,
    index: IndexPath = None,
) -> None:
    """Remove the papers with some ids from an index.

    Their abstracts and TLDRs are removed too, and sentences about them are no longer found. What they
    say of other papers stays. If a later update or `index add` has a record of such a paper, it comes
    back.

    Example: citerec index remove 12 34 --index indexes/s2

    Args:
        ids: Ids of papers.
        ids_file: A file with the id of a paper in each line.
    """
    from citerec.library import Index

    if bool(ids) == bool(ids_file):
        raise UsageError("give the ids of papers, or --ids FILE")
    found = Index.open(index_of(index))
    before = len(found)
    with progress_bar() as on_progress:
        found.remove(ids_file or ids, on_progress=on_progress)
    if len(found) == before:
        say(f"{found.path} has none of these papers.")
        return
    say(f"Removed: {counted(before - len(found), 'paper')}.")
    _tell(found.path, found.manifest, "brought up to date", added=True)


@index.command
def encode(
    index: Path | None = None,
    /,
    *,
    retriever: Annotated[str, Parameter(metavar="NAME")] = "dense",
    vectors: VectorOptions = VectorOptions(),
    max_bad: MaxBad = 0.05,
    workers: Count | None = None,
    on: On = None,
) -> None:
    """Make the vectors of an existing index, for dense retrieval, or what another retriever searches.

    What is there is kept until the new folder is complete. Texts that the same model has encoded
    before are not encoded again. Repeat the command to resume an interrupted run, with any --on.

    Example: citerec index encode indexes/acm --vectors ../shared/data/acm/minilm-l6 --model M

    Args:
        index: The index.
        retriever: The retriever whose folder is made: dense (titles and abstracts), or profile (citing sentences).
        workers: Processes that encode at once. Here each has its share of the processors; with --on each has one, or a
            GPU.  [default: 1 here; with --on one for each processor]
    """
    from citerec.retrieve.base import RETRIEVERS

    path, part = index_of(index), RETRIEVERS[retriever]
    dense = vectors.dense(max_bad, wanted=True)
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
def info(index: Path | None = None, /, *, as_json: Json = False) -> None:
    """Show what an index holds: counts, years, fields, venues, settings, size.

    Example: citerec index info indexes/acm

    Args:
        index: The index.
    """
    from citerec.cli.tables import show_description
    from citerec.index.describe import describe
    from citerec.systems import Recipe, default_system

    description = describe(index_of(index))
    if as_json:
        system = default_system(description.path)
        settings = Recipe.load(system).whole().to_json()
        print_json({**description.to_json(), "default_system": system, "default_settings": settings})
    else:
        show_description(description)


@index.command
def verify(index: Path | None = None, /) -> None:
    """Check that store, words, vectors and manifest agree, and that no file has been damaged.

    Example: citerec index verify indexes/acm

    Args:
        index: The index.
    """
    from citerec.index.verify import verify as faults_of

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


@index.command(name="list")
def list_indexes(folder: Path = INDEXES, /) -> None:
    """List the indexes in FOLDER (by default indexes/).

    Example: citerec index list

    Args:
        folder: The folder.
    """
    from citerec.index.describe import list_indexes as listed

    if not folder.is_dir() and folder != INDEXES:
        raise UsageError(f"there is no folder {folder}")
    if found := listed(folder):
        _show_list(found)
    else:
        say(f"No index in {folder}/. Make one: citerec index build SOURCE… --out {folder}/NAME")


def _show_list(found: "list[Listed]") -> None:
    """Shows the indexes of a folder."""
    table = Table([*left("index"), *right("papers", "with abstract", "citing sentences", format=","), *right("size")])
    for item in found:
        if item.manifest is None:
            numbers: tuple[Any, ...] = (marked(item.fault or "", "worse"), "", "")
        else:
            counts = item.manifest.counts
            numbers = (counts.papers, counts.with_abstract, counts.citances)
        table.rows.append([str(item.path), *numbers, size_in_words(item.bytes)])
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
    from citerec.index.vectors.manifest import DenseManifest, encode_command

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
    from citerec.index.generations import generation_of
    from citerec.index.manifest import DENSE
    from citerec.index.vectors.manifest import has_vectors

    folder = generation_of(path)
    counts = manifest.counts
    parts = [f"{counts.papers:,} papers", f"{counts.with_abstract:,} with an abstract"]
    if counts.with_tldr:
        parts.append(f"{counts.with_tldr:,} with a TLDR")
    if counts.citances:
        parts.append(f"{counts.citances:,} citing sentences of {counts.with_citances:,} papers")
    say(f"{path} {done}: {', '.join(parts)}.")
    if manifest.remark:
        note(manifest.remark)
    if counts.duplicates:
        note(f"Records of papers that later records replaced or deleted: {counts.duplicates:,}.")
    if counts.unmatched:
        note(f"Abstracts, TLDRs or citations of papers not in the index: {counts.unmatched:,}.")
    if counts.bad:
        note(f"Records that could not be read: {counts.bad:,}. See {folder / 'quarantine.jsonl'}")
    if has_vectors(folder / DENSE):
        _tell_vectors(folder / DENSE, added=added)
    _tell_old_vectors(path, manifest)


def _tell_old_vectors(path: Path, manifest: "Manifest") -> None:
    """Says which folders of an index were made for the papers before."""
    from citerec.index.verify import vectors_beside

    for folder, made in vectors_beside(path):
        if made["store"] != manifest.fingerprint:
            note(
                f"The vectors of {folder.name} were made for the papers before. Bring them up to date: "
                f"citerec index encode {path} --retriever {folder.name}"
            )
