"""What is far too large is set aside in little memory: bibliographies that multiply, and records without measure."""

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

from citerec.index.manifest import generation_of
from tests.conftest import CITEREC

MB = 1 << 20
GOOD = "@misc{good, title = {Attention Is All You Need}, year = {2017}}\n"


def bomb(levels: int) -> str:
    """A bibliography in which each macro is ten times the one before."""
    macros = [f"@string{{a{level} = {' # '.join([f'a{level - 1}'] * 10)}}}\n" for level in range(1, levels + 1)]
    return f'@string{{a0 = "spam"}}\n{"".join(macros)}@misc{{bomb, title = a{levels}, year = 2020}}\n{GOOD}'


def command(folder: Path, *arguments: object, **environment: str) -> tuple[str, int]:
    """What `citerec` prints, and its peak memory."""
    process = subprocess.Popen(
        [CITEREC, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout
    with process.stdout:
        said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return said, 1024 * usage.ru_maxrss


def test_a_bibliography_cannot_multiply(tmp_path: Path) -> None:
    (tmp_path / "draft.tex").write_text("We build on \\cite{bomb} and \\cite{good}.\n\\bibliography{refs}\n")
    build = ("index", "build", "refs.bib", "--out", "index", "--max-bad", "0.9")
    for arguments in (("check", "draft.tex"), build):
        (tmp_path / "refs.bib").write_text(GOOD)
        _, before = command(tmp_path, *arguments)
        (tmp_path / "refs.bib").write_text(bomb(9))
        said, after = command(tmp_path, *arguments)
        assert after - before < 200 * MB
        if arguments == build:
            said = (generation_of(tmp_path / "index") / "quarantine.jsonl").read_text()
        assert "macros make the macro a5 400,000 characters long, more than 100,000" in said


def test_a_record_has_a_size(tmp_path: Path) -> None:
    title = "spam " * 400_000  # 2 MB
    other = {"id": "o", "type": "book", "title": "Another book"}
    work = {"id": "https://openalex.org/W1", "title": "t", "abstract_inverted_index": {"w" * 9999: [*range(9999)]}}
    papers = {
        "a.bib": f"@misc{{k, title = {{{title}}}}}\n{GOOD}",
        "b.csv": f"paper_id,title\n1,{title}\n2,Another table\n",
        "c.json": json.dumps([other | {"id": "c", "note": ['"]', "\\"], "title": title * 12}, other]),
        "d.jsonl": json.dumps({"paper_id": "3", "title": title}),
        "e.jsonl": json.dumps(work),
        "f.ris": f"TY  - JOUR\nTI  - {title}\nER  - \nTY  - JOUR\nTI  - Another journal\nER  - \n",
    }
    (tmp_path / "mixed").mkdir()
    for name, text in papers.items():
        (tmp_path / "mixed" / name).write_text(text)
    # A line of 600 MB in a file of less than one: gzip may have several members.
    begin, end = b'{"paper_id": "4", "title": "', b'"}\n{"paper_id": "5", "title": "Another line"}\n'
    zipped = [gzip.compress(begin), gzip.compress(title.encode()) * 300, gzip.compress(end)]
    (tmp_path / "mixed" / "g.jsonl.gz").write_bytes(b"".join(zipped))
    build = ["index", "build", "mixed", "--workers", "1", "--out"]
    (tmp_path / "good.bib").write_text(GOOD)
    _, before = command(tmp_path, "index", "build", "good.bib", "--workers", "1", "--out", "small")
    said, after = command(tmp_path, *build, "index")
    assert "5 papers" in said and re.search("unreadable +7: see", said), said
    assert after - before < 200 * MB
    lines = (generation_of(tmp_path / "index") / "quarantine.jsonl").read_text().splitlines()
    rows = [(Path(row["shard"]).name, row["line"], row["reason"]) for row in map(json.loads, lines)]
    size = "it has more than 1,000,000 bytes of text (CITEREC_MAX_RECORD_BYTES)"
    places = [("a.bib", 1), ("b.csv", 2), ("c.json", 1), ("d.jsonl", 1), ("e.jsonl", 1), ("f.ris", 1)]
    last = ("g.jsonl.gz", 1, "it has more than 20,000,000 bytes")
    assert rows == [*((name, line, size) for name, line in places), last]
    said, _ = command(tmp_path, *build, "none", CITEREC_MAX_RECORD_BYTES="1 MB")
    assert "CITEREC_MAX_RECORD_BYTES is no number of bytes: '1 MB'" in said
