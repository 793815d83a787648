"""`citerec diagnostics`: diagnostic sets."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import note, output
from citerec.cli.options import (
    PATH,
    address_option,
    index_option,
    on,
    one_of,
    reading,
    seed,
    with_options,
    work_option,
    working,
)
from citerec.cli.review import review
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.files.text import counted


@click.group(epilog="Example: citerec diagnostics list")
def diagnostics() -> None:
    """Diagnostic sets: contexts in classes, to measure recommenders class by class."""


diagnostics.add_command(review)


@diagnostics.command("list", epilog="Example: citerec diagnostics list")
def list_sets() -> None:
    """List the sets, and the families that each has."""
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


@diagnostics.command(epilog="Example: citerec diagnostics show demo/location")
@click.argument("identifier", metavar="ID")
def show(identifier: str) -> None:
    """Show a set, or one family of it: conditions, bounds, classes, and a context of each class.

    ID is the name of a set (demo), a family of one (demo/location), or a family of the demo set
    (location).
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


_labelling = [
    click.option("--out", required=True, metavar="NAME", help="Name of the set below diagnostics/, or a path."),
    click.option(
        "--spacy-model", metavar="NAME|FOLDER", help="Model that tags parts of speech.  [default: en_core_web_sm]"
    ),
    one_of(
        "--field-shares",
        ["corpus", "published"],
        "What decides which fields are low-resource: their shares of this corpus, or the benchmark's list.",
    ),
    click.option("--conditions/--no-conditions", default=True, help="Hold each family's conditions constant."),
]


@diagnostics.command(epilog="Example: citerec diagnostics label contexts.jsonl --index indexes/acm --out acm")
@click.argument("contexts", type=PATH)
@index_option("Index of the corpus that they cite")
@with_options(_labelling)
def label(contexts: Path, index: Path, out: str, spacy_model: str | None, **options: Any) -> None:
    """Make a diagnostic set from CONTEXTS: label each with every stratum that the data allow.

    CONTEXTS is a JSON Lines file (docs/formats.md). The output shows the classes of each family, and
    which of them have too few contexts.
    """
    from citerec.cli.sets import show_made
    from citerec.contexts.read import read_contexts
    from citerec.diagnostics.label import label_contexts
    from citerec.diagnostics.sets import SET, place_for, write_labelled
    from citerec.index.manifest import manifest_and_store

    place = place_for(out)
    SET.check_place(place)
    manifest, store = manifest_and_store(index)
    read = list(read_contexts(contexts, cited=True))
    model = _tagger(spacy_model)
    with progress_bar() as on_progress:
        labelled = label_contexts(
            read,
            store,
            model=model,
            on_progress=lambda done: on_progress("labelling", done, len(read)),
            **options,
        )
    if labelled.outside == len(read):
        raise InputError(
            f"no cited paper of any context is in {index}", "Give the index of the corpus that they cite: --index"
        )
    written = write_labelled(place, contexts, labelled, manifest)
    show_made(output(), place, written)
    _note_no_model(model)
    if labelled.outside:
        note(f"{counted(labelled.outside, 'context')}: no cited paper is in {index}.")


@diagnostics.command(
    epilog="Example: citerec diagnostics build --papers s2ag/papers --citations s2ag/citations "
    "--s2orc s2ag/s2orc --out mine"
)
@address_option("--papers", multiple=True, required=True, help="S2AG's papers; may be repeated.")
@address_option("--s2orc", multiple=True, help="S2ORC full texts, v1 or v2; may be repeated.")
@address_option("--from", "from_contexts", metavar="FILE", help="Contexts instead of full texts.")
@address_option("--citations", multiple=True, help="S2AG's citations, which have intents; may be repeated.")
@with_options(_labelling)
@seed
@click.option(
    "--quota",
    "quotas",
    multiple=True,
    metavar="[FAMILY=]N",
    help="Contexts for each class of a cell, of all families or of one; may be repeated.  [default: 1]",
)
@click.option(
    "--oversample",
    type=click.FloatRange(1, 1000),
    default=10 / 3,
    show_default="ten for three",
    help="Papers sampled for each context wanted.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 12),
    default=3,
    help="How often to sample for classes that are not full; each round samples twice as many papers.",
)
@click.option("--groups/--single", default=False, help="Take sentences with several citations too.")
@click.option(
    "--store",
    envvar="CITEREC_STORE",
    metavar="ADDRESS",
    help="Keep papers, texts and contexts in a database, such as mongodb://HOST/DATABASE; by default in a file.",
)
@with_options(reading("unreadable records"))
@on
@work_option
def build(
    papers: tuple[Path, ...],
    s2orc: tuple[Path, ...],
    from_contexts: Path | None,
    citations: tuple[Path, ...],
    out: str,
    quotas: tuple[str, ...],
    groups: bool,
    spacy_model: str | None,
    workers: int | None,
    on: str | None,
    **options: Any,
) -> None:
    """Build a diagnostic set from papers and full texts.

    Cited papers are sampled by field, years and citation count; usable sentences that cite them are
    taken from the full texts; each class of each cell gets its share, and no cited paper is used
    twice. The datasheet lists every step. Papers, texts and citations may be at addresses such as
    s3://bucket/papers. Repeat the command to resume an interrupted run, with another --on too.
    """
    from dataclasses import replace

    from citerec.cli.sets import show_made
    from citerec.diagnostics.build import BuildOptions, Sources, build_set
    from citerec.diagnostics.sets import SET, place_for, reviews_of

    if bool(s2orc) == bool(from_contexts):
        raise click.UsageError("give full texts with --s2orc, or contexts with --from")
    place = place_for(out)
    SET.check_place(place)
    per_class, quota = _quotas(quotas)
    model = _tagger(spacy_model)
    settings = BuildOptions(quota=quota, per_class=per_class, single=not groups, model=model, **options)
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
            raise click.BadParameter(
                f"{one!r} is not a quota: write --quota 2, or --quota length=2", param_hint="--quota"
            )
        if separator:
            by_family[family] = int(number)
        else:
            per_class = int(number)
    if not per_class and not any(by_family.values()):
        raise click.BadParameter("nothing is wanted: give a number from 1", param_hint="--quota")
    return per_class, by_family


def _tagger(spacy_model: str | None) -> str | None:
    """The tagging model: the given one, or the default one if it is installed."""
    from citerec.diagnostics.sentences import DEFAULT_MODEL, is_installed

    return spacy_model or (DEFAULT_MODEL if is_installed(DEFAULT_MODEL) else None)


def _note_no_model(model: str | None) -> None:
    from citerec.diagnostics.sentences import DEFAULT_MODEL, HOW_TO_GET

    if model is None:
        note(f"There is no spaCy model {DEFAULT_MODEL}: parts of speech are not labelled. Get it with {HOW_TO_GET}")
