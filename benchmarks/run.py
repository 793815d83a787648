"""Measures speed and memory against Anserini in one run: `make bench`. Needs ../shared/data; takes five minutes.

Each side of a comparison runs in a process of its own; searches of both sides alternate query by query.
"""

import contextlib
import gzip
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ARXIV = ROOT.parent / "shared" / "data" / "arxiv"
K, QUERIES, WORDS, ROUNDS = 100, 1000, 26, 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        report("start-up", startup)
        run("write_json", work)
        ours, ours_abstract, theirs, theirs_fields, whole = [], [], [], [], []
        for _ in range(ROUNDS):
            theirs.append(run("anserini", work)["seconds"])
            theirs_fields.append(run("anserini_fields", work)["seconds"])
            whole.append(run("citerec_build", work))
            ours.append(run("citerec_lucene", work))
            ours_abstract.append(run("citerec_abstract_field", work))
        documents = whole[0]["papers"]
        lucene, fielded = ([one["seconds"] for one in runs] for runs in (ours, ours_abstract))
        print(f"\n## index of {documents:,} papers, median of {ROUNDS}, documents a second")
        built = [one["seconds"] for one in whole]
        rate("Anserini IndexCollection, one field", documents, theirs)
        rate("Anserini IndexCollection, that field and the title", documents, theirs_fields)
        rate("citerec, Lucene from the store: two fields, filters, orders", documents, lucene, theirs_fields, theirs)
        rate("the same with the abstract as a field", documents, fielded, theirs_fields, theirs)
        rate("citerec index build, all of it: reading, store, Lucene", documents, built, theirs_fields, theirs)
        print(
            f"peak memory of the writing process, Java included: {max(one['peak_mb'] for one in ours + whole):.0f} MB; "
            f"store {whole[0]['store_mb']:.0f} MB, Lucene {whole[0]['lucene_mb']:.0f} MB"
        )
        print(f"\n## search, {QUERIES:,} queries of {WORDS} words, k = {K}")
        for line in run("search", work)["lines"]:
            print(line)
        cold(work)


def rate(name: str, documents: int, seconds: list[float], *peers: list[float]) -> None:
    """Prints documents a second, and the ratios to Anserini with the same fields and with one field."""
    median = statistics.median(seconds)
    names = ("same fields", "one field")
    ratios = [f"{statistics.median(peer) / median:.2f} × {of}" for peer, of in zip(peers, names, strict=False)]
    print(", ".join([f"{name}: {documents / median:,.0f}", *ratios]))


def report(name: str, measure: Callable[[], Iterator[str]]) -> None:
    print(f"## {name}")
    for line in measure():
        print(line)


def startup() -> Iterator[str]:
    help_seconds = median_of([str(Path(sys.executable).with_name("citerec")), "--help"])
    torch_seconds = median_of([sys.executable, "-c", "import torch"])
    ratio = help_seconds / torch_seconds
    yield f"citerec --help {help_seconds:.2f} s; import torch {torch_seconds:.2f} s; ratio {ratio:.2f}"


def cold(work: Path) -> None:
    command = [str(Path(sys.executable).with_name("citerec")), "recommend", "Dark matter bends light <REF>."]
    seconds = median_of([*command, "--index", str(work / "index")])
    print(f"citerec recommend, cold, to the end of the process: {seconds:.2f} s")


