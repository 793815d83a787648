"""The cross-encoder: what it reads, how its scores join those before, and which models it is made of."""

from pathlib import Path

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
    Manifest,
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


def test_the_text_of_a_pair() -> None:
    context = Context(text="It suffices <REF> [3].", before="Before.", after="After.", citing_id="1")
    citing = Paper("1", "A title", "An abstract")
    pair = pair_of(topic_of(context, citing), PAPER, "As <REF> showed (Lee, 2019).", TextOptions(), 7)
    assert pair == Pair(
        "A title. An abstract", "It suffices . Before. After.", "Attention. It suffices.", "As showed .", rank=7
    )
    bare = TextOptions(citing=False, citances=False)
    assert pair_of(topic_of(context, citing), PAPER, "As <REF> showed.", bare, 7) == pair._replace(
        citing="", citance=""
    )
    unknown = pair_of(topic_of(context), Paper("9"), None, TextOptions())
    assert (unknown.paper, unknown.citance, unknown.rank) == ("", "", 1)


def test_the_place_of_the_citation_may_be_a_token_of_its_own(base: Path, tmp_path: Path) -> None:
    options = TextOptions(max_tokens=64, marker=True)
    topic = topic_of(Context(text="It suffices <REF> [3].", before="Before."))
    pair = pair_of(topic, PAPER, None, options)
    assert pair.passage == "It suffices <REF> . Before."
    begun = CrossEncoder.begin(str(base), options, seed=0, device="cpu")
    before = CrossEncoder.begin(str(base), TextOptions(max_tokens=64), seed=0, device="cpu")
    own = begun.tokenizer.tokenizer.convert_tokens_to_ids("<REF>")
    assert own == len(before.tokenizer.tokenizer) < begun.model.get_input_embeddings().num_embeddings
    (encoded,) = begun.tokenizer.encode([pair])
    assert encoded.ids.count(own) == 1
    begun.model.eval()
    begun.save(tmp_path / "saved", begun.manifest)
    opened = CrossEncoder.open(tmp_path / "saved", device="cpu")
    assert opened.scores([pair]) == pytest.approx(begun.scores([pair]), abs=1e-6)


lengths = st.integers(0, 60)


@given(st.tuples(lengths, lengths, lengths, lengths), st.integers(16, 64))
def test_neither_side_is_ever_cut_away(base: Path, numbers: tuple[int, int, int, int], max_tokens: int) -> None:
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(base), max_tokens)
    letters = ("a", "e", "i", "o")
    known = dict(zip(letters, tokenizer.tokenizer.convert_tokens_to_ids(list(letters)), strict=True))
    texts = [" ".join([letter] * number) for letter, number in zip(letters, numbers, strict=True)]
    (encoded,) = tokenizer.encode([Pair(*texts)])
    citing, passage, paper, citance = (encoded.ids.count(known[letter]) for letter in letters)
    room = max_tokens - 3
    assert len(encoded.ids) == len(encoded.sides) == 3 + citing + passage + paper + citance <= max_tokens
    assert citing <= 0.35 * room
    # Each side gets all it has, or half of the room at least, and nothing is left over while something is cut.
    cut_a = min(int(0.35 * room), numbers[0]) + numbers[1] - citing - passage
    cut_b = numbers[2] + numbers[3] - paper - citance
    assert not cut_a or citing + passage >= room - room // 2
    assert not cut_b or paper + citance >= room // 2
    assert not (cut_a or cut_b) or len(encoded.ids) == max_tokens
    # The passage and the paper are cut only where citing paper and citance have yielded.
    assert passage == numbers[1] or citing <= 0.35 * (citing + passage)
    assert paper == numbers[2] or citance <= 0.35 * (paper + citance)
    assert encoded.sides == sorted(encoded.sides)
    assert sum(encoded.sides) == paper + citance + 1


