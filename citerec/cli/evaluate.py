"""`citerec eval` and `citerec report`: measure systems class by class."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import note
from citerec.cli.eval_text import named_file
from citerec.cli.options import (
    PATH,
    json_option,
    number,
    on,
    one_of,
    path_option,
    refuse_without,
    system_option,
    working,
)

if TYPE_CHECKING:
    from citerec.evaluation.systems import System


@click.command("eval", epilog="Example: citerec eval --diagnostic location --system bm25 --out results/location")
@click.option(
    "--diagnostic",
    "identifiers",
    multiple=True,
    metavar="ID",
    help="A family (location) or a family of a set (demo/location); may be repeated.  [default: all]",
)
@click.option("--set", "set_name", metavar="NAME", help="A diagnostic set, by name or folder.  [default: demo]")
@path_option("--contexts", help="A JSON Lines file of contexts, labelled on the spot.")
@path_option("--index", help="The index to search.  [default: the one the set was made for, or the only one]")
@system_option("--system", "systems", multiple=True)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="A TREC run of any system, scored under the same rules; may be repeated.",
)
@click.option(
    "--metrics",
    default="recall@10,mrr@10,ndcg@10",
    metavar="LIST",
    help="recall, mrr, ndcg, map, hit_rate, precision, f1, hits and dcg with a cutoff, and r-precision.",
)
@click.option("-k", type=int, help="How many hits of each context count.  [default: 100]")
@path_option("--out", metavar="FOLDER", help="Write tables, CSV, runs, qrels and a page here.")
@one_of("--missing", ["zero", "skip"], "How to count contexts whose cited papers are all outside the index.")
@click.option(
    "--include-training-contexts",
    is_flag=True,
    help="Also measure on contexts that a system learnt from or was tuned on, and on others of their citing papers.  "
    "[default: leave them out, for all systems]",
)
@click.option("--exclude-citing/--include-citing", default=True, help="Leave out the citing paper.")
@click.option("--as-of-year/--no-as-of-year", default=True, help="Leave out everything newer than the citing paper.")
@click.option(
    "--conditions/--no-conditions", default=True, help="With --contexts: hold each family's conditions constant."
)
@click.option("--spacy-model", metavar="NAME|FOLDER", help="With --contexts: model that tags parts of speech.")
@click.option("--seed", type=int, default=0, help="Seed of the intervals and tests.")
@click.option("--resamples", type=int, default=1000, help="Bootstrap samples of the intervals.")
@number(
    "--workers",
    None,
    "Processes that answer contexts at once, on the same index.  [default: 1; one for each processor with --on]",
)
@on
@json_option
def evaluate(
    identifiers: tuple[str, ...],
    set_name: str | None,
    contexts: Path | None,
    systems: tuple[str, ...],
    runs: tuple[str, ...],
    metrics: str,
    out: Path | None,
    workers: int | None,
    on: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure systems class by class, with intervals, tests and cost.

    Without options, the default system of recommend is measured on every family of the demo set.
    Several systems and runs are measured together and compared. With --on, each machine of a cluster
    needs the index at the same path.
    """
    from citerec.cli.results import write_and_show
    from citerec.evaluation.evaluate import evaluate as measured
    from citerec.retrieve.run import Run

    what, families = _what(identifiers, set_name, contexts)
    refuse_without("--contexts", contexts, "conditions", "spacy_model")
    named: dict[str, System] = {}
    for system_name in systems:
        if system_name.endswith((".trec", ".run", ".gz")):
            raise click.UsageError(f"{system_name} looks like a run: give it with --run")
    given: list[tuple[str, str | Path]] = [*((_stem(name), name) for name in systems), *map(_named_run, runs)]
    for name, system in given:
        if name in named:
            raise click.UsageError(f"two systems are called {name!r}: name a run with --run NAME=FILE")
        named[name] = system if isinstance(system, str) else Run.from_trec(system, name)
    if out is not None:
        from citerec.evaluation.results import RESULTS

        RESULTS.check_place(out)
    with working(on, workers, here=1) as (parallelism, on_progress):
        results = measured(
            named or None,
            what,
            families=families,
            parallelism=parallelism,
            metrics=[name.strip() for name in metrics.split(",") if name.strip()],
            on_progress=on_progress,
            **options,
        )
    write_and_show(results, out, as_json=as_json)


@click.command(epilog="Example: citerec report results/bm25 results/mine")
@click.argument("folders", nargs=-1, required=True, type=PATH)
@path_option("--out", metavar="FILE", help="Write a page of HTML here.")
@json_option
def report(folders: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Show results of eval side by side, and compare their systems.

    FOLDERS are those that eval wrote with --out. With one folder, its results are shown again.
    """
    from citerec.cli.results import write_and_show
    from citerec.evaluation.page import write_page
    from citerec.evaluation.results import Results, merge

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise click.UsageError("a folder is given twice")
    if out is not None and out.suffix not in (".html", ".htm"):
        raise click.UsageError(f"--out {out} is not a page: give a name such as both.html")
    same_names = len({folder.name for folder in folders}) < len(folders)
    parts = {os.fspath(folder) if same_names else folder.resolve().name: Results.read(folder) for folder in folders}
    results = merge(parts) if len(parts) > 1 else next(iter(parts.values()))
    if out is not None:  # first: the reader of the output may close it (`| head`)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_page(results, out)
    write_and_show(results, None, as_json=as_json)
    if out is not None:
        note(f"{out}: the same as a page to read.")


def _what(
    identifiers: tuple[str, ...], set_name: str | None, contexts: Path | None
) -> tuple[str | Path, tuple[str, ...]]:
    """What to measure on, and the names of the families."""
    from citerec.diagnostics.sets import DEFAULT_SET, parse_id

    if set_name is not None and contexts is not None:
        raise click.UsageError("give one of --set and --contexts")
    if contexts is not None and contexts.is_dir():
        raise click.UsageError(f"{contexts} is a folder: a set goes with --set {contexts}")
    if set_name is not None and Path(set_name).is_file():
        raise click.UsageError(f"{set_name} is a file: contexts go with --contexts {set_name}")
    parsed = [parse_id(identifier) for identifier in identifiers]
    families = tuple(family for _, family in parsed if family)
    of_sets = {name for name, _ in parsed if name}
    if contexts is not None:
        if of_sets:
            raise click.UsageError("with --contexts give --diagnostic the name of a family, such as location")
        return contexts, families
    if set_name is not None:
        of_sets.add(set_name)
    if len(of_sets) > 1:
        raise click.UsageError(f"one set at a time: {', '.join(sorted(of_sets))}")
    # A set and one of its families together mean the whole set.
    whole = any(family is None for _, family in parsed)
    return of_sets.pop() if of_sets else DEFAULT_SET, () if whole else families


def _stem(system: str) -> str:
    return Path(system).stem if system.endswith(".toml") else system


def _named_run(value: str) -> tuple[str, Path]:
    name, path = named_file(value)
    stem = path.name
    for ending in (".gz", ".trec", ".run", ".txt"):
        stem = stem.removesuffix(ending)
    return name or stem, path
