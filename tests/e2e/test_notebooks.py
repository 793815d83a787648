"""The notebooks run from top to bottom, and what is stored in them is what they print."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_readme_or_a_page_names_each() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 5
    assert all(path.name in text for path in NOTEBOOKS)


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own machinery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel of this very environment, whatever kernels the machine has besides.
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    arguments = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": arguments, "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    notebook = nbformat.read(path, as_version=4)
    stored = [_texts(cell) for cell in notebook.cells]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [_texts(cell) for cell in notebook.cells]
    assert sum(map(len, stored)) > 0, "the notebook is stored without its output"
    for before, after in zip(stored, printed, strict=True):
        if not re.search(r"\bsecond|_ms|latency|memory", before):  # costs differ from run to run
            assert after == before


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_tell_nothing_of_the_machine_they_ran_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/work/|/tmp/|/root/|/home/", text)
    assert '"stderr"' not in text


def _texts(cell: Any) -> str:
    texts = []
    for output in cell.get("outputs", []):
        texts.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "".join(texts)
