"""The snapshot of OpenAlex on a server."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from citerec.errors import InputError
from citerec.files.http import Web, WebError
from citerec.sources.fetch import Cut, FetchedCorpus, update_corpus
from citerec.sources.openalex import OpenAlex
from tests.loopback import Site
from tests.source_records import work
from tests.sources.helpers import ALONE, fetched

WORKS = "/data/jsonl/works"
DELETED = b"work_id,deleted_date\nhttps://openalex.org/W1,2026-05-01\nhttps://openalex.org/W999,2026-05-01\n"


def publish(site: Site, **partitions: list[dict[str, object]]) -> None:
    """Partitions by day, such as d2026_01_03."""
    files = []
    for name, works in partitions.items():
        place = f"{WORKS}/updated_date={name[1:].replace('_', '-')}/part_0000.gz"
        site.pages[place] = body = gzip.compress(b"".join(orjson.dumps(one) + b"\n" for one in works))
        files.append({"url": f"s3://openalex{place}", "meta": {"content_length": len(body)}})
    site.pages[f"{WORKS}/manifest.json"] = orjson.dumps({"files": files[::-1]})


def titled(number: int, title: str, **changes: object) -> dict[str, object]:
    return work(id=f"https://openalex.org/W{number}", title=title, doi=f"https://doi.org/10.1/{number}", **changes)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


def test_a_snapshot_and_a_later_one(site: Site, tmp_path: Path) -> None:
    first = [titled(number, f"Title {number}") for number in range(1, 6)]
    others = [titled(7, "Titre", language="fr"), titled(8, "Contents", is_paratext=True)]
    publish(site, d2026_01_03=[*first, *others])
    made = fetched("openalex", site.url, tmp_path / "oa", Cut(languages=("en",)))
    assert (made.release, made.papers) == ("2026-01-03", 5)
    later = [titled(2, "Changed"), titled(9, "New"), titled(3, "Neu", language="de")]
    publish(site, d2026_01_03=first[1:], d2026_06_24=later)
    with pytest.raises(InputError, match=r"the latest: 2026-06-24.*corpus update"):
        OpenAlex(Web(patience=0), site.url).release("2026-01-03")
    site.pages[f"{WORKS}/deleted_ids.csv"] = DELETED
    made = update_corpus(tmp_path / "oa", ALONE, site.url)
    assert made.release == "2026-06-24"
    assert FetchedCorpus.read(tmp_path / "oa").papers == 4  # 2, 4, 5 and 9
    removed = [part for part in made.steps[-1].parts if part.name.startswith("delete")]
    assert [(part.name, part.kept) for part in removed] == [("deleted_ids.csv.gz", 1), ("deletes-cut.gz", 1)]


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b'{"files": []}',
        b'{"files": [{"url": "s3://openalex/data/works/part.gz"}]}',
        b'{"files": [{"url": "s3://openalex/data/works/updated_date=2026-01-01/part.gz", "meta": [1]}]}',
        b'{"files": [{"url": "s3://openalex/data/works/updated_date=2026-01-01/../part.gz"}]}',
    ],
)
def test_a_manifest_of_another_form(site: Site, answer: bytes) -> None:
    site.pages[f"{WORKS}/manifest.json"] = answer
    with pytest.raises(WebError, match="another form"):
        OpenAlex(Web(patience=0), site.url).releases()
