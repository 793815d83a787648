"""Every command that writes: how it is called, on what, and how its outcome is known."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from citerec.diagnostics.review import read_reviews, record_verdict
from citerec.diagnostics.sets import read_set
from citerec.evaluation.results import Results
from citerec.files.hashing import file_digest
from citerec.index.describe import verify
from citerec.index.manifest import Manifest, generation_of, trained_of
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.e2e.test_data_cli import TEXT
from tests.papers.datasets.conftest import ABSTRACTS
from tests.papers.datasets.test_citebench import RECORDS
from tests.tiny_models import write_tiny_scibert

CITEREC = Path(sys.executable).with_name("citerec")
BY_HAND = "a file of the user: no command may touch it\n"
TITLES = ("Ranking papers by words", "Vectors of sentences", "A study of citations", "Trees for ranking")

Outcome = Callable[[Path], object]


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        name: What reports call it.
        prepare: Fills an empty folder with what the command needs, and with an old outcome that it replaces.
        arguments: Of `citerec`; paths are relative to the folder.
        outcome: What stands in a folder now, as JSON takes it; raises if it is not whole.
        by_hand: What people made in a folder: it must never change.
        replaces: Whether it replaces what stands. One that does not says that there is something, and ends.
    """

    name: str
    prepare: Callable[[Path], None]
    arguments: tuple[str, ...]
    outcome: Outcome
    by_hand: Outcome = lambda _: None
    replaces: bool = True


