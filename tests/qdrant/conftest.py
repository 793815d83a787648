"""The demo corpus in Qdrant: local mode of the client, the client over a socket with the real engine, a real server."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from citerec.index.build import BuildOptions, add_to_index, build_index
from citerec.index.manifest import Layout
from tests.conftest import DEMO, made_once, write_lines
from tests.qdrant.server import Server

TEST_URL = "CITEREC_TEST_QDRANT_URL"


@pytest.fixture(scope="session")
def said_index(hybrid_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus with vectors, and sentences that cite most of its papers, of different years."""

    def make(out: Path) -> None:
        shutil.copytree(hybrid_index, out)
        lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()
        contexts = [json.loads(line) for line in lines]
        said = [
            {**one, "citing_id": f"later-{number % 40}", "citing_year": 1960 + number % 65}
            for number, one in enumerate(contexts)
        ]
        add_to_index([], out, BuildOptions(citances=(write_lines(out.parent / "said.jsonl", said),)))

    return made_once(tmp_path_factory, "said", make)


def on_qdrant(source: Path, url: str, out: Path) -> Path:
    """An index with the papers and vectors of another, searched by Qdrant at an address."""
    build_index([source], out, BuildOptions(layout=Layout(engine="qdrant", url=url)))
    return out


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with the real engine, and no key."""
    started = Server(tmp_path / "engine")
    yield started
    started.stop()


@pytest.fixture(scope="session", params=["path", "socket", "server"])
def elsewhere(
    request: pytest.FixtureRequest, said_index: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """That index, with its words and vectors at each kind of address."""
    folder = tmp_path_factory.mktemp(request.param)
    started = None
    if request.param == "server":
        if not (url := os.environ.get(TEST_URL)):
            pytest.skip(f"there is no server of Qdrant here: {TEST_URL} is not set")
        address = f"{url.rstrip('/')}/citerec-test-{uuid.uuid4().hex[:8]}"
    elif request.param == "socket":
        started = Server(folder / "engine")
        address = f"{started.url}/demo"
    else:
        address = f"path:{folder}/engine/demo"
    yield on_qdrant(said_index, address, folder / "index")
    if started:
        started.stop()
