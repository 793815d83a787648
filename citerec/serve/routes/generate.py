"""`POST /api/v1/generate`: citation texts."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter

from citerec.contexts.read import contexts_of_text
from citerec.errors import QueryError
from citerec.recommend import Recommender
from citerec.records import MARKER, Context, Paper
from citerec.serve.finding import known_papers
from citerec.serve.models import GenerateAnswer, GenerateRequest
from citerec.serve.service import ERRORS, ServiceOf, in_thread
from citerec.write.citation import draft_json, with_citations

router = APIRouter(prefix="/api/v1", tags=["generate"], responses=ERRORS)


@router.post("/generate", response_model=GenerateAnswer)
@in_thread
def generate(asked: GenerateRequest, service: ServiceOf) -> dict[str, Any]:
    """A text that cites papers for the `<REF>` of a sentence, written from their abstracts."""
    service.check(asked.text, asked.k)
    if (refs := asked.text.count(MARKER)) != 1:
        raise QueryError(f"the sentence holds {refs} {MARKER}", f'Write one, for example: "… was shown by {MARKER} …"')
    (context,) = contexts_of_text(asked.text)
    served = service.indexes.get(asked.index)
    system = served.recommender
    own = known_papers(system.store, [asked.citing])[0] if asked.citing is not None else None
    found = known_papers(system.store, asked.papers) if asked.papers else _found(asked, context, system)
    made = service.write(context, found, own)
    return {
        "index": served.name,
        "system": None if asked.papers else served.system,
        "sentence": with_citations(context, found),
        **draft_json(made, form="bibtex" if asked.bibtex else None),
    }


def _found(asked: GenerateRequest, context: Context, system: Recommender) -> list[Paper]:
    named = replace(context, citing_id=asked.citing, citing_title=asked.title)
    k = min(asked.k, system.manifest.counts.papers)
    return [hit.paper for hit in system.search(named, k, asked.filters.to_filters())]
