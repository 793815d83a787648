"""Vectors as part of an index directory: added to, renewed, verified, damaged, from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.topic import Topic
from citerec.errors import IndexUnusableError
from citerec.index.build import BuildOptions, build_index, encode_index
from citerec.index.describe import verify
from citerec.index.manifest import DENSE, generation_of
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import Encoder
from citerec.retrieve.base import OpenIndex
from citerec.retrieve.dense import DenseRetriever, DenseSettings
from tests.conftest import Citerec, write_lines
from tests.dense.conftest import rows_of, unit_vectors, vectors_of, write_arrays

RECORDS = [
    {"paper_id": f"p{number}", "title": f"graph kernel number {number}", "abstract": "A dense corpus.", "year": 2000}
    for number in range(30)
]
IDS = [str(record["paper_id"]) for record in RECORDS]


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "papers.jsonl", RECORDS)


@pytest.fixture
def index(papers: Path, tmp_path: Path, model: str) -> Path:
    build_index([papers], tmp_path / "index", BuildOptions(dense=DenseOptions(model)))
    return tmp_path / "index"


@pytest.fixture
def given(papers: Path, tmp_path: Path, model: str) -> Path:
    """An index whose vectors that model made elsewhere."""
    texts = [f"{record['title']}. {record['abstract']}" for record in RECORDS]
    vectors = write_arrays(tmp_path / "made", np.array(IDS), Encoder.open(model).encode(texts))
    build_index([papers], tmp_path / "index", BuildOptions(dense=DenseOptions(model, vectors=(vectors,))))
    return tmp_path / "index"


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """A new paper, a changed one, and one that is as it was."""
    records = [{"paper_id": "q", "title": "neural lexical query"}, {**RECORDS[3], "title": "entity"}, RECORDS[4]]
    return write_lines(tmp_path / "more.jsonl", records)


def test_queries_are_encoded_with_what_encoded_the_papers(
    index: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    encode_index(index, DenseOptions(model, backend="onnx-int8"))
    text = "neural ranking of citation graphs"
    eight_bits = Encoder.open(model, backend="onnx-int8").encode([text])
    for backend in (None, "onnx-int8", "torch"):
        settings = DenseSettings.model_validate({"backend": backend, "citing": 0})
        (vector,) = DenseRetriever.open(OpenIndex.open(index), settings).prepare([Topic(text)])
        assert np.array_equal(vector, eight_bits[0]) is (backend != "torch")


@pytest.mark.parametrize("name", ["manifest.json", "vectors.npy", "codes.npy", "scales.npy", "index.faiss"])
def test_damage_is_one_clear_error_and_verify_finds_it(index: Path, model: str, name: str) -> None:
    encode_index(index, DenseOptions(model, kind="flat"))
    path = generation_of(index) / DENSE / name
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[-3] ^= 0xFF
    damages = {"missing": None, "short": content[: len(content) // 2], "flipped": bytes(flipped)}
    if name.endswith("npy"):
        np.save(fewer := path.with_name("fewer.npy"), np.load(path)[:-1])
        damages["fewer"] = fewer.read_bytes()
        fewer.unlink()
    for damage, bad in damages.items():
        path.unlink(missing_ok=True)
        if bad is not None:
            path.write_bytes(bad)
        if name != "manifest.json":
            assert any(name in fault or "cannot be read" in fault for fault in verify(index)), damage
        if damage != "flipped":
            with pytest.raises(IndexUnusableError) as raised:
                DenseRetriever.open(OpenIndex.open(index), DenseSettings())
            assert "citerec index encode" in raised.value.remedy


def test_given_vectors_from_the_command_line(index: Path, citerec_here: Citerec, model: str, tmp_path: Path) -> None:
    rows = [{"corpusid": f"p{number}", "vector": json.dumps([1.0, number, -2.0])} for number in range(29)]
    vectors = write_lines(tmp_path / "given.jsonl", [*rows, {"corpusid": 77, "vector": [1, 2, 3]}])
    encoded = citerec_here("index", "encode", index, "--vectors", vectors, "--model", model, "--vectors", "hnsw")
    assert encoded.returncode == 0, encoded.stderr
    assert "29 papers have a vector of 3 numbers" in encoded.stdout
    assert "; 1 paper without one; give more: citerec index encode" in encoded.stdout
    assert "not in the index: 1" in encoded.stdout
    shown = json.loads(citerec_here("index", "info", index, "--format", "json").stdout)["vectors"]
    assert (shown["kind_of_search"], shown["dimension"], shown["given"]) == ("hnsw", 3, True)


def test_more_vectors_are_given_to_what_is_added(
    given: Path, more: Path, tmp_path: Path, citerec_here: Citerec, model: str
) -> None:
    before = vectors_of(given)
    vector = unit_vectors(1, before.manifest.dimension)
    another = write_arrays(tmp_path / "another", np.array(["q"]), vector)
    added = citerec_here("index", "add", given, more, "--vectors", another)
    assert added.returncode == 0, added.stderr
    after = vectors_of(given)
    np.testing.assert_allclose(after.values[rows_of(given, ["q"])], vector, atol=2e-3)
    wide = write_arrays(tmp_path / "wide", np.array(["q"]), unit_vectors(1, 5))
    wrong = citerec_here("index", "add", given, more, "--vectors", wide)
    assert "1 of 1 vectors of dimension 32 are bad" in wrong.stderr
    encode_index(given, DenseOptions(model))
    refused = citerec_here("index", "add", given, more, "--vectors", another)
    assert refused.returncode == 2 and "Leave --vectors out" in refused.stderr
