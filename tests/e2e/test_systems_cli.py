"""Every system by name, from the command line: build, train, ask, measure."""

import json
import shutil
from pathlib import Path

import pytest

from citerec.index.manifest import trained_of
from tests.conftest import DEMO, Citerec

pytestmark = pytest.mark.slow

SENTENCE = "Term weighting <REF> is a strong baseline"


def test_a_ranker_is_trained_and_used(citerec_here: Citerec, hybrid_index: Path, tmp_path: Path) -> None:
    index = shutil.copytree(hybrid_index, tmp_path / "indexes" / "demo")
    split = ("contexts", "split", DEMO / "contexts.jsonl", "--dev", "0.3", "--test", "0.3", "--out", "split")
    citerec_here(*split, code=0)
    sides = ("--contexts", "split/train.jsonl", "--dev", "split/dev.jsonl")
    trained = citerec_here("train", "ltr", *sides, "-c", "rounds=20")
    assert "mrr@10" in trained.stdout and "share of the gain" in trained.stdout, trained.stderr
    assert (trained_of(index, "ltr") / "model.txt").is_file()
    citerec_here("index", "verify", index, code=0)
    asked = citerec_here("recommend", SENTENCE, "--explain", "--scores", "-k", "3")
    assert "System: hybrid+ltr" in asked.stderr and "lifted by: " in asked.stdout
    as_json = json.loads(citerec_here("recommend", SENTENCE, "--explain", "--format", "json", "-k", "3").stdout)
    assert all("words and vectors" in {reason["name"] for reason in hit["reasons"]} for hit in as_json)
    # Some contexts that it learnt from, and some that it did not.
    some = [(tmp_path / "split" / f"{side}.jsonl").read_text().splitlines()[:25] for side in ("train", "test")]
    (tmp_path / "some.jsonl").write_text("\n".join(line for side in some for line in side))
    measured = citerec_here("eval", "--contexts", "some.jsonl", "--system", "bm25", "--system", "hybrid+ltr")
    assert "hybrid+ltr learnt from" in " ".join(measured.stderr.split())
    assert "from training left out" in measured.stdout
    new = citerec_here("eval", "--contexts", "split/test.jsonl", "--system", "hybrid+ltr")
    assert new.returncode == 0 and "training" not in new.stdout + new.stderr
