"""The paper store on MongoDB: a collection for each table of the SQLite store (docs/storage.md)."""

import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from citerec.corpus.mongo_database import Fields, MongoDatabase, parts, to_bson
from citerec.corpus.rows import (
    COLUMNS,
    JSON_COLUMNS,
    KEYS,
    RECORDS,
    Row,
    digest_sum,
    fingerprint_of,
    json_text,
    paper_of,
    rows_of,
)
from citerec.corpus.store import (
    CensusRow,
    CitingPaper,
    Counts,
    NumberedRecord,
    PaperFacts,
    SearchableCitance,
    SearchableText,
)
from citerec.corpus.titles import by_name, look_up_names, name_digest
from citerec.records import Paper

_FILTERABLE = ("year", "venue", "fields_of_study", "citation_count")

Encoded = dict[str, list[tuple[str, int, bytes]]]
"""By collection: id, place and BSON of each document."""


class MongoStore:
    """Papers in a MongoDB database, opened as `MongoDatabase` is.

    Reading is safe from several threads, and writing from several processes that have leases (`leases.py`).
    """

    def __init__(self, uri: str, *, name: str, credentials: Mapping[str, str], read_only: bool = False) -> None:
        self.database = MongoDatabase(uri, name=name, credentials=credentials, read_only=read_only)

    @staticmethod
    def encode(records: Sequence[NumberedRecord]) -> Encoded:
        """Documents by collection, as BSON; of several with one id, the one that wins."""
        encoded: Encoded = {}
        for table, rows in rows_of(records).items():
            documents = [(_id(table, row), row) for row in sorted(rows, key=lambda row: row[-1])]
            encoded[table] = [
                (document_id, row[-1], to_bson({"_id": document_id, **_fields(table, row)}))
                for document_id, row in dict(documents).items()
            ]
        return encoded

    def write(self, *encoded: Encoded) -> None:
        """Upserts documents by id; an existing document with a later place stays."""
        for table, documents in (item for part in encoded for item in part.items()):
            no_later = [({"_id": key, "place": {"$lte": place}}, bson) for key, place, bson in documents]
            self.database.upsert(table, no_later, later=True)

    def apply_deletions(self) -> None:
        for page in self.database.pages("deletions", ""):
            for table in RECORDS:
                found = [(fields["of_key"], fields["place"]) for fields in page if fields["of_table"] == table]
                if found and table == "citations":
                    self.database.index(table, "citation_id")
                self.database.delete(table, "citation_id" if table == "citations" else "_id", found)
        self.database.clear("deletions")

    def papers(self, paper_ids: Iterable[str], *, texts: bool = True) -> dict[str, Paper]:
        found: dict[str, Paper] = {}
        for ids in parts(paper_ids):
            abstracts, tldrs = (self._texts(table, ids) if texts else {} for table in ("abstracts", "tldrs"))
            for paper_id, fields in self.database.by_id("papers", ids).items():
                row = _row("papers", fields)
                found[paper_id] = paper_of(row, abstracts.get(paper_id), tldrs.get(paper_id))
        return found

    def ids_and_abstracts(self) -> Iterator[tuple[str, bool]]:
        for text in self.searchable_texts():
            yield text.paper_id, bool(text.abstract)

    def facts(self) -> Iterator[PaperFacts]:
        names = PaperFacts._fields[1:]
        for page in self.database.pages("papers", "", *names):
            for fields in page:
                yield PaperFacts(fields["_id"], *(fields[name] for name in names))

    def _texts(self, table: str, ids: list[str]) -> dict[str, str | None]:
        return {paper_id: fields["text"] for paper_id, fields in self.database.by_id(table, ids, "text").items()}

    def years(self, paper_ids: Iterable[str]) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for ids in parts(paper_ids):
            papers = self.database.by_id("papers", ids, "year")
            found.update((paper_id, fields["year"]) for paper_id, fields in papers.items())
        return found

    def census(self) -> Iterator[CensusRow]:
        names = ({"$toString": "$year"}, {"$toString": "$citation_count"}, {"$arrayElemAt": ["$fields_of_study", 0]})
        year, citation_count, field = ({"$ifNull": [name, ""]} for name in names)
        # One text, not an object of three fields: nx-27017, on which the tests run, takes that for a constant.
        key = {"$concat": [year, "/", citation_count, "/", field]}
        rows = [_census_row(text, papers) for text, papers in self.database.groups("papers", key)]
        # In SQLite's order: missing values come first.
        return iter(sorted(rows, key=lambda row: [(value is not None, value) for value in row]))

    def searchable_texts(self, after: str = "") -> Iterator[SearchableText]:
        for page in self.database.pages("papers", after):
            abstracts = self._texts("abstracts", [fields["_id"] for fields in page])
            for fields in page:
                yield _searchable(fields, title=fields["title"], abstract=abstracts.get(fields["_id"]) or "")

    def searchable_citances(self, after: str = "") -> Iterator[SearchableCitance]:
        for (_, citing_id), pair in itertools.groupby(self._joined(after), key=_pair):
            citations_of_pair = list(pair)
            citing_year = _citing_year(citations_of_pair)
            sentences = ((text, cited) for citation, cited, _ in citations_of_pair for text in citation["contexts"])
            for position, (text, cited) in enumerate(sentences):
                yield SearchableCitance(_searchable(cited), citing_id, citing_year, position, text)

    def _joined(self, after: str) -> Iterator[tuple[Fields, Fields, Fields]]:
        """(citation, cited paper, citing paper or nothing) in order, if the cited paper is in the store."""
        # "!" comes next after the space that ends a cited id: see _id.
        for page in self.database.pages("citations", f"{after}!"):
            ids = {fields[name] for fields in page for name in ("cited_id", "citing_id")}
            papers = self.database.by_id("papers", ids, *_FILTERABLE)
            for fields in page:
                if cited := papers.get(fields["cited_id"]):
                    yield fields, cited, papers.get(fields["citing_id"], {})

    def citances(self, cited_id: str, citing_id: str) -> tuple[str, ...]:
        pair = {"_id": {"$gte": f"{cited_id} {citing_id} ", "$lt": f"{cited_id} {citing_id}!"}}
        found = self.database.sorted("citations", pair, "contexts")
        return tuple(text for fields in found for text in fields["contexts"])

    def citing_papers(self, cited_ids: Iterable[str]) -> dict[str, list[CitingPaper]]:
        found: dict[str, list[CitingPaper]] = {}
        for cited_id in sorted(set(cited_ids)):
            # A space ends the cited id in an _id: see _id.
            of_paper = {"_id": {"$gte": f"{cited_id} ", "$lt": f"{cited_id}!"}}
            citations = self.database.sorted("citations", of_paper, "citing_id", "citing_year", "contexts")
            citing = self.database.by_id("papers", {fields["citing_id"] for fields in citations}, "year")
            for citing_id, listed in itertools.groupby(citations, key=operator.itemgetter("citing_id")):
                pair: list[tuple[Fields, Fields, Fields]] = [(one, {}, citing.get(citing_id, {})) for one in listed]
                if sentences := sum(len(citation["contexts"]) for citation, _, _ in pair):
                    found.setdefault(cited_id, []).append(CitingPaper(citing_id, _citing_year(pair), sentences))
        return found

    def called(self, names: Sequence[str], most: int) -> list[str]:
        if not names:
            return []
        either = "|".join(map(re.escape, names))
        # $elemMatch: nx-27017, on which the tests run, does not look into lists for a regular expression without it.
        surnames = {"authors": {"$elemMatch": {"$regex": f"(^| )({either})$", "$options": "i"}}}
        identifiers = {"external_ids": {"$elemMatch": {"id": {"$regex": f"^({either})$", "$options": "i"}}}}
        found = self.database.sorted("papers", {"$or": [surnames, identifiers]}, "citation_count")
        found.sort(key=lambda fields: -(fields["citation_count"] or 0))
        return [fields["_id"] for fields in found[:most]]

    def named(self, names: Iterable[str]) -> dict[str, list[Paper]]:
        wanted = list(names)
        found: set[str] = set()
        for part in parts(map(name_digest, wanted)):
            found.update(fields["_id"] for fields in self.database.sorted("papers", {"names": {"$in": part}}, "_id"))
        return by_name(wanted, self.papers(found, texts=False))

    def counts(self) -> Counts:
        with_abstract, unmatched_abstracts = self._matched("abstracts")
        with_tldr, unmatched_tldrs = self._matched("tldrs")
        citances = with_citances = unmatched = 0
        for part in parts(self.database.groups("citations", "$cited_id", sentences={"$size": "$contexts"})):
            known = self._known([cited_id for cited_id, *_ in part])
            for cited_id, citations, sentences in part:
                if cited_id in known:
                    with_citances += 1
                    citances += sentences
                else:
                    unmatched += citations
        return Counts(
            papers=self.database.count("papers", {}),
            with_abstract=with_abstract,
            with_tldr=with_tldr,
            with_year=self.database.count("papers", {"year": {"$ne": None}}),
            citances=citances,
            with_citances=with_citances,
            unmatched=unmatched_abstracts + unmatched_tldrs + unmatched,
        )

    def _matched(self, table: str) -> tuple[int, int]:
        """How many papers have a text, and how many records of texts, empty ones too, have no paper."""
        with_text = without_paper = 0
        for relation, counted in (("$ne", 1), ("$eq", 0)):
            for ids in parts(self.database.ids(table, only={"text": {relation: None}})):
                known = len(self._known(ids))
                with_text += known * counted
                without_paper += len(ids) - known
        return with_text, without_paper

    def _known(self, ids: Iterable[str]) -> set[str]:
        return set(self.database.by_id("papers", ids, "_id"))

    def histogram(self, attribute: str) -> dict[Any, int]:
        if attribute == "fields_of_study":
            groups = self.database.groups("papers", "$fields_of_study", {"$unwind": "$fields_of_study"})
        elif attribute in ("venue", "year"):
            groups = self.database.groups("papers", f"${attribute}", {"$match": {attribute: {"$ne": None}}})
        else:
            raise ValueError(f"no histogram of {attribute}")
        found: dict[Any, int] = dict(sorted((value, papers) for value, papers in groups))
        return found if attribute == "year" else dict(sorted(found.items(), key=lambda item: -item[1]))

    def fingerprint(self) -> str:
        return fingerprint_of(digest_sum(row for table in RECORDS for row in self._rows(table)))

    def _rows(self, table: str) -> Iterator[tuple[str, Row]]:
        return ((table, _row(table, fields)) for page in self.database.pages(table, "") for fields in page)

    def integrity_faults(self) -> list[str]:
        return [f"{table}: {fault}" for table in RECORDS for fault in self.database.faults(table)]

    def finish(self) -> None:
        self.database.index("papers", "names")
        self.close()  # MongoDB has acknowledged every write

    def interrupt(self) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()


