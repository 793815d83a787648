"""How often the cited paper is cited, in ten groups of its field and years (Maharjan 3.2.1, step 3)."""

from citerec.diagnostics.families.base import Facts, Family, agreed
from citerec.diagnostics.strata import strata
from citerec.records import Paper


def _class_of(facts: Facts) -> str | None:
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
    class_of=_class_of,
    counts_words=False,
)
