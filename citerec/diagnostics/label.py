"""Labels contexts by all families that their data allow."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from citerec.contexts.leaks import LeakRules
from citerec.contexts.topic import Topic, topics_of
from citerec.corpus.store import PaperStore
from citerec.diagnostics.bounds import Bounds, FieldShares, census_of, compute_bounds
from citerec.diagnostics.families import NOT_READ, Facts, Family, Sentence, families_named, read_sentences
from citerec.files.parallel import in_parts
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


def kept_families(model: str | None) -> tuple[Family, ...]:
    """The families whose labels sets keep; those of parts of speech only if there is a model that tags them."""
    return tuple(one for one in families_named() if not one.on_the_spot and (model or not one.needs_tagger))


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
    chosen = [one for one in families or kept_families(model) if model is not None or not one.needs_tagger]
    model = model if any(family.needs_tagger for family in chosen) else None
    sentences = [NOT_READ] * len(contexts)
    if any(family.counts_words for family in chosen):
        sentences = []
        for part in in_parts(read_sentences(contexts, model), _PART):
            sentences += part
            on_progress(len(sentences))
    bounds = compute_bounds((sentence.length for sentence in sentences), census_of(store), field_shares)
    # The first citing sentence tells whether there are any; to count them reads the whole store.
    counting = any(family.on_the_spot for family in chosen) and next(store.searchable_citances(), None) is not None
    labelled, outside = [], 0
    for some in in_parts(zip(contexts, sentences, strict=True), _PART):
        for facts in facts_of(some, store, bounds, counting=counting):
            outside += not facts.papers
            labelled.append(replace(facts.context, labels=labels_of(facts, chosen, conditions=conditions)))
    return Labelled(
        contexts=tuple(labelled),
        families={family.name: family.classes(bounds) for family in chosen},
        conditions={family.name: family.condition_names if conditions else () for family in chosen},
        bounds=bounds,
        model=model,
        outside=outside,
    )


def labels_of(facts: Facts, families: Iterable[Family], *, conditions: bool) -> dict[str, str]:
    """The classes of a context by the names of the families; those in which it has none are left out."""
    labels = {family.name: family.label(facts, conditions=conditions) for family in families}
    return {name: label for name, label in labels.items() if label}


def facts_of(
    measured: Sequence[tuple[Context, Sentence]], store: PaperStore, bounds: Bounds, *, counting: bool = False
) -> Iterator[Facts]:
    """The facts about some contexts; if `counting`, with the citing sentences of the index that each may know."""
    contexts = [context for context, _ in measured]
    papers = store.papers({paper_id for context in contexts for paper_id in context.cited_ids})
    counts = _citing_sentences(contexts, store) if counting else [None] * len(contexts)
    for (context, sentence), known in zip(measured, counts, strict=True):
        cited = [paper_id for paper_id in context.cited_ids if paper_id in papers]
        numbers = None if known is None else tuple(known[paper_id] for paper_id in cited)
        yield Facts(context, sentence, tuple(papers[paper_id] for paper_id in cited), bounds, numbers)


def _citing_sentences(contexts: Sequence[Context], store: PaperStore) -> list[dict[str, int]]:
    """For each context, how many citing sentences of each cited paper it may know."""
    rules, sentences = LeakRules(), defaultdict[str, Counter[tuple[str, int | None]]](Counter)
    for one in store.searchable_citances(sorted({paper_id for context in contexts for paper_id in context.cited_ids})):
        sentences[one.cited.paper_id][one.citing_id, one.citing_year] += 1

    def count_of(topic: Topic, paper_id: str) -> int:
        counts = sentences[paper_id].items()
        return sum(count for citing, count in counts if rules.permits_sentence(topic, *citing))

    return [{one: count_of(topic, one) for one in topic.context.cited_ids} for topic in topics_of(contexts, store)]