def _id(table: str, row: Row) -> str:
    """The key of a row. Those of citations are three ids with spaces between.

    No id holds a space or anything that comes before it (corpus/values.py): so the keys sort like the three ids,
    one by one, and the citations of a paper are adjacent.
    """
    return " ".join(row[: len(KEYS[table])])


def _pair(joined: tuple[Fields, Fields, Fields]) -> tuple[str, str]:
    return joined[0]["cited_id"], joined[0]["citing_id"]


def _fields(table: str, row: Row) -> Fields:
    """The other fields of a row's document: JSON becomes lists, which MongoDB can search and index."""
    fields = dict(zip(COLUMNS[table], row, strict=True))
    for name in JSON_COLUMNS & fields.keys():
        fields[name] = orjson.loads(fields[name])
    if table == "papers":
        fields["names"] = sorted(map(name_digest, look_up_names(fields["title"], fields["external_ids"])))
        # A list of pairs: names of schemes come from files, and not every name may be that of a field.
        fields["external_ids"] = [{"scheme": scheme, "id": value} for scheme, value in fields["external_ids"].items()]
        fields["origins"] = [{"field": name, "source": value} for name, value in fields["origins"].items()]
    if len(KEYS[table]) == 1:
        del fields[KEYS[table][0]]
    if fields.get("citing_year", 0) is None:
        del fields["citing_year"]
    return fields


