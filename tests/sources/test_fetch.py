"""Releases fetched from a server on loopback, cut to size, and brought up to date."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from citerec.corpus.base import find_shards
from citerec.errors import BuildError, InputError, SourceError
from citerec.files.http import WebError
from citerec.index.build import BuildOptions, build_index
from citerec.index.manifest import generation_of
from citerec.index.vectors import DenseManifest, DenseOptions
from citerec.records import Filters
from citerec.sources.fetch import Cut, FetchedCorpus, Manner, Place, get_corpus, make_plan, update_corpus
from tests.corpus_server import FAULTS, KEY, S2agServer, State, cut_state, first_state, next_state, state_of
from tests.sources.helpers import ALONE

STATE = first_state(600)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[S2agServer]:
    with S2agServer() as server:
        server.publish("2024-01-02", STATE)
        yield server


def get(server: S2agServer, out: Path, cut: Cut | None = None, manner: Manner = ALONE, **options: Any) -> FetchedCorpus:
    datasets = options.pop("datasets", ())
    return get_corpus(make_plan(Place("s2ag", server.url), out, options.get("release"), datasets, cut or Cut()), manner)


def physics(paper: dict[str, Any]) -> bool:
    return bool(paper["s2fieldsofstudy"][0]["category"] == "Physics" and paper["year"] >= 2000)


PHYSICS = Cut(Filters(fields=("physics",), year_from=2000))


def moved(key: int, field: str) -> State:
    """The release with one paper in another field."""
    paper = {**STATE["papers"][key], "s2fieldsofstudy": [{"category": field, "source": "x"}]}
    return {**STATE, "papers": {**STATE["papers"], key: paper}}


def test_a_release_is_kept_as_it_is(server: S2agServer, tmp_path: Path) -> None:
    made = get(server, tmp_path / "cs")
    assert state_of(tmp_path / "cs") == cut_state(STATE)
    assert made.papers == len(STATE["papers"])
    assert FetchedCorpus.read(tmp_path / "cs") == made
    formats = {shard.format for shard in find_shards([tmp_path / "cs"])}
    assert formats == {"s2ag-papers", "s2ag-abstracts", "s2ag-tldrs", "s2ag-citations"}
    assert not list(tmp_path.glob(".cs.getting"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(InputError, match="is no fetched corpus"):
        get(server, tmp_path / "other")
    with pytest.raises(InputError, match="corpus update"):
        get(server, tmp_path / "cs", PHYSICS)
    assert list(made.faults()) == []
    (first, _), (second, _), *_ = made.files()
    first.write_bytes(first.read_bytes()[:-20])
    second.unlink()
    assert [fault.split(" cannot be read")[0] for fault in made.faults()] == [str(first), str(second)]
    for damaged in (b'{"kind": "corpus"', b'{"kind": "corpus", "version": 1, "base": 3, "shards": [{"path": 3}]}'):
        (tmp_path / "cs/corpus.json").write_bytes(damaged)
        with pytest.raises(InputError, match="damaged"):
            FetchedCorpus.read(tmp_path / "cs")
        with pytest.raises(SourceError, match=r"corpus\.json is damaged"):
            find_shards([tmp_path / "cs"])


def test_only_what_is_asked_for_is_on_disk_and_the_same_bytes_each_time(server: S2agServer, tmp_path: Path) -> None:
    made = get(server, tmp_path / "cs", PHYSICS)
    expected = cut_state(STATE, physics)
    assert state_of(tmp_path / "cs") == expected
    assert sum(part.kept for part in made.parts) == sum(map(len, expected.values()))
    get(server, tmp_path / "few", PHYSICS, datasets=["abstracts"])
    assert state_of(tmp_path / "few") == {**expected, "tldrs": {}, "citations": {}}
    get(server, tmp_path / "many", PHYSICS, Manner(workers=2))
    one, many = ({path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")} for name in ("cs", "many"))
    assert one == many
    assert all(body[4:8] == bytes(4) for name, body in one.items() if name.endswith(".gz"))  # no time


def test_given_vectors_are_kept_for_papers_that_stay_and_can_be_searched(tmp_path: Path) -> None:
    name = "embeddings-specter_v2"
    vectors = {key: {"corpusid": key, "model": "s", "vector": str([1.0, key % 7, 2.0])} for key in STATE["papers"]}
    with S2agServer() as server:
        server.publish("2024-01-02", {**STATE, name: vectors})
        get(server, tmp_path / "cs", PHYSICS, datasets=["abstracts", name])
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "cs" / name).iterdir()).splitlines()
    papers = cut_state(STATE, physics)["papers"]
    assert {orjson.loads(line)["corpusid"] for line in lines} == set(papers)
    dense = DenseOptions("allenai/specter2_base", vectors=(tmp_path / "cs" / name,))
    build_index([tmp_path / "cs"], tmp_path / "index", BuildOptions(dense=dense))
    assert DenseManifest.read(generation_of(tmp_path / "index") / "dense").count == len(papers)


def test_updates_give_what_the_last_release_holds_though_answers_fail_in_every_way(tmp_path: Path) -> None:
    with S2agServer(shards=12, failing=0.4) as server:
        server.publish("2024-01-02", STATE)
        get(server, tmp_path / "cs", PHYSICS)
        later = STATE
        for number in range(3):
            server.publish(f"2024-02-0{number + 1}", later := next_state(later, number))
        made = update_corpus(tmp_path / "cs", ALONE, server.url)
        assert set(server.faults) == set(FAULTS)
        assert update_corpus(tmp_path / "cs", ALONE, server.url) == made
    assert [step.release for step in made.steps] == ["2024-01-02", "2024-02-01", "2024-02-02", "2024-02-03"]
    assert made.papers == len(state_of(tmp_path / "cs")["papers"])
    assert state_of(tmp_path / "cs") == cut_state(later, physics)


def test_papers_that_leave_the_cut_go_and_come_back_without_an_abstract(server: S2agServer, tmp_path: Path) -> None:
    get(server, tmp_path / "cs", PHYSICS)
    key = next(
        one["citedcorpusid"]
        for one in STATE["citations"].values()
        if one["contexts"] and one["citedcorpusid"] and physics(STATE["papers"][one["citedcorpusid"]])
    )
    server.publish("2024-01-09", later := moved(key, "Art"))
    made = update_corpus(tmp_path / "cs", ALONE, server.url)
    assert state_of(tmp_path / "cs") == cut_state(later, physics)
    assert made.steps[-1].left == 1
    server.publish("2024-01-16", STATE)
    update_corpus(tmp_path / "cs", ALONE, server.url)
    back, whole = state_of(tmp_path / "cs"), cut_state(STATE, physics)
    assert (back["papers"], back["citations"]) == (whole["papers"], whole["citations"])
    assert key not in back["abstracts"]


def test_a_file_of_ids(server: S2agServer, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("https://doi.org/10.1/1004\nARXIV:2101.01007v2\n1010\nCorpusId:1011\n10.1/none\n")
    get(server, tmp_path / "cs", Cut(ids=tmp_path / "ids"))
    assert sorted(state_of(tmp_path / "cs")["papers"]) == [1004, 1007, 1010, 1011]
    server.publish("2024-01-09", later := next_state(STATE, 2))
    update_corpus(tmp_path / "cs", ALONE, server.url)
    ids = {1004, 1007, 1010, 1011}
    assert state_of(tmp_path / "cs") == cut_state(later, lambda paper: paper["corpusid"] in ids)


@pytest.mark.parametrize("hops", [1, 2])
def test_the_neighbourhood_of_a_bibliography(server: S2agServer, tmp_path: Path, hops: int) -> None:
    titled = STATE["papers"][1020]
    (tmp_path / "my.bib").write_text(
        "@article{a, title={Something}, doi={10.1/1003X}, year=2001}\n"
        "@article{b, title={Else}, doi={https://doi.org/10.1/1004}}\n"
        f"@article{{c, title={{{titled['title'].upper()}}}, year={titled['year'] + 1}, author={{Name20, A.}}}}\n"
    )
    told: list[str] = []
    get(server, tmp_path / "cs", Cut(cited_by=tmp_path / "my.bib", hops=hops), Manner(workers=1, on_note=told.append))
    near = {1004, 1020}
    for _ in range(hops):
        pairs = [(one["citingcorpusid"], one["citedcorpusid"]) for one in STATE["citations"].values()]
        near |= {other for pair in pairs for one, other in (pair, pair[::-1]) if one in near and other is not None}
        near.discard(None)
    assert set(state_of(tmp_path / "cs")["papers"]) == near
    assert told == [f"2 of 3 entries of {tmp_path / 'my.bib'} are papers of the corpus."]


def test_a_stopped_fetch_goes_on_and_another_cut_is_refused(server: S2agServer, tmp_path: Path) -> None:
    def stop(doing: str, _done: float, _whole: float) -> None:
        if doing == "fetching tldrs":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(server, tmp_path / "cs", manner=Manner(workers=1, on_progress=stop))
    server.publish("2024-01-09", next_state(STATE, 2))
    with pytest.raises(InputError, match="was not finished"):
        get(server, tmp_path / "cs", PHYSICS)
    server.asked.clear()
    assert get(server, tmp_path / "cs").release == "2024-01-02"
    assert not any("/signed/2024-01-02/papers" in path for path in server.asked)
    assert state_of(tmp_path / "cs") == cut_state(STATE)


def test_bad_records_are_set_aside_and_too_many_stop_the_work(tmp_path: Path) -> None:
    bad = {1: {"corpusid": None, "title": "x"}, 2: {"corpusid": 2, "year": []}}
    with S2agServer() as server:
        server.publish("2024-01-02", {**STATE, "papers": {**STATE["papers"], **bad}})
        get(server, tmp_path / "cs")
        quarantine = list(map(orjson.loads, (tmp_path / "cs/quarantine.jsonl").read_bytes().splitlines()))
        (first, second) = sorted(row["reason"] for row in quarantine)
        assert first == "corpusid is missing" and second.startswith("year is not a whole number")
        server.publish("2024-01-09", {**STATE, "abstracts": {key: {"id": key} for key in range(600)}})
        with pytest.raises(BuildError, match=r"are bad.*abstracts/.*corpusid is missing"):
            get(server, tmp_path / "new")


def test_a_release_that_lacks_records_is_noticed(server: S2agServer, tmp_path: Path) -> None:
    few = {name: dict(list(records.items())[:200]) for name, records in STATE.items()}
    server.publish("2024-01-09", few)
    get(server, tmp_path / "old", release="2024-01-02")
    told: list[str] = []
    update_corpus(tmp_path / "old", Manner(workers=1, on_note=told.append), server.url)
    assert told == ["The update to 2024-01-09 removed 400 of 600 papers: is the release whole?"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cut": Cut(cited_by=Path("missing.bib"))}, r"missing\.bib is no file"),
        ({"cut": Cut(Filters(fields=("Comptuer",)))}, "no paper of the release is of this cut"),
        ({"release": "2020-01-01"}, "has no release '2020-01-01'; the latest: 2024-01-02"),
        ({"datasets": ["authors"]}, "has no dataset 'authors'"),
        ({"key": "wrong"}, "refused the key"),
        ({"key": None}, r"needs a key.*S2_API_KEY"),
    ],
    ids=["bibliography", "field", "release", "dataset", "wrong key", "no key"],
)
def test_what_cannot_be_asked_for(
    server: S2agServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], message: str
) -> None:
    key = asked.pop("key", KEY)
    monkeypatch.setenv("S2_API_KEY", key) if key else monkeypatch.delenv("S2_API_KEY")
    with pytest.raises((InputError, SourceError), match=message):
        get(server, tmp_path / "cs", **asked)
    assert {path.name for path in tmp_path.iterdir()} <= {".cs.lock"}


def test_a_file_that_is_broken_on_the_server_ends_with_a_remedy(server: S2agServer, tmp_path: Path) -> None:
    name = next(name for name in server.files if "/papers/" in name)
    server.files[name] = server.files[name][:-50]
    with pytest.raises(WebError, match=r"papers/.* came broken 6 times"):
        get(server, tmp_path / "cs")
    assert not (tmp_path / "cs").exists()
