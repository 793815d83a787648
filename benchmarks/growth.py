"""Growth: time, memory and disk of each stage at several sizes, and what the exponents say of 200 million papers.

Run it with `python benchmarks/growth.py --work FOLDER --sizes 10000,50000`; it says first how long it will take, and
`--estimate` says only that. Every stage runs in a process of its own and leaves a file of its figures in FOLDER: a run
that was stopped continues, and the table is of all sizes measured so far (`growth.md`, `growth.json`).

The papers are those of data/acm and data/acl (about 180,000). Further ones are made of them by noise: three of ten
words of a paper are exchanged for words of another paper of its field, and ids are new. So texts stay as long, and
words as frequent within a field, as they are; but there are no new words, where real papers bring some. Vectors are
those of data/acm (MiniLM), then noise around them; encoding is measured on a few papers of each size.
"""

import argparse
import contextlib
import gzip
import itertools
import json
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[2] / "shared" / "data"
TARGET, LEAST = 200_000_000, 100_000
SHARD = 50_000
FIRST_NEW_ID = 300_000_000
SHARE, ADDED = 0.3, 0.01  # of words exchanged; of records changed in an index
ENCODED, QUERIES, K = 400, 300, 100
Record = dict[str, Any]


def real_papers() -> Iterator[tuple[Record, Record | None]]:
    """Records of papers with those of their abstracts, data/acm first, in order of id."""
    for name in ("acm", "acl"):
        folder = DATA / name / "abstracts"
        abstracts = {one["corpusid"]: one for one in records(folder if folder.is_dir() else DATA / f"{name}-abstracts")}
        for paper in records(DATA / name / "papers"):
            yield paper, abstracts.get(paper["corpusid"])


def records(folder: Path) -> Iterator[Record]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path) as file:
            yield from map(json.loads, file)


def papers() -> Iterator[tuple[Record, Record | None]]:
    """The real papers, then papers of noise without end."""
    real = []
    for pair in real_papers():
        real.append(pair)
        yield pair
    of_field: dict[str, list[int]] = {}
    for number, (paper, _) in enumerate(real):
        of_field.setdefault(field_of(paper), []).append(number)
    drawn = random.Random(17)
    for number in itertools.count():
        paper, abstract = real[number % len(real)]
        donor, other = real[drawn.choice(of_field[field_of(paper)])]
        corpusid = FIRST_NEW_ID + number
        paper = paper | {"corpusid": corpusid, "title": exchanged(paper["title"], donor["title"], drawn)}
        paper["externalids"] = {**(paper["externalids"] or {}), "CorpusId": str(corpusid), "DOI": None}
        if abstract:
            text = exchanged(abstract["abstract"], (other or abstract)["abstract"], drawn)
            abstract = abstract | {"corpusid": corpusid, "abstract": text}
        yield paper, abstract


def field_of(paper: Record) -> str:
    return str(((paper["s2fieldsofstudy"] or [{}])[0]).get("category"))


def exchanged(text: str | None, other: str | None, drawn: random.Random) -> str:
    """A text in which some words are another text's."""
    words, others = (text or "").split(), (other or "").split()
    return " ".join(drawn.choice(others) if others and drawn.random() < SHARE else word for word in words)


def write_sources(folder: Path, chosen: Iterable[tuple[Record, Record | None]]) -> None:
    for kind in ("papers", "abstracts"):
        (folder / kind).mkdir(parents=True)
    remaining = iter(chosen)
    for number in itertools.count():
        shard = list(itertools.islice(remaining, SHARD))
        if not shard:
            break
        for place, kind in enumerate(("papers", "abstracts")):
            with gzip.open(folder / kind / f"{kind}-{number:05}.jsonl.gz", "wt", compresslevel=1) as file:
                file.writelines(json.dumps(pair[place]) + "\n" for pair in shard if pair[place])


def made(size: int, work: Path) -> Record:
    """Writes the shards of the papers, those to be added, and the vectors."""
    source = iter(papers())
    more = max(100, round(size * ADDED))
    write_sources(work / "sources", itertools.islice(source, size))
    write_sources(work / "more", itertools.islice(source, more))
    write_vectors(work / "vectors", size + more, work)
    return {"disk_mb": disk_mb(work / "sources")}


