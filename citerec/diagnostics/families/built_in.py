"""The built-in families: those of the benchmark (Maharjan 3.1), and two of ours."""

import functools
from collections.abc import Callable

from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.families.base import Condition, Facts, Family, agreed
from citerec.diagnostics.strata import strata
from citerec.records import Paper

# The cited paper


def _field_among(fields_of: Callable[[Bounds], tuple[str, ...]], facts: Facts) -> str | None:
    """The field named first, under which a paper is counted; None if papers differ, or if it is none of some fields."""
    field = agreed(paper.fields_of_study[0] if paper.fields_of_study else None for paper in facts.papers)
    return field if field in fields_of(facts.bounds) else None


def _large_fields(bounds: Bounds) -> tuple[str, ...]:
    return bounds.field.fields if bounds.field else ()


FIELD = Family(
    name="field",
    title="Field of study",
    classes=_large_fields,
    class_of=functools.partial(_field_among, _large_fields),
    counts_words=False,
)
"""Field of study of the cited paper, if it is a large field."""


def _year_group(facts: Facts) -> str | None:
    return agreed(strata().year.group_of(paper.year) for paper in facts.papers)


YEAR = Family(
    name="year",
    title="Year of the cited paper",
    classes=lambda _: strata().year.names,
    class_of=_year_group,
    counts_words=False,
)
"""Year of the cited paper, in groups of five (Maharjan 3.2.1, step 2)."""


def _citation_count_group(facts: Facts) -> str | None:
    bounds = facts.bounds.citation_count
    if bounds is None:
        return None

    def group_of(paper: Paper) -> str | None:
        field = paper.fields_of_study[0] if paper.fields_of_study else None
        return bounds.group_of(field, strata().year.group_of(paper.year), paper.citation_count)

    return agreed(map(group_of, facts.papers))


CITATION_COUNT = Family(
    name="citation_count",
    title="Citation count (0 = least cited tenth)",
    classes=lambda bounds: tuple(map(str, range(strata().citation_count.groups))) if bounds.citation_count else (),
    class_of=_citation_count_group,
    counts_words=False,
)
"""How often the cited paper is cited, in ten groups of its field and years (Maharjan 3.2.1, step 3)."""


# The sentence, and the place of the marker in it


def length_class(facts: Facts) -> str | None:
    """Short, medium or long, by mean ± standard deviation; None for outliers and for a marker alone. Maharjan 3.1.1."""
    bounds, length = facts.bounds.length, facts.sentence.length
    if bounds is None or length == 1 or not bounds.shortest <= length <= bounds.longest:
        return None
    return "short" if length < bounds.low else "long" if length > bounds.high else "medium"


def location_class(facts: Facts) -> str:
    """First, middle or last third: place of the marker among the words ÷ their number. Maharjan 3.1.2."""
    rules, place = strata().location, facts.sentence.position / facts.sentence.length
    return "first" if place <= rules.first_until else "middle" if place <= rules.middle_until else "last"


# What families hold constant: Maharjan 3.2.2, step 5.
MEDIUM = Condition("the sentence is of medium length", lambda facts: length_class(facts) == "medium")
MIDDLE = Condition("the marker stands in the middle third", lambda facts: location_class(facts) == "middle")
AT_END = Condition(
    "the marker is the last word", lambda facts: facts.sentence.marker_ends_it and location_class(facts) == "last"
)

LENGTH = Family(
    name="length",
    title="Length of the sentence",
    classes=lambda _: ("short", "medium", "long"),
    class_of=length_class,
    conditions=(AT_END,),
    sampled=True,
)
"""Length of the sentence in words; the marker is at its end."""

LOCATION = Family(
    name="location",
    title="Place of the citation",
    classes=lambda _: ("first", "middle", "last"),
    class_of=location_class,
    conditions=(MEDIUM,),
    sampled=True,
)
"""Place of the citation in the sentence; the sentence is of medium length."""


def _intent(facts: Facts) -> str | None:
    intent = (facts.context.intent or "").casefold()
    return next((name for name, spellings in strata().intent.items() if intent in spellings), None)


INTENT = Family(
    name="intent",
    title="Intent of the citation",
    classes=lambda _: tuple(strata().intent),
    class_of=_intent,
    conditions=(MEDIUM, AT_END),
    sampled=True,
)
"""Why the paper is cited; medium sentences with the marker at their end (Maharjan 3.1.3)."""

OTHERS = "others"


def part_of_speech(tag: str | None) -> str | None:
    """The group of a Penn tag (Maharjan 3.1.5); None for no tag."""
    if not tag:
        return None
    return next((name for name, tags in strata().part_of_speech.items() if tag in tags), OTHERS)


def parts_of_speech() -> tuple[str, ...]:
    """All groups, in order."""
    return (*strata().part_of_speech, OTHERS)


def _part_of_speech_beside(side: str, facts: Facts) -> str | None:
    return part_of_speech(getattr(facts.sentence, f"tag_{side}"))


POS_BEFORE, POS_AFTER = (
    Family(
        name=f"pos_{side}",
        title=f"Part of speech {side} the citation",
        classes=lambda _: parts_of_speech(),
        class_of=functools.partial(_part_of_speech_beside, side),
        conditions=(MEDIUM, MIDDLE),
        needs_tagger=True,
        sampled=True,
    )
    for side in ("before", "after")
)
"""Part of speech of the word before or after the citation; medium sentences, marker in the middle (Maharjan 3.1.5)."""


# Small fields


class _LowResource(Family):
    __slots__ = ()

    def classes_in(self, field: str, bounds: Bounds) -> tuple[str, ...]:
        """Its own class in a small field, none in others."""
        return (field,) if field in self.classes(bounds) else ()


def _small_fields(bounds: Bounds) -> tuple[str, ...]:
    return bounds.field.low_resource if bounds.field else ()


LOW_RESOURCE = _LowResource(
    name="low_resource",
    title="Low-resource fields",
    classes=_small_fields,
    class_of=functools.partial(_field_among, _small_fields),
    conditions=(MEDIUM, AT_END),
    sampled=True,
)
"""Field of study of the cited paper, if the field has less than 3 % of the corpus (Maharjan 3.1.4)."""


# Found when systems are measured


def _cited_before(facts: Facts) -> str | None:
    before = facts.context.cited_before
    if before is None:
        return None
    return agreed("again" if paper_id in before else "first" for paper_id in facts.context.cited_ids)


CITED_BEFORE = Family(
    name="cited_before",
    title="Cited before in the same text",
    classes=lambda _: ("first", "again"),
    class_of=_cited_before,
    on_the_spot=True,
    counts_words=False,
)
"""Whether the same text cited the paper before this place. Ours."""


def _citing_sentences(facts: Facts) -> str | None:
    counts = facts.citing_sentences
    return None if counts is None else agreed(map(strata().cold_start.group_of, counts))


COLD_START = Family(
    name="cold_start",
    title="Citing sentences of the cited paper in the index",
    classes=lambda _: strata().cold_start.names,
    class_of=_citing_sentences,
    on_the_spot=True,
    counts_words=False,
)
"""How many sentences of the index cite the cited paper: what a recommender can learn of it from others. Ours."""
