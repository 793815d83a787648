"""What citerec costs: seconds of processor time, each beside a peer that is measured in the same run; memory; sizes.

The peer by words is the library bm25s on the same texts (numpy backend, English stop words, Porter stems). Of several
rounds the cheapest counts, for citerec and for the peer: what disturbs a measurement only ever adds.
"""

import functools
import shutil
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yardstick_citerec as citerec
from yardstick_parts import DATA, TRAINING, Yardstick, read_gzip, read_lines, write, write_lines

Costs = dict[str, float]
ROUNDS = 3
SENTENCE = "Pseudo relevance feedback expands the query with words of the first documents <REF>."
QUERIES, K, FEW, TRAINED = 150, 100, 5000, 500


def start(_: Yardstick) -> Costs:
    """`citerec --help`; peer: importing numpy."""
    ours = [citerec.call("--help") for _ in range(ROUNDS)]
    return costs(ours, [python("import numpy") for _ in range(ROUNDS)])


def build(yardstick: Yardstick) -> Costs:
    """`index build` of data/acm by words; peer: the same by bm25s."""
    ours, peers = [], []
    for _ in range(2):
        for name in ("cost-built", "cost-peer"):
            shutil.rmtree(yardstick.work / name, ignore_errors=True)
        ours.append(citerec.build_index([source(yardstick)], yardstick.work / "cost-built"))
        peers.append(peer("build", source(yardstick), yardstick.work / "cost-peer"))
    return {**costs(ours, peers), "index MB": megabytes(yardstick.work / "cost-built")}


def add(yardstick: Yardstick) -> Costs:
    """`index add` of one paper to 5,000; peer: bm25s builds of the 5,000."""
    few = yardstick.folder("cost-few-source", lambda out: first_papers(yardstick, out))
    one = few / "one.jsonl"
    index = yardstick.folder("cost-few", lambda out: citerec.build_index([few / "library"], out))
    ours, peers = [], []
    for _ in range(ROUNDS):
        for name in ("cost-added", "cost-peer-few"):
            shutil.rmtree(yardstick.work / name, ignore_errors=True)
        shutil.copytree(index, yardstick.work / "cost-added")
        ours.append(citerec.add_to_index(one, yardstick.work / "cost-added"))
        peers.append(peer("build", few, yardstick.work / "cost-peer-few"))
    return costs(ours, peers)


def recommend(yardstick: Yardstick, system: str | None) -> Costs:
    """`recommend` on data/acm, cold; peer: bm25s opens its index and answers."""
    if not (yardstick.work / "cost-peer").exists():
        peer("build", source(yardstick), yardstick.work / "cost-peer")
    ours = [citerec.recommend(SENTENCE, yardstick.acm, system) for _ in range(ROUNDS)]
    return costs(ours, [peer("ask", yardstick.work / "cost-peer", SENTENCE) for _ in range(ROUNDS)])


def queries(yardstick: Yardstick) -> Costs:
    """A query of a process that is open, 100 papers each; peer: bm25s, query by query in the same process."""
    if not (yardstick.work / "cost-peer").exists():
        peer("build", source(yardstick), yardstick.work / "cost-peer")
    contexts = yardstick.folder("cost-contexts.jsonl", lambda out: drawn_lines(yardstick, out))
    return citerec.apart(time_queries, yardstick.acm, contexts, yardstick.work / "cost-peer")  # type: ignore[no-any-return]


def time_queries(index: Path, contexts: Path, peer_index: Path) -> Costs:
    """The medians of milliseconds of processor time."""
    import json

    texts = [json.loads(line)["text"] for line in contexts.read_text(encoding="utf-8").splitlines()]
    searches: dict[str, Callable[[int], object]] = citerec.searches(index, ("bm25", "hybrid"), contexts, K)
    ask = opened_peer(peer_index)
    searches["peer"] = lambda number: ask(texts[number])
    times: dict[str, list[float]] = {name: [] for name in searches}
    for turn in range(2):  # the first warms up
        for number in range(len(texts)):
            for name, search in searches.items():
                begun = time.process_time()
                search(number)
                if turn:
                    times[name].append(time.process_time() - begun)
    medians = {name: statistics.median(values) * 1000 for name, values in times.items()}
    ratios = {f"{name} / peer": medians[name] / medians["peer"] for name in ("bm25", "hybrid")}
    return {**{f"{name} ms": value for name, value in medians.items()}, **ratios}


def train(yardstick: Yardstick) -> Costs:
    """`train ltr` on data/acl with 500 contexts; peer: LightGBM learns to rank numbers drawn at random."""
    ours, peers = [], []
    for _ in range(2):
        shutil.rmtree(out := yardstick.work / "cost-trained", ignore_errors=True)
        shutil.copytree(yardstick.acl, out)
        ours.append(citerec.train_ranker(TRAINING, out, TRAINED))
        peers.append(peer("rank", yardstick.work))
    return costs(ours, peers)


