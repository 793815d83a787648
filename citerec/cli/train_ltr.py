"""`citerec train ltr`: the learnt ranker of an index, or one for any index."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from citerec.cli.learning import choice_of, contexts_dev_options
from citerec.cli.options import index_option, number, on, path_option, seed, with_options, working


@click.command(
    epilog="Example: citerec train ltr --index indexes/acl. With contexts: citerec train ltr --contexts train.jsonl "
    "--index indexes/acl"
)
@path_option(
    "--contexts",
    help="Contexts with cited papers, JSON Lines.  [default: the citing sentences of the index itself]",
)
@with_options(contexts_dev_options)
@index_option("The index whose candidates are ranked")
@click.option(
    "--also",
    "also",
    nargs=2,
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="INDEX CONTEXTS",
    help="A further index with its contexts, for --portable. May be given several times.",
)
@click.option(
    "--portable", is_flag=True, help="Make a ranker for other indexes: it learns from what these may have too."
)
@path_option("--out", help="The ranker to make, or to replace.  [default: into the index itself]")
@click.option(
    "--system",
    metavar="NAME|FILE",
    help="The system that finds candidates.  [default: the best of the index that finds by words and vectors]",
)
@number("--limit", 8000, "Contexts to learn from, at most; sampled by the seed.")
@number("--rounds", 500, "Trees, at most.")
@number(
    "--workers",
    None,
    "Processes that search at once, each with the index open.  [default: 1; one for each processor with --on]",
)
@on
@seed
def ltr(
    index: Path,
    out: Path | None,
    *,
    also: tuple[tuple[Path, Path], ...],
    portable: bool,
    workers: int | None,
    on: str | None,
    **options: Any,
) -> None:
    """Train the ranker of `hybrid+ltr`: LambdaMART over every retriever's signals of a candidate.

    It learns from a file of contexts or, without one, from the citing sentences of the index. Leak rules apply: neither
    the citing paper's own sentences nor newer ones support a candidate. With --on, candidates are searched for
    on a cluster, whose machines need the index at the same path; the trees are learnt here.
    """
    from citerec.cli.tables import show_ranker
    from citerec.index.generations import generation_of, trained_of
    from citerec.index.manifest import DENSE
    from citerec.index.vectors.manifest import has_vectors
    from citerec.systems import default_retrieval
    from citerec.train.groups import Choice
    from citerec.train.ltr import FOR_EVERYONE, LtrOptions, Source, train_ltr
    from citerec.train.own_contexts import OWN, own_contexts

    if also and not portable:
        raise click.UsageError("--also is for rankers that several indexes can use: add --portable")
    if portable and not out:
        raise click.UsageError("a portable ranker belongs to no index: give --out FOLDER")
    place = out or trained_of(index, "ltr")
    base = FOR_EVERYONE if portable else LtrOptions(rounds=options["rounds"])
    if options["system"] is None:
        # Without vectors, the system of the options says what is missing.
        knows_best = not portable and has_vectors(generation_of(index) / DENSE)
        options["system"] = default_retrieval(index) if knows_best else base.system
    ranker = replace(base, system=options["system"])
    further = [
        Source(folder, Choice(contexts, limit=options["limit"], seed=options["seed"])) for folder, contexts in also
    ]
    with working(on, workers, here=1) as (parallelism, on_progress), contextlib.ExitStack() as stack:
        name = None
        if options["contexts"] is None:
            options["contexts"] = stack.enter_context(own_contexts(index, options["limit"], options["seed"]))
            name = OWN
        sources = [Source(index, choice_of(options), name), *further]
        manifest = train_ltr(sources, place, ranker, on_progress, parallelism)
    show_ranker(place, manifest)
