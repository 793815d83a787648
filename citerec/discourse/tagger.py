"""Opens taggers, also published ones with other names of labels; how often each label occurs in texts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from citerec.discourse.classifier import SCHEMES, ClassifierTagger, Probabilities, Tagger, TaggerManifest, scheme_of
from citerec.discourse.linear import LinearTagger
from citerec.errors import InputError
from citerec.models.find import find_model
from citerec.models.loading import read_model_manifest
from citerec.records import MARKER, Context

_PREFIX = re.compile(r"^[BIES][-_](?=.)")


def open_tagger(
    path_or_name: str | Path, *, labels: Mapping[str, str] | None = None, device: str | None = None
) -> Tagger:
    """Opens a tagger from `citerec train tagger`, or a sequence classifier of transformers, by folder or hub name.

    Args:
        path_or_name: A folder, or a name on the hub.
        labels: Other names for its labels, as for `RelabelledTagger`. By default those of a tagger that was made
            elsewhere get citerec's names if they differ only in how they are written: `known_names`.
        device: The device; by default a GPU if there is one.

    Raises:
        ModelError: There is none, or it is damaged, or of another version.
        InputError: It has no such label, or the new labels are of no scheme.
    """
    place = find_model(str(path_or_name))
    manifest = read_model_manifest(Path(place), TaggerManifest, "a tagger", "Train one: citerec train tagger …")
    if manifest and manifest.model == "linear":
        tagger: Tagger = LinearTagger.open(Path(place), manifest)
    else:
        tagger = ClassifierTagger.open(place, manifest, device=device)
    own = known_names(tagger.labels) if manifest is None and not tagger.scheme else None
    return RelabelledTagger(tagger, names) if (names := labels or own) else tagger


class RelabelledTagger(Tagger):
    """A tagger with other names for some of its labels; the rest keep theirs. All must be of one scheme then.

    Several labels may become one: their probabilities are added. A label without a name is never given: the others
    share its probability in proportion.

    Args:
        tagger: The tagger.
        names: The new names, by label; empty for labels that are not to be given.

    Raises:
        InputError: The tagger has no such label, or its labels are of no scheme; the message names them.
    """

    def __init__(self, tagger: Tagger, names: Mapping[str, str]) -> None:
        if unknown := [label for label in names if label not in tagger.labels]:
            fault = f"the tagger {tagger.name} has no label {', '.join(unknown)}"
            raise InputError(fault, f"It has: {', '.join(tagger.labels)}.")
        renamed = [names.get(label, label) for label in tagger.labels]
        self.name = tagger.name
        self.labels = tuple(dict.fromkeys(filter(None, renamed)))
        self.scheme = scheme_of(self.labels)
        if not self.labels:
            raise InputError(f"no label of the tagger {tagger.name} has a name left", "Name those to be given.")
        if not self.scheme:
            nearest, ours = max(SCHEMES.items(), key=lambda scheme: len(scheme[1].intersection(self.labels)))
            outside = ", ".join(label for label in self.labels if label not in ours)
            fault = f"{nearest} has no label {outside}, to which those of the tagger {tagger.name} were mapped"
            raise InputError(fault, f"Map each to one of {', '.join(sorted(ours))}, or to nothing.")
        self._tagger = tagger
        self._sums = np.array([[float(name == label) for label in self.labels] for name in renamed])

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        """How likely each label is for each sentence; see `Tagger`."""
        named = [rows @ self._sums for rows in self._tagger.probabilities(paragraphs)]
        # Where only labels without a name are likely, all others are equally likely.
        sums = [np.where(rows.any(axis=1, keepdims=True), rows, 1.0) for rows in named]
        return [rows / rows.sum(axis=1, keepdims=True) for rows in sums]


def known_names(labels: Sequence[str]) -> dict[str, str] | None:
    """The names that labels have in a scheme of citerec, if they differ only in how they are written.

    That is in case, in signs, or by the `B-` and `I-` of tags that begin and go on. CORWA's `Intro` is its
    `Transition`, and its `pad` and `O` are no labels (jacklxc/CORWA). None if there is no such scheme.
    """
    for scheme in SCHEMES.values():
        ours = {_folded(label): label for label in scheme} | {"pad": "", "o": ""}
        if "transition" in ours:
            ours["intro"] = ours["transition"]
        names = {label: ours[_folded(label)] for label in labels if _folded(label) in ours}
        if len(names) == len(labels) and any(names.values()):
            return names
    return None


def _folded(label: str) -> str:
    return re.sub(r"[\W_]", "", _PREFIX.sub("", label)).casefold()


def with_intents(contexts: Iterable[Context], tagger: Tagger) -> list[Context]:
    """The contexts; those whose intent is not known have the label of a tagger of citation intents."""
    listed = list(contexts)
    texts = [[one.text.replace(MARKER, one.marker or MARKER)] for one in listed if not one.intent]
    labels = iter(tagger.tag(texts) if texts else ())
    return [one if one.intent else replace(one, intent=next(labels)[0]) for one in listed]


def shares_of(tagger: Tagger, paragraphs: Sequence[Sequence[str]]) -> dict[str, float]:
    """The share of each label of a tagger among the sentences of some paragraphs; shares add up to 1.

    Raises:
        InputError: There is no sentence.
    """
    tags = [label for labels in tagger.tag(paragraphs) for label in labels]
    if not tags:
        raise InputError("there is no sentence to tag", "Give texts that are not blank.")
    return {label: tags.count(label) / len(tags) for label in tagger.labels}


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
