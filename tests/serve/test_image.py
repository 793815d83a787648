"""The image of deploy/ is built by buildah, over a base made of Debian's packages, and serves an index."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.conftest import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
BASE = next(line.split()[1] for line in DOCKERFILE.read_text().splitlines() if line.startswith("FROM"))
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TOKEN = "0123456789abcdef"


class Buildah:
    """The command, with a storage of its own that needs no daemon and no user namespaces."""

    def __init__(self, place: Path) -> None:
        self.command = ["buildah", "--storage-driver", "vfs", "--root", place / "root", "--runroot", place / "run"]
        self.environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def __call__(self, *arguments: str | Path) -> str:
        command = [*self.command, *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout.strip()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """Has a base of the name in the Dockerfile: Debian's Python, as no registry of images is asked."""
    tools = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
    if tools or os.geteuid():
        pytest.skip(f"an image is built by root, and with buildah and debootstrap; missing: {tools or 'root'}")
    place = tmp_path_factory.mktemp("image")
    system, packages = place / "system", "python3-pip,python3-venv,ca-certificates"
    command = ["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", system]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"debootstrap finds no packages of Debian: {done.stdout[-300:]}")
    subprocess.run(["chroot", system, "python3.11", "-m", "venv", "/usr/local"], check=True)
    shutil.copy(CERTIFICATES, system / CERTIFICATES[1:])
    for settings in Path("/etc/apt/apt.conf.d").glob("*registry*"):  # how this machine reaches Debian's packages
        shutil.copy(settings, system / "etc/apt/apt.conf.d")
    made = Buildah(place)
    container = made("from", "scratch")
    made("copy", container, system, "/")
    variables = (f"PIP_CERT={CERTIFICATES}", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    made("config", *(word for one in variables for word in ("--env", one)), container)
    made("commit", container, f"docker.io/library/{BASE}")
    made("rm", container)
    yield made
    shutil.rmtree(place)  # some gigabytes


@pytest.mark.slow
def test_the_image_is_built_and_serves(buildah: Buildah, tmp_path: Path) -> None:
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore")
    files = ["--file", DOCKERFILE, "--ignorefile", ignored]
    buildah("bud", "--pull-never", "--network", "host", *files, "--tag", "citerec", ROOT)
    container = buildah("from", "--pull-never", "citerec")
    tmp_path.chmod(0o777)  # the image's user is not that of this test
    shutil.copytree(ROOT / "diagnostics" / "demo", tmp_path / "demo")
    run = ["run", "--network", "host", "--volume", f"{tmp_path}:/mnt", container, "--"]
    assert "uid=10001" in buildah(*run, "id")
    buildah(*run, "citerec", "index", "build", "/mnt/demo", "--out", "/mnt/index")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ["--env", f"CITEREC_TOKEN={TOKEN}", "--env", f"CITEREC_SERVE_PORT={port}"]
    serve = [*run[:3], *settings, *run[3:], "citerec", "serve", "/mnt/index", "--host", "0.0.0.0"]
    with subprocess.Popen([*buildah.command, *serve], env=buildah.environment, stdout=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(120):
                try:
                    assert requests.get(f"{url}/ready", timeout=5).ok
                    break
                except requests.ConnectionError:
                    assert server.poll() is None
                    time.sleep(0.5)
            question = {"text": "Citation graphs train embeddings of papers <REF> .", "k": 3}
            headers = {"Authorization": f"Bearer {TOKEN}"}
            answer = requests.post(f"{url}/api/v1/recommend", json=question, headers=headers, timeout=30)
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["answers"][0]["hits"]) == 3
        finally:
            server.terminate()