def median_of(command: list[str], times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def run(part: str, work: Path) -> dict[str, Any]:
    """One of PARTS in a process of its own."""
    output = subprocess.run([sys.executable, __file__, part, str(work)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def write_json(work: Path) -> dict[str, Any]:
    """The texts as Anserini's JsonCollection reads them, and the queries: beginnings of random abstracts."""
    abstracts = {}
    for path in sorted((ARXIV / "abstracts").iterdir()):
        with gzip.open(path) as file:
            abstracts |= {record["corpusid"]: record["abstract"] or "" for record in map(json.loads, file)}
    (work / "json").mkdir()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context((work / "json" / f"{n}.jsonl").open("w")) for n in range(4)]
        papers = (
            json.loads(line)
            for path in sorted((ARXIV / "papers").iterdir())
            for line in stack.enter_context(gzip.open(path))
        )
        for number, paper in enumerate(papers):
            title, abstract = paper["title"] or "", abstracts.get(paper["corpusid"], "")
            record = {
                "id": str(paper["corpusid"]),
                "contents": f"{title}. {abstract}",
                "title": title,
                "abstract": abstract,
            }
            files[number % 4].write(json.dumps(record) + "\n")
    chosen = random.Random(1).sample(sorted(abstracts), QUERIES)
    queries = [" ".join(abstracts[paper_id].split()[:WORDS]) for paper_id in chosen]
    (work / "queries.json").write_text(json.dumps(queries))
    return {}


def anserini(work: Path, *more: str) -> dict[str, Any]:
    from citerec.retrieve.lucene.jvm import java_class, start

    start()
    collection = java_class("io.anserini.index.IndexCollection")
    index = work / "anserini"
    shutil.rmtree(index, ignore_errors=True)
    arguments = ["-collection", "JsonCollection", "-input", str(work / "json"), "-index", str(index)]
    begin = time.perf_counter()
    collection.main([*arguments, "-generator", "DefaultLuceneDocumentGenerator", "-threads", "2", *more])
    return {"seconds": time.perf_counter() - begin}


def anserini_fields(work: Path) -> dict[str, Any]:
    return anserini(work, "-fields", "title")


def citerec_build(work: Path) -> dict[str, Any]:
    from citerec.retrieve.index import build_index

    begin = time.perf_counter()
    manifest = build_index([ARXIV], work / "index")
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "papers": manifest.counts.papers,
        "peak_mb": peak_mb(),
        "store_mb": megabytes(work / "index" / "papers.sqlite"),
        "lucene_mb": megabytes(work / "index" / "lucene"),
    }


def megabytes(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 1e6


def citerec_abstract_field(work: Path) -> dict[str, Any]:
    return citerec_lucene(work, abstract_field=True)


def citerec_lucene(work: Path, *, abstract_field: bool = False) -> dict[str, Any]:
    from citerec.files.progress import no_progress
    from citerec.retrieve.index import open_store, write_lucene
    from citerec.retrieve.lucene.jvm import start

    start()
    out = work / "lucene"
    shutil.rmtree(out, ignore_errors=True)
    store = open_store(work / "index")
    counts = store.counts()
    begin = time.perf_counter()
    write_lucene(store, out, 1, counts, no_progress, abstract_field=abstract_field)
    return {"seconds": time.perf_counter() - begin, "peak_mb": peak_mb()}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def search(work: Path) -> dict[str, Any]:
    from citerec.contexts.topic import Topic
    from citerec.records import NO_FILTERS
    from citerec.retrieve.index import LUCENE
    from citerec.retrieve.lucene import LuceneRetriever, answered_in_threads
    from citerec.retrieve.lucene.jvm import java_class
    from citerec.retrieve.lucene.queries import Bm25, LuceneSettings, Weights

    queries = json.loads((work / "queries.json").read_text())
    path = work / "index" / LUCENE
    one_field = LuceneRetriever(path, LuceneSettings(bm25=Bm25(k1=0.9, b=0.4), weights=Weights(title=0)))
    default = LuceneRetriever(path)
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(path / "papers"))
    searcher.set_bm25(0.9, 0.4)
    weights = java_class("java.util.HashMap")()
    number = java_class("java.lang.Float")
    for name, weight in (("contents", 1.0), ("title", 0.35)):
        weights.put(name, number(weight))
    sides: dict[str, Callable[[str], Any]] = {
        "SimpleSearcher, one field": lambda text: [
            (str(hit.docid), float(hit.score)) for hit in searcher.search(text, K)
        ],
        "citerec, one field": lambda text: one_field.search(Topic(text), K, NO_FILTERS),
        "SimpleSearcher, two weighted fields": lambda text: [
            (str(hit.docid), float(hit.score)) for hit in searcher.search_fields(text, weights, K)
        ],
        "citerec, two weighted fields (the default)": lambda text: default.search(Topic(text), K, NO_FILTERS),
    }
    for text in queries[:200]:
        for ask in sides.values():
            ask(text)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for text in queries:
        for name, ask in sides.items():
            begin = time.perf_counter()
            ask(text)
            seconds[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(times) * 1000 for name, times in seconds.items()}
    names = list(sides)
    lines = [f"{name}: median {medians[name]:.2f} ms" for name in names]
    lines += [f"{names[n + 1]}: {medians[names[n + 1]] / medians[names[n]]:.2f} × {names[n]}" for n in (0, 2)]
    listed, ids = java_class("java.util.ArrayList")(), java_class("java.util.ArrayList")()
    for position, text in enumerate(queries):
        listed.add(text)
        ids.add(str(position))
    theirs, ours = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        searcher.batch_search(listed, ids, K, 2)
        theirs.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        for _hits in answered_in_threads(lambda text: one_field.search(Topic(text), K, NO_FILTERS), queries, 2):
            pass
        ours.append(time.perf_counter() - begin)
    best_theirs, best_ours = statistics.median(theirs), statistics.median(ours)
    lines.append(f"batch, 2 threads: SimpleSearcher.batch_search {QUERIES / best_theirs:,.0f} queries a second")
    lines.append(f"batch, 2 threads: citerec {QUERIES / best_ours:,.0f}, {best_theirs / best_ours:.2f} × that")
    return {"lines": lines}


PARTS = {
    part.__name__: part
    for part in (
        write_json,
        anserini,
        anserini_fields,
        citerec_build,
        citerec_lucene,
        citerec_abstract_field,
        search,
    )
}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        # Java writes its log where it likes: only the last line of ours counts.
        with contextlib.redirect_stdout(io.StringIO()):
            result = PARTS[sys.argv[1]](Path(sys.argv[2]))
        print(json.dumps(result), flush=True)
        os._exit(0)
    main()
