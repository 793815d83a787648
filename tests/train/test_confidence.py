"""Confidence: what was planted is found, it belongs to one system on one index, and answers under it are withheld."""

import json
import shutil
from pathlib import Path

import pytest

from citerec.confidence import Calibration, calibration_folder
from citerec.contexts.provenance import Provenance
from citerec.contexts.read import read_contexts
from citerec.errors import InputError, ModelError, QueryError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.results import Results
from citerec.index.build import add_to_index
from citerec.index.manifest import trained_of
from citerec.recommend import Recommender
from citerec.records import Confidence, Context
from citerec.systems import Recipe
from citerec.train.confidence import train_confidence
from citerec.train.groups import Choice
from tests.conftest import DEMO, Citerec, write_lines

pytestmark = pytest.mark.slow

BM25 = Recipe.load("bm25")
SENTENCE = "Attention alone suffices to translate well <REF>."


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every second of the demo's contexts."""
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()
    return write_lines(tmp_path_factory.mktemp("half") / "fit.jsonl", map(json.loads, lines[::2]))


@pytest.fixture(scope="module")
def calibrated(half: Path, demo_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with `bm25` calibrated on that half."""
    shutil.copytree(demo_index, index := tmp_path_factory.mktemp("calibrated") / "demo")
    train_confidence(Choice(half), index, "bm25", BM25)
    return index


def test_an_answer_says_how_sure_it_is_whatever_is_asked_for(calibrated: Path) -> None:
    with Recommender.open(calibrated, "bm25") as recommender:
        context = Context(text=SENTENCE, context_id="one")
        answers = [recommender.search(context, k).confidence for k in (1, 10, 50)]
        run = [hits.confidence for _, hits in recommender.candidates(recommender.topics([context]), 3)]
        assert answers[0] is not None and {*answers, *run} == {answers[0]}
        assert 0 <= answers[0].first <= answers[0].among_ten <= 1
        assert recommender.search(context)[:2].confidence == answers[0]
        ((_, nothing),) = recommender.candidates(recommender.topics([Context(text="<REF>", context_id="nothing")]))
        assert nothing.confidence == Confidence(0.0, 0.0, 0.0, 0.0)
        assert recommender.search(context, sort="newest").confidence is None
    other = Recipe.load("bm25", ["words.bm25.k1=0.5"])
    with Recommender.open(calibrated, other) as recommender, pytest.raises(QueryError, match="no confidence"):
        recommender.search(SENTENCE).if_sure(0.5)


def test_the_command_makes_the_same_and_papers_that_are_added_make_it_old(
    calibrated: Path, half: Path, demo_index: Path, tmp_path: Path, citerec_here: Citerec
) -> None:
    shutil.copytree(demo_index, index := tmp_path / "index")
    command = ("train", "confidence", "--contexts", half, "--index", index, "--system", "bm25")
    assert "bm25 calibrated on" in citerec_here(*command).stdout
    files = [calibration_folder(one, BM25) / "manifest.json" for one in (index, calibrated)]
    manifest, same = (Calibration.model_validate_json(file.read_bytes()) for file in files)
    assert manifest == same
    assert manifest.training["fitted_on"] == manifest.measured["among_ten"]["n"] == 315
    assert manifest.measured["among_ten"]["ece"] < 0.15
    new = write_lines(tmp_path / "new.jsonl", [{"paper_id": "new", "title": "A new paper on attention"}])
    add_to_index([new], index)
    answer = citerec_here("recommend", SENTENCE, "--index", index, "--system", "bm25", "--min-confidence", 0.5)
    assert answer.returncode == 2
    assert "before its papers, vectors or rankers changed" in answer.stderr
    assert citerec_here(*command).returncode == 0
    files[0].write_text('{"kind": "citerec-confidence"}')
    with pytest.raises(ModelError, match="train confidence"):
        Recommender.open(index, "bm25")


def test_it_needs_contexts_that_the_system_did_not_learn_from(half: Path, demo_index: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in half.read_text().splitlines()]
    one_paper = [{**record, "citing_key": f"p{max(0, at - 300)}"} for at, record in enumerate(records)]
    wrong = [{"context_id": str(at), "text": SENTENCE, "cited_ids": ["none"]} for at in range(300)]
    Provenance.of(tuned_on=list(read_contexts(half))[:200]).write(tmp_path / "provenance.json")
    tuned = BM25.model_copy(update={"tuned_on": str(tmp_path / "provenance.json")})
    for contexts, recipe, message in (
        (records[:40], BM25, "has 40 contexts: a calibration needs 200"),
        (records, tuned, "has 115 contexts that mine did not learn from"),
        (wrong, BM25, "is right in no answer"),
        (one_paper, BM25, "of some citing papers"),
    ):
        path = write_lines(tmp_path / "contexts.jsonl", contexts)
        with pytest.raises(InputError, match=message):
            train_confidence(Choice(path), demo_index, "mine", recipe)
    assert not trained_of(demo_index, "confidence").exists()


def test_recommend_withholds_what_it_is_not_sure_of(calibrated: Path, demo_index: Path, citerec_here: Citerec) -> None:
    ask = ("recommend", SENTENCE, "--index", calibrated, "--system", "bm25")
    assert "one of the first ten with " in citerec_here(*ask).stdout
    for least, hits in ((0, 10), (1, 0)):
        answer = json.loads(citerec_here(*ask, "--format", "json", "--min-confidence", least).stdout)
        assert (len(answer["hits"]), answer["nothing_fits"]) == (hits, not hits)
    assert "nothing here fits well enough" in citerec_here(*ask, "--min-confidence", 1).stdout
    refused = citerec_here("recommend", SENTENCE, "--index", demo_index, "--system", "bm25", "--min-confidence", 0.5)
    assert refused.returncode == 2
    assert f"citerec train confidence --contexts FILE --index {demo_index} --system bm25" in refused.stderr


def test_eval_measures_it_on_contexts_that_it_was_not_fitted_on(calibrated: Path, tmp_path: Path) -> None:
    results = evaluate(["bm25", "bm25-one-field"], DEMO / "contexts.jsonl", index=calibrated, resamples=100)
    measured = results.systems["bm25"].reliability
    assert {event: one.n for event, one in measured.items()} == {"first": 315, "among_ten": 315}
    assert results.systems["bm25-one-field"].reliability == {}
    assert "leaves out 315 contexts" in " ".join(results.record.notes)
    results.write(tmp_path / "out")
    assert Results.read(tmp_path / "out").systems["bm25"].reliability == measured
    assert 'id="confidence"' in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
