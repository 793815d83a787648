"""Commands that write: how they are called, on what, and how their outcome is known. One for each way of writing."""

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
from citerec.index.describe import verify
from citerec.index.manifest import Manifest, generation_of, trained_of
from tests.conftest import DEMO, s2ag_paper, write_lines
from tests.papers.datasets.s2orc_records import s2orc_record
from tests.tiny_models import write_tiny_scibert

CITEREC = Path(sys.executable).with_name("citerec")
BY_HAND = "a file of the user: no command may touch it\n"
TITLES = ("Ranking papers by words", "Vectors of sentences", "A study of citations", "Trees for ranking")

Outcome = Callable[[Path], object]


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        prepare: Fills an empty folder with what the command needs, and with an old outcome that it replaces.
        line: What follows `citerec`; paths are relative to the folder.
        outcome: What stands in a folder now, as JSON takes it; raises if it is not whole.
        by_hand: What people made in a folder: it must never change.
    """

    prepare: Callable[[Path], None]
    line: str
    outcome: Outcome
    by_hand: Outcome = lambda _: None


def call(folder: Path, line: str, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
    """Calls `citerec` in a folder."""
    command = [CITEREC, *line.split()]
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def digest(value: object) -> str:
    """The digest of a JSON value."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


def _must(folder: Path, *lines: str) -> None:
    for line in lines:
        done = call(folder, line)
        if done.returncode:
            raise RuntimeError(f"citerec {line}: {done.stderr}")


def _texts(*names: str) -> Outcome:
    """The outcome of a command that writes these files."""
    return lambda folder: [(folder / name).read_text(encoding="utf-8") for name in names]


def _index(folder: Path) -> None:
    write_lines(folder / "old.jsonl", [{"paper_id": n, "title": f"{TITLES[n % 4]} {n}"} for n in range(60)])
    new = [{"paper_id": n, "title": f"{TITLES[n % 4]} again {n}", "year": 2000} for n in range(30, 500)]
    write_lines(folder / "new.jsonl", new)
    _must(folder, "index build old.jsonl --out index")
    trained_of(folder / "index", "ltr").mkdir(parents=True)
    (trained_of(folder / "index", "ltr") / "mine.txt").write_text(BY_HAND)


def _updated(folder: Path) -> None:
    _index(folder)
    corpus, update = folder / "corpus", folder / "corpus" / "updates" / "a_b"
    papers = [s2ag_paper(n, f"{TITLES[n % 4]} {n}") for n in range(500)]
    write_lines(corpus / "papers" / "p.jsonl", papers)
    said = [{"citationid": n, "citingcorpusid": n, "citedcorpusid": n // 2, "contexts": ["As in."]} for n in range(500)]
    write_lines(corpus / "citations" / "c.jsonl", said)
    write_tiny_scibert(folder / "tiny", TITLES)
    _must(folder, "index build corpus --out index --model tiny")
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


def _demo(folder: Path) -> None:
    shutil.copytree(DEMO, folder / "demo")
    shutil.copy(DEMO / "contexts.jsonl", folder / "contexts.jsonl")
    _must(folder, "index build demo --out index")


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
    _must(folder, "write batch tasks.jsonl --writer lead --out lead.jsonl")


def _full_texts(folder: Path) -> None:
    said = "Roe et al. [1] find the mouth of every river by following water downhill."
    text = s2orc_record(900, [("", "Abstract", ["We draw."]), ("1", "Introduction", [said])], {1: 1})
    for shard in range(4):
        texts = [{**text, "corpusid": 900 + shard * 100 + n} for n in range(9)]
        write_lines(folder / "texts" / f"{shard}.jsonl", texts)
    _must(folder, "contexts extract texts/0.jsonl --out extracted.jsonl")


COMMANDS = {
    "index build": Command(_index, "index build new.jsonl --out index", _index_outcome, _ranker),
    "index add": Command(_index, "index add index new.jsonl", _index_outcome, _ranker),
    "index add, what is new": Command(_updated, "index add index", _index_outcome, _ranker),
    "index remove": Command(_index, "index remove index 1 2", _index_outcome, _ranker),
    "index encode": Command(_encoded, "index encode index --model tiny", _index_outcome, _ranker),
    "review --apply": Command(_set, "diagnostics review ./mine --apply", _set_outcome, _verdicts),
    "write batch": Command(_tasks, "write batch tasks.jsonl --writer lexrank --out lead.jsonl", _texts("lead.jsonl")),
    "contexts extract": Command(
        _full_texts, "contexts extract texts --out extracted.jsonl --workers 2", _texts("extracted.jsonl")
    ),
}
