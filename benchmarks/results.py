"""Every system on every class of the real dev sets, with cost: makes results/results-tables.md. Needs ../shared/data.

Run it with `python benchmarks/results.py [--work FOLDER] [--without-cross-encoder]`. It says each citerec command that
it runs; what stands in the work folder already is not made again. Two hours on two cores, most of them for the
cross-encoder: its training, and reading 50 candidates of each context with 8-bit weights.

The rankers learn from data/acl contexts-train. On data/acm they are strangers: what they do there tells how far a
ranker carries from one corpus to another.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from citerec.evaluation.results import Results
from citerec.evaluation.statistics import Scores
from citerec.index.manifest import open_store

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "results" / "results-tables.md"
METRICS = ("recall@10", "recall@100", "mrr@10")
MODEL = "all-MiniLM-L6-v2"
FEW = 30
TITLES = "hybrid-without-citances"
CROSS = ("hybrid+cross-encoder", "hybrid+ltr+cross-encoder")


class Made:
    """What the work folder holds; each part is made when it is not there yet."""

    def __init__(self, work: Path, *, cross_encoder: bool) -> None:
        self.work = work
        self._cross_encoder = cross_encoder

    def citerec(self, *arguments: object) -> None:
        """Runs a command, and says it first as a reader would type it."""
        shown = " ".join(["citerec", *(shlex.quote(self._shown(argument)) for argument in arguments)])
        print(shown, flush=True)
        subprocess.run([Path(sys.executable).with_name("citerec"), *map(str, arguments)], check=True, cwd=ROOT)

    def _shown(self, argument: object) -> str:
        return str(argument).replace(f"{DATA}/", "").replace(f"{self.work}/", "")

    def index(self, name: str, *sources: object, vectors: Path | None = None) -> Path:
        """Words and vectors; those are encoded here, or given."""
        out = self.work / name
        if not (out / "manifest.json").is_file():
            self.citerec("index", "build", *sources, "--out", out)
        if not (out / "dense" / "manifest.json").is_file():
            given = ("--vectors", vectors) if vectors else ()
            self.citerec("index", "encode", out, "--model", MODEL, *given)
        return out

    def rankers(self, index: Path) -> None:
        """What `citerec train` makes of data/acl, into the index."""
        learn = DATA / "acl" / "contexts-train.jsonl"
        if not (index / "ltr").is_dir():
            self.citerec("train", "ltr", "--contexts", learn, "--index", index, "--limit", 6000)
        if self._cross_encoder and not (index / "cross-encoder").is_dir():
            small = ("--base", MODEL, "-c", "learning_rate=1e-4", "-c", "max_tokens=96", "-c", "negatives=5")
            drawn = ("-c", "candidates=50", "--limit", "3000", "-c", "dev_limit=100", "-c", "evaluations=4")
            self.citerec(
                "train", "reranker", "--contexts", learn, "--index", index, "--system", "hybrid", *small, *drawn
            )

    def borrowed(self, index: Path, lender: Path) -> None:
        """The rankers of another index, under the names that its own would have."""
        for name in ("ltr", "cross-encoder"):
            if (lender / name).is_dir() and not (index / name).exists():
                (index / name).symlink_to(lender / name)

    def measured(self, name: str, contexts: Path, index: Path, systems: Sequence[str], *runs: Path) -> Results:
        """What `citerec eval` says of the systems and runs, cross-encoders where the index has one."""
        out = self.work / "measured" / name
        if not (out / "meta.json").is_file():
            has_cross = (index / "cross-encoder").exists()
            chosen = [self._system(system) for system in systems if has_cross or system not in CROSS]
            named = [part for system in chosen for part in ("--system", system)]
            named += [part for run in runs for part in ("--run", str(run))]
            metrics = ("--metrics", ",".join(METRICS))
            self.citerec("eval", "--contexts", contexts, "--index", index, *named, *metrics, "--out", out)
        return Results.read(out)

    def _system(self, name: str) -> str:
        """A cross-encoder runs in 8 bits: three times as quick on these processors."""
        if name not in (*CROSS, TITLES):
            return name
        recipe = self.work / f"{name}.toml"
        base, more = (
            (name, '[cross_encoder]\nbackend = "onnx-int8"') if name in CROSS else ("hybrid", "[weights]\ncitances = 0")
        )
        shipped = (ROOT / "indexes" / "recipes" / f"{base}.toml").read_text(encoding="utf-8")
        recipe.write_text(f"{shipped}\n{more}\n", encoding="utf-8")
        return str(recipe)


def unheard_of(index: Path, contexts: Path, out: Path) -> Path:
    """The contexts none of whose cited papers has a citing sentence in the index."""
    with closing(open_store(index)) as store:
        cited = {citance.cited.paper_id for citance in store.searchable_citances()}
    lines = contexts.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if cited.isdisjoint(map(str, json.loads(line)["cited_ids"]))]
    out.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return out


def every(step: int, contexts: Path, out: Path) -> Path:
    """Every so manieth context: cross-encoders read long."""
    out.write_text("".join(contexts.read_text(encoding="utf-8").splitlines(keepends=True)[::step]), encoding="utf-8")
    return out


def tables(title: str, results: Results) -> Iterator[str]:
    systems = results.systems
    assert results.record.index is not None
    yield f"## {title}"
    yield f"{len(results.items):,} contexts, asked of {results.record.index.papers:,} papers."
    yield ""
    yield "| system | " + " | ".join(METRICS) + " | median ms | 95 % ms | peak memory MB | index MB |"
    yield "|---" * (len(METRICS) + 5) + "|"
    for name, system in systems.items():
        cost = system.cost
        assert cost is not None
        yield (
            f"| {name} | "
            + " | ".join(_cell(system.overall, metric) for metric in METRICS)
            + f" | {cost.latency_median_ms:.0f} | {cost.latency_p95_ms:.0f} | "
            f"{(cost.peak_memory_bytes or 0) / 1e6:,.0f} | {cost.index_bytes / 1e6:,.0f} |"
        )
    for metric in METRICS:
        yield ""
        yield f"{metric}, class by class:"
        yield ""
        yield "| class | n | " + " | ".join(systems) + " |"
        yield "|---" * (len(systems) + 2) + "|"
        for family, label in results.groups[1:]:
            scores = [system.families[family][label] for system in systems.values()]
            if scores[0].n >= FEW:
                cells = " | ".join(_cell(score, metric) for score in scores)
                yield f"| {family}: {label} | {scores[0].n:,} | {cells} |"
    yield ""


def _cell(scores: Scores, metric: str) -> str:
    mean = scores.means[metric]
    low, high = mean.ci or (0, 0)
    return f"{mean.value:.3f} ({low:.2f}–{high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "indexes" / "results")
    parser.add_argument("--without-cross-encoder", action="store_true")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    made = Made(arguments.work.resolve(), cross_encoder=not arguments.without_cross_encoder)
    acm_dev = DATA / "acm" / "contexts-dev.jsonl"
    acl_dev = DATA / "acl" / "contexts-dev.jsonl"
    acl = made.index("acl", DATA / "acl")
    made.rankers(acl)
    acm = made.index("acm", DATA / "acm", vectors=DATA / "acm" / "minilm-l6")
    made.borrowed(acm, acl)
    new = unheard_of(acl, acl_dev, made.work / "acl-unheard-of.jsonl")
    third = every(3, acm_dev, made.work / "acm-third.jsonl")
    fourth = every(4, acl_dev, made.work / "acl-fourth.jsonl")
    with_citances = ("bm25", "citances", "bm25+citances", "dense", "hybrid", "hybrid+ltr")
    without = ("bm25-one-field", "bm25", "dense", "hybrid", "hybrid+ltr")
    reading = ("hybrid", "hybrid+ltr", *CROSS)
    found = [
        ("data/acm dev: titles and abstracts", made.measured("acm", acm_dev, acm, without)),
        ("data/acl dev: titles and citances", made.measured("acl", acl_dev, acl, with_citances)),
        ("data/acl dev: nobody cited these papers before", made.measured("acl-new", new, acl, with_citances)),
        ("data/acl dev: as if nobody had cited anything", made.measured("acl-titles", acl_dev, acl, (TITLES,))),
        ("data/acm dev, every third context: cross-encoders", made.measured("acm-sample", third, acm, reading)),
        ("data/acl dev, every fourth context: cross-encoders", made.measured("acl-sample", fourth, acl, reading)),
    ]
    lines = [
        "# Results, class by class",
        "",
        "Made by `python benchmarks/results.py`: do not edit. [results.md](results.md) tells what it says. Means with",
        f"intervals of 95 % (bootstrap over citing papers), classes of at least {FEW} contexts.",
        "",
        *(line for title, results in found for line in tables(title, results)),
    ]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
