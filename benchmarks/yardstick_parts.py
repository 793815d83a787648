"""The parts that the yardstick measures: indexes, answers, figures; and its files."""

import functools
import gzip
import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yardstick_citerec as citerec
from yardstick_drafts import drafts

ROOT = citerec.ROOT
DATA = ROOT.parent / "shared" / "data"
DEMO = ROOT / "diagnostics" / "demo"
CONTEXTS = {
    "acl": DATA / "acl" / "contexts-dev.jsonl",
    "acm": DATA / "acm" / "contexts-dev.jsonl",
    "acm-draft": DATA / "acm" / "contexts-dev-in-draft.jsonl",
}
TRAINING = DATA / "acl" / "contexts-train.jsonl"
DRAWN, KEPT, SMALL_POOL, LEARNED = 300, 100, 3000, 3000
MEASURED = ("bm25", "hybrid", "hybrid+profile", "hybrid+ltr", "hybrid+profile+ltr")
TAGGERS = {
    "scicite": (DATA / "text/scicite/train.txt", DATA / "text/scicite/dev.txt"),
    "acl_arc": (DATA / "text/acl_arc/train.txt", DATA / "text/acl_arc/dev.txt"),
    "corwa": (DATA / "text/corwa/train.jsonl", None),
}
SCITLDR = DATA / "text" / "scitldr" / "dev.jsonl"


