"""Learnt rankers, contexts from the index itself, and tuned fusion."""

import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from citerec import Context, Recommender
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError
from citerec.files.progress import no_progress
from citerec.index.build import BuildOptions, build_index
from citerec.index.manifest import trained_of
from citerec.rerank.ltr import FEATURES, LtrReranker, LtrSettings, features_of
from citerec.systems import Recipe, default_system
from citerec.train.groups import Choice
from citerec.train.ranking import LtrOptions, Source, marked, own_contexts, train_ltr, tune_fusion, write_recipe
from tests.conftest import DEMO, Citerec, write_lines
from tests.e2e.test_cli import one_line

CONTEXTS = DEMO / "contexts.jsonl"
CITED = 60


@pytest.fixture(scope="module")
def most_cited(hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contexts that cite the most cited of the papers found: what words and vectors do not say, and trees can learn."""
    records = []
    with Recommender.open(hybrid_index, "hybrid") as recommender:
        asked = [
            Context(text=f"{paper.title} <REF>.", context_id=paper.paper_id, citing_id=paper.paper_id)
            for paper in recommender.store.papers(map(str, range(900000001, 900000121))).values()
        ]
        for topic, hits in recommender.candidates(recommender.topics(asked), 30):
            papers = recommender.store.papers(hits.paper_ids()).values()
            most = max(papers, key=lambda paper: (paper.citation_count or 0, paper.paper_id), default=None)
            if most:  # the oldest papers have nothing before them that they could cite
                records.append(asdict(replace(topic.context, cited_ids=(most.paper_id,))))
    return write_lines(tmp_path_factory.mktemp("contexts") / "most-cited.jsonl", records)


@pytest.fixture(scope="module")
def ranker(most_cited: Path, hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rankers") / "ltr"
    train_ltr([Source(hybrid_index, Choice(most_cited, dev_share=0.3))], out, LtrOptions(rounds=40), no_progress)
    return out


def test_it_learns_which_papers_are_cited_the_same_each_time_and_an_index_that_has_it_uses_it(
    ranker: Path, most_cited: Path, hybrid_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    manifest = LtrReranker(ranker).manifest
    assert manifest.dev["mrr@10"] > manifest.dev["mrr@10 before"] + 0.2
    assert max(manifest.gain, key=manifest.gain.__getitem__) == "citations rank"
    assert manifest.features == tuple(FEATURES)
    shutil.copytree(hybrid_index, index := tmp_path / "index")
    source = Source(index, Choice(most_cited, dev_share=0.3))
    train_ltr([source], trained_of(index, "ltr"), LtrOptions(rounds=40), no_progress, parallelism=2)
    assert (trained_of(index, "ltr") / "model.txt").read_bytes() == (ranker / "model.txt").read_bytes()
    assert default_system(index) == "hybrid+ltr"
    with monkeypatch.context() as patch:  # what was searched once serves other settings too
        patch.setattr(Recommender, "candidates", None)
        again = train_ltr([source], tmp_path / "again", LtrOptions(rounds=30, leaves=7), no_progress)
    assert (again.training["trained_on"], again.training["examples"]) == tuple(
        manifest.training[name] for name in ("trained_on", "examples")
    )
    with Recommender.open(index) as recommender:
        assert recommender.recipe.rerankers == ("ltr",)
        assert all(hit.reasons for hit in recommender.search(next(read_contexts(most_cited)), 5, explain=True))


def test_it_ranks_the_head_leaves_the_tail_and_its_reasons_add_up(
    ranker: Path, most_cited: Path, hybrid_index: Path
) -> None:
    ltr, constants = LtrReranker(ranker, LtrSettings(depth=20)), []
    with Recommender.open(hybrid_index, "hybrid") as recommender:
        for topic, hits in recommender.candidates(recommender.topics(list(read_contexts(most_cited))[:3]), 60):
            ranked = ltr.rerank(topic, hits, {}, {})
            assert sorted(ranked.paper_ids()[:20]) == sorted(hits.paper_ids()[:20])
            assert ranked.paper_ids()[20:] == hits.paper_ids()[20:]
            assert ranked.scores.tolist() == sorted(ranked.scores.tolist(), reverse=True)
            features = features_of(topic, hits)
            sums = [sum(reason.score for reason in reasons) for reasons in ltr.reasons(features)]
            constants.append(ltr.scores(features) - np.array(sums))
    assert np.ptp(np.concatenate(constants)) < 1e-6


def test_rankers_that_cannot_be_learnt_or_read(ranker: Path, hybrid_index: Path, tmp_path: Path) -> None:
    lines = [{"text": f"Term weighting {number} <REF>.", "cited_ids": ["none-such"]} for number in range(20)]
    strangers = Source(hybrid_index, Choice(write_lines(tmp_path / "strangers.jsonl", lines)))
    with pytest.raises(InputError, match="too few contexts"):
        train_ltr([strangers], tmp_path / "out", LtrOptions(), no_progress)
    with pytest.raises(ModelError, match="no learnt ranker"):
        LtrReranker(tmp_path)
    shutil.copytree(ranker, broken := tmp_path / "broken")
    manifest = orjson.loads((broken / "manifest.json").read_bytes())
    for features in (["other", *manifest["features"][1:]], manifest["features"][1:]):
        (broken / "manifest.json").write_bytes(orjson.dumps({**manifest, "features": features}))
        with pytest.raises(ModelError, match="other features"):
            LtrReranker(broken)


@pytest.fixture(scope="module")
def cited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Papers of which each is cited ten times, by the words that its title lacks; q1 cites two in one sentence."""
    folder = tmp_path_factory.mktemp("own")
    papers = [{"paper_id": f"p{number}", "title": f"Study of subject{number}", "year": 2000} for number in range(CITED)]
    papers += [{"paper_id": f"q{number}", "title": f"Citing {number}", "year": 2010} for number in range(10)]
    citances = [
        {"text": f"The okapi{paper} method <REF> by q{citing}.", "citing_id": f"q{citing}", "cited_ids": [f"p{paper}"]}
        for paper in range(CITED)
        for citing in range(10)
    ]
    citances.append({"text": "Both of them <REF>.", "citing_id": "q1", "cited_ids": ["p1", "p2"]})
    options = BuildOptions(citances=(write_lines(folder / "citances.jsonl", citances),))
    build_index([write_lines(folder / "papers.jsonl", papers)], folder / "index", options)
    return folder / "index"


def test_citing_sentences_are_contexts_once_and_a_limit_keeps_whole_citing_papers(cited: Path) -> None:
    contexts = own_contexts(cited, None, 0)
    assert len({one.context_id for one in contexts}) == len(contexts) == 10 * CITED + 1
    (both,) = [one for one in contexts if len(one.cited_ids) == 2]
    assert (both.cited_ids, both.citing_id, both.citing_year) == (("p1", "p2"), "q1", 2010)
    citing = [one.citing_id for one in own_contexts(cited, 140, 1)]
    assert 0 < len(citing) < len(contexts) and len(set(citing)) >= len(citing) / (CITED + 1)
    assert marked("Trees (Roe, 1999) and nets (Doe, 2000).", 2000) == "Trees (Roe, 1999) and nets <REF>."
    assert marked("Trees rank [12] well.", 2000) == "Trees rank <REF> well."


def test_a_ranker_is_learnt_without_a_file_and_a_portable_one_reads_what_every_index_means_alike(
    cited: Path, hybrid_index: Path, citerec_here: Citerec, tmp_path: Path
) -> None:
    one_line(citerec_here("train", "ltr", "--index", hybrid_index), 2, "--contexts FILE")
    command = ("train", "ltr", "--index", cited, "--system", "bm25+citances", "-c", "rounds=20", "--portable")
    one_line(citerec_here(*command), 2, "give --out FOLDER")
    run = citerec_here(*command, "--out", tmp_path / "ltr")
    assert run.returncode == 0, run.stderr
    manifest = orjson.loads((tmp_path / "ltr" / "manifest.json").read_bytes())
    assert manifest["training"]["contexts"] == "the citing sentences of the index"
    assert manifest["dev"]["mrr@10"] > 0.9
    assert "bm25 rank" in manifest["features"] and "bm25" not in manifest["features"]


def test_tuned_fusion_is_a_system_that_says_what_it_was_tuned_on(hybrid_index: Path, tmp_path: Path) -> None:
    tuned = tune_fusion(CONTEXTS, hybrid_index, metric="mrr@10", limit=60, on_progress=no_progress)
    assert tuned.score >= max(tuned.alone.values())
    write_recipe(tuned, tmp_path / "fusion.toml")
    recipe = Recipe.load(tmp_path / "fusion.toml")
    assert (recipe.fusion.method, list(recipe.retrievers)) == ("weighted", ["words", "dense", "draft", "authors"])
    with Recommender.open(hybrid_index, recipe) as recommender:
        assert len(recommender.provenance.tuned_on) == 60  # the demo's contexts name no citing paper
        assert recommender.provenance.trained_on == frozenset()
    with pytest.raises(InputError, match="no metric"):
        tune_fusion(CONTEXTS, hybrid_index, metric="recal@10", on_progress=no_progress)
