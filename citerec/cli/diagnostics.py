"""`citerec diagnostics`: diagnostic sets."""

from pathlib import Path

import click

from citerec.cli.console import contexts as in_words
from citerec.cli.console import notes, output
from citerec.places import DIAGNOSTICS

_PATH = click.Path(path_type=Path)


@click.group(epilog="Example: citerec diagnostics list")
def diagnostics() -> None:
    """Diagnostic sets: contexts in classes, by which recommenders are measured."""


@diagnostics.command("list", epilog="Example: citerec diagnostics list")
def list_sets() -> None:
    """List the sets, and the families that each has."""
    from citerec.cli.diagnostics_tables import show_sets
    from citerec.diagnostics.sets import SetManifest
    from citerec.diagnostics.sets import list_sets as listed
    from citerec.errors import InputError

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
    from citerec.cli.diagnostics_tables import show_family, show_set
    from citerec.diagnostics.families import families_named
    from citerec.diagnostics.sets import DEFAULT_SET, find_set, parse_id, read_set
    from citerec.errors import InputError

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


@diagnostics.command(epilog="Example: citerec diagnostics label contexts.jsonl --index indexes/acm --out acm")
@click.argument("contexts", type=_PATH)
@click.option("--index", "index_path", type=_PATH, help="The corpus that they cite; the only index if not said.")
@click.option("--out", required=True, metavar="NAME", help="Name of the set below diagnostics/, or a path.")
@click.option("--spacy-model", metavar="NAME|FOLDER", help="What tags parts of speech.  [default: en_core_web_sm]")
@click.option(
    "--field-shares",
    type=click.Choice(["corpus", "published"]),
    default="corpus",
    show_default=True,
    help="What decides which fields are low-resource: their shares of this corpus, or the benchmark's list.",
)
@click.option(
    "--conditions/--no-conditions",
    default=True,
    help="Hold constant what each family says.  [default: on]",
)
def label(
    contexts: Path,
    index_path: Path | None,
    out: str,
    spacy_model: str | None,
    field_shares: str,
    conditions: bool,
) -> None:
    """Make a diagnostic set of CONTEXTS: label each by every stratum that the data allow.

    CONTEXTS is a JSON Lines file (docs/formats.md). What is said of each family: its classes, and
    which of them have too few contexts.
    """
    from citerec.cli.diagnostics_tables import show_labelled
    from citerec.cli.progress import progress_bar
    from citerec.contexts.read import read_contexts
    from citerec.diagnostics.label import label_contexts
    from citerec.diagnostics.sentences import DEFAULT_MODEL, HOW_TO_GET, is_installed
    from citerec.diagnostics.sets import SET, place_for, write_set
    from citerec.errors import InputError
    from citerec.retrieve.index import open_store
    from citerec.retrieve.manifest import Manifest, find_index

    place = place_for(out)
    SET.check_place(place)
    index = find_index(index_path)
    manifest = Manifest.read(index)
    read = list(read_contexts(contexts, cited=True))
    model = spacy_model or (DEFAULT_MODEL if is_installed(DEFAULT_MODEL) else None)
    with progress_bar() as progress:
        labelled = label_contexts(
            read,
            open_store(index),
            model=model,
            field_shares="published" if field_shares == "published" else "corpus",
            conditions=conditions,
            told=lambda done: progress("labelling", done, len(read)),
        )
    if labelled.outside == len(read):
        raise InputError(
            f"no cited paper of any context is in {index}", "Give the index of the corpus that they cite: --index"
        )
    written = write_set(place, contexts, labelled, manifest)
    show_labelled(output(), place, written, is_default_place=place.parent == DIAGNOSTICS)
    if model is None:
        notes().print(
            f"There is no spaCy model {DEFAULT_MODEL}: parts of speech are not labelled. Get it with {HOW_TO_GET}",
            markup=False,
        )
    if labelled.outside:
        notes().print(f"{in_words(labelled.outside)}: no cited paper is in {index}.", markup=False)
