"""The learnt ranker: it learns, the same each time; it ranks, explains itself, and refuses what is not its own."""

import shutil
from pathlib import Path

import numpy as np
import orjson
import pytest

from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError, SourceError
from citerec.files.progress import no_progress
from citerec.index.manifest import trained_of
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.rerank.ltr import FEATURES, LtrReranker, LtrSettings, features_of
from citerec.systems import Recipe, default_system
from citerec.train.groups import Choice
from citerec.train.ranking import LtrOptions, Source, train_ltr
from tests.conftest import write_lines

HYBRID = Recipe.load("hybrid")


@pytest.fixture(scope="module")
def toy_contexts(hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contexts that cite the most cited of the papers found: what words and vectors do not say, and trees can learn."""
    contexts = []
    with Recommender.open(hybrid_index, HYBRID) as recommender:
        papers = list(recommender.store.papers(map(str, range(900000001, 900000121))).values())
        asked = [
            Context(text=f"{paper.title} <REF>.", context_id=paper.paper_id, citing_id=paper.paper_id)
            for paper in papers
        ]
        for topic, found in recommender.candidates(recommender.topics(asked), 30):
            if not found:  # the oldest papers have nothing before them that they could cite
                continue
            records = recommender.store.papers(candidate.paper_id for candidate in found).values()
            most = max(records, key=lambda paper: (paper.citation_count or 0, paper.paper_id))
            contexts.append(
                {
                    "context_id": topic.context.context_id,
                    "text": topic.context.text,
                    "citing_id": topic.citing_id,
                    "cited_ids": [most.paper_id],
                }
            )
    return write_lines(tmp_path_factory.mktemp("contexts") / "most-cited.jsonl", contexts)


@pytest.fixture(scope="module")
def provenance(toy_contexts: Path, hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rankers") / "ltr"
    train_ltr([Source(hybrid_index, Choice(toy_contexts, dev_share=0.3))], out, LtrOptions(rounds=40), no_progress)
    return out


def test_it_learns_which_papers_are_cited(provenance: Path) -> None:
    manifest = LtrReranker(provenance).manifest
    assert manifest.dev["mrr@10"] > manifest.dev["mrr@10 before"] + 0.2
    assert max(manifest.gain, key=manifest.gain.__getitem__) == "citations rank"
    assert manifest.features == tuple(FEATURES)
    assert sum(manifest.gain.values()) == pytest.approx(1, abs=0.001)
    assert (provenance / "model.txt").read_text().startswith("tree\n")


def test_the_same_seed_makes_the_same_ranker(
    provenance: Path, toy_contexts: Path, hybrid_index: Path, tmp_path: Path
) -> None:
    source = Source(hybrid_index, Choice(toy_contexts, dev_share=0.3))
    train_ltr([source], tmp_path / "again", LtrOptions(rounds=40), no_progress)
    assert (tmp_path / "again" / "model.txt").read_bytes() == (provenance / "model.txt").read_bytes()


def test_it_ranks_the_head_and_leaves_the_tail_in_order(
    provenance: Path, toy_contexts: Path, hybrid_index: Path
) -> None:
    ranker = LtrReranker(provenance, LtrSettings(depth=20))
    context = next(read_contexts(toy_contexts))
    with Recommender.open(hybrid_index, HYBRID) as recommender:
        ((topic, found),) = recommender.candidates(recommender.topics([context]), 60)
    ranked = ranker.rerank(topic, found, {}, {})
    ids = [candidate.paper_id for candidate in ranked]
    assert sorted(ids[:20]) == sorted(candidate.paper_id for candidate in found[:20])
    assert ids[20:] == [candidate.paper_id for candidate in found[20:]]
    scores = [candidate.score for candidate in ranked]
    assert scores == sorted(scores, reverse=True)
    assert ranker.rerank(topic, [], {}, {}) == []


def test_its_reasons_add_up_to_its_scores(provenance: Path, toy_contexts: Path, hybrid_index: Path) -> None:
    ranker = LtrReranker(provenance)
    contexts = list(read_contexts(toy_contexts))[:3]
    constants = []
    with Recommender.open(hybrid_index, HYBRID) as recommender:
        for topic, found in recommender.candidates(recommender.topics(contexts), 30):
            features = features_of(topic, found)
            sums = [sum(reason.score for reason in reasons) for reasons in ranker.reasons(features)]
            constants.append(ranker.scores(features) - np.array(sums))
    assert np.ptp(np.concatenate(constants)) < 1e-6


def test_an_index_that_has_one_uses_it(
    provenance: Path, toy_contexts: Path, hybrid_index: Path, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    shutil.copytree(hybrid_index, index)
    shutil.copytree(provenance, trained_of(index, "ltr"))
    assert default_system(index) == "hybrid+ltr"
    context: Context = next(read_contexts(toy_contexts))
    with Recommender.open(index) as recommender:
        assert recommender.recipe.rerankers == ("ltr",)
        hits = recommender.search(context, 5, explain=True)
        assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
        assert all(hit.reasons for hit in hits)
        # How many are asked for does not decide who is among them.
        assert [hit.paper.paper_id for hit in recommender.search(context, 2)] == [
            hit.paper.paper_id for hit in hits[:2]
        ]


def test_what_is_wrong_is_said(provenance: Path, toy_contexts: Path, hybrid_index: Path, tmp_path: Path) -> None:
    def train(contexts: Path, out: Path = tmp_path / "out") -> None:
        train_ltr([Source(hybrid_index, Choice(contexts))], out, LtrOptions(), no_progress)

    with pytest.raises(SourceError):
        train(tmp_path / "missing.jsonl")
    strangers = tmp_path / "strangers.jsonl"
    lines = [{"text": f"Term weighting {number} <REF>.", "cited_ids": ["none-such"]} for number in range(20)]
    strangers.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    with pytest.raises(InputError, match="too few contexts"):
        train(strangers)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(InputError, match="letters"):
        train(toy_contexts, tmp_path / "letters")
    with pytest.raises(ModelError, match="no learnt ranker"):
        LtrReranker(tmp_path)
    broken = tmp_path / "broken"
    shutil.copytree(provenance, broken)
    manifest = orjson.loads((broken / "manifest.json").read_bytes())
    for features in (["other", *manifest["features"][1:]], manifest["features"][1:]):
        (broken / "manifest.json").write_bytes(orjson.dumps({**manifest, "features": features}))
        with pytest.raises(ModelError, match="other features"):
            LtrReranker(broken)
    (broken / "model.txt").write_text("no trees")
    with pytest.raises(ModelError, match="cannot be read"):
        LtrReranker(broken)
