"""Training encoders: a static one learns the vectors of an index, and another learns from contexts."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer

from citerec.contexts.provenance import Provenance, provenance_of_part
from citerec.contexts.read import read_contexts
from citerec.errors import ModelError
from citerec.index.build import BuildOptions, add_to_index, build_index, encode_index
from citerec.index.manifest import trained_of
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import Encoder, StaticManifest
from citerec.recommend import Recommender
from citerec.retrieve.dense import QUERIES
from citerec.systems import Recipe
from citerec.train.encoders import (
    FOUND,
    METRIC,
    EncoderOptions,
    StaticOptions,
    train_encoder,
    train_queries,
    train_static,
)
from citerec.train.groups import Choice, Schedule
from tests.conftest import write_lines
from tests.dense.conftest import write_arrays
from tests.tiny_models import write_tiny_scibert

Train = Callable[..., StaticManifest]
WORDS = "graphs trees neural parsing citation recommendation model we use with the of".split()
PAPERS = 300


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with given vectors that follow a rule: the mean of the vectors of the words of the title."""
    folder = tmp_path_factory.mktemp("planted")
    random = np.random.default_rng(0)
    rule = random.normal(size=(len(WORDS), 8))
    drawn = [random.permutation(len(WORDS))[:4] for _ in range(PAPERS)]
    records = [
        {
            "paper_id": f"p{number:03}",
            "title": " ".join(WORDS[at] for at in words),
            "abstract": " ".join(WORDS[at] for at in words[::-1]),
        }
        for number, words in enumerate(drawn)
    ]
    vectors = np.stack([rule[words].mean(axis=0) for words in drawn]).astype(np.float32)
    given = write_arrays(folder / "given", np.array([record["paper_id"] for record in records]), vectors)
    build_index([write_lines(folder / "papers.jsonl", records)], folder / "index")
    encode_index(folder / "index", DenseOptions("no/such-model", vectors=(given,)))
    return folder / "index"


