"""How often each label occurs in some texts, and how far apart two such distributions are."""

from collections import Counter
from collections.abc import Mapping, Sequence

from citerec.contexts.split import splitter
from citerec.discourse.base import Tagger
from citerec.errors import InputError


def distribution(tagger: Tagger, texts: Sequence[str]) -> dict[str, float]:
    """The share of each label of a tagger among the sentences of some texts; shares add up to 1.

    Each text is split into sentences by pysbd and tagged as one paragraph. An InputError if there is no sentence.
    """
    split = splitter()
    return shares_of(tagger, [[text[start:end] for start, end in split(text)] for text in texts])


def shares_of(tagger: Tagger, paragraphs: Sequence[Sequence[str]]) -> dict[str, float]:
    """As `distribution`, of paragraphs as their sentences."""
    counts = Counter(label for labels in tagger.tag(paragraphs) for label in labels)
    if not (total := counts.total()):
        raise InputError("there is no sentence to tag", "Give texts that are not blank.")
    return {label: counts[label] / total for label in tagger.labels}


def kl_divergence(reference: Mapping[str, float], system: Mapping[str, float]) -> float:
    """The Kullback–Leibler divergence of a system's labels from those of the references, in nats.

    The sum of p · ln(p / q) over the labels (Kullback and Leibler 1951), p in the references, q in the system's texts,
    with 0 · ln 0 = 0, as CiteBench compares outputs with true citation texts (Funkquist et al. 2023, section 4.3).

    Returns:
        0 for equal distributions; infinity if a label with p > 0 has q = 0. Labels that are not given have the share 0.
    """
    from scipy.special import rel_entr

    terms = rel_entr(list(reference.values()), [system.get(label, 0.0) for label in reference])
    return float(max(0.0, terms.sum()))  # only rounding can make the sum negative
