"""`citerec index`: builds and maintains indexes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from citerec.cli.console import note, output, print_json, say, size_in_words
from citerec.cli.options import (
    ADDRESS,
    PATH,
    PartsOption,
    address_option,
    found_index,
    index_option,
    json_option,
    max_bad,
    names_of,
    number,
    on,
    one_of,
    path_option,
    with_options,
    workers,
    working,
)
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
_DATASETS = ("papers", "abstracts", "tldrs", "citations")


_build_options = [
    click.option(
        "--format",
        "format_name",
        cls=PartsOption,
        parts=names_of("citerec.corpus.base:FORMATS"),
        metavar="NAME",
        help="Format of the files, by default recognised: {names}.",
    ),
    max_bad("unreadable records"),
    workers,
    on,
    address_option(
        "--citances",
        multiple=True,
        metavar="FILE",
        help="Contexts (docs/formats.md) whose sentences are searched as citances of the papers they cite; may be "
        "repeated. Contexts beside papers are read only if they are named here.",
    ),
]
_vector_options = [
    click.option(
        "--model",
        metavar="NAME|FOLDER",
        help="Encoder of papers and queries, a folder or a name: papers get vectors, so that they are found by meaning "
        "too.",
    ),
    click.option(
        "--vectors",
        multiple=True,
        metavar="KIND|PATH",
        help="How vectors are searched: auto, exact (by numpy), or by a FAISS index: flat, ivfsq, ivfpq, hnsw; auto is "
        "exact below a million papers. Or vectors that --model made elsewhere, in place of encoding: a folder with "
        "vectors.npy and ids.npy, or S2AG's embeddings-specter_v2. May be repeated.",
    ),
    number("--max-tokens", 192, "How many tokens of a paper's text are encoded.", least=8),
    click.option(
        "--backend",
        cls=PartsOption,
        parts=names_of("citerec.models.encoder:ENCODERS"),
        default="torch",
        metavar="NAME",
        help="Backend that encodes the papers, and later the queries: {names}. ONNX Runtime is for CPUs: onnx gives "
        "the same vectors as torch, onnx-int8 has 8-bit weights.",
    ),
]
_index_argument = click.argument("index", metavar="[INDEX]", required=False, type=PATH, callback=found_index)


@click.group(epilog="Example: citerec index build papers.bib --out indexes/mine")
def index() -> None:
    """Build an index of papers, add to it, inspect it."""


@index.command(epilog="Example: citerec index build ../shared/data/acm --out indexes/acm")
@click.argument("sources", nargs=-1, required=True, type=ADDRESS)
@path_option("--out", required=True, help="The index directory to make, or to replace.")
@with_options(_build_options)
@click.option(
    "--abstract-field",
    is_flag=True,
    help="Index abstracts as a field of their own too, so that words.weights.abstract can weight them.",
)
@click.option(
    "--store",
    metavar="ADDRESS",
    help="Keep the records in a MongoDB database, mongodb://HOST/DATABASE, not in a file of the index. One build at a "
    "time writes to it.",
)
@one_of(
    "--engine",
    ["embedded", "lucene", "qdrant"],
    "What searches: embedded needs nothing else and serves some millions of papers; lucene (the extra citerec[lucene], "
    "with Java) serves many millions, and Anserini and pyserini open its index too; qdrant (the extra citerec[scale]) "
    "keeps words and vectors on the server at --url.",
)
@click.option("--url", metavar="ADDRESS", help="With --engine qdrant: where to, such as http://HOST:6333/NAME.")
@one_of(
    "--quantize",
    ["none", "int8", "binary"],
    "How the server keeps vectors in memory. With int8 they take a quarter of the memory, with binary a 32nd; the "
    "vectors themselves stay on disk, and the best are compared by them.",
)
@click.option("--shards", type=click.IntRange(1), help="In a cluster of servers: shards of each collection.")
@click.option("--replicas", type=click.IntRange(1), help="In a cluster of servers: copies of each shard.")
@with_options(_vector_options)
def build(
    sources: tuple[Path, ...],
    out: Path,
    workers: int | None,
    on: str | None,
    **options: Any,
) -> None:
    """Read SOURCES and build an index of their papers.

    A source is a folder of Semantic Scholar shards (papers/, abstracts/, tldrs/, citations/; plain or
    gzip), a bibliography (BibTeX, RIS, or CSL-JSON as Zotero and pandoc write it), JSON Lines or CSV;
    also at an address such as s3://bucket/papers; or one other index, whose papers and vectors the new
    one has, with another engine.
    An index that is already at --out is kept until the new one is ready. Repeat the command to resume
    an interrupted build.
    """
    from citerec.index.base import Layout
    from citerec.index.build import BuildOptions, build_index

    names = ("engine", "abstract_field", "url", "quantize", "shards", "replicas")
    layout = Layout(*(options.pop(name) for name in names))
    if (layout.engine == "qdrant") != bool(layout.url):
        raise click.UsageError("--url needs --engine qdrant." if layout.url else "--engine qdrant needs --url ADDRESS.")
    dense = _dense_options(options)
    before = _papers_before(out)
    with working(on, workers) as (parallelism, on_progress):
        chosen = BuildOptions(**options, layout=layout, workers=parallelism, dense=dense)
        manifest = build_index(sources, out, chosen, on_progress)
    _tell(out, manifest, "built")
    if manifest.counts.papers < _SUSPICIOUS * before:
        note(f"The previous index had {before:,} papers: are the sources complete?")


@index.command(epilog="Example: citerec index add new.bib --index indexes/mine")
@click.argument("sources", nargs=-1, type=ADDRESS)
@index_option("The index to add to")
@with_options(_build_options)
@with_options(_vector_options)
def add(sources: tuple[Path, ...], index: Path, workers: int | None, on: str | None, **options: Any) -> None:
    """Add the papers of SOURCES to an index, or update them.

    Papers are matched by id; of two records the later one counts. The result is that of a build
    from all sources together. If the index has vectors, new and changed papers are encoded as the
    rest was; if its vectors were given, by the model that made them, unless --vectors has more of
    that model. --model with another model makes all vectors anew.
    """
    if not sources and not options["citances"]:
        raise click.UsageError("Nothing to add: give SOURCES, or --citances FILE.")
    from citerec.index.build import BuildOptions, add_to_index

    dense = _dense_options(options, before=_vectors_of(index))
    with working(on, workers) as (parallelism, on_progress):
        manifest = add_to_index(sources, index, BuildOptions(**options, workers=parallelism, dense=dense), on_progress)
    _tell(index, manifest, "brought up to date", added=True)


@index.command(epilog="Example: citerec index update corpora/s2 --index indexes/s2")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=PATH)
@index_option("The index to bring up to date")
@max_bad("unreadable records")
@workers
@on
def update(folders: tuple[Path, ...], index: Path, workers: int | None, on: str | None, **options: Any) -> None:
    """Bring an index up to date with the updates of the corpus that it was built from.

    FOLDER is that corpus; it may be left out. Files that the index has read already are not read
    again. What changed is replaced, and what was deleted is removed. New and changed papers are
    encoded as by `index add`.
    """
    from citerec.index.build import BuildOptions, update_index
    from citerec.index.manifest import Manifest

    before = Manifest.read(index)
    with working(on, workers) as (parallelism, on_progress):
        after = update_index(folders, index, BuildOptions(**options, workers=parallelism), on_progress)
    if len(after.sources) == len(before.sources):
        say(f"{index} is up to date: there is nothing new to read.")
        return
    _tell(index, after, "brought up to date", added=True)


@index.command(epilog="Example: citerec index remove 12 34 --index indexes/s2")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@path_option("--ids", "ids_file", metavar="FILE", help="A file with the id of a paper in each line.")
@index_option("The index to remove papers from")
def remove(ids: tuple[str, ...], ids_file: Path | None, index: Path) -> None:
    """Remove the papers with some ids from an index.

    Their abstracts and TLDRs are removed too, and sentences about them are no longer found. What they
    say of other papers stays. If a later update or `index add` has a record of such a paper, it comes
    back.
    """
    from citerec.library import Index

    if bool(ids) == bool(ids_file):
        raise click.UsageError("Give the ids of papers, or --ids FILE.")
    found = Index.open(index)
    before = len(found)
    with progress_bar() as on_progress:
        found.remove(ids_file or ids, on_progress=on_progress)
    if len(found) == before:
        say(f"{found.path} has none of these papers.")
        return
    say(f"Removed: {counted(before - len(found), 'paper')}.")
    _tell(found.path, found.manifest, "brought up to date", added=True)


@index.command(epilog="Example: citerec index encode indexes/acm --vectors ../shared/data/acm/minilm-l6 --model M")
@_index_argument
@click.option(
    "--retriever",
    default="dense",
    show_default=True,
    metavar="NAME",
    help="The retriever whose folder is made: dense (titles and abstracts), or profile (citing sentences).",
)
@with_options(_vector_options)
@max_bad("unusable given vectors")
@number(
    "--workers",
    None,
    "Processes that encode at once. Here each has its share of the processors; with --on each has one, or a GPU.  "
    "[default: 1 here; with --on one for each processor]",
)
@on
def encode(index: Path, retriever: str, workers: int | None, on: str | None, **options: Any) -> None:
    """Make the vectors of an existing index, for dense retrieval, or what another retriever searches.

    What is there is kept until the new folder is complete. Texts that the same model has encoded
    before are not encoded again. Repeat the command to resume an interrupted run, with any --on.
    """
    from citerec.retrieve.base import RETRIEVERS

    part = RETRIEVERS[retriever]
    dense = _dense_options(options, wanted=True)
    assert dense is not None
    if on and dense.vectors:
        raise click.UsageError("--on is about encoding: leave it out with --vectors PATH.")
    with working(on, workers, here=1) as (parallelism, on_progress):
        told = part.encode(index, dense, on_progress, parallelism)
    if told:
        say(told)
    else:
        _tell_vectors(_vectors_of(index, part.name))


@index.command(epilog="Example: citerec index info indexes/acm")
@_index_argument
@json_option
def info(index: Path, as_json: bool) -> None:
    """Show what an index holds: counts, years, fields, venues, settings, size."""
    from citerec.cli.tables import show_description
    from citerec.index.describe import describe
    from citerec.systems import Recipe, default_system

    description = describe(index)
    if as_json:
        system = default_system(description.path)
        settings = Recipe.load(system).whole().to_json()
        print_json({**description.to_json(), "default_system": system, "default_settings": settings})
    else:
        show_description(description)


@index.command(epilog="Example: citerec index verify indexes/acm")
@_index_argument
def verify(index: Path) -> None:
    """Check that store, words, vectors and manifest agree, and that no file has been damaged."""
    from citerec.index.describe import verify as faults_of

    with progress_bar() as on_progress:
        faults = faults_of(index, on_progress)
    if not faults:
        say(f"{index}: whole. Store, words, vectors and manifest agree.")
        return
    for fault in faults:
        note(f"- {fault}")
    raise CiterecError(
        f"{index} is damaged: {len(faults)} fault(s)", f"Build it again: citerec index build … --out {index}"
    )


@index.command("list", epilog="Example: citerec index list")
@click.argument("folder", default=INDEXES, type=PATH)
def list_indexes(folder: Path) -> None:
    """List the indexes in FOLDER (by default indexes/)."""
    from citerec.index.describe import list_indexes as listed

    if not folder.is_dir() and folder != INDEXES:
        raise click.BadParameter(f"there is no folder {folder}", param_hint="FOLDER")
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


_VECTOR_NAMES = ("model", "vectors", "max_tokens", "backend")


def _dense_options(
    options: dict[str, Any], *, wanted: bool = False, before: Path | None = None
) -> "DenseOptions | None":
    """Removes the options about vectors and returns them; None if none was given, unless vectors are `wanted`.

    If vectors of the same model are there `before`, their options are the defaults.
    """
    from citerec.index.vectors.build import DenseOptions, renewal
    from citerec.index.vectors.vectors import Asked, has_vectors
    from citerec.models.find import DEFAULT_ENCODER

    context, given = click.get_current_context(), click.core.ParameterSource.COMMANDLINE
    taken = {name: options.pop(name) for name in _VECTOR_NAMES}
    named = [name for name in _VECTOR_NAMES if context.get_parameter_source(name) == given]
    if not named and not wanted and not taken["model"]:
        return None
    known = get_args(Asked)
    kinds = [value for value in taken["vectors"] if value in known]
    taken["vectors"] = tuple(path_of(value) for value in taken["vectors"] if value not in known)
    old = renewal(before) if before and has_vectors(before) else None
    if old and taken["model"] in (None, old.model):
        taken |= {name: getattr(old, name) for name in ("model", "max_tokens", "backend") if name not in named}
        kinds = kinds or [old.kind]
    if taken["vectors"] and not taken["model"]:
        raise click.UsageError("--vectors PATH needs --model: name what made them, for it has to encode the queries.")
    taken["model"] = taken["model"] or DEFAULT_ENCODER
    return DenseOptions(**taken, kind=kinds[-1] if kinds else "auto", max_bad=options["max_bad"])


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
    from citerec.index.generations import generation_of
    from citerec.index.manifest import DENSE
    from citerec.index.vectors.vectors import has_vectors

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
    from citerec.index.describe import vectors_beside

    for folder, made in vectors_beside(path):
        if made["store"] != manifest.fingerprint:
            note(
                f"The vectors of {folder.name} were made for the papers before. Bring them up to date: "
                f"citerec index encode {path} --retriever {folder.name}"
            )
