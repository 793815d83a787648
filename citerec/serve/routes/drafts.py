"""`POST /api/v1/drafts`, `/drafts/recommend` and `/drafts/cite`: whole drafts, sent with each request and not kept."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

from fastapi import APIRouter

from citerec.drafts import Files, place_marker
from citerec.drafts.filling import Filling, support
from citerec.drafts.listing import Listed, listed
from citerec.errors import BuildError, InputError
from citerec.recommend import Recommender
from citerec.records import MARKER, Context, json_id, to_json
from citerec.serve.errors import DraftError, LimitError
from citerec.serve.finding import known_papers
from citerec.serve.models import (
    DraftAnswer,
    DraftCiteAnswer,
    DraftCiteRequest,
    DraftRecommendAnswer,
    DraftRecommendRequest,
    DraftRequest,
    DraftSayAnswer,
    DraftSayRequest,
)
from citerec.serve.service import ERRORS, Service, ServiceOf, in_thread
from citerec.write.citation import draft_json, in_draft

router = APIRouter(prefix="/api/v1/drafts", tags=["drafts"], responses=ERRORS)

_BIBLIOGRAPHY = Path("refs.bib")


def _check(asked: DraftRequest, service: Service) -> None:
    most = service.settings.draft_characters
    for name, text in (("draft", asked.text), ("bibliography", asked.bibliography)):
        if len(text) > most:
            raise LimitError(f"the {name} has {len(text):,} characters, more than {most:,}", "Send a part of it.")
    if _path(asked).suffix.lower() == ".bib":
        raise DraftError("a .bib file is no draft", "Send its text as `bibliography`.")


def _path(asked: DraftRequest) -> Path:
    return Path(PureWindowsPath(asked.name).name or "draft")  # without the folders of either system


@contextlib.contextmanager
def _filling(asked: DraftRequest, service: Service, system: Recommender | None, **more: Any) -> Iterator[Filling]:
    """The draft, whose errors are the client's. Papers of entries are found only if there is a system."""
    _check(asked, service)
    files = Files(texts={_path(asked): asked.text, _BIBLIOGRAPHY: asked.bibliography}, disk=False)
    match = (lambda entries: service.matches.find(entries, system)) if system else None
    try:
        filling = Filling(_path(asked), _BIBLIOGRAPHY, files, match, **more)
        if (places := len(filling.draft.places)) > (most := service.settings.places):
            raise LimitError(f"the draft has {places:,} places, more than {most:,}", "Send a part of it.")
        yield filling
    except (InputError, BuildError) as error:
        if type(error) not in (InputError, BuildError):  # such as an index that cannot be used
            raise
        raise DraftError(error.message, error.remedy) from error


@router.post("", response_model=DraftAnswer)
@in_thread
def drafts(asked: DraftRequest, service: ServiceOf) -> dict[str, Any]:
    """The places of a draft that want a citation, and what it cites."""
    served = service.indexes.get(asked.index)
    with _filling(asked, service, None) as filling:
        draft = filling.draft
        contexts = filling.contexts(served.recommender.store, citing_title=asked.title) if draft.places else []
        entries = filling.bibliography.entries
        return {
            "index": served.name,
            "title": asked.title or draft.title,
            "marker": place_marker(filling.path),
            "bibliographies": [path.name for path in draft.bibliographies],
            "places": [
                {"number": number, "line": place.line, "start": place.start, "end": place.end, "section": place.section}
                | {"text": context.text, "before": context.before, "after": context.after}
                for number, (place, context) in enumerate(zip(draft.places, contexts, strict=True))
            ],
            "cited": [
                {"key": one.key, "line": one.line, "start": one.start, "end": one.end}
                | {"title": entries[one.key].title if one.key in entries else None}
                for one in draft.cited
            ],
            "entries": len(entries),
            "unreadable": filling.bibliography.unreadable,
        }


