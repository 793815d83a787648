"""Tuning fusion on contexts, and feedback: the vectors searched again with what was found first."""

from pathlib import Path

import numpy as np
import pytest

from citerec.errors import InputError, SettingsError
from citerec.files.progress import no_progress
from citerec.index.columns import PaperRows
from citerec.index.manifest import generation_of
from citerec.index.vectors import Vectors
from citerec.recommend import Recommender
from citerec.systems import Recipe
from citerec.train.ranking import tune_fusion, write_recipe
from tests.conftest import DEMO

CONTEXTS = DEMO / "contexts.jsonl"
SENTENCE = "Attention alone suffices to translate well <REF>."


def mrr_at_10(index: Path, settings: Recipe, limit: int) -> float:
    """The same contexts as are drawn for tuning, asked anew."""
    import heapq

    from citerec.contexts.read import read_contexts
    from citerec.files.hashing import hash_sample

    drawn = heapq.nsmallest(limit, read_contexts(CONTEXTS, cited=True), key=lambda one: hash_sample(0, one.context_id))
    with Recommender.open(index, settings) as recommender:
        found = [
            next((1 / n for n, one in enumerate(candidates, 1) if one.paper_id in topic.context.cited_ids), 0.0)
            for topic, candidates in recommender.candidates(recommender.topics(drawn), 10)
        ]
    return float(np.mean(found))


def test_what_is_found_is_a_system_that_reaches_what_was_promised(hybrid_index: Path, tmp_path: Path) -> None:
    tuned = tune_fusion(CONTEXTS, hybrid_index, metric="mrr@10", limit=60, on_progress=no_progress)
    assert tuned.score >= max(tuned.alone.values())
    write_recipe(tuned, tmp_path / "fusion.toml")
    settings = Recipe.load(tmp_path / "fusion.toml")
    assert (settings.fusion.method, list(settings.retrievers)) == ("weighted", ["words", "dense", "draft"])
    with Recommender.open(hybrid_index, settings) as recommender:
        assert len(recommender.provenance.tuned_on) == 60  # the demo's contexts name no citing paper
        assert recommender.provenance.trained_on == frozenset()
    without_feedback = settings.model_copy(update={"fusion": settings.fusion.model_copy(update={"feedback": 0})})
    assert mrr_at_10(hybrid_index, without_feedback, 60) == pytest.approx(tuned.score)


def test_tuning_says_what_is_wrong(hybrid_index: Path, demo_index: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no metric"):
        tune_fusion(CONTEXTS, hybrid_index, metric="recal@10", on_progress=no_progress)
    with pytest.raises(SettingsError, match="no vectors"):
        tune_fusion(CONTEXTS, demo_index, limit=2, on_progress=no_progress)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="is empty"):
        tune_fusion(tmp_path / "empty.jsonl", hybrid_index, on_progress=no_progress)


def test_feedback_draws_the_query_to_what_was_found_first(hybrid_index: Path) -> None:
    # The words count for nothing, and the first paper found for everything.
    how = ("retrievers.words=0", "fusion.feedback=1", "fusion.feedback_weight=1000")
    with Recommender.open(hybrid_index, Recipe.load("hybrid", ("retrievers.words=0",))) as plain:
        first = plain.search(SENTENCE, 1)[0].paper.paper_id
    with Recommender.open(hybrid_index, Recipe.load("hybrid", how)) as recommender:
        found = [hit.paper.paper_id for hit in recommender.search(SENTENCE, 5)]
    folder = generation_of(hybrid_index)
    ids = PaperRows.open(folder).paper_ids(np.arange(252))
    values = np.asarray(Vectors(folder / "dense").values, np.float32)
    nearest = np.argsort(-(values @ values[ids.index(first)]), kind="stable")[:5]
    assert found == [ids[row] for row in nearest]
