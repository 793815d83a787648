"""What all tests share: the real corpora, and how the command line is called from outside."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines of CI are slow and noisy: no test of ours is about time.
settings.register_profile("citerec", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("citerec")

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "diagnostics" / "demo"
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's data folder; a run without it skips, but never in CI."""
    if SHARED.is_dir():
        return SHARED
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has no {SHARED}")
    pytest.skip(f"needs real data in {SHARED}")


@pytest.fixture(scope="session")
def demo_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus, indexed once."""
    from citerec.retrieve.index import build_index

    out = tmp_path_factory.mktemp("indexes") / "demo"
    build_index([DEMO], out)
    return out


Citerec = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def citerec(tmp_path: Path) -> Citerec:
    """Calls `citerec` as a user does, in an empty folder."""

    def call(*arguments: object, text: str | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [Path(sys.executable).with_name("citerec"), *map(str, arguments)],
            cwd=tmp_path,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=120,
            check=False,
        )

    return call


def write_lines(path: Path, records: Iterable[object], *, compress: bool = False) -> Path:
    """Writes records as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if compress else text)
    return path


def s2ag_paper(corpusid: object, title: str | None, **fields: object) -> dict[str, object]:
    """A record of S2AG's `papers`, null where nothing is said."""
    names = ("externalids", "url", "authors", "venue", "year", "citationcount", "s2fieldsofstudy", "journal")
    return {"corpusid": corpusid, "title": title, **dict.fromkeys(names), **fields}
