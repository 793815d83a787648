"""Training a static encoder: it learns the vectors of an index, goes on where it was stopped, and encodes queries."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

from citerec.errors import IndexUnusableError, InputError, ModelError
from citerec.index.build import build_index, encode_index
from citerec.index.manifest import generation_of
from citerec.index.vectors import DenseOptions, Vectors
from citerec.models.encoder import Encoder, StaticManifest
from citerec.recommend import Recommender
from citerec.systems import Recipe
from citerec.train.encoders import FOUND, StaticOptions, train_static
from citerec.train.groups import Schedule
from tests.models.conftest import save_tiny

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
        {"paper_id": f"p{number:03}", "title": " ".join(WORDS[at] for at in words), "year": 2001}
        for number, words in enumerate(drawn)
    ]
    (folder / "papers.jsonl").write_bytes(b"\n".join(map(orjson.dumps, records)) + b"\n")
    given = folder / "given"
    given.mkdir()
    np.save(given / "ids.npy", np.array([record["paper_id"] for record in records]))
    np.save(given / "vectors.npy", np.stack([rule[words].mean(axis=0) for words in drawn]).astype(np.float32))
    build_index([folder / "papers.jsonl"], folder / "index")
    encode_index(folder / "index", DenseOptions("no/such-model", vectors=(given,)))
    return folder / "index"


@pytest.fixture
def train(planted: Path, word_tokenizer: Path) -> Train:
    """Trains with what the test changes."""

    def call(out: Path, *, index: Path = planted, batch: int = 32, **changes: object) -> StaticManifest:
        on_progress = changes.pop("on_progress", None)
        schedule = {"learning_rate": 3e-2, "epochs": 20, "evaluations": 4, "checkpoint_every": 1, **changes}
        return train_static(
            index,
            out,
            StaticOptions(base=str(word_tokenizer), batch=batch),
            Schedule(**schedule),  # type: ignore[arg-type]
            **({"on_progress": on_progress} if on_progress else {}),  # type: ignore[arg-type]
        )

    return call


@pytest.fixture(scope="module")
def word_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that knows the words of the rule."""
    from transformers import BertModel

    return save_tiny(BertModel, tmp_path_factory.mktemp("words"))


def test_it_learns_the_rule_and_encodes_queries(train: Train, planted: Path, tmp_path: Path) -> None:
    manifest = train(tmp_path / "static")
    assert manifest.dev[FOUND] > 0.9 and manifest.dev["cosine"] > 0.95
    values = manifest.training["dev_values"]
    assert manifest.training["papers"] == PAPERS and len(values) == 4
    settings = Recipe.load("dense", [f"dense.queries={tmp_path / 'static'}"])
    with Recommender.open(planted, settings) as recommender:
        found = recommender.search("graphs trees neural parsing <REF>", 1)
        title = found[0].paper.title
    assert len(set(title.split()) & set("graphs trees neural parsing".split())) >= 3


def test_it_opens_without_torch_and_sentence_transformers_reads_it(train: Train, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    train(tmp_path / "static", epochs=1)
    texts = ["graphs of trees", "parsing", "the the model"]
    made = Encoder.open(str(tmp_path / "static"), max_tokens=3).encode([*texts, ""])
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    peer = SentenceTransformer(str(tmp_path / "static"), device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(made[:3], peer, atol=1e-6)
    program = (
        "import sys; from citerec.models.encoder import Encoder; "
        f"Encoder.open({str(tmp_path / 'static')!r}, backend='onnx-int8').encode(['graphs']); "
        "assert not {'torch', 'transformers', 'sentence_transformers', 'onnxruntime'} & set(sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr


def test_papers_too_may_be_encoded_by_it(train: Train, planted: Path, tmp_path: Path) -> None:
    train(tmp_path / "static", epochs=1)
    shutil.copytree(planted, tmp_path / "index")
    encode_index(tmp_path / "index", DenseOptions(str(tmp_path / "static")))
    assert len(Vectors(generation_of(tmp_path / "index") / "dense")) == PAPERS
    with Recommender.open(tmp_path / "index", Recipe.load("dense")) as recommender:
        assert len(recommender.search("graphs <REF>", 5)) == 5
    other = Recipe.load("dense", [f"dense.queries={tmp_path / 'static'}"])
    with (
        Recommender.open(tmp_path / "index", other) as recommender,
        pytest.raises(ModelError, match="no static encoder that learnt the vectors of"),
    ):
        recommender.search("graphs <REF>", 5)


def test_what_stands_in_the_way(train: Train, planted: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    with pytest.raises(InputError, match="exists and is no static encoder"):
        train(tmp_path / "mine")
    build_index([planted.parent / "papers.jsonl"], tmp_path / "bare")
    with pytest.raises(IndexUnusableError, match=re.escape(f"{tmp_path / 'bare'} has no vectors")):
        train(tmp_path / "static", index=tmp_path / "bare")
    train(tmp_path / "static", epochs=1)
    (tmp_path / "static" / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"the static encoder .* is broken") as raised:
        Encoder.open(str(tmp_path / "static"))
    assert "\n" not in str(raised.value)
