"""Whether an index can answer what is asked of it."""

import difflib
from collections.abc import Callable

from citerec.corpus.store import PaperStore
from citerec.corpus.values import LAST_YEAR
from citerec.errors import FilterError
from citerec.records import Filters
from citerec.retrieve.manifest import Manifest

_NAMED_FIELDS = 25
_USUAL_K = 10


def checked_k(k: int | None, manifest: Manifest) -> int:
    """How many papers to find: k, or where it is None the usual number, as far as the index has them.

    Raises:
        FilterError: k is under 1 or over the number of papers.
    """
    if k is None:
        return min(_USUAL_K, manifest.counts.papers)
    if k < 1:
        raise FilterError(f"-k {k} asks for no paper", "Ask for at least one: -k 10")
    if k > (papers := manifest.counts.papers):
        raise FilterError(f"-k {k:,} is more than the {papers:,} papers of the index", f"Ask for at most -k {papers}")
    return k


def check_filters(filters: Filters, store: PaperStore, matches_nothing: Callable[[Filters], bool]) -> None:
    """Whether the filters make sense, and name fields of study that the index has.

    Raises:
        FilterError: A range is turned round, a number negative, or a field unknown.
    """
    low, high = filters.year_from, filters.year_to
    for year in (low, high):
        if year is not None and not 0 <= year <= LAST_YEAR:
            raise FilterError(f"{year} is no year", "Give years such as 1998.")
    if low is not None and high is not None and low > high:
        raise FilterError(f"the years {low} to {high} are turned round", f"Write --year-from {high} --year-to {low}")
    if filters.min_citations is not None and not 0 <= filters.min_citations < 2**31:
        raise FilterError(f"--min-citations {filters.min_citations} is out of range", "Give a number from 0.")
    for name in filters.fields:
        if matches_nothing(Filters(fields=(name,))):
            raise FilterError(f"the index has no field of study {name!r}", _suggestion(name, store))


def _suggestion(name: str, store: PaperStore) -> str:
    known = {str(field).casefold(): str(field) for field in store.histogram("fields_of_study")}
    if not known:
        return "Its papers name no fields at all: leave --field out."
    near = difflib.get_close_matches(name.casefold(), known, n=1)
    if near:
        return f"Did you mean {known[near[0]]!r}?"
    return f"It has: {', '.join(list(known.values())[:_NAMED_FIELDS])}."
