"""The extension for VS Code: it is compiled, tested with the language server as it is, and packed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CITEREC, ROOT


@pytest.mark.slow
def test_the_extension_is_built_tested_and_packed(tmp_path: Path, demo_index: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    place = tmp_path / "editors" / "vscode"
    shutil.copytree(ROOT / "editors" / "vscode", place, ignore=shutil.ignore_patterns("node_modules", "out"))
    shutil.copy(ROOT / "LICENSE", tmp_path)

    def npm(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "CITEREC": str(CITEREC), "INDEX": str(demo_index)}
        return subprocess.run(
            ["npm", *arguments], cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    installed = npm("install", "--no-audit", "--no-fund")
    if installed.returncode:
        pytest.skip(f"npm cannot install what the extension needs: {installed.stderr[-200:]}")
    for command in ("test", "package"):
        run = npm("run", command)
        assert run.returncode == 0, run.stdout + run.stderr
    assert (place / "citerec.vsix").stat().st_size > 100_000
