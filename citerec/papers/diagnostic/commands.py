"""The commands of the diagnostic benchmark: `train ncn` and `train hatten`, entry points of `citerec.commands`."""

from typing import Annotated, Any

from cyclopts import Parameter

from citerec.cli.learning import Finder, FromContexts, Out, OutOfIndex, recipe_of, tell


def ncn(*, source: FromContexts, system: Finder = "ncn", out: OutOfIndex = None) -> None:
    """Train the network of `ncn`, which ranks candidates by how well it could write their titles.

    It learns to write the title of the cited paper after a sentence, word by word, and needs no
    negatives. The weight of its score against that of the search is tuned on dev, and kept with the
    network.

    Example: citerec train ncn --contexts train.jsonl --index indexes/acl
    """
    from citerec.index.manifest import trained_of
    from citerec.papers.diagnostic.ncn import NcnOptions, Sizes, train_ncn
    from citerec.train.groups import Choice

    defaults: dict[str, Any] = {"epochs": 5, "evaluations": 5, "learning_rate": 1e-3}
    settings = source.settings(Choice, NcnOptions, Sizes, own=("sizes",), **defaults)
    place, options = out or trained_of(source.place, "ncn"), settings.of(NcnOptions, sizes=settings.of(Sizes))
    tell(place, source.learn(train_ncn, settings, place, options, system=recipe_of(system)))


def hatten(
    *,
    source: FromContexts,
    out: Out,
    words: Annotated[str, Parameter(metavar="NAME|FILE")] = "sentence-transformers/all-MiniLM-L6-v2",
) -> None:
    """Train a HAtten model, for `citerec index encode --retriever hatten --model`.

    A small encoder over frozen word vectors (Gu et al. 2022). It learns from hard negatives that it
    finds itself, with the citing paper and everything newer left out.

    Example: citerec train hatten --contexts train.jsonl --index indexes/acl --words glove.6B.200d.txt
    --out models/hatten

    Args:
        words: Word vectors, which stay as they are: a file in GloVe's text format, or an encoder for its token
            embeddings.
    """
    from citerec.papers.diagnostic.hatten import DECAY, METRIC, HattenOptions, train_hatten
    from citerec.train.groups import Choice

    defaults: dict[str, Any] = {"epochs": 5, "evaluations": 10, "learning_rate": 1e-4, "decay": DECAY, "first": True}
    settings = source.settings(Choice, HattenOptions, **defaults)
    tell(out, source.learn(train_hatten, settings, out, settings.of(HattenOptions, words=words)), METRIC)
