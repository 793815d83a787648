"""Inputs with random damage, given to every reader: each gives records, sets them aside, or says what is wrong."""

import json
import multiprocessing
import random
import sqlite3
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from citerec.contexts.extract import extract_contexts
from citerec.contexts.hold_out import split_contexts
from citerec.contexts.read import contexts_of_text, read_contexts
from citerec.contexts.s2orc import FullText, read_s2orc
from citerec.corpus.ingest import ingest
from citerec.corpus.shards import Shard
from citerec.corpus.sqlite_store import SqliteStore
from citerec.diagnostics.sets import read_set
from citerec.discourse.paragraphs import read_paragraphs
from citerec.errors import CiterecError
from citerec.evaluation.results import Results
from citerec.index.describe import histogram
from citerec.index.generations import generation_of
from citerec.index.manifest import Manifest
from citerec.papers.citebench.sources import read_source
from citerec.retrieve.run import Run
from citerec.systems import Recipe
from citerec.write.task_files import read_prediction_file, read_tasks
from tests.conftest import DEMO, s2ag_paper
from tests.e2e.test_data_cli import TEXT
from tests.papers.datasets.test_citebench import RECORDS
from tests.torture.tally import Tally

HANG_SECONDS = 60
_BATCH = 50

Reader = Callable[[Path], object]