def _row(table: str, fields: Fields) -> Row:
    """The row of a document, without its place, equal to the one that SQLite gives."""
    if table == "citations":
        fields["influential"] = int(fields["influential"])
        fields.setdefault("citing_year", None)
    else:
        fields[KEYS[table][0]] = fields["_id"]
    if table == "papers":
        fields["external_ids"] = {pair["scheme"]: pair["id"] for pair in fields["external_ids"]}
        fields["origins"] = {pair["field"]: pair["source"] for pair in fields.get("origins", ())}
    return tuple(json_text(fields[name]) if name in JSON_COLUMNS else fields[name] for name in COLUMNS[table][:-1])


def _searchable(fields: Fields, title: str = "", abstract: str = "") -> SearchableText:
    year, venue, fields_of_study, citation_count = (fields[name] for name in _FILTERABLE)
    return SearchableText(fields["_id"], title, abstract, year, venue, json_text(fields_of_study), citation_count)


def _citing_year(pair: list[tuple[Fields, Fields, Fields]]) -> int | None:
    """The year of a citing paper's own record, else the latest that its citations of one paper give it."""
    (_, _, citing), *_ = pair
    if citing.get("year") is not None:
        return int(citing["year"])
    given = [citation["citing_year"] for citation, _, _ in pair if citation.get("citing_year") is not None]
    return max(given, default=None)


def _census_row(text: str, papers: int) -> CensusRow:
    *numbers, field = text.split("/", 2)
    year, citation_count = (int(number) if number else None for number in numbers)
    return CensusRow(field or None, year, citation_count, papers)
