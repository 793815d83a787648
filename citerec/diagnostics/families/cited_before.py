"""Whether the same text cited the paper before this place. Ours."""

from citerec.diagnostics.families.base import Facts, Family, agreed


def _class_of(facts: Facts) -> str | None:
    before = facts.context.cited_before
    if before is None:
        return None
    return agreed("again" if paper_id in before else "first" for paper_id in facts.context.cited_ids)


CITED_BEFORE = Family(
    name="cited_before",
    title="Cited before in the same text",
    classes=lambda _: ("first", "again"),
    class_of=_class_of,
    on_the_spot=True,
    counts_words=False,
)