@pytest.fixture
def train(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains with what the test changes, with a tokenizer that knows the words of the rule."""
    words = write_tiny_scibert(tmp_path_factory.mktemp("models") / "words", [" ".join(WORDS)])

    def call(out: Path, index: Path = planted, epochs: int = 20, **changes: Any) -> StaticManifest:
        schedule = Schedule(learning_rate=3e-2, epochs=epochs, evaluations=4, checkpoint_every=1)
        return train_static(index, out, StaticOptions(base=str(words), batch=32, **changes), schedule)

    return call


def test_it_learns_the_rule_and_encodes_queries_and_papers(train: Train, planted: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "static")
    assert manifest.dev[FOUND] > 0.9 and manifest.dev["cosine"] > 0.95
    of_queries = Recipe.load("dense", [f"dense.queries={tmp_path / 'static'}"])
    with Recommender.open(planted, of_queries) as recommender:
        title = recommender.search("graphs trees neural parsing <REF>", 1)[0].paper.title
    assert len({*title.split()} & {"graphs", "trees", "neural", "parsing"}) >= 3
    shutil.copytree(planted, tmp_path / "index")
    shutil.copytree(tmp_path / "static", trained_of(tmp_path / "index", QUERIES))
    with Recommender.open(tmp_path / "index", "dense") as recommender:
        assert recommender.search("graphs trees neural parsing <REF>", 1)[0].paper.title == title, "the index's own"
        assert "dense queries" in recommender.digests
    encode_index(tmp_path / "index", DenseOptions(str(tmp_path / "static")))
    with Recommender.open(tmp_path / "index", "dense") as recommender:
        assert len(recommender.search("graphs <REF>", PAPERS)) == PAPERS
        assert "dense queries" not in recommender.digests, "these vectors it did not learn"
    with (
        Recommender.open(tmp_path / "index", of_queries) as recommender,
        pytest.raises(ModelError, match="no static encoder that learnt the vectors of"),
    ):
        recommender.search("graphs <REF>", 5)


def test_an_index_makes_its_own_once_where_vectors_are_many_and_of_another_model(planted: Path, tmp_path: Path) -> None:
    shutil.copytree(planted, index := tmp_path / "index")
    assert not train_queries(index), "too few vectors"
    assert train_queries(index, least=PAPERS) and not train_queries(index, least=PAPERS)
    assert provenance_of_part(trained_of(index, QUERIES)) == Provenance()
    encode_index(index, DenseOptions(str(trained_of(index, QUERIES))))
    assert not train_queries(index, least=PAPERS), "a static encoder made them"


def test_a_table_of_bytes_is_as_good_and_citing_sentences_are_said_to_be_learnt_from(
    train: Train, planted: Path, tmp_path: Path
) -> None:
    shutil.copytree(planted, index := tmp_path / "index")
    contexts = [{"text": f"Graphs {n} <REF>.", "citing_id": f"c{n}", "cited_ids": [f"p{n:03}"]} for n in range(300)]
    sentences = write_lines(tmp_path / "contexts.jsonl", contexts)
    add_to_index([], index, BuildOptions(citances=(sentences,)))
    manifest = train(tmp_path / "static", index, dimension=7, vocabulary=100)
    assert manifest.dev[FOUND] > 0.9 and manifest.training["sentences"] == 270, "of papers that are not held out"
    encoder = Encoder.open(str(tmp_path / "static"))
    same, other = (encoder.encode(["graphs trees"]) @ encoder.encode(["trees graphs", "parsing we"]).T)[0]
    assert encoder.dimension == 7 and same == pytest.approx(1, abs=1e-6) and other < 0.9
    learnt = provenance_of_part(tmp_path / "static")
    assert len(learnt.trained_on) == 2 * 270 and learnt.trained_on < Provenance.of(read_contexts(sentences)).trained_on
    arrays = load_file(tmp_path / "static" / "model.safetensors")
    save_file(arrays | {"scales": arrays["scales"][1:]}, tmp_path / "static" / "model.safetensors")
    with pytest.raises(ModelError, match=r"is broken: \d+ scales for \d+ tokens"):
        Encoder.open(str(tmp_path / "static"))
    save_file(arrays, tmp_path / "static" / "model.safetensors")
    train(tmp_path / "alone", index, epochs=1, pairs=0)
    assert provenance_of_part(tmp_path / "alone") == Provenance(), "it read no sentence"
    with Recommender.open(index, Recipe.load("dense", [f"dense.queries={tmp_path / 'static'}"])) as recommender:
        assert recommender.provenance == learnt


def test_it_opens_without_torch_sentence_transformers_reads_it_and_damage_is_said(train: Train, tmp_path: Path) -> None:
    train(tmp_path / "static", epochs=1)
    texts = ["graphs of trees", "parsing", "the the model"]
    vectors = Encoder.open(str(tmp_path / "static"), max_tokens=3).encode([*texts, ""])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    peer = SentenceTransformer(str(tmp_path / "static"), device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(vectors[:3], peer, atol=1e-6)
    program = (
        "import sys; from citerec.models.encoder import Encoder; "
        f"Encoder.open({str(tmp_path / 'static')!r}, backend='onnx-int8').encode(['graphs']); "
        "assert not {'torch', 'transformers', 'sentence_transformers', 'onnxruntime'} & set(sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "static" / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"the static encoder .* is broken"):
        Encoder.open(str(tmp_path / "static"))


@pytest.mark.slow
def test_an_encoder_learns_and_an_index_takes_it(
    toy_contexts: Path, demo_index: Path, tiny_scibert: Path, tmp_path: Path
) -> None:
    def train(out: Path, **schedule: Any) -> Any:
        choice = Choice(toy_contexts, dev_share=0.3, dev_limit=10)
        options = EncoderOptions(base=str(tiny_scibert), max_tokens=48, candidates=20, batch=8)
        return train_encoder(choice, demo_index, out, options, Schedule(checkpoint_every=1, **schedule))

    manifest = train(tmp_path / "encoder", epochs=25, evaluations=8, patience=8, learning_rate=1e-3)
    assert manifest.dev[METRIC] > manifest.dev[f"{METRIC} before"]
    encoder = Encoder.open(str(tmp_path / "encoder"), device="cpu")
    assert (encoder.dimension, encoder.max_tokens) == (32, 48)
    shutil.copytree(demo_index, index := tmp_path / "index")
    encode_index(index, DenseOptions(str(tmp_path / "encoder")))
    with Recommender.open(index, "dense") as recommender:
        assert len(recommender.search("We rank papers <REF>.", 5)) == 5
        assert recommender.provenance == provenance_of_part(tmp_path / "encoder")
        assert len(recommender.provenance.trained_on) > manifest.training["groups"]
        assert recommender.provenance.unsaid == ()

    useless = train(tmp_path / "useless", epochs=1, evaluations=2, learning_rate=1e-12)
    assert useless.training["best_step"] == 0
    ours, base = (Encoder.open(str(path), device="cpu", max_tokens=48) for path in (tmp_path / "useless", tiny_scibert))
    assert ours.encode(["attention"]) == pytest.approx(base.encode(["attention"]), abs=1e-5)
