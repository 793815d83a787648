"""`citerec eval` and `citerec report`: measure systems class by class."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.console import note
from citerec.cli.eval_text import named_file
from citerec.cli.options import (
    Assignments,
    Config,
    Count,
    Format,
    On,
    OutFolder,
    Resamples,
    Seed,
    Switch,
    refuse_without,
    working,
)
from citerec.files.text import names_in

if TYPE_CHECKING:
    from citerec.evaluation.systems import System


def evaluate(
    *,
    identifiers: Annotated[tuple[str, ...], Parameter(name="--diagnostic", metavar="ID")] = (),
    set_name: Annotated[str | None, Parameter(name="--set", metavar="NAME")] = None,
    contexts: Path | None = None,
    index: Annotated[Path | None, Parameter(metavar="PATH")] = None,
    systems: Annotated[tuple[str, ...], Parameter(name="--system", metavar="NAME|FILE")] = (),
    runs: Annotated[tuple[str, ...], Parameter(name="--run", metavar="[NAME=]FILE")] = (),
    metrics: Annotated[str, Parameter(metavar="LIST")] = "recall@10,mrr@10,ndcg@10",
    k: Annotated[int | None, Parameter(name="-k")] = None,
    changes: Assignments = (),
    config: Config = None,
    out: OutFolder = None,
    missing: Literal["zero", "skip"] = "zero",
    include_training_contexts: bool = False,
    exclude_citing: Annotated[bool, Parameter(negative="--include-citing")] = True,
    as_of_year: Switch = True,
    conditions: Switch | None = None,
    spacy_model: Annotated[str | None, Parameter(metavar="NAME|FOLDER")] = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    workers: Count | None = None,
    on: On = None,
    form: Format = "table",
) -> None:
    """Measure systems class by class, with intervals, tests and cost.

    Without options, the default system of recommend is measured on every family of the demo set.
    Several systems and runs are measured together and compared. With --on, each machine of a cluster
    needs the index at the same path.

    Example: citerec eval --diagnostic location --system bm25 --out results/location

    Args:
        identifiers: A family (location) or a family of a set (demo/location); may be repeated.  [default: all]
        set_name: A diagnostic set, by name or folder.  [default: demo]
        contexts: A JSON Lines file of contexts, labelled on the spot.
        index: The index to search.  [default: the one the set was made for, or the only one]
        systems: A built-in system (citerec systems); any of them followed by +RERANKER; or a TOML file of settings; may
            be repeated.  [default: the best that the index supports]
        changes: Change one setting of every system, such as words.bm25.k1=0.9; may be repeated. Keys: citerec systems
            --settings.
        config: A TOML file of settings; -c wins over it.
        runs: A TREC run of any system, scored under the same rules; may be repeated.
        metrics: recall, mrr, ndcg, map, hit_rate, precision, f1, hits and dcg with a cutoff, and r-precision.
        k: How many hits of each context count.  [default: 100]
        out: Write JSON, CSV, runs, qrels and a page here.
        missing: How to count contexts whose cited papers are all outside the index.
        include_training_contexts: Also measure on contexts that a system learnt from or was tuned on, and on others of
            their citing papers.  [default: leave them out, for all systems]
        exclude_citing: Leave out the citing paper.
        as_of_year: Leave out everything newer than the citing paper.
        conditions: With --contexts: hold each family's conditions constant. On by default.
        spacy_model: With --contexts: model that tags parts of speech.
        workers: Processes that answer contexts at once, on the same index.  [default: 1; one for each processor with
            --on]
    """
    from citerec.cli.results import check_place, write_and_show
    from citerec.evaluation.evaluate import evaluate as measured
    from citerec.retrieve.run import Run
    from citerec.settings import changes as settings_of
    from citerec.systems import Recipe

    what, families = _what(identifiers, set_name, contexts)
    refuse_without("--contexts", contexts, conditions=conditions, spacy_model=spacy_model)
    named: dict[str, System] = {}
    for system_name in systems:
        if system_name.endswith((".trec", ".run", ".gz")):
            raise UsageError(f"{system_name} looks like a run: give it with --run")
    given: list[tuple[str, str | Path]] = [*((_stem(name), name) for name in systems), *map(_named_run, runs)]
    for name, system in given:
        if name in named:
            raise UsageError(f"two systems are called {name!r}: name a run with --run NAME=FILE")
        named[name] = system if isinstance(system, str) else Run.from_trec(system, name)
    if out is not None:
        check_place(out)
    settings = settings_of(config, changes)
    if settings and not systems:
        raise UsageError("-c and --config go with --system only: name the system whose settings change")
    with working(on, workers, here=1) as (parallelism, on_progress), tempfile.TemporaryDirectory() as folder:
        for system_name in systems if settings else ():
            changed = Path(folder) / f"{_stem(system_name)}.toml"
            Recipe.load(system_name, settings).write(changed, f"{system_name} with {', '.join(settings)}")
            named[_stem(system_name)] = str(changed)
        results = measured(
            named or None,
            what,
            families=families,
            parallelism=parallelism,
            metrics=names_in(metrics),
            on_progress=on_progress,
            index=index,
            k=k,
            missing=missing,
            include_training_contexts=include_training_contexts,
            exclude_citing=exclude_citing,
            as_of_year=as_of_year,
            conditions=conditions is not False,
            spacy_model=spacy_model,
            seed=seed,
            resamples=resamples,
        )
    write_and_show(results, out, form)


def report(
    folders: tuple[Path, ...],
    /,
    *,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), metavar="FILE")] = None,
    form: Format = "table",
) -> None:
    """Show results of eval side by side, and compare their systems.

    FOLDERS are those that eval wrote with --out. With one folder, its results are shown again.

    Example: citerec report results/bm25 results/mine

    Args:
        folders: Folders of results.
        out: Write a page of HTML here.
    """
    from citerec.cli.results import write_and_show
    from citerec.evaluation.page import write_page
    from citerec.evaluation.results import Results, merge

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("a folder is given twice")
    if out is not None and out.suffix not in (".html", ".htm"):
        raise UsageError(f"--out {out} is not a page: give a name such as both.html")
    same_names = len({folder.name for folder in folders}) < len(folders)
    parts = {os.fspath(folder) if same_names else folder.resolve().name: Results.read(folder) for folder in folders}
    results = merge(parts) if len(parts) > 1 else next(iter(parts.values()))
    if out is not None:  # first: the reader of the output may close it (`| head`)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_page(results, out)
    write_and_show(results, None, form)
    if out is not None:
        note(f"{out}: the same as a page to read.")


def _what(
    identifiers: tuple[str, ...], set_name: str | None, contexts: Path | None
) -> tuple[str | Path, tuple[str, ...]]:
    """What to measure on, and the names of the families."""
    from citerec.diagnostics.sets import DEFAULT_SET, parse_id

    if set_name is not None and contexts is not None:
        raise UsageError("give one of --set and --contexts")
    if contexts is not None and contexts.is_dir():
        raise UsageError(f"{contexts} is a folder: a set goes with --set {contexts}")
    if set_name is not None and Path(set_name).is_file():
        raise UsageError(f"{set_name} is a file: contexts go with --contexts {set_name}")
    parsed = [parse_id(identifier) for identifier in identifiers]
    families = tuple(family for _, family in parsed if family)
    of_sets = {name for name, _ in parsed if name}
    if contexts is not None:
        if of_sets:
            raise UsageError("with --contexts give --diagnostic the name of a family, such as location")
        return contexts, families
    if set_name is not None:
        of_sets.add(set_name)
    if len(of_sets) > 1:
        raise UsageError(f"one set at a time: {', '.join(sorted(of_sets))}")
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
