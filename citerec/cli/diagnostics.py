"""Make, show and review diagnostic sets: contexts in classes.

Example: citerec diagnostics show
"""

import getpass
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from citerec.cli.console import counts_table, note, say, with_marker
from citerec.cli.options import Address, IndexPath, IntentTagger, Model, Out, Tuning, Work, intents_of, working
from citerec.contexts.read import read_contexts, write_queries
from citerec.diagnostics import families, review as reviewing, sets
from citerec.diagnostics.build import BuildOptions, Sources, build_set
from citerec.errors import InputError, UsageError
from citerec.evaluation.tables import Column, Table, headline, left, marked, right
from citerec.files.progress import progress_bar
from citerec.files.text import counted
from citerec.files.writing import beside, remove, write_failures
from citerec.index.manifest import find_index, manifest_and_store, open_store
from citerec.records import MARKER
from citerec.settings import DIAGNOSTICS


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """How contexts are labelled.

    Attributes:
        field_shares: What decides which fields are low-resource: corpus, their shares of this corpus; or published, the
            benchmark's list.
        conditions: Hold each family's conditions constant.
    """

    field_shares: families.FieldShares = "corpus"
    conditions: bool = True


_TAGGING = "Model that tags parts of speech.  [default: en_core_web_sm]"
_SpacyModel = Annotated[Model, Parameter(name="--spacy-model", help=_TAGGING)]
_NAME = "Name of the set below diagnostics/, or a path."
_Out = Annotated[str, Parameter(name=("--out", "-o"), metavar="NAME", help=_NAME)]


def show(identifier: Annotated[str | None, Parameter(name="ID")] = None, /) -> None:
    """Show a set, or one family of it: conditions, bounds, classes, and a context of each class.

    ID is the name of a set (demo), a family of one (demo/location), or a family of the demo set
    (location). Without it, all sets with their families are shown.

    Example: citerec diagnostics show demo/location

    Args:
        identifier: The set or the family.
    """
    if identifier is None:
        say(_table_of_sets(), "\nMeasure a system on one: citerec eval --diagnostic demo/location")
        return
    name, family = sets.parse_id(identifier)
    diagnostic_set = sets.read_set(sets.find_set(name or sets.DEFAULT_SET))
    if family is None:
        say(*_facts_of(diagnostic_set.manifest), *_parts_of(diagnostic_set.manifest))
    elif family in diagnostic_set.manifest.families:
        say(*_examples_of(diagnostic_set, family, identifier))
    else:
        remedy = f"It has: {', '.join(diagnostic_set.manifest.families)}."
        raise InputError(f"the set {diagnostic_set.manifest.name} has no family {family!r}", remedy)


