"""The snapshot of OpenAlex on a server."""

import gzip
from collections.abc import Iterator

import orjson
import pytest

from citerec.errors import InputError
from citerec.files.http import WebError
from citerec.records import Deletion, Paper
from citerec.sources.base import CORPORA, Dataset, FileWeb
from citerec.sources.openalex import OpenAlex
from tests.loopback import Site
from tests.source_records import work

DAYS = ("2026-01-03", "2026-06-24")
NEW = "/data/jsonl/works"


def manifest(*days: str) -> bytes:
    files = [
        {
            "url": f"s3://openalex{NEW}/updated_date={day}/part_0000.gz",
            "meta": {"content_length": 100, "record_count": 2},
        }
        for day in reversed(days)
    ]
    return orjson.dumps({"date": "2026-06-26", "files": files, "meta": {"content_length": 200}})


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site({f"{NEW}/manifest.json": manifest(*DAYS)})
    yield site
    site.stop()


@pytest.fixture
def openalex(site: Site) -> OpenAlex:
    return OpenAlex(FileWeb(patience=0), f"{site.url}/")


def test_the_release_is_the_newest_partition(openalex: OpenAlex) -> None:
    assert CORPORA["openalex"] is OpenAlex and not OpenAlex.key
    assert openalex.releases() == ["2026-06-24"]
    release = openalex.release()
    assert release.name == "2026-06-24" and "CC0" in release.terms
    assert [(one.name, one.bytes) for one in release.datasets] == [("works", 200)]
    assert isinstance(release.datasets[0], Dataset)
    with pytest.raises(InputError, match=r"the latest: 2026-06-24.*corpus update"):
        openalex.release("2026-01-03")


def test_files_in_order_of_their_days(openalex: OpenAlex, site: Site) -> None:
    files = openalex.files("2026-06-24", "works")
    assert [file.name for file in files] == [f"{day}-part_0000.gz" for day in DAYS]
    assert files[0].url == f"{site.url}{NEW}/updated_date=2026-01-03/part_0000.gz"
    assert (files[0].bytes, files[0].format) == (100, "openalex")
    assert openalex.files("2026-06-24", "authors") == []


def test_updates_are_later_partitions_and_deleted_ids(openalex: OpenAlex, site: Site) -> None:
    site.pages[f"{NEW}/deleted_ids.csv"] = b"work_id,deleted_date\nhttps://openalex.org/W9,2026-06-01\n"
    (update,) = openalex.updates("2026-01-03", ["works"])
    assert (update.begin, update.end, update.is_whole) == ("2026-01-03", "2026-06-24", False)
    assert [file.name for file in update.upserts] == ["2026-06-24-part_0000.gz"]
    assert [(file.name, file.format, file.bytes) for file in update.deletions] == [
        ("deleted_ids.csv", "openalex-deleted", 56)
    ]
    assert openalex.updates("2026-06-24", ["works"]) == []
    lines = site.pages[f"{NEW}/deleted_ids.csv"].splitlines(keepends=True)
    (record,) = openalex.records(update.deletions[0], lines)
    assert (record.number, record.raw, record.records) == (2, lines[1], (Deletion("papers", "W9"),))


def test_without_a_list_of_deletions(openalex: OpenAlex, site: Site) -> None:
    assert openalex.updates("2026-01-03", ["works"])[0].deletions == ()
    site.pages[f"{NEW}/deleted_ids.csv.gz"] = gzip.compress(b"work_id,deleted_date\n")
    assert openalex.updates("2026-01-03", ["works"])[0].deletions[0].name == "deleted_ids.csv.gz"


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b"null",
        b"{}",
        b'{"files": []}',
        b'{"files": [{}]}',
        b'{"files": [{"url": 7}]}',
        b'{"files": [{"url": "s3://openalex/data/works/part.gz"}]}',
        b'{"files": [{"url": "https://elsewhere.example/updated_date=2026-01-01/part.gz"}]}',
        b'{"files": [{"url": "s3://openalex/data/works/updated_date=2026-01-01/part.gz", "meta": [1]}]}',
        b'{"files": [{"url": "s3://openalex/data/works/updated_date=2026-01-01/../part.gz"}]}',
    ],
)
def test_a_manifest_of_another_form(openalex: OpenAlex, site: Site, answer: bytes) -> None:
    site.pages[f"{NEW}/manifest.json"] = answer
    with pytest.raises(WebError, match="another form"):
        openalex.releases()


def test_records_say_their_language_and_keep_their_bytes(openalex: OpenAlex) -> None:
    (file, *_) = openalex.files("2026-06-24", "works")
    lines = [orjson.dumps(one) + b"\n" for one in (work(), work(is_paratext=True), work(id=1), work(language=7))]
    records = list(openalex.records(file, [*lines, b"\n"]))
    assert [record.raw for record in records] == lines
    assert [record.language for record in records] == ["en", "en", None, None]
    assert isinstance(records[0].records, tuple) and isinstance(records[0].records[0], Paper)
    assert records[1].records == ()
