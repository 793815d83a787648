"""What is far too large is set aside in little memory: bibliographies that multiply, and records without measure."""

import gzip
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citerec.index.manifest import generation_of
from tests.e2e.test_cli import CITEREC
from tests.serve.conftest import Start, start
from tests.serve.lsp_client import Editor

__all__ = ["start"]

MB = 1 << 20
DRAFT = "We build on \\cite{bomb} and \\cite{good}.\n\\bibliography{refs}\n"
GOOD = "@misc{good, title = {Attention Is All You Need}, year = {2017}}\n"
TOO_LONG = "macros make the macro a5 400,000 characters long, more than 100,000"

Way = Callable[[str], tuple[str, int]]
"""Gives a bibliography to citerec; what it says, and its peak memory."""


def bomb(levels: int) -> str:
    """A bibliography in which each macro is ten times the one before."""
    macros = [f"@string{{a{level} = {' # '.join([f'a{level - 1}'] * 10)}}}\n" for level in range(1, levels + 1)]
    return f'@string{{a0 = "spam"}}\n{"".join(macros)}@misc{{bomb, title = a{levels}, year = 2020}}\n{GOOD}'


def peak(pid: int | str) -> int:
    """The most memory that a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


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


@pytest.fixture(params=["server", "check", "index", "editor"])
def way(request: pytest.FixtureRequest, tmp_path: Path, demo_index: Path) -> Iterator[Way]:
    refs, draft = tmp_path / "refs.bib", tmp_path / "draft.tex"
    draft.write_text(DRAFT)

    def by_check(bib: str) -> tuple[str, int]:
        refs.write_text(bib)
        return command(tmp_path, "check", draft)

    def by_index(bib: str) -> tuple[str, int]:
        refs.write_text(bib)
        said, memory = command(tmp_path, "index", "build", refs, "--out", "index", "--max-bad", "0.9")
        quarantine = generation_of(tmp_path / "index") / "quarantine.jsonl"
        return said + (quarantine.read_text() if quarantine.exists() else ""), memory

    match request.param:
        case "check":
            yield by_check
        case "index":
            yield by_index
        case "server":
            started: Start = request.getfixturevalue("start")
            with started(demo_index) as running, running.client() as client:

                def by_server(bib: str) -> tuple[str, int]:
                    body = {"name": "draft.tex", "text": DRAFT, "bibliography": bib}
                    answer = client.post("/api/v1/drafts", json=body)
                    return answer.text, peak(running.process.pid)

                yield by_server
        case "editor":
            editor = Editor(tmp_path, "--index", demo_index)
            try:
                editor.start()
                editor.ready()

                def by_editor(bib: str) -> tuple[str, int]:
                    refs.write_text(bib)
                    found = []
                    if bib != GOOD:  # of which there is nothing to say
                        editor.open(draft, DRAFT)
                        found = editor.diagnostics(refs, bool)
                    return str(found), peak(editor.process.pid)

                yield by_editor
                assert editor.stop() == 0
            finally:
                editor.kill()


def test_a_bibliography_cannot_multiply(way: Way) -> None:
    _, before = way(GOOD)
    said, after = way(bomb(9))
    assert TOO_LONG in said
    assert after - before < 200 * MB


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
    said, _ = command(tmp_path, *build, "larger", CITEREC_MAX_RECORD_BYTES="5000000")
    assert "9 papers" in said and re.search("unreadable +3: see", said), said
    said, _ = command(tmp_path, *build, "none", CITEREC_MAX_RECORD_BYTES="1 MB")
    assert "CITEREC_MAX_RECORD_BYTES is no number of bytes: '1 MB'" in said
