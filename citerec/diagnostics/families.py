"""Families of strata: what a family is, those of the benchmark (Maharjan 3.1), and two of ours; labels by them.

The rules of the strata stand in diagnostics/strata.toml; bounds follow from them and from a corpus.
"""

import functools
import importlib.util
import math
import tomllib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

from citerec.contexts.split import spacy_model
from citerec.contexts.topic import LeakRules, Topic, topics_of
from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.registry import Registry
from citerec.records import MARKER, Context, Paper
from citerec.settings import shipped

FieldShares = Literal["corpus", "published"]

Census: TypeAlias = Mapping[tuple[str | None, int | None, int | None], int]
"""How many papers share a first field of study, a year and a citation count."""


# Rules


@functools.cache
def strata() -> Mapping[str, Any]:
    """The rules that come with citerec. A set that was labelled by another version of them must be labelled again."""
    return tomllib.loads(shipped("diagnostics", "strata.toml").read_text(encoding="utf-8"))


@functools.cache
def _groups(family: str) -> dict[str, tuple[float, float]]:
    """The groups of numbers of a family, in order: their names, first and last numbers. The last may have no end."""
    groups = {}
    for first, *rest in strata()[family]["groups"]:
        last = rest[0] if rest else math.inf
        groups[str(first) if last == first else f"{first}–{last}" if rest else f"{first}+"] = (first, last)
    return groups


def group_of(family: str, number: int | None) -> str | None:
    """The name of the group that a number falls in, such as a year; None if there is none."""
    if number is None:
        return None
    return next((name for name, (first, last) in _groups(family).items() if first <= number <= last), None)


# Bounds


