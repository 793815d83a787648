"""Pushes are whole, resumed, brought up to date, and never seen half done."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from citerec import Index, Recommender
from citerec.errors import BuildError, CiterecError, IndexUnusableError, InputError, ServiceError
from citerec.files.progress import no_progress
from citerec.retrieve.index import BuildOptions, add_to_index, remove_papers
from citerec.retrieve.lucene.queries import Bm25
from citerec.retrieve.qdrant.address import KEY, Address, Connection
from citerec.retrieve.qdrant.edge import EdgeClient
from citerec.retrieve.qdrant.manifest import NAME, QdrantManifest, aliases, stated_at
from citerec.retrieve.qdrant.push import Pushed, PushOptions, push_index
from citerec.retrieve.qdrant.upload import Upload
from citerec.retrieve.verify import verify
from citerec.systems import Recipe
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.qdrant.server import Server

pytestmark = pytest.mark.slow

SENTENCE = "Two antiparallel strands wind around a common axis <REF>."
GONE = "900000001"


@pytest.fixture
def index(said_index: Path, tmp_path: Path) -> Path:
    """The demo corpus with vectors and citing sentences, not pushed; links, as nothing changes a written file."""
    shutil.copytree(said_index, out := tmp_path / "index")
    return out


@pytest.fixture
def address(tmp_path: Path) -> str:
    """An address of the real engine."""
    return f"edge:{tmp_path}/engine/demo"


def push(index: Path, to: str | None, **options: object) -> Pushed:
    return push_index(index, to, PushOptions(**options), no_progress)  # type: ignore[arg-type]


def found(index: Path, system: str = "qdrant-hybrid", text: str = SENTENCE) -> list[tuple[str, float]]:
    with Recommender.open(index, system) as opened:
        return [(hit.paper.paper_id, round(hit.score, 5)) for hit in opened.search(text, 10)]


def points(address: str) -> dict[str, dict[str, object]]:
    """Everything that the collections of an address hold, by collection and id."""
    held: dict[str, dict[str, object]] = {}
    with Connection(Address.parse(address)) as connection:
        for alias, name in aliases(connection).items():
            shard = connection.client._shard(name)  # type: ignore[attr-defined]
            records, _ = shard.scroll(
                connection.client._edge.ScrollRequest(limit=10_000, with_payload=True, with_vector=True)  # type: ignore[attr-defined]
            )
            held[alias] = {str(one.id): (one.payload, _plain(one.vector)) for one in records}
    return held


def _plain(vectors: dict[str, object]) -> dict[str, object]:
    return {
        name: sorted(zip(one.indices, one.values, strict=True)) if hasattr(one, "indices") else one
        for name, one in vectors.items()
    }


def test_a_push_says_what_it_holds_and_a_second_one_that_nothing_changed(index: Path, address: str) -> None:
    first, second = push(index, address), push(index, None)
    assert first.changed is None
    assert second.changed == 0
    assert first.stated == second.stated
    assert first.stated.papers == 252
    assert first.stated.citances > 200
    assert first.stated.dense is not None
    assert first.stated.collisions == 0
    with Connection(first.address) as connection:
        assert stated_at(connection) == first.stated
        assert all(first.stated.fingerprint[:12] in name for name in aliases(connection).values())
    assert not verify(index)


def test_a_stopped_push_goes_on_and_is_not_seen_before_it_is_whole(
    index: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.retrieve.qdrant.upload._BATCH", 20)
    monkeypatch.setattr("citerec.retrieve.qdrant.upload._NOTE_EVERY", 1)
    whole, sent = Upload._upsert, []

    def stopping(self: Upload, name: str, made: list[object]) -> None:
        if len(sent) == 5:
            raise KeyboardInterrupt
        sent.append(name)
        whole(self, name, made)  # type: ignore[arg-type]

    monkeypatch.setattr(Upload, "_upsert", stopping)
    with pytest.raises(KeyboardInterrupt):
        push(index, address)
    with Connection(Address.parse(address)) as connection:
        assert not aliases(connection)
    with pytest.raises(IndexUnusableError, match="no collections in Qdrant"):
        Recommender.open(index, "qdrant-bm25")
    again: list[str] = []

    def counting(self: Upload, name: str, made: list[object]) -> None:
        again.append(name)
        whole(self, name, made)  # type: ignore[arg-type]

    monkeypatch.setattr(Upload, "_upsert", counting)
    resumed = push(index, address)
    papers = [name for name in [*sent, *again] if "citances" not in name]
    assert len(papers) == 13  # 252 papers by 20: none was sent twice
    assert resumed.changed is None
    expected = points(address)
    shutil.rmtree(index / NAME)
    push(index, other := address.replace("/demo", "/other"))
    assert points(other)["other"] == expected["demo"]


def test_new_collections_take_the_place_of_the_old_ones_which_are_removed(index: Path, address: str) -> None:
    push(index, address)
    with Connection(Address.parse(address)) as connection, Recommender.open(index, "qdrant-bm25") as reader:
        before = aliases(connection)
        expected = [hit.paper.paper_id for hit in reader.search(SENTENCE, 5)]
        push(index, None, anew=True)
        anew = aliases(connection)
        push(index, None, bm25=Bm25(k1=0.9, b=0.4))
        after = aliases(connection)
        assert before.keys() == anew.keys() == after.keys()
        assert not {*before.values()} & {*anew.values()}
        assert {one.name for one in connection.client.get_collections().collections} == {*after.values()}
        assert [hit.paper.paper_id for hit in reader.search(SENTENCE, 5)][:1] == expected[:1]  # it reads the new ones


def updated(index: Path, folder: Path, how: str) -> None:
    """Adds and changes papers, or removes one."""
    if how == "remove":
        (folder / "gone.txt").write_text(f"{GONE}\n")
        remove_papers(folder / "gone.txt", index)
        return
    new = s2ag_paper(7, "Strands that wind around an axis", year=1999, venue="Nature")
    changed = s2ag_paper(900000002, "A changed title about antiparallel strands", year=2001)
    add_to_index([write_lines(folder / "papers" / "new.jsonl", [new, changed])], index)


@pytest.mark.parametrize("how", ["add", "remove"])
def test_what_changed_is_pushed_and_the_result_is_that_of_a_whole_push(
    index: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    push(index, address)
    updated(index, tmp_path, how)
    with pytest.raises(IndexUnusableError, match="holds other papers than") as raised:
        Recommender.open(index, "qdrant-bm25")
    assert f"citerec index push {index}" in raised.value.remedy
    made = push(index, None)
    assert made.changed is not None
    assert 0 < made.changed < 20
    assert not verify(index)
    changed, lists = points(address), [found(index, system) for system in ("qdrant-hybrid", "qdrant-citances")]
    assert (GONE in dict(lists[0])) == (how == "add")
    whole = push(index, None, anew=True)
    assert whole.changed is None
    again = points(address)
    # The mean length of texts is that of the first push, until it has moved by a hundredth.
    assert changed["demo"].keys() == again["demo"].keys()
    assert {key: one[0] for key, one in changed["demo"].items()} == {  # type: ignore[index]
        key: one[0]
        for key, one in again["demo"].items()  # type: ignore[index]
    }
    assert changed["demo-citances"].keys() == again["demo-citances"].keys()
    for one, other in zip(
        lists, [found(index, system) for system in ("qdrant-hybrid", "qdrant-citances")], strict=True
    ):
        assert [paper_id for paper_id, _ in one][:5] == [paper_id for paper_id, _ in other][:5]


def test_after_a_push_from_elsewhere_everything_is_pushed(index: Path, address: str, tmp_path: Path) -> None:
    shutil.copytree(index, other := tmp_path / "other")
    push(index, address)
    updated(other, tmp_path, "add")
    push(other, address)
    with pytest.raises(IndexUnusableError, match="holds other papers"):
        Recommender.open(index, "qdrant-dense")
    assert push(index, None).changed is None
    assert found(index)


def test_too_few_points_are_noticed(index: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Upload._upsert
    monkeypatch.setattr(Upload, "_upsert", lambda self, name, made: whole(self, name, made[1:]))
    with pytest.raises(BuildError, match="papers, and the index 252") as raised:
        push(index, address)
    assert "--anew" in raised.value.remedy
    with Connection(Address.parse(address)) as connection:
        assert not aliases(connection)


@pytest.mark.parametrize("quantization", ["int8", "binary"])
def test_quantised_vectors_find_the_same_after_they_were_scored_again(
    index: Path, address: str, quantization: str
) -> None:
    push(index, address, quantization=quantization)
    with Recommender.open(index, "dense") as exact, Recommender.open(index, "qdrant-dense") as theirs:
        expected = [hit.paper.paper_id for hit in exact.search(SENTENCE, 10)]
        assert len({*expected} & {hit.paper.paper_id for hit in theirs.search(SENTENCE, 10)}) >= 9


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "engine", key="s3cret-key")
    yield started
    started.stop()


def test_a_server_with_a_key(index: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "wrong-key")
    with pytest.raises(ServiceError, match="refuses the key") as raised:
        push(index, f"{server.url}/demo")
    assert KEY in raised.value.remedy
    assert "wrong-key" not in str(raised.value)
    monkeypatch.setenv(KEY, "s3cret-key")
    made = push(index, f"{server.url}/demo")
    assert len([one for one in server.requests if one == ("POST", "collections/aliases")]) == 1  # both in one step
    server.busy = 1
    with pytest.raises(ServiceError, match="refuses the request \\(503"):
        push(index, None)
    assert "s3cret-key" not in (index / NAME / "manifest.json").read_text()
    with Recommender.open(index, "qdrant-bm25") as opened:
        assert opened.search(SENTENCE, 3).hits
        server.busy = 1
        with pytest.raises(ServiceError):
            opened.search(SENTENCE, 3)
    assert made.stated.papers == 252


def test_a_collection_of_others_is_left_alone(index: Path, address: str) -> None:
    with Connection(Address.parse(address)) as connection:
        connection.client.create_collection(
            "demo", vectors_config={}, sparse_vectors_config={"words": None}, metadata={}
        )
        with pytest.raises(InputError, match="has a collection demo, which is not citerec's"):
            push(index, address)
        assert [one.name for one in connection.client.get_collections().collections] == ["demo"]


def test_a_port_that_refuses_is_said(index: Path, silent_port: int) -> None:
    with pytest.raises(ServiceError, match=r"no server answers at http://127\.0\.0\.1") as raised:
        push(index, f"http://127.0.0.1:{silent_port}/demo")
    assert "http://HOST:6333/NAME" in raised.value.remedy
    with pytest.raises(InputError, match="was not pushed yet"):
        push(index, None)


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost:6333/x", "http://localhost:6333", "http://user:secret@host/x", "path:x", "edge:/"),
        *("ftp://h/x", "http://h/a b", "http://h:6333/x?key=secret", "path:/tmp/\0/x"),
        *("http://h:65536/x", "http://a..b:6333/x", "http://[zz]:6333/x"),
    ],
)
def test_what_is_no_address_is_said_without_it(text: str) -> None:
    with pytest.raises(InputError, match="not an address of Qdrant") as raised:
        Address.parse(text)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "place", "name"),
    [
        ("http://localhost:6333/acm", "http://localhost:6333", "acm"),
        ("https://q.example.org/under/here/acm-2026.1/", "https://q.example.org/under/here", "acm-2026.1"),
        ("http://[::1]:6333/a", "http://[::1]:6333", "a"),
        ("path:/data/q/acm", "path:/data/q", "acm"),
        ("edge:/data/q/acm", "edge:/data/q", "acm"),
    ],
)
def test_addresses(text: str, place: str, name: str) -> None:
    assert Address.parse(text) == (place, name)
    assert str(Address.parse(text)) == f"{place}/{name}"


def test_the_manifest_of_another_version_is_no_push(index: Path, address: str) -> None:
    push(index, address)
    path = index / NAME / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(CiterecError, match="version 99"):
        QdrantManifest.read(index / NAME)
    assert push(index, address).changed is None


def test_an_index_with_its_records_in_mongodb_is_pushed_again_whole(
    nx_server: str, address: str, tmp_path: Path
) -> None:
    store = f"{nx_server}/pushed_{tmp_path.name}"
    built = Index.build(DEMO, tmp_path / "mongo", options=BuildOptions(store=store)).path
    assert push(built, address).stated.papers == 252
    assert found(built, "qdrant-bm25") == found(built, "bm25")
    assert push(built, None).changed == 0


def test_a_push_that_stopped_while_collections_were_made_makes_them_again(
    index: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, fields = EdgeClient.create_payload_index, []

    def stopping(self: EdgeClient, name: str, *, field_name: str, field_schema: object) -> None:
        if len(fields) == 8:
            raise KeyboardInterrupt
        fields.append((name, field_name))
        made(self, name, field_name=field_name, field_schema=field_schema)

    with monkeypatch.context() as patched:
        patched.setattr(EdgeClient, "create_payload_index", stopping)
        with pytest.raises(KeyboardInterrupt):
            push(index, address)
        fields.clear()

        def noting(self: EdgeClient, name: str, *, field_name: str, field_schema: object) -> None:
            fields.append((name.split("-")[1], field_name))
            made(self, name, field_name=field_name, field_schema=field_schema)

        patched.setattr(EdgeClient, "create_payload_index", noting)
        push(index, address)
    assert {field for kind, field in fields if kind == "citances"} >= {"venue", "citing", "citing_year"}


def test_a_search_makes_no_folder_and_a_folder_is_no_server(index: Path, address: str, tmp_path: Path) -> None:
    push(index, address)
    for kind in ("path", "edge"):
        recipe = Recipe.load("qdrant-bm25", [f"qdrant_bm25.url={kind}:{tmp_path}/none/x"])
        with pytest.raises(IndexUnusableError, match="there is nothing at"):
            Recommender.open(index, recipe)
        assert not (tmp_path / "none").exists()
        (tmp_path / "file").touch()
        with pytest.raises(ServiceError, match=f"cannot use {kind}:{tmp_path}/file"):
            push(index, f"{kind}:{tmp_path}/file/x")
