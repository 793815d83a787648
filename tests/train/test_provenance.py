"""What is trained is not measured on what it learnt from: parts say what that was, and evaluation asks them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from citerec import evaluate
from citerec.contexts.provenance import PROVENANCE, Provenance, digests_of, provenance_of_part, split_contexts
from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.evaluation.record import find_overlap
from citerec.evaluation.results import Results
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


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("contexts") / "split"
    split_contexts(DEMO / "contexts.jsonl", out, dev=TUNED_ON, test=100)
    return out


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe that was tuned on a context."""
    folder = tmp_path_factory.mktemp("recipes")
    Provenance.of(tuned_on=[Context(text="It was tuned on <REF>.", citing_id="tuned")]).write(
        folder / "fusion.provenance.json"
    )
    (folder / "fusion.toml").write_text('retrievers = ["words"]\ntuned_on = "fusion.provenance.json"\n')
    return folder / "fusion.toml"


@pytest.fixture(scope="module")
def ranker(split: Path, tuned: Path, demo_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rankers") / "ltr"
    choice = Choice(split / "train.jsonl", split / "dev.jsonl", limit=TRAINED_ON)
    train_ltr([Source(demo_index, choice)], out, LtrOptions(str(tuned), rounds=5), no_progress)
    return out


@pytest.fixture
def recommender(ranker: Path, demo_index: Path) -> Recommender:
    return opened(ranker, demo_index)


def opened(ranker: Path, index: Path) -> Recommender:
    return Recommender.open(index, Recipe.load(None, [f"rerankers={ranker}", "ltr.depth=20"]))


def test_a_ranker_says_what_it_learnt_from_and_what_it_inherited(ranker: Path, split: Path) -> None:
    provenance = provenance_of_part(ranker)
    of_train = {one for context in read_contexts(split / "train.jsonl") for one in digests_of(context)}
    assert provenance.trained_on < of_train
    assert len(provenance.trained_on) == TRAINED_ON
    of_dev = {one for context in read_contexts(split / "dev.jsonl") for one in digests_of(context)}
    inherited = digests_of(Context(text="It was tuned on <REF>.", citing_id="tuned"))
    assert provenance.tuned_on == of_dev | set(inherited)
    assert provenance.unsaid == ()


def test_a_ranker_that_is_given_as_an_object_says_it_too(ranker: Path, demo_index: Path) -> None:
    with Recommender.from_parts(demo_index, rerankers=[LtrReranker(ranker)]) as recommender:
        assert recommender.provenance == provenance_of_part(ranker)


@pytest.mark.slow
def test_what_it_learnt_from_is_left_out_for_all_systems(
    recommender: Recommender, demo_index: Path, tmp_path: Path
) -> None:
    systems = {"bm25": "bm25", "mine": recommender}
    results = evaluate(systems, DEMO / "contexts.jsonl", index=demo_index, resamples=100, k=20)
    seen = TRAINED_ON + TUNED_ON
    assert {system.overall.n for system in results.systems.values()} == {630 - seen}
    assert len(results.items) == 630 - seen
    assert results.record.set.training_overlap is not None
    assert results.record.set.training_overlap.model_dump() == {
        "contexts": seen,
        "left_out": True,
        "systems": {
            "bm25": {"trained_on": 0, "tuned_on": 0, "unsaid": []},
            "mine": {"trained_on": TRAINED_ON, "tuned_on": TUNED_ON, "unsaid": []},
        },
    }
    (note,) = [note for note in results.record.notes if "training" in note]
    assert note.startswith(
        "210 of 630 contexts, by sentence or by citing paper, served in training: mine learnt from 150"
    )
    assert "left out for all systems" in note and "bm25" not in note
    results.write(tmp_path / "results")
    assert note in (tmp_path / "results" / "report.html").read_text()
    assert note in json.loads((tmp_path / "results" / "meta.json").read_text())["notes"]
    assert Results.read(tmp_path / "results").record == results.record
    # A run over the whole file is read all the same.
    again = evaluate(
        {"run": Run.from_trec(tmp_path / "results" / "runs" / "bm25.trec"), "mine": recommender},
        DEMO / "contexts.jsonl",
        index=demo_index,
        resamples=100,
        k=20,
    )
    assert again.systems["run"].overall == results.systems["bm25"].overall


def test_it_is_measured_all_the_same_where_that_is_asked_for(recommender: Recommender, demo_index: Path) -> None:
    results = evaluate(
        recommender, DEMO / "contexts.jsonl", index=demo_index, resamples=100, k=20, include_training_contexts=True
    )
    assert results.systems["recommender"].overall.n == 630
    assert results.record.set.training_overlap is not None and not results.record.set.training_overlap.left_out
    assert any("measured all the same" in note for note in results.record.notes)


def test_on_other_contexts_nothing_is_said(recommender: Recommender, split: Path, demo_index: Path) -> None:
    results = evaluate(recommender, split / "test.jsonl", index=demo_index, resamples=100, k=20)
    assert results.systems["recommender"].overall.n == 100
    assert not any("training" in note for note in results.record.notes)


def test_nothing_is_left_of_what_it_was_tuned_on(recommender: Recommender, split: Path, demo_index: Path) -> None:
    with pytest.raises(InputError, match="nothing is left") as raised:
        evaluate(recommender, split / "dev.jsonl", index=demo_index, k=20)
    assert "citerec contexts split" in raised.value.remedy


def test_a_ranker_of_before_is_said_to_say_nothing(ranker: Path, split: Path, demo_index: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for file in ranker.iterdir():
        if file.name != PROVENANCE:
            (old / file.name).write_bytes(file.read_bytes())
    with opened(old, demo_index) as recommender:
        results = evaluate(recommender, split / "dev.jsonl", index=demo_index, resamples=100, k=20)
    assert results.systems["recommender"].overall.n == TUNED_ON
    assert "recommender: parts (old) do not say what they learnt from" in " ".join(results.record.notes)


def test_other_sentences_of_a_citing_paper_count_too() -> None:
    first = Context(text="It is so <REF>.", citing_id="a")
    contexts = [first, replace(first, text="Also here <REF>."), replace(first, text="Elsewhere <REF>.", citing_id="b")]
    provenance = {"one": Provenance.of([first]), "two": Provenance.of([contexts[2]], [first]), "none": Provenance()}
    seen, overlap = find_overlap(contexts, provenance)
    assert overlap.systems["one"] == {"trained_on": 2, "tuned_on": 0, "unsaid": []}
    assert overlap.systems["two"]["tuned_on"] == 2
    assert seen.tolist() == [True, True, True]
    assert overlap.notes(3) == [
        "3 of 3 contexts, by sentence or by citing paper, served in training: one learnt from 2 and was tuned on 0; "
        "two learnt from 1 and was tuned on 2. They are left out for all systems (--include-training-contexts keeps "
        "them)."
    ]
    assert find_overlap(contexts, {"none": Provenance()})[1].notes(3) == []
