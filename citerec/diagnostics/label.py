"""Labels contexts by all families that their data allow."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from citerec.contexts.leaks import LeakRules
from citerec.contexts.topic import Topic, topics_of
from citerec.corpus.store import PaperStore
from citerec.diagnostics.bounds import Bounds, FieldShares, census_of, compute_bounds
from citerec.diagnostics.families.base import Facts, Family, families_named
from citerec.diagnostics.sentences import NOT_READ, Sentence, read_sentences
from citerec.records import Context

FEW = 30
"""A class with fewer contexts says little: it is marked in every report."""

_PART = 1000


@dataclass(frozen=True, slots=True)
class Labelled:
    """Contexts with their labels.

    Attributes:
        families: The classes of each family, in order.
        conditions: What each family holds constant, in words.
        model: The spaCy model that tagged parts of speech, if any.
        outside: How many contexts cite no paper of the corpus.
    """

    contexts: tuple[Context, ...]
    families: dict[str, tuple[str, ...]]
    conditions: dict[str, tuple[str, ...]]
    bounds: Bounds
    model: str | None
    outside: int

    def counts(self) -> dict[str, dict[str, int]]:
        """How many contexts each class of each family has."""
        found = Counter(label for context in self.contexts for label in context.labels.items())
        return {name: {label: found[name, label] for label in classes} for name, classes in self.families.items()}


def label_contexts(
    contexts: Sequence[Context],
    store: PaperStore,
    families: Iterable[Family] | None = None,
    *,
    model: str | None = None,
    field_shares: FieldShares = "corpus",
    conditions: bool = True,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Labelled:
    """The contexts with their classes.

    Args:
        contexts: The contexts. Their own labels, if any, are replaced.
        store: The corpus that they cite: it decides the bounds.
        families: By which families; by default all that sets keep.
        model: Name or folder of a spaCy model; without one parts of speech stay unknown.
        field_shares: Whether the corpus decides which fields are small, or the benchmark's own list.
        conditions: Whether a context has a class only if the family's conditions hold.
        on_progress: Called with the number of contexts done.

    Raises:
        InputError: There is no such model.
    """
    families = families or [family for family in families_named() if not family.on_the_spot]
    chosen = [family for family in families if model is not None or not family.needs_tagger]
    # The first citing sentence tells whether there are any; to count them reads the whole store.
    counting = any(family.on_the_spot for family in chosen) and next(store.searchable_citances(), None) is not None
    tagging = any(family.needs_tagger for family in chosen)
    sentences = [NOT_READ] * len(contexts)
    if any(family.counts_words for family in chosen):
        sentences = _read(contexts, model if tagging else None, on_progress)
    bounds = compute_bounds((sentence.length for sentence in sentences), census_of(store), field_shares)
    labelled = []
    outside = 0
    for start in range(0, len(contexts), _PART):
        part = contexts[start : start + _PART]
        papers = store.papers({paper_id for context in part for paper_id in context.cited_ids})
        said = _citing_sentences(part, papers, store) if counting else [None] * len(part)
        for context, sentence, counts in zip(part, sentences[start : start + _PART], said, strict=True):
            cited = tuple(papers[paper_id] for paper_id in context.cited_ids if paper_id in papers)
            outside += not cited
            facts = Facts(context, sentence, cited, bounds, counts)
            labels = {family.name: family.label(facts, conditions=conditions) for family in chosen}
            labelled.append(replace(context, labels={name: label for name, label in labels.items() if label}))
    return Labelled(
        contexts=tuple(labelled),
        families={family.name: family.classes(bounds) for family in chosen},
        conditions={family.name: family.condition_names if conditions else () for family in chosen},
        bounds=bounds,
        model=model if tagging else None,
        outside=outside,
    )


def _read(contexts: Sequence[Context], model: str | None, on_progress: Callable[[int], None]) -> list[Sentence]:
    sentences = []
    for sentence in read_sentences(contexts, model):
        sentences.append(sentence)
        if len(sentences) % _PART == 0:
            on_progress(len(sentences))
    return sentences


def _citing_sentences(
    contexts: Sequence[Context], papers: Collection[str], store: PaperStore
) -> list[tuple[int, ...] | None]:
    """For each context, the citing sentences that it may know of each cited paper that the corpus has."""
    rules = LeakRules()
    sentences: dict[str, Counter[tuple[str, int | None]]] = {paper_id: Counter() for paper_id in papers}
    for one in store.searchable_citances(sorted(papers)):
        sentences[one.cited.paper_id][one.citing_id, one.citing_year] += 1

    def known(topic: Topic, paper_id: str) -> int:
        counts = sentences[paper_id].items()
        return sum(count for citing, count in counts if rules.permits_sentence(topic, *citing))

    topics = topics_of(contexts, store)
    return [tuple(known(topic, one) for one in topic.context.cited_ids if one in papers) for topic in topics]
