"""The cross-encoder: what it reads, how its scores join those before, and which models it is made of."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, strategies as st
from transformers import AutoTokenizer, BertForSequenceClassification

from citerec.contexts.topic import topic_of
from citerec.errors import ModelError
from citerec.records import Context, Paper
from citerec.rerank.base import interpolated
from citerec.rerank.cross_encoder import (
    CrossEncoder,
    CrossEncoderReranker,
    CrossEncoderSettings as Settings,
    Pair,
    PairTokenizer,
    TextOptions,
    pair_of,
)
from citerec.retrieve.base import Candidate, Candidates
from tests.columns import columns
from tests.tiny_models import write_tiny_scibert

WORDS = ("attention suffices to translate well", "a guide finds the gene", "people lean on heuristics")
PAPER = Paper("7", "Attention", "It suffices.")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scibert(tmp_path_factory.mktemp("models") / "scibert", WORDS)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder as training leaves it, of random weights."""
    folder = tmp_path_factory.mktemp("trained")
    model = CrossEncoder.begin(str(base), TextOptions(max_tokens=64), seed=0)
    model.save(folder, model.manifest.model_copy(update={"weight": 2.0}))
    return folder


def begun(base: Path, **options: Any) -> CrossEncoder:
    model = CrossEncoder.begin(str(base), TextOptions(max_tokens=64, **options), seed=0, device="cpu")
    model.model.eval()
    return model


def test_the_text_of_a_pair() -> None:
    context = Context(text="It suffices <REF> [3].", before="Before.", after="After.", citing_id="1")
    citing = Paper("1", "A title", "An abstract")
    pair = pair_of(topic_of(context, citing), PAPER, "As <REF> showed (Lee, 2019).", TextOptions(), 7)
    passage = "It suffices . Before. After."
    assert pair == Pair("A title. An abstract", passage, "Attention. It suffices.", "As showed .", rank=7)
    bare = pair_of(topic_of(context, citing), PAPER, "As <REF>.", TextOptions(citing=False, citances=False), 7)
    assert bare == pair._replace(citing="", citance="")
    unknown = pair_of(topic_of(context), Paper("9"), None, TextOptions())
    assert (unknown.paper, unknown.citance, unknown.rank) == ("", "", 1)


@given(st.tuples(*[st.integers(0, 60)] * 4), st.integers(16, 64))
def test_neither_side_is_ever_cut_away(base: Path, numbers: tuple[int, int, int, int], max_tokens: int) -> None:
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(base), max_tokens)
    letters = ("a", "e", "i", "o")
    ids = tokenizer.tokenizer.convert_tokens_to_ids(list(letters))
    texts = [" ".join([letter] * number) for letter, number in zip(letters, numbers, strict=True)]
    (encoded,) = tokenizer.encode([Pair(*texts)])
    citing, passage, paper, citance = map(encoded.ids.count, ids)
    room = max_tokens - 3
    assert len(encoded.ids) == len(encoded.sides) == 3 + citing + passage + paper + citance <= max_tokens
    # Each side gets all it has, or half of the room at least, and nothing is left over while something is cut.
    cut_a = min(int(0.35 * room), numbers[0]) + numbers[1] - citing - passage
    cut_b = numbers[2] + numbers[3] - paper - citance
    assert not cut_a or citing + passage >= room - room // 2
    assert not cut_b or paper + citance >= room // 2
    assert not (cut_a or cut_b) or len(encoded.ids) == max_tokens
    # The passage and the paper are cut only where citing paper and citance have yielded.
    assert passage == numbers[1] or citing <= 0.35 * (citing + passage)
    assert paper == numbers[2] or citance <= 0.35 * (paper + citance)
    assert sum(encoded.sides) == paper + citance + 1


