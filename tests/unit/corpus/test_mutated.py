"""Inputs with random damage, given to every reader: each gives records, sets them aside, or says what is wrong."""

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.extract import extract_contexts
from citerec.contexts.full_text import FullText, read_s2orc
from citerec.contexts.provenance import split_contexts
from citerec.contexts.read import contexts_of_text, read_contexts
from citerec.corpus.base import FORMATS
from citerec.corpus.reading import BadRecord
from citerec.discourse.classifier import read_paragraphs
from citerec.errors import CiterecError
from citerec.records import Paper
from citerec.retrieve.run import Run
from citerec.sources.base import CORPORA, FileWeb, RemoteFile
from citerec.systems import Recipe
from citerec.write.task_files import read_prediction_file, read_tasks
from tests.conftest import DEMO, s2ag_paper
from tests.source_records import ENTRY, HEADER, preprint, work

MANY = 100  # of each kind
# What readers stumble over: structure of all formats, numbers without end, controls, halves of characters.
ODD: tuple[bytes, ...] = (
    *(b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"@", b"#", b"=", b"%", b"$", b"&amp;", b"<", b"<REF>"),
    *(b"\n", b"\r", b"\t", b"\0", b"\x1b[2J", b"\x85", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f", b"\xef\xbb\xbf", b" "),
    *(b"null", b"NaN", b"-1", b"1e999", b"9" * 5000, b"{" * 400, b"}" * 400, b"[" * 2000, b"]" * 2000, b'""', b"true"),
    *(
        "٣\u202e\ufeff".encode(),
        b"[1] " * 200,
        b"\\u0000",
        b"\\ud800",
        b"=1+1",
        b"--",
        b"\nTY  - ",
        b"@a{",
        b"&#x110000;",
    ),
)


def mutated(draws: random.Random, sample: bytes) -> bytes:
    """A sample with one to four changes: parts exchanged, left out, doubled; or it ends too early."""
    value = bytearray(sample)
    for _ in range(draws.randint(1, 4)):
        begin = draws.randrange(len(value) + 1)
        end = min(len(value), begin + draws.choice((1, 1, 2, 8, 64, 512)))
        other, byte = draws.randrange(len(value) + 1), bytes([draws.randrange(256)])
        parts = (b"", byte, draws.choice(ODD), value[begin:end], value[other : other + 64])
        part, place = draws.choice(parts), draws.choice((begin, end))
        value[begin:place] = part
        if not draws.randrange(12):
            del value[begin:]
    return bytes(value)


def lines_of(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def full_texts(path: Path) -> None:
    for line in read_s2orc(path):
        if isinstance(line.record, FullText):
            list(extract_contexts(line.record))


PAPER = {"paper_id": 1, "title": "A title", "authors": ["Ann Lee"], "year": 2001, "external_ids": {"DOI": "10/x"}}
CSV = b'paper_id,title,authors,year\n1,"A ""title"", quoted",Ann Lee;Bo Roe,2001\n2,Plain,,\n3,"Two\nlines",C,1999\n'
BIB = b"""@string{acm = "ACM"}
@book{parent, title = {The {Book}}, year = 2001, publisher = acm # " Press"}
@inproceedings{a1, title = {On \\"Uber {Terms} \\& Weights}, author = {Lee, Ann and {Big {Group}} and others},
  crossref = {parent}, journal = {Research &amp; Development}, doi = {10.1/x}}
% a comment
@article{b2, title = "Quoted {\\'e}", author = "Bo Roe", year = {1999},}
"""
RIS = b"""TY  - JOUR
AU  - Lee, Ann
TI  - On &amp; <i>Words</i>
  and more
PY  - 2001/05/01/
UR  - https://doi.org/10.1/x
ER  -
TY  - CONF
T1  - No end
"""
CSL = b"""[
{"id": "a", "type": "book", "title": "On <i>Words</i>", "author": [{"family": "Lee", "given": "Ann"}],
 "issued": {"date-parts": [["2001", 5]]}, "DOI": "10.1/x"},
{"type": "article", "title": "B", "issued": {"raw": "2001"}}
]"""
CONTEXTS = b"".join((DEMO / "contexts.jsonl").read_bytes().splitlines(keepends=True)[:12])
CITATION = {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["As [1] says."], "intents": [["background"]]}
TASK = {"id": "1", "input": ["<abs> We do. </abs>", "They rank."], "target": "They [0] rank."}
TEXT = "As Lee [1] has shown, it works. It was so."
REF = {"start": 7, "end": 10, "attributes": {"ref_id": "b0"}}
LAYERS = {"paragraph": [{"start": 0, "end": len(TEXT)}], "bib_ref": json.dumps([REF])}
S2ORC = {"corpusid": 1, "body": {"text": TEXT, "annotations": LAYERS}}
CITING = {"text": "As shown <REF>.", "citing_id": 1, "cited_ids": [2]}
FORMAT_SAMPLES: dict[str, bytes] = {
    "s2ag-papers": lines_of(s2ag_paper(1, "A title", year=2001), s2ag_paper(2, "Another")),
    "s2ag-abstracts": lines_of({"corpusid": 1, "abstract": "We do."}, {"corpusid": 2, "abstract": None}),
    "s2ag-tldrs": lines_of({"corpusid": 1, "model": "x", "text": "Done."}),
    "s2ag-citations": lines_of(CITATION, {**CITATION, "contexts": None, "intents": None, "isinfluential": True}),
    "jsonl": lines_of(PAPER, {**PAPER, "paper_id": 2}),
    "csv": CSV * 3,
    "bibtex": BIB,
    "ris": RIS,
    "csl": CSL,
    "contexts": lines_of(CITING, CITING),
    "openalex": lines_of(work(), work()),
    "arxiv": lines_of(preprint(), preprint()),
    "s2orc": lines_of(S2ORC, S2ORC),
    "removed": b"1\n22\nx\n",
    "acl-anthology": (HEADER + ENTRY).encode(),
}
WHOLE = ("acl-anthology", "bibtex", "csl", "csv", "ris")  # their records may have several lines


@pytest.mark.parametrize("name", FORMAT_SAMPLES)
def test_damaged_records_are_read_or_set_aside(tmp_path: Path, name: str) -> None:
    draws, path, bad, good = random.Random(29), tmp_path / "shard", 0, 0
    for _ in range(MANY):
        path.write_bytes(mutated(draws, FORMAT_SAMPLES[name]))
        try:
            lines = list((read_s2orc if name == "s2orc" else FORMATS[name].read)(path))
        except CiterecError:
            bad += 1
            continue
        for line in lines:  # all of it can be written to a store, or to a quarantine
            repr(line.record).encode()
            bad, good = (bad + 1, good) if isinstance(line.record, BadRecord) else (bad, good + 1)
        raw = path.read_bytes()
        if name not in WHOLE and raw[:2] != b"\x1f\x8b" and raw[:3] != b"\xef\xbb\xbf":  # no line is lost
            numbers = [number for number, one in enumerate(raw.split(b"\n"), 1) if one and not one.isspace()]
            assert list(dict.fromkeys(line.number for line in lines)) == numbers
        if name in ("openalex", "arxiv") and raw[:3] != b"\xef\xbb\xbf":  # as fetched
            file = RemoteFile("any", "shard", name, "")
            records = list(CORPORA[name](FileWeb()).records(file, io.BytesIO(raw)))
            assert all(record.raw in raw for record in records)
            found = [one for record in records if not record.bad for one in record.records if isinstance(one, Paper)]
            assert found == [line.record for line in lines if isinstance(line.record, Paper)]
    assert bad and good


READERS: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "contexts": (CONTEXTS, read_contexts),
    "a split": (CONTEXTS, lambda path: split_contexts(path, path.with_suffix(".split"), dev=1, test=1)),
    "a draft": (
        b"As <REF> shows [1] (Lee, 2001), it works.\n\nAnd so [2, 3] do <REF>.",
        lambda path: contexts_of_text(path.read_bytes().decode("utf-8", "replace")),
    ),
    "S2ORC": (lines_of(S2ORC), full_texts),
    "a run": (b"".join(b"c%d Q0 p%d %d %d.5 tag\n" % (n % 3, n, n, 90 - n) for n in range(12)), Run.from_trec),
    "a recipe": (
        b'retrievers = {words = 1.0, dense = 0.7}\n[fusion]\nmethod = "rrf"\nk = 20\n[words.bm25]\nk1 = 1.1\n',
        lambda path: Recipe.load(path.rename(path.with_suffix(".toml"))),
    ),
    "tasks": (lines_of(TASK, {**TASK, "id": "2"}), read_tasks),
    "predictions": (lines_of({**TASK, "prediction": "They do.", "settings": {"a": 1}}), read_prediction_file),
    "labelled sentences": (lines_of({"text": "As 1 (Lee, 2001) says.", "label": "method"}), read_paragraphs),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_inputs_are_read_or_end_in_an_error_of_ours(tmp_path: Path, name: str) -> None:
    draws, (sample, reader) = random.Random(3), READERS[name]
    for number in range(MANY):
        path = tmp_path / f"input{number}"
        path.write_bytes(mutated(draws, sample))
        try:
            found = reader(path)
            if hasattr(found, "__next__"):
                list(found)
        except CiterecError as error:
            assert "\n" not in str(error)
