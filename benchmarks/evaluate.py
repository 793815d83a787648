"""Measures scoring against ranx, and `citerec eval` against the bare batch search: `make bench`."""

import functools
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from citerec import Run, evaluate
from citerec.contexts.read import read_contexts
from citerec.diagnostics.families import Bounds, FamilyOfSet
from citerec.diagnostics.sets import DiagnosticSet, SetManifest
from citerec.evaluation.record import metered
from citerec.index.build import build_index
from citerec.index.manifest import open_store
from citerec.recommend import Recommender
from citerec.records import Context

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
CITEREC = Path(sys.executable).with_name("citerec")
METRICS = ["recall@10", "recall@100", "mrr@10", "ndcg@10", "map@100"]
CLASSES = {
    "location": ("first", "middle", "last"),
    "length": ("short", "medium", "long"),
    "intent": ("background", "method", "result"),
}
K = 100
CONTEXTS = 100_000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def synthetic(paper_ids: list[str], folder: Path) -> tuple[DiagnosticSet, Path]:
    """Contexts of 20,000 citing papers in nine classes, and a run that finds the cited paper of four in five."""
    random = np.random.default_rng(0)
    hits = random.integers(0, len(paper_ids), (CONTEXTS, K))
    contexts = []
    with (folder / "run.trec").open("w") as file:
        for number, row in enumerate(hits):
            found = list(dict.fromkeys(paper_ids[paper] for paper in row))
            cited = found[int(random.integers(0, len(found)))] if random.random() < 0.8 else "none"
            labels = {family: classes[int(random.integers(0, 3))] for family, classes in CLASSES.items()}
            name, citing = f"c{number}", f"k{number // 5}"
            contexts.append(
                Context(text="A <REF>.", context_id=name, citing_key=citing, cited_ids=(cited,), labels=labels)
            )
            file.writelines(f"{name} Q0 {paper} {rank} {K - rank / 7:.4f} x\n" for rank, paper in enumerate(found))
    families = {
        name: FamilyOfSet(conditions=(), classes=dict.fromkeys(classes, 1)) for name, classes in CLASSES.items()
    }
    manifest = SetManifest(
        strata=1, citerec="0", name="synthetic", source="", contexts=CONTEXTS, corpus_papers=0, corpus_fingerprint="",
        spacy_model=None, bounds=Bounds(), fingerprint="",
        families=families,
    )  # fmt: skip
    return DiagnosticSet(folder, manifest, tuple(contexts)), folder / "run.trec"


def scoring(index: Path, folder: Path) -> None:
    """Citerec from the run file to the results, against the metrics of ranx alone, both once warm."""
    paper_ids = [text.paper_id for text in open_store(index).all_papers()]
    asked, run = synthetic(paper_ids, folder)
    evaluate(Run.from_dict({"c0": {paper_ids[0]: 1.0}}), asked, index=index, metrics=METRICS)
    with metered() as measured:
        ours, results = timed(lambda: evaluate(Run.from_trec(run), asked, index=index, metrics=METRICS))
    memory = measured.memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ranx

        run_scores: dict[str, dict[str, float]] = {}
        with run.open() as file:
            for line in file:
                context, _, paper, _, score, _ = line.split()
                run_scores.setdefault(context, {})[paper] = float(score)
        building, objects = timed(
            lambda: (
                ranx.Qrels({context.context_id: {context.cited_ids[0]: 1} for context in asked.contexts}),
                ranx.Run(run_scores),
            )
        )
        ranx.evaluate(*objects, METRICS)
        theirs, values = timed(lambda: ranx.evaluate(*objects, METRICS))
    assert all(abs(values[name] - results.systems["run"].overall.values[name]) < 1e-9 for name in METRICS)
    print(f"scoring {CONTEXTS:,} x {K}: citerec, file to results {ours:.1f} s ({memory / 1e6:,.0f} MB at most)")
    print(
        f"  ranx, the metrics alone {theirs:.1f} s: ratio {ours / theirs:.2f} ({building:.0f} s to build its objects)"
    )


def eval_against_search(index: Path) -> None:
    """`citerec eval` and `citerec run`, in turns, whole processes; then the same inside one process."""
    contexts = DATA / "acl" / "contexts-dev.jsonl"
    bare: list[float] = []
    measured: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            search = [CITEREC, "run", "--out", f"{folder}/run", "-k", str(K), "--system", "bm25"]
            for command, times in ((search, bare), ([CITEREC, "eval", "--system", "bm25"], measured)):
                whole = [*command, contexts, "--index", index]
                run = functools.partial(subprocess.run, whole, check=True, capture_output=True)
                times.append(timed(run)[0])
    print(f"citerec eval, whole command {statistics.median(measured):.1f} s, bare {statistics.median(bare):.1f} s: "
          f"ratio {statistics.median(measured) / statistics.median(bare):.2f}")  # fmt: skip
    listed = list(read_contexts(contexts))
    ratios = []
    with Recommender.open(index, "bm25") as recommender:
        for turn in range(4):
            searching, _ = timed(lambda: list(recommender.candidates(recommender.topics(listed), K)))
            evaluating, _ = timed(lambda: evaluate(recommender, contexts, index=index))
            if turn:
                ratios.append(evaluating / searching)
    print(f"the same in one process, imports done: ratio {statistics.median(ratios):.2f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("arxiv", "acl"):
            build_index([DATA / name], place / name)
        scoring(place / "arxiv", place)
        eval_against_search(place / "acl")


if __name__ == "__main__":
    main()
