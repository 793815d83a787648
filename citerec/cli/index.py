"""`citerec index`: builds and maintains indexes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import note, print_json, say
from citerec.cli.index_push import check_url, push, pushed_to
from citerec.cli.index_told import tell, tell_changed, tell_old_vectors, tell_scores, tell_vectors
from citerec.cli.options import (
    ADDRESS,
    PATH,
    PartsOption,
    address_option,
    index_option,
    json_option,
    max_bad,
    number,
    on,
    one_of,
    path_option,
    with_options,
    workers,
)
from citerec.files.places import INDEXES
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.retrieve.dense.build import DenseOptions

_SUSPICIOUS = 0.8  # some releases of Semantic Scholar lacked most of their rows
_MANY = 1_000_000
_DATASETS = ("papers", "abstracts", "tldrs", "citations")


def _formats() -> dict[str, str]:
    from citerec.corpus.base import FORMATS

    return {"formats": ", ".join(FORMATS)}


def _backends() -> dict[str, str]:
    from citerec.models.encoder import ENCODERS

    return {"backends": ", ".join(ENCODERS)}


_build_options = [
    click.option(
        "--format",
        "format_name",
        cls=PartsOption,
        parts=_formats,
        metavar="NAME",
        help="Format of the files, by default recognised: {formats}.",
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
        help="Encoder of papers and queries: a folder or a name.  [default: all-MiniLM-L6-v2]",
    ),
    path_option(
        "--vectors",
        multiple=True,
        metavar="PATH",
        help="Vectors that --model made elsewhere, in place of encoding: a folder with vectors.npy and ids.npy, or "
        "S2AG's embeddings-specter_v2; may be repeated.",
    ),
    one_of(
        "--kind",
        ["auto", "flat", "ivfsq", "ivfpq", "hnsw"],
        "Kind of FAISS index; auto chooses by the number of vectors.",
    ),
    number("--max-tokens", 192, "How many tokens of a paper's text are encoded.", least=8),
    click.option(
        "--backend",
        cls=PartsOption,
        parts=_backends,
        default="torch",
        metavar="NAME",
        help="Backend that encodes the papers, and later the queries: {backends}. ONNX Runtime is for CPUs: onnx gives "
        "the same vectors as torch, onnx-int8 has 8-bit weights.",
    ),
]


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
    help="Index abstracts as a field of their own too, so that lucene.weights.abstract can weight them. Lucene then "
    "takes half as much time again.",
)
@click.option(
    "--store",
    metavar="ADDRESS",
    help="Keep the records in a MongoDB database, mongodb://HOST/DATABASE, not in a file of the index. Several builds "
    "from the same sources can fill it at once.",
)
@one_of(
    "--engine",
    ["lucene", "faiss", "qdrant"],
    "faiss makes vectors too, for dense retrieval; qdrant does so, and then pushes the index to --url. Lucene is "
    "always built: it takes seconds, and filters, reasons and fusion need it.",
)
@click.option("--url", metavar="ADDRESS", help="With --engine qdrant: where to, such as http://HOST:6333/NAME.")
@with_options(_vector_options)
def build(
    sources: tuple[Path, ...],
    out: Path,
    engine: str,
    *,
    url: str | None,
    workers: int | None,
    on: str | None,
    **options: Any,
) -> None:
    """Read SOURCES and build an index of their papers.

    A source is a folder of Semantic Scholar shards (papers/, abstracts/, tldrs/, citations/; plain or
    gzip), a bibliography (BibTeX, RIS, or CSL-JSON as Zotero and pandoc write it), JSON Lines or CSV;
    also at an address such as s3://bucket/papers.
    An index that is already at --out is kept until the new one is ready. Repeat the command to resume
    an interrupted build.
    """
    from citerec.files.parallel import workers_on
    from citerec.files.progress import progress_bar
    from citerec.retrieve.bm25s.build import renew_scores
    from citerec.retrieve.index import DENSE, BuildOptions, build_index
    from citerec.retrieve.lucene.archive import make_archive

    check_url(engine, url)
    dense = _dense_options(options, wanted=engine != "lucene")
    before = _papers_before(out)
    with workers_on(on, workers) as parallelism, progress_bar() as on_progress:
        manifest = build_index(sources, out, BuildOptions(**options, workers=parallelism, dense=dense), on_progress)
        scores = renew_scores(out, on_progress) if dense else None
        on_progress("preparing Java", 0, 1)
        make_archive(out)
    tell(out, manifest, "built")
    if dense:
        tell_vectors(out / DENSE)
    tell_scores(scores)
    tell_old_vectors(out, manifest)
    if manifest.counts.papers < _SUSPICIOUS * before:
        note(f"The previous index had {before:,} papers: are the sources complete?")
    if url:
        from citerec.retrieve.qdrant.push import PushOptions

        pushed_to(out, url, PushOptions())


@index.command(epilog="Example: citerec index add new.bib --index indexes/mine")
@click.argument("sources", nargs=-1, type=ADDRESS)
@index_option("The index to add to")
@with_options(_build_options)
@with_options(_vector_options)
def add(
    sources: tuple[Path, ...], index_path: Path | None, workers: int | None, on: str | None, **options: Any
) -> None:
    """Add the papers of SOURCES to an index, or update them.

    Papers are matched by id; of two records the later one counts. The result is that of a build
    from all sources together. If the index has vectors, new and changed papers are encoded as the
    rest was; if its vectors were given, by the model that made them, unless --vectors has more of
    that model. --model with another model makes all vectors anew.
    """
    if not sources and not options["citances"]:
        raise click.UsageError("Nothing to add: give SOURCES, or --citances FILE.")
    from citerec.files.parallel import workers_on
    from citerec.files.progress import progress_bar
    from citerec.retrieve.index import DENSE, BuildOptions, add_to_index
    from citerec.retrieve.manifest import find_index

    path = find_index(index_path)
    dense = _dense_options(options, wanted=bool(_given_names()), before=path / DENSE)
    _change(path)
    with workers_on(on, workers) as parallelism, progress_bar() as on_progress:
        manifest = add_to_index(sources, path, BuildOptions(**options, workers=parallelism, dense=dense), on_progress)
    tell_changed(path, manifest)


@index.command(epilog="Example: citerec index update corpora/s2 --index indexes/s2")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=PATH)
@index_option("The index to bring up to date")
@max_bad("unreadable records")
@workers
@on
def update(
    folders: tuple[Path, ...], index_path: Path | None, workers: int | None, on: str | None, **options: Any
) -> None:
    """Bring an index up to date with the updates of the corpus that it was built from.

    FOLDER is that corpus; it may be left out. Files that the index has read already are not read
    again. What changed is replaced, and what was deleted is removed. It takes time in proportion to
    what changed. New and changed papers are encoded as by `index add`.
    """
    from citerec.files.parallel import workers_on
    from citerec.files.progress import progress_bar
    from citerec.retrieve.index import BuildOptions, update_index
    from citerec.retrieve.manifest import Manifest, find_index

    path = find_index(index_path)
    before = Manifest.read(path)
    _change(path)
    with workers_on(on, workers) as parallelism, progress_bar() as on_progress:
        after = update_index(folders, path, BuildOptions(**options, workers=parallelism), on_progress)
    if len(after.sources) == len(before.sources):
        say(f"{path} is up to date: there is nothing new to read.")
        return
    tell_changed(path, after)


@index.command(epilog="Example: citerec index remove 12 34 --index indexes/s2")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@path_option("--ids", "ids_file", metavar="FILE", help="A file with the id of a paper in each line.")
@index_option("The index to remove papers from")
def remove(ids: tuple[str, ...], ids_file: Path | None, index_path: Path | None) -> None:
    """Remove the papers with some ids from an index.

    Their abstracts and TLDRs are removed too, and sentences about them are no longer found. What they
    say of other papers stays. If a later update or `index add` has a record of such a paper, it comes
    back.
    """
    from citerec.files.progress import progress_bar
    from citerec.index import Index
    from citerec.retrieve.manifest import find_index

    if bool(ids) == bool(ids_file):
        raise click.UsageError("Give the ids of papers, or --ids FILE.")
    found = Index.open(find_index(index_path))
    before = len(found)
    _change(found.path)
    with progress_bar() as on_progress:
        found.remove(ids_file or ids, on_progress=on_progress)
    if len(found) == before:
        say(f"{found.path} has none of these papers.")
        return
    say(f"Removed: {counted(before - len(found), 'paper')}.")
    tell_changed(found.path, found.manifest)


@index.command(epilog="Example: citerec index encode indexes/acm --vectors ../shared/data/acm/minilm-l6 --model M")
@click.argument("path", metavar="[INDEX]", required=False, type=PATH)
@click.option(
    "--retriever",
    default="dense",
    show_default=True,
    metavar="NAME",
    help="The retriever whose folder is made: dense (titles and abstracts), profile (citing sentences), or bm25s "
    "(scores of words).",
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
def encode(path: Path | None, retriever: str, workers: int | None, on: str | None, **options: Any) -> None:
    """Make the vectors of an existing index, for dense retrieval, or what another retriever searches.

    With the vectors it makes scores of words (bm25s), which speed up the search for many contexts.
    What is there is kept until the new folder is complete. Texts that the same model has encoded
    before are not encoded again. Repeat the command to resume an interrupted run, with any --on.
    """
    from citerec.files.parallel import HERE, workers_on
    from citerec.files.progress import progress_bar
    from citerec.retrieve.base import RETRIEVERS
    from citerec.retrieve.bm25s.build import renew_scores
    from citerec.retrieve.index import DENSE
    from citerec.retrieve.manifest import find_index

    if on and options["vectors"]:
        raise click.UsageError("--on is about encoding: leave it out with --vectors.")
    found = find_index(path)
    part = RETRIEVERS[retriever]
    dense = _dense_options(options, wanted=True)
    assert dense is not None
    with workers_on(on, workers) as parallelism, progress_bar() as on_progress:
        told = part.encode(found, dense, on_progress, parallelism or HERE)
        scores = renew_scores(found, on_progress) if retriever == DENSE else None
    if told:
        say(told)
    else:
        tell_vectors(found / part.name)
    tell_scores(scores)


@index.command(epilog="Example: citerec index info indexes/acm")
@click.argument("path", metavar="[INDEX]", required=False, type=PATH)
@json_option
def info(path: Path | None, as_json: bool) -> None:
    """Show what an index holds: counts, years, fields, venues, settings, size."""
    from citerec.cli.tables import show_description
    from citerec.retrieve.describe import describe
    from citerec.retrieve.manifest import find_index
    from citerec.systems import Recipe, default_system

    description = describe(find_index(path))
    if as_json:
        system = default_system(description.path)
        settings = Recipe.load(system).whole().to_json()
        print_json({**description.to_json(), "default_system": system, "default_settings": settings})
    else:
        show_description(description)


@index.command(epilog="Example: citerec index verify indexes/acm")
@click.argument("path", metavar="[INDEX]", required=False, type=PATH)
def verify(path: Path | None) -> None:
    """Check that store, Lucene and vectors agree, and that no file has been damaged."""
    from citerec.errors import CiterecError
    from citerec.files.progress import progress_bar
    from citerec.retrieve.manifest import find_index
    from citerec.retrieve.verify import verify as faults_of

    found = find_index(path)
    with progress_bar() as on_progress:
        faults = faults_of(found, on_progress)
    if not faults:
        say(f"{found}: whole. Store, Lucene, vectors and manifest agree.")
        return
    for fault in faults:
        note(f"- {fault}")
    raise CiterecError(
        f"{found} is damaged: {len(faults)} fault(s)", f"Build it again: citerec index build … --out {found}"
    )


@index.command("list", epilog="Example: citerec index list")
@click.argument("folder", default=INDEXES, type=PATH)
def list_indexes(folder: Path) -> None:
    """List the indexes in FOLDER (by default indexes/)."""
    from citerec.cli.tables import show_list
    from citerec.retrieve.describe import list_indexes as listed

    if not folder.is_dir() and folder != INDEXES:
        raise click.BadParameter(f"there is no folder {folder}", param_hint="FOLDER")
    if found := listed(folder):
        show_list(found)
    else:
        say(f"No index in {folder}/. Make one: citerec index build SOURCE… --out {folder}/NAME")


def _change(path: Path) -> None:
    """Prepares for a change of an index: of few papers, what Java has to do takes seconds."""
    from citerec.retrieve.lucene.jvm import run_briefly
    from citerec.retrieve.manifest import Manifest

    if Manifest.read(path).counts.papers < _MANY:
        run_briefly()


def _papers_before(path: Path) -> int:
    from citerec.errors import IndexUnusableError
    from citerec.retrieve.manifest import Manifest

    try:
        return Manifest.read(path).counts.papers
    except IndexUnusableError:
        return 0


index.add_command(push)

_VECTOR_NAMES = ("model", "vectors", "kind", "max_tokens", "backend")


def _given_names() -> list[str]:
    """The options about vectors that are on the command line."""
    context, given = click.get_current_context(), click.core.ParameterSource.COMMANDLINE
    return [name for name in _VECTOR_NAMES if context.get_parameter_source(name) == given]


def _dense_options(options: dict[str, Any], *, wanted: bool, before: Path | None = None) -> "DenseOptions | None":
    """Removes the options about vectors and returns them; None if no vectors are wanted.

    If vectors of the same model are there `before`, their options are the defaults.
    """
    from citerec.models.find import DEFAULT_ENCODER
    from citerec.retrieve.dense.build import DenseOptions, renewal
    from citerec.retrieve.dense.manifest import has_vectors

    taken = {name: options.pop(name) for name in _VECTOR_NAMES}
    given = _given_names()
    if not wanted:
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} is about vectors: add --engine faiss.")
        return None
    old = renewal(before) if before and has_vectors(before) else None
    if old and taken["model"] in (None, old.model):
        taken |= {name: getattr(old, name) for name in _VECTOR_NAMES if name not in (*given, "vectors")}
    if taken["vectors"] and not taken["model"]:
        raise click.UsageError("--vectors needs --model: name what made them, for it has to encode the queries.")
    taken["model"] = taken["model"] or DEFAULT_ENCODER
    return DenseOptions(**taken, max_bad=options["max_bad"])
