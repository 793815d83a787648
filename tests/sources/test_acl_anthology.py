"""The file of the ACL Anthology on a server."""

import gzip
from collections.abc import Iterator

import pytest

from citerec.errors import InputError
from citerec.files.http import WebError
from citerec.records import Paper
from citerec.sources.acl_anthology import Anthology
from citerec.sources.base import CORPORA, FileWeb
from tests.loopback import Site, send
from tests.source_records import ENTRY, HEADER, VOLUME

FILE = "/anthology+abstracts.bib.gz"
BODY = gzip.compress(f"{HEADER}{VOLUME}{ENTRY}{ENTRY.replace('title =', 'title')}".encode())


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site({FILE: BODY}, Last_Modified="Mon, 23 Nov 2026 23:30:00 GMT")
    yield site
    site.stop()


@pytest.fixture
def anthology(site: Site) -> Anthology:
    return Anthology(FileWeb(patience=0), site.url)


def test_a_release_is_the_day_of_the_file(anthology: Anthology, site: Site) -> None:
    assert CORPORA["acl-anthology"] is Anthology
    assert anthology.releases() == ["2026-11-23"]
    release = anthology.release()
    assert release.datasets[0].bytes == len(BODY) and "CC BY 4.0" in release.terms
    (file,) = anthology.files("2026-11-23", "papers")
    assert (file.name, file.url, file.bytes) == (FILE[1:], f"{site.url}{FILE}", len(BODY))
    with pytest.raises(InputError, match="the latest: 2026-11-23"):
        anthology.files("2026-11-22", "papers")


def test_an_update_is_the_whole_file_again(anthology: Anthology) -> None:
    assert anthology.updates("2026-11-23", ["papers"]) == []
    (update,) = anthology.updates("2026-11-01", ["papers"])
    assert (update.begin, update.end, update.is_whole, update.deletions) == ("2026-11-01", "2026-11-23", True, ())
    assert [file.name for file in update.upserts] == [FILE[1:]]


def test_records_are_entries_with_their_bytes(anthology: Anthology) -> None:
    (file,) = anthology.files("2026-11-23", "papers")
    content = b"".join(anthology.chunks(file, lambda _expired: file.url))
    records = list(anthology.records(file, gzip.decompress(content).splitlines(keepends=True)))
    header, volume, entry, bad = records
    assert header.records == volume.records == ()
    assert entry.raw == ENTRY.encode() and isinstance(entry.records[0], Paper)
    assert bad.bad


def test_a_server_without_dates(anthology: Anthology, site: Site) -> None:
    for header in ({}, {"Last_Modified": "yesterday"}):
        site.pages[FILE] = send(body=BODY, **header)
        with pytest.raises(WebError, match="does not say when"):
            anthology.releases()