class Frozen(BaseModel):
    """An immutable model without extra fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LengthBounds(Frozen):
    """Lengths in words: outliers are below `shortest` and above `longest`, medium sentences from `low` to `high`."""

    sentences: int
    outliers: int
    mean: float
    deviation: float
    shortest: float
    low: float
    high: float
    longest: float


class FieldBounds(Frozen):
    """Fields with their share of the papers whose field is known; large fields and low-resource fields."""

    decided_by: FieldShares
    shares: dict[str, float]
    fields: tuple[str, ...]
    low_resource: tuple[str, ...]


class CitationCountBounds(Frozen):
    """Where the groups of citation counts begin: nine numbers for ten groups.

    Attributes:
        cells: By field, then by group of years.
        pooled: By group of years, for fields too small to be cut on their own.
    """

    cells: dict[str, dict[str, tuple[int, ...]]]
    pooled: dict[str, tuple[int, ...]]

    def group_of_paper(self, paper: Paper) -> str | None:
        """The group of a paper, "0" for the least cited; None if something is unknown or the count is too low."""
        field, years = next(iter(paper.fields_of_study), ""), group_of("year", paper.year) or ""
        starts, count = self.cells.get(field, {}).get(years) or self.pooled.get(years), paper.citation_count
        if not starts or count is None or count < strata()["citation_count"]["least"]:
            return None
        return str(bisect_right(starts, count))


class Bounds(Frozen):
    """All bounds that were computed; None if the data do not allow it."""

    length: LengthBounds | None = None
    field: FieldBounds | None = None
    citation_count: CitationCountBounds | None = None


def citation_count_groups(bounds: Bounds) -> tuple[str, ...]:
    """The names of the groups of citation counts, if there are any."""
    return tuple(map(str, range(strata()["citation_count"]["groups"]))) if bounds.citation_count else ()


def census_of(store: PaperStore) -> Census:
    """Counts of papers by first field, year and citation count: one pass over all papers."""
    rows = store.select("papers", "fields_of_study", "year", "citation_count")
    return Counter((next(iter(store.json(fields)), None), year, count) for fields, year, count in rows)


def compute_bounds(lengths: Iterable[int], census: Census, field_shares: FieldShares = "corpus") -> Bounds:
    """The bounds for some contexts over some papers.

    Args:
        lengths: Length in words of each sentence.
        census: How many papers there are of each field, year and citation count.
        field_shares: Whether the papers decide which fields are small, or the benchmark's own list.
    """
    return Bounds(
        length=_length_bounds(lengths),
        field=_field_bounds(census, field_shares),
        citation_count=_citation_count_bounds(census),
    )


def _length_bounds(lengths: Iterable[int]) -> LengthBounds | None:
    import numpy as np

    words = np.fromiter(lengths, np.int64)
    if len(np.unique(words)) < 2:  # all alike: nothing is long or short
        return None
    rules = strata()["length"]
    shortest, longest = (words.mean() + sign * rules["outlier_z"] * words.std() for sign in (-1, 1))
    kept = words[(words >= shortest) & (words <= longest)]
    mean, deviation = kept.mean(), kept.std()
    low, high = (mean + sign * rules["deviations"] * deviation for sign in (-1, 1))
    names = ("mean", "deviation", "shortest", "low", "high", "longest")
    rounded = np.round([mean, deviation, shortest, low, high, longest], 3).tolist()
    return LengthBounds(sentences=len(words), outliers=len(words) - len(kept), **dict(zip(names, rounded, strict=True)))


def _field_bounds(census: Census, decided_by: FieldShares) -> FieldBounds | None:
    rules, papers = strata()["field"], Counter[str]()
    for (field, _, _), count in census.items():
        papers.update({field: count} if field else {})
    if not papers:
        return None
    shares = {field: count / papers.total() for field, count in sorted(papers.items())}
    large = [field for field, share in shares.items() if share >= rules["least_share"]]
    small = [field for field in shares if field not in large]
    if decided_by == "published":
        large, small = (
            [one for one in rules[name] if one in shares] for name in ("published", "published_low_resource")
        )
    return FieldBounds(
        decided_by=decided_by,
        shares={field: round(share, 6) for field, share in shares.items()},
        fields=tuple(large),
        low_resource=tuple(small),
    )


def _citation_count_bounds(census: Census) -> CitationCountBounds | None:
    counts: defaultdict[tuple[str | None, str], Counter[int]] = defaultdict(Counter)  # a field of None is all of them
    for (field, year, count), papers in census.items():
        years = group_of("year", year)
        if years and count is not None and count >= strata()["citation_count"]["least"]:
            for one in {field, None}:
                counts[one, years][count] += papers
    cells: dict[str | None, dict[str, tuple[int, ...]]] = {}
    for (field, years), of_cell in sorted(counts.items(), key=lambda cell: (cell[0][0] or "", cell[0][1])):
        if of_cell.total() >= strata()["citation_count"]["fewest_papers"]:
            cells.setdefault(field, {})[years] = _starts(of_cell)
    pooled = cells.pop(None, {})
    return CitationCountBounds(cells={f: cell for f, cell in cells.items() if f}, pooled=pooled) if pooled else None


def _starts(counts: Mapping[int, int]) -> tuple[int, ...]:
    """The lowest count of each group but the first.

    Papers of one count stay together, in the group where the middle one of them would be: with many ties a group can
    be empty, and its start is then that of the next.
    """
    groups, total = strata()["citation_count"]["groups"], sum(counts.values())
    below, starts = 0, [max(counts) + 1] * groups
    for count, papers in sorted(counts.items(), reverse=True):
        below += papers
        # Papers below this count, and half of those that have it: the group where the middle one stands.
        group = min(groups - 1, int(groups * (total - below + papers / 2) / total))
        starts[: group + 1] = [count] * (group + 1)
    return tuple(starts[1:])


DEFAULT_MODEL = "en_core_web_sm"
DOWNLOAD = f"`python -m spacy download {DEFAULT_MODEL}`"
HOW_TO_GET = f"{DOWNLOAD}, or name one: --spacy-model NAME|FOLDER"
_BATCH = 256


class Sentence(NamedTuple):
    """A citing sentence, in numbers.

    Attributes:
        length: Number of words, with the marker as one and without punctuation.
        position: Number of the marker among them, from 1.
        tag_before: Penn tag of the nearest word before the marker; None without a tagger, or if there is no word.
        tag_after: Penn tag of the nearest word after it.
    """

    length: int
    position: int
    tag_before: str | None = None
    tag_after: str | None = None


NOT_READ = Sentence(0, 0)
"""A sentence whose words nobody has counted."""


def read_sentences(contexts: Iterable[Context], model: str | None = None) -> Iterator[Sentence]:
    """Tokenises the sentence of each context, and tags it if a model is given.

    Args:
        contexts: Contexts, read as they are needed.
        model: Name or folder of a spaCy model with a tagger of Penn tags; None to count words only.

    Raises:
        InputError: There is no such model, or it does not tag.
    """
    pipeline = tagger(model)
    for doc, marker in pipeline.pipe(_documents(pipeline, contexts), as_tuples=True, batch_size=_BATCH):
        before, after = (list(filter(_is_word, side)) for side in (doc[:marker], doc[marker + 1 :]))
        yield Sentence(
            length=len(before) + 1 + len(after),
            position=len(before) + 1,
            tag_before=(before[-1].tag_ or None) if before else None,
            tag_after=(after[0].tag_ or None) if after else None,
        )


@functools.cache
def tagger(model: str | None) -> Any:
    """A spaCy model, by name or folder, with only what tagging needs; without one, spaCy's English tokenizer.

    Raises:
        InputError: There is no such model, or it does not tag.
    """
    if model is None:
        import spacy

        return spacy.blank("en")
    pipeline = spacy_model(
        model, f"Get one with {HOW_TO_GET}", "parser", "ner", "lemmatizer", "senter", "attribute_ruler"
    )
    if "tagger" not in pipeline.pipe_names:
        raise InputError(f"the spaCy model {model} does not tag parts of speech", f"Get one with {HOW_TO_GET}")
    return pipeline


def installed_model() -> str | None:
    """The default spaCy model, if it is installed, as a package or a folder; spaCy itself is not imported."""
    return DEFAULT_MODEL if Path(DEFAULT_MODEL).is_dir() or importlib.util.find_spec(DEFAULT_MODEL) else None


def _documents(pipeline: Any, contexts: Iterable[Context]) -> Iterator[tuple[Any, int]]:
    from spacy.tokens import Doc

    for context in contexts:
        # The marker is one token, even without white space around it.
        parts = [[token.text for token in pipeline.tokenizer(part)] for part in context.text.split(MARKER)]
        yield Doc(pipeline.vocab, words=[*parts[0], MARKER, *parts[-1]]), len(parts[0])


def _is_word(token: Any) -> bool:
    # Not `isalnum`: the ¹ of a footnote is no word.
    return any(character.isalpha() or character.isdecimal() for character in token.text)


class Facts(NamedTuple):
    """Everything that a class can depend on.

    Attributes:
        context: The context.
        sentence: Its words; `NOT_READ` if no family counts them.
        papers: The cited papers that the corpus has, in order.
        bounds: The bounds of the classes.
        citing_sentences: For each of the papers, how many sentences of the index cite it that the leak rules let the
            context know; None if the index has none at all.
    """

    context: Context
    sentence: Sentence
    papers: tuple[Paper, ...]
    bounds: Bounds
    citing_sentences: tuple[int, ...] | None = None


class Condition(NamedTuple):
    """A condition that is held constant, so that only the family's own property varies."""

    name: str
    holds: Callable[[Facts], bool]