def write_vectors(folder: Path, count: int, work: Path) -> None:
    """Vectors of the papers in their order: those of data/acm, then noise around them, half as long as they are."""
    from citerec.index.columns import mapped, writing_arrays

    folder.mkdir()
    ids = [one["corpusid"] for part in ("sources", "more") for one in records(work / part / "papers")]
    np.save(folder / "ids.npy", np.array(ids, np.int64))
    real, noise = mapped(DATA / "acm" / "minilm-l6" / "vectors.npy"), np.random.default_rng(7)
    with writing_arrays(folder) as append:
        for begin in range(0, count, len(real)):
            part = real[: count - begin].astype(np.float32)
            if begin:
                part += 0.5 / part.shape[1] ** 0.5 * noise.standard_normal(part.shape, dtype=np.float32)
            append(vectors=(part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float16))


def build(_size: int, work: Path) -> Record:
    """`index build`: shards into the store, columns and words."""
    from citerec.index.build import build_index

    build_index([work / "sources"], work / "index")
    return {"disk_mb": disk_mb(work / "index")}


def vectors(_size: int, work: Path) -> Record:
    """`index encode --vectors`: given vectors arranged, and what searches them."""
    from citerec.index.build import encode_index
    from citerec.index.manifest import generation_of
    from citerec.index.vectors import DenseOptions

    made = encode_index(work / "index", DenseOptions("all-MiniLM-L6-v2", vectors=(work / "vectors",)))
    return {"disk_mb": disk_mb(generation_of(work / "index") / "dense"), "kind": made.kind_of_search}