def label(
    contexts: Path,
    /,
    *,
    index: IndexPath = None,
    out: _Out,
    spacy_model: _SpacyModel = None,
    tagger: IntentTagger = None,
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
    how = tuning.settings(LabelSettings).of(LabelSettings)
    path, place = find_index(index), sets.place_for(out)
    sets.SET.check_place(place)
    if (place / sets.RESERVES).exists():
        raise InputError(f"{place} is a set that was built, with its reserves", "Give another name: --out NAME")
    manifest, store = manifest_and_store(path)
    read = intents_of(read_contexts(contexts, cited=True), tagger)
    model = spacy_model or families.installed_model()
    with progress_bar() as on_progress:
        labelled = families.label_contexts(read, store, model=model, on_progress=on_progress, **asdict(how))
    if labelled.outside == len(read):
        remedy = "Give the index of the corpus that they cite: --index"
        raise InputError(f"no cited paper of any context is in {path}", remedy)
    _tell(place, sets.write_labelled(place, contexts, labelled, manifest), model)
    if labelled.outside:
        note(f"{counted(labelled.outside, 'context')}: no cited paper is in {path}.")


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
    work: Work = Work(),
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
    settings = tuning.settings(BuildOptions, own=("per_class", "quota", "model", "store", "max_bad", "workers"))
    if bool(s2orc) == bool(from_contexts):
        raise UsageError("give full texts with --s2orc, or contexts with --from")
    place = sets.place_for(out)
    sets.SET.check_place(place)
    per_class, quota = _quotas(quotas)
    model = spacy_model or families.installed_model()
    options = settings.of(
        BuildOptions, quota=quota, per_class=per_class, model=model, store=store, max_bad=work.max_bad
    )
    texts = (from_contexts,) if from_contexts else s2orc
    sources = Sources(papers, texts, citations, are_contexts=from_contexts is not None)
    with working(work.on, work.workers) as (parallelism, on_progress):
        manifest = build_set(place, sources, replace(options, workers=parallelism), on_progress)
    _tell(place, manifest, model)
    if sets.reviews_of(place).is_dir():
        note(f"Its reviews were kept. Apply them: citerec diagnostics review {out} --apply")


def export(what: Annotated[str, Parameter(name="SET|FILE")], /, *, index: IndexPath = None, out: Out) -> None:
    """Write a set, or a file of contexts, and the papers of an index as a folder of BEIR.

    Systems that read BEIR can answer its queries, which are the sentences with <REF>; citerec eval --contexts FOLDER
    reads it too. Score their runs by class: citerec eval --set SET --run run.txt

    Example: citerec diagnostics export demo --index indexes/demo --out demo-beir

    Args:
        what: A set by name or folder, or a file of contexts.
        out: The folder to make.
    """
    path = Path(what)
    contexts = read_contexts(path, cited=True) if path.is_file() else sets.read_set(sets.find_set(what))
    if out.exists():
        raise InputError(f"{out} is there already", "Give another --out, or remove it.")
    partial = beside(out, "writing")
    remove(partial)
    with closing(open_store(find_index(index))) as store, write_failures(out):
        write_queries(partial, contexts, store.all_papers())
        partial.rename(out)
    say(f"{out}: the papers of the index as documents, contexts as queries.")


def _quotas(values: tuple[str, ...]) -> tuple[int, dict[str, int]]:
    per_class, by_family = 1, {}
    for one in values:
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


def _table_of_sets() -> Table:
    """All sets: one line per family, by its id."""
    table = Table([Column("id", style="strong", wrap=False), *right("contexts", format=","), *left("classes")])
    for path in sets.list_sets().values():
        try:
            manifest = sets.SetManifest.read(path)
        except InputError as error:
            table.rows.append([path.name, "", marked(error.message, "worse")])
            continue
        table.rows.extend([f"{manifest.name}/{name}", *_classes(one)] for name, one in manifest.families.items())
    return table


def _facts_of(manifest: sets.SetManifest) -> Iterator[Any]:
    """Where a set comes from, and its bounds."""
    facts = {
        "corpus": f"{manifest.corpus_papers:,} papers",
        "strata": f"version {manifest.strata}, by citerec {manifest.citerec}",
        "parts of speech": manifest.spacy_model or "not labelled: no spaCy model",
    }
    if words := manifest.bounds.length:
        facts["medium length"] = f"{words.low:.1f} to {words.high:.1f} words"
    if field := manifest.bounds.field:
        line = "less than 3 % of this corpus" if field.decided_by == "corpus" else "the benchmark's list"
        facts["low-resource fields"] = f"{len(field.low_resource)} ({line})"
    yield headline(manifest.name, f"{counted(manifest.contexts, 'context')} of {manifest.source}")
    yield Table(left("", ""), list(facts.items()), headed=False)


def _examples_of(diagnostic_set: sets.DiagnosticSet, name: str, identifier: str) -> Iterator[Any]:
    """A family of a set: its conditions, its classes, a context of each."""
    family, shown = diagnostic_set.manifest.families[name], sets.examples(diagnostic_set.contexts, name)
    yield headline(identifier, families.title_of(name))
    yield Text(f"held constant: {'; '.join(family.conditions) or 'nothing'}\n", "dim")
    for label, n in family.classes.items():
        few = f"  few: n < {families.FEW}" if n < families.FEW else ""
        yield Text.assemble((f"{label:<24}", "bold"), f"{n:>6,} ", (few, "yellow"))
        if label in shown:
            yield Padding(with_marker(shown[label].text), (0, 0, 0, 2))


def _tell(place: Path, manifest: sets.SetManifest, model: str | None) -> None:
    """Shows a set that was made: of papers and texts, or by labelling a file of contexts."""
    identifier = manifest.name if place.parent == DIAGNOSTICS else str(place)
    done = "chosen" if manifest.sampling else "labelled"
    say(headline(str(place), f"{counted(manifest.contexts, 'context')} {done}"), *_parts_of(manifest))
    if manifest.sampling:
        say(f"\nWhat it is: {place / 'DATASHEET.md'}\nLook it through: citerec diagnostics review {identifier}")
    say(f"\nMeasure a system on it: citerec eval --set {identifier}")
    if model is None:
        missing = f"There is no spaCy model {families.DEFAULT_MODEL}: parts of speech are not labelled."
        note(f"{missing} Get it with {families.HOW_TO_GET}")


def _parts_of(manifest: sets.SetManifest) -> Iterator[Any]:
    """The funnel, how full the cells are, and the families with contexts, classes, what is held constant."""
    if sampling := manifest.sampling:
        yield ""
        yield counts_table({sets.FUNNEL.get(step, step): count for step, count in sampling.funnel.items()})
        cells = sampling.cells
        yield Group(
            f"\nOf {cells['wanted']:,} classes of cells (field × years × citation count) {cells['full']:,} are full, "
            f"{cells['partly']:,} hold fewer than were wanted, {cells['empty']:,} hold nothing: cells.csv says why."
        )
    columns = [Column("\nfamily", style="strong", wrap=False), *right("\ncontexts", format=","), *left("\nclasses")]
    table = Table([*columns, Column("held\nconstant", style="faint")])
    table.rows.extend([name, *_classes(one), "; ".join(one.conditions)] for name, one in manifest.families.items())
    yield ""
    yield table
    yield f"* fewer than {families.FEW} contexts: too few to say much about them."


def _classes(family: families.FamilyOfSet) -> tuple[int, str]:
    """How many contexts of a family have a class, and its classes with their numbers."""
    shown = ", ".join(f"{label} {n:,}{'*' if n < families.FEW else ''}" for label, n in family.classes.items())
    whole = sum(family.classes.values())
    return whole, shown if whole else "not known from these data"


_KEYS = "a accept · r reject · n note · b back · s skip · q quit, then Enter > "
_HELP = f"""
  a  accept: one whole sentence with exactly one citation, {MARKER} is in its place, the class is right
  r  reject: one of these is wrong; you may say why        n  note something, without a verdict yet
  b  back: undo the last verdict or skip                   s  skip until the next session
  q  quit: all verdicts are saved, and the next session continues from here
"""


def review(
    name: str,
    /,
    *,
    reviewer: Annotated[str | None, Parameter(metavar="NAME")] = None,
    status: bool = False,
    apply: bool = False,
) -> None:
    """Check the set NAME by hand: accept or reject its contexts, one by one.

    Each verdict is saved at once in the folder NAME.reviews beside the set's directory, one file per
    reviewer; the same command continues where it stopped. The order is random but the same for all
    reviewers, and gives each class its share from the start.

    --apply rewrites the set: a rejected context goes to rejected.jsonl, and the first reserve of its
    cell and class that cites no used paper replaces it, to be reviewed in turn.

    Example: citerec diagnostics review mine

    Args:
        name: The set.
        reviewer: Who judges.  [default: the login name]
        status: Show what was judged, how much is sound, how well reviewers agree.
        apply: Replace the contexts that anyone rejected by reserves.
    """
    path = sets.find_set(name)
    if apply:
        instead = reviewing.apply_reviews(path)
        replaced = sum(one is not None for one in instead.values())
        say(f"{len(instead):,} rejected: see rejected.jsonl; {replaced:,} replaced by new contexts, to be reviewed.")
        return
    if not status:
        _judge(path, reviewer or getpass.getuser())
    say(*_status_of(path, name))
    if not status:
        say(f"\nTake out what was rejected:  citerec diagnostics review {name} --apply")


def _judge(path: Path, reviewer: str) -> None:
    """Shows one context after the other, until all are judged or the reviewer quits."""
    reviewing.check_may_review(path)
    items = reviewing.review_order(reviewing.items_of(path))
    manifest, reviews = sets.SetManifest.read(path), reviewing.read_reviews(path).get(reviewer, {})
    done = [key for key, one in reviews.items() if one.verdict]  # judged or skipped, in this order

    def save(context_id: str, verdict: reviewing.Verdict | None, note: str) -> None:
        reviews[context_id] = reviewing.record_verdict(path, reviewer, context_id, verdict, note)

    say(_HELP)
    while here := next((item for item in items if item["context_id"] not in done), None):
        context_id = here["context_id"]
        note = reviews[context_id].note if context_id in reviews else ""
        say(_table_of_item(here, f"{items.index(here) + 1:,} of {len(items):,}", manifest, note))
        key = (_line(_KEYS) or "q").strip().lower()
        if key == "q":
            return
        if key == "b" and done:
            back = done.pop()
            if back in reviews:
                save(back, None, "")
        elif key == "n":
            save(context_id, None, _line("note: ").strip())
        elif key in ("a", "r"):
            why = _line("why (Enter for no reason): ").strip() if key == "r" else ""
            save(context_id, "reject" if key == "r" else "accept", "; ".join(filter(None, [note, why])))
        if key in ("a", "r", "s"):
            done.append(context_id)
    say(f"{reviewer} has judged all {counted(len(items), 'context')}.")


def _line(prompt: str) -> str:
    """A line of the input; empty at its end."""
    print(prompt, end="", flush=True)
    return sys.stdin.readline()


def _table_of_item(item: reviewing.Item, position: str, manifest: sets.SetManifest, note: str) -> Table:
    """A context, and what is known of it."""
    classes, cell = reviewing.classes_of(item), reviewing.slot_of(item)
    conditions = (one for family in classes for one in manifest.families[family].conditions)
    rows = {
        "class": " · ".join(f"{family}: {label}" for family, label in classes.items()),
        "held constant": "; ".join(dict.fromkeys(conditions)),
        "cell": f"{cell[0]} · {cell[1]} · citations: group {cell[2]} (0 least, 9 most)" if cell else "",
        "section": item.get("section"),
        "before": item.get("before"),
        "sentence": marked(item["text"], "strong"),
        "after": item.get("after"),
        MARKER: item.get("marker"),
        "cited": ", ".join(map(str, item["cited_ids"])),
        "noted": note,
    }
    columns = [Column("", style="name", wrap=False), Column("")]
    return Table(columns, [row for row in rows.items() if row[1]], f"\n{position}", headed=False)


def _status_of(path: Path, name: str) -> Iterator[Any]:
    """The verdicts of each reviewer, in all and on each family, and how well reviewers agree."""
    items, reviews = reviewing.items_of(path), reviewing.read_reviews(path)
    gone = reviewing.items_of(path, sets.REJECTED)
    numbers = right("accepted", "rejected", "left", "sound [95 % interval]", format=",")
    table = Table([*left("reviewer, family"), *numbers])
    for one in reviewing.standings([*items, *gone], reviews):
        share = "–"
        if judged := one.accepted + one.rejected:
            low, high = reviewing.wilson(one.accepted, judged)
            share = f"{one.accepted / judged:.1%} [{100 * low:.1f} {100 * high:.1f}]"
        heading = f"  {one.family}" if one.family else marked(one.reviewer, "strong")
        table.rows.append([heading, one.accepted, one.rejected, one.left, share])
    yield f"{name}  {counted(len(items), 'context')}, {len(gone):,} taken out, {counted(len(reviews), 'reviewer')}\n"
    yield table
    for names, both, alike, kappa in reviewing.agreement(reviews):
        value = "not defined: both gave only one verdict" if kappa is None else f"{kappa:.2f}"
        shared = f"{' and '.join(names)}: both judged {counted(both, 'context')}, {alike / both:.0%} alike"
        yield f"\n{shared}; Cohen's kappa {value}"
