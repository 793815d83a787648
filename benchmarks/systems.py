"""The systems of the diagnostic benchmark side by side, and with half of the citing sentences taken away.

Run it with `python benchmarks/systems.py [--work FOLDER]`; it needs ../shared/data and makes
results/systems-tables.md. It says each citerec command that it runs; what stands in the work folder already is not
made again.

Everything that learns, learns from data/acl contexts-train, at small size: a MiniLM where the papers have SciBERT, a
model of some millions of weights where they have Galactica. The figures compare these systems in this training, and
nothing else: docs/results.md.
"""

import argparse
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from causal import main as train_causal
from results import DATA, MODEL, ROOT, Made, every, tables

from citerec import Recommender, load_contexts
from citerec.corpus.reading import raw_lines

PAGE = ROOT / "results" / "systems-tables.md"
LEARN = DATA / "acl" / "contexts-train.jsonl"
SYSTEMS = (
    *("bm25", "bm25+citances", "dense", "profile", "hybrid", "hybrid+profile", "ncn", "bm25+citances+ncn", "hatten"),
    *("lcr", "galactica", "bm25+citances+title-likelihood"),
)
STRANGERS = ("bm25", "dense", "hybrid", "ncn", "bm25+ncn", "hatten", "lcr", "galactica", "bm25+title-likelihood")
# Of one size; the second learns nothing.
TRAINED = (
    *("-c", "learning_rate=1e-3", "-c", "epochs=4", "--limit", 12000, "-c", "pool=20000", "-c", "mine_every=200"),
    *("-c", "evaluations=6", "-c", "patience=6"),
)
UNTRAINED = ("-c", "learning_rate=1e-12", "-c", "epochs=1", "--limit", 64, "-c", "pool=2000", "-c", "evaluations=1")


class Trained(Made):
    """Indexes with all that the systems need."""

    def provenance(self, index: Path) -> None:
        """All that is trained, into an index of data/acl."""
        few = ("--contexts", LEARN, "--index", index, "-c", "dev_share=0.05")
        if not (index / "ncn").is_dir():
            steps = ("-c", "epochs=6", "-c", "evaluations=3", "-c", "learning_rate=2e-3", "-c", "dev_limit=100")
            self.citerec("train", "ncn", *few, "--preset", "original", "--limit", 8000, *steps)
        for name, schedule in (("hatten", TRAINED), ("untrained", UNTRAINED)):
            if not (self.work / name).is_dir():
                sizes = ("-c", "width=128", "-c", "feed_forward=256", "-c", "max_words=64")
                sizes = (*sizes, "-c", "graded=false", "-c", "dev_limit=300")
                self.citerec("train", "hatten", *few, "--out", self.work / name, *sizes, *schedule)
        self.vectors(index, "hatten")
        if not (index / "cross-encoder").is_dir():
            small = (
                "--base",
                MODEL,
                "--learning-rate",
                "1e-4",
                *["-c", "max_tokens=64", "-c", "negatives=5", "-c", "depth=50"],
            )
            as_lcr = ("--system", "hatten", "-c", "loss=triplet", "-c", "citances=false", "-c", "marker=true")
            steps = ("--limit", 1000, "-c", "dev_limit=40", "-c", "evaluations=2")
            self.citerec("train", "reranker", *few, *as_lcr, *small, *steps)
        if not (index / "galactica").is_dir():
            place = str(index / "galactica")
            train_causal(["--index", str(index), "--contexts", str(LEARN), "--out", place, "--epochs", "4"])

    def vectors(self, index: Path, model: str) -> None:
        """The vectors of `profile` and `hatten`."""
        if not (index / "hatten" / "manifest.json").is_file():
            self.citerec("index", "encode", index, "--retriever", "hatten", "--model", self.work / model)
        if json.loads((index / "manifest.json").read_bytes())["counts"]["citances"]:
            self.citerec("index", "encode", index, "--retriever", "profile")

    def copied(self, index: Path, name: str) -> Path:
        """Another index with what was trained in this one."""
        for part in ("ncn", "cross-encoder", "galactica"):
            if not (place := self.work / name / part).is_symlink():
                place.symlink_to(index / part)
        return self.work / name

    def shuffled(self, contexts: Path, index: Path) -> Path:
        """The candidates of `ncn` in an order that says nothing: that of digests of their ids."""
        out = self.work / "random.trec"
        with Recommender.open(index, "bm25+citances") as recommender, out.open("w", encoding="utf-8") as file:
            for name, found in recommender.search_many(list(load_contexts(contexts)), 256).to_dict().items():
                ids = sorted(found, key=lambda paper_id, name=name: _digest(f"{name} {paper_id}"))
                file.writelines(f"{name} Q0 {one} {rank} {-rank} random\n" for rank, one in enumerate(ids, 1))
        return out


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def is_cold(paper_id: object) -> bool:
    """Whether a paper's citing sentences are taken away: every second one, by a digest of its id."""
    return _digest(str(paper_id))[0] % 2 == 0