def test_tokens_are_those_of_the_models_own_tokenizer(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    (encoded,) = PairTokenizer(tokenizer, 64).encode([Pair("", WORDS[0], WORDS[1], "")])
    expected = AutoTokenizer.from_pretrained(base)(WORDS[0], WORDS[1])
    assert encoded.ids == expected["input_ids"]
    assert encoded.sides == expected["token_type_ids"]


def test_a_saved_models_own_cut_and_padding_do_not_count(base: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.backend_tokenizer.enable_padding(length=4)
    tokenizer.save_pretrained(tmp_path)
    (encoded,) = PairTokenizer(AutoTokenizer.from_pretrained(tmp_path), 64).encode([Pair("", WORDS[0], "a", "")])
    assert len(encoded.ids) > 5


def test_scores_do_not_depend_on_what_is_read_beside_them(trained: Path) -> None:
    model = CrossEncoder.open(trained)
    pairs = [Pair("", WORDS[number % 3], f"{WORDS[-1]} " * (number % 7), "") for number in range(40)]
    together = model.scores(pairs)
    alone = np.concatenate([model.scores([pair]) for pair in pairs])
    assert together.dtype == np.float32
    assert together.shape == (40,)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert model.scores([]).shape == (0,)


def test_what_is_saved_is_what_is_opened(base: Path, trained: Path) -> None:
    begun = CrossEncoder.begin(str(base), TextOptions(max_tokens=64), seed=0)
    begun.model.eval()
    opened = CrossEncoder.open(trained)
    pairs = [Pair("", words, words, "") for words in WORDS]
    # The scores are the same to the last bit only where the weights lie alike in memory.
    assert not any(weights.data_ptr() % 64 for model in (begun, opened) for weights in model.model.parameters())
    assert opened.scores(pairs).tolist() == begun.scores(pairs).tolist()
    assert opened.manifest.weight == 2.0
    assert {path.suffix for path in trained.iterdir()} <= {".json", ".safetensors", ".txt"}


def test_a_cross_encoder_made_elsewhere_is_read_by_its_config(base: Path, tmp_path: Path) -> None:
    BertForSequenceClassification.from_pretrained(base, num_labels=1).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path)
    model = CrossEncoder.open(tmp_path)
    assert model.manifest == Manifest()
    assert np.isfinite(model.scores([Pair("", WORDS[0], WORDS[1], "")])).all()


def test_models_that_cannot_be_used_are_refused(base: Path, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"not a trained cross-encoder.*citerec train reranker"):
        CrossEncoder.open(base)
    with pytest.raises(ModelError, match="no model folder"):
        CrossEncoder.open(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="cannot be loaded"):
        CrossEncoder.open(tmp_path)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    manifest = orjson.loads((trained / "manifest.json").read_bytes())
    for changes in ({"version": 99}, {"kind": "citerec-encoder"}, {"text": {"max_tokens": 1}}):
        (tmp_path / "manifest.json").write_bytes(orjson.dumps({**manifest, **changes}))
        with pytest.raises(ModelError, match=r"manifest\.json is not of a cross-encoder"):
            CrossEncoder.open(tmp_path)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelError):
        CrossEncoder.open(tmp_path)


def candidates(*scores: float) -> Candidates:
    found = [Candidate(f"p{number}", score, signals={"bm25": score}) for number, score in enumerate(scores)]
    return columns(sorted(found, key=lambda candidate: -candidate.score))


def test_scores_are_standardised_and_summed() -> None:
    new = interpolated(candidates(30.0, 20.0, 10.0, 5.0), np.array([0.0, 1.0, 5.0], np.float32), 3.0, "cross-encoder")
    assert [candidate.paper_id for candidate in new] == ["p2", "p1", "p0", "p3"]
    by_hand = 0.0 + 3.0 * (1 - 2) / np.std([0, 1, 5])
    assert new[1].score == pytest.approx(by_hand)
    assert new[1].signals == {"bm25": 20.0, "cross_encoder": 1.0}
    assert "cross_encoder" not in new[3].signals


@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=12),
    st.integers(0, 12),
    st.floats(0, 10),
)
def test_all_candidates_stay_in_falling_order(scores: list[float], depth: int, weight: float) -> None:
    found = candidates(*scores)
    read = np.array([(number * 7) % 5 for number in range(min(depth, len(found)))], np.float32)
    new = interpolated(found, read, weight, "cross-encoder")
    assert sorted(candidate.paper_id for candidate in new) == sorted(candidate.paper_id for candidate in found)

    assert [candidate.paper_id for candidate in new[len(read) :]] == [one.paper_id for one in found[len(read) :]]
    if len(read):
        keys = [(-candidate.score, candidate.paper_id) for candidate in new]
        assert keys == sorted(keys)


def test_the_reranker_reads_the_first_candidates_only(trained: Path) -> None:
    asked = topic_of(Context(text="It suffices <REF>."))
    found = candidates(9.0, 8.0, 7.0, 6.0)
    papers = {
        candidate.paper_id: Paper(candidate.paper_id, WORDS[number % 3]) for number, candidate in enumerate(found)
    }
    reranker = CrossEncoderReranker(trained, Settings(depth=2))
    assert (reranker.depth, reranker.weight, reranker.reads_citances) == (2, 2.0, True)
    new = reranker.rerank(asked, found, papers, {"p1": "As <REF> showed."})
    assert ["cross_encoder" in candidate.signals for candidate in new] == [True, True, False, False]
    assert [candidate.paper_id for candidate in new[2:]] == ["p2", "p3"]
    assert not reranker.rerank(asked, candidates(), {}, {})
    # With weight 0 the order before stands.
    untouched = CrossEncoderReranker(trained, Settings(depth=3, weight=0.0)).rerank(asked, found, papers, {})
    assert [candidate.paper_id for candidate in untouched] == ["p0", "p1", "p2", "p3"]


def test_training_and_serving_read_the_same(trained: Path) -> None:
    """The marker never reaches the model, wherever the citation stood."""
    model = CrossEncoder.open(trained)
    scores = [
        model.scores([pair_of(topic_of(Context(text=text)), PAPER, None, model.manifest.text)])[0]
        for text in ("It suffices <REF>", "<REF> It suffices", "It <REF> suffices")
    ]
    assert len(set(scores)) == 1


@pytest.mark.slow
def test_8_bits_rank_as_32_do(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model, quantised = CrossEncoder.open(trained), CrossEncoder.open(trained, backend="onnx-int8")
    pairs = [Pair("", WORDS[number % 3], " ".join(WORDS[-1].split()[: number % 5]), "") for number in range(20)]
    exact, rounded = model.scores(pairs), quantised.scores(pairs)
    assert rounded.dtype == np.float32
    assert not np.array_equal(exact, rounded)
    assert np.corrcoef(exact, rounded)[0, 1] > 0.95
    assert rounded.tolist() == [quantised.scores([pair])[0] for pair in pairs]
