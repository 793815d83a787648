"""How many sentences of the index cite the cited paper: what a recommender can learn of it from others. Ours."""

from citerec.diagnostics.families.base import Facts, Family, agreed
from citerec.diagnostics.strata import strata


def _class_of(facts: Facts) -> str | None:
    counts = facts.citing_sentences
    return None if counts is None else agreed(map(strata().cold_start.group_of, counts))


COLD_START = Family(
    name="cold_start",
    title="Citing sentences of the cited paper in the index",
    classes=lambda _: strata().cold_start.names,
    class_of=_class_of,
    on_the_spot=True,
    counts_words=False,
)