def without_the_cold(work: Path) -> Path:
    """The citations of data/acl whose cited paper stays warm."""
    (source,) = sorted((DATA / "acl" / "citations").glob("*.gz"))
    (out := work / "warm").mkdir(exist_ok=True)
    with (out / "citations-00000.jsonl").open("wb") as file:
        for _, raw, _ in raw_lines(source):
            if not is_cold(orjson.loads(raw)["citedcorpusid"]):
                file.write(raw.rstrip(b"\n") + b"\n")
    return out


def halves(contexts: Path, work: Path) -> Iterator[tuple[str, Path]]:
    """The contexts all of whose cited papers are warm, and those all of whose are cold."""
    lines = contexts.read_text(encoding="utf-8").splitlines(keepends=True)
    for name, wanted in (("warm", False), ("cold", True)):
        out = work / f"{name}.jsonl"
        kept = (line for line in lines if all(is_cold(one) is wanted for one in json.loads(line)["cited_ids"]))
        out.write_text("".join(kept), encoding="utf-8")
        yield name, out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "indexes" / "systems")
    work = parser.parse_args().work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    made = Trained(work, cross_encoder=True)
    acl = made.index("acl", DATA / "acl")
    made.provenance(acl)
    untrained = work / "acl-untrained"
    if not untrained.is_dir():
        shutil.copytree(acl, untrained, ignore=shutil.ignore_patterns("hatten"))
    made.vectors(untrained, "untrained")
    dev = every(12, DATA / "acl" / "contexts-dev.jsonl", work / "acl-twelfth.jsonl")
    acm = made.index("acm", DATA / "acm", vectors=DATA / "acm" / "minilm-l6")
    made.vectors(made.copied(acl, "acm"), "hatten")
    acm_dev = every(9, DATA / "acm" / "contexts-dev.jsonl", work / "acm-ninth.jsonl")
    demo = made.index("demo", ROOT / "diagnostics" / "demo")
    made.vectors(made.copied(acl, "demo"), "hatten")
    demo_sixth = every(6, ROOT / "diagnostics" / "demo" / "contexts.jsonl", work / "demo-sixth.jsonl")
    cold = made.index("cold", DATA / "acl" / "papers", without_the_cold(work), vectors=acl / "dense")
    made.vectors(made.copied(acl, "cold"), "hatten")
    found: list[tuple[str, dict[str, Any]]] = [
        ("data/acl dev, every twelfth context", made.measured("acl", dev, acl, SYSTEMS, made.shuffled(dev, acl))),
        ("data/acl dev, `hatten` before it was trained", made.measured("untrained", dev, untrained, ("hatten",))),
        ("data/acm dev, every ninth context: strangers", made.measured("acm", acm_dev, acm, STRANGERS)),
        ("The demo, every sixth context: strangers", made.measured("demo", demo_sixth, demo, STRANGERS)),
    ]
    for name, contexts in halves(dev, work):
        what = "with citing sentences in the index" if name == "warm" else "whose citing sentences were taken away"
        found.append((f"Cold start: papers {what}", made.measured(name, contexts, cold, SYSTEMS)))
    lines = [
        "# The benchmark's systems, class by class",
        "",
        "Made by `python benchmarks/systems.py`: do not edit. [results.md](results.md) tells what it says.",
        "",
        *(line for title, results in found for line in tables(title, results)),
    ]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
