"""What holds of every reader: no line is lost, and whatever a record does to its reader is the record's fault."""

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citerec.contexts.extract import Rules, Tally, extract_contexts
from citerec.contexts.full_text import FullText, read_s2orc
from citerec.contexts.provenance import split_contexts
from citerec.contexts.read import contexts_of_text, read_contexts
from citerec.corpus.base import FORMATS, find_shards
from citerec.corpus.reading import BadRecord, Line, parsed
from citerec.discourse.classifier import read_paragraphs
from citerec.errors import CiterecError, InputError, SourceError
from citerec.files.http import Web
from citerec.records import Paper, PaperText
from citerec.retrieve.run import Run
from citerec.sources.base import CORPORA, RemoteFile
from citerec.systems import Recipe
from citerec.write.task_files import read_prediction_file, read_tasks, written_records
from tests.conftest import DEMO, s2ag_paper
from tests.source_records import ENTRY, HEADER, preprint, work

DEEP = "[" * 1000 + "]" * 1000
LONG = "9" * 5000
HOSTILE = "a\x1b]0;x\x07b\x9b31mc\x7fd"  # takes the place of "Lee" in samples
# What readers stumble over: structure of all formats, numbers without end, controls, halves of characters.
ODD: tuple[bytes, ...] = (
    *(bytes([one]) for one in b"\"'{}[],:\\@#=%$<\n\r\t\0\x85\xff "),
    *b'&amp;|<REF>|\x1b[2J|\xed\xa0\x80|\xf0\x9f|\xef\xbb\xbf|null|NaN|-1|1e999|""|true|=1+1|--'.split(b"|"),
    *(b"\\u0000", b"\\ud800", b"\nTY  - ", b"@a{", b"&#x110000;", "٣\u202e\ufeff".encode(), b"[1] " * 200),
    *(b"9" * 5000, b"{" * 400, b"}" * 400, b"[" * 2000, b"]" * 2000),
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


TEXTS = dict.fromkeys(("title", "abstract", "tldr", "venue"), "Lee")
PAPER = {"paper_id": 1, "authors": ["Lee"], "fields_of_study": ["Lee"], "year": 2001, "external_ids": {"Lee": "Lee"}}
CSV = b'paper_id,title,authors,year,venue\n1,"A ""title"", Lee",Lee;Bo Roe,2001,Lee\n2,Lee,,,\n3,"Lee\nx",C,1999,\n'
BIB = b"""@string{acm = "ACM"}
@book{parent, title = {The {Book} Lee}, year = 2001, publisher = acm # " Press"}
@inproceedings{a1, title = {On \\"Uber {Terms} \\& Lee}, author = {Lee, Ann and {Big {Group}} and others},
  crossref = {parent}, journal = {Research &amp; Lee}, doi = {10.1/Lee}, abstract = {Lee}}
% a comment
@article{b2, title = "Quoted {\\'e} Lee", author = "Bo Lee", year = {1999},}
"""
RIS = b"""TY  - JOUR
AU  - Lee, Ann
TI  - On &amp; <i>Words</i>
  and Lee
T2  - Lee
AB  - Lee
PY  - 2001/05/01/
DO  - 10.1/Lee
UR  - https://doi.org/10.1/x
ER  -
TY  - CONF
T1  - No end Lee
"""
CSL = b"""[
{"id": "a", "type": "book", "title": "On <i>Lee</i>", "author": [{"family": "Lee", "given": "Ann"}, {"literal": "Lee"}],
 "issued": {"date-parts": [["2001", 5]]}, "DOI": "10.1/Lee", "PMID": "Lee", "container-title": "Lee"},
{"type": "article", "title": "B Lee", "issued": {"raw": "2001"}}
]"""
S2AG = {"year": 2001, "venue": "Lee", "externalids": {"Lee": "Lee"}, "authors": [{"name": "{\\'e} Lee"}]}
CITATION = {"citingcorpusid": 1, "citedcorpusid": 2, "contexts": ["As Lee [1] says."], "intents": [["background"]]}
TEXT = "As Lee [1] has shown, it works. It was so."
REF = {"start": 7, "end": 10, "attributes": {"ref_id": "b0"}}
LAYERS = {"paragraph": [{"start": 0, "end": len(TEXT)}], "bib_ref": json.dumps([REF])}
S2ORC = {"corpusid": 1, "body": {"text": TEXT, "annotations": LAYERS}}
CITING = {"text": "As Lee shows <REF>.", "citing_id": 1, "cited_ids": [2]}
SAMPLES: dict[str, bytes] = {
    "s2ag-papers": lines_of(s2ag_paper(1, "Lee", **S2AG), s2ag_paper(2, "Lee", s2fieldsofstudy=[{"category": "Lee"}])),
    "s2ag-abstracts": lines_of({"corpusid": 1, "abstract": "We do. Lee"}, {"corpusid": 2, "abstract": "Lee"}),
    "s2ag-tldrs": lines_of({"corpusid": 1, "model": "x", "text": "Lee did."}),
    "s2ag-citations": lines_of(CITATION, {**CITATION, "intents": None, "isinfluential": True}),
    "jsonl": lines_of({**PAPER, **TEXTS}, {**PAPER, **TEXTS, "paper_id": 2}),
    "csv": CSV,
    "bibtex": BIB,
    "ris": RIS,
    "csl": CSL,
    "contexts": lines_of(CITING, CITING),
    "openalex": lines_of(work(title="Lee"), work(title="Lee")),
    "arxiv": lines_of(preprint(title="Lee"), preprint(authors_parsed=[["Lee", "Ann", ""]])),
    "s2orc": lines_of(S2ORC, S2ORC),
    "removed": b"1\n22\nx\n",
    "acl-anthology": (HEADER + ENTRY.replace("for na", "Lee for na")).encode(),
}
WHOLE = ("acl-anthology", "bibtex", "csl", "csv", "ris")  # their records may have several lines
RAW = (*WHOLE[:2], "csv", "ris")  # no JSON


def read(name: str, path: Path) -> list[Line[Any]]:
    return list((read_s2orc if name == "s2orc" else FORMATS[name].read)(path))


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_records_are_read_or_set_aside(tmp_path: Path, name: str) -> None:
    draws, path, bad, good = random.Random(29), tmp_path / "shard", 0, 0
    for _ in range(100):
        path.write_bytes(mutated(draws, SAMPLES[name]))
        try:
            lines = read(name, path)
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
            records = list(CORPORA[name](Web()).records(file, io.BytesIO(raw)))
            assert all(record.raw in raw for record in records)
            found = [one for record in records if not record.bad for one in record.records if isinstance(one, Paper)]
            assert found == [line.record for line in lines if isinstance(line.record, Paper)]
    assert bad and good


def texts_of(value: Any) -> str:
    """All texts in a record but the author's own entry."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(texts_of(part) for pair in value.items() if pair[0] != "bibtex" for part in pair)
    if isinstance(value, list | tuple):
        return "".join(map(texts_of, value))
    return texts_of({name: getattr(value, name) for name in getattr(value, "__dataclass_fields__", ())})


@pytest.mark.parametrize("name", [name for name in SAMPLES if b"Lee" in SAMPLES[name]])
def test_no_reader_lets_a_control_character_through(tmp_path: Path, name: str) -> None:
    word = HOSTILE if name in RAW else json.dumps(HOSTILE)[1:-1]
    (path := tmp_path / "hostile").write_bytes(SAMPLES[name].replace(b"Lee", word.encode()))
    lines = read(name, path)
    assert not [line.record.reason for line in lines if isinstance(line.record, BadRecord)]
    shown = [texts_of(line.record) for line in lines]
    assert all(text.isprintable() for text in shown) and "a ]0;x b" in shown[0]


FIELDS = dict.fromkeys(
    ("before", "after", "citing_key", "section", "source", "intent", "marker", "citing_title"), "Lee"
)
CONTEXT = {"text": "Lee <REF>", "labels": {"Lee": "Lee"}, **FIELDS}
CONTEXTS = b"".join((DEMO / "contexts.jsonl").read_bytes().splitlines(keepends=True)[:12])
TASK = {"input": ["<abs> Lee\n\nb </abs>", "Lee"], "target": "Lee [0]", "writer": "Lee", "dataset": "Lee"}
TASK |= {"sources": [{"title": "Lee", "authors": ["Lee"]}]}
WRITTEN = {**TASK, "prediction": "Lee\n\nb", "sentences": [{"text": "Lee", "drawn_from": [0], "unknown": ["Lee"]}]}


def full_texts(path: Path) -> None:
    for line in read_s2orc(path):
        if isinstance(line.record, FullText):
            list(extract_contexts(line.record, Rules(), Tally()))


READERS: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "contexts": (CONTEXTS + lines_of(CONTEXT), read_contexts),
    "a split": (CONTEXTS, lambda path: split_contexts(path, path.with_suffix(".split"), dev=1, test=1)),
    "a draft": (
        b"As <REF> shows [1] (Lee, 2001), it works.\n\nAnd so [2, 3] do <REF>.",
        lambda path: contexts_of_text(path.read_bytes().decode("utf-8", "replace")),
    ),
    "S2ORC": (SAMPLES["s2orc"], full_texts),
    "a run": (b"".join(b"c%d Q0 p%d %d %d.5 tag\n" % (n % 3, n, n, 90 - n) for n in range(12)), Run.from_trec),
    "a recipe": (
        b'retrievers = {words = 1.0, dense = 0.7}\n[fusion]\nmethod = "rrf"\nk = 20\n[words.bm25]\nk1 = 1.1\n',
        lambda path: Recipe.load(path.rename(path.with_suffix(".toml"))),
    ),
    "tasks": (lines_of({**TASK, "id": "1"}, {**TASK, "id": "2"}), read_tasks),
    "predictions": (lines_of(WRITTEN), read_prediction_file),
    "labelled sentences": (lines_of({"text": "As 1 (Lee, 2001) says.", "label": "method"}), read_paragraphs),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_inputs_are_read_or_end_in_an_error_of_ours(tmp_path: Path, name: str) -> None:
    draws, (sample, reader) = random.Random(3), READERS[name]
    for number in range(100):
        path = tmp_path / f"input{number}"
        path.write_bytes(mutated(draws, sample))
        try:
            found = reader(path)
            if hasattr(found, "__next__"):
                list(found)
        except CiterecError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("reader", [read_contexts, read_tasks, read_prediction_file])
def test_nor_does_a_reader_of_contexts_and_tasks(tmp_path: Path, reader: Any) -> None:
    record = CONTEXT if reader is read_contexts else WRITTEN
    (path := tmp_path / "x.jsonl").write_bytes(lines_of(record).replace(b"Lee", json.dumps(HOSTILE)[1:-1].encode()))
    (found,) = reader(path)
    assert "a ]0;x b" in repr(found) and "\\x1b" not in repr(found) and "\\x9b" not in repr(found)
    assert reader is read_contexts or "d\\n\\nb" in repr(found)  # paragraphs stay


@pytest.mark.parametrize("reader", [read_contexts, read_tasks, read_prediction_file, read_paragraphs])
@pytest.mark.parametrize(
    "line",
    [
        DEEP,
        f'{{"text": "a <REF>", "start": {LONG}}}',
        f'{{"text": "a <REF>", "citing_year": "{LONG}", "input": ["x"], "id": {DEEP}, "prediction": ""}}',
        '{"text": "\\ud800", "input": ["\\ud800"], "prediction": ""}',
    ],
    ids=["deep", "long", "deep within", "half a character"],
)
def test_what_a_line_does_to_its_reader_is_told_with_its_place(tmp_path: Path, reader: Any, line: str) -> None:
    (path := tmp_path / "x.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.jsonl, (line|record) 1: "):
        list(reader(path))


def test_a_list_is_followed_by_nothing_and_its_numbers_may_be_long(tmp_path: Path) -> None:
    (path := tmp_path / "x.json").write_text(f'[{{"a": {LONG}}}, {{"a": 1}}]\n ', encoding="utf-8")
    first, second = (parsed(raw, dict) for _, raw in written_records(path)[1])
    assert isinstance(first, BadRecord) and second == {"a": 1}
    path.write_text('[{"a": 1}]\n[{"a": 2}]', encoding="utf-8")
    with pytest.raises(InputError, match="more follows the end of its list"):
        list(written_records(path)[1])


GOOD = b'{"corpusid": 1, "text": "one"}\n'


def test_bad_lines_are_told_apart_and_the_rest_is_read(tmp_path: Path) -> None:
    bad = b'\n[1]\nnot json\n{"corpusid": 2, "text": "\xff"}\n{"corpusid": 3, "te'
    (path := tmp_path / "x").write_bytes(b"\xef\xbb\xbf" + GOOD + bad)
    first, *others = read("s2ag-tldrs", path)
    assert (first.number, first.record) == (1, PaperText("tldrs", "1", "one"))
    reasons = ("a list where a JSON object should be", "not JSON", "not UTF-8", "not JSON")
    for number, (line, reason) in enumerate(zip(others, reasons, strict=True), 3):
        assert line.number == number and line.record.reason.startswith(reason)
    path.write_bytes(gzip.compress(GOOD) + gzip.compress(GOOD * 2))  # known by its bytes, of several members
    assert len(read("s2ag-tldrs", path)) == 3


def test_files_are_recognised_by_ending_and_content(tmp_path: Path) -> None:
    (folder := tmp_path / "files").mkdir()
    endings = {"ris": "x.ris", "bibtex": "x.bib", "csl": "x.json", "csv": "x.csv"}
    endings |= {"jsonl": "y.json", "s2ag-papers": "z.jsonl"}
    for form, name in endings.items():
        (folder / name).write_bytes(SAMPLES[form])
    (folder / "other.json").write_text('[{"hello": 1}]')
    assert {shard.format: shard.path.name for shard in find_shards([folder])} == endings
    (tmp_path / "s2ag" / "tldrs").mkdir(parents=True)
    (tmp_path / "s2ag" / "tldrs" / "part0").write_bytes(SAMPLES["s2ag-tldrs"])
    for place in ("s2ag", "s2ag/tldrs"):  # a folder of datasets, and one of them
        assert [shard.format for shard in find_shards([tmp_path / place])] == ["s2ag-tldrs"]
    (tmp_path / "empty").mkdir()
    for paths, message in (
        ([tmp_path / "empty"], "holds nothing that citerec reads"),
        ([folder, folder / "x.ris"], "given twice"),
    ):
        with pytest.raises(SourceError, match=message):
            find_shards(paths)
