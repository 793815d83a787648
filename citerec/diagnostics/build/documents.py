"""The collections that a build keeps in its store: cited papers, citing papers, texts, contexts (docs/storage.md)."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from citerec.corpus.shard_work import Result
from citerec.corpus.store import PaperStore
from citerec.diagnostics.build import intents, texts
from citerec.records import Paper

_PART = 1000


def paper_document(paper: Paper) -> dict[str, Any]:
    """The metadata of a paper as the collections keep them."""
    return {
        "title": paper.title,
        "authors": list(paper.authors),
        "venue": paper.venue,
        "year": paper.year,
        "fields_of_study": list(paper.fields_of_study),
        "citation_count": paper.citation_count,
        "external_ids": dict(paper.external_ids),
    }


def citing_papers(store: PaperStore, results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Papers that cite drawn ones: their metadata, where the corpus has them, and why they cite."""
    for part in parts(intents.citing_papers(results)):
        known = store.papers([citing_id for citing_id, _ in part])
        for citing_id, cites in part:
            paper = known.get(citing_id)
            yield {"id": citing_id, "paper": paper_document(paper) if paper else None, "cites": cites}


def contexts(store: PaperStore, result: Result) -> Iterator[dict[str, Any]]:
    """The contexts of a shard with what other sources know: year of the citing paper, intent of the citation."""
    for part in parts(texts.measured(result.path)):
        citing = {str(document["context"]["citing_id"]) for document in part}
        years = store.years(citing)
        cites = store.documents_of("citing_papers", citing)
        for document in part:
            context = document["context"]
            citing_id = str(context["citing_id"])
            found = cites.get(citing_id, {}).get("cites", {}).get(document["cited_id"], [])
            if citing_id in years:
                context["citing_year"] = years[citing_id] or context["citing_year"]
            elif context["citing_id"] is not None:
                # Not in the corpus: it cannot be recommended, and has no year there.
                context["citing_id"], context["citing_key"] = None, context["citing_key"] or f"CorpusId:{citing_id}"
            # Where S2AG says several things of a pair of papers, it does not say which is said of this sentence.
            if len(found) == 1:
                context["intent"] = found[0]
            yield document


def merge_into(store: PaperStore, collection: str, documents: Iterable[dict[str, Any]]) -> None:
    """Puts documents whose lists and tables add to what is there from an earlier round."""
    for part in parts(documents):
        before = store.documents_of(collection, [document["id"] for document in part])
        for document in part:
            for key, value in before.get(document["id"], {}).items():
                if isinstance(value, dict) and isinstance(document[key], dict):
                    document[key] = {**value, **document[key]}
                elif isinstance(value, list):
                    document[key] = [*value, *(item for item in document[key] if item not in value)]
        store.put(collection, part)


def parts(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Items in parts that one call to a store can take."""
    remaining = iter(items)
    while part := list(itertools.islice(remaining, _PART)):
        yield part
