"""The collections of a build: cited papers, citing papers, texts, contexts (docs/formats.md)."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.store import PaperStore
from citerec.diagnostics.build import survey, texts
from citerec.diagnostics.build.draw import Cell
from citerec.files.parts import in_parts
from citerec.files.resume import Result
from citerec.records import Paper

COLLECTIONS = ("cited_papers", "citing_papers", "texts", "contexts")
"""Their names (docs/formats.md)."""

_OF_PAPERS = ("title", "authors", "venue", "year", "fields_of_study", "citation_count", "external_ids")

_BATCH = 500


class Collections:
    """JSON documents by the name of their collection, in a SQLite file that is made anew.

    Args:
        papers: The store of the papers.
        path: The file.
    """

    def __init__(self, papers: PaperStore, path: Path) -> None:
        self.papers = papers
        path.unlink(missing_ok=True)
        self._database = sqlite3.connect(path)
        for name in COLLECTIONS:
            self._database.execute(f"CREATE TABLE {name} (id TEXT PRIMARY KEY, cited_id TEXT, document TEXT NOT NULL)")
            self._database.execute(f"CREATE INDEX {name}_of_cited ON {name} (cited_id, id)")

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def count(self, name: str) -> int:
        """How many documents one of COLLECTIONS has."""
        return int(self._database.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0])

    def documents(self, name: str, cited_id: str | None = None) -> Iterator[dict[str, Any]]:
        """The documents of a collection in order of id; only those of one cited paper if it is given."""
        only = "id > ?1 AND (?2 IS NULL OR cited_id = ?2)"
        query = f"SELECT id, document FROM {name} WHERE {only} ORDER BY id LIMIT {_BATCH}"
        after = ""
        while page := self._database.execute(query, (after, cited_id)).fetchall():
            yield from (orjson.loads(document) for _, document in page)
            after = page[-1][0]

    def _of(self, name: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Documents by id; unknown ids are left out."""
        wanted = list(ids)
        query = f"SELECT id, document FROM {name} WHERE id IN ({','.join('?' * len(wanted))})"
        return {found: orjson.loads(document) for found, document in self._database.execute(query, wanted)}

    def _put(self, name: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """Stores documents, each in place of the one with its id."""
        for part in in_parts(documents, _BATCH):
            rows = [(one["id"], one.get("cited_id"), orjson.dumps(one).decode()) for one in part]
            with self._database:
                self._database.executemany(f"INSERT OR REPLACE INTO {name} VALUES (?, ?, ?)", rows)

    def contexts(self, cited_id: str | None = None) -> Iterator[dict[str, Any]]:
        """The contexts in order of id, with their sentence as it was measured; those that cite one paper, or all."""
        return self.documents("contexts", cited_id)

    def add_cited(self, drawn: Iterable[str], cells: Mapping[str, Cell]) -> None:
        """Keeps the papers that were drawn, each with its cell."""
        for part in in_parts(drawn, _BATCH):
            found = sorted(self.papers.papers(part).items())
            self._put(
                "cited_papers",
                ({"id": name, **cells[name]._asdict(), "paper": _paper_document(paper)} for name, paper in found),
            )

    def add_citing(self, results: Sequence[Result]) -> None:
        """Keeps papers that cite drawn ones: their metadata, if the corpus has them, and why they cite."""

        def citing() -> Iterator[dict[str, Any]]:
            for part in in_parts(survey.citing_papers(results), _BATCH):
                known = self.papers.papers([citing_id for citing_id, _ in part])
                for citing_id, cites in part:
                    paper = known.get(citing_id)
                    yield {"id": citing_id, "paper": _paper_document(paper) if paper else None, "cites": cites}

        self._merge_into("citing_papers", citing())

    def add_texts(self, result: Path) -> None:
        """Keeps the texts of a shard, with the paragraphs that cite drawn papers."""
        self._merge_into("texts", texts.texts(result))

    def add_contexts(self, result: Path) -> None:
        """Keeps the contexts of a shard with facts from other sources: year of the citing paper, intent."""
        self._put("contexts", self._known_contexts(result))

    def _known_contexts(self, result: Path) -> Iterator[dict[str, Any]]:
        for part in in_parts(texts.measured(result), _BATCH):
            citing = {str(document["context"]["citing_id"]) for document in part}
            years = self.papers.years(citing)
            cites = self._of("citing_papers", citing)
            for document in part:
                context = document["context"]
                citing_id = str(context["citing_id"])
                found = cites.get(citing_id, {}).get("cites", {}).get(document["cited_id"], [])
                if citing_id in years:
                    context["citing_year"] = years[citing_id] or context["citing_year"]
                elif context["citing_id"] is not None:  # not in the corpus: it cannot be recommended
                    context["citing_id"], context["citing_key"] = None, context["citing_key"] or f"CorpusId:{citing_id}"
                # If S2AG has several intents for a pair of papers, it does not say which one is of this sentence.
                if len(found) == 1:
                    context["intent"] = found[0]
                yield document

    def _merge_into(self, collection: str, documents: Iterable[dict[str, Any]]) -> None:
        """Puts documents; their lists and tables are added to those of an earlier round."""
        for part in in_parts(documents, _BATCH):
            before = self._of(collection, [document["id"] for document in part])
            for document in part:
                for key, value in before.get(document["id"], {}).items():
                    if isinstance(value, dict) and isinstance(document[key], dict):
                        document[key] = {**value, **document[key]}
                    elif isinstance(value, list):
                        document[key] = [*value, *(item for item in document[key] if item not in value)]
            self._put(collection, part)


def _paper_document(paper: Paper) -> dict[str, Any]:
    """The metadata of a paper as the collections keep them."""
    return {name: getattr(paper, name) for name in _OF_PAPERS}
