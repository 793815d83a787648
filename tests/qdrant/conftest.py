"""The demo corpus in Qdrant: local mode of the client, the real engine, the client over a socket, a real server."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from citerec.files.progress import no_progress
from citerec.retrieve.index import BuildOptions, add_to_index
from citerec.retrieve.qdrant.push import PushOptions, push_index
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


@pytest.fixture(scope="session", params=["path", "edge", "socket", "server"])
def pushed(
    request: pytest.FixtureRequest, said_index: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """That index, pushed to each kind of address."""
    folder = tmp_path_factory.mktemp(request.param)
    server = None
    if request.param == "server":
        if not (url := os.environ.get(TEST_URL)):
            pytest.skip(f"there is no server of Qdrant here: {TEST_URL} is not set")
        address = f"{url.rstrip('/')}/citerec-test-{uuid.uuid4().hex[:8]}"
    elif request.param == "socket":
        server = Server(folder / "engine")
        address = f"{server.url}/demo"
    else:
        address = f"{request.param}:{folder}/engine/demo"
    shutil.copytree(said_index, out := folder / "index")
    push_index(out, address, PushOptions(), no_progress)
    yield out
    if server:
        server.stop()