class Yardstick:
    """A folder with what was measured, and what is made on the way. Each part is made when it is not there yet."""

    def __init__(self, out: Path, work: Path) -> None:
        self.out, self.work = out, work
        work.mkdir(parents=True, exist_ok=True)

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """A JSON file of the work folder."""
        path = self.work / f"{name}.json"
        if not path.exists():
            begun = time.perf_counter()
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, make())
            print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
        return json.loads(path.read_bytes())

    def folder(self, name: str, make: Callable[[Path], object]) -> Path:
        """A folder of the work folder, or a file; while it is made it has another name."""
        path = self.work / name
        if not path.exists():
            begun = time.perf_counter()
            partial = path.with_name(f"{path.name}.part")
            if partial.is_file():
                partial.unlink()
            shutil.rmtree(partial, ignore_errors=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            make(partial)
            partial.rename(path)
            print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
        return path

    # Indexes

    @cached_property
    def demo(self) -> Path:
        """The demo corpus by words."""
        return self.folder("demo", lambda out: citerec.build_index([DEMO], out))

    @cached_property
    def library(self) -> Path:
        """A bibliography by words."""
        return self.folder("library", lambda out: citerec.build_index([DATA / "bibtex" / "sigir.bib"], out))

    @cached_property
    def acl(self) -> Path:
        """data/acl with the citing sentences of the training papers, the vectors of MiniLM, profiles and a ranker."""

        def make(out: Path) -> None:
            citerec.build_index([DATA / "acl"], out, TRAINING)
            citerec.encode_index(out, profiles=True)

        return self.folder("acl", make)

    @cached_property
    def own(self) -> Path:
        """The same with a ranker of its own."""

        def make(out: Path) -> None:
            shutil.copytree(self.acl, out)
            citerec.train_ranker(TRAINING, out, LEARNED)

        return self.folder("acl-own", make)

    @cached_property
    def acm(self) -> Path:
        """data/acm with the vectors of MiniLM that come with the data."""

        def make(out: Path) -> None:
            citerec.build_index([DATA / "acm"], out)
            citerec.encode_index(out, DATA / "acm" / "minilm-l6")

        return self.folder("acm", make)

    def small(self, corpus: str) -> Path:
        """3,000 papers of a corpus, among them those that the drawn contexts cite, and the small models."""

        def make(out: Path) -> None:
            records = [one for name in CONTEXTS if name.startswith(corpus) for one in self.drawn(name)]
            cited = {paper_id for one in records for paper_id in one["cited_ids"]}
            papers = dict(read_gzip(DATA / corpus / "papers"))
            others = sorted(papers.keys() - cited, key=lambda paper_id: digest(str(paper_id)))
            chosen = cited | set(others[: SMALL_POOL - len(cited)])
            source = self.work / f"{corpus}-small-source"
            for table in ("papers", "abstracts"):
                if (DATA / corpus / table).is_dir():
                    (source / table).mkdir(parents=True, exist_ok=True)
                    lines = (record for number, record in read_gzip(DATA / corpus / table) if number in chosen)
                    write_lines(source / table / f"{table}.jsonl", lines)
            citerec.build_index([source], out)
            shutil.rmtree(models := self.work / f"{corpus}-models", ignore_errors=True)
            citerec.apart(citerec.write_small_models, out, [one["text"] for one in records], models)

        return self.folder(f"{corpus}-small", make)

    # Runs

    def drawn(self, name: str) -> list[dict[str, Any]]:
        """The contexts of a set whose answers are kept, drawn by a digest of their ids."""
        records = read_lines(CONTEXTS[name])
        return sorted(
            sorted(records, key=lambda one: digest(one["context_id"]))[:DRAWN], key=lambda one: one["context_id"]
        )

    def run(self, name: str, system: str) -> dict[str, list[str]] | None:
        """The ids of the first papers for each context of a set; None if its corpus has not what the system needs.

        Small models answer the drawn contexts only.
        """
        if not name.startswith("acl") and system in citerec.NEEDS_CITATIONS:
            return None
        if system in citerec.SMALL:
            contexts = self.folder(f"contexts/{name}.jsonl", lambda out: write_lines(out, self.drawn(name)))
            index = self.small(name.partition("-")[0])
        else:
            contexts = CONTEXTS[name]
            index = self.acm if name != "acl" else self.own if system == "hybrid+profile+ltr" else self.acl
        path = self.folder(f"runs/{name}/{system}.trec", lambda out: citerec.run(index, system, contexts, out, KEPT))
        found: dict[str, list[str]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            context_id, _, paper_id, *_ = line.split()
            found.setdefault(context_id, []).append(paper_id)
        return found

    # Answers

    def answers(self) -> None:
        """Writes runs.parquet and answers.json."""
        rows: dict[str, list[Any]] = {"set": [], "system": [], "context": [], "papers": []}
        for name in CONTEXTS:
            ids = [one["context_id"] for one in self.drawn(name)]
            for system in (*citerec.SYSTEMS, *citerec.SMALL):
                if (found := self.run(name, system)) is not None:
                    rows["set"] += [name] * len(ids)
                    rows["system"] += [system] * len(ids)
                    rows["context"] += ids
                    rows["papers"] += [[int(paper_id) for paper_id in found.get(one, ())] for one in ids]
        types = {"papers": pa.list_(pa.int32())}
        arrays = [pa.array(values, types.get(column, pa.string())) for column, values in rows.items()]
        # Contexts side by side: systems list the same papers.
        table = pa.table(arrays, names=list(rows)).sort_by([("set", "ascending"), ("context", "ascending")])
        pq.write_table(table, self.out / "runs.parquet", compression="zstd", compression_level=19)
        parts = {"sentences": self.sentences, "drafts": self.drafts, "texts": self.texts}
        write(self.out / "answers.json", {name: self.kept(name, make) for name, make in parts.items()})

    def sentences(self) -> dict[str, list[str]]:
        """The first ids for 50 sentences on the demo and 50 on a bibliography."""
        asked = {
            "demo": (self.demo, read_lines(DEMO / "contexts.jsonl")),
            "library": (self.library, read_lines(CONTEXTS["acm"])),
        }
        answers: dict[str, list[str]] = {}
        for name, (index, records) in asked.items():
            texts = [one["text"] for one in sorted(records, key=lambda one: digest(one["context_id"]))[:50]]
            found = citerec.apart(citerec.first_ids, index, texts)
            answers |= {f"{name} {number}": ids for number, ids in enumerate(found)}
        return answers

    def drafts(self) -> dict[str, Any]:
        """What becomes of each draft: exit codes, findings, and digests of the files after `fill`."""
        outcomes = {}
        for name, draft in drafts().items():
            shutil.rmtree(folder := self.work / "drafts" / name, ignore_errors=True)
            for file, content in {**draft.files, "refs.bib": draft.bib}.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
            main, bib = folder / next(iter(draft.files)), folder / "refs.bib"
            code, findings = citerec.check(main, bib, self.demo)
            filled = citerec.fill(main, bib, self.demo)
            outcomes[name] = {
                "check": {"code": code, "findings": findings},
                "fill": {
                    "code": filled.code,
                    "files": {file: digest((folder / file).read_bytes()) for file in [*draft.files, "refs.bib"]},
                },
            }
        return outcomes

    def texts(self) -> dict[str, Any]:
        """Digests of 100 TLDRs, 50 citation texts and 5 related-work paragraphs."""
        tldrs = citerec.written_texts(self.tldrs("trained"))[:100]
        sample = DATA / "text" / "citebench" / "sample.json"
        citations = self.folder(
            "citations.jsonl", lambda out: citerec.write_texts(sample, "citation", "attributed", out)
        )
        papers = [str(one["corpusid"]) for one in read_lines(DEMO / "papers" / "papers-00000.jsonl")]
        works = [citerec.related_work(papers[start : start + 6], self.demo) for start in range(0, 250, 50)]
        kinds = {"tldr": tldrs, "citation": citerec.written_texts(citations), "related work": works}
        return {f"{kind} {number}": digest(text) for kind, texts in kinds.items() for number, text in enumerate(texts)}

    def tldrs(self, writer: str) -> Path:
        """The TLDRs of SciTLDR dev by a writer."""
        return self.folder(f"tldrs/{writer}.jsonl", lambda out: citerec.write_texts(SCITLDR, "tldr", writer, out))

    # Figures

    def figures(self) -> None:
        """Writes figures.parquet: a value for each figure and unit (a context, a task), with its cluster."""
        rows: list[tuple[str, str, str, float]] = []
        for name, contexts in CONTEXTS.items():
            for system in MEASURED:
                if (found := self.run(name, system)) is not None:
                    for one in read_lines(contexts):
                        cluster = str(one["citing_id"] or one["citing_key"] or one["context_id"])
                        for metric, value in metrics(found.get(one["context_id"], []), one["cited_ids"]).items():
                            rows.append((f"{name} {system} {metric}", one["context_id"], cluster, value))
        for writer in citerec.WRITERS:
            for number, scores in enumerate(self.kept(f"rouge/{writer}", functools.partial(self.rouge, writer))):
                rows += [
                    (f"scitldr {writer} {name}", str(number), str(number), value) for name, value in scores.items()
                ]
        for name, (train, dev) in TAGGERS.items():
            scores = self.kept(f"taggers/{name}", lambda: self.tagger(name, train, dev))  # noqa: B023
            rows += [(f"tagger {name} {metric}", "", "", value) for metric, value in scores.items()]
        counts = self.kept("strata", self.strata)
        rows += [(f"diagnostics {stratum}", "", "", float(count)) for stratum, count in counts.items()]
        names, units, clusters, values = map(list, zip(*rows, strict=True))
        table = pa.table({"figure": names, "unit": units, "cluster": clusters, "value": pa.array(values, pa.float32())})
        pq.write_table(table, self.out / "figures.parquet", compression="zstd", compression_level=19)

    def rouge(self, writer: str) -> list[dict[str, float]]:
        """ROUGE-1/2/L F1 of each TLDR with stemming, against the reference with the highest ROUGE-1."""
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
        scores = []
        for text, task in zip(citerec.written_texts(self.tldrs(writer)), read_lines(SCITLDR), strict=True):
            against = [scorer.score(target, text) for target in task["target"]]
            best = max(against, key=lambda one: one["rouge1"].fmeasure)
            scores.append({name: score.fmeasure for name, score in best.items()})
        return scores

    def tagger(self, name: str, train: Path, dev: Path | None) -> dict[str, float]:
        """Macro F1 and accuracy of a tagger on dev."""
        shutil.rmtree(out := self.work / "taggers" / f"{name}-model", ignore_errors=True)
        return citerec.train_tagger(train, out, dev)

    def strata(self) -> dict[str, int]:
        """How many contexts of each class are in a diagnostic set of a synthetic release."""
        from release import write_release
        from release_rates import Rates

        def make(out: Path) -> None:
            write_release(out, papers=1500, texts=70, shards=3, seed=5, rates=Rates(sound=0.25, sentence_layer=0.9))

        release = self.folder("release", make)
        shutil.rmtree(out := self.work / "diagnostic-set", ignore_errors=True)
        tagger = DATA.parent / "models" / "en_ewt_tagger"
        labels = citerec.build_diagnostic_set(release, out, tagger)
        counts = Counter(f"{family} {label}" for one in labels for family, label in one.items())
        return {"contexts": len(labels), **dict(sorted(counts.items()))}


def metrics(ranked: list[str], cited: Iterable[object]) -> dict[str, float]:
    """R@10, R@100 and MRR@10 of a context."""
    golds = set(map(str, cited))
    ranks = [rank for rank, paper_id in enumerate(ranked, 1) if paper_id in golds]
    return {
        "R@10": sum(rank <= 10 for rank in ranks) / len(golds),
        "R@100": sum(rank <= 100 for rank in ranks) / len(golds),
        "MRR@10": 1 / ranks[0] if ranks and ranks[0] <= 10 else 0.0,
    }


def digest(text: str | bytes) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON Lines."""
    with path.open("rb") as lines:
        return [json.loads(line) for line in lines]


def read_gzip(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of the shards of a folder, by corpusid."""
    for path in sorted(folder.glob("*.gz")):
        with gzip.open(path) as lines:
            for line in lines:
                record = json.loads(line)
                yield record["corpusid"], record


def write_lines(path: Path, records: Iterable[object]) -> None:
    """Writes JSON Lines."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")


def write(path: Path, value: object) -> None:
    """Writes JSON, whole or not at all."""
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)
