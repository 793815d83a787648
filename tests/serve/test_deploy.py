"""The files of deploy/: valid by the schemas of Compose and Kubernetes, and true to what citerec serves."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from citerec import Index
from tests.conftest import DEMO, ROOT
from tests.serve.conftest import JSON, SENTENCE, TOKEN, Start

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
KUBERNETES = [
    (path.name, document)
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
PORT = 8765  # of citerec serve, by default
PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d+(-[\w-]+)?")


def of_kind(*kinds: str) -> list[Any]:
    return [document for _, document in KUBERNETES if document["kind"] in kinds]


def pods() -> list[Any]:
    return [document["spec"]["template"]["spec"] for document in of_kind("Deployment", "StatefulSet")]


def containers() -> Iterator[tuple[Any, Any]]:
    """(pod, container)"""
    return ((pod, container) for pod in pods() for container in pod["containers"])


def test_compose_is_valid() -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(COMPOSE)
    assert list(validator.iter_errors({**COMPOSE, "services": {"citerec": {"healthcheck": {"tests": []}}}}))


@pytest.mark.parametrize(("name", "document"), KUBERNETES, ids=[f"{name} {one['kind']}" for name, one in KUBERNETES])
def test_kubernetes_is_valid(name: str, document: Any) -> None:
    version = kubernetes_validate.latest_version()
    kubernetes_validate.validate(document, version, strict=True)
    document = json.loads(json.dumps(document))
    document["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, version, strict=True)


def test_images_are_pinned() -> None:
    in_pods = [one["image"] for pod in pods() for one in (*pod["containers"], *pod.get("initContainers", ()))]
    images = [*(service["image"] for service in SERVICES.values()), *in_pods]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(images) > 8
    assert [image for image in images if not PINNED.fullmatch(image)] == []
    pinned = {tuple(image.removesuffix("-unprivileged").split(":")) for image in images}
    assert len(pinned) == len({name for name, _ in pinned})  # one version of each, everywhere
    from citerec.version import __version__

    assert ("citerec", __version__) in pinned


def test_everything_has_health_checks_and_limits() -> None:
    for service in SERVICES.values():
        assert service["healthcheck"]["test"]
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
    for pod, container in containers():
        assert container["startupProbe"]
        assert container["livenessProbe"]
        assert container["readinessProbe"]
        assert container["resources"]["limits"].keys() == {"cpu", "memory"}
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["terminationGracePeriodSeconds"] > 30  # serve.seconds
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    budgets = {document["metadata"]["name"] for document in of_kind("PodDisruptionBudget")}
    assert budgets == {document["metadata"]["name"] for document in of_kind("Deployment", "StatefulSet")}


def test_names_fit_together() -> None:
    """Probes name ports of their container, services ports and labels of pods, mounts volumes."""
    for document in of_kind("Deployment", "StatefulSet"):
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"] == labels
        pod = document["spec"]["template"]["spec"]
        ports = {port["name"]: port["containerPort"] for one in pod["containers"] for port in one["ports"]}
        (service,) = (one for one in of_kind("Service") if one["spec"]["selector"] == labels)
        assert {port["targetPort"] for port in service["spec"]["ports"]} == ports.keys()
        assert document["spec"].get("serviceName", service["metadata"]["name"]) == service["metadata"]["name"]
        claims = {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", ())}
        volumes = {volume["name"] for volume in pod.get("volumes", ())} | claims
        for one in (*pod["containers"], *pod.get("initContainers", ())):
            assert {mount["name"] for mount in one["volumeMounts"]} <= volumes
        for one in pod["containers"]:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                how = one[probe].get("httpGet") or one[probe].get("tcpSocket")
                assert how is None or how["port"] in ports
    secrets = [variable for _, one in containers() for variable in one.get("env", ()) if "value" not in variable]
    assert {variable["valueFrom"]["secretKeyRef"]["name"] for variable in secrets} == {"citerec"}
    for service in SERVICES.values():
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
        named = {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith(".")}
        assert named <= COMPOSE["volumes"].keys()
        assert {volume.split(":")[0] for volume in service["volumes"] if volume.startswith(".")} <= {"./prometheus.yml"}


def test_no_secret_is_written_down() -> None:
    for name, value in (
        (name, value) for service in SERVICES.values() for name, value in service.get("environment", {}).items()
    ):
        if "PASSWORD" in name or "KEY" in name:
            assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), name
    for _, one in containers():
        for variable in one.get("env", ()):
            assert "value" not in variable or variable["name"] == "QDRANT__CLUSTER__ENABLED"


def test_the_image_has_what_it_needs() -> None:
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()]
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {Path(name).parts[0] for name in wheel} <= set(copied)
    assert project["project"]["readme"] in copied
    assert re.search(r"^ARG EXTRAS=(\w+)$", DOCKERFILE, re.MULTILINE)[1] in project["project"]["optional-dependencies"]
    kept = re.findall(r"^!(\w\S*)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert set(copied) <= set(kept)
    assert {name for name in wheel if name.startswith("indexes/")} <= set(kept)
    assert re.search(r"^USER 10001$", DOCKERFILE, re.MULTILINE)
    assert f"EXPOSE {PORT}" in DOCKERFILE


def test_citerec_serves_what_the_files_ask_for(start: Start, nx_server: str, tmp_path: Path) -> None:
    """A server as Compose starts it, with its records in a database; each check and each scrape of the files."""
    index = Index.build(DEMO, tmp_path / "main", store=f"{nx_server}/citerec_deploy").path
    (tmp_path / "token").write_text(TOKEN + "\n")
    commands = [
        SERVICES["citerec"]["command"],
        next(one["args"] for _, one in containers() if one["name"] == "citerec"),
        json.loads(re.search(r"^CMD (\[\"serve\".*\])$", DOCKERFILE, re.MULTILINE)[1]),
    ]
    here = {"/indexes/main": str(index), "/run/secrets/token": str(tmp_path / "token")}
    for command, environment in zip(commands, ({}, {"CITEREC_TOKEN": TOKEN}, {"CITEREC_TOKEN": TOKEN}), strict=True):
        assert command[:4] == ["serve", "/indexes/main", "--host", "0.0.0.0"]
        assert set(command[4:]) <= {"--token-file", "/run/secrets/token"}
        assert len(command) == 4 or not environment
    first = [here.get(word, word) for word in commands[0][1:]]
    with start(*first) as running, running.client() as client:
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = next(one[name]["httpGet"] for _, one in containers() if one["name"] == "citerec")
            # A kubelet calls a pod by its address.
            assert client.get(probe["path"], headers={"Host": f"10.1.2.3:{PORT}"}).status_code == 200
        for check in (shlex.join(SERVICES["citerec"]["healthcheck"]["test"]), DOCKERFILE):
            asked = re.search(rf"http://127\.0\.0\.1:{PORT}(/\w+)", check)
            assert asked
            assert client.get(asked[1]).status_code == 200
        (job,) = PROMETHEUS["scrape_configs"]
        assert job["static_configs"] == [{"targets": [f"citerec:{PORT}"]}]
        path, host = job.get("metrics_path", "/metrics"), {"Host": f"citerec:{PORT}"}
        assert client.get(path, headers=host).status_code == 401
        token = Path(here[job["authorization"]["credentials_file"]]).read_text().strip()
        metrics = client.get(path, headers={**host, "Authorization": f"Bearer {token}"})
        assert 'citerec_index_papers{index="main"} 252' in metrics.text
        body = {"text": SENTENCE, "k": 2}
        answer = client.post("/api/v1/recommend", json=body, headers={**JSON, "Authorization": f"Bearer {token}"})
        assert len(answer.json()["answers"][0]["hits"]) == 2
    assert SERVICES["citerec"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
