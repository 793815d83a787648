"""`citerec diagnostics`: diagnostic sets."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from citerec.cli.commands import UsageError, group
from citerec.cli.console import note, output
from citerec.cli.options import (
    Address,
    IndexPath,
    MaxBad,
    On,
    Seed,
    Splitter,
    Switch,
    Work,
    Workers,
    at_least,
    index_of,
    working,
)
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.files.text import counted

diagnostics = group(
    "diagnostics",
    "Diagnostic sets: contexts in classes, to measure recommenders class by class.\n\n"
    "Example: citerec diagnostics list",
)
diagnostics.command("citerec.cli.review:review", name="review")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Labelling:
    """How contexts are labelled.

    Attributes:
        spacy_model: Model that tags parts of speech.  [default: en_core_web_sm]
        field_shares: What decides which fields are low-resource: their shares of this corpus, or the benchmark's list.
        conditions: Hold each family's conditions constant.
    """

    spacy_model: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None
    field_shares: Literal["corpus", "published"] = "corpus"
    conditions: Switch = True


_Out = Annotated[str, Parameter(name="--out", metavar="NAME", help="Name of the set below diagnostics/, or a path.")]


@diagnostics.command(name="list")
def list_sets() -> None:
    """List the sets, and the families that each has.

    Example: citerec diagnostics list
    """
    from citerec.cli.sets import show_sets
    from citerec.diagnostics.sets import SetManifest
    from citerec.diagnostics.sets import list_sets as listed

    found: dict[Path, SetManifest | str] = {}
    for path in listed().values():
        try:
            found[path] = SetManifest.read(path)
        except InputError as error:
            found[path] = error.message
    show_sets(output(), found)


@diagnostics.command
def show(identifier: Annotated[str, Parameter(name="ID")], /) -> None:
    """Show a set, or one family of it: conditions, bounds, classes, and a context of each class.

    ID is the name of a set (demo), a family of one (demo/location), or a family of the demo set
    (location).

    Example: citerec diagnostics show demo/location

    Args:
        identifier: The set or the family.
    """
    from citerec.cli.sets import show_family, show_set
    from citerec.diagnostics.families import families_named
    from citerec.diagnostics.sets import DEFAULT_SET, find_set, parse_id, read_set

    name, family = parse_id(identifier)
    found = read_set(find_set(name or DEFAULT_SET))
    if family and family not in found.manifest.families:
        families_named([family])
    if family is None:
        show_set(output(), found, identifier)
    elif family in found.manifest.families:
        show_family(output(), found, family, identifier)
    else:
        raise InputError(
            f"the set {found.manifest.name} has no family {family!r}", f"It has: {', '.join(found.manifest.families)}."
        )


@diagnostics.command
def label(contexts: Path, /, *, index: IndexPath = None, out: _Out, labelling: Labelling = Labelling()) -> None:
    """Make a diagnostic set from CONTEXTS: label each with every stratum that the data allow.

    CONTEXTS is a JSON Lines file (docs/formats.md). The output shows the classes of each family, and
    which of them have too few contexts.

    Example: citerec diagnostics label contexts.jsonl --index indexes/acm --out acm

    Args:
        contexts: The contexts.
    """
    from citerec.cli.sets import show_made
    from citerec.contexts.read import read_contexts
    from citerec.diagnostics.label import label_contexts
    from citerec.diagnostics.sets import SET, place_for, write_labelled
    from citerec.index.manifest import manifest_and_store

    path, place = index_of(index), place_for(out)
    SET.check_place(place)
    manifest, store = manifest_and_store(path)
    read = list(read_contexts(contexts, cited=True))
    model = _tagger(labelling.spacy_model)
    with progress_bar() as on_progress:
        labelled = label_contexts(
            read,
            store,
            model=model,
            on_progress=lambda done: on_progress("labelling", done, len(read)),
            field_shares=labelling.field_shares,
            conditions=labelling.conditions,
        )
    if labelled.outside == len(read):
        raise InputError(
            f"no cited paper of any context is in {path}", "Give the index of the corpus that they cite: --index"
        )
    written = write_labelled(place, contexts, labelled, manifest)
    show_made(output(), place, written)
    _note_no_model(model)
    if labelled.outside:
        note(f"{counted(labelled.outside, 'context')}: no cited paper is in {path}.")


@diagnostics.command
def build(
    *,
    papers: tuple[Address, ...],
    s2orc: tuple[Address, ...] = (),
    from_contexts: Annotated[Address | None, Parameter(name="--from", metavar="FILE")] = None,
    citations: tuple[Address, ...] = (),
    out: _Out,
    labelling: Labelling = Labelling(),
    seed: Seed = 0,
    quotas: Annotated[tuple[str, ...], Parameter(name="--quota", metavar="[FAMILY=]N")] = (),
    oversample: Annotated[float, Parameter(validator=at_least(1, 1000), show_default="ten for three")] = 10 / 3,
    rounds: Annotated[int, Parameter(validator=at_least(1, 12))] = 3,
    groups: Annotated[bool, Parameter(negative="--single")] = False,
    store: Annotated[str | None, Parameter(metavar="ADDRESS", env_var="CITEREC_STORE")] = None,
    split: Splitter = "pysbd",
    max_bad: MaxBad = 0.05,
    workers: Workers = None,
    on: On = None,
    work: Work = None,
) -> None:
    """Build a diagnostic set from papers and full texts.

    Cited papers are sampled by field, years and citation count; usable sentences that cite them are
    taken from the full texts; each class of each cell gets its share, and no cited paper is used
    twice. The datasheet lists every step. Papers, texts and citations may be at addresses such as
    s3://bucket/papers. Repeat the command to resume an interrupted run, with another --on too.

    Example: citerec diagnostics build --papers s2ag/papers --citations s2ag/citations --s2orc s2ag/s2orc --out mine

    Args:
        papers: S2AG's papers; may be repeated.
        s2orc: S2ORC full texts, v1 or v2; may be repeated.
        from_contexts: Contexts instead of full texts.
        citations: S2AG's citations, which have intents; may be repeated.
        quotas: Contexts for each class of a cell, of all families or of one; may be repeated.  [default: 1]
        oversample: Papers sampled for each context wanted.
        rounds: How often to sample for classes that are not full; each round samples twice as many papers.
        groups: Take sentences with several citations too.
        store: Keep papers, texts and contexts in a database, such as mongodb://HOST/DATABASE; by default in a file.
    """
    from citerec.cli.sets import show_made
    from citerec.diagnostics.build.build import BuildOptions, Sources, build_set
    from citerec.diagnostics.sets import SET, place_for, reviews_of

    if bool(s2orc) == bool(from_contexts):
        raise UsageError("give full texts with --s2orc, or contexts with --from")
    place = place_for(out)
    SET.check_place(place)
    per_class, quota = _quotas(quotas)
    model = _tagger(labelling.spacy_model)
    settings = BuildOptions(
        quota=quota,
        per_class=per_class,
        single=not groups,
        model=model,
        field_shares=labelling.field_shares,
        conditions=labelling.conditions,
        seed=seed,
        oversample=oversample,
        rounds=rounds,
        store=store,
        split=split,
        max_bad=max_bad,
        work=work,
    )
    texts = (from_contexts,) if from_contexts else s2orc
    sources = Sources(papers, texts, citations, are_contexts=from_contexts is not None)
    with working(on, workers) as (parallelism, on_progress):
        manifest = build_set(place, sources, replace(settings, workers=parallelism), on_progress)
    show_made(output(), place, manifest)
    if reviews_of(place).is_dir():
        note(f"Its reviews were kept. Apply them: citerec diagnostics review {out} --apply")
    _note_no_model(model)


def _quotas(given: tuple[str, ...]) -> tuple[int, dict[str, int]]:
    per_class, by_family = 1, {}
    for one in given:
        family, separator, number = one.rpartition("=")
        if not number.isdecimal() or len(number) > 6:
            raise UsageError(f"{one!r} is not a quota: write --quota 2, or --quota length=2")
        if separator:
            by_family[family] = int(number)
        else:
            per_class = int(number)
    if not per_class and not any(by_family.values()):
        raise UsageError("nothing is wanted: give --quota a number from 1")
    return per_class, by_family


def _tagger(spacy_model: str | None) -> str | None:
    """The tagging model: the given one, or the default one if it is installed."""
    from citerec.diagnostics.sentences import DEFAULT_MODEL, is_installed

    return spacy_model or (DEFAULT_MODEL if is_installed(DEFAULT_MODEL) else None)


def _note_no_model(model: str | None) -> None:
    from citerec.diagnostics.sentences import DEFAULT_MODEL, HOW_TO_GET

    if model is None:
        note(f"There is no spaCy model {DEFAULT_MODEL}: parts of speech are not labelled. Get it with {HOW_TO_GET}")
