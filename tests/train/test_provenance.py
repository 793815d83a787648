"""What is trained is not measured on what it learnt from: parts say what that was, and evaluation asks them."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citerec import evaluate
from citerec.contexts.provenance import PROVENANCE, Provenance, digests_of, provenance_of_part, split_contexts
from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.evaluation.record import find_overlap
from citerec.files.progress import no_progress
from citerec.recommend import Recommender
from citerec.records import Context
from citerec.rerank.ltr import LtrReranker
from citerec.retrieve.run import Run
from citerec.systems import Recipe
from citerec.train.groups import Choice
from citerec.train.ranking import LtrOptions, Source, train_ltr
from tests.conftest import DEMO

TRAINED_ON, TUNED_ON = 150, 60
EARLIER = Context(text="It was tuned on <REF>.", citing_id="tuned")


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("contexts") / "split"
    split_contexts(DEMO / "contexts.jsonl", out, dev=TUNED_ON, test=100)
    return out


@pytest.fixture(scope="module")
def ranker(split: Path, demo_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ranker over a recipe that was tuned on a context."""
    folder = tmp_path_factory.mktemp("rankers")
    Provenance.of(tuned_on=[EARLIER]).write(folder / "fusion.provenance.json")
    (folder / "fusion.toml").write_text('retrievers = ["words"]\ntuned_on = "fusion.provenance.json"\n')
    choice = Choice(split / "train.jsonl", split / "dev.jsonl", limit=TRAINED_ON)
    options = LtrOptions(str(folder / "fusion.toml"), rounds=5)
    train_ltr([Source(demo_index, choice)], folder / "ltr", options, no_progress)
    return folder / "ltr"


def opened(ranker: Path, index: Path) -> Recommender:
    return Recommender.open(index, Recipe.load(None, [f"rerankers={ranker}", "ltr.depth=20"]))


def test_a_ranker_says_what_it_learnt_from_and_what_it_inherited(ranker: Path, split: Path, demo_index: Path) -> None:
    provenance = provenance_of_part(ranker)
    of_train, of_dev = (
        {one for context in read_contexts(split / f"{part}.jsonl") for one in digests_of(context)}
        for part in ("train", "dev")
    )
    assert provenance.trained_on < of_train and len(provenance.trained_on) == TRAINED_ON
    assert provenance.tuned_on == of_dev | set(digests_of(EARLIER))
    with Recommender.from_parts(demo_index, rerankers=[LtrReranker(ranker)]) as recommender:
        assert recommender.provenance == provenance


@pytest.mark.slow
def test_what_it_learnt_from_is_left_out_for_all_systems(ranker: Path, demo_index: Path, tmp_path: Path) -> None:
    how = {"contexts": DEMO / "contexts.jsonl", "index": demo_index, "resamples": 100, "k": 20}
    recommender, seen = opened(ranker, demo_index), TRAINED_ON + TUNED_ON
    results = evaluate({"bm25": "bm25", "mine": recommender}, **how)
    assert {system.overall.n for system in results.systems.values()} == {len(results.items)} == {630 - seen}
    assert results.record.set.training_overlap is not None
    assert results.record.set.training_overlap.systems == {
        "bm25": {"trained_on": 0, "tuned_on": 0, "unsaid": []},
        "mine": {"trained_on": TRAINED_ON, "tuned_on": TUNED_ON, "unsaid": []},
    }
    (note,) = [note for note in results.record.notes if "training" in note]
    assert "left out for all systems" in note and "mine learnt from 150" in note and "bm25" not in note
    results.write(tmp_path / "results")
    assert note in (tmp_path / "results" / "report.html").read_text()
    # A run over the whole file is read all the same.
    run = Run.from_trec(tmp_path / "results" / "runs" / "bm25.trec")
    again = evaluate({"run": run, "mine": recommender}, **how)
    assert again.systems["run"].overall == results.systems["bm25"].overall


def test_what_is_measured_on_other_contexts_on_request_and_of_a_ranker_that_says_nothing(
    ranker: Path, split: Path, demo_index: Path, tmp_path: Path
) -> None:
    shutil.copytree(ranker, tmp_path / "old", ignore=shutil.ignore_patterns(PROVENANCE))

    def measured(folder: Path, contexts: Path, **how: Any) -> tuple[int, str]:
        with opened(folder, demo_index) as recommender:
            results = evaluate(recommender, contexts, index=demo_index, resamples=100, k=20, **how)
        return results.systems["recommender"].overall.n, " ".join(results.record.notes)

    n, notes = measured(ranker, DEMO / "contexts.jsonl", include_training_contexts=True)
    assert n == 630 and "measured all the same" in notes
    n, notes = measured(ranker, split / "test.jsonl")
    assert n == 100 and "training" not in notes
    n, notes = measured(tmp_path / "old", split / "dev.jsonl")
    assert n == TUNED_ON and "recommender: parts (old) do not say what they learnt from" in notes
    with pytest.raises(InputError, match="nothing is left") as raised:
        measured(ranker, split / "dev.jsonl")
    assert "citerec contexts split" in raised.value.remedy


def test_other_sentences_of_a_citing_paper_count_too() -> None:
    first = Context(text="It is so <REF>.", citing_id="a")
    contexts = [first, replace(first, text="Also here <REF>."), replace(first, text="Elsewhere <REF>.", citing_id="b")]
    provenance = {"one": Provenance.of([first]), "two": Provenance.of([contexts[2]], [first]), "none": Provenance()}
    seen, overlap = find_overlap(contexts, provenance)
    assert overlap.systems["one"] == {"trained_on": 2, "tuned_on": 0, "unsaid": []}
    assert overlap.systems["two"] == {"trained_on": 1, "tuned_on": 2, "unsaid": []}
    assert seen.tolist() == [True, True, True]
