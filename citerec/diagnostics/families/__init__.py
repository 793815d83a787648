"""The families of strata, one file each; `base.py` defines what a family is."""

from citerec.diagnostics.families.base import FAMILIES, Family, families_named, sampled_families, title_of

__all__ = ["FAMILIES", "Family", "families_named", "sampled_families", "title_of"]
