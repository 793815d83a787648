"""The families of strata, one file each. A new one is a file and a line here."""

import difflib
from collections.abc import Sequence

from citerec.diagnostics.families import (
    citation_count,
    field,
    intent,
    length,
    location,
    low_resource,
    pos_after,
    pos_before,
    year,
)
from citerec.diagnostics.families.family import Family
from citerec.errors import InputError

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        field.FAMILY,
        year.FAMILY,
        citation_count.FAMILY,
        length.FAMILY,
        location.FAMILY,
        intent.FAMILY,
        pos_before.FAMILY,
        pos_after.FAMILY,
        low_resource.FAMILY,
    )
}


def families_named(names: Sequence[str]) -> tuple[Family, ...]:
    """Families by name, in the order of the registry; all of them where none is named.

    Raises:
        InputError: A name is unknown.
    """
    for name in names:
        if name not in FAMILIES:
            near = difflib.get_close_matches(name, FAMILIES, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Families are: {', '.join(FAMILIES)}."
            raise InputError(f"there is no family {name!r}", hint)
    return tuple(family for family in FAMILIES.values() if not names or family.name in names)