# What readers stumble over: structure of all formats, numbers without end, controls, halves of characters.
_ODD: tuple[bytes, ...] = (
    *(b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"@", b"#", b"=", b"%", b"$", b"&amp;", b"<", b"<REF>"),
    *(b"\n", b"\r", b"\t", b"\0", b"\x1b[2J", b"\x85", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f", b"\xef\xbb\xbf", b" "),
    *(b"null", b"NaN", b"-1", b"1e999", b"9" * 5000, b"{" * 400, b"}" * 400, b"[" * 2000, b"]" * 2000, b'""', b"true"),
    *("٣".encode(), "\u202e".encode(), "\ufeff".encode(), b"[1] " * 200, b"\\u0000", b"\\ud800", b"=1+1", b"--"),
)


def mutated(draws: random.Random, sample: bytes) -> bytes:
    """A sample with some damage: one to four changes."""
    value = bytearray(sample)
    for _ in range(draws.randint(1, 4)):
        begin = draws.randrange(len(value) + 1)
        end = min(len(value), begin + draws.choice((1, 1, 2, 8, 64, 512)))
        kind = draws.randrange(7)
        if kind == 0:
            value[begin:end] = b""
        elif kind == 1:
            value[begin:begin] = draws.choice(_ODD)
        elif kind == 2:
            value[begin:end] = draws.choice(_ODD)
        elif kind == 3:
            value[begin:begin] = value[begin:end]
        elif kind == 4 and value:
            place = draws.randrange(len(value))
            value[place] = draws.randrange(256)
        elif kind == 5:
            del value[begin:]
        else:
            other = draws.randrange(len(value) + 1)
            value[begin:begin] = value[other : other + 64]
    return bytes(value)


def _lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _ingested(format_name: str) -> Reader:
    """Reads a shard into a store, as `index build` does, and looks whether every record is counted."""

    def read(path: Path) -> None:
        place = path.with_suffix(".sqlite")
        place.unlink(missing_ok=True)
        store = SqliteStore(place)
        try:
            ingest(
                [Shard(path, format_name)],
                store,
                first=1,
                max_bad=1.0,
                workers=1,
                on_progress=lambda _doing, _done, _whole: None,
            )
            store.counts()
        finally:
            store.close()

    return read


def _listed(reader: Callable[[Path], object]) -> Reader:
    return lambda path: list(reader(path))  # type: ignore[call-overload]


def _extracted(path: Path) -> None:
    for line in read_s2orc(path):
        if isinstance(line.record, FullText):
            list(extract_contexts(line.record))


def _as_text(path: Path) -> None:
    contexts_of_text(path.read_bytes().decode("utf-8", "replace"))


def _store(path: Path) -> None:
    """A damaged store: searched as an index that is open searches it."""
    store = SqliteStore(path, read_only=True)
    try:
        store.counts()
        store.papers(["1", "2"])
        histogram(store, "year")
    finally:
        store.close()


def _folder_of(name: str, read: Callable[[Path], object], others: Sequence[tuple[str, bytes]] = ()) -> Reader:
    """Reads a folder one of whose files is damaged."""

    def of_folder(path: Path) -> None:
        folder = path.with_suffix(".folder")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for other, content in others:
            (folder / other).write_bytes(content)
        (folder / name).write_bytes(path.read_bytes())
        read(folder)

    return of_folder


_PAPER = {"paper_id": 1, "title": "A title", "authors": ["Ann Lee"], "year": 2001, "external_ids": {"DOI": "10/x"}}
_CSV = (
    b'paper_id,title,authors,year\n1,"A ""title"", quoted",Ann Lee;Bo Roe,2001\n2,Plain,,\n3,"Two\nlines",C,1999\n' * 9
)
_BIB = (
    b"""@string{acm = "ACM"}
@book{parent, title = {The {Book}}, year = 2001, publisher = acm # " Press"}
@inproceedings{a1, title = {On \\"Uber {Terms} \\& Weights}, author = {Lee, Ann and {Big {Group}} and others},
  crossref = {parent}, journal = {Research &amp; Development}, doi = {10.1/x}}
% a comment
@article{b2, title = "Quoted {\\'e}", author = "Bo Roe", year = {1999},}
"""
    * 3
)
_RIS = b"""TY  - JOUR
AU  - Lee, Ann
TI  - On &amp; <i>Words</i>
  and more
PY  - 2001/05/01/
UR  - https://doi.org/10.1/x
ER  -
TY  - CONF
T1  - No end
"""
_CSL = b"""[
{"id": "a", "type": "book", "title": "On <i>Words</i>", "author": [{"family": "Lee", "given": "Ann"}],
 "issued": {"date-parts": [["2001", 5]]}, "DOI": "10.1/x"},
{"type": "article", "title": "B", "issued": {"raw": "2001"}}
]"""
_CONTEXTS = b"".join((DEMO / "contexts.jsonl").read_bytes().splitlines(keepends=True)[:12])
_TASK = {"id": "1", "input": ["<abs> We do. </abs>", "They rank."], "target": "They [0] rank."}
_S2AG = {
    "papers": _lines(s2ag_paper(1, "A title", year=2001), s2ag_paper(2, "Another")),
    "abstracts": _lines({"corpusid": 1, "abstract": "We do."}, {"corpusid": 2, "abstract": None}),
    "tldrs": _lines({"corpusid": 1, "model": "x", "text": "Done."}),
    "citations": _lines(
        {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["As [1] says."], "intents": [["background"]]},
        {"citingcorpusid": 2, "citedcorpusid": 1, "contexts": None, "intents": None, "isinfluential": True},
    ),
}
_TOML = b"""retrievers = {words = 1.0, dense = 0.7}
rerankers = []
[fusion]
method = "rrf"
k = 20
[words.bm25]
k1 = 1.1
"""

SAMPLES: dict[str, tuple[bytes, Reader]] = {
    **{f"S2AG {name}": (sample, _ingested(f"s2ag-{name}")) for name, sample in _S2AG.items()},
    "JSON Lines": (_lines(_PAPER, {**_PAPER, "paper_id": 2}), _ingested("jsonl")),
    "CSV": (_CSV, _ingested("csv")),
    "BibTeX": (_BIB, _ingested("bibtex")),
    "RIS": (_RIS * 3, _ingested("ris")),
    "CSL-JSON": (_CSL, _ingested("csl")),
    "contexts as citances": (_CONTEXTS, _ingested("contexts")),
    "contexts": (_CONTEXTS, _listed(read_contexts)),
    "a split": (_CONTEXTS, lambda path: split_contexts(path, path.with_suffix(".split"), dev=1, test=1)),
    "a draft": (b"As <REF> shows [1] (Lee, 2001), it works.\n\nAnd so [2, 3] do <REF>.", _as_text),
    "S2ORC": (_lines(TEXT), _extracted),
    "a run": (b"".join(b"c%d Q0 p%d %d %d.5 tag\n" % (n % 3, n, n, 90 - n) for n in range(12)), Run.from_trec),
    "a recipe": (_TOML, lambda path: Recipe.load(path.rename(path.with_suffix(".toml")))),
    "tasks": (_lines(_TASK, {**_TASK, "id": "2"}), _listed(read_tasks)),
    "predictions": (
        _lines({**_TASK, "prediction": "They [0] do.", "writer": "w", "settings": {"a": 1}}),
        _listed(read_prediction_file),
    ),
    "CiteBench's source": (_lines(RECORDS["lu"], RECORDS["lu"]), _listed(read_source)),
    "labelled sentences": (
        _lines(*({"text": f"As {n} (Lee, 2001) says.", "label": "method"} for n in range(4))),
        _listed(read_paragraphs),
    ),
    "a set": (
        (DEMO / "manifest.json").read_bytes(),
        _folder_of(
            "manifest.json",
            read_set,
            [(name, (DEMO / name).read_bytes()) for name in ("contexts.jsonl", "qrels.txt")],
        ),
    ),
}


def with_results(index: Path, results: Path) -> dict[str, tuple[bytes, Reader]]:
    """Samples of files that citerec itself wrote: an index and results."""
    generation = generation_of(index)
    return {
        "an index's manifest": (
            (generation / "manifest.json").read_bytes(),
            _folder_of("1/manifest.json", Manifest.read, [("CURRENT", b"1\n")]),
        ),
        "results": ((results / "meta.json").read_bytes(), _folder_of("meta.json", Results.read)),
        "a store": ((generation / "papers.sqlite").read_bytes(), _store),
    }


class Mutations:
    """Gives damaged inputs to readers, in a process of their own: a hang or a crash ends that one only.

    Args:
        work: A folder for the inputs.
        samples: A whole input of each kind, and what reads it.
    """

    def __init__(self, work: Path, samples: dict[str, tuple[bytes, Reader]]) -> None:
        self._work = work
        self._samples = samples

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Gives a batch of damaged inputs to each reader."""
        for name, (sample, reader) in self._samples.items():
            seed = draws.randrange(2**32)
            mine, others = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.get_context("fork").Process(
                target=_read_batch, args=(others, self._work, name, sample, reader, seed)
            )
            process.start()
            others.close()
            self._watch(mine, process, f"{name}, seed {seed}", tally)

    def _watch(
        self, reports: Connection, process: multiprocessing.process.BaseProcess, where: str, tally: Tally
    ) -> None:
        done = 0
        while done < _BATCH:
            if not reports.poll(HANG_SECONDS):
                process.kill()
                tally.fault("hang", f"{where}, mutation {done}")
                break
            try:
                fault = reports.recv()
            except EOFError:
                tally.fault("traceback", f"{where}, mutation {done}: the process died")
                break
            done += 1
            tally.tried["mutations"] += 1
            if fault:
                tally.fault("traceback", f"{where}, mutation {done - 1}: {fault}")
        process.join()


def _read_batch(reports: Connection, work: Path, name: str, sample: bytes, reader: Reader, seed: int) -> None:
    draws = random.Random(seed)
    path = work / f"{''.join(filter(str.isalnum, name))}.input"
    for _ in range(_BATCH):
        path.write_bytes(mutated(draws, sample))
        fault = None
        try:
            reader(path)
        except (CiterecError, sqlite3.Error):
            pass  # said in one line; errors of a store are said by those who open it
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__}: {str(error)[:150]!r} at {Path(where.filename).name}:{where.lineno}"
        reports.send(fault)
