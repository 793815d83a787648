"""`GET /api/v1/papers` and `GET /api/v1/papers/{id}`: the records of an index."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field

from citerec.corpus.bibliographies import entries_of
from citerec.records import paper_to_json
from citerec.serve.finding import known_papers
from citerec.serve.models import FiltersModel, Name, OnePaperAnswer, PapersAnswer
from citerec.serve.service import ERRORS, ServiceOf, in_thread

router = APIRouter(prefix="/api/v1/papers", tags=["papers"], responses=ERRORS)


class PapersQuery(FiltersModel):
    """Which papers to list, and which page of the list."""

    q: str = Field(
        default="",
        max_length=1000,
        description="Words; without any, all papers in order of id.",
        examples=["term weighting"],
    )
    offset: int = Field(default=0, ge=0, le=10_000, description="How many papers to skip.")
    limit: int = Field(default=20, ge=1, le=100, description="How many papers to list.", examples=[5])
    index: Name | None = Field(default=None, description="The name of the index; the first one by default.")


@router.get("", response_model=PapersAnswer)
@in_thread
def papers(asked: Annotated[PapersQuery, Query()], service: ServiceOf) -> dict[str, Any]:
    """Papers that share a word with `q`, best first, and pass the filters."""
    served = service.indexes.get(asked.index)
    index = served.recommender.index
    # One more than is shown: it says whether there is another page.
    ids = index.find(asked.q.strip(), asked.to_filters(), limit=asked.limit + 1, offset=asked.offset)
    found = index.store.papers(ids[: asked.limit])
    listed = [paper_to_json(found[paper_id]) for paper_id in ids[: asked.limit]]
    following = asked.offset + asked.limit if len(ids) > asked.limit else None
    return {"index": served.name, "papers": listed, "next_offset": following}


@router.get("/{paper_id:path}", response_model=OnePaperAnswer)
@in_thread
def paper(
    paper_id: Annotated[str, Path(max_length=500, examples=["900000158"])],
    service: ServiceOf,
    index: Annotated[Name | None, Query(description="The name of the index; the first one by default.")] = None,
) -> dict[str, Any]:
    """One paper, with its BibTeX entry."""
    served = service.indexes.get(index)
    (found,) = known_papers(served.recommender.store, [paper_id])
    return {"index": served.name, **paper_to_json(found), "bibtex": "\n\n".join(entries_of([found]))}
