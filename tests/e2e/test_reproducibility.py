"""The published results that take a few minutes come again."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "benchmarks" / "reproducibility.py"
RESULTS = tomllib.loads(SCRIPT.with_suffix(".toml").read_text(encoding="utf-8"))
SHORT = [name for name, one in RESULTS.items() if one["minutes"] <= 2]

pytestmark = [pytest.mark.slow, pytest.mark.shared]


@pytest.mark.parametrize("name", SHORT)
def test_a_published_result_comes_again(name: str, tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, SCRIPT, name, "--work", tmp_path], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    rows = [line for line in made.stdout.splitlines() if line.startswith(f"| {name} |")]
    assert len(rows) == len(RESULTS[name]["figures"])


def test_a_published_set_is_that_of_the_data(tmp_path: Path, shared: Path) -> None:
    """The set acl-dev lists ids and digests; what differs from it is named."""
    whole, changed = shared / "acl" / "contexts-dev.jsonl", tmp_path / "changed.jsonl"
    first, _, *others = whole.read_text(encoding="utf-8").splitlines()
    changed.write_text("\n".join([first.replace("quite", "very"), *others]), encoding="utf-8")
    differs = "acl-00002 has another sentence or cites another paper\nacl-00005 is missing\n2 "
    for path, code, told in ((whole, 0, "0 differences"), (changed, 1, differs)):
        command = (sys.executable, SCRIPT.with_name("acl_dev.py"), "check", path)
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (made.returncode, told in made.stdout) == (code, True), made.stdout + made.stderr
