"""The families of strata: `base.py` defines what a family is, `built_in.py` has those of citerec."""

from citerec.diagnostics.families.base import FAMILIES, Family, families_named, sampled_families, title_of

__all__ = ["FAMILIES", "Family", "families_named", "sampled_families", "title_of"]
