"""NCN: what it reads, that candidates do not mix, which networks are refused, and a rule that it learns."""

import shutil
from pathlib import Path

import numpy as np
import orjson
import pytest
import torch

from citerec.contexts.provenance import provenance_of_part
from citerec.contexts.topic import Topic, topic_of
from citerec.errors import ModelError, SettingsError
from citerec.index.build import build_index
from citerec.papers.diagnostic.ncn import Ncn, NcnOptions, train_ncn
from citerec.papers.diagnostic.parts import NcnReranker, NcnSettings
from citerec.recommend import Recommender
from citerec.records import Context, Paper
from citerec.retrieve.base import Candidate, Candidates
from citerec.systems import Recipe
from citerec.train.groups import Choice, Schedule
from tests.columns import columns
from tests.conftest import Citerec, write_lines
from tests.tiny_ncn import TINY, tiny_ncn, write_tiny_ncn

PAPERS = [
    Paper("a", "Attention", authors=("Ada Lovelace",)),
    Paper("b", "Ranking papers by words", authors=("Ada Lovelace", "Alan Turing", "Grace Hopper")),
    Paper("c", "A guide finds the gene", authors=()),
    Paper("d", "Vectors of sentences and of words and of papers", authors=("Alan Turing",)),
]
TEXTS = ("attention suffices to translate well", "words rank papers", "genes")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_ncn(tmp_path_factory.mktemp("trained") / "ncn", PAPERS, TEXTS, weight=2.0)


def topic(text: str, authors: tuple[str, ...] = ("Grace Hopper",)) -> Topic:
    return topic_of(Context(text=f"{text} <REF>."), Paper("citing", authors=authors) if authors else None)


def found(*ids: str) -> Candidates:
    return columns([Candidate(paper_id, 9.0 - place) for place, paper_id in enumerate(ids)])


def test_rows_of_a_batch_do_not_mix() -> None:
    model = tiny_ncn(PAPERS, TEXTS)
    together = [
        topic(text, authors) for text, authors in zip(TEXTS, [("Ada Lovelace",), (), ("X Y", "Z")], strict=True)
    ]
    with torch.inference_mode():
        alone = [model.read([one]) for one in together]
        for side, (values, _) in enumerate(model.read(together)):
            np.testing.assert_allclose(values, torch.cat([one[side][0] for one in alone]), atol=1e-6)
    for asked in together:
        scores = model.scores(asked, PAPERS)
        assert scores.tolist() == pytest.approx([model.scores(asked, [paper])[0] for paper in PAPERS], abs=1e-4)
        # In another order, and beside others.
        assert model.scores(asked, PAPERS[::-1] * 100)[-4:] == pytest.approx(scores[::-1], abs=1e-4)


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
    assert NcnReranker(trained, NcnSettings()).weight == 2.0
    untouched = NcnReranker(trained, NcnSettings(weight=0)).rerank(asked, found("d", "b", "a"), papers, {})
    assert untouched.paper_ids() == ["d", "b", "a"]


def test_networks_that_cannot_be_used_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no NCN.*citerec train ncn"):
        Ncn.open(tmp_path)
    with pytest.raises(SettingsError, match=r"has no ncn.*citerec train ncn"):
        NcnReranker.open(tmp_path, None, NcnSettings())
    manifest = orjson.loads((trained / "manifest.json").read_bytes())
    other = orjson.dumps({**manifest, "sizes": {**manifest["sizes"], "hidden": 7}})
    for name, content in (("manifest.json", other), ("vocabulary.json", b'{"texts": 1}'), ("model.safetensors", b"x")):
        shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match="Train it again: citerec train ncn"):
            Ncn.open(tmp_path)


# A word of the sentence decides which title is cited; the title does not have it, and search finds all alike.
CITED = ("Parsing of trees", "Ranking of pages", "Speech of children", "Memory of mice")
RULE = dict(zip(("river", "stone", "cloud", "grass"), CITED, strict=True))
SHARED = "study"


def contexts_of(times: int, first: int = 0) -> list[dict[str, object]]:
    return [
        {
            "context_id": f"{word}-{number}",
            "text": f"This {SHARED} saw a {word} in case {number} <REF>.",
            "citing_key": f"paper-{number}",
            "citing_year": 2020,
            "cited_ids": [str(list(RULE).index(word))],
        }
        for number in range(first, first + times)
        for word in RULE
    ]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of four cited papers and four others, all with a word that each sentence has; contexts beside it."""
    folder = tmp_path_factory.mktemp("planted")
    titles = [*RULE.values(), *(f"Other {word} of things" for word in ("ways", "kinds", "uses", "tests"))]
    # The authors are the same for all: a network that reads those of a title needs no context to write it.
    papers = [
        {"paper_id": str(number), "title": title, "abstract": f"A {SHARED}.", "year": 2000, "authors": ["Ada Author"]}
        for number, title in enumerate(titles)
    ]
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index")
    write_lines(folder / "train.jsonl", contexts_of(12))
    write_lines(folder / "dev.jsonl", contexts_of(3, 50))
    return folder


@pytest.mark.slow
def test_it_learns_which_title_a_word_asks_for(planted: Path, tmp_path: Path) -> None:
    choice, out = Choice(planted / "train.jsonl", dev=planted / "dev.jsonl"), tmp_path / "ncn"
    schedule = Schedule(learning_rate=1e-2, checkpoint_every=2, epochs=25, evaluations=5, patience=5)
    how = {"system": Recipe.load("bm25"), "device": "cpu"}
    manifest = train_ncn(choice, planted / "index", out, NcnOptions(TINY, depth=8, batch=8), schedule, **how)
    assert manifest.dev["mrr@10 before"] < 0.6 and manifest.dev["mrr@10"] > 0.9
    # What was learnt is what the reranker ranks by.
    with Recommender.open(planted / "index", f"bm25+{out}") as recommender:
        for word, title in RULE.items():
            assert recommender.search(f"We saw a {word} in this {SHARED} <REF>.", 1)[0].paper.title == title
    provenance = provenance_of_part(out)
    assert len(provenance.trained_on) == 48 + 12
    assert provenance.trained_on.isdisjoint(provenance.tuned_on)


@pytest.mark.slow
def test_the_commands_train_and_measure(citerec_here: Citerec, planted: Path, tmp_path: Path) -> None:
    shutil.copytree(planted / "index", tmp_path / "index")
    sides = ("--contexts", planted / "train.jsonl", "--dev", planted / "dev.jsonl", "--index", "index")
    sizes = "-c embedding=12 -c hidden=12 -c filters=8 -c batch=8 -c epochs=2 -c evaluations=1 --limit 20"
    done = citerec_here("train", "ncn", *sides, *sizes.split())
    assert done.returncode == 0, done.stderr
    asked = ("--contexts", planted / "dev.jsonl", "--index", "index", "--include-training-contexts")
    assert citerec_here("eval", *asked, "--system", "ncn", "--metrics", "mrr@5").returncode == 0
