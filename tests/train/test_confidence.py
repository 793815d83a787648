"""Confidence: what was planted is found, it belongs to one system on one index, and answers under it are withheld."""

import json
import shutil
from pathlib import Path

import numpy as np
import psutil
import pytest

from citerec.confidence import Calibration, calibration_folder
from citerec.contexts.provenance import Provenance
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError, QueryError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.metrics import reliability
from citerec.evaluation.results import Results
from citerec.index.build import add_to_index
from citerec.index.manifest import trained_of
from citerec.recommend import Recommender
from citerec.records import Confidence, Context
from citerec.retrieve.base import Floats, Rows
from citerec.systems import Recipe
from citerec.train.groups import Choice
from citerec.train.ranking import Flags, _measured, fitted, train_confidence
from tests.conftest import DEMO, Citerec, write_lines

pytestmark = pytest.mark.slow

BM25 = Recipe.load("bm25")
SENTENCE = "Attention alone suffices to translate well <REF>."


def planted(n: int, seed: int) -> tuple[Floats, Floats, Flags, Rows]:
    """Evidence, the true probabilities of two events, what happened, and citing papers of four answers each."""
    random = np.random.default_rng(seed)
    evidence = random.normal(3, [1, 10, 1], (n, 3))
    score = evidence[:, 0] - 3 + (evidence[:, 1] - 3) / 10
    # The second is no sigmoid of any weighted sum: a regression alone would miss it.
    true = np.stack([1 / (1 + np.exp(1 - score)), np.where(score > 0.5, 0.9, 0.3)], axis=1)
    papers = np.repeat(random.integers(0, 2**62, n // 4), 4)
    return evidence, true, random.random((n, 2)) < true, papers


def test_the_planted_probabilities_are_recovered() -> None:
    evidence, _, right, papers = planted(4000, 0)
    curves = fitted(evidence, right, papers)
    new, true, happened, _ = planted(4000, 1)
    stated = curves.at(new)
    assert (np.abs(stated - true).mean(axis=0) < 0.05).all()
    for column, curve in enumerate((curves.first, curves.among_ten)):
        assert reliability(stated[:, column], happened[:, column]).ece < 0.05
        assert sorted(curve.probabilities) == list(curve.probabilities)


def test_evidence_that_is_missing_counts_as_the_mean() -> None:
    evidence, _, right, papers = planted(400, 0)
    evidence[:, 2] = np.nan
    evidence[::2, 1] = np.nan
    curves = fitted(evidence, right, papers)
    stated = curves.at(evidence)
    assert np.isfinite(stated).all()
    assert np.array_equal(stated, curves.at(np.where(np.isnan(evidence), curves.mean, evidence)))


def test_a_citing_paper_that_has_nearly_all_contexts_is_said() -> None:
    random = np.random.default_rng(0)
    papers = np.append(np.full(191, random.integers(0, 2**62)), random.integers(0, 2**62, 14))
    right = random.random((len(papers), 2)) < 0.5
    with pytest.raises(InputError, match="of some citing papers"):  # the others are too few
        _measured(random.normal(size=(len(papers), 5)), right, papers)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The demo's contexts, in two files."""
    records = [json.loads(line) for line in (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()]
    folder = tmp_path_factory.mktemp("halves")
    return write_lines(folder / "fit.jsonl", records[::2]), write_lines(folder / "rest.jsonl", records[1::2])


@pytest.fixture(scope="module")
def calibrated(halves: tuple[Path, Path], demo_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with `bm25` calibrated on half of its contexts."""
    index = tmp_path_factory.mktemp("calibrated") / "demo"
    shutil.copytree(demo_index, index)
    train_confidence(Choice(halves[0]), index, "bm25", BM25)
    return index


def manifest_of(index: Path) -> Calibration:
    return Calibration.model_validate_json((calibration_folder(index, BM25) / "manifest.json").read_bytes())


def test_an_answer_says_how_sure_it_is_whatever_is_asked_for(calibrated: Path) -> None:
    with Recommender.open(calibrated, "bm25") as recommender:
        context = Context(text=SENTENCE, context_id="one")
        asked = [recommender.search(context, k).confidence for k in (1, 10, 50)]
        run = [found.confidence for _, found in recommender.candidates(recommender.topics([context]), 3)]
        assert asked[0] is not None
        assert {*asked, *run} == {asked[0]}
        assert 0 <= asked[0].first <= asked[0].among_ten <= 1
        assert len(recommender.search(context, 1)) == 1
        assert recommender.search(context)[:2].confidence == asked[0]
        nothing = Context(text="<REF>", context_id="nothing")
        assert [found.confidence for _, found in recommender.candidates(recommender.topics([nothing]))] == [
            Confidence(0.0, 0.0)
        ]
        assert recommender.search(context, sort="newest").confidence is None


def test_it_belongs_to_one_system_with_its_settings(calibrated: Path) -> None:
    for recipe in (Recipe.load("bm25", ["words.bm25.k1=0.5"]), Recipe.load("bm25-one-field")):
        with Recommender.open(calibrated, recipe) as recommender:
            assert recommender.calibration is None
            answer = recommender.search(SENTENCE)
            assert answer.confidence is None
            with pytest.raises(QueryError, match="no confidence"):
                answer.if_sure(0.5)


def test_the_same_contexts_make_the_same_calibration(
    calibrated: Path, halves: tuple[Path, Path], demo_index: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_index, again := tmp_path / "again")
    train_confidence(Choice(halves[0]), again, "bm25", BM25)
    assert manifest_of(again) == manifest_of(calibrated)
    assert manifest_of(again).training["fitted_on"] == 315


def test_papers_that_are_added_make_it_old(
    calibrated: Path, halves: tuple[Path, Path], tmp_path: Path, citerec_here: Citerec
) -> None:
    shutil.copytree(calibrated, index := tmp_path / "index")
    add_to_index(
        [write_lines(tmp_path / "new.jsonl", [{"paper_id": "new", "title": "A new paper on attention"}])], index
    )
    with Recommender.open(index, "bm25") as recommender:
        assert recommender.calibration is None
    answer = citerec_here("recommend", SENTENCE, "--index", index, "--system", "bm25", "--min-confidence", 0.5)
    assert answer.returncode == 2
    assert "before its papers, vectors or rankers changed" in answer.stderr
    train_confidence(Choice(halves[0]), index, "bm25", BM25)
    with Recommender.open(index, "bm25") as recommender:
        assert recommender.calibration is not None


def test_a_broken_calibration_is_said_with_its_remedy(calibrated: Path, tmp_path: Path) -> None:
    shutil.copytree(calibrated, index := tmp_path / "index")
    (calibration_folder(index, BM25) / "manifest.json").write_text('{"kind": "citerec-confidence"}')
    with pytest.raises(ModelError, match="train confidence") as _raised:
        Recommender.open(index, "bm25")
    files = [file.path for file in psutil.Process().open_files()]
    assert str(index / "1" / "papers.sqlite") not in files, "the index was closed again"


def test_it_needs_contexts_that_the_system_did_not_learn_from(
    halves: tuple[Path, Path], demo_index: Path, tmp_path: Path
) -> None:
    contexts = list(read_contexts(halves[0]))
    with pytest.raises(InputError, match="has 40 contexts: a calibration needs 200"):
        few = write_lines(tmp_path / "few.jsonl", map(json.loads, halves[0].read_text().splitlines()[:40]))
        train_confidence(Choice(few), demo_index, "bm25", BM25)
    Provenance.of(tuned_on=contexts[:200]).write(tmp_path / "provenance.json")
    tuned = BM25.model_copy(update={"tuned_on": str(tmp_path / "provenance.json")})
    with pytest.raises(InputError, match="has 115 contexts that mine did not learn from"):
        train_confidence(Choice(halves[0]), demo_index, "mine", tuned)
    wrong = [{"context_id": str(at), "text": SENTENCE, "cited_ids": ["none"]} for at in range(300)]
    with pytest.raises(InputError, match="is right in no answer"):
        train_confidence(Choice(write_lines(tmp_path / "wrong.jsonl", wrong)), demo_index, "bm25", BM25)
    assert not trained_of(demo_index, "confidence").exists()


def test_eval_measures_it_on_contexts_that_it_was_not_fitted_on(
    calibrated: Path, halves: tuple[Path, Path], tmp_path: Path
) -> None:
    results = evaluate(["bm25", "bm25-one-field"], DEMO / "contexts.jsonl", index=calibrated, resamples=100)
    found = results.systems["bm25"].reliability
    assert {event: one.n for event, one in found.items()} == {"first": 315, "among_ten": 315}
    assert results.systems["bm25-one-field"].reliability == {}
    assert "fitted on 315 of the contexts" in " ".join(results.record.notes)
    # The same by another road.
    rest = list(read_contexts(halves[1]))
    stated, right = [], []
    with Recommender.open(calibrated, "bm25") as recommender:
        for topic, candidates in recommender.candidates(recommender.topics(rest), 10):
            assert candidates.confidence is not None
            stated.append(candidates.confidence.among_ten)
            right.append(not set(topic.context.cited_ids).isdisjoint(candidates.paper_ids()))
    again = reliability(np.array(stated), np.array(right))
    assert (found["among_ten"].ece, found["among_ten"].brier) == pytest.approx((again.ece, again.brier))
    results.write(tmp_path / "out")
    assert Results.read(tmp_path / "out").systems["bm25"].reliability == found
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="confidence"' in page
    assert "ECE" in page


def test_recommend_withholds_what_it_is_not_sure_of(calibrated: Path, demo_index: Path, citerec_here: Citerec) -> None:
    ask = ("recommend", SENTENCE, "--index", calibrated, "--system", "bm25")
    shown = citerec_here(*ask)
    assert "sure that one of the first ten is right: " in shown.stdout
    assert isinstance(json.loads(citerec_here(*ask, "--format", "json").stdout), list)
    sure = json.loads(citerec_here(*ask, "--format", "json", "--min-confidence", 0).stdout)
    assert (len(sure["hits"]), sure["nothing_fits"]) == (10, False)
    assert sure["confidence"].keys() == {"first", "among_ten"}
    odd = ("recommend", "Zebra fish attention <REF>.", *ask[2:], "--min-confidence", 1)
    withheld = citerec_here(*odd)
    assert withheld.returncode == 0
    assert "nothing here fits well enough (sure that one of the first ten is right: " in withheld.stdout
    answer = json.loads(citerec_here(*odd, "--format", "json").stdout)
    assert (answer["hits"], answer["nothing_fits"]) == ([], True)
    refused = citerec_here("recommend", SENTENCE, "--index", demo_index, "--system", "bm25", "--min-confidence", 0.5)
    assert refused.returncode == 2
    assert f"citerec train confidence --contexts FILE --index {demo_index} --system bm25" in refused.stderr
    assert citerec_here(*ask, "--min-confidence", 0.5, "--sort", "newest").returncode == 2


def test_many_contexts_say_one_by_one_how_sure_the_system_is(calibrated: Path, citerec_here: Citerec) -> None:
    ask = ("run", DEMO / "contexts.jsonl", "--index", calibrated, "--system", "bm25")
    lines = [json.loads(line) for line in citerec_here(*ask, "--format", "json", "-k", 3).stdout.splitlines()]
    stated = sorted(line["confidence"]["among_ten"] for line in lines)
    assert 0 <= stated[0] < stated[-1] <= 1


def test_the_command_makes_it_and_says_how_well_it_fits(
    halves: tuple[Path, Path], demo_index: Path, tmp_path: Path, citerec_here: Citerec
) -> None:
    shutil.copytree(demo_index, index := tmp_path / "index")
    made = citerec_here("train", "confidence", "--contexts", halves[0], "--index", index, "--system", "bm25")
    assert made.returncode == 0
    assert "bm25 calibrated on" in made.stdout
    assert "one of the first ten is right" in made.stdout
    assert sorted(path.name for path in calibration_folder(index, BM25).iterdir()) == [
        "manifest.json",
        "provenance.json",
    ]
    measured = manifest_of(index).measured["among_ten"]
    assert measured["n"] == 315
    assert measured["ece"] < 0.15