@dataclass(frozen=True, slots=True)
class Family:
    """A property of contexts, and the classes by which they differ in it.

    A family stands in the table `FAMILIES`, or is an entry point of the group `citerec.families`.

    Attributes:
        name: The name for `--diagnostic NAME`.
        title: The title for headings.
        classes: The classes in their order, given the bounds.
        class_of: The class of a context, or None if it has none.
        conditions: The conditions that are held constant.
        counts_words: Whether the class or a condition depends on the words of the sentence. If no family asks for them,
            the sentence is not read, and spaCy is not imported.
        needs_tagger: Whether parts of speech must be known.
        sampled: Whether `diagnostics build` chooses contexts for each of its classes, so that it has a quota. By any
            other family it labels the contexts that it chose in large fields.
        of_small_fields: Whether its classes are small fields: contexts are chosen for each in that field alone.
        on_the_spot: Whether the class depends on the index that is searched, or on the draft: `citerec eval` finds it,
            for sets too, and sets do not keep it.
    """

    name: str
    title: str
    classes: Callable[[Bounds], tuple[str, ...]]
    class_of: Callable[[Facts], str | None]
    conditions: tuple[Condition, ...] = ()
    counts_words: bool = True
    needs_tagger: bool = False
    sampled: bool = False
    of_small_fields: bool = False
    on_the_spot: bool = False

    def of_set(self, bounds: Bounds, *, conditions: bool) -> "FamilyOfSet":
        """The family in a set whose contexts are not counted yet."""
        names = tuple(condition.name for condition in self.conditions) if conditions else ()
        return FamilyOfSet(conditions=names, classes=dict.fromkeys(self.classes(bounds), 0))

    def classes_in(self, field: str, bounds: Bounds) -> tuple[str, ...]:
        """The classes for which contexts are chosen in a field of study: all of them if the field is large."""
        if self.of_small_fields:
            return (field,) if field in self.classes(bounds) else ()
        return self.classes(bounds) if field in large_fields(bounds) else ()

    def label(self, facts: Facts, *, conditions: bool = True) -> str | None:
        """The class of a context, None if it has none or, with `conditions`, if a condition does not hold."""
        if conditions and not all(condition.holds(facts) for condition in self.conditions):
            return None
        return self.class_of(facts)


