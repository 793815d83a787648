"""`POST /api/v1/recommend`: papers to cite."""

from typing import Any

from fastapi import APIRouter

from citerec.serve.finding import known_papers
from citerec.serve.models import RecommendAnswer, RecommendRequest
from citerec.serve.service import ERRORS, ServiceOf, in_thread

router = APIRouter(prefix="/api/v1", tags=["recommend"], responses=ERRORS)


@router.post("/recommend", response_model=RecommendAnswer)
@in_thread
def recommend(asked: RecommendRequest, service: ServiceOf) -> dict[str, Any]:
    """Papers to cite at each `<REF>` of a text."""
    service.check(asked.text, asked.k)
    served = service.indexes.get(asked.index)
    system = served.recommender
    by_key = asked.cited if isinstance(asked.cited, dict) else {paper_id: paper_id for paper_id in asked.cited}
    known = system.store.papers(by_key.values(), texts=False)
    cited = {key: paper_id for key, paper_id in by_key.items() if paper_id in known}
    if asked.citing is not None:
        known_papers(system.store, [asked.citing])
    answers = system.search_text(
        asked.text,
        min(asked.k, system.manifest.counts.papers),
        asked.filters.to_filters(),
        explain=asked.explain,
        fold=asked.fold,
        citing_id=asked.citing,
        citing_title=asked.title,
        cited=cited if by_key else None,
    )
    return {
        "index": served.name,
        "system": served.system,
        "answers": [{"text": answer.context.text, **answer.to_json()} for answer in answers],
        "unknown_cited": sorted({paper_id for paper_id in by_key.values() if paper_id not in known}),
    }