def test_tokens_are_those_of_the_models_own_tokenizer_whatever_cut_and_padding_it_has(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    expected = tokenizer(WORDS[0], WORDS[1])
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.backend_tokenizer.enable_padding(length=4)
    (encoded,) = PairTokenizer(tokenizer, 64).encode([Pair("", *WORDS[:2], "")])
    assert (encoded.ids, encoded.sides) == (expected["input_ids"], expected["token_type_ids"])


def test_what_is_saved_is_what_is_opened_and_scores_do_not_depend_on_what_is_read_beside_them(
    base: Path, trained: Path, tmp_path: Path
) -> None:
    opened = CrossEncoder.open(trained)
    pairs = [Pair("", WORDS[number % 3], f"{WORDS[-1]} " * (number % 7), "") for number in range(40)]
    together = opened.scores(pairs)
    np.testing.assert_allclose(together, begun(base).scores(pairs), atol=1e-6)
    np.testing.assert_allclose(together, np.concatenate([opened.scores([pair]) for pair in pairs]), atol=1e-5)
    assert opened.scores([]).shape == (0,)
    # One made elsewhere is read by its configuration.
    BertForSequenceClassification.from_pretrained(base, num_labels=1).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path)
    assert np.isfinite(CrossEncoder.open(tmp_path).scores(pairs[:2])).all()


def test_models_that_cannot_be_used_are_refused(base: Path, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"not a trained cross-encoder.*citerec train reranker"):
        CrossEncoder.open(base)
    with pytest.raises(ModelError, match="no model folder"):
        CrossEncoder.open(tmp_path / "nowhere")
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    manifest = orjson.loads((trained / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_bytes(orjson.dumps({**manifest, "version": 99}))
    with pytest.raises(ModelError, match=r"manifest\.json is not of a cross-encoder"):
        CrossEncoder.open(tmp_path)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelError):
        CrossEncoder.open(tmp_path)


def candidates(*scores: float) -> Candidates:
    listed = [Candidate(f"p{number}", score, signals={"bm25": score}) for number, score in enumerate(scores)]
    return columns(sorted(listed, key=lambda candidate: -candidate.score))


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=12), st.integers(0, 12), st.floats(0, 10))
def test_scores_are_standardised_and_summed_and_all_stay_in_falling_order(
    scores: list[float], depth: int, weight: float
) -> None:
    before = candidates(*scores)
    read = np.array([(number * 7) % 5 for number in range(min(depth, len(before)))], np.float32)
    after = interpolated(before, read, weight, "cross-encoder")
    assert sorted(after.paper_ids()) == sorted(before.paper_ids())
    assert after.paper_ids()[len(read) :] == before.paper_ids()[len(read) :]
    if len(read):
        assert after.pairs() == sorted(after.pairs(), key=lambda pair: (-pair[1], pair[0]))
    by_hand = interpolated(candidates(30.0, 20.0, 10.0, 5.0), np.array([0.0, 1.0, 5.0], np.float32), 3.0, "own-name")
    assert by_hand.paper_ids() == ["p2", "p1", "p0", "p3"]
    assert by_hand[1].score == pytest.approx(0.0 + 3.0 * (1 - 2) / np.std([0, 1, 5]))
    assert by_hand[1].signals == {"bm25": 20.0, "own_name": 1.0}
    assert "own_name" not in by_hand[3].signals


def test_the_reranker_reads_the_first_candidates_only(trained: Path) -> None:
    asked, found = topic_of(Context(text="It suffices <REF>.")), candidates(9.0, 8.0, 7.0, 6.0)
    papers = {paper_id: Paper(paper_id, WORDS[number % 3]) for number, paper_id in enumerate(found.paper_ids())}
    reranker = CrossEncoderReranker(trained, Settings(depth=2))
    assert (reranker.depth, reranker.weight, reranker.reads_citances) == (2, 2.0, True)
    new = reranker.rerank(asked, found, papers, {"p1": "As <REF> showed."})
    assert ["cross_encoder" in candidate.signals for candidate in new] == [True, True, False, False]
    assert new.paper_ids()[2:] == ["p2", "p3"]
    assert not reranker.rerank(asked, candidates(), {}, {})
    # With weight 0 the order before stands.
    untouched = CrossEncoderReranker(trained, Settings(depth=3, weight=0.0)).rerank(asked, found, papers, {})
    assert untouched.paper_ids() == ["p0", "p1", "p2", "p3"]


@pytest.mark.slow
def test_8_bits_rank_as_32_do(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model, quantised = CrossEncoder.open(trained), CrossEncoder.open(trained, backend="onnx-int8")
    pairs = [Pair("", WORDS[number % 3], " ".join(WORDS[-1].split()[: number % 5]), "") for number in range(20)]
    exact, rounded = model.scores(pairs), quantised.scores(pairs)
    assert not np.array_equal(exact, rounded)
    assert np.corrcoef(exact, rounded)[0, 1] > 0.95
    assert rounded.tolist() == [quantised.scores([pair])[0] for pair in pairs]