def call(folder: Path, *arguments: object, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
    """Calls `citerec` in a folder."""
    command = [CITEREC, *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def digest(value: object) -> str:
    """The digest of a JSON value."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


def _must(folder: Path, *arguments: object) -> None:
    done = call(folder, *arguments)
    if done.returncode:
        raise RuntimeError(f"citerec {' '.join(map(str, arguments))}: {done.stderr}")


def _texts(*names: str) -> Outcome:
    """The outcome of a command that writes these files."""
    return lambda folder: [(folder / name).read_text(encoding="utf-8") for name in names]


# An index of made-up papers.


def _index(folder: Path) -> None:
    write_lines(folder / "old.jsonl", [{"paper_id": n, "title": f"{TITLES[n % 4]} {n}"} for n in range(60)])
    new = [{"paper_id": n, "title": f"{TITLES[n % 4]} again {n}", "year": 2000} for n in range(30, 500)]
    write_lines(folder / "new.jsonl", new)
    _must(folder, "index", "build", "old.jsonl", "--out", "index")
    trained_of(folder / "index", "ltr").mkdir(parents=True)
    (trained_of(folder / "index", "ltr") / "mine.txt").write_text(BY_HAND)


def _updated(folder: Path) -> None:
    _index(folder)
    corpus = folder / "corpus"
    papers = [s2ag_paper(n, f"{TITLES[n % 4]} {n}") for n in range(500)]
    write_lines(corpus / "papers" / "p.jsonl", papers)
    said = [{"citationid": n, "citingcorpusid": n, "citedcorpusid": n // 2, "contexts": ["As in."]} for n in range(500)]
    write_lines(corpus / "citations" / "c.jsonl", said)
    write_tiny_scibert(folder / "tiny", TITLES)
    _must(folder, "index", "build", "corpus", "--out", "index", "--model", "tiny")
    update = corpus / "updates" / "a_b"
    write_lines(update / "papers" / "upserts-0.jsonl", [{**paper, "year": 2001} for paper in papers[100:300]])
    write_lines(update / "papers" / "deletes-0.jsonl", [{"corpusid": n} for n in range(250, 350)])
    write_lines(update / "citations" / "deletes-0.jsonl", [{"citationid": n} for n in range(0, 500, 3)])


def _encoded(folder: Path) -> None:
    _index(folder)
    write_tiny_scibert(folder / "tiny", TITLES)
    write_tiny_scibert(folder / "other", TITLES, hidden=48)
    _must(folder, "index", "encode", "index", "--model", "other")


def _index_outcome(folder: Path) -> object:
    index = folder / "index"
    if faults := verify(index):
        raise ValueError("; ".join(faults))
    dense = generation_of(index) / "dense" / "manifest.json"
    return [Manifest.read(index).fingerprint, json.loads(dense.read_bytes())["dimension"] if dense.exists() else 0]


def _ranker(folder: Path) -> object:
    return (trained_of(folder / "index", "ltr") / "mine.txt").read_text()


# The demo's contexts and a diagnostic set of them.


def _demo(folder: Path) -> None:
    _must(folder, "index", "build", DEMO, "--out", "index")
    shutil.copy(DEMO / "contexts.jsonl", folder / "contexts.jsonl")


def _split(folder: Path) -> None:
    _demo(folder)
    _must(folder, "contexts", "split", "contexts.jsonl", "--seed", "1", "--out", "split")


def _set(folder: Path) -> None:
    _demo(folder)
    _must(folder, "diagnostics", "label", "contexts.jsonl", "--index", "index", "--out", "./mine")
    ids = [json.loads(line)["context_id"] for line in (folder / "contexts.jsonl").read_text().splitlines()]
    for number, context_id in enumerate(ids[:12]):
        record_verdict(folder / "mine", "ada", context_id, "reject" if number % 2 else "accept", "by hand")


def _set_outcome(folder: Path) -> object:
    return read_set(folder / "mine").manifest.fingerprint


def _verdicts(folder: Path) -> object:
    found = read_reviews(folder / "mine")
    return {who: {key: [one.verdict, one.note] for key, one in said.items()} for who, said in found.items()}


def _trained(folder: Path) -> None:
    _demo(folder)
    _must(folder, *_TRAIN, "-c", "rounds=3")


def _vectors(folder: Path) -> None:
    _demo(folder)
    write_tiny_scibert(folder / "tiny", TITLES)
    _must(folder, "index", "encode", "index", "--model", "tiny")


def _reports(folder: Path) -> None:
    _results(folder)
    _must(folder, "eval", "--contexts", "contexts.jsonl", "--index", "index", *_ONE_FIELD, "--out", "other")
    _must(folder, "report", "results", "--out", "page.html")


def _sentences(folder: Path) -> None:
    said = {"method": "We use the toolkit of", "background": "Much was written on"}
    pairs = [(label, f"{words} {title} {n}.") for n, title in enumerate(TITLES * 5) for label, words in said.items()]
    write_lines(folder / "train.txt", [{"text": text, "label": label, "metadata": {}} for label, text in pairs])
    _must(folder, "train", "tagger", "train.txt", "-c", "dev_share=0.4", "--out", "model")


def _weights(folder: Path) -> object:
    """Digests of what was learnt: the same however often the training was stopped."""
    found = {path.name: file_digest(path) for path in sorted((folder / "model").rglob("*.safetensors"))}
    json.loads((folder / "model" / "manifest.json").read_bytes())
    return found


def _sizes(folder: Path) -> object:
    """The files of a model that a network learnt, with their sizes: a training that was stopped ends with others."""
    model = folder / "model"
    json.loads((model / "manifest.json").read_bytes())
    return {path.name: path.stat().st_size for path in sorted(model.rglob("*.safetensors"))}


def _results(folder: Path) -> None:
    _demo(folder)
    _must(folder, "eval", "--contexts", "contexts.jsonl", "--index", "index", "--system", "bm25", "--out", "results")


def _measured(folder: Path) -> object:
    """The figures of results, without the times that they took."""
    systems = Results.read(folder / "results").to_json()["systems"]
    return {name: {key: value for key, value in system.items() if key != "cost"} for name, system in systems.items()}


_TRAIN = ("train", "ltr", "--contexts", "contexts.jsonl", "--index", "index", "--system", "bm25", "--out", "ranker")
_ONE_FIELD = ("--system", "bm25-one-field")
_EVAL = ("eval", "--contexts", "contexts.jsonl", "--index", "index", "--out", "results", *_ONE_FIELD)
_FEW = ("--contexts", "contexts.jsonl", "--index", "index", "--limit", "24")
_TINY = ("--base", "tiny", "-c", "max_tokens=32", "-c", "dev_limit=5", "--out", "model")
_NARROW = ("-c", "embedding=8", "-c", "hidden=8", "-c", "filters=8", "-c", "batch=8")


# Texts.


def _tasks(folder: Path) -> None:
    tasks = [
        {
            "id": str(number),
            "input": [f"<abs> {title} {number}. </abs>", f"We rank {number}. It works.", "We draw. It is fast."],
            "target": f"They rank {number} [0] and draw [1].",
        }
        for number, title in enumerate(TITLES * 60)
    ]
    write_lines(folder / "tasks.jsonl", tasks)
    for writer in ("lead", "textrank"):
        _must(folder, "write", "batch", "tasks.jsonl", "--writer", writer, "--out", f"{writer}.jsonl")
    _must(folder, "eval-text", "lead.jsonl", "--metrics", "length", "--out", "results")


def _sheets(folder: Path) -> None:
    _tasks(folder)
    (folder / "rated.csv").write_text(BY_HAND)


def _full_texts(folder: Path) -> None:
    papers = [{"paper_id": number, "title": f"Paper {number}", "abstract": text} for number, text in ABSTRACTS.items()]
    write_lines(folder / "papers.jsonl", papers)
    _must(folder, "index", "build", "papers.jsonl", "--out", "index")
    for shard in range(4):
        write_lines(
            folder / "texts" / f"{shard}.jsonl", [{**TEXT, "corpusid": 900 + shard * 100 + n} for n in range(9)]
        )
    _must(folder, "data", "citesum", "texts/0.jsonl", *_SHARES, "--out", "citesum")
    _must(folder, "data", "related-work", "texts/0.jsonl", *_SHARES, "--out", "related")
    _must(folder, "contexts", "extract", "texts/0.jsonl", "--out", "extracted.jsonl")
    write_lines(folder / "lu.jsonl", [{**RECORDS["lu"], "aid": str(n)} for n in range(20)])


_SHARES = ("--index", "index", "-c", "validation=0", "-c", "test=0")
_SETS = ("train.jsonl", "manifest.json")

COMMANDS = (
    Command("index build", _index, ("index", "build", "new.jsonl", "--out", "index"), _index_outcome, _ranker),
    Command("index add", _index, ("index", "add", "index", "new.jsonl"), _index_outcome, _ranker),
    Command("index add, what is new", _updated, ("index", "add", "index"), _index_outcome, _ranker),
    Command("index remove", _index, ("index", "remove", "index", "1", "2"), _index_outcome, _ranker),
    Command("index encode", _encoded, ("index", "encode", "index", "--model", "tiny"), _index_outcome, _ranker),
    Command(
        "contexts split",
        _split,
        ("contexts", "split", "contexts.jsonl", "--seed", "2", "--out", "split"),
        _texts("split/train.jsonl", "split/dev.jsonl", "split/test.jsonl", "split/manifest.json"),
    ),
    Command(
        "diagnostics label",
        _set,
        ("diagnostics", "label", "contexts.jsonl", "--index", "index", "--out", "./mine", "-c", "conditions=false"),
        _set_outcome,
        _verdicts,
    ),
    Command("review --apply", _set, ("diagnostics", "review", "./mine", "--apply"), _set_outcome, _verdicts),
    Command("train ltr", _trained, (*_TRAIN, "-c", "rounds=5"), _texts("ranker/model.txt", "ranker/provenance.json")),
    Command("train fusion", _vectors, ("train", "fusion", *_FEW, "--out", "fusion.toml"), _texts("fusion.toml")),
    Command(
        "train reranker",
        _vectors,
        ("train", "reranker", *_FEW, *_TINY, "-c", "negatives=3", "-c", "evaluations=4", "--system", "bm25"),
        _sizes,
    ),
    Command(
        "train ncn",
        _vectors,
        ("train", "ncn", *_FEW, *_NARROW, "-c", "dev_limit=5", "-c", "evaluations=4", "--out", "model"),
        _sizes,
    ),
    Command("train dense", _vectors, ("train", "dense", *_FEW, *_TINY, "-c", "evaluations=4"), _sizes),
    Command("train tagger", _sentences, ("train", "tagger", "train.txt", "--out", "model"), _weights),
    Command(
        "diagnostics build",
        _set,
        ("diagnostics", "build", "--papers", str(DEMO / "papers"), "--from", "contexts.jsonl", "--out", "./mine"),
        _set_outcome,
        _verdicts,
    ),
    Command("report", _reports, ("report", "results", "other", "--out", "page.html"), _texts("page.html")),
    Command("eval", _results, _EVAL, _measured),
    Command(
        "generate batch",
        _tasks,
        ("write", "batch", "tasks.jsonl", "--writer", "lexrank", "--out", "lead.jsonl"),
        _texts("lead.jsonl"),
    ),
    Command(
        "eval-text",
        _tasks,
        ("eval-text", "lead.jsonl", "textrank.jsonl", "--metrics", "rouge,length", "--out", "results"),
        _texts("results/scores.csv"),
    ),
    Command(
        "rate sheet",
        _sheets,
        ("rate", "sheet", "lead.jsonl", "textrank.jsonl", "--out", "sheet.csv", "--raters", "2"),
        lambda folder: sorted(path.name for path in folder.glob("sheet*.csv")) and _texts("sheet-1.csv")(folder),
        _texts("rated.csv"),
        replaces=False,
    ),
    Command(
        "contexts extract",
        _full_texts,
        ("contexts", "extract", "texts", "--out", "extracted.jsonl", "--workers", "2"),
        _texts("extracted.jsonl"),
    ),
    Command(
        "data citesum",
        _full_texts,
        ("data", "citesum", "texts", *_SHARES, "--out", "citesum"),
        _texts(*(f"citesum/{name}" for name in _SETS)),
    ),
    Command(
        "data related-work",
        _full_texts,
        ("data", "related-work", "texts", *_SHARES, "--out", "related"),
        _texts(*(f"related/{name}" for name in _SETS)),
    ),
    Command(
        "data citebench",
        _full_texts,
        ("data", "citebench", "lu.jsonl", "--out", "lu-out.jsonl"),
        _texts("lu-out.jsonl"),
    ),
)
