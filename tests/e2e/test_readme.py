"""The commands of README and of the tutorial, and the Python of the pages, run as written and print what is shown.

Blocks marked `bash` are not run: they take minutes, and README has the same commands.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citerec.recommend import Index
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

_LIBRARY = r"""
@article{robertson2009bm25,
  title = {The Probabilistic Relevance Framework: {BM25} and Beyond},
  author = {Robertson, Stephen and Zaragoza, Hugo},
  year = {2009}
}
@article{salton1988term,
  title = {Term-weighting approaches in automatic text retrieval},
  author = {Salton, Gerard and Buckley, Christopher},
  year = {1988}
}
"""


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Commands and Python programs in their order: (what to run, what is shown below it)."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "python":
            yield f"python - <<'END'\n{block}END", ""
        elif language == "console":
            _, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
            for part in parts:
                command, _, shown = part.partition("\n")
                yield command, shown
        elif not language:
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                yield line, ""


@pytest.mark.timeout(1800)  # it trains a ranker, and commands are many
@pytest.mark.parametrize(("page", "first"), [("README.md", "make demo"), ("docs/tutorial.md", "citerec index build")])
def test_the_commands_of_a_page_run_as_written(page: str, first: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "diagnostics"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "my.bib").write_text(_LIBRARY, encoding="utf-8")
    (tmp_path / "draft.tex").write_text("Term weighting \\cite{?} is strong. So is <REF>, probably.\n")
    for stamp in ("ready", "light"):
        (tmp_path / stamp).touch()
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "MAKEFLAGS": f"BIN={bin_folder} READY=ready LIGHT=light",  # this environment, not a new one
    }
    commands = [(command, shown) for command, shown in _blocks(text) if not command.startswith("make test")]
    assert commands[0][0].startswith(first) and len(commands) > 8
    given: dict[str, Any] = {"cwd": tmp_path, "env": environment, "stdin": subprocess.DEVNULL, "timeout": 600}
    for command, shown in commands:  # `make test` is what runs this test: it is left out
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, **given)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed = [line.rstrip() for line in done.stdout.splitlines()]
        for line in shown.splitlines():
            assert line in ("", "…") or line in printed, f"{command} does not print {line!r}:\n{done.stdout}"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", ["python.md", "extend.md", "writing.md", "texts.md", "formats.md"])
def test_the_python_of_a_page_runs(page: str, demo_index: Path, tmp_path: Path) -> None:
    """Blocks marked `py` are not run: they need what takes minutes to train."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.MULTILINE | re.DOTALL)
    assert blocks
    shutil.copytree(demo_index, index := tmp_path / "indexes" / "demo")
    Index.open(index).encode()  # as `make demo` does
    (tmp_path / "diagnostics").symlink_to(ROOT / "diagnostics")
    program = "\nprint('-- end of block --')\n".join(block for block, _ in blocks)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # ranx compiles anew in every process: see plain_ranx
    given: dict[str, Any] = {"cwd": tmp_path, "env": environment, "stdin": subprocess.DEVNULL, "timeout": 600}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stderr
    printed = [part.strip() for part in done.stdout.split("-- end of block --")]
    for (block, shown), found in zip(blocks, printed, strict=True):
        assert not shown or found == shown.strip(), block
