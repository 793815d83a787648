"""Commands that write, one of each way of writing: how it is called, on what, and how its outcome is known."""

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
from citerec.index.generations import generation_of, trained_of
from citerec.index.manifest import Manifest
from citerec.index.verify import verify
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.tiny_models import write_tiny_scibert

CITEREC = Path(sys.executable).with_name("citerec")
BY_HAND = "a file of the user: no command may touch it\n"
TITLES = ("Ranking papers by words", "Vectors of sentences", "A study of citations", "Trees for ranking")

Outcome = Callable[[Path], object]


@dataclass(frozen=True)
class Command:
    """A command that writes.

    `prepare` fills an empty folder with what it needs, and with an old outcome that it replaces; `outcome` is what
    stands in a folder now, as JSON takes it, and raises if it is not whole; `by_hand` is what people made there, which
    must never change. One that does not replace what stands says that there is something, and ends.
    """

    name: str
    prepare: Callable[[Path], None]
    line: str
    outcome: Outcome
    by_hand: Outcome = lambda _: None
    replaces: bool = True

    @property
    def arguments(self) -> list[str]:
        """Of `citerec`; paths are relative to the folder."""
        return self.line.split()


def call(folder: Path, *arguments: object, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
    """Calls `citerec` in a folder."""
    command = [CITEREC, *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def digest(value: object) -> str:
    """The digest of a JSON value."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


def _must(folder: Path, line: str) -> None:
    done = call(folder, *line.split())
    if done.returncode:
        raise RuntimeError(f"citerec {line}: {done.stderr}")


def _texts(*names: str) -> Outcome:
    """The outcome of a command that writes these files."""
    return lambda folder: [(folder / name).read_text(encoding="utf-8") for name in names]


# An index of made-up papers.


def _index(folder: Path) -> None:
    write_lines(folder / "old.jsonl", [{"paper_id": n, "title": f"{TITLES[n % 4]} {n}"} for n in range(60)])
    new = [{"paper_id": n, "title": f"{TITLES[n % 4]} again {n}", "year": 2000} for n in range(30, 500)]
    write_lines(folder / "new.jsonl", new)
    _must(folder, "index build old.jsonl --out index")
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
    _must(folder, "index build corpus --out index --model tiny")
    update = corpus / "updates" / "a_b"
    write_lines(update / "papers" / "upserts-0.jsonl", [{**paper, "year": 2001} for paper in papers[100:300]])
    write_lines(update / "papers" / "deletes-0.jsonl", [{"corpusid": n} for n in range(250, 350)])
    write_lines(update / "citations" / "deletes-0.jsonl", [{"citationid": n} for n in range(0, 500, 3)])


def _encoded(folder: Path) -> None:
    _index(folder)
    write_tiny_scibert(folder / "tiny", TITLES)
    write_tiny_scibert(folder / "other", TITLES, hidden=48)
    _must(folder, "index encode index --model other")


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
    shutil.copytree(DEMO, folder / "demo")
    _must(folder, "index build demo --out index")
    shutil.copy(DEMO / "contexts.jsonl", folder / "contexts.jsonl")


def _split(folder: Path) -> None:
    _demo(folder)
    _must(folder, "contexts split contexts.jsonl --seed 1 --out split")


def _set(folder: Path) -> None:
    _demo(folder)
    _must(folder, "diagnostics label contexts.jsonl --index index --out ./mine")
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
    _must(folder, f"{_TRAIN} --rounds 3")


def _vectors(folder: Path) -> None:
    _demo(folder)
    write_tiny_scibert(folder / "tiny", TITLES)
    _must(folder, "index encode index --model tiny")


def _sizes(folder: Path) -> object:
    """The files of a model that a network learnt, with their sizes: a training that was stopped ends with others."""
    model = folder / "model"
    json.loads((model / "manifest.json").read_bytes())
    return {path.name: path.stat().st_size for path in sorted(model.rglob("*.safetensors"))}


def _results(folder: Path) -> None:
    _demo(folder)
    _must(folder, "eval --contexts contexts.jsonl --index index --system bm25 --out results")


def _measured(folder: Path) -> object:
    """The figures of results, without the times that they took."""
    systems = json.loads((folder / "results" / "results.json").read_bytes())["systems"]
    return {name: {key: value for key, value in system.items() if key != "cost"} for name, system in systems.items()}


# Texts.


_ON = "--contexts contexts.jsonl --index index"
_TRAIN = f"train ltr {_ON} --system bm25 --out ranker"
_FEW = f"{_ON} --limit 24 --device cpu"
_TINY = "--base tiny -c max_tokens=32 -c dev_limit=5 -c evaluations=4 --out model"

_SPLIT = _texts("split/train.jsonl", "split/dev.jsonl", "split/test.jsonl", "split/manifest.json")
_LABEL = "diagnostics label contexts.jsonl --index index --out ./mine --no-conditions"


COMMANDS = (
    Command("index build", _index, "index build new.jsonl --out index", _index_outcome, _ranker),
    Command("index add", _index, "index add new.jsonl --index index", _index_outcome, _ranker),
    Command("index update", _updated, "index update --index index", _index_outcome, _ranker),
    Command("index remove", _index, "index remove 1 2 --index index", _index_outcome, _ranker),
    Command("index encode", _encoded, "index encode index --model tiny", _index_outcome, _ranker),
    Command("contexts split", _split, "contexts split contexts.jsonl --seed 2 --out split", _SPLIT),
    Command("diagnostics label", _set, _LABEL, _set_outcome, _verdicts),
    Command("review --apply", _set, "diagnostics review ./mine --apply", _set_outcome, _verdicts),
    Command("train ltr", _trained, f"{_TRAIN} --rounds 5", _texts("ranker/model.txt", "ranker/learnt.json")),
    Command("train dense", _vectors, f"train dense {_FEW} {_TINY}", _sizes),
    Command("eval", _results, f"eval {_ON} --out results --system bm25-one-field", _measured),
)
