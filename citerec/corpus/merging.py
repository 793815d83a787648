"""Papers of several sources made one record each: S2AG, OpenAlex, arXiv, a bibliography.

Two records are of one work if they share a DOI, an arXiv id or an ACL id; else if `matching.same_work` says so (title,
year, an author) and their identifiers do not say otherwise. A preprint and its published version become one record,
with the identifiers of both. Works are kept in a database on disk: memory does not grow with the papers.
"""

import itertools
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from citerec.corpus.matching import is_preprint, plain_title, same_work
from citerec.corpus.references import ARXIV_DOI, conflicting, keys_of
from citerec.corpus.sqlite_store import SqliteStore
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.records import Paper

_BATCH = 500
_MOST_NAMESAKES = 20  # works of one title that a record is compared with
_SCHEMES = {"s2ag": "CorpusId", "openalex": "OpenAlex", "arxiv": "ArXiv", "acl-anthology": "ACL"}
"""Under which name the ids of a source are identifiers of a merged paper; else under the name of the source."""
_PUBLISHED = ("venue", "year")
"""What is taken from a published version, if a source has one, before a preprint."""

_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE works (source INTEGER, paper_id TEXT, work INTEGER, PRIMARY KEY (source, paper_id)) WITHOUT ROWID;
CREATE INDEX works_work ON works (work);
CREATE INDEX works_paper ON works (paper_id, source);
CREATE TABLE keys (key TEXT PRIMARY KEY, work INTEGER) WITHOUT ROWID;
CREATE INDEX keys_work ON keys (work);
CREATE TABLE titles (title TEXT, source INTEGER, paper_id TEXT, PRIMARY KEY (title, source, paper_id)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """How many records were merged into how many works, and how many works have records of several sources."""

    records: int
    works: int
    shared: int


class Merging:
    """The works of some sources.

    Args:
        sources: The papers of each source, by its name; of a field that several have, the value of the first counts.
        scratch: A file for the works, made anew.
    """

    def __init__(self, sources: Mapping[str, SqliteStore], scratch: Path) -> None:
        self._names, self._stores = list(sources), list(sources.values())
        scratch.unlink(missing_ok=True)
        self._works = sqlite3.connect(scratch)
        self._works.executescript(_SCHEMA)
        self._next = 1

    def close(self) -> None:
        """Closes the database of works."""
        self._works.close()

    def find_works(self, on_progress: Progress) -> MergeCounts:
        """Finds which records are of one work."""
        whole, done = sum(store.counts().papers for store in self._stores), 0
        for number, (name, store) in enumerate(zip(self._names, self._stores, strict=True)):
            for papers in in_parts(store.all_papers(), _BATCH):
                with self._works:
                    for paper in papers:
                        self._take(number, paper)
                done += len(papers)
                on_progress(f"finding works of {name}", done, whole)
        works, shared = self._all(
            "SELECT COUNT(*), COALESCE(SUM(sources > 1), 0) "
            "FROM (SELECT COUNT(DISTINCT source) AS sources FROM works GROUP BY work)"
        )[0]
        return MergeCounts(done, works, shared)

    def papers(self) -> Iterator[Paper]:
        """One paper for each work, with `origins`: from which source each field came."""
        rows = self._works.execute("SELECT work, source, paper_id FROM works ORDER BY work, source, paper_id")
        works = ([row[1:] for row in rows] for _, rows in itertools.groupby(rows, key=lambda row: row[0]))
        for batch in in_parts(works, _BATCH):
            found = [
                store.papers(paper_id for work in batch for at, paper_id in work if at == number)
                for number, store in enumerate(self._stores)
            ]
            for work in batch:
                paper = merged([(self._names[number], found[number][paper_id]) for number, paper_id in work])
                yield replace(paper, paper_id=self._own_id(*work[0]))

    def citations(self) -> Iterator[dict[str, Any]]:
        """The citations of all sources between the merged papers, as records of S2AG's `citations`.

        Papers that no source has are known by their id.
        """
        for number, (name, store) in enumerate(zip(self._names, self._stores, strict=True)):
            for cited_id, citing_id, citation_id, contexts, intents, influential, _ in store.rows("citations"):
                yield {
                    "citationid": f"{name}:{citation_id}",
                    "citingcorpusid": self._id(number, citing_id),
                    "citedcorpusid": self._id(number, cited_id),
                    "isinfluential": bool(influential),
                    "contexts": store.json(contexts),
                    "intents": store.json(intents),
                }

    def _id(self, source: int, paper_id: str) -> str:
        """The id of a merged paper, by the id of a source."""
        rows = self._all(
            "SELECT source, paper_id FROM works "
            "WHERE work = (SELECT work FROM works WHERE source = ? AND paper_id = ?) ORDER BY 1, 2 LIMIT 1",
            (source, paper_id),
        )
        return self._own_id(*(rows[0] if rows else (source, paper_id)))

    def _own_id(self, source: int, paper_id: str) -> str:
        """The id of a source for a paper, with the source's name if the id is that of another paper before it."""
        taken = self._all("SELECT 1 FROM works WHERE paper_id = ? AND source < ? LIMIT 1", (paper_id, source))
        return f"{self._names[source]}:{paper_id}" if taken else paper_id

    def _take(self, number: int, paper: Paper) -> None:
        """Puts a record into the works that share an identifier with it, which become one; else into a new one."""
        keys = keys_of(paper)
        works = self._works_of(keys)
        title = _title_key(paper)
        if not works and title and (namesake := self._namesake(paper, keys, title)):
            works = [namesake]
        if not works:
            works, self._next = [self._next], self._next + 1
        work, *others = works
        for other in others:
            self._works.execute("UPDATE works SET work = ? WHERE work = ?", (work, other))
            self._works.execute("UPDATE keys SET work = ? WHERE work = ?", (work, other))
        self._works.execute("INSERT INTO works VALUES (?, ?, ?)", (number, paper.paper_id, work))
        self._works.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", [(key, work) for key in sorted(keys)])
        if title:
            self._works.execute("INSERT INTO titles VALUES (?, ?, ?)", (title, number, paper.paper_id))

    def _all(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._works.execute(query, parameters).fetchall()

    def _works_of(self, keys: frozenset[str]) -> list[int]:
        marks = ",".join("?" * len(keys))
        query = f"SELECT DISTINCT work FROM keys WHERE key IN ({marks}) ORDER BY work"
        return [work for (work,) in self._all(query, sorted(keys))] if keys else []

    def _namesake(self, paper: Paper, keys: frozenset[str], title: str) -> int | None:
        """The work of a record with the same title, year and author; None if identifiers tell them apart."""
        rows = self._all(
            "SELECT w.work, t.source, t.paper_id FROM titles t JOIN works w USING (source, paper_id) "
            "WHERE t.title = ? ORDER BY w.work, t.source, t.paper_id LIMIT ?",
            (title, _MOST_NAMESAKES),
        )
        for work, source, paper_id in rows:
            other = self._stores[source].papers([paper_id], texts=False)[paper_id]
            known = frozenset(key for (key,) in self._all("SELECT key FROM keys WHERE work = ?", (work,)))
            if same_work(paper, other) and _may_be_editions(paper, other) and not conflicting(keys, known):
                return int(work)
        return None


def merged(records: Sequence[tuple[str, Paper]]) -> Paper:
    """The paper of some records of one work, each with the name of its source, the first source first."""
    published = sorted(records, key=lambda record: is_preprint(record[1]))  # stable
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name in Paper.__dataclass_fields__:
        if name in ("paper_id", "external_ids", "origins"):
            continue
        for source, paper in published if name in _PUBLISHED else records:
            if (value := getattr(paper, name)) not in (None, "", ()):
                values[name], origins[name] = value, source
                break
    return Paper(records[0][1].paper_id, **values, external_ids=_identifiers(records), origins=origins)


def _identifiers(records: Sequence[tuple[str, Paper]]) -> Mapping[str, str]:
    """The identifiers of all records, with the ids that sources gave them; published DOIs before arXiv's."""
    given: dict[str, str] = {}
    for source, paper in records:
        for scheme, value in {**paper.external_ids, _SCHEMES.get(source, source): paper.paper_id}.items():
            before = given.get(scheme)
            if before is None or (scheme == "DOI" and before.casefold().startswith(ARXIV_DOI)):
                given[scheme] = value
    return given


def _title_key(paper: Paper) -> str:
    return plain_title(paper.title).replace(" ", "")


def _may_be_editions(paper: Paper, other: Paper) -> bool:
    """Whether two records are not of two publications: articles that follow talks of the same title are papers too."""
    return paper.year == other.year or None in (paper.year, other.year) or is_preprint(paper) or is_preprint(other)
