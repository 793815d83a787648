"""Candidates as columns, without an index."""

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from citerec.index.columns import PaperRows, columns_of
from citerec.records import Paper
from citerec.retrieve.base import Candidate, Candidates


def columns(
    candidates: Iterable[Candidate],
    papers: Iterable[str] = (),
    records: Iterable[Paper] = (),
) -> Candidates:
    """The columns of some candidates of an index that has these papers, by default those of the candidates.

    `records` are the papers of which more is known than their ids.
    """
    listed = list(candidates)
    ids = tuple(papers) or tuple(one.paper_id for one in listed)
    return Candidates.of(_rows(tuple(sorted(set(ids), key=str.encode)), tuple(records)), listed)


@functools.cache
def _rows(ids: Sequence[str], records: Sequence[Paper]) -> PaperRows:
    keys = np.array([paper_id.encode() for paper_id in ids] or [b""])[: len(ids)]
    known = {one.paper_id: one for one in records}
    return PaperRows(keys, columns_of(known.get(paper_id) or Paper(paper_id) for paper_id in ids))