def encode(size: int, work: Path) -> Record:
    """Encoding titles and abstracts, without a FAISS index; of a few papers, so that all sizes are encoded alike."""
    from citerec.index.manifest import open_store
    from citerec.models.encoder import Encoder, paper_text

    with contextlib.closing(open_store(work / "index")) as store:
        count = min(size, ENCODED)
        step = max(1, size // count)
        texts = [paper_text(paper) for paper in itertools.islice(store.all_papers(), 0, count * step, step)]
    encoder = Encoder.open("all-MiniLM-L6-v2", backend="onnx-int8", max_tokens=192)
    encoder.encode(texts[:10])
    return {"begun": begun(), "times": size / len(texts), "encoded": len(encoder.encode(texts))}


def search(name: str) -> Callable[[int, Path], Record]:
    def measured(_size: int, work: Path) -> Record:
        """Contexts of data/acm dev, one after the other; the query's encoding counts."""
        from citerec.contexts.read import read_contexts
        from citerec.recommend import Recommender
        from citerec.retrieve.run import SearchOptions
        from citerec.systems import Recipe

        contexts = list(read_contexts(DATA / "acm" / "contexts-dev.jsonl"))[: QUERIES + 20]
        recipe = Recipe.load(name, ["dense.backend=onnx-int8"] if name != "bm25" else [])
        latencies: list[float] = []
        with Recommender.open(work / "index", recipe) as recommender:
            topics = list(recommender.topics(contexts))
            for topic in topics[:20]:
                list(recommender.candidates([topic], K))
            started = begun()
            for topic in topics[20:]:
                list(recommender.candidates([topic], K, options=SearchOptions(latencies=latencies)))
            spent = {"seconds": time.perf_counter() - started[0], "cpu": processor() - started[1]}
        p50, p95 = (1000 * float(np.percentile(latencies, share)) for share in (50, 95))
        return {**{key: value / len(latencies) for key, value in spent.items()}, "p50_ms": p50, "p95_ms": p95}

    return measured


def update(size: int, work: Path) -> Record:
    """`index add` of what is new to a copy of an index, 1 %: half are changed, a quarter new, a quarter deleted."""
    from citerec.index.build import BuildOptions, add_to_index
    from citerec.index.vectors import DenseOptions

    index = work / "updated"
    shutil.rmtree(index, ignore_errors=True)
    shutil.rmtree(work / "sources" / "updates", ignore_errors=True)
    shutil.copytree(work / "index", index)
    write_update(work, max(4, round(size * ADDED)))
    given = DenseOptions("all-MiniLM-L6-v2", vectors=(work / "new-vectors",))
    started = begun()
    add_to_index([work / "sources"], index, BuildOptions(dense=given))
    found = {"begun": started, "disk_mb": disk_mb(index)}
    for folder in (index, work / "sources" / "updates"):
        shutil.rmtree(folder)
    return found


def write_update(work: Path, count: int) -> None:
    """Writes an update of so many records beside the sources, and vectors of its papers, which are new or changed."""
    from citerec.index.columns import mapped

    ids = mapped(work / "vectors" / "ids.npy")
    known = sum(1 for _ in records(work / "sources" / "papers"))
    drawn = np.random.default_rng(3).choice(ids[:known], 3 * count // 4, replace=False).tolist()
    changed, deleted = set(drawn[: count // 2]), drawn[count // 2 :]
    papers = [paper for paper in records(work / "sources" / "papers") if paper["corpusid"] in changed]
    papers = [{**paper, "title": f"{paper['title']} (revised)"} for paper in papers]
    papers += itertools.islice(records(work / "more" / "papers"), count // 4)
    new = {paper["corpusid"] for paper in papers} - changed
    abstracts = [one for one in records(work / "more" / "abstracts") if one["corpusid"] in new]
    gone = [{"corpusid": corpusid} for corpusid in deleted]
    for kind, upserts in (("papers", papers), ("abstracts", abstracts)):
        folder = work / "sources" / "updates" / "2024-01-02_2024-01-09" / kind
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("upserts", upserts), ("deletes", gone)):
            with gzip.open(folder / f"{name}-0.jsonl.gz", "wt", compresslevel=1) as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
    (work / "new-vectors").mkdir(exist_ok=True)
    mine = np.flatnonzero(np.isin(ids, list(changed | new)))
    np.save(work / "new-vectors" / "ids.npy", ids[mine])
    np.save(work / "new-vectors" / "vectors.npy", mapped(work / "vectors" / "vectors.npy")[mine[::-1]])


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: what does it, and a guess of its seconds, once and for a million papers, to be said beforehand."""

    run: Callable[[int, Path], Record]
    once: float
    million: float


STAGES = {
    "sources": Stage(made, 10, 250),
    "build": Stage(build, 2, 160),
    "vectors": Stage(vectors, 2, 1200),
    "encode": Stage(encode, 25, 30),
    "search bm25": Stage(search("bm25"), 4, 10),
    "search dense": Stage(search("dense"), 8, 60),
    "search hybrid": Stage(search("hybrid"), 10, 80),
    "update": Stage(update, 5, 20),
}


def begun() -> tuple[float, float]:
    return time.perf_counter(), processor()


def processor() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def disk_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def alone(stage: str, size: int, work: Path) -> None:
    """One stage, in this process: prints its figures. `begun` of a stage says when what is measured began."""
    started = begun()
    found = STAGES[stage].run(size, work)
    seconds, cpu = found.pop("begun", started)
    times = found.pop("times", 1)  # what part of the work was done
    measured = {"seconds": (time.perf_counter() - seconds) * times, "cpu": (processor() - cpu) * times}
    peaks = [resource.getrusage(who).ru_maxrss / 1000 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({**measured, "peak_mb": max(peaks), "load": os.getloadavg()[0], **found}))


def estimate(stage: str, size: int, before: dict[int, Record]) -> float:
    """Seconds that a stage will take: from the nearest size that was measured, or else a guess."""
    if stage.startswith("search") or stage == "encode" or not before:
        return STAGES[stage].once + STAGES[stage].million * size / 1e6
    nearest = min(before, key=lambda other: abs(np.log(other / size)))
    return float(before[nearest]["seconds"]) * size / nearest


def measure(size: int, stages: list[str], work: Path, results: Path) -> None:
    """The stages that have no figures yet, each in a process of its own."""
    folder = work / str(size)
    for stage in stages:
        place = results / f"{size}-{stage.replace(' ', '-')}.json"
        if place.is_file():
            continue
        if stage == "sources":
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        began = time.strftime("%H:%M:%S")
        command = [sys.executable, __file__, "--alone", stage, "--sizes", str(size), "--work", str(folder)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        place.write_text(json.dumps(found))
        print(f"{began} {size:,} {stage}: {found['seconds']:.2f} s, {found['peak_mb']:,.0f} MB", flush=True)


def read_results(results: Path) -> dict[str, dict[int, Record]]:
    """Figures by stage and size, in order."""
    found: dict[str, dict[int, Record]] = {stage: {} for stage in STAGES}
    for path in results.glob("*-*.json"):
        size, _, stage = path.stem.partition("-")
        found[stage.replace("-", " ")][int(size)] = json.loads(path.read_bytes())
    return {stage: dict(sorted(sizes.items())) for stage, sizes in found.items()}


def exponent(sizes: dict[int, Record], key: str) -> tuple[float, float] | None:
    """Slope of the figures over the sizes, both as logarithms, and the value at TARGET; None for one size.

    Sizes under LEAST do not count if there are two others: starting Python is too much of their time.
    """
    counted = [size for size in sizes if size >= LEAST]
    chosen = counted if len(counted) > 1 else list(sizes)
    points = [(np.log(size), np.log(sizes[size][key])) for size in chosen if sizes[size].get(key, 0) > 0]
    if len(points) < 2:
        return None
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    return slope, float(np.exp(intercept + slope * np.log(TARGET)))


KEYS = {"seconds": "s", "cpu": "processor s", "p50_ms": "p50 ms", "peak_mb": "peak MB", "disk_mb": "disk MB"}


def table(results: dict[str, dict[int, Record]]) -> str:
    """The figures of each size, and the exponents, in Markdown."""
    lines = [f"| papers | stage | {' | '.join(KEYS.values())} | load |", "|---:|---|" + "---:|" * (len(KEYS) + 1)]
    for size in sorted({size for sizes in results.values() for size in sizes}):
        for stage in (stage for stage in STAGES if size in results[stage] and stage != "sources"):
            found = results[stage][size]
            cells = [shown(found.get(key)) for key in KEYS]
            kind = f" ({found['kind']})" if "kind" in found else ""
            lines.append(f"| {size:,} | {stage}{kind} | {' | '.join(cells)} | {found['load']:.1f} |")
    columns = [name for name in KEYS.values() if name != "p50 ms"]
    lines += ["", f"| stage | sizes | {' | '.join(f'exponent of {name} | at {TARGET:,}' for name in columns)} |"]
    lines.append("|---|---:|" + "---:|" * (2 * len(columns)))
    for stage in (stage for stage in STAGES if len(results[stage]) > 1 and stage != "sources"):
        fits = [exponent(results[stage], key) for key in KEYS if key != "p50_ms"]
        cells = [f"{fit[0]:.2f} | {shown(fit[1])}" if fit else " | " for fit in fits]
        lines.append(f"| {stage} | {len(results[stage])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,150000,1000000", help="numbers of papers")
    parser.add_argument("--work", type=Path, required=True, help="where all is written; 7 GB for a million papers")
    parser.add_argument("--stages", default=",".join(STAGES), help="only these; a stage needs those before it once")
    parser.add_argument("--estimate", action="store_true", help="only say how long it will take")
    parser.add_argument("--keep", action="store_true", help="keep sources, vectors and indexes of measured sizes")
    parser.add_argument("--alone", choices=STAGES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.alone:
        alone(arguments.alone, sizes[0], arguments.work)
        return
    stages = [stage for stage in STAGES if stage in arguments.stages.split(",")]
    results = arguments.work / "results"
    results.mkdir(parents=True, exist_ok=True)
    known = read_results(results)
    left = {size: [stage for stage in stages if size not in known[stage]] for size in sizes}
    for size, remaining in left.items():
        minutes = sum(estimate(stage, size, known[stage]) for stage in remaining) / 60
        print(f"{size:,} papers: {minutes:.0f} minutes or so for {', '.join(remaining) or 'nothing'}", flush=True)
    if arguments.estimate:
        return
    for size in sizes:
        measure(size, stages, arguments.work, results)
        if not arguments.keep and len(stages) == len(STAGES):
            shutil.rmtree(arguments.work / str(size), ignore_errors=True)
    known = read_results(results)
    machine = f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
    text = f"{machine}; measured until {time.strftime('%Y-%m-%d')}.\n\n{table(known)}"
    (arguments.work / "growth.md").write_text(text + "\n", encoding="utf-8")
    fits = {stage: {key: exponent(sizes, key) for key in KEYS} for stage, sizes in known.items()}
    (arguments.work / "growth.json").write_text(
        json.dumps({"machine": machine, "stages": known, "fits": fits}, indent=1)
    )
    print(text)


if __name__ == "__main__":
    main()
