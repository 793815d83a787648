"""What `pip install citerec` brings, without extras, is enough for an author: no torch, no Java, 240 MB."""

import json
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import DEMO, ROOT

pytestmark = pytest.mark.slow

SENTENCE = "Two antiparallel strands wind around a common axis <REF>."
HEAVY = ("torch", "jpype", "numba", "scipy", "pandas", "pyarrow", "onnxruntime", "lightgbm", "sklearn", "transformers")
MOST_BYTES = 240_000_000


@pytest.fixture(scope="module", params=["pinned", "lowest"])
def light(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which the built wheel is installed, and nothing else was asked for.

    Its packages are those of constraints.txt, or the lowest versions that pyproject.toml allows.
    """
    folder = tmp_path_factory.mktemp("light")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=600)
    (wheel,) = folder.glob("citerec-*.whl")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    pinned = [programs / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    lowest = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", programs / "python"]
    lowest += ["--resolution", "lowest-direct", wheel]
    subprocess.run(lowest if request.param == "lowest" else pinned, check=True, timeout=900)
    return programs


@pytest.fixture
def citerec(light: Path, tmp_path: Path) -> Callable[..., str]:
    def call(*arguments: object, code: int = 0) -> str:
        command = [light / "citerec", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return call


def test_it_is_small(light: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 24
    site = next(light.parent.glob("lib/python*/site-packages"))
    assert not {re.split(r"[-.]", path.name)[0].lower() for path in site.iterdir()} & set(HEAVY)
    tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
    files = [path for path in site.rglob("*") if path.is_file() and path.relative_to(site).parts[0] not in tools]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


def test_an_author_needs_no_more(light: Path, tmp_path: Path, citerec: Callable[..., str]) -> None:
    (tmp_path / "mine.bib").write_text(
        "@article{wc, title={Molecular structure of nucleic acids}, author={Watson, J. and Crick, F.}, year=1953}\n"
    )
    citerec("index", "build", "mine.bib", "--out", "mine")
    assert "Molecular structure" in citerec("recommend", "The structure of nucleic acids <REF>.", "--index", "mine")
    citerec("index", "build", DEMO / "papers", DEMO / "abstracts", "--out", "demo")
    assert "strands" in citerec("recommend", SENTENCE, "--index", "demo", "--explain")
    draft = "Nucleic acids have a molecular structure of two strands \\cite{?}. Much was said of it before we began.\n"
    (tmp_path / "draft.tex").write_text(f"\\begin{{document}}\n{draft}\\end{{document}}\n")
    citerec("check", "draft.tex", "--bib", "mine.bib", "--index", "mine")
    citerec("fill", "draft.tex", "--bib", "mine.bib", "--index", "mine", "--yes=any")
    assert "\\cite{wc}" in (tmp_path / "draft.tex").read_text()
    described = json.loads(citerec("index", "info", "demo", "--format", "json"))
    assert (described["vectors"]["model"], described["default_system"]) == ("citerec-static", "hybrid+ltr")
    assert "-c backend=onnx-int8, after pip install" in " ".join(citerec("index", "info", "demo").split())
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
    told = f"Content-Length: {len(asked)}\r\n\r\n{asked}"
    command = [light / "citerec", "lsp", "--index", tmp_path / "demo"]
    served = subprocess.run(command, input=told, capture_output=True, text=True, timeout=60)
    assert served.stdout.startswith("Content-Length"), served.stderr
    assert "indexes/demo built: 252 papers" in citerec("demo")
    page = next(light.parent.glob("lib/python*/site-packages/citerec/serve/page"))
    assert {path.name for path in page.iterdir()} == {path.name for path in (ROOT / "citerec/serve/page").iterdir()}
    assert "Usage" in citerec("serve", "--help")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("index", "build", DEMO, "--out", "there", "--engine", "lucene"), "lucene"),
        (("mcp", "--index", "there"), "mcp"),
        (("index", "build", DEMO, "--out", "there", "--model", "all-MiniLM-L6-v2"), "models"),
        (("train", "dense", "--contexts", DEMO, "--index", "there", "--out", "encoder"), "train"),
        (("eval", "--diagnostic", "location"), "eval"),
    ],
)
def test_a_missing_extra_is_named(citerec: Callable[..., str], arguments: tuple[object, ...], extra: str) -> None:
    said = citerec(*arguments, code=2)
    assert f"pip install 'citerec[{extra}]'" in said and said.strip().count("\n") <= 1
