"""arXiv's OAI-PMH interface on loopback, and its metadata file."""

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from citerec.errors import InputError
from citerec.files.http import ChangedError, Web, WebError
from citerec.records import Paper
from citerec.sources.arxiv import Arxiv
from citerec.sources.base import RemoteFile
from citerec.sources.fetch import update_corpus
from tests.loopback import Answer, Server, send
from tests.source_records import preprint
from tests.sources.helpers import ALONE, fetched, papers_of

NAMES = 'xmlns="http://www.openarchives.org/OAI/2.0/"'


def answer(inside: str, today: str = "2026-11-23") -> bytes:
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{head}<OAI-PMH {NAMES}><responseDate>{today}T12:00:00Z</responseDate>{inside}</OAI-PMH>".encode()


def record(one: str, status: str = "") -> str:
    header = f"<header{status}><identifier>oai:arXiv.org:{one}</identifier><datestamp>2026-11-20</datestamp></header>"
    if status:
        return f"<record>{header}</record>"
    return f"""<record>{header}<metadata><arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>{one}</id>
  <created>2007-04-02</created><updated>2008-07-24</updated>
  <authors><author><keyname>Bal\\'azs</keyname><forenames>C.</forenames></author>
  <author><keyname>Berger</keyname><forenames>E. L.</forenames><suffix>Jr.</suffix></author></authors>
  <title>Prompt diphoton &amp; Schr\\"odinger
  at {one}</title><categories>hep-ph cs.CL</categories><doi>10.1/a</doi>
  <abstract>  A calculation with $x &lt; 1$.
</abstract></arXiv></metadata></record>"""


DELETED = ' status="deleted"'


class Interface:
    """An interface with records by day. It gives one a page, and a token that is the place of the next."""

    def __init__(self) -> None:
        self.server = Server()
        self.server.answers = [self.reply]
        self.days: dict[str, list[tuple[str, str]]] = {
            "2026-10-30": [("0704.0001", ""), ("0704.0002", DELETED)],
            "2026-11-20": [("hep-th/9901001", ""), ("0704.0003", ""), ("0704.0004", DELETED)],
        }
        self.last_token = " \n"
        self.today = "2026-11-23"
        self.failures: list[Answer | None] = []

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
        failure = self.failures.pop(0) if self.failures else None
        (failure or send(body=self.page(asked)))(handler)

    def page(self, asked: dict[str, str]) -> bytes:
        if asked["verb"] == "Identify":
            return answer("<Identify><earliestDatestamp>2026-09-16</earliestDatestamp></Identify>", self.today)
        if token := asked.get("resumptionToken"):
            assert set(asked) == {"verb", "resumptionToken"}
            begin, end, place = token.split("|")
        else:
            assert asked["metadataPrefix"] == "arXiv"
            begin, end, place = asked["from"], asked["until"], "0"
        found = [one for day, many in self.days.items() if begin <= day <= end for one in many]
        if int(place) >= len(found):
            return answer('<error code="noRecordsMatch">none</error>')
        one, status = found[int(place)]
        following = f"{begin}|{end}|{int(place) + 1}" if int(place) + 1 < len(found) else self.last_token
        made = record(one, status)
        if asked["verb"] == "ListIdentifiers":
            made = made[len("<record>") : made.index("</header>") + len("</header>")]
        return answer(f"<{asked['verb']}>{made}<resumptionToken>{following}</resumptionToken></{asked['verb']}>")


@pytest.fixture
def interface() -> Iterator[Interface]:
    interface = Interface()
    yield interface
    interface.server.stop()


@pytest.fixture
def arxiv(interface: Interface) -> Arxiv:
    return Arxiv(Web(patience=0), f"{interface.server.url}/oai")


def lines_of(arxiv: Arxiv, file: RemoteFile) -> list[bytes]:
    return b"".join(arxiv.chunks(file, lambda _expired: file.url)).splitlines(keepends=True)


def ids_of(arxiv: Arxiv, file: RemoteFile) -> list[str]:
    records = [record for found in arxiv.records(file, lines_of(arxiv, file)) for record in found.records]
    return [one.paper_id if isinstance(one, Paper) else one.key for one in records]  # type: ignore[union-attr]