def environment(_: Yardstick) -> Costs:
    """The size of the environment that this runs in."""
    return {"environment MB": megabytes(Path(sysconfig.get_paths()["purelib"]))}


PARTS: dict[str, Callable[[Yardstick], Costs]] = {
    "start": start,
    "index build": build,
    "index add": add,
    "recommend by words": lambda yardstick: recommend(yardstick, "bm25"),
    "recommend": lambda yardstick: recommend(yardstick, None),
    "queries": queries,
    "train ltr": train,
    "environment": environment,
}


def costs(ours: list[citerec.Ended], peers: list[citerec.Ended]) -> Costs:
    """The cheapest of both, and their ratio."""
    seconds, peer_seconds = (min(one.seconds for one in runs) for runs in (ours, peers))
    peak = min(one.peak for one in ours) / 1e6
    return {"seconds": seconds, "peer seconds": peer_seconds, "ratio": seconds / peer_seconds, "peak MB": peak}


def megabytes(folder: Path) -> float:
    """The size of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def cost(yardstick: Yardstick) -> None:
    """Writes cost.json."""
    parts = {name: yardstick.kept(f"cost/{name}", functools.partial(make, yardstick)) for name, make in PARTS.items()}
    write(yardstick.out / "cost.json", parts)


def source(yardstick: Yardstick) -> Path:
    """data/acm."""
    return yardstick.folder("acm-source", lambda out: out.symlink_to(DATA / "acm"))


def drawn_lines(yardstick: Yardstick, out: Path) -> None:
    """Writes the contexts that are asked."""
    write_lines(out, yardstick.drawn("acm")[:QUERIES])


def first_papers(yardstick: Yardstick, out: Path) -> None:
    """Writes 5,000 papers of data/acm as JSON Lines, and one more beside them."""
    from itertools import islice

    abstracts = {number: one["abstract"] for number, one in read_gzip(source(yardstick) / "abstracts")}
    papers = islice(read_gzip(source(yardstick) / "papers"), FEW + 1)
    records: list[dict[str, Any]] = [
        {"paper_id": number, "title": one["title"], "year": one["year"], "abstract": abstracts.get(number)}
        for number, one in papers
    ]
    (out / "library").mkdir(parents=True)  # not `papers`: that would be a folder of S2AG
    write_lines(out / "library" / "papers.jsonl", records[:FEW])
    write_lines(out / "one.jsonl", records[FEW:])


# Peers, each in a process of its own


def python(code: str) -> citerec.Ended:
    """Runs a piece of Python."""
    return citerec.call("-c", code, command=sys.executable)


def peer(name: str, *arguments: object) -> citerec.Ended:
    """Runs a function of this file whose name begins with `peer_`."""
    return citerec.call(__file__, name, *arguments, command=sys.executable)


def peer_build(folder: str, out: str) -> None:
    """bm25s reads, tokenizes and indexes the titles and abstracts of a folder."""
    import bm25s
    import Stemmer

    if (Path(folder) / "abstracts").is_dir():
        abstracts = {number: one["abstract"] or "" for number, one in read_gzip(Path(folder) / "abstracts")}
        texts = [f"{one['title']}. {abstracts.get(number, '')}" for number, one in read_gzip(Path(folder) / "papers")]
    else:
        records = read_lines(Path(folder) / "library" / "papers.jsonl")
        texts = [f"{one['title']}. {one['abstract'] or ''}" for one in records]
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("porter"), show_progress=False)
    index = bm25s.BM25(k1=0.9, b=0.4)
    index.index(tokens, show_progress=False)
    index.save(out)


def peer_ask(folder: str, sentence: str) -> None:
    """bm25s opens its index and answers one sentence."""
    opened_peer(Path(folder))(sentence)


def opened_peer(folder: Path) -> Callable[[str], object]:
    """The search of a saved index of bm25s."""
    import bm25s
    import Stemmer

    index = bm25s.BM25.load(folder, mmap=True)
    stemmer = Stemmer.Stemmer("porter")

    def ask(sentence: str) -> object:
        tokens = bm25s.tokenize([sentence], stopwords="en", stemmer=stemmer, show_progress=False)
        return index.retrieve(tokens, k=K, show_progress=False)

    return ask


def peer_rank(_: str) -> None:
    """LightGBM learns 100 trees of 300 lists of 200 rows of 38 numbers."""
    import lightgbm
    import numpy as np

    random = np.random.default_rng(0)
    rows = random.standard_normal((300 * 200, 38))
    data = lightgbm.Dataset(rows, (rows[:, 0] + random.standard_normal(len(rows)) > 3).astype(int), group=[200] * 300)
    settings = {"objective": "lambdarank", "num_threads": 2, "verbose": -1, "seed": 0, "deterministic": True}
    lightgbm.train(settings, data, 100)


if __name__ == "__main__":
    peers: dict[str, Callable[..., None]] = {"build": peer_build, "ask": peer_ask, "rank": peer_rank}
    peers[sys.argv[1]](*sys.argv[2:])
