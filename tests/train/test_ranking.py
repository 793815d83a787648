"""Learnt rankers, contexts from the index itself, and tuned fusion."""

import heapq
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from citerec import Context, Recommender
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError
from citerec.files.hashing import hash_sample
from citerec.files.progress import no_progress
from citerec.index.build import BuildOptions, build_index
from citerec.index.columns import PaperRows
from citerec.index.manifest import generation_of, trained_of
from citerec.index.vectors import Vectors
from citerec.rerank.ltr import FEATURES, LtrReranker, LtrSettings, features_of
from citerec.systems import Recipe, default_system
from citerec.train.groups import Choice
from citerec.train.ranking import (
    LEAST_SENTENCES,
    LtrOptions,
    Source,
    drafted,
    marked,
    own_contexts,
    train_ltr,
    tune_fusion,
    write_recipe,
)
from tests.conftest import DEMO, Citerec, s2ag_paper, write_lines

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
    ranker: Path, most_cited: Path, hybrid_index: Path, tmp_path: Path
) -> None:
    manifest = LtrReranker(ranker).manifest
    assert manifest.dev["mrr@10"] > manifest.dev["mrr@10 before"] + 0.2
    assert max(manifest.gain, key=manifest.gain.__getitem__) == "citations rank"
    assert manifest.features == tuple(FEATURES)
    shutil.copytree(hybrid_index, index := tmp_path / "index")
    source = Source(index, Choice(most_cited, dev_share=0.3))
    train_ltr([source], trained_of(index, "ltr"), LtrOptions(rounds=40), no_progress)
    assert (trained_of(index, "ltr") / "model.txt").read_bytes() == (ranker / "model.txt").read_bytes()
    assert default_system(index) == "hybrid+ltr"
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


def test_too_few_sentences_that_show_their_citation_are_refused(
    hybrid_index: Path, citerec_here: Citerec, tmp_path: Path
) -> None:
    run = citerec_here("train", "ltr", "--index", hybrid_index)
    assert run.returncode == 2 and "--contexts FILE" in run.stderr
    write_lines(tmp_path / "corpus" / "papers" / "0.jsonl", [s2ag_paper(1, title="Cited")])
    said = [
        {"citationid": n, "citingcorpusid": n, "citedcorpusid": 1, "contexts": [f"Said [1] and [2] {n}."]}
        for n in range(2, LEAST_SENTENCES + 2)
    ]
    write_lines(tmp_path / "corpus" / "citations" / "0.jsonl", said)
    build_index([tmp_path / "corpus"], tmp_path / "index")
    with pytest.raises(InputError, match=rf"show their citation: {LEAST_SENTENCES} are needed"):
        own_contexts(tmp_path / "index", None, 0)


def test_a_ranker_is_learnt_without_a_file_and_a_portable_one_reads_what_every_index_means_alike(
    cited: Path, citerec_here: Citerec, tmp_path: Path
) -> None:
    command = ("train", "ltr", "--index", cited, "--system", "bm25+citances", "-c", "rounds=20", "--portable")
    run = citerec_here(*command)
    assert run.returncode == 2 and "give --out FOLDER" in run.stderr
    run = citerec_here(*command, "--out", tmp_path / "ltr")
    assert run.returncode == 0, run.stderr
    manifest = orjson.loads((tmp_path / "ltr" / "manifest.json").read_bytes())
    assert manifest["training"]["contexts"] == "the citing sentences of the index"
    assert manifest["dev"]["mrr@10"] > 0.9
    assert "bm25 rank" in manifest["features"] and "bm25" not in manifest["features"]


def test_drafts_are_made_of_what_the_same_paper_cites_elsewhere() -> None:
    contexts = [Context(text="a <REF>", context_id=f"c{n}", citing_id="q", cited_ids=(f"p{n}",)) for n in range(6)]
    alone = replace(contexts[1], context_id="alone", citing_id="r")
    known = replace(alone, context_id="known", citing_id="r2", cited_before=("p9",))
    drafts = list(drafted([*contexts, alone, known], 0))
    for context, draft in zip(contexts, drafts[:6], strict=True):
        assert draft is None or set(draft.cited_before or ()) <= {f"p{n}" for n in range(6)} - set(context.cited_ids)
    assert any(drafts[:6]) and drafts[6:] == [None, known]


def test_tuned_fusion_is_a_system_that_reaches_what_was_promised(hybrid_index: Path, tmp_path: Path) -> None:
    tuned = tune_fusion(CONTEXTS, hybrid_index, metric="mrr@10", limit=60, on_progress=no_progress)
    assert tuned.score >= max(tuned.alone.values())
    write_recipe(tuned, tmp_path / "fusion.toml")
    recipe = Recipe.load(tmp_path / "fusion.toml")
    assert (recipe.fusion.method, list(recipe.retrievers)) == ("weighted", ["words", "dense", "draft"])
    with Recommender.open(hybrid_index, recipe) as recommender:
        assert len(recommender.provenance.tuned_on) == 60  # the demo's contexts name no citing paper
        assert recommender.provenance.trained_on == frozenset()
    # The same contexts as are drawn for tuning, asked anew.
    plain = recipe.model_copy(update={"fusion": recipe.fusion.model_copy(update={"feedback": 0})})
    drawn = heapq.nsmallest(60, read_contexts(CONTEXTS, cited=True), key=lambda one: hash_sample(0, one.context_id))
    with Recommender.open(hybrid_index, plain) as recommender:
        reciprocal_ranks = [
            next((1 / rank for rank, one in enumerate(hits, 1) if one.paper_id in topic.context.cited_ids), 0.0)
            for topic, hits in recommender.candidates(recommender.topics(drawn), 10)
        ]
    assert np.mean(reciprocal_ranks) == pytest.approx(tuned.score)
    with pytest.raises(InputError, match="no metric"):
        tune_fusion(CONTEXTS, hybrid_index, metric="recal@10", on_progress=no_progress)


def test_feedback_draws_the_query_to_what_was_found_first(hybrid_index: Path) -> None:
    # The words count for nothing, and the first paper found for everything.
    sentence = "Attention alone suffices to translate well <REF>."
    how = ("retrievers.words=0", "fusion.feedback=1", "fusion.feedback_weight=1000")
    with Recommender.open(hybrid_index, Recipe.load("hybrid", how[:1])) as plain:
        first = plain.search(sentence, 1)[0].paper.paper_id
    with Recommender.open(hybrid_index, Recipe.load("hybrid", how)) as recommender:
        hits = [hit.paper.paper_id for hit in recommender.search(sentence, 5)]
    folder = generation_of(hybrid_index)
    ids = PaperRows.open(folder).paper_ids(np.arange(252))
    values = np.asarray(Vectors(folder / "dense").values, np.float32)
    nearest = np.argsort(-(values @ values[ids.index(first)]), kind="stable")[:5]
    assert hits == [ids[row] for row in nearest]