def test_a_state_and_a_later_one(interface: Interface, tmp_path: Path) -> None:
    url = f"{interface.server.url}/oai"
    made = fetched("arxiv", url, tmp_path / "arxiv")
    assert (made.release, made.papers) == ("2026-11-23", 3)
    interface.days = {"2026-11-24": [("0704.0001", ""), ("2611.00001", ""), ("0704.0003", DELETED)]}
    interface.today = "2026-11-25"
    made = update_corpus(tmp_path / "arxiv", ALONE, url)
    assert (made.release, made.papers) == ("2026-11-25", 3)
    names = [part.name for part in made.steps[-1].parts]
    assert {"2026-11.jsonl.gz", "deleted-2026-11.jsonl.gz"} <= set(names), names
    assert update_corpus(tmp_path / "arxiv", ALONE, url) == made
    assert set(papers_of(tmp_path / "arxiv")) == {"0704.0001", "hep-th/9901001", "2611.00001"}


def test_a_release_is_a_day_and_its_files_are_months(arxiv: Arxiv) -> None:
    assert arxiv.releases() == [arxiv.release().name] == ["2026-11-23"]
    files = arxiv.files("2026-11-23", "papers")
    assert [file.name for file in files] == ["2026-09.jsonl", "2026-10.jsonl", "2026-11.jsonl"]
    assert [ids_of(arxiv, file) for file in files] == [[], ["0704.0001"], ["hep-th/9901001", "0704.0003"]]
    with pytest.raises(InputError, match="The newest is 2026-11-23"):
        arxiv.release("2026-11-24")
    (line,) = lines_of(arxiv, files[1])
    assert set(orjson.loads(line)) == set(preprint()) - {"submitter"}  # as in the metadata file
    (found,) = arxiv.records(files[1], [line])
    assert found.raw == line and found.records == (
        Paper(
            "0704.0001",
            title="Prompt diphoton & Schrödinger at 0704.0001",
            abstract="A calculation with $x < 1$.",
            year=2007,
            venue="arXiv",
            authors=("C. Balázs", "E. L. Berger Jr."),
            fields_of_study=("Physics", "Computer Science"),
            external_ids={"ArXiv": "0704.0001", "DOI": "10.1/a"},
        ),
    )


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (answer('<error code="badResumptionToken">expired</error>'), ChangedError, "where its list was left"),
        (answer('<error code="badArgument">no</error>'), WebError, "badArgument"),
        (answer("<Identify/>"), WebError, "something else than a list"),
        (b'<!DOCTYPE x [<!ENTITY e "e"><!ENTITY f "&e;&e;">]><x>&f;</x>', WebError, "XML"),
        (b"", WebError, "XML"),
    ],
    ids=["token", "argument", "no list", "entities", "nothing"],
)
def test_wrong_answers(arxiv: Arxiv, interface: Interface, body: bytes, error: type[WebError], message: str) -> None:
    file = arxiv.files("2026-11-23", "papers")[2]
    interface.failures = [None, *[send(body=body)] * (6 if "XML" in message else 1)]
    with pytest.raises(error, match=message):
        ids_of(arxiv, file)
    broken = send(body=b"<html>" * 99, most=50), send(503, Retry_After="0"), send(body=b"<html><p>Sorry"), send(502)
    interface.failures = [*broken[:2], None, *broken[2:]]  # these are asked again
    assert ids_of(arxiv, file) == ["hep-th/9901001", "0704.0003"]
    interface.last_token = "2026-11-01|2026-11-23|2"
    with pytest.raises(ChangedError, match="does not go on"):
        ids_of(arxiv, file)


def test_a_metadata_file_on_this_machine(interface: Interface, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "arxiv-metadata-oai-snapshot.json"
    path.write_bytes(b"".join(orjson.dumps(preprint(id=f"0704.100{one}")) + b"\n" for one in range(3)))
    os.utime(path, (1793620800, 1793620800))  # 2026-11-02, noon
    monkeypatch.setattr(Arxiv, "oai", f"{interface.server.url}/oai")
    arxiv = Arxiv(Web(patience=0), str(path))
    assert arxiv.releases() == ["2026-11-02"]
    (file,) = arxiv.files("2026-11-02", "papers")
    assert ids_of(arxiv, file) == ["0704.1000", "0704.1001", "0704.1002"]
    (update,) = arxiv.updates("2026-11-02", ["papers"])
    assert ids_of(arxiv, update.upserts[0]) == ["0704.0001"]  # it was gathered some days before
    with pytest.raises(InputError, match="no release '2026-11-01'"):
        arxiv.files("2026-11-01", "papers")
