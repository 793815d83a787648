"""Year of the cited paper, in groups of five (Maharjan 3.2.1, step 2)."""

from citerec.diagnostics.families.base import Facts, Family, agreed
from citerec.diagnostics.strata import strata


def year_group(facts: Facts) -> str | None:
    """The group of years in which all cited papers appeared."""
    return agreed(strata().year.group_of(paper.year) for paper in facts.papers)


YEAR = Family(
    name="year",
    title="Year of the cited paper",
    classes=lambda _: strata().year.names,
    class_of=year_group,
    counts_words=False,
)