def agreed(classes: Iterable[str | None]) -> str | None:
    """The class that all papers of a group share; None if they differ, or if there is none."""
    labels = set(classes)
    return labels.pop() if len(labels) == 1 else None


ClassOf = Callable[[Facts], str | None]


def _family(
    title: str, classes: Callable[[Bounds], tuple[str, ...]], *conditions: Condition, **options: bool
) -> Callable[[ClassOf], Family]:
    """Makes a family of the function that gives its class, under the name of the function."""

    def family(class_of: ClassOf) -> Family:
        return Family(class_of.__name__, title, classes, class_of, conditions, **options)

    return family


# The cited paper


def large_fields(bounds: Bounds) -> tuple[str, ...]:
    """The fields that are no low-resource fields."""
    return bounds.field.fields if bounds.field else ()


def small_fields(bounds: Bounds) -> tuple[str, ...]:
    """The low-resource fields."""
    return bounds.field.low_resource if bounds.field else ()


def _field_among(fields: Sequence[str], facts: Facts) -> str | None:
    """The first field that each paper names; None if papers differ, or if it is none of some fields."""
    field = agreed(next(iter(paper.fields_of_study), None) for paper in facts.papers)
    return field if field in fields else None


@_family("Field of study", large_fields, counts_words=False)
def field(facts: Facts) -> str | None:
    """Field of study of the cited paper, if it is a large field."""
    return _field_among(large_fields(facts.bounds), facts)


@_family("Year of the cited paper", lambda _: tuple(_groups("year")), counts_words=False)
def year(facts: Facts) -> str | None:
    """Year of the cited paper, in groups of five (Maharjan 3.2.1, step 2)."""
    return agreed(group_of("year", paper.year) for paper in facts.papers)


@_family("Citation count (0 = least cited tenth)", citation_count_groups, counts_words=False)
def citation_count(facts: Facts) -> str | None:
    """How often the cited paper is cited, in ten groups of its field and years (Maharjan 3.2.1, step 3)."""
    bounds = facts.bounds.citation_count
    return agreed(map(bounds.group_of_paper, facts.papers)) if bounds else None


# The sentence, and the place of the marker in it. What families hold constant: Maharjan 3.2.2, step 5.
MEDIUM = Condition("the sentence is of medium length", lambda facts: FAMILIES["length"].class_of(facts) == "medium")
MIDDLE = Condition(
    "the marker stands in the middle third", lambda facts: FAMILIES["location"].class_of(facts) == "middle"
)
AT_END = Condition("the marker is the last word", lambda facts: facts.sentence.position == facts.sentence.length)


@_family("Length of the sentence", lambda _: ("short", "medium", "long"), AT_END, sampled=True)
def length(facts: Facts) -> str | None:
    """Short, medium or long, by mean ± standard deviation of the words; the marker is at the end. Maharjan 3.1.1.

    None for outliers and for a marker alone.
    """
    bounds, words = facts.bounds.length, facts.sentence.length
    if bounds is None or words == 1 or not bounds.shortest <= words <= bounds.longest:
        return None
    return "short" if words < bounds.low else "long" if words > bounds.high else "medium"


@_family("Place of the citation", lambda _: ("first", "middle", "last"), MEDIUM, sampled=True)
def location(facts: Facts) -> str | None:
    """First, middle or last third: place of the marker among the words ÷ their number. Maharjan 3.1.2.

    The sentence is of medium length.
    """
    rules, place = strata()["location"], facts.sentence.position / facts.sentence.length
    return "first" if place <= rules["first_until"] else "middle" if place <= rules["middle_until"] else "last"


@_family("Intent of the citation", lambda _: tuple(strata()["intent"]), MEDIUM, AT_END, sampled=True)
def intent(facts: Facts) -> str | None:
    """Why the paper is cited; medium sentences with the marker at their end (Maharjan 3.1.3)."""
    spelling = (facts.context.intent or "").casefold()
    return next((name for name, spellings in strata()["intent"].items() if spelling in spellings), None)


def part_of_speech(tag: str | None) -> str | None:
    """The group of a Penn tag (Maharjan 3.1.5); None for no tag."""
    groups = strata()["part_of_speech"].items()
    return next((name for name, tags in groups if tag in tags), "others") if tag else None


def parts_of_speech(_: Bounds | None = None) -> tuple[str, ...]:
    """All groups, in order."""
    return (*strata()["part_of_speech"], "others")


