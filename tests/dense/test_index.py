"""Vectors as part of an index directory: built, added to, renewed, described, verified, from the command line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from citerec.contexts.topic import Topic
from citerec.errors import BuildError
from citerec.index.build import BuildOptions, add_to_index, build_index, encode_index
from citerec.index.describe import describe, verify
from citerec.index.manifest import DENSE, generation_of
from citerec.index.vectors import DenseManifest, DenseOptions
from citerec.models.encoder import Encoder
from citerec.models.find import DEFAULT_ENCODER
from citerec.records import Filters
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.dense import DenseRetriever, DenseSettings
from tests.conftest import DEMO, Citerec, write_lines
from tests.dense.conftest import rows_of, unit_vectors, vectors_of, write_arrays

RECORDS = [
    {"paper_id": f"p{number}", "title": f"graph kernel number {number}", "abstract": "A dense corpus.", "year": 2000}
    for number in range(30)
]


@pytest.fixture
def index(tmp_path: Path, model: str) -> Path:
    papers = write_lines(tmp_path / "papers.jsonl", RECORDS)
    build_index([papers], tmp_path / "index", BuildOptions(dense=DenseOptions(model)))
    return tmp_path / "index"


def test_a_real_model_finds_what_is_meant(tmp_path: Path, citerec_here: Citerec) -> None:
    built = citerec_here("index", "build", DEMO, "--out", "demo", "--model", DEFAULT_ENCODER)
    assert built.returncode == 0, built.stderr
    assert "252 papers have a vector of 384 numbers" in built.stdout
    shown = citerec_here("index", "info", "demo")
    assert DEFAULT_ENCODER in shown.stdout
    assert "exact" in shown.stdout
    whole = citerec_here("index", "verify", "demo")
    assert whole.returncode == 0, whole.stderr
    path = tmp_path / "demo"
    opened = OpenIndex.open(path)
    retriever = DenseRetriever.open(opened, DenseSettings())
    known = describe(path).fields
    field = min(known, key=lambda name: known[name])
    everything = retriever.search(Topic("how well does a search engine rank documents"), 252)
    assert len(everything) == 252
    of_field = opened.find("", Filters(fields=(field,)), limit=252)
    assert len(of_field) == known[field]
    filtered = retriever.search(Topic("how well does a search engine rank documents"), 252, Filters(fields=(field,)))
    assert [hit.paper_id for hit in filtered] == [hit.paper_id for hit in everything if hit.paper_id in set(of_field)]


def test_queries_are_encoded_with_what_encoded_the_papers(
    index: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    encode_index(index, DenseOptions(model, backend="onnx-int8"))
    query, texts = Topic("neural ranking of citation graphs"), ["neural ranking of citation graphs"]

    def vector(backend: str | None) -> NDArray[np.float32]:
        settings = DenseSettings.model_validate({"backend": backend, "citing": 0})
        return DenseRetriever.open(OpenIndex.open(index), settings).prepare([query])

    eight_bits = Encoder.open(model, backend="onnx-int8").encode(texts)
    np.testing.assert_array_equal(vector(None), eight_bits)
    np.testing.assert_array_equal(vector("onnx-int8"), eight_bits)
    assert np.abs(vector("torch") - eight_bits).max() > 0


def test_adding_renews_the_vectors(index: Path, tmp_path: Path) -> None:
    more = write_lines(tmp_path / "more.jsonl", [{"paper_id": "q", "title": "a new one"}, {**RECORDS[3], "title": "x"}])
    same = [str(record["paper_id"]) for record in RECORDS if record["paper_id"] != "p3"]
    before, (changed,) = vectors_of(index).values[rows_of(index, same)], rows_of(index, ["p3"])
    old = vectors_of(index).values[changed]
    add_to_index([more], index)
    after = vectors_of(index)
    assert len(after) == after.manifest.count == 31
    assert verify(index) == []
    np.testing.assert_array_equal(after.values[rows_of(index, same)], before)
    assert (after.values[rows_of(index, ["p3"])] != old).any()
    assert sorted(path.name for path in after.path.iterdir()) == sorted([*after.manifest.checksums, "manifest.json"])


def test_two_at_once_exclude_each_other(index: Path, model: str) -> None:
    def second(doing: str, _done: float, _whole: float) -> None:
        if doing == "encoding":
            encode_index(index, DenseOptions(model, max_tokens=32))

    with pytest.raises(BuildError, match="another process"):
        encode_index(index, DenseOptions(model, max_tokens=16), second)


def test_building_without_an_engine_for_vectors_makes_none(index: Path, tmp_path: Path) -> None:
    build_index([tmp_path / "papers.jsonl"], index)
    assert not (generation_of(index) / DENSE).exists()
    assert describe(index).vectors is None
    assert verify(index) == []


@pytest.mark.parametrize("name", ["vectors.npy", "codes.npy", "scales.npy", "index.faiss"])
@pytest.mark.parametrize("damage", ["flip", "cut", "missing"])
def test_verify_finds_damage(index: Path, model: str, name: str, damage: str) -> None:
    if name == "index.faiss":
        encode_index(index, DenseOptions(model, kind="flat"))
    path = generation_of(index) / DENSE / name
    content = bytearray(path.read_bytes())
    path.unlink()
    content[-3] ^= 0xFF
    if damage != "missing":
        path.write_bytes(content if damage == "flip" else content[:-5])
    assert any(name in fault or "cannot be read" in fault for fault in verify(index))


def test_verify_finds_vectors_of_other_papers(index: Path, tmp_path: Path) -> None:
    kept = generation_of(index) / DENSE
    build_index([write_lines(tmp_path / "papers.jsonl", RECORDS[:-1])], tmp_path / "other")
    shutil.copytree(kept, generation_of(tmp_path / "other") / DENSE)
    assert any("made for other papers" in fault for fault in verify(tmp_path / "other"))


def test_commands_say_what_is_wrong(index: Path, citerec_here: Citerec) -> None:
    papers = index.parent / "papers.jsonl"
    for arguments, said in (
        (("index", "build", papers, "--out", "x", "--model", "no model"), "no model"),
        (("index", "build", papers, "--out", "x", "--vectors", papers), "--model"),
        (("index", "encode", index, "--vectors", papers), "--model"),
        (("index", "encode", index, "--vectors", "nowhere", "--model", "m"), "does not exist"),
        (("index", "encode", index, "--model", "no model"), "no model"),
        (("index", "encode", "nowhere"), "no index"),
    ):
        ended = citerec_here(*arguments)
        assert ended.returncode == 2, (arguments, ended.stderr)
        assert said in " ".join(ended.stderr.split())
        assert "Traceback" not in ended.stderr


def test_given_vectors_from_the_command_line(index: Path, citerec_here: Citerec, model: str, tmp_path: Path) -> None:
    rows = [{"corpusid": f"p{number}", "vector": json.dumps([1.0, number, -2.0])} for number in range(29)]
    given = write_lines(tmp_path / "given.jsonl", [*rows, {"corpusid": 77, "vector": [1, 2, 3]}])
    encoded = citerec_here("index", "encode", index, "--vectors", given, "--model", model, "--vectors", "hnsw")
    assert encoded.returncode == 0, encoded.stderr
    assert "29 papers have a vector of 3 numbers" in encoded.stdout
    assert "; 1 paper without one; give more: citerec index encode" in encoded.stdout
    assert "not in the index: 1" in encoded.stdout
    found = json.loads(citerec_here("index", "info", index, "--format", "json").stdout)["vectors"]
    assert (found["kind_of_search"], found["dimension"], found["given"]) == ("hnsw", 3, True)


@pytest.fixture
def given(tmp_path: Path, model: str) -> Path:
    """An index whose vectors that model made elsewhere."""
    texts = [f"{record['title']}. {record['abstract']}" for record in RECORDS]
    ids = np.array([str(record["paper_id"]) for record in RECORDS])
    made = write_arrays(tmp_path / "made", ids, Encoder.open(model).encode(texts))
    papers = write_lines(tmp_path / "papers.jsonl", RECORDS)
    build_index([papers], tmp_path / "index", BuildOptions(dense=DenseOptions(model, vectors=(made,))))
    return tmp_path / "index"


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """A new paper, a changed one, and one that is as it was."""
    return write_lines(
        tmp_path / "more.jsonl",
        [{"paper_id": "q", "title": "neural lexical query"}, {**RECORDS[3], "title": "entity"}, RECORDS[4]],
    )


def test_papers_added_to_given_vectors_are_encoded_by_their_model(given: Path, more: Path, model: str) -> None:
    same = [str(record["paper_id"]) for record in RECORDS if record["paper_id"] != "p3"]
    before = vectors_of(given).values[rows_of(given, same)]
    add_to_index([more], given)
    after = vectors_of(given)
    assert (after.manifest.count, after.manifest.without_vector, after.manifest.given) == (31, 0, True)
    made = Encoder.open(model).encode(["neural lexical query"])
    np.testing.assert_allclose(after.values[rows_of(given, ["q"])], made, atol=2e-3)
    np.testing.assert_array_equal(after.values[rows_of(given, same)], before)
    assert verify(given) == []


@pytest.mark.parametrize("fault", ["gone", "another"])
def test_papers_that_cannot_be_found_by_vector_are_told(
    given: Path, more: Path, model: str, tmp_path: Path, citerec_here: Citerec, fault: str
) -> None:
    """The model is no longer there, or is not what made the vectors."""
    ids = np.array([str(record["paper_id"]) for record in RECORDS])
    if fault == "gone":
        shutil.copytree(model, tmp_path / "copy")
        encode_index(given, DenseOptions(str(tmp_path / "copy"), vectors=(tmp_path / "made",)))
        shutil.rmtree(tmp_path / "copy")
    else:
        made = Encoder.open(model).encode(["x"])
        other = write_arrays(tmp_path / "other", ids, unit_vectors(len(ids), made.shape[1]))
        encode_index(given, DenseOptions(model, vectors=(other,)))
    added = citerec_here("index", "add", given, more)
    assert added.returncode == 0, added.stderr
    shown = "".join(added.stdout.split())  # the table folds long paths
    assert "1paperwithoutone;givemore:citerecindexencode" in shown
    assert f"{given}--model" in shown
    assert vectors_of(given).manifest.count == 30


def test_more_vectors_are_given_to_what_is_added(
    given: Path, more: Path, tmp_path: Path, citerec_here: Citerec, model: str
) -> None:
    before = vectors_of(given)
    old = before.values[rows_of(given, ["p5"])]
    vector = unit_vectors(1, before.manifest.dimension)
    another = write_arrays(tmp_path / "another", np.array(["q"]), vector)
    added = citerec_here("index", "add", given, more, "--vectors", another)
    assert added.returncode == 0, added.stderr
    after = vectors_of(given)
    assert after.manifest.model == before.manifest.model
    np.testing.assert_allclose(after.values[rows_of(given, ["q"])], vector, atol=2e-3)
    np.testing.assert_array_equal(after.values[rows_of(given, ["p5"])], old)
    wide = write_arrays(tmp_path / "wide", np.array(["q"]), unit_vectors(1, 5))
    wrong = citerec_here("index", "add", given, more, "--vectors", wide)
    assert "1 of 1 vectors of dimension 32 are bad" in wrong.stderr
    encode_index(given, DenseOptions(model))
    refused = citerec_here("index", "add", given, more, "--vectors", another)
    assert refused.returncode == 2
    assert "Leave --vectors out" in refused.stderr


def test_an_index_without_vectors_gets_them_with_what_is_added(
    tmp_path: Path, more: Path, model: str, citerec_here: Citerec
) -> None:
    build_index([write_lines(tmp_path / "papers.jsonl", RECORDS)], tmp_path / "index")
    added = citerec_here("index", "add", "index", more, "--model", model, "--vectors", "hnsw")
    assert added.returncode == 0, added.stderr
    manifest = DenseManifest.read(generation_of(tmp_path / "index") / DENSE)
    assert (manifest.count, manifest.kind_of_search) == (31, "hnsw")
