"""The commands of the diagnostic benchmark: `train ncn` and `train hatten`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.learning import (
    candidates_of,
    choice_of,
    contexts_dev_options,
    contexts_option,
    learning_rate,
    limit_option,
    pop,
    recipe_of,
    schedule_of,
    schedule_options,
    tell_dev,
    tell_weighted,
    trained,
)
from citerec.cli.options import index_option, number, one_of, path_option, with_options


@click.command(epilog="Example: citerec train ncn --contexts train.jsonl --index indexes/acl --preset port")
@contexts_option
@with_options(contexts_dev_options)
@limit_option(None)
@index_option("The index to search for candidates, and whose titles are learned")
@candidates_of("ncn", "The system that finds candidates.")
@path_option("--out", help="The network to make, or to replace.  [default: into the index itself]")
@one_of(
    "--preset",
    ["original", "port"],
    "Sizes of the authors' code or of its larger port; the following options change single ones.",
)
@number("--embedding", None, "Numbers of a word's vector.")
@number("--hidden", None, "Numbers of the decoder's state.")
@number("--filters", None, "Filters of each width.")
@number("--vocabulary", None, "Words of each vocabulary (texts, titles, authors), at most.")
@number("--depth", 256, "How many first hits are ranked on dev.", least=2)
@number("--batch", 64, "Cited papers per step.")
@learning_rate(1e-3, "Peak learning rate.")
@with_options(schedule_options(epochs=5, evaluations=5))
def ncn(index: Path, out: Path | None, system: str, device: str | None, **options: Any) -> None:
    """Train the network of `ncn`, which ranks candidates by how well it could write their titles.

    It learns to write the title of the cited paper after a sentence, word by word, and needs no
    negatives. The weight of its score against that of the search is tuned on dev, and kept with the
    network; so is whether long titles cost more.
    """
    import citerec.train.trainer  # noqa: F401  the first that the light package lacks: it is in the extra `train`
    from citerec.index.generations import trained_of
    from citerec.papers.diagnostic.ncn.model import PRESETS
    from citerec.papers.diagnostic.ncn.train import NcnOptions, train_ncn

    changes = pop(options, "embedding", "hidden", "filters", "vocabulary")
    sizes = PRESETS[options.pop("preset")].model_copy(
        update={name: value for name, value in changes.items() if value is not None}
    )
    choice, schedule = choice_of(options), schedule_of(options)
    place = out or trained_of(index, "ncn")
    arguments = (choice, index, place, NcnOptions(sizes, **options), schedule, recipe_of(system))
    tell_weighted(place, trained(train_ncn, *arguments, device=device))


@click.command(
    epilog="Example: citerec train hatten --contexts train.jsonl --index indexes/acl --words glove.6B.200d.txt "
    "--out models/hatten"
)
@contexts_option
@with_options(contexts_dev_options)
@limit_option(None)
@index_option("The index with the cited papers")
@path_option("--out", required=True, help="The model to make, or to replace: a folder.")
@click.option(
    "--words",
    default="sentence-transformers/all-MiniLM-L6-v2",
    metavar="NAME|FILE",
    help="Word vectors, which stay as they are: a file in GloVe's text format, or an encoder for its token embeddings.",
)
@number("--vocabulary", 100_000, "Words of a file, at most: the most frequent of papers and contexts.")
@number("--width", None, "Numbers of a vector.  [default: as many as a word has]")
@number("--heads", 8, "Heads of each layer; they divide the width.")
@number("--feed-forward", 1024, "Width of the inner layers.")
@number("--max-words", 512, "The first words of a paragraph that are read.")
@number("--negatives", 3, "Hard negatives for each cited paper: drawn from the model's own first hits.")
@number("--candidates", 100, "How many first hits the negatives are drawn from.", least=2)
@number("--mine-every", 500, "Steps after which the hits are searched anew; 5,000 in the paper.")
@number("--pool", 200_000, "Papers of the index that are searched for them, at most, beside the cited ones.")
@click.option(
    "--alike/--no-alike",
    default=True,
    help="Whether a hit that shares as many words with the topic as the cited paper counts as relevant too.",
)
@click.option("--graded/--no-graded", default=True, help="Whether hard negatives are to be above easy ones.")
@number("--batch", 64, "Cited papers per step.")
@learning_rate(1e-4, "Peak learning rate.")
@with_options(schedule_options(epochs=5, evaluations=10))
def hatten(index: Path, out: Path, device: str | None, **options: Any) -> None:
    """Train a HAtten model, for `citerec index encode --retriever hatten --model`.

    A small encoder over frozen word vectors (Gu et al. 2022). It learns from hard negatives that it
    finds itself, with the citing paper and everything newer left out.
    """
    import citerec.train.trainer  # noqa: F401  the first that the light package lacks: it is in the extra `train`
    from citerec.papers.diagnostic.hatten.train import DECAY, METRIC, HattenOptions, train_hatten

    choice, schedule = choice_of(options), schedule_of(options, first=True, decay=DECAY)
    arguments = (choice, index, out, HattenOptions(**options), schedule)
    manifest = trained(train_hatten, *arguments, device=device)
    tell_dev(out, manifest, METRIC, f"{manifest.training['dev_groups']:,} dev contexts")
