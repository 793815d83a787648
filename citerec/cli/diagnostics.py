"""`citerec diagnostics`: diagnostic sets."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from citerec.cli.commands import UsageError, group
from citerec.cli.console import note, output
from citerec.cli.options import Address, IndexPath, MaxBad, On, Tuning, Workers, index_of, working
from citerec.errors import InputError
from citerec.files.progress import progress_bar
from citerec.files.text import counted

diagnostics = group(
    "diagnostics",
    "Make, show and review diagnostic sets: contexts in classes.\n\nExample: citerec diagnostics show",
)
diagnostics.command("citerec.cli.review:review", name="review")


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """How contexts are labelled.

    Attributes:
        field_shares: What decides which fields are low-resource: corpus, their shares of this corpus; or published, the
            benchmark's list.
        conditions: Hold each family's conditions constant.
    """

    field_shares: Literal["corpus", "published"] = "corpus"
    conditions: bool = True


_SpacyModel = Annotated[
    str | None,
    Parameter(
        name="--spacy-model",
        metavar="NAME|FOLDER",
        help="Model that tags parts of speech.  [default: en_core_web_sm]",
    ),
]
_Out = Annotated[
    str, Parameter(name=("--out", "-o"), metavar="NAME", help="Name of the set below diagnostics/, or a path.")
]


@diagnostics.command
def show(identifier: Annotated[str | None, Parameter(name="ID")] = None, /) -> None:
    """Show a set, or one family of it: conditions, bounds, classes, and a context of each class.

    ID is the name of a set (demo), a family of one (demo/location), or a family of the demo set
    (location). Without it, all sets with their families are shown.

    Example: citerec diagnostics show demo/location

    Args:
        identifier: The set or the family.
    """
    from citerec.cli.sets import show_family, show_set, show_sets
    from citerec.diagnostics.families import families_named
    from citerec.diagnostics.sets import DEFAULT_SET, SetManifest, find_set, list_sets, parse_id, read_set

    if identifier is None:
        found_sets: dict[Path, SetManifest | str] = {}
        for path in list_sets().values():
            try:
                found_sets[path] = SetManifest.read(path)
            except InputError as error:
                found_sets[path] = error.message
        show_sets(output(), found_sets)
        return
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
def label(
    contexts: Path,
    /,
    *,
    index: IndexPath = None,
    out: _Out,
    spacy_model: _SpacyModel = None,
    tuning: Tuning = Tuning(),
) -> None:
    """Make a diagnostic set from CONTEXTS: label each with every stratum that the data allow.

    CONTEXTS is a JSON Lines file (docs/formats.md). The output shows the classes of each family, and
    which of them have too few contexts. Settings (-c): field_shares=published takes the benchmark's list of
    low-resource fields in place of this corpus's shares; conditions=false holds nothing constant.

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
    model, settings = _tagger(spacy_model), tuning.settings(LabelSettings).of(LabelSettings)
    with progress_bar() as on_progress:
        labelled = label_contexts(
            read,
            store,
            model=model,
            on_progress=lambda done: on_progress("labelling", done, len(read)),
            field_shares=settings.field_shares,
            conditions=settings.conditions,
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
    from_contexts: Annotated[Address, Parameter(name="--from", metavar="FILE")] = None,
    citations: tuple[Address, ...] = (),
    out: _Out,
    quotas: Annotated[tuple[str, ...], Parameter(name="--quota", metavar="[FAMILY=]N")] = (),
    spacy_model: _SpacyModel = None,
    store: Annotated[str | None, Parameter(metavar="ADDRESS", env_var="CITEREC_STORE")] = None,
    max_bad: MaxBad = 0.05,
    workers: Workers = None,
    on: On = None,
    tuning: Tuning = Tuning(),
) -> None:
    """Build a diagnostic set from papers and full texts.

    Cited papers are sampled by field, years and citation count; usable sentences that cite them are
    taken from the full texts; each class of each cell gets its share, and no cited paper is used
    twice. The datasheet lists every step. Papers, texts and citations may be at addresses such as
    s3://bucket/papers. Repeat the command to resume an interrupted run, with another --on too. Settings (-c): seed,
    oversample, rounds, single, split, field_shares, conditions, work (docs/diagnostics.md).

    Example: citerec diagnostics build --papers s2ag/papers --citations s2ag/citations --s2orc s2ag/s2orc --out mine

    Args:
        papers: S2AG's papers; may be repeated.
        s2orc: S2ORC full texts, v1 or v2; may be repeated.
        from_contexts: Contexts instead of full texts.
        citations: S2AG's citations, which have intents; may be repeated.
        quotas: Contexts for each class of a cell, of all families or of one; may be repeated.  [default: 1]
        store: Keep papers, texts and contexts in a database, such as mongodb://HOST/DATABASE; by default in a file.
    """
    from citerec.cli.sets import show_made
    from citerec.diagnostics.build import BuildOptions, Sources, build_set
    from citerec.diagnostics.sets import SET, place_for, reviews_of

    if bool(s2orc) == bool(from_contexts):
        raise UsageError("give full texts with --s2orc, or contexts with --from")
    place = place_for(out)
    SET.check_place(place)
    per_class, quota = _quotas(quotas)
    model = _tagger(spacy_model)
    settings = tuning.settings(BuildOptions, own=("per_class", "model", "store", "max_bad", "workers")).of(
        BuildOptions,
        quota=quota,
        per_class=per_class,
        model=model,
        store=store,
        max_bad=max_bad,
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
