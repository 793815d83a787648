"""Compares an index on Qdrant (local mode of its client) with the embedded engine, on dev contexts of data/acm.

python benchmarks/qdrant.py [PAPERS]: 2,000 papers by default: those that dev contexts cite, and others.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import orjson

from citerec import Recommender
from citerec.contexts.read import read_contexts
from citerec.index.build import BuildOptions, build_index
from citerec.index.manifest import Layout, open_store
from citerec.index.vectors import DenseOptions
from citerec.retrieve.run import Run

ACM = Path(__file__).parents[2] / "shared" / "data" / "acm"
CONTEXTS = ACM / "contexts-dev.jsonl"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    asked = list(read_contexts(CONTEXTS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build_index([ACM / "papers", ACM / "abstracts"], folder / "all")
        store = open_store(folder / "all")
        ids = dict.fromkeys([paper_id for one in asked for paper_id in one.cited_ids])
        ids |= dict.fromkeys(paper_id for (paper_id,) in store.select("papers", "paper_id"))
        sample = folder / "papers.jsonl"
        sample.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in store.papers(list(ids)[:count]).values()))
        store.close()
        dense = DenseOptions(model="all-MiniLM-L6-v2", vectors=(ACM / "minilm-l6",))
        build_index([sample], folder / "here", BuildOptions(format_name="jsonl", dense=dense))
        layout = Layout(engine="qdrant", url=f"path:{folder}/engine/acm")
        build_index([folder / "here"], folder / "there", BuildOptions(layout=layout))
        for system in ("bm25", "dense", "hybrid"):
            runs = []
            for index in (folder / "here", folder / "there"):
                with Recommender.open(index, system) as opened:
                    runs.append(opened.search_many(asked, 100))
            shares = " ".join(f"{k}: {_overlap(runs[0], runs[1], k):.4f}" for k in (10, 100))
            print(f"{system}: overlap of the first {shares}")


def _overlap(one: Run, other: Run, k: int) -> float:
    lists = [(one.top(key, k), other.top(key, k)) for key in one if one[key]]
    return float(np.mean([len({*mine} & {*theirs}) / len(mine) for mine, theirs in lists]))


if __name__ == "__main__":
    main()
