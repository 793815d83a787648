"""The commands of CiteBART: `train citebart`, entry points of `citerec.commands`."""

from citerec.cli.learning import Base, FromContexts, OutOfIndex, tell


def citebart(*, source: FromContexts, out: OutOfIndex = None, base: Base = "facebook/bart-base") -> None:
    """Train the encoder-decoder of `citebart`, which writes author and year of the cited paper.

    The sentence has a mask in place of the citation. Nothing is searched, and no negatives are
    needed.

    Example: citerec train citebart --contexts train.jsonl --index indexes/acl
    """
    from citerec.index.manifest import trained_of
    from citerec.papers.citebart.model import METRIC, CiteBartOptions, train_citebart
    from citerec.train.groups import Choice

    settings = source.settings(Choice, CiteBartOptions, epochs=15, evaluations=15, learning_rate=2e-5, first=True)
    place, options = out or trained_of(source.place, "citebart"), settings.of(CiteBartOptions, base=base)
    tell(place, source.learn(train_citebart, settings, place, options), METRIC)
