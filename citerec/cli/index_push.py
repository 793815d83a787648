"""`citerec index push`: an index in Qdrant."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from citerec.cli.console import note, say
from citerec.cli.options import PATH, one_of
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.retrieve.qdrant.push import Pushed, PushOptions


@click.command("push", epilog="Example: citerec index push indexes/acm --to http://localhost:6333/acm")
@click.argument("path", metavar="[INDEX]", required=False, type=PATH)
@click.option(
    "--to",
    metavar="ADDRESS",
    help="Where to: http://HOST:PORT/NAME; or edge:FOLDER/NAME, the engine without a server; or path:FOLDER/NAME, "
    "for tests. By default where the index was pushed last.",
)
@one_of(
    "--quantize",
    ["none", "int8", "binary"],
    "How the server keeps vectors in memory. With int8 they take a quarter of the memory, with binary a 32nd; the "
    "vectors themselves stay on disk, and the best are compared by them.",
)
@click.option("--shards", type=click.IntRange(1), help="In a cluster: shards of each collection.")
@click.option("--replicas", type=click.IntRange(1), help="In a cluster: copies of each shard.")
@click.option("--anew", is_flag=True, help="Push everything, even if only a part has changed since the last push.")
def push(
    path: Path | None, to: str | None, quantize: str, shards: int | None, replicas: int | None, *, anew: bool
) -> None:
    """Push an index into Qdrant, whose engine the systems qdrant-… search.

    Everything is written into new collections, which take the place of the old ones when they are
    complete. If the index was only brought up to date since the last push, only what changed is
    pushed. Repeat the command to resume an interrupted push. The key of the server, if it has one,
    is read from the environment: CITEREC_QDRANT_API_KEY.
    """
    from citerec.retrieve.manifest import find_index
    from citerec.retrieve.qdrant.push import PushOptions
    from citerec.retrieve.qdrant.upload import Layout

    options = PushOptions(quantization=quantize, layout=Layout(shards, replicas), anew=anew)  # type: ignore[arg-type]
    pushed_to(find_index(path), to, options)


def pushed_to(index: Path, to: str | None, options: "PushOptions") -> None:
    """Pushes an index, and says what was pushed."""
    from citerec.files.progress import progress_bar
    from citerec.retrieve.qdrant.push import push_index

    with progress_bar() as on_progress:
        made = push_index(index, to, options, on_progress)
    _tell(index, made)


def _tell(index: Path, made: "Pushed") -> None:
    """Says what was pushed, and how it is searched."""
    stated = made.stated
    parts = [counted(stated.papers, "paper")]
    if stated.citances:
        parts.append(counted(stated.citances, "citing sentence"))
    if stated.dense:
        parts.append(counted(stated.dense.count, "vector"))
    if made.changed == 0:
        say(f"{made.address} is up to date: {', '.join(parts)}.")
    else:
        how = "pushed whole" if made.changed is None else f"{counted(made.changed, 'paper')} changed"
        say(f"{made.address} has {', '.join(parts)}: {how}.")
    if stated.collisions:
        note(f"Terms that share a number with another term, and count as one: {stated.collisions:,}.")
    system = "qdrant-hybrid" if stated.dense else "qdrant-bm25"
    say(f"Search there: citerec recommend … --index {index} --system {system}")


def check_url(engine: str, url: str | None) -> None:
    """Checks, before a build that takes longer, that there is an address where one is needed."""
    if bool(url) != (engine == "qdrant"):
        raise click.UsageError("--url needs --engine qdrant." if url else "--engine qdrant needs --url ADDRESS.")
    if url:
        from citerec.retrieve.qdrant.address import Address, Connection

        Connection(Address.parse(url)).close()