@router.post("/recommend", response_model=DraftRecommendAnswer)
@in_thread
def recommend(asked: DraftRecommendRequest, service: ServiceOf) -> dict[str, Any]:
    """Papers to cite at a place of a draft."""
    service.check("", asked.k)
    served = service.indexes.get(asked.index)
    system = served.recommender
    if asked.citing is not None:
        known_papers(system.store, [asked.citing])
    with _filling(asked, service, system) as filling:
        context = _context(asked, filling, system)
    k = min(asked.k, system.manifest.counts.papers)
    answer = system.search(context, k, asked.filters.to_filters(), explain=True, fold=True)
    titles = system.titles(answer.hits)
    return {
        "index": served.name,
        "system": served.system,
        "text": context.text,
        **answer.to_json(),
        "hits": [_hit(one, titles, context) for one in listed(answer, filling.bibliography, own_first=asked.own_first)],
    }


def _context(asked: DraftRecommendRequest | DraftSayRequest, filling: Filling, system: Recommender) -> Context:
    """The context of the place; with other words in it if there are some."""
    if asked.place is None and asked.words is None:
        raise DraftError("there is neither a place nor words", "Give the number of a place, or words to search for.")
    contexts = filling.contexts(system.store, citing_id=asked.citing, citing_title=asked.title)
    if asked.place is not None:
        _check_place(asked.place, filling)
    context = contexts[-1 if asked.place is None else asked.place]
    if asked.words is None:
        return context
    return replace(context, text=asked.words.replace(MARKER, " "), before="", after="")


def _check_place(place: int, filling: Filling) -> None:
    if place >= (places := len(filling.draft.places)):
        raise DraftError(f"there is no place {place}", f"The draft has {places} places; the first one is 0.")


def _hit(one: Listed, titles: dict[str, str], context: Context) -> dict[str, Any]:
    hit, value = one.hit, to_json(one.hit)
    if hit.citance:
        value["citance"]["citing_title"] = titles.get(hit.citance.citing_id)
    return {
        **value,
        "key": one.key,
        "cite_id": json_id(one.paper.paper_id),
        "comes_first": one.comes_first,
        "support": None if hit.citance else support(hit, context),
    }


@router.post("/cite", response_model=DraftCiteAnswer)
@in_thread
def cite(asked: DraftCiteRequest, service: ServiceOf) -> dict[str, Any]:
    """A draft and its bibliography, with papers cited at a place."""
    served = service.indexes.get(asked.index)
    system = served.recommender
    papers = known_papers(system.store, asked.papers)
    with _filling(asked, service, system, pattern=asked.keys) as filling:
        _check_place(asked.place, filling)
        keys = filling.cite(asked.place, papers)
        return {
            "index": served.name,
            "text": filling.files.text(filling.path),
            "bibliography": filling.files.text(_BIBLIOGRAPHY),
            "keys": keys,
        }


@router.post("/say", response_model=DraftSayAnswer)
@in_thread
def say(asked: DraftSayRequest, service: ServiceOf) -> dict[str, Any]:
    """A generated text that cites papers by their keys, and the draft with it."""
    served = service.indexes.get(asked.index)
    system = served.recommender
    papers = known_papers(system.store, asked.papers)
    with _filling(asked, service, system, pattern=asked.keys) as filling:
        made = service.write(_context(asked, filling, system), papers)
        text = in_draft(made, filling)
        if asked.place is None:
            keys = list(dict.fromkeys(map(filling.bibliography.add, papers)))
        else:
            keys = filling.cite(asked.place, papers, text)
        told = draft_json(made, form=None)
        for one, paper in zip(told["papers"], papers, strict=True):
            one["key"] = filling.bibliography.key_of(paper)
        return {
            **told,
            "index": served.name,
            "text": text,
            "keys": keys,
            "draft": None if asked.place is None else filling.files.text(filling.path),
            "bibliography": filling.files.text(_BIBLIOGRAPHY),
        }
