"""NCN: what it reads, what titles cost, that candidates do not mix, and which networks are refused."""

import math
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest
import torch

from citerec.contexts.topic import Topic, topic_of
from citerec.errors import ModelError, SettingsError
from citerec.papers.diagnostic.ncn import END, KINDS, UNKNOWN, Ncn, Vocabulary, names_of, words_of
from citerec.papers.diagnostic.parts import NcnReranker, NcnSettings
from citerec.records import Context, Paper
from citerec.retrieve.base import Candidate, Candidates
from tests.columns import columns
from tests.tiny_ncn import TINY, tiny_ncn, write_tiny_ncn

PAPERS = [
    Paper("a", "Attention", authors=("Ada Lovelace",)),
    Paper("b", "Ranking papers by words", authors=("Ada Lovelace", "Alan Turing", "Grace Hopper")),
    Paper("c", "A guide finds the gene", authors=()),
    Paper("d", "Vectors of sentences and of words and of papers", authors=("Alan Turing",)),
]
TEXTS = ("attention suffices to translate well", "words rank papers", "genes")


@pytest.fixture(scope="module")
def model() -> Ncn:
    return tiny_ncn(PAPERS, TEXTS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_ncn(tmp_path_factory.mktemp("trained") / "ncn", PAPERS, TEXTS, weight=2.0)


def topic(text: str, authors: tuple[str, ...] = ("Grace Hopper",)) -> Topic:
    return topic_of(Context(text=f"{text} <REF>."), Paper("citing", authors=authors) if authors else None)


def found(*ids: str) -> Candidates:
    return columns([Candidate(paper_id, 9.0 - place) for place, paper_id in enumerate(ids)])


def test_words_and_names_and_those_that_a_vocabulary_keeps() -> None:
    assert words_of("TnT -- A Part-of-Speech Tagger_2") == ["tnt", "a", "part", "of", "speech", "tagger", "2"]
    assert names_of(["Ada King Lovelace", "A. Lovelace", "Weaver", "", "…"]) == ["a lovelace", "a lovelace", "weaver"]
    # What occurs once is unknown, and ties are by the word.
    vocabulary = Vocabulary.of(Counter({"b": 2, "a": 2, "c": 3, "rare": 1}), 2)
    assert (vocabulary.words, vocabulary.left_out) == (("c", "a"), 2)
    network = Ncn(TINY, dict.fromkeys(KINDS, vocabulary))
    _, ids = network(network.read([topic("c")]), [Paper("x", "a b rare new")])
    assert ids.tolist() == [[5, UNKNOWN, UNKNOWN, UNKNOWN, END]]


def test_rows_of_a_batch_do_not_mix(model: Ncn) -> None:
    together = [
        topic(text, authors) for text, authors in zip(TEXTS, [("Ada Lovelace",), (), ("X Y", "Z")], strict=True)
    ]
    with torch.inference_mode():
        alone = [model.read([one]) for one in together]
        for side, memory in enumerate(model.read(together)):
            np.testing.assert_allclose(memory.values, torch.cat([one[side].values for one in alone]), atol=1e-6)
    for asked in together:
        scores = model.scores(asked, PAPERS)
        assert scores.tolist() == pytest.approx([model.scores(asked, [paper])[0] for paper in PAPERS], abs=1e-4)
        # In another order, and beside others.
        assert model.scores(asked, PAPERS[::-1] * 100)[-4:] == pytest.approx(scores[::-1], abs=1e-4)


def test_a_cost_is_the_cross_entropy_of_each_word_and_of_the_end(model: Ncn) -> None:
    asked, paper = topic(TEXTS[0]), PAPERS[2]
    known = ["", "", "", "", *model.words["titles"].words]
    ids = [*(known.index(word) for word in words_of(paper.title)), END]
    state, total = torch.zeros(1, TINY.hidden), 0.0
    with torch.inference_mode():
        values = torch.cat([memory.values for memory in model.read([asked])], 1)
        before = 2
        for word in ids:
            energies = [model.energy(torch.tanh(model.attended(one) + model.query(state))) for one in values[0]]
            weights = torch.softmax(torch.stack(energies).flatten(), 0)
            read = (weights[:, None] * values[0]).sum(0)[None]
            last = model.embedding["titles"](torch.tensor([before]))
            state = model.cell(torch.cat([last, read], 1), state)
            logits = model.output(torch.tanh(model.readout(torch.cat([state, read, last], 1))))
            total -= float(torch.log_softmax(logits, 1)[0, word])
            before = word
    assert model.scores(asked, [paper])[0] == pytest.approx(-total, abs=1e-4)


def test_unknown_authors_words_and_titles_are_not_cheap(model: Ncn) -> None:
    costs = [model.scores(topic(TEXTS[0], authors), PAPERS) for authors in ((), ("",), ("Ada Lovelace",))]
    assert costs[0].tolist() == costs[1].tolist()
    assert not np.allclose(costs[0], costs[2])
    titles = model.words["titles"].model_copy(update={"left_out": 1000})
    other = Ncn(TINY, {**model.words, "titles": titles}).eval()
    other.load_state_dict(model.state_dict())
    papers = [Paper("x", "Attention zebra yak"), Paper("y", ""), Paper("z", "…")]
    cheap, dear = (one.scores(topic(TEXTS[0]), papers) for one in (model, other))
    assert cheap[0] - dear[0] == pytest.approx(2 * math.log(1000), abs=1e-4)
    blind = math.log(len(titles.words) + 4)
    assert dear[1:] == pytest.approx([-(TINY.title_words + 1) * blind] * 2)
    assert other.scores(topic(TEXTS[0]), []).shape == (0,)


def test_the_first_candidates_are_ranked_and_none_is_added(trained: Path) -> None:
    asked, papers = topic(TEXTS[0]), {paper.paper_id: paper for paper in PAPERS}
    saved = tiny_ncn(PAPERS, TEXTS).scores(asked, PAPERS)
    assert Ncn.open(trained, device="cpu").scores(asked, PAPERS).tolist() == saved.tolist()
    reranker = NcnReranker(trained, NcnSettings(depth=3, weight=1000))
    ranked = reranker.rerank(asked, found("a", "b", "c", "d"), papers, {}, explain=4)
    costs = -reranker.model.scores(asked, PAPERS[:3])
    assert ranked.paper_ids() == [*(PAPERS[place].paper_id for place in np.argsort(costs)), "d"]
    assert ranked[0].signals["ncn"] == -costs.min()
    assert {reason.name for reason in ranked[0].reasons} == {"ncn", "ranking before"}
    assert sorted(reranker.rerank(asked, found("b", "c"), papers, {}).paper_ids()) == ["b", "c"]
    assert NcnReranker(trained).weight == 2.0
    untouched = NcnReranker(trained, NcnSettings(weight=0)).rerank(asked, found("d", "b", "a"), papers, {})
    assert untouched.paper_ids() == ["d", "b", "a"]


def test_networks_that_cannot_be_used_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no NCN.*citerec train ncn"):
        Ncn.open(tmp_path)
    with pytest.raises(SettingsError, match=r"has no ncn.*citerec train ncn"):
        NcnReranker.open(tmp_path, None, NcnSettings())
    manifest = orjson.loads((trained / "manifest.json").read_bytes())
    other = orjson.dumps({**manifest, "sizes": {**manifest["sizes"], "hidden": 7}})
    twice = (trained / "vocabulary.json").read_bytes().replace(b'"attention"', b'"x","y"', 1)
    for name, content in (
        ("manifest.json", b"{"),
        ("manifest.json", other),
        ("vocabulary.json", b'{"texts": 1}'),
        ("vocabulary.json", twice),
        ("model.safetensors", b"torn"),
    ):
        shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match="Train it again: citerec train ncn"):
            Ncn.open(tmp_path)
