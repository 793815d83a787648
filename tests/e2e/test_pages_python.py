"""The Python of the pages runs, in order, on the demo index, and prints what is shown there.

Blocks marked `py` are not run: they need what takes minutes to train.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

_END = "-- end of block --"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", ["python.md", "extend.md", "writing.md", "texts.md", "formats.md"])
def test_the_python_of_a_page_runs(page: str, demo_index: Path, tmp_path: Path) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.MULTILINE | re.DOTALL)
    assert blocks
    shutil.copytree(demo_index, tmp_path / "indexes" / "demo")
    (tmp_path / "diagnostics").symlink_to(ROOT / "diagnostics")
    program = f"\nprint('{_END}')\n".join(block for block, _ in blocks)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # ranx compiles anew in every process: see plain_ranx
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    printed = [part.strip() for part in done.stdout.split(_END)]
    for (block, shown), found in zip(blocks, printed, strict=True):
        assert not shown or found == shown.strip(), block
