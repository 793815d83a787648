"""The file of the ACL Anthology on a server: an update is the whole file again."""

import gzip
from pathlib import Path

import pytest

from citerec.files.http import Web, WebError
from citerec.records import Filters
from citerec.sources.acl_anthology import Anthology
from citerec.sources.fetch import Cut, update_corpus
from tests.loopback import Site, send
from tests.source_records import ENTRY, HEADER, VOLUME
from tests.sources.helpers import ALONE, fetched, papers_of

FILE = "/anthology+abstracts.bib.gz"


def entry(number: int, title: str = "T") -> str:
    return f'@article{{key{number},\n    title = "{title} {number}",\n    year = "{2010 + number}"\n}}\n'


def served(day: int, *entries: str) -> Site:
    body = gzip.compress(f"{HEADER}{VOLUME}{''.join(entries)}{ENTRY}".encode())
    return Site({FILE: body}, Last_Modified=f"Mon, {day} Nov 2026 23:30:00 GMT")


def test_a_file_and_a_later_one(tmp_path: Path) -> None:
    site = served(16, *map(entry, range(6)))
    made = fetched("acl-anthology", site.url, tmp_path / "acl", Cut(Filters(year_from=2012)))
    assert (made.release, made.papers) == ("2026-11-16", 5)
    assert set(papers_of(tmp_path / "acl")) == {"key2", "key3", "key4", "key5", "garcia-etal-2020-probing"}
    assert update_corpus(tmp_path / "acl", ALONE, site.url) == made
    site.stop()
    site = served(23, entry(1), entry(2), entry(3, "Changed"), entry(9))
    made = update_corpus(tmp_path / "acl", ALONE, site.url)
    site.stop()
    assert (made.release, made.papers) == ("2026-11-23", 4)  # key2, key3, key9 and the last


def test_a_server_that_does_not_say_when() -> None:
    site = Site()
    for header in ({}, {"Last_Modified": "yesterday"}):
        site.pages[FILE] = send(**header)
        with pytest.raises(WebError, match="does not say when"):
            Anthology(Web(patience=0), site.url).releases()
    site.stop()