_TAGGED = {"needs_tagger": True, "sampled": True}


@_family("Part of speech before the citation", parts_of_speech, MEDIUM, MIDDLE, **_TAGGED)
def pos_before(facts: Facts) -> str | None:
    """Part of speech of the word before the citation; medium sentences, marker in the middle (Maharjan 3.1.5)."""
    return part_of_speech(facts.sentence.tag_before)


@_family("Part of speech after the citation", parts_of_speech, MEDIUM, MIDDLE, **_TAGGED)
def pos_after(facts: Facts) -> str | None:
    """The same of the word after the citation."""
    return part_of_speech(facts.sentence.tag_after)


@_family("Low-resource fields", small_fields, MEDIUM, AT_END, sampled=True, of_small_fields=True)
def low_resource(facts: Facts) -> str | None:
    """Field of study of the cited paper, if the field has less than 3 % of the corpus (Maharjan 3.1.4)."""
    return _field_among(small_fields(facts.bounds), facts)


# Found when systems are measured


@_family("Cited before in the same text", lambda _: ("first", "again"), on_the_spot=True, counts_words=False)
def cited_before(facts: Facts) -> str | None:
    """Whether the same text cited the paper before this place. Ours."""
    before, cited = facts.context.cited_before, facts.context.cited_ids
    return None if before is None else agreed("again" if paper_id in before else "first" for paper_id in cited)


@_family(
    "Citing sentences of the cited paper in the index",
    lambda _: tuple(_groups("cold_start")),
    on_the_spot=True,
    counts_words=False,
)
def cold_start(facts: Facts) -> str | None:
    """How many sentences of the index cite the cited paper: what a recommender can learn of it from others. Ours."""
    return agreed(group_of("cold_start", count) for count in facts.citing_sentences or ())


_NAMES = "field year citation_count length location intent pos_before pos_after low_resource cited_before cold_start"
FAMILIES: Registry[Family] = Registry(
    "family", {name: f"{__name__}:{name}" for name in _NAMES.split()}, plural="families"
)


def families_named(names: Sequence[str] = ()) -> tuple[Family, ...]:
    """Families by name, in their order; all of them if none is named.

    Raises:
        InputError: A name is unknown.
    """
    wanted = {FAMILIES[name].name for name in names}
    return tuple(family for name, family in FAMILIES.items() if not names or name in wanted)


def title_of(name: str) -> str:
    """The title of a family; its name if its package is no longer installed."""
    return FAMILIES[name].title if name in FAMILIES else name


FEW = 30
"""A class with fewer contexts says little: it is marked in every report."""

_PART = 1000


class FamilyOfSet(Frozen):
    """A family within a set: what it holds constant, in words, and how many contexts each class has, in order."""

    conditions: tuple[str, ...]
    classes: dict[str, int]


def tally(contexts: Iterable[Context], families: Mapping[str, FamilyOfSet]) -> dict[str, FamilyOfSet]:
    """The families of a set, with how many of its contexts each class has."""
    counts = Counter(label for context in contexts for label in context.labels.items())
    classes = {name: {label: counts[name, label] for label in one.classes} for name, one in families.items()}
    return {name: one.model_copy(update={"classes": classes[name]}) for name, one in families.items()}


class Labelled(NamedTuple):
    """Contexts with their labels.

    Attributes:
        families: The families, in order.
        model: The spaCy model that tagged parts of speech, if any.
        outside: How many contexts cite no paper of the corpus.
    """

    contexts: tuple[Context, ...]
    families: dict[str, FamilyOfSet]
    bounds: Bounds
    model: str | None
    outside: int


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
    on_progress: Progress = no_progress,
) -> Labelled:
    """The contexts with their classes.

    Args:
        contexts: The contexts. Their own labels, if any, are replaced.
        store: The corpus that they cite: it decides the bounds.
        families: By which families; by default all that sets keep.
        model: Name or folder of a spaCy model; without one parts of speech stay unknown.
        field_shares: Whether the corpus decides which fields are small, or the benchmark's own list.
        conditions: Whether a context has a class only if the family's conditions hold.
        on_progress: Called as the work goes on.

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
            on_progress("labelling", len(sentences), len(contexts))
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
        families=tally(labelled, {one.name: one.of_set(bounds, conditions=conditions) for one in chosen}),
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
    for (context, sentence), by_paper in zip(measured, counts, strict=True):
        cited = [paper_id for paper_id in context.cited_ids if paper_id in papers]
        numbers = None if by_paper is None else tuple(by_paper[paper_id] for paper_id in cited)
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
