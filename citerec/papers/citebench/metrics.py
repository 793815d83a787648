"""Metrics of discourse: the labels of the sentences in a system's texts, compared with those in the targets.

CiteBench compares citation intents and CORWA's tags in this way (Funkquist et al. 2023, sections 3.2 and 4.3). The
preset has the settings of the authors' code.
"""

import functools
import importlib.metadata
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from citerec.contexts.split import SPACY, splitter, splitter_identity
from citerec.discourse.classifier import Tagger
from citerec.discourse.tagger import kl_divergence, open_tagger, shares_of
from citerec.errors import InputError
from citerec.files.progress import Progress
from citerec.models.find import find_model, model_identity
from citerec.write.anchors import with_bare_spans
from citerec.write.metrics import CorpusMetric, MeanOver, MetricOptions, MetricPart, Preset, Sentences
from citerec.write.tasks import Prediction, sentences_by

_CITATION = re.compile(r"\[\d\]")  # of one digit, as there
_FEW_TOKENS = 5


def citebench_sentences(text: str, *, citing: bool) -> list[str]:
    """The sentences of a text to which CiteBench gives citation intents (`convert_to_scicite.py` of its authors).

    spaCy's rules split the text. What does not end in a full stop belongs to the sentence that follows. Sentences of
    five tokens or fewer (NLTK's) are left out, and with `citing`, as for targets, those without a citation such as [3].
    """
    from nltk.tokenize import NLTKWordTokenizer  # type: ignore[import-untyped]

    tokens = NLTKWordTokenizer().tokenize
    sentences, begin = [], 0
    spans = splitter(SPACY)(text)
    for _, end in spans:
        if text[end - 1] == "." or end == spans[-1][1]:
            sentences.append(text[begin:end].strip())
            begin = end
    long = [one for one in sentences if len(tokens(one)) > _FEW_TOKENS]
    return [one for one in long if _CITATION.search(one)] if citing else long


class Discourse(CorpusMetric):
    """Shares of labels over all texts of a system and over all their targets, and the divergence between them.

    Args:
        name: "intent" or "corwa".
        tagger: Gives the labels.
        identity: Digest of the tagger's files, if there is one.
        renamed: The labels that were given other names, for settings.
        sentences: Which sentences are labelled: all, each text as a paragraph; or, as CiteBench does for citation
            intents (`convert_to_scicite.py` of its authors), those of `citebench_sentences`, each by itself.
        mean: Over several data sets, the shares among all sentences; or the mean of the shares of the data sets that
            have any, as CiteBench's authors take it (`ds_stats/scicite.py`, `ds_stats/corwa.py`).
    """

    def __init__(
        self,
        name: str,
        tagger: Tagger,
        identity: str = "",
        renamed: Mapping[str, str] | None = None,
        *,
        sentences: Sentences = "all",
        mean: MeanOver = "sentences",
    ) -> None:
        self.name = name
        self._tagger = tagger
        self._sentences, self._mean = sentences, mean
        self._target_shares = functools.cache(functools.partial(self._distribution, of_targets=True))
        how = sentences_by()
        if sentences != "all":
            packages = f"{' '.join(splitter_identity(SPACY))}, nltk {importlib.metadata.version('nltk')}"
            how = f"more than {_FEW_TOKENS} tokens, of targets with [n] only; as CiteBench ({packages})"
        facts = {"identity": identity, "renamed": dict(renamed or {})}
        self.settings = {
            "tagger": tagger.name,
            **{fact: value for fact, value in facts.items() if value},
            "scheme": tagger.scheme,
            "labels": list(tagger.labels),
            "sentences": how,
            "mean": f"over {mean}",
            "kl_divergence": "of the system's labels from the targets', in nats",
        }

    def summary(self, texts: Sequence[Prediction], on_progress: Progress) -> Mapping[str, Any]:
        """The two distributions and their divergence.

        Returns:
            `targets` and `system`: label → share, empty if there is no sentence. `missing`: labels of the targets
            that the system's texts lack. `kl_divergence`: a number; "∞" if one is missing; None if targets are blank.
        """
        doing, steps = f"tagging ({self.name})", 2
        on_progress(doing, 0, steps)
        # The targets are the same for every system.
        expected = self._target_shares(tuple((one.task.dataset, text) for one in texts for text in one.task.targets))
        on_progress(doing, 1, steps)
        shares = self._distribution([(one.task.dataset, one.text) for one in texts])
        on_progress(doing, steps, steps)
        divergence = kl_divergence(expected, shares)
        return {
            "targets": expected,
            "system": shares,
            # JSON has no infinite number.
            "kl_divergence": None if not expected else "∞" if math.isinf(divergence) else divergence,
            "missing": [label for label, share in expected.items() if share and not shares.get(label)],
        }

    def _distribution(self, texts: Sequence[tuple[str, str]], *, of_targets: bool = False) -> dict[str, float]:
        """The share of each label in texts, each after its data set; empty if there is no sentence to label."""
        groups: dict[str, list[Sequence[str]]] = {}
        split = splitter()
        for dataset, text in texts:
            bare = with_bare_spans(text)
            group = groups.setdefault(dataset if self._mean == "datasets" else "", [])
            if self._sentences == "all":
                group.append([bare[start:end] for start, end in split(bare)])
            else:
                group += [[one] for one in citebench_sentences(bare, citing=of_targets)]
        shares = [shares_of(self._tagger, group) for group in groups.values() if any(group)]
        return {label: sum(one[label] for one in shares) / len(shares) for label in self._tagger.labels if shares}


def _open(name: str, options: MetricOptions) -> Discourse:
    folder, labels = options.taggers[name], options.labels.get(name)
    if not folder.is_dir() and not labels:  # without labels it is ours: it would be looked for on the hub
        remedy = f"Give what citerec train tagger made: --tagger {name}=FOLDER"
        raise InputError(f"there is no tagger in {folder}", remedy)
    # CiteBench gives CORWA's tags to whole texts.
    sentences: Sentences = options.intent_sentences if name == "intent" else "all"
    tagger, identity = open_tagger(folder, labels=labels), model_identity(find_model(str(folder)))
    return Discourse(name, tagger, identity, labels, sentences=sentences, mean=options.discourse_mean)


INTENT, CORWA = (MetricPart(name, functools.partial(_open, name), needs_tagger=True) for name in ("intent", "corwa"))


CITEBENCH = Preset(
    "citebench",
    source="Funkquist et al. 2023; github.com/UKPLab/citebench: src/rel_work/evaluation.py, "
    "src/data_processing/convert_to_scicite.py, src/ds_stats/scicite.py",
    metrics=("rouge", "bertscore", "intent", "corwa"),
    options={
        "stemming": False,
        "rouge_l": "sentence",
        "references": "first",
        "bertscore_model": "distilbert-base-uncased",
        "bertscore_layer": 5,
        "bertscore_rescaled": False,
        "intent_sentences": "citebench",
        "discourse_mean": "datasets",
    },
)
