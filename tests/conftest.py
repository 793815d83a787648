"""What all tests share: the real corpora, and how the command line is called from outside."""

import gzip
import importlib
import io
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

# Machines of CI are slow and noisy: no test of ours is about time. The gate tries the same examples each time: it tells
# of a change, and not of chance.
settings.register_profile(
    "citerec",
    deadline=None,
    max_examples=25,
    suppress_health_check=list(HealthCheck),
    derandomize="CITEREC_CI" in os.environ,
)
settings.load_profile("citerec")
settings.register_profile("thorough", max_examples=300)  # pytest --hypothesis-profile thorough

# A shell starts background jobs deaf to Ctrl-C, and their children inherit that: tests of Ctrl-C need the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "diagnostics" / "demo"
CITEREC = Path(sys.executable).with_name("citerec")
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's data folder; a run without it skips, but never in CI."""
    if SHARED.is_dir():
        return SHARED
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has no {SHARED}")
    pytest.skip(f"needs real data in {SHARED}")


def base_of_run(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of all processes of a run."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that all processes of a run read: the first that needs it makes it, and the others wait."""
    base = base_of_run(factory)
    made, out = base / f"{name}-made", base / f"{name}-made" / name  # alone in its folder
    with FileLock(base / f"{name}.lock"):
        if not made.exists():
            shutil.rmtree(partial := base / f"{name}-partial", ignore_errors=True)
            make(partial / name)
            partial.rename(made)
    return out


@pytest.fixture(scope="session")
def demo_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus, indexed; to be copied by whoever changes it."""
    from citerec.index.build import build_index

    return made_once(tmp_path_factory, "demo", lambda out: build_index([DEMO], out))


@pytest.fixture(scope="session")
def hybrid_index(demo_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo corpus with the vectors of MiniLM beside its words; to be copied by whoever changes it."""

    def make(out: Path) -> None:
        shutil.copytree(demo_index, out)
        command = [CITEREC, "index", "encode", out, "--model", "all-MiniLM-L6-v2"]
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)

    return made_once(tmp_path_factory, "hybrid", make)


@pytest.fixture(scope="session")
def s2_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic release of S2AG and S2ORC whose truth is known, small (benchmarks/release.py)."""

    def make(out: Path) -> None:
        benchmarks = str(ROOT / "benchmarks")
        sys.path.insert(0, benchmarks)  # not as a package: another distribution already calls one of its own so
        try:
            more = {"sentence_layer": 0.9, "doubled_text": 0.03, "paragraph_outside": 0.1}
            rates = importlib.import_module("release_rates").Rates(sound=0.25, **more)
            importlib.import_module("release").write_release(out, papers=1500, texts=70, shards=3, seed=5, rates=rates)
        finally:
            sys.path.remove(benchmarks)

    return made_once(tmp_path_factory, "s2", make)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port of this machine that refuses every caller. It is held, so that no other process can take it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(scope="session")
def nx_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of MongoDB's wire protocol, in memory: `mongodb://HOST:PORT`."""
    folder = tmp_path_factory.mktemp("nx")
    files = ["--log-file", folder / "log", "--pid-file", folder / "pid"]
    command = [Path(sys.executable).with_name("nx-27017"), "--db", "memory", "--port", "0", *files]
    with (folder / "out").open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            while not (listening := re.search(r"Listening on 127\.0\.0\.1:(\d+)", (folder / "out").read_text())):
                assert server.poll() is None, (folder / "out").read_text()
                time.sleep(0.05)
            yield f"mongodb://127.0.0.1:{listening[1]}"
        finally:
            server.terminate()


@pytest.fixture
def plain_ranx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """ranx in plain Python, the same code as compiled: numba compiles its objects anew in every process, for 16 s."""
    import numba
    import numba.typed.typeddict
    import numba.typed.typedlist  # both first: what they define while compiling is off would never be compiled later

    def loaded() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] == "ranx"]

    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    for name in loaded():
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in loaded():
        del sys.modules[name]


Citerec = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def citerec(tmp_path: Path) -> Citerec:
    """Calls `citerec` as a user does, in an empty folder."""

    def call(*arguments: object, text: str | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [CITEREC, *map(str, arguments)],
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


@pytest.fixture
def citerec_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Citerec:
    """The same within this process: quicker, and whatever is not caught fails a test. Standard input is UTF-8.

    A `code` is the exit code that is expected.
    """
    from citerec.cli.main import main

    def call(*arguments: object, text: str = "", code: int | None = None) -> "subprocess.CompletedProcess[str]":
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["citerec", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
        with pytest.raises(SystemExit) as ended:
            main()
        out, error = capfd.readouterr()
        assert code in (None, ended.value.code), error
        return subprocess.CompletedProcess(sys.argv, int(str(ended.value.code)), out, error)

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


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """A bucket on a real server of S3's protocol, in memory: its address. Everything started later finds it."""
    import s3fs
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "for-tests")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.delenv("AWS_PROFILE", raising=False)
        s3fs.S3FileSystem().mkdir("citerec")
        yield "s3://citerec"
    server.stop()


@pytest.fixture(scope="session")
def ray_here(s3: str) -> Iterator[Any]:
    """A Ray that lasts as long as the tests, so that `--on ray` in this process need not start one each time."""
    from citerec.files.parallel import workers_on

    with workers_on("ray", 2):
        import ray

        yield ray


@pytest.fixture
def on_ray(ray_here: Any) -> Iterator[Any]:
    """That Ray, for two items at once."""
    from citerec.files.parallel import workers_on

    with workers_on("ray", 2) as workers:
        yield workers
