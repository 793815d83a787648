"""The sources fetched into folders, cut to size, and brought up to date: `citerec.sources.fetch` with real servers."""

import gzip
from pathlib import Path

import orjson

from citerec.corpus.base import FORMATS, find_shards
from citerec.records import Deletion, Filters, Paper
from citerec.sources.base import Cut
from citerec.sources.fetch import FetchedCorpus, Manner, Place, get_corpus, make_plan, update_corpus
from tests.loopback import Site
from tests.source_records import ENTRY, HEADER, VOLUME, work
from tests.sources.test_arxiv import Interface

ALONE = Manner(workers=1)
WORKS = "/data/jsonl/works"


def get(corpus: str, url: str, out: Path, cut: Cut | None = None) -> FetchedCorpus:
    return get_corpus(make_plan(Place(corpus, url), out, None, (), cut or Cut()), ALONE)


def papers_of(folder: Path) -> dict[str, Paper]:
    """The papers of a folder, read as an index reads them."""
    papers: dict[str, Paper] = {}
    for shard in find_shards([folder]):
        for line in FORMATS[shard.format].read(shard.path):
            if isinstance(line.record, Paper):
                papers[line.record.paper_id] = line.record
            elif isinstance(line.record, Deletion):
                papers.pop(line.record.key, None)
    return papers


def snapshot(**partitions: list[dict[str, object]]) -> Site:
    """A server of OpenAlex with partitions by day, such as d2026_01_03."""
    pages, files = {}, []
    for name, works in partitions.items():
        day = name[1:].replace("_", "-")
        place = f"{WORKS}/updated_date={day}/part_0000.gz"
        pages[place] = gzip.compress(b"".join(orjson.dumps(one) + b"\n" for one in works))
        files.append({"url": f"s3://openalex{place}", "meta": {"content_length": len(pages[place])}})
    return Site({f"{WORKS}/manifest.json": orjson.dumps({"files": files}), **pages})


def titled(number: int, title: str, **changes: object) -> dict[str, object]:
    return work(id=f"https://openalex.org/W{number}", title=title, doi=f"https://doi.org/10.1/{number}", **changes)


def test_openalex(tmp_path: Path) -> None:
    first = [titled(number, f"Title {number}") for number in range(1, 6)]
    first += [titled(7, "Titre", language="fr"), titled(8, "Contents", is_paratext=True)]
    server = snapshot(d2026_01_03=first)
    made = get("openalex", server.url, tmp_path / "oa", Cut(languages=("en",)))
    server.stop()
    assert (made.release, made.papers) == ("2026-01-03", 5)

    server = snapshot(
        d2026_01_03=first[1:], d2026_06_24=[titled(2, "Changed"), titled(9, "New"), titled(3, "Neu", language="de")]
    )
    deleted = "work_id,deleted_date\nhttps://openalex.org/W1,2026-05-01\nhttps://openalex.org/W999,2026-05-01\n"
    server.pages[f"{WORKS}/deleted_ids.csv"] = deleted.encode()
    made = update_corpus(tmp_path / "oa", ALONE, server.url)
    server.stop()
    assert made.release == "2026-06-24"
    assert FetchedCorpus.read(tmp_path / "oa").papers == 4  # 2, 4, 5 and 9
    removed = [part for part in made.steps[-1].parts if part.name.startswith("delete")]
    assert [(part.name, part.kept) for part in removed] == [("deleted_ids.csv.gz", 1), ("deletes-cut.gz", 1)]


def test_arxiv(tmp_path: Path) -> None:
    interface = Interface()
    url = f"{interface.server.url}/oai"
    made = get("arxiv", url, tmp_path / "arxiv")
    assert (made.release, made.papers) == ("2026-11-23", 3)
    interface.days = {"2026-11-24": [("0704.0001", ""), ("2611.00001", ""), ("0704.0003", ' status="deleted"')]}
    interface.today = "2026-11-25"
    made = update_corpus(tmp_path / "arxiv", ALONE, url)
    interface.server.stop()
    assert (made.release, made.papers) == ("2026-11-25", 3)
    assert set(papers_of(tmp_path / "arxiv")) == {"0704.0001", "hep-th/9901001", "2611.00001"}


def test_the_anthology(tmp_path: Path) -> None:
    def entry(number: int, title: str = "T") -> str:
        return f'@article{{key{number},\n    title = "{title} {number}",\n    year = "{2010 + number}"\n}}\n'

    def served(day: int, *entries: str) -> Site:
        body = gzip.compress(f"{HEADER}{VOLUME}{''.join(entries)}{ENTRY}".encode())
        return Site({"/anthology+abstracts.bib.gz": body}, Last_Modified=f"Mon, {day} Nov 2026 23:30:00 GMT")

    server = served(16, *map(entry, range(6)))
    made = get("acl-anthology", server.url, tmp_path / "acl", Cut(Filters(year_from=2012)))
    assert (made.release, made.papers) == ("2026-11-16", 5)
    assert set(papers_of(tmp_path / "acl")) == {"key2", "key3", "key4", "key5", "garcia-etal-2020-probing"}
    assert update_corpus(tmp_path / "acl", ALONE, server.url) == made
    server.stop()
    server = served(23, entry(1), entry(2), entry(3, "Changed"), entry(9))
    made = update_corpus(tmp_path / "acl", ALONE, server.url)
    server.stop()
    assert (made.release, made.papers) == ("2026-11-23", 4)  # key2, key3, key9 and the last
